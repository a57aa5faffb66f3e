"""Check after every step what may never happen (the house plan, "What may never happen").

`InvariantChecker` is meant for ``Options.after_step`` and remembers what it has seen; `check_invariants` looks
at one instant. Where real Slurm does what may never happen, the rules say so: these excuses are listed in
`EXCUSES`, and the checker keeps a note of each time that it granted one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from makeway.bitmap import NodeBits
from makeway.model import (
    Allocation,
    Job,
    JobSpec,
    JobState,
    ModeFlag,
    Partition,
    PreemptBasis,
    PreemptMode,
    Qos,
    Seconds,
    SuspendedBy,
)
from makeway.preemption import PreemptionTable
from makeway.record import History, Preemption
from makeway.worlds.events import Command, Event
from makeway_app.replay import Run
from makeway_engine.engine import Engine
from makeway_testing.broken import EXCUSES, RULES, Excused, broken
from makeway_testing.occupancy import check_cores, check_licences, check_memory, share_a_core

_TINY = 1e-6
_SWEEP_EVERY = 64
"""Steps between two looks at the whole queue, where it is long."""
_SHORT_QUEUE = 64
_SLICE = 30.0


@attrs.frozen
class _Seen:
    """What was known of an active job after the last step."""

    partition: Partition
    started_at: Seconds
    priority: int
    qos: Qos | None
    shared: bool
    required: bool
    """Whether it names nodes that it requires."""


def check_invariants(engine: Engine, resumed: Iterable[str] = ()) -> list[Excused]:
    """Check one instant: cores, memory, and that no job is lost.

    :param resumed: ids of the jobs that a person resumed.
    :returns: what is excused.
    :raises InvariantError: naming rule, instant and jobs.
    """
    known = frozenset(resumed)
    excused = [*check_cores(engine, known), *check_memory(engine, known)]
    check_licences(engine)
    _check_counts(engine)
    _check_books(engine)
    _check_every_job(engine)
    return excused


class InvariantChecker:
    """Checks a run step by step; give it as ``Options.after_step`` and call `finish` in the end."""

    def __init__(
        self,
        commands: Sequence[tuple[Seconds, Event]] = (),
        *,
        every: int = 1,
        allowed: Callable[[Engine, Preemption, Job], str] | None = None,
        patience: Seconds | None = None,
    ) -> None:
        """Begin.

        :param commands: what people ask for in this run: a manual resume excuses an overlap.
        :param every: look only at every n-th step.
        :param allowed: says why a preemption was not allowed, or nothing; in place of the checker's own
            reading of preempt/partition_prio.
        :param patience: how long a suspended job may wait with all that it needs free; None: one turn of
            ``gang/timeslice``.
        """
        self.excused: list[Excused] = []
        self.steps = 0
        self._every = every
        self._allowed = allowed
        self._patience = patience
        self._resumes = sorted(
            (at, event.job_id)
            for at, event in commands
            if isinstance(event, Command) and event.name == "resume"
        )
        self._resumed: set[str] = set()
        self._preemptions = 0
        self._seen: dict[str, _Seen] = {}
        self._stuck: dict[str, Seconds] = {}

    def __call__(self, engine: Engine) -> None:
        """Check `engine` after a step.

        :raises InvariantError: naming rule, instant and jobs.
        """
        now = engine.ledger.now
        while self._resumes and self._resumes[0][0] <= now:
            self._resumed.add(self._resumes.pop(0)[1])
        self._judge_preemptions(engine)
        self.steps += 1
        if self.steps % self._every == 0:
            known = frozenset(self._resumed)
            self.excused += check_cores(engine, known)
            self.excused += check_memory(engine, known)
            check_licences(engine)
            _check_counts(engine)
            _check_books(engine)
            short = len(engine.ledger.jobs) <= _SHORT_QUEUE
            if short or self.steps % (self._every * _SWEEP_EVERY) == 0:
                _check_every_job(engine)
            self._check_stuck(engine)
        self._look(engine)

    def finish(self, run: Run, specs: Iterable[JobSpec] = ()) -> None:
        """Check what holds once nothing happens any more.

        :raises InvariantError: naming rule, instant and jobs.
        """
        _check_every_job(run.engine)
        for job in run.engine.ledger.active:
            if job.state is JobState.SUSPENDED and _could_run(run.engine, job):
                raise broken(run.engine, 5, "it will never be resumed", job.id)
        check_conservation(run, specs)

    # ----------------------------------------------------------------------- 4. what may be a victim
    def _judge_preemptions(self, engine: Engine) -> None:
        entries = engine.recorder.preemptions
        judge = self._allowed or self._partition_prio
        for entry in entries[self._preemptions :]:
            history = engine.recorder.histories.get(entry.victim)
            if history is None:
                continue
            objection = judge(engine, entry, history.job)
            if objection:
                raise broken(engine, 4, objection, *filter(None, (entry.victim, entry.preemptor)))
        self._preemptions = len(entries)

    def _partition_prio(self, engine: Engine, entry: Preemption, victim: Job) -> str:
        """Say what forbids it (slurm-preemption 1.3, 1.6, 1.7); empty: nothing."""
        basis = engine.ledger.preempt_basis
        if basis not in (PreemptBasis.PARTITION, PreemptBasis.NOTHING):
            return ""
        by_gang = engine.gang is not None
        if entry.preemptor is None:
            # Parts of heterogeneous jobs end with their own grace time (slurm-preemption 4.3).
            excused = by_gang or victim.spec.het_id is not None
            return "" if excused else "no job displaced it"
        seen = self._seen.get(entry.victim)
        if seen is None:
            if not engine.ledger.is_active(victim):
                return ""  # started and displaced within one instant
            seen = _seen(victim)
        elif victim.priority < seen.priority:
            seen = attrs.evolve(seen, priority=victim.priority)  # held at this very instant
        preemptor = engine.recorder.histories[entry.preemptor].job
        tiers = [p.priority_tier for p in (*preemptor.partitions, preemptor.partition)]
        if max(tiers) <= seen.partition.priority_tier:
            return f"its tier {seen.partition.priority_tier} is not below {max(tiers)}"
        if basis is PreemptBasis.NOTHING:
            return "" if by_gang else "preemption is off"
        if by_gang and (seen.shared or victim.spec.het_id is not None):
            return ""  # gang stops what is in a shadow; candidates were not asked (slurm-preemption 4.6)
        if by_gang and seen.required and not engine.ledger.is_active(preemptor):
            return ""  # it took a node that it requires and that the other was leaving (slurm-preemption 5.0 no. 3)
        return _off(seen) or _exempt(engine, seen) or _too_low(engine, preemptor, seen)

    def _look(self, engine: Engine) -> None:
        active = engine.ledger.active
        self._seen = {job.id: _seen(job) for job in active}
        for job in active:
            if job.state is JobState.SUSPENDED:
                self._resumed.discard(job.id)

    # ------------------------------------------------------------------------- 5. no job is forgotten
    def _check_stuck(self, engine: Engine) -> None:
        now = engine.ledger.now
        patience = (_slice(engine) if self._patience is None else self._patience) + _TINY
        stuck = {}
        for job in engine.ledger.active:
            if job.state is JobState.SUSPENDED and _could_run(engine, job):
                since = self._stuck.get(job.id, now)
                if now - since > patience:
                    raise broken(engine, 5, f"suspended with all it needs free since {since:g} s", job.id)
                stuck[job.id] = since
        self._stuck = stuck


# ------------------------------------------------------------------------------- 3. no job is lost
def _check_counts(engine: Engine) -> None:
    """Compare the numbers of jobs in every book; cheap."""
    ledger, metrics = engine.ledger, engine.recorder.metrics
    leaving = len(engine.transitions._leaving)
    placed = len(engine.queue) + ledger.active_count + leaving
    if placed != len(ledger.jobs):
        text = (
            f"{len(ledger.jobs)} jobs in the table, but {len(engine.queue)} wait, "
            f"{ledger.active_count} are active and {leaving} are leaving"
        )
        raise broken(engine, 3, text)
    if metrics.jobs != len(ledger.jobs) + metrics.ended:
        text = f"{metrics.jobs} submitted, {len(ledger.jobs)} live, {metrics.ended} ended"
        raise broken(engine, 3, text)


def _check_books(engine: Engine) -> None:
    """See that nodes are busy exactly where a job holds them or is leaving them."""
    ledger = engine.ledger
    held: NodeBits = ledger.completing
    for job in ledger.active:
        held |= job.nodes
    idle = ledger.up & ~held
    if idle != ledger.idle:
        odd = engine.recorder.node_list(idle ^ ledger.idle)
        raise broken(engine, 3, f"nodes {odd} are held by no job, or idle while held")


def _check_every_job(engine: Engine) -> None:
    ledger, queue, transitions = engine.ledger, engine.queue, engine.transitions
    histories = engine.recorder.histories
    for job in ledger.jobs.values():
        places = (job in queue, ledger.is_active(job), transitions.is_leaving(job))
        if places.count(True) != 1:
            raise broken(engine, 3, f"waits, active, leaving: {places}", job.id)
        if places[0] and not (job.state is JobState.PENDING and job.reason):
            raise broken(engine, 3, f"it waits, but is {job.state.value}, {job.reason!r}", job.id)
        if places[1] and not (job.state.active and job.allocation is not None):
            raise broken(engine, 3, f"it is active, but {job.state.value}", job.id)
        if places[2] and job.allocation is None:
            raise broken(engine, 3, "it is leaving, but holds no nodes", job.id)
        history = histories.get(job.id)
        if history is None or history.final_state is not None or history.state is not job.state:
            shown = "nothing" if history is None else (history.final_state or history.state).value
            raise broken(engine, 3, f"it is {job.state.value}; the record has {shown}", job.id)
    for job_id, history in histories.items():
        if history.final_state is None and job_id not in ledger.jobs:
            raise broken(engine, 3, "the record thinks it lives; the table has lost it", job_id)


# ------------------------------------------------------------------------------ 5. suspended in vain
def _could_run(engine: Engine, job: Job) -> bool:
    """Whether the policy's suspended job would have all its cores to itself."""
    if job.suspended_by is not SuspendedBy.POLICY or job.held or job.nodes & ~engine.ledger.up:
        return False
    leaving = [other for other in engine.ledger.jobs.values() if engine.transitions.is_leaving(other)]
    if any(job.nodes & other.nodes for other in leaving):
        return (
            False  # the arbiter hears of an end when the last node is left, though others may be free before
        )
    if job.resume_after is not None and engine.ledger.now <= job.resume_after + _TINY:
        return False  # held down: time is what it needs
    if engine.policies.admit(job, engine.ledger):
        return False  # a limit counts running jobs: room under it is what it needs
    return not any(
        other.state is JobState.RUNNING and share_a_core(job, other) for other in engine.ledger.active
    )


