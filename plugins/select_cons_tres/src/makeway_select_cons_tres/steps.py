"""Try to place a job on one hypothetical state of the cores: the tests 0 to 4.

slurm-gang-and-select 4.3.2 to 4.3.5. Test 0, "would it fit if every core were free", only saves work:
what fails it fails the others too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.features import Alternatives
from makeway.model import Job, Partition, PreemptMode
from makeway_select_cons_tres.assign import Found, Ground, assign, beside_gres
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.choose import Pool, Taken, choose
from makeway_select_cons_tres.counted import free_gres
from makeway_select_cons_tres.gangs import choose_gang, served_cpus, supply_of
from makeway_select_cons_tres.kinds import Kind
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.request import AVAILABLE, ONE_ROW, RESERVED, Request, rows_of
from makeway_select_cons_tres.rows import Rows

Bars = frozenset[int] | None
"""Partitions, by index; None: all, and jobs that are in no row."""
Cores = dict[int, CoreBits]
"""Cores that are not to be used, by node index; nodes without any are left out."""


@attrs.frozen(kw_only=True)
class Mode:
    """What governs a run: the plugins beside this one, and the release."""

    gang: bool
    preempts: bool
    """Whether there is a preempt plugin."""
    partition_prio: bool
    qos: bool
    first_fit: bool
    """One-node jobs take the first node that fits."""
    trims: bool
    """Jobs with tasks per node get consecutive cores."""
    only_sharing_jobs_block: bool
    sharers_block_beside_rows: bool
    plans_beside_sharers: bool
    """An estimated start does not look at which jobs share."""
    exclusive_stops: bool
    """Without gang only AVAILABLE jobs look beyond idle cores; else RESERVED ones do too."""
    off_keeps_rows: bool
    """A partition that is OFF may share its own rows."""
    denial_lasts: bool
    """Nodes that test 2 denies to whole-node jobs stay denied in tests 3 and 4."""


@attrs.frozen(kw_only=True, eq=False)
class Extra:
    """Leave to use the extra row of preempt/qos (section 4.3.7)."""

    kept: Cores | None = None
    """Cores that only jobs of the partition hold which do not make way, wherever they are; the row itself then does
    not count, so that several jobs of it may lie on one another. None: the row alone counts."""


@attrs.frozen(eq=False)
class Shortage:
    """What was missing."""

    nodes: int = 0
    """On how many nodes more something must be given back before the job can come to fit."""
    resource: str = "nodes"
    available: int = 0
    """Nodes usable."""


class CoreTest:
    """One request against one state of the books."""

    def __init__(
        self,
        kind: Kind,
        books: Books,
        nodes: NodeBits,
        mode: Mode,
        choice: Alternatives,
        *,
        exempt: Sequence[Job] = (),
        extra: Extra | None = None,
        withheld: Cores | None = None,
        planning: bool = False,
    ) -> None:
        """Prepare it.

        :param nodes: candidates.
        :param choice: the feature alternative to serve.
        :param exempt: running jobs whose cores must not be overlaid.
        :param extra: None: the extra row is hidden.
        :param withheld: idle cores that the job may not have: they count as held for good.
        :param planning: the start of the job is only estimated.
        """
        books.sync()
        self._kind = kind
        self._request = kind.request
        self._books = books
        self._layout: Layout = books.layout
        self._mode = mode
        self._exempt = exempt
        self._extra = extra
        self._withheld = withheld or {}
        self._beside_sharers = planning and mode.plans_beside_sharers
        self._counts = choice.counts
        self._nodes = self._admitted(choice.among(nodes & kind.able))
        self._known: Cores = {}
        """Cores whose loss does not deny a node to a whole-node job."""
        self.short: Shortage | None = None
        """What was missing on that of the maps where the least was; None: nothing was tried."""

    # ---------------------------------------------------------------------- node filter (4.3.3)
    def _admitted(self, nodes: NodeBits) -> NodeBits:
        """Drop nodes whose marks keep the job out (no. 3 to 5)."""
        books = self._books
        nodes &= ~books.reserved_nodes
        if self._request.mark == ONE_ROW:
            if self._layout.several_rows and not self._beside_sharers:
                nodes &= ~self._shared_by_others(nodes)
            return nodes
        nodes &= ~books.marked_nodes
        if self._request.mark == RESERVED:
            nodes &= ~self._if_sharing(books.busy_nodes)
        return nodes

    def _if_sharing(self, nodes: NodeBits) -> NodeBits:
        if self._mode.only_sharing_jobs_block:
            return nodes & self._books.sharing_nodes
        return nodes

    def _shared_by_others(self, nodes: NodeBits) -> NodeBits:
        """Return the nodes where another partition of several rows is busy."""
        own = self._request.partition.index
        several = [
            part
            for index, part in self._books.parts.items()
            if index != own and rows_of(part.partition.oversubscribe) > 1
        ]
        if not several:
            return 0
        if self._mode.sharers_block_beside_rows:
            return nodes & self._books.busy_nodes & self._books.sharing_nodes
        return self._if_sharing(bitmap.of(list(self._books.cores_in(several, nodes))))

    def _with_memory_and_gres(self, nodes: NodeBits) -> NodeBits:
        """Drop nodes that have too little of what is counted (no. 1 and 2)."""
        request, books = self._request, self._books
        if self._layout.track_memory:
            busy = nodes & books.charged_nodes
            if busy:
                nodes = nodes & ~busy | self._with_memory(busy)
        if request.gres or request.gres_total or (request.whole and books.gres):
            nodes = self._with_gres(nodes)
        return nodes

    def _with_memory(self, nodes: NodeBits) -> NodeBits:
        request, books = self._request, self._books
        each = request.memory_per_cpu
        if each is None and not request.memory_per_node:
            return nodes if request.memory_per_node is None else 0
        free = books.free_memory()
        if each is None or not request.whole:
            return free.among(nodes, self._kind.least_memory)
        machines, left = self._layout.cluster.nodes, free.values
        return bitmap.of([i for i in bitmap.indices(nodes) if each * machines[i].cpus <= left[i]])

    def _with_gres(self, nodes: NodeBits) -> NodeBits:
        """Keep nodes with enough of the counted resources; whole-node jobs want them untouched."""
        request, gres, machines = self._request, self._books.gres, self._layout.cluster.nodes
        wanted = {**dict.fromkeys(request.gres_total, 1), **request.gres_per_task, **request.gres}
        if request.max_nodes == 1:
            wanted |= request.gres_total
        short = []
        for index in bitmap.indices(nodes):
            used = {name: amounts[index] for name, amounts in gres.items() if amounts[index]}
            board = self._layout.boards.get(index)
            if (
                (request.whole and used)
                or any(
                    machines[index].gres.get(name, 0) - used.get(name, 0) < count
                    for name, count in wanted.items()
                )
                or (board is not None and board.pick(self._books.slots[index], wanted) is None)
            ):
                short.append(index)
        return nodes & ~bitmap.of(short) if short else nodes

    # ------------------------------------------------------------------------------ the tests
    def run(self) -> Found | None:
        """Return where the job fits; None: nowhere."""
        found = None if self._withheld else self._unused()
        if found is None and looks_beyond_idle(self._request, self._mode):
            self._nodes = self._with_memory_and_gres(self._nodes)
            return self._overlaid()
        return found

    def _unused(self) -> Found | None:
        """Test 1: cores that no job uses."""
        books, request = self._books, self._request
        table = books.table(self._kind.key)
        nodes = self._nodes & table.at_least(self._kind.wanted)
        if request.whole:
            nodes &= ~books.busy_nodes
        if nodes.bit_count() >= request.min_nodes:
            nodes = self._with_memory_and_gres(nodes)
        layout = self._layout
        full, busy = layout.full, books.busy
        like = None
        if layout.alike and nodes and not nodes & books.busy_nodes:
            like = table.values[bitmap.lowest(nodes)]
        ground = Ground(nodes, table.values, like, lambda index: full[index] & ~busy[index])
        return self._place(ground, IDLE)

    def _overlaid(self) -> Found | None:
        """Tests 2 to 4: cores of jobs that can be overlaid."""
        forbidden = self._forbidden()
        anywhere = self._beside(forbidden, "cores of others")
        if anywhere is None:
            return None
        if self._request.whole and not self._mode.denial_lasts:
            self._known = forbidden
            anywhere = self._beside(forbidden, "cores of others")
            if anywhere is None:
                return None
        tier = self._request.partition.priority_tier
        alike = [part for part in self._parts() if part.partition.priority_tier == tier]
        taken = joined(forbidden, self._books.cores_in(alike, self._nodes))
        found = self._beside(taken, "cores of lower tiers")
        return self._spare_lower(taken, found) if found else self._in_rows(forbidden, anywhere)

    def _parts(self) -> list[Rows]:
        return [self._books.parts[index] for index in sorted(self._books.parts)]

    def _forbidden(self) -> Cores:
        """Return the cores that test 2 excludes for good."""
        cores = self._withheld
        if self._mode.partition_prio:
            own = self._request.partition
            banned = [part for part in self._parts() if is_banned(part, own, self._mode)]
            cores = joined(cores, self._books.cores_in(banned, self._nodes))
        for job in self._exempt:
            cores = joined(cores, cores_of(job, self._layout, self._nodes))
        return cores

    def _spare_lower(self, taken: Cores, found: Found) -> Found:
        """Keep off the cores of lower tiers too, the highest first, as long as the job fits (test 3)."""
        tier = self._request.partition.priority_tier
        lower = [part for part in self._parts() if part.partition.priority_tier < tier]
        for part in sorted(lower, key=lambda part: -part.partition.priority_tier):
            taken = joined(taken, self._books.cores_in([part], self._nodes))
            better = self._beside(taken, f"cores of tiers below {part.partition.priority_tier}")
            if better is None:
                return found
            found = better
        return found

    def _in_rows(self, forbidden: Cores, anywhere: Found) -> Found | None:
        """Test 4: the rows of the own partition (section 4.3.5)."""
        part = self._books.parts.get(self._request.partition.index)
        if part is None:
            return attrs.evolve(anywhere, why="first of its partition")
        part.sort()
        for number in range(self._usable_rows(part)):
            row = part.rows[number]
            if not row.count:
                return attrs.evolve(anywhere, why="empty row")
            cores = joined(forbidden, self._cores_of_row(row.cores))
            found = self._beside(cores, f"row {number + 1} of {len(part.rows)}")
            if found is not None:
                return found
        return self._in_extra_row(part, forbidden) if self._extra is not None else None

    def _cores_of_row(self, cores: Sequence[CoreBits]) -> Cores:
        busy = bitmap.indices(self._nodes & self._books.busy_nodes)
        return {index: cores[index] for index in busy if cores[index]}

    def _usable_rows(self, part: Rows) -> int:
        """Return how many rows may be tried, the extra one not counted."""
        if not self._mode.qos:
            return len(part.rows)
        return len(part.rows) - 1 if self._request.mark == AVAILABLE else 1

    def _in_extra_row(self, part: Rows, forbidden: Cores) -> Found | None:
        """Try the row that preempt/qos adds; only those marked AVAILABLE reach it (section 4.3.7)."""
        assert self._extra is not None
        if self._request.mark != AVAILABLE:
            return None
        kept = self._extra.kept
        if kept is None:
            kept = self._cores_of_row(part.rows[-1].cores)
        return self._beside(joined(forbidden, kept), "extra row")

    # ------------------------------------------------------------------------------- one map
    def _beside(self, cores: Cores, why: str) -> Found | None:
        """Place the job on all cores but `cores`."""
        idle, layout, books = self._kind.idle, self._layout, self._books
        if idle.key.partition is not None:
            part = books.parts.get(idle.key.partition)
            if part is not None:
                cores = {**dict.fromkeys(books.cores_in([part], self._nodes), 0), **cores}
        wanted, whole, full = self._kind.wanted, self._request.whole, layout.full
        known = self._known
        nodes = self._nodes
        values = idle.values
        like = None
        if cores:
            values = values.copy()
            dropped = []
            for index, used in cores.items():
                lost = whole and used & ~known.get(index, 0)
                cpus = 0 if lost else idle.cpus_of(index, full[index] & ~used, books)
                values[index] = cpus
                if cpus < wanted:
                    dropped.append(index)
            nodes &= ~bitmap.of(dropped)
        elif layout.alike and nodes:
            like = values[bitmap.lowest(nodes)]
        ground = Ground(nodes, values, like, lambda index: full[index] & ~cores.get(index, 0))
        return self._place(ground, why)

    def _place(self, ground: Ground, why: str) -> Found | None:
        request = self._request
        count = ground.nodes.bit_count()
        if count < request.min_nodes or request.required & ~ground.nodes:
            self._note(Shortage(max(1, request.min_nodes - count), "nodes", count))
            return None
        if request.memory_per_cpu:
            ground = self._within_memory(ground)
        if self._counts:
            counted = self._counted(ground)
            if counted is None:
                self._note(Shortage(1, "nodes", count))
                return None
            request = attrs.evolve(request, required=request.required | counted)
        if request.wants_gres:
            ground = beside_gres(request, ground)
        pool = Pool(ground.nodes, ground.cpus, ground.like)
        if request.gres_total:
            supply = supply_of(request, ground.nodes, partial(free_gres, self._books))
            pool = served_cpus(request, pool, supply)
            ground = attrs.evolve(ground, nodes=pool.nodes, cpus=pool.cpus, like=None)
            taken = choose_gang(request, pool, self._layout, supply, first_fit=self._mode.first_fit)
        else:
            taken = choose(request, pool, self._layout, first_fit=self._mode.first_fit)
        if taken is None:
            self._note(Shortage(self._nodes_to_free(ground), "cpus", count))
            return None
        found = assign(request, taken, ground, self._books, self._kind.picker, why)
        if found is None:
            self._note(Shortage(1, "memory", count))
        return found

    def _note(self, short: Shortage) -> None:
        if self.short is None or short.nodes < self.short.nodes:
            self.short = short

    def _nodes_to_free(self, ground: Ground) -> int:
        """Return on how many nodes more something must be given back, judged by the CPUs in all."""
        have = sum([ground.cpus[index] for index in bitmap.indices(ground.nodes)])
        return max(1, -(-(self._request.min_cpus - have) // self._layout.most_cpus))

    def _counted(self, ground: Ground) -> NodeBits | None:
        """Return nodes for each counted feature, each count solved for itself (section 4.1.3 no. 3)."""
        chosen: NodeBits = 0
        for nodes, count in self._counts:
            part = attrs.evolve(
                self._request,
                min_nodes=count,
                target=count,
                max_nodes=count,
                min_cpus=count * max(self._request.cpus_per_node, 1),
                tasks=None,
                required=0,
            )
            pool = Pool(ground.nodes & nodes & ~chosen, ground.cpus, ground.like)
            taken: Taken | None = choose(part, pool, self._layout, first_fit=self._mode.first_fit)
            if taken is None:
                return None
            chosen |= bitmap.of(list(taken))
        return chosen

    def _within_memory(self, ground: Ground) -> Ground:
        """Let a node have no more CPUs than its memory serves (section 4.3.6)."""
        each = self._request.memory_per_cpu
        if not each or not self._layout.track_memory:
            return ground
        memory, room, step = self._books.memory, self._layout.memory, self._request.need.cpus_per_task
        cpus = ground.cpus
        changed: dict[int, int] = {}
        for index in bitmap.indices(ground.nodes):
            most = (room[index] - memory[index]) // each
            if most < cpus[index]:
                changed[index] = most - most % step
        if not changed:
            return ground
        listed = list(cpus)
        for index, most in changed.items():
            listed[index] = most
        wanted = self._kind.wanted
        dropped = bitmap.of([index for index, most in changed.items() if most < wanted])
        return attrs.evolve(ground, nodes=ground.nodes & ~dropped, cpus=listed, like=None)


def looks_beyond_idle(request: Request, mode: Mode) -> bool:
    """Whether cores in use are looked at as well (after test 1)."""
    if mode.gang or request.mark == AVAILABLE:
        return True
    return request.mark == RESERVED and not mode.exclusive_stops


def barred(request: Request, books: Books, mode: Mode) -> Bars:
    """Return the partitions on the cores of whose jobs a job is never laid; no less than there are."""
    if not looks_beyond_idle(request, mode):
        return None
    own, parts = request.partition, books.parts
    found = {at for at, part in parts.items() if mode.partition_prio and is_banned(part, own, mode)}
    if rows_of(own.oversubscribe) == 1 and not mode.qos:  # which has an extra row
        found.add(own.index)
    return frozenset(found)


IDLE = "idle cores"
"""How a place on cores that no job uses is called."""


def is_banned(part: Rows, own: Partition, mode: Mode) -> bool:
    """Whether a partition's cores are out of reach for jobs of `own`: it is of a higher tier, or OFF."""
    if part.partition is own:
        exempt = mode.off_keeps_rows and len(part.rows) > 1
        return is_off(own) and not exempt
    return part.partition.priority_tier > own.priority_tier or is_off(part.partition)


def is_off(partition: Partition) -> bool:
    """Whether the partition's own mode is literally OFF."""
    mode = partition.preempt_mode
    return mode is not None and mode.action is PreemptMode.OFF


def joined(one: Cores, other: Mapping[int, CoreBits]) -> Cores:
    """Return the cores of both."""
    if not other:
        return one
    if not one:
        return dict(other)
    both = dict(one)
    for index, cores in other.items():
        both[index] = both.get(index, 0) | cores
    return both


def cores_of(job: Job, layout: Layout, nodes: NodeBits) -> Cores:
    """Return what a job holds of `nodes`."""
    allocation = job.allocation
    if allocation is None or not allocation.nodes & nodes:
        return {}
    held, full = allocation.cores, layout.full
    return {
        index: full[index] if held is None else held[at]
        for at, index in enumerate(allocation.node_indices)
        if nodes >> index & 1
    }
