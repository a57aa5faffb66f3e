"""What all contracts share: how a plugin is named, how random runs are drawn, and the rules of every decision."""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
import subprocess
import sys
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.strategies import SearchStrategy

from makeway import registry
from makeway.config import Config
from makeway.engine.engine import Engine
from makeway.errors import ConfigError, InvariantError, MakewayError, PluginError, PolicyError, RunnerError
from makeway.model import Job
from makeway.record import Preemption
from makeway_testing import builders, nuisances
from makeway_testing.elsewhere import packed
from makeway_testing.failures import BreachError, Broken, ContractError, source_of
from makeway_testing.invariants import InvariantChecker
from makeway_testing.patience import MOST_STEPS, Patience, endless
from makeway_testing.profile import profile
from makeway_testing.relay import relay
from makeway_testing.scenario import TableRun
from makeway_testing.shrinking import smallest
from makeway_testing.strategies import Scenario
from makeway_testing.watching import Call, changes, plain, short, snapshot, watched

Check = Callable[[Call], str | None]
"""Looks at a call and its answer; returns what is wrong with it, or nothing."""

PURE_HOOKS = (
    "makeway_queue_order",
    "makeway_admit",
    "makeway_closed_nodes",
    "makeway_windows",
    "makeway_node_sets",
    "makeway_overdue",
    "makeway_marks",
    "makeway_preempt_candidates",
    "makeway_preempt_mode",
    "makeway_protect",
    "makeway_search",
    "makeway_preempt_action",
    "makeway_over_limit",
    "makeway_manual",
)
"""Hooks that give the same answer to the same arguments, whenever they are asked."""
EXAMPLES = "MAKEWAY_EXAMPLES"
"""Environment variable: how many random runs each rule is held against."""


