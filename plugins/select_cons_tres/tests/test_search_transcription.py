"""The fast search takes the same victims as a plain transcription of the rules, on random small clusters.

The transcription below knows nothing of books, tables and batches: for every question it looks through all jobs
that are still there (slurm-preemption 5.2.1 to 5.2.3, slurm-gang-and-select 4.3.2, 4.3.3 and 4.3.6). It is
limited to partitions of one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makeway import bitmap
from makeway.model import Candidates, ClusterView, Job, JobState, Node, PreemptMode, Sharing
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.request import Request
from makeway_select_cons_tres.search import search
from makeway_testing.builders import node

Taken = dict[int, int]
"""CPUs by node."""


def no_job(job: Job) -> bool:
    """Say no."""
    return False


MARKS = {Sharing.NO: 1, Sharing.FORCE: 0, Sharing.EXCLUSIVE: 64000}


class Plain:
    """The algorithm, step by step."""

    def __init__(self, attempt: ConsAttempt) -> None:
        self.view: ClusterView = attempt.view
        self.job = attempt.job
        self.request: Request = attempt.kind.request
        self.mode = attempt.known.mode
        self.memory = attempt.known.parameters.memory
        self.nodes = bitmap.indices(attempt.nodes)

    def node(self, index: int) -> Node:
        """Return a node."""
        return self.view.cluster.nodes[index]

    # ------------------------------------------------------------------------- what is in use
    def held(self, job: Job, index: int) -> set[int]:
        """Return the cores that a job holds on a node."""
        allocation = job.allocation
        if allocation is None or index not in allocation.node_indices:
            return set()
        if allocation.cores is None:
            return set(range(self.node(index).cores))
        return set(bitmap.indices(allocation.cores[allocation.node_indices.index(index)]))

    def used_memory(self, job: Job, index: int) -> int:
        """Return the memory that a job holds on a node."""
        allocation = job.allocation
        if allocation is None or allocation.memory_mb is None or index not in allocation.node_indices:
            return 0
        return allocation.memory_mb[allocation.node_indices.index(index)]

    def free(self, index: int, present: Sequence[Job], avoid: Callable[[Job], bool]) -> int:
        """Return the free CPUs of a node beside those of `present` that are to be avoided (one thread a core)."""
        used: set[int] = set()
        forgiven: set[int] = set()
        for job in present:
            if avoid(job):
                used |= self.held(job, index)
            if self.forgives(job):
                forgiven |= self.held(job, index)
        if self.request.whole and used - forgiven:
            return 0
        cpus = self.node(index).cores - len(used)
        cpus -= cpus % self.request.need.cpus_per_task
        most = self.request.most_on_node
        return cpus if most is None else min(cpus, most)

    def admitted(self, present: Sequence[Job]) -> list[int]:
        """Return the nodes that the filter of 4.3.3 leaves."""
        request = self.request
        mark = MARKS[request.partition.oversubscribe.sharing]
        found = []
        for index in self.nodes:
            there = [job for job in present if self.held(job, index)]
            state = sum(MARKS[job.partition.oversubscribe.sharing] for job in there)
            sharing = any(job.partition.oversubscribe.sharing is Sharing.FORCE for job in there)
            if state >= 64000 or (state >= 1 and mark != 1) or (mark == 64000 and there and sharing):
                continue
            if self.memory and not self.memory_fits(index, there):
                continue
            found.append(index)
        return found

    def memory_fits(self, index: int, there: Sequence[Job]) -> bool:
        """Whether the memory left on a node is enough; all of it is wanted where nothing was asked for."""
        used = sum(self.used_memory(job, index) for job in there)
        if not self.request.memory_per_node:
            return not used
        return used + self.request.memory_per_node <= self.node(index).memory_mb

    # --------------------------------------------------------------------------- tests (4.3.2)
    def fits(self, present: Sequence[Job], within: Sequence[int] | None = None) -> Taken | None:
        """Return nodes and CPUs for the job beside `present`."""
        own = self.request.partition
        self.forgives = no_job
        nodes = [i for i in self.admitted(present) if within is None or i in within]
        found = self.on_map(nodes, present, lambda job: True)
        sharing = own.oversubscribe.sharing
        if found is not None or not (self.mode.gang or sharing is Sharing.FORCE):
            return found

        def banned(job: Job) -> bool:
            return job.partition.priority_tier > own.priority_tier

        anywhere = self.on_map(nodes, present, banned)
        if anywhere is None:
            return None
        if not self.mode.denial_lasts:
            self.forgives = banned
            anywhere = self.on_map(nodes, present, banned)
        found = self.on_map(nodes, present, lambda job: job.partition.priority_tier >= own.priority_tier)
        if found is not None:
            return self.spare_lower(found, nodes, present)
        if not any(job.partition is own for job in present):
            return anywhere
        return self.on_map(nodes, present, lambda job: banned(job) or job.partition is own)

    def spare_lower(self, found: Taken, nodes: Sequence[int], present: Sequence[Job]) -> Taken:
        """Keep off the cores of lower tiers too, one partition at a time (slurm-preemption 5.2.2, step 3)."""
        tier = self.request.partition.priority_tier
        lower = {job.partition.index: job.partition for job in present if job.partition.priority_tier < tier}
        kept = {job.partition.index for job in present if job.partition.priority_tier >= tier}
        for each in sorted(lower.values(), key=lambda each: (-each.priority_tier, each.index)):
            kept.add(each.index)
            better = self.on_map(nodes, present, lambda job: job.partition.index in kept)
            if better is None:
                break
            found = better
        return found

    def on_map(
        self, nodes: Sequence[int], present: Sequence[Job], avoid: Callable[[Job], bool]
    ) -> Taken | None:
        """Choose among `nodes`, on cores that no job to be avoided holds."""
        request = self.request
        wanted = max(request.cpus_per_node, 1)
        if request.max_nodes == 1:
            wanted = max(wanted, request.min_cpus)
        cpus = {index: self.free(index, present, avoid) for index in nodes}
        usable = {index: count for index, count in cpus.items() if count >= wanted}
        while len(usable) >= request.min_nodes:
            taken = self.choose(usable)
            if taken is not None:
                return taken
            least = min(usable.values())
            usable = {index: count for index, count in usable.items() if count > least}
        return None

    # -------------------------------------------------------------------------- nodes (4.3.6)
    def choose(self, usable: dict[int, int]) -> Taken | None:
        """Take nodes: the first that serves for a one-node job, else the tightest blocks."""
        request = self.request
        weight = {index: self.node(index).weight for index in usable}
        if self.mode.first_fit and request.max_nodes == 1:
            first = min(usable, key=lambda index: (weight[index], index), default=None)
            return None if first is None else {first: usable[first] if request.whole else request.min_cpus}
        taken: Taken = {}
        nodes, cpus, left = request.target, request.min_cpus, request.min_cpus
        slack = request.target - request.min_nodes
        most = request.max_nodes if request.max_nodes is not None else len(usable)
        blocks: list[list[int]] = []
        for index in sorted(usable):
            if blocks and blocks[-1][-1] == index - 1 and weight[blocks[-1][-1]] == weight[index]:
                blocks[-1].append(index)
            else:
                blocks.append([index])
        while blocks and len(taken) < most and (nodes > 0 or cpus > 0):
            best = None
            for block in blocks:
                size = sum(usable[index] for index in block)
                enough = size >= cpus and len(block) >= nodes - slack
                if best is not None:
                    lighter = weight[block[0]] - weight[best[0][0]]
                    better = enough and (not best[2] or size < best[1])
                    if lighter > 0 or (lighter == 0 and not better and not (not enough and size > best[1])):
                        continue
                best = (block, size, enough)
            assert best is not None
            chosen = best[0]
            blocks.remove(chosen)
            if nodes <= 1:
                able = [index for index in chosen if usable[index] >= cpus]
                chosen = [min(able, key=lambda index: (usable[index], index))] if able else chosen
            for index in chosen:
                if len(taken) >= most or (nodes <= 0 and cpus <= 0):
                    break
                if len(taken) == most - 1 and usable[index] < cpus:
                    continue
                count = usable[index]
                if not request.whole:
                    keep = max(left - max(nodes - slack - 1, 0), request.cpus_per_node, 1)
                    count = min(count, keep)
                taken[index] = count
                nodes, cpus, left = nodes - 1, cpus - count, left - count
        return taken if cpus <= 0 and len(taken) >= request.min_nodes else None

    # --------------------------------------------------------- rounds (slurm-preemption 5.2.3)
    def search(
        self, candidates: Candidates, reorders: int, strict: bool
    ) -> tuple[list[int], list[int]] | None:
        """Return chosen nodes and victims; None if removing candidates does not help."""
        order = list(range(len(candidates.jobs)))
        everybody = list(self.view.active)
        done, within = 0, None
        while True:
            now = self.fits(everybody, within)
            if now is not None:
                return sorted(now), []
            gone: list[int] = []
            found = None
            for at in order:
                job = candidates.jobs[at]
                if candidates.modes[at] not in (PreemptMode.REQUEUE, PreemptMode.CANCEL):
                    continue
                if not any(self.held(job, index) for index in self.nodes):
                    continue
                gone.append(at)
                left = [job for job in everybody if all(job is not candidates.jobs[one] for one in gone)]
                found = self.fits(left)
                if found is not None:
                    break
            if found is None:
                return None
            chosen, decisive = sorted(found), gone[-1]
            done += 1
            if done - 1 > reorders or len(order) <= done:
                victims = [at for at in gone if any(self.held(candidates.jobs[at], i) for i in chosen)]
                return chosen, victims
            place = order.index(decisive)
            if strict:
                order = [decisive, *order[:place], *order[place + 1 :]]
            else:
                key = dict.fromkeys(order, 0)
                for at in order[:place]:
                    key[at] = sum(1 for index in chosen if self.held(candidates.jobs[at], index))
                key[decisive] = 99999
                order.sort(key=lambda at: -key[at])
            within = chosen


# ------------------------------------------------------------------------------- random scenes
OVER = st.sampled_from(["NO", "NO", "FORCE:1", "EXCLUSIVE"])
LOW = st.sampled_from(
    ["-n1", "-n2", "-n3", "-N1 --exclusive", "-N2 -n3", "-N2 --exclusive", "-n2 -c2", "-N3", "-n5"]
)
HIGH = st.sampled_from(
    ["-n1", "-n4", "-n7", "-N1 -n3", "-N2", "-N2 --exclusive", "-N3 -n5", "-N1-3 -n4", "-n2 -c2", "-N3 -c2"]
)
MODES = st.sampled_from(["cancel", "requeue", "requeue,gang", "suspend,gang"])


@st.composite
def scenes(draw: st.DrawFn) -> tuple[tuple[Any, ...], dict[str, Any], list[tuple[str, str]], str]:
    """Draw nodes, settings, low jobs with their partitions, and what the preemptor asks for."""
    memory = draw(st.booleans())
    machine = tuple(
        node(f"n{at}", sockets=2, cores_per_socket=2, memory_mb=1000, weight=draw(st.sampled_from((1, 1, 2))))
        for at in range(1, draw(st.integers(2, 5)) + 1)
    )
    options = {
        "select_parameters": "CR_Core_Memory" if memory else "CR_Core",
        "preempt": "preempt/partition_prio",
        "preempt_mode": draw(MODES),
        "reorder_count": draw(st.integers(0, 2)),
        "strict_order": draw(st.booleans()),
        "slurm_release": draw(st.sampled_from(["22.05.8", "26.11"])),
        "partitions": {
            "low": {"priority_tier": 1, "oversubscribe": draw(OVER)},
            "mid": {"priority_tier": draw(st.sampled_from((1, 2))), "oversubscribe": draw(OVER)},
            "high": {"priority_tier": 3, "oversubscribe": draw(OVER)},
        },
    }
    asks = st.sampled_from(["", " --mem=400", " --mem=700"] if memory else [""])
    part = st.sampled_from(["low", "low", "mid", "high"])
    jobs = draw(st.lists(st.tuples(st.builds(str.__add__, LOW, asks), part), min_size=1, max_size=9))
    return machine, options, jobs, draw(HIGH) + draw(asks)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(drawn=scenes())
def test_same_victims(stage: Callable[..., Any], drawn: Any) -> None:
    """Victims, their order and the chosen nodes are those of the transcription."""
    machine, options, jobs, wish = drawn
    scene = stage(machine, options)
    for number, (args, partition) in enumerate(jobs):
        scene.submit(f"j{number}", args, partition)
    engine = scene.engine
    for job in list(engine.ledger.pending):
        scene.command("cancel", job.id)
    placer = engine.placer
    scene.step((), scene.now + 1)
    placer.preemption = False  # the preemptor is only to wait
    scene.submit("p", wish, "high")
    job = engine.ledger.jobs.get("p")
    if job is None or job.state is not JobState.PENDING:
        return
    placer.preemption = True
    candidates = placer.order.candidates(job)
    nodes = placer.prober.nodes_with(job, engine.ledger.all_nodes, candidates.jobs)
    attempt = engine.selector.attempt(job, nodes, engine.ledger)
    choice = search(attempt, candidates)
    expected = Plain(attempt).search(candidates, options["reorder_count"], options["strict_order"])
    if choice is None:
        assert expected is None
    else:
        found = list(choice.placement.allocation.node_indices), list(choice.victims)
        assert found == expected
