"""Choose victims (slurm-preemption 5.2.3 and 5.2.5).

Candidates that would be killed or requeued are removed in order until the job fits; those that would leave with a
checkpoint, which Slurm no longer has, count as requeued. Then the one that made it fit is tried first, the others by
how many of the chosen nodes they hold, once or twice more; the victims are those removed in the last round that touch
the chosen nodes. Candidates that would be suspended are the gang arbiter's business, except that preempt/qos gives
their preemptors a row of its own.

A round does not test after every candidate: the last test says on how many nodes more something has to be
given back, and no test before that can succeed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from makeway import bitmap
from makeway.features import Alternatives
from makeway.model import Candidates, Choice, Job, PreemptMode, Sharing
from makeway.obstacle import counted
from makeway.preemption import PreemptionTable
from makeway_select_cons_tres.assign import Found
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.lifting import Lifting, known
from makeway_select_cons_tres.steps import Cores, Extra, cores_of, joined

_DECISIVE = 99999


@attrs.frozen(eq=False)
class _Success:
    """A round that ended well."""

    found: Found
    at: int
    """Place in the order of the one that made it fit."""


def search(attempt: ConsAttempt, candidates: Candidates) -> Choice | None:
    """Return placement and victims; None if removing candidates does not help."""
    choices = attempt.kind.choices
    last_only = attempt.view.rule("last_alternative_preempts")
    for number, choice in enumerate(choices):
        may_kill = not last_only or number == len(choices) - 1
        answer = _Search(attempt, candidates, choice, number).run(may_kill=may_kill)
        if answer is not None:
            return answer
    return None


def why_none(attempt: ConsAttempt, candidates: Candidates) -> str:
    """Say what setting keeps jobs from being suspended where a search chose no job; empty: none does.

    The rule is slurm-preemption 5.2.5.
    """
    modes, partition = candidates.modes, attempt.job.partition
    shares = partition.oversubscribe
    if (
        not (attempt.known.mode.qos and modes and modes[0] is PreemptMode.SUSPEND)
        or shares.sharing is Sharing.FORCE
    ):
        return ""
    return (
        f"OverSubscribe={shares} of partition {partition.name}: "
        "by QOS jobs are suspended only where it is FORCE, as FORCE:1"
    )


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
        self._limit = known(attempt.view.kept_out(attempt.job))
        """What keeps the job out besides room (a licence that is short); None: nothing does."""
        self._helpers = self._who_helps()
        """Candidates that are worth removing wherever they are."""

    def run(self, *, may_kill: bool) -> Choice | None:
        """Try as things stand, then without candidates."""
        found = self._attempt.try_on(self._choice)
        if found is not None and self._limit is None:
            return self._answer(self._attempt, found, (), "no job has to leave")
        if self._suspends_first():
            return self._into_extra_row()
        if self._limit is not None and self._limit.resource == "cpus" and self._attempt.known.mode.gang:
            withheld = self._idle_beyond(self._limit.available)
            over = self._attempt.fresh().try_on(self._choice, withheld=withheld) if withheld else found
            if over is not None:
                return self._answer(
                    self._attempt, over, (), "laid over others, beside idle cores it may not have"
                )
        return self._rounds() if may_kill else None

    def _who_helps(self) -> frozenset[str]:
        """Return the jobs that give back what a limit says is short.

        Slurm used to take all that hold any licence that the job wants, short or not (slurm-preemption 1.11).
        """
        helpers = frozenset(self._limit.frees if self._limit is not None else ())
        wanted = self._attempt.job.spec.licenses
        if not wanted or self._attempt.view.rule("only_short_licences"):
            return helpers
        holders = self._attempt.view.license_holders
        return helpers.union(*(holders.get(name, ()) for name in wanted))

    def _idle_beyond(self, cpus: float) -> Cores:
        """Return the idle cores but for so many CPUs: a limit on CPUs lets the job have no more of them."""
        layout, busy = self._attempt.known.layout, self._attempt.books.busy
        found: Cores = {}
        for index in bitmap.indices(self._attempt.nodes):
            threads, free = layout.shape(index).threads, layout.full[index] & ~busy[index]
            few = min(max(0, int(cpus)) // threads, free.bit_count())
            cpus -= few * threads
            if free := free & ~bitmap.first_n(free, few):
                found[index] = free
        return found

    def _answer(self, attempt: ConsAttempt, found: Found, victims: tuple[int, ...], method: str) -> Choice:
        return Choice(
            placement=attempt.placement(found, self._number),
            victims=victims,
            method=method,
            considered=len(self._candidates.jobs),
        )

    # ---------------------------------------------------------- rounds (slurm-preemption 5.2.3)
    def _rounds(self) -> Choice | None:
        """Remove, and reorder, until the order is settled."""
        order: Sequence[int] = range(len(self._candidates.jobs))
        sizes = self._sizes()
        short = self._attempt.short.nodes
        done = 0
        while True:
            trial = self._attempt.fresh()
            success = self._one_round(trial, order, sizes, short)
            if success is None:
                return None
            done += 1
            if done - 1 > self._reorders or len(order) <= done:
                victims = self._victims(order, success)
                if not self._lifts(victims):
                    return None
                method = f"removed in order, {counted(done, 'round')}"
                return self._answer(trial, success.found, victims, method)
            order = self._reordered(order, success)
            again = self._attempt.fresh()
            if self._limit is None:
                found = again.try_on(self._choice, within=success.found.nodes)
                if found is not None:
                    return self._answer(again, found, (), "no job has to leave")

    def _sizes(self) -> list[int]:
        """Return on how many nodes each candidate may give something back; -1: it cannot be removed.

        Only those are removed that would give back all they hold, and overlap the nodes or help against a limit.
        """
        nodes = self._attempt.nodes
        modes, jobs = self._candidates.modes, self._candidates.jobs
        if modes and modes.count(modes[0]) == len(modes):
            kills = [modes[0].frees_all] * len(modes)
        else:
            kills = [mode.frees_all for mode in modes]
        if self._attempt.view.heterogeneous:
            return [self._size(job) if kill else -1 for job, kill in zip(jobs, kills, strict=True)]
        inside = {
            partition.name: not partition.nodes & ~nodes
            for partition in self._attempt.view.cluster.partitions
        }
        helpers = self._helpers
        if all(inside.values()) and all(kills):
            return [
                len(held.node_indices)
                if (held := job.allocation) is not None
                else 0
                if job.id in helpers
                else -1
                for job in jobs
            ]
        return [
            -1
            if not kill
            else len(held.node_indices)
            if (held := job.allocation) is not None and (inside[job.partition.name] or held.nodes & nodes)
            else (0 if job.id in helpers else -1)
            for job, kill in zip(jobs, kills, strict=True)
        ]

    def _size(self, job: Job) -> int:
        parts = self._attempt.view.components(job)
        if any(part.nodes & self._attempt.nodes for part in parts):
            return sum(part.nodes.bit_count() for part in parts)
        return 0 if job.id in self._helpers else -1

    def _one_round(
        self, trial: ConsAttempt, order: Sequence[int], sizes: Sequence[int], short: int
    ) -> _Success | None:
        """Remove in `order` until the job fits.

        :param short: on how many nodes something has to be given back before a test can succeed.
        """
        jobs = self._candidates.jobs
        lifting = Lifting(self._attempt.job, self._attempt.view, self._limit) if self._limit else None
        waiting: list[Job] = []
        gained = 0
        for place, at in enumerate(order):
            size = sizes[at]
            if size < 0:
                continue
            waiting.append(jobs[at])
            if lifting is not None:
                lifting.remove(jobs[at], self._candidates.modes[at])
            gained += size
            if gained < short:
                continue
            trial.remove_all(waiting)
            waiting = []
            if lifting is not None and not lifting.lifted():
                continue
            found = trial.try_on(self._choice)
            if found is not None:
                return _Success(found, place)
            short, gained = trial.short.nodes, 0
        return None

    def _overlaps(self, found: Found, some: Iterable[int]) -> list[int]:
        """Return how many of the chosen nodes each of `some` candidates holds; 0 for the others."""
        jobs = self._candidates.jobs
        overlaps = [0] * len(jobs)
        if self._attempt.view.heterogeneous:
            components, nodes = self._attempt.view.components, found.nodes
            for at in some:
                overlaps[at] = sum((part.nodes & nodes).bit_count() for part in components(jobs[at]))
            return overlaps
        chosen = bytearray(self._attempt.known.layout.size)
        for index in found.indices:
            chosen[index] = 1
        for at in some:
            allocation = jobs[at].allocation
            if allocation is not None:
                held = allocation.node_indices
                overlaps[at] = chosen[held[0]] if len(held) == 1 else sum([chosen[index] for index in held])
        return overlaps

    def _reordered(self, order: Sequence[int], success: _Success) -> list[int]:
        """Return the order with the decisive candidate first (slurm-preemption 5.2.3)."""
        place = success.at
        if self._strict:
            return [order[place], *order[:place], *order[place + 1 :]]
        keys = self._overlaps(success.found, order[:place])
        keys[order[place]] = _DECISIVE
        return sorted(order, key=keys.__getitem__, reverse=True)

    def _victims(self, order: Sequence[int], success: _Success) -> tuple[int, ...]:
        """Return those removed that touch the chosen nodes, or hold a licence that was short (no. 6)."""
        jobs, modes = self._candidates.jobs, self._candidates.modes
        taken = order[: success.at + 1]
        overlaps = self._overlaps(success.found, taken)
        helpers = frozenset() if self._attempt.job.spec.licenses_any else self._helpers
        return tuple(
            [
                at
                for at in taken
                if modes[at].frees_all and (overlaps[at] or (helpers and jobs[at].id in helpers))
            ]
        )

    def _lifts(self, victims: Sequence[int]) -> bool:
        """Whether the victims leave no limit in the way; jobs removed on the way, but spared, do not count."""
        if self._limit is None:
            return True
        jobs, modes = self._candidates.jobs, self._candidates.modes
        without = [(jobs[at], modes[at]) for at in victims]
        left = self._attempt.view.kept_out(self._attempt.job, without)
        return left is None or not left.frees

    # ------------------------------------------------------- extra row (slurm-preemption 5.2.5)
    def _suspends_first(self) -> bool:
        """Whether preempt/qos suspends for this job: the mode of the first candidate decides."""
        modes = self._candidates.modes
        return (
            self._attempt.known.mode.qos
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
        """Return the cores of the partition held only by those that stay once enough candidates are gone.

        :returns: None: there are never enough.
        """
        trial = self._attempt.fresh()
        layout = self._attempt.known.layout
        given: Cores = {}
        for job, mode in zip(self._candidates.jobs, self._candidates.modes, strict=True):
            if mode is not PreemptMode.SUSPEND or not job.nodes & self._attempt.nodes:
                continue
            trial.remove(job, mode)
            given = joined(given, cores_of(job, layout, trial.nodes))
            if trial.try_on(self._choice) is not None:
                rows = trial.books.rows(self._attempt.job.partition)
                held = trial.books.cores_in([rows], trial.nodes)
                return {index: cores & ~given.get(index, 0) for index, cores in held.items()}
        return None
