"""Ask what plugins build for `makeway_limits`; every answer is checked, and the plugin is to blame for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import attrs

from makeway.bitmap import NodeBits
from makeway.errors import MakewayError
from makeway.model import Blocked, ClusterView, Job, Limits, NodeSets, Overdue, Plan, Seconds, Window
from makeway.registry.asking import Asker, shown
from makeway.registry.border import Border, Stops, is_json, is_table

HOOK = "makeway_limits"
METHODS = (
    *("validate", "admit", "closed_nodes", "reservations", "node_sets"),
    *("expired", "past_time_limit", "marks", "save", "restore"),
)
"""What limits may say."""
_PROMISES = (
    *("concerns", "in_sets", "by_request", "inadmissible"),
    *("surely_valid", "calm_until", "marked_until"),
)


@attrs.frozen(eq=False)
class Has:
    """The limits of one plugin."""

    plugin: str
    limits: Limits

    def says(self, method: str) -> bool:
        """Whether a method is overridden."""
        return getattr(type(self.limits), method) is not getattr(Limits, method)


class LimitsAsker(Asker):
    """What the limits of a run say about single jobs."""

    _limits: tuple[Has, ...] = ()
    _saying: Mapping[str, Sequence[Has]] = dict.fromkeys(METHODS, ())
    """Method -> those that override it, first to last."""
    _border: Border
    _stops: Stops

    def build_limits(self, view: ClusterView, own: Sequence[Has] = ()) -> None:
        """Let plugins build their limits, before the first job.

        :param own: limits of the engine itself, which come first.
        """
        found = list(own)
        for plugin, limits in self.answers(HOOK, None, view=view):
            if not isinstance(limits, Limits):
                self._blame(HOOK, None, f"returned {shown(limits)}; allowed: Limits, or None")
            for name in _PROMISES:
                promise = getattr(limits, name)
                if promise is not None and not callable(promise):
                    self._blame(HOOK, None, f"{name} is {shown(promise)}; allowed: a function, or None")
            self.keep(limits, HOOK)
            found.append(Has(plugin, limits))
        self._limits = tuple(found)
        self._saying = {name: [each for each in found if each.says(name)] for name in METHODS}

    @property
    def all_limits(self) -> Sequence[Has]:
        """The limits of each plugin, first to last."""
        return self._limits

    def limits_say(self, method: str) -> bool:
        """Whether any plugin's limits have something to say by this method."""
        return bool(self._saying[method])

    def say(self, has: Has, method: str, job: Job | None, *given: Any) -> Any:
        """Ask one plugin's limits; from its answer on it is the one to blame."""
        self._answered[HOOK] = has.plugin
        try:
            answer = getattr(has.limits, method)(*given)
        except MakewayError:
            raise
        except (Exception, SystemExit) as error:
            raise self.blame(HOOK, job, error) from error
        if self.traced:
            self._show_said(has, method, given, answer)
        return answer

    def _show_said(self, has: Has, method: str, given: Sequence[Any], answer: Any) -> None:
        """Log one answer."""
        about = {"job": given[0]} if given and isinstance(given[0], Job) else {}
        self._log(f"{HOOK}.{method}", has.plugin, about, answer)

    def _each(self, method: str, job: Job | None, *given: Any) -> Iterator[Any]:
        """Yield what each plugin's limits say by `method`."""
        for has in self._saying[method]:
            yield self.say(has, method, job, *given)

    def _wrong(self, method: str, job: Job | None, answer: Any, allowed: str) -> NoReturn:
        self._blame(HOOK, job, f"its {method}() returned {shown(answer)}; allowed: {allowed}")

    # --------------------------------------------------------------------------------- answers
    def refusal(self, job: Job, view: ClusterView) -> str:
        """Return why a job is refused at its submission; empty: it is taken."""
        for why in self._each("validate", job, job, view):
            if not isinstance(why, str):
                self._wrong("validate", job, why, "why the job is refused, or an empty text")
            if why:
                found: str = why
                return found
        return ""

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return what keeps a job out; None: nothing does."""
        for has in self._saying["admit"]:
            concerns = has.limits.concerns
            if concerns is not None and not concerns(job):
                continue
            answer = self.say(has, "admit", job, job, view)
            if answer is None:
                continue
            if not isinstance(answer, Blocked):
                self._wrong("admit", job, answer, "Blocked, or None")
            self._border.instant(HOOK, job, answer.ask_again_at)
            return answer
        return None

    @property
    def closes(self) -> bool:
        """Whether any plugin may close nodes to a job that others may use."""
        return self.limits_say("closed_nodes") or self.limits_say("reservations")

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Return the nodes that `job` must leave alone if it is to start now."""
        closed = 0
        for answer in self._each("closed_nodes", job, job, before, view):
            if type(answer) is not int or answer < 0:
                self._wrong("closed_nodes", job, answer, "a bitmap of nodes")
            closed |= answer
        return closed | closed_by(self.reservations(job, view), view.now, length_of(job))

    def reservations(self, job: Job, view: ClusterView) -> list[Window]:
        """Return the times for which nodes are kept from `job`."""
        found: list[Window] = []
        for answer in self._each("reservations", job, job, view):
            fits = isinstance(answer, list | tuple) and all(isinstance(each, Window) for each in answer)
            if not fits:
                self._wrong("reservations", job, answer, "a list of Window")
            found += answer
        return found

    def node_sets(self, job: Job, nodes: NodeBits, view: ClusterView) -> NodeSets:
        """Return the sets of nodes to try one after the other."""
        said = self._each("node_sets", job, job, nodes, view)
        answer = next((each for each in said if each is not None), None)
        if answer is None:
            return NodeSets(sets=(nodes,))
        fits = isinstance(answer, NodeSets) and all(type(each) is int and each >= 0 for each in answer.sets)
        if not fits:
            self._wrong("node_sets", job, answer, "NodeSets of bitmaps of nodes")
        self._border.instant(HOOK, job, answer.ask_again_at)
        return NodeSets(sets=tuple(each & nodes for each in answer.sets), ask_again_at=answer.ask_again_at)

    def expired(self, view: ClusterView) -> tuple[dict[str, str], Seconds | None]:
        """Return which running jobs have to end, with the reason; and when to ask again though no job starts."""
        joined: dict[str, str] = {}
        again: Seconds | None = None
        for answer in self._each("expired", None, view):
            if answer is None:
                continue
            if not isinstance(answer, Overdue) or not is_table(answer.jobs, str):
                self._wrong("expired", None, answer, "Overdue, job id -> reason")
            self._border.instant(HOOK, None, answer.ask_again_at)
            joined = {**answer.jobs, **joined}
            if answer.ask_again_at is not None:
                again = answer.ask_again_at if again is None else min(again, answer.ask_again_at)
        return joined, again

    def past_time_limit(self, job: Job, view: ClusterView) -> Plan | None:
        """Return how a job leaves that has reached its time limit; None: it ends as TIMEOUT."""
        for plan in self._each("past_time_limit", job, job, view):
            if plan is None:
                continue
            if not isinstance(plan, Plan) or plan.job is not job:
                self._wrong("past_time_limit", job, plan, "a Plan for this job, or None")
            if plan.fails:
                self._blame(HOOK, job, "planned what fails; allowed: None, and the job ends")
            self._border.plan(HOOK, plan, None, self._stops)
            found: Plan = plan
            return found
        return None

    def marks(self, view: ClusterView) -> dict[str, frozenset[str]]:
        """Return job id -> its marks from now on."""
        joined: dict[str, frozenset[str]] = {}
        for answer in self._each("marks", None, view):
            if not is_table(answer, frozenset):
                self._wrong("marks", None, answer, "job id -> frozenset of words")
            for job_id in answer:
                if view.job(job_id) is None:
                    self._blame(HOOK, None, f"marked job {job_id}, which is neither pending nor active")
            joined.update(answer)
        return joined

    def save(self, view: ClusterView) -> dict[str, Any]:
        """Return what each plugin remembers, by its name; those that remember nothing are left out."""
        found: dict[str, Any] = {}
        for has in self._saying["save"]:
            answer = self.say(has, "save", None, view)
            if answer is None:
                continue
            if not isinstance(answer, Mapping) or not is_json(answer):
                self._wrong("save", None, answer, "a mapping of what JSON has, or None")
            found[has.plugin] = dict(answer)
        return found

    def restore(self, memory: Mapping[str, Any], view: ClusterView) -> None:
        """Give each plugin what one of its name saved; nothing is said to the others."""
        for has in self._limits:
            if has.plugin in memory:
                has.limits.restore(memory[has.plugin], view)

    # -------------------------------------------------------------------------------- promises
    @property
    def asked_at_submission(self) -> bool:
        """Whether any limit is to be looked at as soon as a job is submitted."""
        return any(each.limits.asked_at_submission for each in self._limits)

    def limited(self) -> Callable[[Job], bool]:
        """Return the test of which jobs limits are about."""
        return _any_of([each.limits.concerns for each in self._saying["admit"]])

    def in_sets(self) -> Callable[[Job], bool] | None:
        """Return the test of which jobs are placed in sets of nodes; None: none is."""
        found = [each.limits.in_sets for each in self._saying["node_sets"]]
        return _any_of(found) if found else None

    def surely_valid(self) -> Callable[[Job], bool] | None:
        """Return what says of a job that is submitted whether it is surely taken; None: that is not known."""
        known: list[Callable[[Job], bool]] = []
        for has in self._saying["validate"]:
            if has.limits.surely_valid is None:
                return None
            known.append(self.truth_of(has.plugin, HOOK, has.limits.surely_valid))
        return known[0] if len(known) == 1 else lambda job: all(each(job) for each in known)

    def calm_until(self) -> Callable[[], Seconds] | None:
        """Return what says up to when no job that runs has to end; None: that is not known."""
        return self._until("expired", "calm_until")

    def marked_until(self) -> Callable[[], Seconds] | None:
        """Return what says up to when no job gets other marks; None: that is not known."""
        return self._until("marks", "marked_until")

    def _until(self, method: str, promise: str) -> Callable[[], Seconds] | None:
        known: list[Callable[..., Seconds]] = []
        for has in self._saying[method]:
            found = getattr(has.limits, promise)
            if found is None:
                return None
            known.append(self.instant_of(has.plugin, HOOK, promise, found))
        return known[0] if len(known) == 1 else lambda: min([each() for each in known], default=math.inf)


def _any_of(tests: Sequence[Callable[[Job], bool] | None]) -> Callable[[Job], bool]:
    """Return whether any of these tests holds of a job; None among them holds of each."""
    wanted = [test for test in tests if test is not None]
    if len(wanted) < len(tests):
        return lambda _: True
    return wanted[0] if len(wanted) == 1 else lambda job: any(test(job) for test in wanted)


def closed_by(windows: Sequence[Window], start: Seconds, length: Seconds) -> NodeBits:
    """Return the nodes that windows close to a job which starts at `start` and may run for `length` seconds."""
    closed = 0
    for window in windows:
        if window.closes(start, length):
            closed |= window.nodes
    return closed


YEAR: Seconds = 365 * 86400.0
"""Limit assumed for jobs without one."""


def length_of(job: Job) -> Seconds:
    """Return how long a job may run, as windows see it."""
    return job.time_limit if job.time_limit is not None else YEAR