def _slice(engine: Engine) -> Seconds:
    table = engine.config.policy.settings.get("gang/timeslice", {})
    given = float(table.get("timeslice", _SLICE))
    return given if given >= 5.0 else _SLICE


# --------------------------------------------------------------------- 4. the rules of partition_prio
def _seen(job: Job) -> _Seen:
    return _Seen(
        job.partition,
        job.started_at or 0.0,
        job.priority,
        job.qos,
        job.allocation is not None and job.allocation.shared,
        bool(job.required),
    )


def _off(victim: _Seen) -> str:
    mode = victim.partition.preempt_mode
    return "its partition is OFF" if mode is not None and mode.action is PreemptMode.OFF else ""


def _exempt(engine: Engine, victim: _Seen) -> str:
    """Section 1.6: the first QOS that has a time set, partition's before job's unless OverPartQOS."""
    table = engine.config.policy.preemption
    first = engine.ledger.cluster.qos_named(victim.partition.qos)
    second = victim.qos
    if second is not None and "OverPartQOS" in second.flags:
        first, second = second, first
    least = next(
        (qos.exempt_time for qos in (first, second) if qos is not None and qos.exempt_time is not None),
        table.exempt_time or 0.0,
    )
    ran = engine.ledger.now - victim.started_at
    return f"it started {ran:g} s ago and is exempt for {least:g} s" if ran < least - _TINY else ""


