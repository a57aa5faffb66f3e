"""What holds of every plugin that decides: whole runs, single calls, other processes."""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hypothesis
from hypothesis.strategies import SearchStrategy

from makeway.errors import ConfigError, InvariantError, PolicyError, RunnerError
from makeway.registry.finding import OWN
from makeway.registry.limits import METHODS
from makeway_testing import nuisances
from makeway_testing.contracts.base import Contract
from makeway_testing.elsewhere import packed
from makeway_testing.failures import BreachError
from makeway_testing.profile import profile
from makeway_testing.relay import relay
from makeway_testing.strategies import Scenario
from makeway_testing.unrecorded import difference
from makeway_testing.watching import Call, changes, plain, short, snapshot

Check = Callable[[Call], str | None]
"""Looks at a call and its answer; returns what is wrong with it, or nothing."""


PURE_HOOKS = (
    "makeway_queue.sort",
    *(f"makeway_limits.{method}" for method in METHODS if method not in ("save", "restore")),
    "makeway_preempt_candidates",
    "makeway_preempt_mode",
    "makeway_protect",
    "makeway_search",
    "makeway_preempt_action",
)
"""Questions that get the same answer to the same arguments, whenever they are asked."""


class DecisionContract(Contract):
    """Rules of every plugin that takes part in decisions."""

    # ----------------------------------------------------------------------------- whole runs
    def test_every_answer_is_accepted(self) -> None:
        """Whatever is asked in random runs is answered without an exception, in a form that the engine accepts."""

        def rule(scenario: Scenario) -> None:
            try:
                self.play(scenario)
            except PolicyError as error:
                raise BreachError(error.message, hook=error.hook, job=error.job or "") from None

        self.hold(rule)

    def test_nothing_forbidden_happens(self) -> None:
        """Whole random runs break none of the invariants: no core twice, no job lost, no work uncounted."""

        def rule(scenario: Scenario) -> None:
            calls: list[Call] = []
            try:
                self.play(scenario, calls.append, checker=self.checker(calls))
            except InvariantError as error:
                raise BreachError(str(error)) from None

        self.hold(rule)

    def test_runs_come_to_an_end(self) -> None:
        """Jobs do not displace one another for ever."""

        def rule(scenario: Scenario) -> None:
            try:
                self.play(scenario)
            except RunnerError as error:
                raise BreachError(str(error)) from None

        self.hold(rule)

    def test_same_input_same_record(self) -> None:
        """Two runs of one scenario leave the same record: nothing is kept from run to run, or left to chance."""

        def rule(scenario: Scenario) -> None:
            first = self._record(scenario)
            _compare(first, self._record(scenario), "when it was run again")

        self.hold(rule)

    def test_recording_changes_nothing(self) -> None:
        """A run that is not recorded comes to the same: what is spared there changes no decision."""

        def rule(scenario: Scenario) -> None:
            found = difference(scenario, {**self.companions, self.plugin: self._plugin()})
            if found:
                raise BreachError(found)

        self.hold(rule)

    def test_another_engine_goes_on_alike(self) -> None:
        """An engine that adopts the state of a run, after any of its steps, does what the one before would have done.

        A plugin that remembers more than jobs and settings show has to save it: `makeway.model.Limits`,
        `makeway.model.AdoptingSelector`, `makeway.model.AdoptingGang`.
        """

        def rule(scenario: Scenario) -> None:
            try:
                relay(scenario, {**self.companions, self.plugin: self._plugin()})
            except (InvariantError, ConfigError) as error:
                raise BreachError(str(error)) from None

        self.hold(rule)
        remembering = self.remembering()
        if remembering is not None:
            self.hold(rule, remembering.map(self._with_plugin))

    def remembering(self) -> SearchStrategy[Scenario] | None:
        """Draw what makes a plugin decide by what it did before; None: `scenarios` does so already."""
        return None

    def test_set_order_changes_nothing(self) -> None:
        """The order in which sets and hashes are walked changes nothing."""

        def rule(scenario: Scenario) -> None:
            first = self._record(scenario)
            for at, prefix in enumerate(nuisances.PREFIXES):
                with nuisances.scattered(at):
                    record = self._record(nuisances.renamed(scenario, prefix)).replace(prefix, "")
                what = f"with jobs in other places of memory, and {prefix!r} before their ids"
                _compare(first, record, what)

        self.hold(rule)

    def test_hash_seeds_change_nothing(self) -> None:
        """Another process with another PYTHONHASHSEED decides the same."""
        if self.module is not None and not inspect.ismodule(self.module):
            # The rule on sets looks at ids and memory.
            self.skip("another process could not import it")
        plays: list[Scenario] = []
        many = min(profile().in_other_processes, 2 * self.examples)
        effort = hypothesis.settings(self._effort(), max_examples=many)

        def gather(scenario: Scenario) -> None:
            plays.append(scenario)

        effort(hypothesis.given(self.draw())(gather))()
        plays.sort(key=lambda scenario: len(scenario.specs))
        records = [_elsewhere(self, plays, seed) for seed in profile().hash_seeds]
        for scenario, *texts in zip(plays, *records, strict=True):
            if len(set(texts)) > 1:
                found = f"the record depends on the hash seed: {_difference(texts[0], texts[1], texts[-1])}"
                self.fail(found, scenario=scenario)

    def test_the_clock_changes_nothing(self) -> None:
        """The computer's clock changes nothing: `now` is the only time there is."""
        module = self._plugin()
        package = str(getattr(module, "__name__", type(module).__module__)).partition(".")[0]
        package = "" if package in OWN else package

        clocks = [nuisances.Clock(instant, package) for instant in nuisances.CLOCKS]

        def rule(scenario: Scenario) -> None:
            first = self._record(scenario)
            for clock in clocks:
                with clock as read:
                    record = self._record(scenario)
                seen = f"; it read {', '.join(sorted(read))}" if read else ""
                _compare(first, record, f"with the computer's clock at {clock.instant:.0f} s{seen}")

        self.hold(rule)

    def _record(self, scenario: Scenario) -> str:
        """Return the record of a run whose invariants are another rule's business."""
        return self.play(scenario, checked=False).record

    # ------------------------------------------------------------------------------ single calls
    def test_same_arguments_same_answer(self) -> None:
        """Asked twice with the same arguments, a hook gives the same answer, whatever it was asked between."""

        def watch(call: Call) -> None:
            if call.hook not in PURE_HOOKS:
                return
            first, second = plain(call.answer), plain(call.ask())
            if first != second:
                raise call.breach(f"asked twice: first {short(first)}, then {short(second)}")
            between = list(_other_questions(call))
            for changed in between:
                with contextlib.suppress(Exception):  # what it makes of that is another rule's business
                    call.ask(**changed)
            third = plain(call.ask()) if between else first
            if first != third:
                raise call.breach(
                    f"asked again after another question: first {short(first)}, then {short(third)}"
                )

        self.hold(lambda scenario: _played(self, scenario, watch))

    def test_arguments_are_left_alone(self) -> None:
        """A hook changes nothing in what it is given: jobs, sequences, cluster."""

        def watch(call: Call) -> None:
            if call.hook not in PURE_HOOKS:
                return
            before = snapshot(call.arguments)
            call.ask()
            differing = changes(before, snapshot(call.arguments))
            if differing:
                raise call.breach(f"it changed {'; '.join(differing[:3])}")

        self.hold(lambda scenario: _played(self, scenario, watch))

    def every(self, hook: str, check: Check) -> None:
        """Hold a rule about single answers of `hook`; the docstring of the calling test says what it is."""
        if not hasattr(self._plugin(), hook):
            self.skip(f"it does not implement {hook}")

        def watch(call: Call) -> None:
            if call.hook == hook:
                found = check(call)
                if found:
                    raise call.breach(found)

        self.hold(lambda scenario: _played(self, scenario, watch))

    def put_to_the_test(self, hook: str, counts: Callable[[Call], bool], what: str) -> None:
        """See that the random runs are about the plugin at all."""
        seen: list[Call] = []

        def watch(call: Call) -> None:
            if call.hook == hook:
                seen.append(call)

        self.hold(lambda scenario: _played(self, scenario, watch), times=4)
        if not any(map(counts, seen)):
            asked = f"asked {len(seen)} times, it never {what}" if seen else "it was never asked"
            if not profile().insists:
                self.skip(f"{asked} in the few runs of the quick profile")
            advice = "override scenarios() or set config, so that random runs meet its rule"
            self.fail(f"{asked}; {advice}", hook=hook)


