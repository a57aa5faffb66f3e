"""Place one job, as if others were gone (slurm-gang-and-select 4.3, slurm-preemption 5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from makeway import licences
from makeway.bitmap import NodeBits
from makeway.features import Alternatives
from makeway.model import (
    NOTHING,
    AllocationDraft,
    Blocked,
    ClusterView,
    Cover,
    Job,
    JobState,
    Placement,
    PreemptMode,
    Sharing,
    allotted,
)
from makeway.obstacle import counted
from makeway_select_cons_tres.assign import Found
from makeway_select_cons_tres.books import Books, Leaving
from makeway_select_cons_tres.known import Known, gone_with, leaving
from makeway_select_cons_tres.one_node import first_that_fits, fitting_in, on_node
from makeway_select_cons_tres.request import AVAILABLE, MARKS, ONE_ROW
from makeway_select_cons_tres.steps import IDLE, Cores, CoreTest, Extra, Shortage

_NOTHING = Shortage()
_ONE_NODE = Shortage(1)


class ConsAttempt:
    """One job against the books. See `makeway.model.Attempt`."""

    def __init__(
        self,
        known: Known,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        *,
        planning: bool = False,
    ) -> None:
        self.known = known
        self.job = job
        self.nodes = nodes
        self.view = view
        self.kind = known.kind(job)
        self.short = _NOTHING
        """What was missing in the last try."""
        self._books = known.books
        self._is_own = False
        """Whether nothing else looks at these books."""
        self._leaving: list[Leaving] = []
        """Which jobs the books are still to be without."""
        self._removed = False
        self._planning = planning
        self.wants_idle = not (self.kind.request.shares or known.mode.preempts or planning)
        """Whether nodes on which a job runs are out of the question."""
        self._exempt: Sequence[Job] | None = None if known.guards_overlay else ()

    # ---------------------------------------------------------------------------- protocol
    def fresh(self) -> ConsAttempt:
        """Return an attempt for the same job with nothing removed."""
        twin = ConsAttempt(self.known, self.job, self.nodes, self.view, planning=self._planning)
        twin.wants_idle, twin._exempt = self.wants_idle, self._exempt
        return twin

    @property
    def offers_to_share(self) -> bool:
        """Whether the user, not the partition, lets others on the job's cores."""
        request = self.kind.request
        return request.mark == AVAILABLE and request.partition.oversubscribe.sharing is not Sharing.FORCE

    def alone(self) -> ConsAttempt:
        """Return a fresh attempt for the same job as if it did not offer to share."""
        twin = self.fresh()
        twin.kind = attrs.evolve(self.kind, request=attrs.evolve(self.kind.request, mark=ONE_ROW))
        return twin

    @property
    def books(self) -> Books:
        """The books without the jobs removed; not to be changed."""
        if self._leaving:
            self._books, self._leaving = self.known.without(self._leaving), []
        return self._books

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Continue as if a job and its other components were gone: all that they hold, or only the cores."""
        if mode is not PreemptMode.OFF:
            self._take_out(leaving(gone_with([(job, mode)], self.view)))

    def remove_all(self, jobs: Sequence[Job]) -> None:
        """Continue as if jobs and their other components were gone, with all that they hold."""
        if self.view.heterogeneous:
            jobs = [part for job in jobs for part in self.view.components(job) if part.nodes]
        self.remove_these(jobs)

    def remove_these(self, jobs: Sequence[Job]) -> None:
        """Continue as if jobs were gone, with all that they hold; other components stay."""
        self._take_out([(job, True) for job in jobs])

    def stand_on(self, books: Books) -> None:
        """Continue on books from which others have removed jobs; they are not changed."""
        self._books, self._is_own, self._leaving, self._removed = books, False, [], True

    def _take_out(self, others: Sequence[Leaving]) -> None:
        """Take jobs off the books: at once where they were looked at without others, else when they are looked at."""
        if self._leaving or not self._removed:
            self._leaving += others
        else:
            if not self._is_own:
                self._books, self._is_own = self._books.copy(), True
            self._books.take_out_each(others)
        self._removed = True

    def probe(self) -> Placement | Blocked:
        """Place the job as things stand, or as they would be without those removed."""
        plain = not self._removed and not (self.exempt if self._exempt is None else self._exempt)
        if plain:
            known = self.known.failure(self.kind, self.nodes)
            if known is not None:
                self.short = known
                return self._blocked()
            if self.kind.cpus_on_one_node is not None and not self.wants_idle:
                found = self._on_one_node(self.kind.choices[0].among(self.nodes))
                if found is not None:
                    return self.placement(found, 0)
                self.known.remember_failure(self.kind, self.nodes, self.short)
                return self._blocked()
        for number, choice in enumerate(self.kind.choices):
            found = self.try_on(choice)
            if found is not None:
                return self.placement(found, number)
        if plain:
            self.known.remember_failure(self.kind, self.nodes, self.short)
        return self._blocked()

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Describe the problem as "free so many nodes": for whole, like nodes without further wishes."""
        kind, books, view = self.kind, self.known.books, self.view
        if not self._is_about_nodes():
            return None
        books.sync()
        able = kind.able & self.nodes
        used = books.busy_nodes | books.marked_nodes | books.charged_nodes
        holders: dict[int, list[int]] = {}
        for at, (other, mode) in enumerate(zip(jobs, modes, strict=True)):
            if mode.frees_all and other.allocation is not None and other.spec.het_id is None:
                for index in other.allocation.node_indices:
                    holders.setdefault(index, []).append(at)
        each = view.cluster.nodes[0].cpus if view.cluster.nodes else 1
        return Cover(
            wanted=max(kind.request.min_nodes, -(-kind.request.min_cpus // each)),
            free=(able & ~used).bit_count(),
            blockers={
                index: tuple(at)
                for index, at in sorted(holders.items())
                if able & used & (1 << index) and len(view.jobs_on(index)) == len(at)
            },
        )

    def _is_about_nodes(self) -> bool:
        """Whether the job wants so many whole nodes, and any will do."""
        request, spec, known = self.kind.request, self.job.spec, self.known
        return (
            request.whole
            and request.mark == ONE_ROW
            and not known.mode.gang
            and known.layout.alike
            and not (request.contiguous or request.required)
            and not (request.gres or request.gres_total or spec.features or spec.licenses)
        )

    # ------------------------------------------------------------------------------ pieces
    @property
    def exempt(self) -> Sequence[Job]:
        """Running jobs whose cores must not be overlaid."""
        if self._exempt is None:
            self._exempt = self.known.guarded_jobs(self.job, self.view)
        return self._exempt

    def try_on(
        self,
        choice: Alternatives,
        *,
        within: NodeBits | None = None,
        extra: Extra | None = None,
        withheld: Cores | None = None,
    ) -> Found | None:
        """Place the job on the nodes of one feature alternative.

        :param within: nodes to keep to; None: all of the attempt's.
        :param withheld: idle cores that it may not have, where others can be laid over.
        """
        nodes = self.nodes if within is None else self.nodes & within
        if self.wants_idle:
            # Fully idle nodes (4.1.4): those on which no job runs, whatever may be stopped there.
            self.books.sync()
            nodes &= ~(self.books.busy_nodes & self._running())
        if self.kind.cpus_on_one_node is not None:
            among = choice.among(nodes)
            return self._on_one_node_without(among) if self._removed else self._on_one_node(among)
        test = CoreTest(
            self.kind,
            self.books,
            nodes,
            self.known.mode,
            choice,
            exempt=self.exempt,
            extra=extra,
            withheld=withheld,
            planning=self._planning,
        )
        found = test.run()
        if test.short is not None:
            self.short = test.short
        return found

    def _on_one_node(self, nodes: NodeBits) -> Found | None:
        """Place a job of one node as things stand."""
        books = self.books
        books.sync()
        wish = self.kind.screen_wish
        if wish is not None:
            index = self.known.idle.first(wish, nodes, books.reserved_nodes)
            if index >= 0:
                return on_node(self.kind, index, books)
        else:
            nodes &= self.known.fitting.nodes(self.kind) & ~books.reserved_nodes
            if nodes:
                return first_that_fits(self.kind, nodes, books)
        self.short = _ONE_NODE
        return None

    def _on_one_node_without(self, nodes: NodeBits) -> Found | None:
        """Place a job of one node as things would be without those removed."""
        kind, books = self.kind, self.books
        books.sync()
        fitting = fitting_in(kind, nodes, books)
        found = first_that_fits(kind, fitting, books) if fitting else None
        if found is None:
            self.short = Shortage(1, "memory", fitting.bit_count()) if fitting else _ONE_NODE
        return found

    def _running(self) -> NodeBits:
        """Return the nodes on which a job runs."""
        found: NodeBits = 0
        for job in self.view.active:
            if job.state is JobState.RUNNING:
                found |= job.nodes
        return found

    def placement(self, found: Found, alternative: int) -> Placement:
        """Return what was found in the contract's words."""
        request, spec = self.kind.request, self.job.spec
        held = AllocationDraft(  # in the order of its fields
            found.nodes,
            found.indices,
            found.cpus,
            found.cores,
            found.memory,
            found.gres,
            found.devices,
            licences.taken_by(self.job, self.view.licenses_free) if spec.licenses else NOTHING,
            request.shares,
            MARKS[request.mark, request.sharing],
        )
        return Placement(
            allocation=allotted(held),
            overlays=found.why != IDLE and self._overlays(found),
            why=found.why,
            alternative=alternative,
        )

    def _overlays(self, found: Found) -> bool:
        """Whether any of the cores is in use by a job that is still there."""
        busy, full, cores = self.books.busy, self.known.layout.full, found.cores
        return any(
            busy[index] & (full[index] if cores is None else cores[at])
            for at, index in enumerate(found.indices)
        )

    def _blocked(self) -> Blocked:
        if not self._removed:
            impossible = self.known.possible(self.job, self.view)
            if impossible is not None:
                return impossible
        wanted, short = self.kind.request.min_nodes, self.short
        return Blocked(
            reason="Resources",
            resource=short.resource,
            wanted=wanted,
            available=short.available,
            detail=f"{counted(wanted, 'node')} wanted, {short.available} usable",
        )