def _too_low(engine: Engine, preemptor: Job, victim: _Seen) -> str:
    table: PreemptionTable = engine.config.policy.preemption
    limit = table.min_exempt_priority
    if limit is not None and engine.ledger.rule("min_exempt_priority") and victim.priority > limit:
        return f"its priority {victim.priority} is above min_exempt_priority {limit}"
    flags = set(engine.ledger.preempt_mode.flags)
    for partition in preemptor.partitions:
        flags |= partition.preempt_mode.flags if partition.preempt_mode is not None else set()
    known = ModeFlag.PRIORITY in flags and engine.ledger.rule("priority_modifier")
    if known and preemptor.priority < victim.priority:
        return f"its priority {victim.priority} is above the preemptor's {preemptor.priority}"
    return ""


# ---------------------------------------------------------------------------------------- 6. work
def check_conservation(run: Run, specs: Iterable[JobSpec] = ()) -> None:
    """See that run time over all intervals, less what was thrown away, is the work done.

    :param specs: the workload; jobs that COMPLETED have done exactly their `run_time`.
    :raises InvariantError: naming the job.
    """
    histories = run.recorder.histories
    for job_id, history in histories.items():
        if history.final_state is None:
            continue
        ran = _time_running(history)
        if abs(ran - history.job.lost - history.worked) > _TINY * max(1.0, ran):
            text = f"ran {ran:g} s, lost {history.job.lost:g} s, worked {history.worked:g} s"
            raise broken(run.engine, 6, text, job_id)
    for spec in specs:
        found = histories.get(spec.id)
        if found is None:
            raise broken(run.engine, 3, "it was submitted but is not in the record", spec.id)
        if found.final_state is not JobState.COMPLETED or spec.run_time is None:
            continue
        if abs(found.worked - spec.run_time) > _TINY * max(1.0, spec.run_time):
            text = f"completed after {found.worked:g} s of work; it had {spec.run_time:g} s to do"
            raise broken(run.engine, 6, text, spec.id)
    _check_totals(run)


def _time_running(history: History) -> Seconds:
    return sum(end - start for state, start, end, _, _ in history.intervals if state is JobState.RUNNING)


def _check_totals(run: Run) -> None:
    """The metrics' core-seconds add up as the intervals do."""
    recorder = run.recorder
    used = 0.0
    for history in recorder.histories.values():
        for state, start, end, allocation, _ in history.intervals:
            if state is JobState.RUNNING and allocation is not None:
                used += (end - start) * _cpus(run, allocation)
    shown = recorder.metrics.core_seconds_used
    if abs(used - shown) > _TINY * max(1.0, used):
        raise broken(run.engine, 6, f"{shown:g} core-seconds shown, {used:g} in the intervals")


def _cpus(run: Run, allocation: Allocation) -> int:
    if allocation.cpus is not None:
        return sum(allocation.cpus)
    return sum(run.recorder.cluster.nodes[index].cpus for index in allocation.node_indices)


__all__ = [
    "EXCUSES",
    "RULES",
    "Excused",
    "InvariantChecker",
    "check_conservation",
    "check_invariants",
]
