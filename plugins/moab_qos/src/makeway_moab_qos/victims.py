"""Order the candidates, and choose among them (moab 4).

Cost is run priority per processor freed on feasible nodes; the search walks from the cheapest on until the
job fits. It is greedy and promises no more: with ``minimise`` what turns out not to be needed is put
back. Maui walks until the victims alone cover the whole job, however much is idle (Q3), and counts what a
victim frees by the preemptor's tasks (Q5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.model import (
    Attempt,
    Blocked,
    Candidates,
    Choice,
    ClusterView,
    Job,
    Placement,
    PreemptMode,
    Seconds,
)
from makeway_moab_qos.actions import next_rung
from makeway_moab_qos.conditions import feasible_nodes, judge
from makeway_moab_qos.credentials import settings_of
from makeway_moab_qos.priority import processors, run_priority
from makeway_moab_qos.reservations import is_locked, next_change_of_any
from makeway_moab_qos.settings import Settings
from makeway_moab_qos.tasks.suspended import kept_when_suspended

_POLL: Seconds = 60.0
"""RMPOLLINTERVAL unless the site says otherwise: the time to the next pass, where passes follow events (section 10)."""


# ------------------------------------------------------------------------------------ candidates
def candidates(preemptor: Job, active: Sequence[Job], view: ClusterView, now: Seconds) -> Candidates:
    """Return what `preemptor` may displace, cheapest first; for the hook."""
    verdicts = judge(preemptor, active, view, now)
    nodes = feasible_nodes(preemptor, view)
    settings = settings_of(view)
    ranked = []
    for job, method in verdicts.allowed:
        freed = supply(job, preemptor, nodes, view)
        if method.mode is PreemptMode.SUSPEND and kept_when_suspended(job, settings).cores:
            freed = 0  # SUSPENDRESOURCES: it would stop, and keep its processors
        if freed:
            ranked.append((_key(job, freed, nodes, view, settings, now), job, method.mode))
    if settings.prio_job_select_weight is not None or settings.rtime_weight is not None:
        ranked = _by_weights(ranked, preemptor, nodes, view, settings, now)
    ranked.sort(key=lambda each: each[0])
    depth = settings.search_depth
    if depth is not None and not settings.maui and processors(preemptor) == 1:
        ranked = ranked[:depth]
    change = next_change_of_any(view, now) if settings.standing else None
    # Further ones while those told are still leaving: when the lock is over, or never to wait (7.1).
    expired = settings.guaranteed_preemption and not is_locked(preemptor, view, now)
    impatient = settings.nowait_preemption or settings.choices.preempt_again_while_locked
    again = [*verdicts.ask_again, change]
    if settings.guaranteed_preemption and ranked and not settings.maui:
        again.append(now + settings.job_retry_time)  # the end of the lock, if it takes any of them
    if settings.nowait_preemption and ranked and not settings.maui:
        again.append(now + (view.settings(Clockwork).sched_interval or _POLL))
    return Candidates(
        jobs=tuple(job for _, job, _ in ranked),
        modes=tuple(mode for _, _, mode in ranked),
        protected=verdicts.protected,
        note=verdicts.note,
        while_waiting=not settings.maui and (expired or impatient),
        ask_again_at=min((at for at in again if at is not None), default=None),
    )


_Key = tuple[float, float, float, int]
_Ranked = tuple[_Key, Job, PreemptMode]


def _key(job: Job, freed: int, nodes: NodeBits, view: ClusterView, settings: Settings, now: Seconds) -> _Key:
    """Return the order key: cost, then who loses least (4.3), then the job table."""
    run = run_priority(job, view, now)
    cost = float(math.trunc(run / freed))
    started = job.started_at or 0.0
    if settings.maui:
        # As listed: node by node, on a node in the order of start (section 17: equal cost in queue order).
        first = next(iter(bitmap.indices(job.nodes & nodes)), -1)
        return cost, float(first), float(_place_on(first, job, view)), job.index
    return cost, run, -started, job.index


def _place_on(node: int, job: Job, view: ClusterView) -> int:
    return next((at for at, other in enumerate(view.jobs_on(node)) if other is job), 0) if node >= 0 else 0


def _by_weights(
    ranked: list[_Ranked],
    preemptor: Job,
    nodes: NodeBits,
    view: ClusterView,
    settings: Settings,
    now: Seconds,
) -> list[_Ranked]:
    """Order by PREEMPTPRIOJOBSELECTWEIGHT and PREEMPTRTIMEWEIGHT (4.4; the arithmetic is a guess, U2)."""
    runs = _scaled([run_priority(job, view, now) for _, job, _ in ranked])
    sizes = _scaled([float(supply(job, preemptor, nodes, view)) for _, job, _ in ranked])
    lefts = _scaled([_left(job, now) for _, job, _ in ranked])
    weight = 256.0 if settings.prio_job_select_weight is None else settings.prio_job_select_weight
    remaining = settings.rtime_weight or 0.0
    found = []
    for (key, job, mode), run, size, left in zip(ranked, runs, sizes, lefts, strict=True):
        worth = weight * run + size - remaining * left
        found.append(((worth, key[1], key[2], key[3]), job, mode))
    return found


def _left(job: Job, now: Seconds) -> float:
    return (job.time_limit or 0.0) - job.ran_until(now)


def _scaled(values: list[float]) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


def supply(job: Job, preemptor: Job, nodes: NodeBits, view: ClusterView) -> int:
    """Return how many processors `job` frees on `nodes`, and only there (4.1 step 5)."""
    held = job.allocation
    if held is None:
        return 0
    listed = view.cluster.nodes
    freed = 0
    maui = settings_of(view).maui
    tasks = _tasks_on(job) if maui else []
    for at, index in enumerate(held.node_indices):
        if not nodes >> index & 1:
            continue
        here = held.cpus[at] if held.cpus is not None else listed[index].cpus
        if maui:
            here = min(listed[index].cpus, tasks[at] * preemptor.spec.cpus_per_task)
        freed += here
    return freed


def _tasks_on(job: Job) -> list[int]:
    """Return how many tasks of a job sit on each of its nodes.

    Where it has nodes for itself (NODEACCESSPOLICY) it holds more processors than it has tasks for.
    """
    held = job.allocation
    assert held is not None
    per_task = max(1, job.spec.cpus_per_task)
    left = -(-job.spec.cpus // per_task)
    found = []
    for held_here in held.cpus or [job.spec.cpus] * len(held.node_indices):
        found.append(min(held_here // per_task, left))
        left -= found[-1]
    return found


# ---------------------------------------------------------------------------------------- search
@attrs.define
class Walk:
    """A walk over the candidates for one preemptor."""

    attempt: Attempt
    candidates: Candidates
    view: ClusterView
    modes: list[PreemptMode]
    in_the_way: Blocked | None = None
    """What would be in the way with all candidates gone, once that is known."""

    @property
    def job(self) -> Job:
        """The preemptor."""
        return self.attempt.job

    def place_without(self, chosen: Sequence[int]) -> Placement | Blocked:
        """Return where the preemptor would start if `chosen` were gone, or what would still be in the way."""
        trial = self.attempt.fresh()
        for at in chosen:
            trial.remove(self.candidates.jobs[at], self.modes[at])
        return trial.probe()

    def greedy(self) -> tuple[list[int], Placement] | None:
        """Take candidates in order until the preemptor fits."""
        trial = self.attempt.fresh()
        first = trial.probe()
        plain = isinstance(first, Blocked) and first.resource == "processors"
        short = _short(first) if isinstance(first, Blocked) and plain else 0
        nodes = feasible_nodes(self.job, self.view)
        freed = 0
        for at, job in enumerate(self.candidates.jobs):
            trial.remove(job, self.modes[at])
            freed += supply(job, self.job, nodes, self.view)
            if freed < short and at + 1 < len(self.candidates.jobs):
                continue
            found = trial.probe()
            if isinstance(found, Placement):
                return list(range(at + 1)), found
            self.in_the_way = found
        return None

    def covering(self) -> tuple[list[int], Placement] | Blocked | None:
        """Take candidates until they alone cover the whole job, or none is left, as Maui does (Q3)."""
        nodes = feasible_nodes(self.job, self.view)
        need = self.job.spec.cpus
        each = [supply(job, self.job, nodes, self.view) for job in self.candidates.jobs]
        first = self.attempt.fresh().probe()
        short = _short(first) * self.job.spec.cpus_per_task if isinstance(first, Blocked) else 0
        if sum(each) < short:
            count = f"{sum(each)} of the {short:g} processors that are short"
            return Blocked(
                detail=f"K20 all candidates would free {count}, by their tasks as Maui counts them"
            )
        wanted = self.job.size if self.job.size > 1 else 0
        chosen, covered, freed_nodes = [], 0, 0
        for at, freed in enumerate(each):
            if covered >= need and freed_nodes.bit_count() >= wanted:
                break
            chosen.append(at)
            covered += freed
            freed_nodes |= self.candidates.jobs[at].nodes & nodes
        placement = self.place_without(chosen)
        return (chosen, placement) if isinstance(placement, Placement) else None

    def minimised(self, chosen: list[int]) -> list[int]:
        """Put back what is not needed, the costliest first (4.1)."""
        kept = list(chosen)
        for at in reversed(chosen):
            rest = [each for each in kept if each != at]
            if rest and isinstance(self.place_without(rest), Placement):
                kept = rest
        return kept


def _short(blocked: Blocked) -> float:
    """Return the fewest tasks that are missing; 0: not known."""
    return blocked.wanted - blocked.available if blocked.resource in ("processors", "tasks") else 0


def search(attempt: Attempt, found: Candidates, view: ClusterView) -> Choice | Blocked | None:
    """Choose the victims; for the hook."""
    settings = settings_of(view)
    walk = Walk(attempt, found, view, list(found.modes))
    choice = _search(walk, settings)
    if choice is not None or settings.maui or not settings.choices.escalate_for_resources:
        return choice
    # Suspension frees too little: the next rung for all that would be suspended (U9), but none is killed for it.
    modes = [
        rung
        if mode is PreemptMode.SUSPEND and (rung := next_rung(job, mode, view)) is not PreemptMode.CANCEL
        else mode
        for job, mode in zip(found.jobs, found.modes, strict=True)
    ]
    if modes != walk.modes:
        walk = Walk(attempt, found, view, modes)
        choice = _search(walk, settings)
    return choice if choice is not None else _memory_kept(walk)


def _memory_kept(walk: Walk) -> Blocked | None:
    """Say that memory is what suspended jobs would keep; None: that is not the obstacle."""
    blocked, jobs = walk.in_the_way, walk.candidates.jobs
    if blocked is None or blocked.resource != "memory":
        return None
    kept = [job.id for job, mode in zip(jobs, walk.modes, strict=True) if mode is PreemptMode.SUSPEND]
    told = f" while {', '.join(kept)}, suspended, keeps its memory" if kept else ""
    return Blocked(detail=f"{blocked.detail}{told}")


def _search(walk: Walk, settings: Settings) -> Choice | Blocked | None:
    answer = walk.covering() if settings.maui else walk.greedy()
    if answer is None or isinstance(answer, Blocked):
        return answer
    chosen, placement = answer
    if not settings.maui:
        if settings.choices.minimise or settings.node_set_policy:  # some lie outside of the set that is freed
            chosen = walk.minimised(chosen)
            placed = walk.place_without(chosen)
            placement = placed if isinstance(placed, Placement) else placement
        cap = _too_many(chosen, walk.view, settings)
        if cap:
            return Blocked(detail=cap)
    whose = "Maui's walk over the whole size" if settings.maui else "greedy by run priority per processor"
    return Choice(
        placement=placement,
        victims=tuple(chosen),
        method=whose,
        considered=len(walk.candidates.jobs),
        modes=tuple(walk.modes[at] for at in chosen),
    )


def _too_many(chosen: Sequence[int], view: ClusterView, settings: Settings) -> str:
    """Say which cap on victims, per preemptor (4.1 step 10) or per pass, forbids the choice; empty: none."""
    most, needed = settings.choices.max_preemptees, len(chosen)
    if most and needed > most:
        return f"K05 it would take {needed} victims, and {most} are allowed"
    per_pass = settings.max_job_preempt_per_iteration
    if per_pass and view.told_now + needed > per_pass:
        before = f" after {view.told_now} of this pass" if view.told_now else ""
        return f"K05 it would take {needed} victims{before}, and MAXJOBPREEMPTPERITERATION is {per_pass}"
    return ""