def _played(contract: Contract, scenario: Scenario, watch: Callable[[Call], None]) -> None:
    contract.play(scenario, watch)


def _other_questions(call: Call) -> Iterator[dict[str, Any]]:
    """Yield arguments that differ a little: another preemptor, fewer jobs."""
    view = call.arguments.get("view")
    preemptor = call.arguments.get("preemptor")
    if view is not None and preemptor is not None:
        yield from ({"preemptor": job} for job in view.pending if job is not preemptor)
    for name in ("active", "candidates", "jobs", "pending"):
        given = call.arguments.get(name)
        if isinstance(given, Sequence) and given:
            yield {name: tuple(given)[1:]}


def _compare(first: str, second: str, what: str) -> None:
    """See that two records are the same."""
    if first != second:
        raise BreachError(f"{what}, the record differs: {_difference(first, second)}")


def _elsewhere(contract: Contract, plays: Sequence[Scenario], seed: str) -> list[str]:
    """Return the records of `plays` from a process with another hash seed."""
    module = contract.module
    where = module.__name__ if module is not None else ""
    file = str(getattr(module, "__file__", None) or "")
    work = packed((contract.plugin, where, file, dict(contract.companions), list(plays)))
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-m", "makeway_testing.elsewhere"], input=work, capture_output=True, env=env
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    found: list[str] = pickle.loads(done.stdout)
    return found


def _difference(*texts: str) -> str:
    """Show the first line in which two records differ."""
    one, other = texts[0], next((text for text in texts if text != texts[0]), texts[0])
    for mine, its in zip([*one.splitlines(), ""], [*other.splitlines(), ""], strict=False):
        if mine != its:
            return f"\n{mine or 'nothing more'}\n{its or 'nothing more'}"
    return "one goes on longer"
