"""Choose victims (spec slurm-preemption 5.2.3 and 5.2.5).

Candidates that would be killed or requeued are removed in order until the job fits. Then the one that made it fit is
tried first, the others by how many of the chosen nodes they hold, once or twice more; the victims are those removed
in the last round that touch the chosen nodes. Candidates that would be suspended are the gang arbiter's business,
except that preempt/qos gives their preemptors a row of its own.
"""

from __future__ import annotations

import attrs

from makeway.bitmap import NodeBits
from makeway.features import Alternatives
from makeway.model import Candidates, Choice, Job, PreemptMode
from makeway.preemption import PreemptionTable
from makeway_select_cons_tres.assign import Found
from makeway_select_cons_tres.selector import ConsAttempt
from makeway_select_cons_tres.steps import Cores, Extra

_DECISIVE = 99999


@attrs.frozen(eq=False)
class _Success:
    """A round that ended well."""

    found: Found
    at: int
    """Place in the order of who made it fit."""
    missing: frozenset[str]
    """Licences that were short before anybody was removed."""


def search(attempt: ConsAttempt, candidates: Candidates) -> Choice | None:
    """Return placement and victims; None if removing candidates does not help."""
    choices = attempt.selector.alternatives(attempt.job)
    last_only = attempt.view.rule("last_alternative_preempts")
    for number, choice in enumerate(choices):
        may_kill = not last_only or number == len(choices) - 1
        answer = _Search(attempt, candidates, choice, number).run(may_kill=may_kill)
        if answer is not None:
            return answer
    return None