class Contract:
    """Base of all contracts; see `makeway_testing.contracts`.

    Subclass one of the contracts below, set ``__test__ = True`` and `plugin`, and pytest collects its rules.
    """

    __test__ = False
    plugin: ClassVar[str] = ""
    """Name of the entry point: ``preempt/youngest``."""
    module: ClassVar[Any] = None
    """The plugin itself, if it is not installed; None: it is found by its entry point."""
    settings: ClassVar[Mapping[str, Any]] = {}
    """Keys of ``[policy.settings."<plugin>"]``."""
    config: ClassVar[Mapping[str, Any]] = {}
    """What else the configuration says, flat, as for `makeway_testing.config`; it wins over what is drawn."""
    companions: ClassVar[Mapping[str, Any]] = {}
    """Further plugins by name that need no installation."""
    examples: ClassVar[int] = 25
    """How many random runs each rule is held against; ``MAKEWAY_EXAMPLES`` in the environment wins."""
    trials: ClassVar[int] = 400
    """How many smaller scenarios are tried once a rule is found broken."""
    found: ClassVar[Sequence[Scenario]] = ()
    """Scenarios that are played first for every rule: what was found once is kept here (`Scenario.of`)."""
    hook: ClassVar[str] = ""
    """The hook that makes a plugin one of this kind."""

    # --------------------------------------------------------------------------- for subclasses
    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw what the rules are held against; override it where a policy looks at something else."""
        raise NotImplementedError

    def key(self) -> str:
        """Return the key of ``[policy]`` that names the plugin."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------- every kind
    def test_it_can_be_selected(self) -> None:
        """The plugin is found by its name, its hooks are spelled as in the contract, and its settings fit."""
        plugin = self._plugin()
        if not hasattr(getattr(plugin, self.hook, None), "makeway_impl"):
            self.fail(f"it does not implement {self.hook}, or lacks @hookimpl there", hook=self.hook)
        try:
            registry.Policies(self.configured(), {**self.companions, self.plugin: plugin})
        except MakewayError as error:
            self.fail(str(error))

    def configured(self) -> Config:
        """Return a configuration with the plugin in it, and nothing else that need be said."""
        return builders.config(None, self._wired({}))

    # ---------------------------------------------------------------------------------- playing
    def play(
        self,
        scenario: Scenario,
        watch: Callable[[Call], None] | None = None,
        replace: Callable[[str, Any], Any] | None = None,
        checker: InvariantChecker | None = None,
        *,
        checked: bool = True,
    ) -> TableRun:
        """Replay `scenario` with the plugin under test.

        :param checked: False: without the invariants.
        :raises MakewayError: whatever comes of it.
        """
        plugin = self._plugin()
        if watch is not None or replace is not None:
            plugin = watched(plugin, watch or _look_away, replace)
        return scenario.replay(
            plugins={**self.companions, self.plugin: plugin},
            checker=checker or (self.checker(()) if checked else Patience()),
        )

    def checker(self, calls: Sequence[Call]) -> InvariantChecker:
        """Return what checks the invariants of one run; `calls` grows with it."""
        del calls
        return PatientChecker(allowed=anybody)

    def draw(self) -> SearchStrategy[Scenario]:
        """Return `scenarios`, with the plugin, its settings and `config` in each."""
        return self.scenarios().map(self._with_plugin)

    def _with_plugin(self, scenario: Scenario) -> Scenario:
        if isinstance(scenario.settings, Config):
            return scenario
        return scenario.with_settings(**self._wired(scenario.settings))

    def _wired(self, given: Mapping[str, Any]) -> dict[str, Any]:
        key = self.key()
        many = key in ("protect", "plugins")
        found: dict[str, Any] = {**self.config, key: (self.plugin,) if many else self.plugin}
        if self.settings:
            both = {**given.get("settings", {}), **self.config.get("settings", {})}
            found["settings"] = {**both, self.plugin: dict(self.settings)}
        return found

    def _plugin(self) -> Any:
        if not self.plugin:
            raise TypeError(f"{type(self).__name__}: set `plugin` to the name of the entry point")
        if self.module is not None:
            return self.module
        try:
            return registry.load(self.plugin)
        except PluginError as error:
            self.fail(str(error))

    # ------------------------------------------------------------------------------- holding rules
    def hold(
        self,
        rule: Callable[[Scenario], None],
        drawn: SearchStrategy[Scenario] | None = None,
        *,
        times: int = 1,
    ) -> None:
        """Hold `rule` against random scenarios; the docstring of the test that calls says what the rule is.

        :param rule: raises `BreachError` if a scenario shows that it is broken; other errors of a run are
            other rules' business.
        :param drawn: the scenarios, the plugin in each; None: those of `draw`.
        :param times: `examples` are drawn so many times over.
        :raises ContractError: with the smallest scenario that was found.
        """
        shown: list[tuple[Scenario, BreachError]] = []

        def breach(scenario: Scenario) -> BreachError | None:
            try:
                rule(scenario)
            except BreachError as error:
                return error
            except MakewayError:
                return None
            return None

        def attempt(scenario: Scenario) -> None:
            error = breach(scenario)
            if error is not None:
                shown.append((scenario, error))
                raise error

        def shows(scenario: Scenario) -> bool:
            try:
                error = breach(scenario)
            except Exception:  # taken apart so far that it is no scenario any more
                return False
            if error is not None:
                shown.append((scenario, error))
            return error is not None

        try:
            for scenario in self.found:
                attempt(self._with_plugin(scenario))
            self._effort(times)(hypothesis.given(self.draw() if drawn is None else drawn)(attempt))()
        except (BreachError, hypothesis.errors.HypothesisException):
            if not shown:
                raise
        if shown:
            smallest(shown[0][0], shows, self.trials)
            scenario, error = shown[-1]
            self.fail(error, scenario=scenario)

    def _effort(self, times: int = 1) -> hypothesis.settings:
        asked = profile()
        most = self.examples if asked.examples is None else min(self.examples, asked.examples)
        count = int(os.environ.get(EXAMPLES) or most)
        return hypothesis.settings(
            max_examples=count if times == 1 else times * max(count, asked.least),
            derandomize=EXAMPLES not in os.environ,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )

    def skip(self, why: str) -> NoReturn:
        """Leave out a rule that the plugin has not promised to keep.

        :raises unittest.SkipTest: always.
        """
        raise unittest.SkipTest(why)

    def fail(self, found: str | BreachError, *, hook: str = "", scenario: Scenario | None = None) -> NoReturn:
        """Fail the test that is running; the first paragraph of its docstring is the rule.

        :raises ContractError: always.
        """
        error = found if isinstance(found, BreachError) else BreachError(found, hook=hook)
        broken = Broken(
            contract=_contract_of(type(self)),
            rule=_rule_of(self, _test_that_calls()),
            plugin=self.plugin,
            found=error.found,
            hook=error.hook,
            job=error.job,
            at=error.at,
            scenario="" if scenario is None else source_of(scenario),
        )
        raise ContractError(broken) from None


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

    def test_another_engine_goes_on_alike(self) -> None:
        """An engine that adopts the state of a run, after any of its steps, does what the one before would have done.

        A plugin that remembers more than jobs and settings show has to hand it over: `makeway_hand_over`,
        `makeway.model.AdoptingSelector`, `makeway.model.AdoptingGang`.
        """

        def rule(scenario: Scenario) -> None:
            try:
                relay(scenario, {**self.companions, self.plugin: self._plugin()})
            except (InvariantError, ConfigError) as error:
                raise BreachError(str(error)) from None

        self.hold(rule)

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
        effort = hypothesis.settings(self._effort(), max_examples=profile().in_other_processes)

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
        package = "" if package == "makeway" else package

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


def _look_away(call: Call) -> None:
    del call


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


def anybody(engine: Engine, entry: Preemption, victim: Job) -> str:
    """Allow every preemption; who may go is what the contract for preempt plugins is about."""
    del engine, entry, victim
    return ""


def _compare(first: str, second: str, what: str) -> None:
    """See that two records are the same."""
    if first != second:
        raise BreachError(f"{what}, the record differs: {_difference(first, second)}")


class PatientChecker(InvariantChecker):
    """Checks the invariants, and ends a run that would never end."""

    def __call__(self, engine: Engine) -> None:
        """Check after a step."""
        super().__call__(engine)
        if self.steps > MOST_STEPS:
            raise endless(engine)


# ------------------------------------------------------------------------------- other processes
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


# --------------------------------------------------------------------------------------- names
def _contract_of(cls: type[Any]) -> str:
    """Return the name of the contract that a test class subclasses."""
    return next(base.__name__ for base in cls.__mro__ if base.__module__.startswith(__package__ or "?"))


def _rule_of(contract: Contract, test: str) -> str:
    text = inspect.getdoc(getattr(contract, test, None)) or test
    return " ".join(text.partition("\n\n")[0].split()).removesuffix(".")


def _test_that_calls() -> str:
    names = (frame.function for frame in inspect.stack(context=0))
    return next((name for name in names if name.startswith("test_")), "")


__all__ = ["EXAMPLES", "PURE_HOOKS", "Check", "Contract", "DecisionContract"]