class _Search:
    """The search for one feature alternative."""

    def __init__(
        self, attempt: ConsAttempt, candidates: Candidates, choice: Alternatives, number: int
    ) -> None:
        self._attempt = attempt
        self._candidates = candidates
        self._choice = choice
        self._number = number
        settings = attempt.view.settings(PreemptionTable)
        self._reorders = settings.reorder_count
        self._strict = settings.strict_order
        self._reclaims = settings.reclaim_licenses and attempt.view.rule("reclaim_licenses")
        self._wanted = frozenset(attempt.job.spec.licenses)

    def run(self, *, may_kill: bool) -> Choice | None:
        """Try as things stand, then without candidates."""
        if self._attempt.licence_short() is None:
            found = self._attempt.try_on(self._choice)
            if found is not None:
                return self._answer(self._attempt, found, (), "nobody has to leave")
        elif not self._reclaims:
            return None
        if self._suspends_first():
            return self._into_extra_row()
        return self._rounds() if may_kill else None

    def _answer(
        self, attempt: ConsAttempt, found: Found, victims: tuple[int, ...], method: str
    ) -> Choice:
        return Choice(
            placement=attempt.placement(found, self._number),
            victims=victims,
            method=method,
            considered=len(self._candidates.jobs),
        )

    # --------------------------------------------------------------------------- rounds (5.2.3)
    def _rounds(self) -> Choice | None:
        """Remove, and reorder, until the order is settled."""
        order = list(range(len(self._candidates.jobs)))
        done = 0
        while True:
            trial = self._attempt.fresh()
            success = self._one_round(trial, order)
            if success is None:
                return None
            done += 1
            if done - 1 > self._reorders or len(order) <= done:
                victims = self._victims(order, success)
                method = f"removed in order, {done} rounds"
                return self._answer(trial, success.found, victims, method)
            self._reorder(order, success)
            again = self._attempt.fresh()
            if again.licence_short() is None:
                found = again.try_on(self._choice, within=success.found.nodes)
                if found is not None:
                    return self._answer(again, found, (), "nobody has to leave")

    def _one_round(self, trial: ConsAttempt, order: list[int]) -> _Success | None:
        """Remove in `order` until the job fits; test only when it can have come to fit."""
        jobs, modes = self._candidates.jobs, self._candidates.modes
        missing = frozenset(trial.missing_licences()) if self._wanted else frozenset()
        short, gained = self._shortage(), 0
        for place, at in enumerate(order):
            job, mode = jobs[at], modes[at]
            if mode is not PreemptMode.REQUEUE and mode is not PreemptMode.CANCEL:
                continue
            size = self._overlap(job)
            if not size and not self._holds(job, self._wanted):
                continue
            trial.remove(job, mode)
            gained += size
            if gained < short or (missing and trial.missing_licences()):
                continue
            found = trial.try_on(self._choice)
            if found is not None:
                return _Success(found, place, missing)
            short, gained = trial.short.nodes, 0
        return None

    def _shortage(self) -> int:
        """Return how many nodes more must be usable before a test can succeed."""
        probe = self._attempt.fresh()
        probe.try_on(self._choice)
        return probe.short.nodes

    def _overlap(self, job: Job) -> int:
        """Return how many nodes a candidate holds, all components counted; 0 if none is of interest."""
        parts = (job,) if job.spec.het_id is None else self._attempt.view.components(job)
        if not any(part.nodes & self._attempt.nodes for part in parts):
            return 0
        return sum(part.nodes.bit_count() for part in parts)

    def _holds(self, job: Job, names: frozenset[str]) -> bool:
        allocation = job.allocation
        return allocation is not None and any(name in names for name in allocation.licenses)

    def _chosen_nodes(self, job: Job, nodes: NodeBits) -> int:
        parts = (job,) if job.spec.het_id is None else self._attempt.view.components(job)
        return sum((part.nodes & nodes).bit_count() for part in parts)

    def _reorder(self, order: list[int], success: _Success) -> None:
        """Let the decisive candidate come first (5.2.3 d)."""
        jobs, place = self._candidates.jobs, success.at
        if self._strict:
            order.insert(0, order.pop(place))
            return
        nodes = success.found.nodes
        keys = {
            at: self._chosen_nodes(jobs[at], nodes) if before < place else 0
            for before, at in enumerate(order)
        }
        keys[order[place]] = _DECISIVE
        order.sort(key=lambda at: -keys[at])

    def _victims(self, order: list[int], success: _Success) -> tuple[int, ...]:
        """Return those removed that touch the chosen nodes, or hold a licence that was short (no. 6)."""
        jobs, modes = self._candidates.jobs, self._candidates.modes
        nodes = success.found.nodes
        licences = self._attempt.view.rule("only_short_licences")
        names = success.missing if licences else self._wanted
        if self._attempt.job.spec.licenses_any:
            names = frozenset()
        return tuple(
            at
            for at in order[: success.at + 1]
            if modes[at] in (PreemptMode.REQUEUE, PreemptMode.CANCEL)
            and (self._chosen_nodes(jobs[at], nodes) or self._holds(jobs[at], names))
        )

    # ------------------------------------------------------------------------ extra row (5.2.5)
    def _suspends_first(self) -> bool:
        """Whether preempt/qos suspends for this job: the mode of the first candidate decides."""
        modes = self._candidates.modes
        return (
            self._attempt.selector.mode.qos
            and bool(modes)
            and modes[0] is PreemptMode.SUSPEND
            and not self._attempt.job.held
        )

    def _into_extra_row(self) -> Choice | None:
        """Lay the job over candidates that gang can suspend."""
        extra = Extra()
        if self._attempt.view.rule("qos_suspend_simulated"):
            kept = self._kept()
            if kept is None:
                return None
            extra = Extra(kept=kept)
        real = self._attempt.fresh()
        found = real.try_on(self._choice, extra=extra)
        return self._answer(real, found, (), "extra row") if found is not None else None

    def _kept(self) -> Cores | None:
        """Return the cores of those in the partition that stay once enough candidates are gone; None: never enough."""
        trial = self._attempt.fresh()
        partition = self._attempt.job.partition
        for job, mode in zip(self._candidates.jobs, self._candidates.modes, strict=True):
            if mode is not PreemptMode.SUSPEND or not self._overlap(job):
                continue
            trial.remove(job, mode)
            if trial.try_on(self._choice) is not None:
                trial.books.sync()
                return trial.books.cores_in([trial.books.rows(partition)], trial.nodes)
        return None
