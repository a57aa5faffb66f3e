"""Check after every step what may never happen (the house plan, "What may never happen").

`InvariantChecker` is meant for ``Options.after_step`` and remembers what it has seen; `check_invariants` looks
at one instant. Where real Slurm does what may never happen, the spec says so: these excuses are listed in
`EXCUSES`, and the checker keeps a note of each time that it granted one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from makeway import bitmap, licences
from makeway.bitmap import CoreBits, NodeBits
from makeway.engine.engine import Engine
from makeway.errors import InvariantError
from makeway.events import Command, Event
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
from makeway.replay import Run

_TINY = 1e-6
_SWEEP_EVERY = 64
"""Steps between two looks at the whole queue, where it is long."""
_SHORT_QUEUE = 64
_SLICE = 30.0

EXCUSES: Mapping[str, str] = {
    "oversubscribed": "without gang, so many jobs as the partition says run on one node (gang 4.1.2)",
    "equal tiers": "gang does not slice partitions of one tier against each other (gang 4.3.9, 1.4)",
    "heterogeneous": "gang does not see heterogeneous jobs (gang 1.1, preemption 1.9)",
    "resumed by a person": "a person's resume may run beside the holder (gang 2.4, preemption 4.11)",
    "stale shadow": "a tick that swaps shadows leaves the lower row as it was (gang 3.5)",
    "waits to be killed": "gang kills at its next start event or tick (gang 2.3, 2.7)",
    "cpus are counted": "with CR_CPU gang adds up CPUs and does not compare cores (gang 1.2)",
    "suspension frees memory": "select/linear forgets the memory of suspended jobs (gang 4.2.6)",
}
"""What real Slurm does although it may never happen; "gang" and "preemption" are the two specs for Slurm."""


@attrs.frozen
class Excused:
    """One time that the spec excused what would else be an error."""

    at: Seconds
    excuse: str
    """A key of `EXCUSES`."""
    jobs: tuple[str, ...]


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
    :returns: what the spec excuses.
    :raises InvariantError: naming rule, instant and jobs.
    """
    known = frozenset(resumed)
    excused = [*_check_cores(engine, known), *_check_memory(engine, known)]
    _check_licences(engine)
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
            self.excused += _check_cores(engine, known)
            self.excused += _check_memory(engine, known)
            _check_licences(engine)
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
                raise _broken(run.engine, 5, "it will never be resumed", job.id)
        check_conservation(run, specs)

    # ----------------------------------------------------------------------- 4. who may be a victim
    def _judge_preemptions(self, engine: Engine) -> None:
        entries = engine.recorder.preemptions
        judge = self._allowed or self._partition_prio
        for entry in entries[self._preemptions :]:
            history = engine.recorder.histories.get(entry.victim)
            if history is None:
                continue
            objection = judge(engine, entry, history.job)
            if objection:
                raise _broken(engine, 4, objection, entry.victim, entry.preemptor or "nobody")
        self._preemptions = len(entries)

    def _partition_prio(self, engine: Engine, entry: Preemption, victim: Job) -> str:
        """Say what forbids it (preemption 1.3, 1.6, 1.7); empty: nothing."""
        basis = engine.ledger.preempt_basis
        if basis not in (PreemptBasis.PARTITION, PreemptBasis.NOTHING):
            return ""
        by_gang = engine.gang is not None
        if entry.preemptor is None:
            # Parts of heterogeneous jobs end with their own grace time (preemption 4.3).
            excused = by_gang or victim.spec.het_id is not None
            return "" if excused else "nobody displaced it"
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
            return ""  # gang stops whoever is in a shadow; candidates were not asked (preemption 4.6)
        if by_gang and seen.required and not engine.ledger.is_active(preemptor):
            return ""  # it took a node that it requires and that the other was leaving (preemption 5.0 no. 3)
        return _off(seen) or _exempt(engine, seen) or _too_low(engine, preemptor, seen)

    def _look(self, engine: Engine) -> None:
        active = engine.ledger.active
        self._seen = {job.id: _seen(job) for job in active}
        for job in active:
            if job.state is JobState.SUSPENDED:
                self._resumed.discard(job.id)

    # ------------------------------------------------------------------------- 5. nobody is forgotten
    def _check_stuck(self, engine: Engine) -> None:
        now = engine.ledger.now
        patience = (_slice(engine) if self._patience is None else self._patience) + _TINY
        stuck = {}
        for job in engine.ledger.active:
            if job.state is JobState.SUSPENDED and _could_run(engine, job):
                since = self._stuck.get(job.id, now)
                if now - since > patience:
                    raise _broken(engine, 5, f"suspended with all it needs free since {since:g} s", job.id)
                stuck[job.id] = since
        self._stuck = stuck


# -------------------------------------------------------------------- 1. two active jobs on one core
def _check_cores(engine: Engine, resumed: frozenset[str]) -> Iterator[Excused]:
    """Yield what is excused."""
    ledger = engine.ledger
    seen: NodeBits = 0
    double: NodeBits = 0
    for job in ledger.active:
        if job.state is JobState.RUNNING and job.allocation is not None:
            double |= seen & job.allocation.nodes
            seen |= job.allocation.nodes
    if not double:
        return
    running = [j for j in ledger.active if j.state is JobState.RUNNING and j.nodes & double]
    for at, job in enumerate(running):
        for other in running[at + 1 :]:
            if _share_a_core(job, other):
                excuse = _overlap_excuse(engine, job, other, resumed)
                if not excuse:
                    raise _broken(engine, 1, "two active jobs on one core", job.id, other.id)
                yield Excused(ledger.now, excuse, (job.id, other.id))


def _share_a_core(job: Job, other: Job) -> bool:
    common = job.nodes & other.nodes
    if not common:
        return False
    one, two = job.allocation, other.allocation
    if one is None or two is None or one.cores is None or two.cores is None:
        return True
    return any(_cores_on(one, at) & _cores_on(two, at) for at in bitmap.indices(common))


def _cores_on(allocation: Allocation, node: int) -> CoreBits:
    assert allocation.cores is not None
    return allocation.cores[allocation.node_indices.index(node)]


def _overlap_excuse(engine: Engine, job: Job, other: Job, resumed: frozenset[str]) -> str:
    """Return the excuse; empty: there is none."""
    ledger = engine.ledger
    if job.id in resumed or other.id in resumed:
        return "resumed by a person"
    if engine.gang is None:
        return "oversubscribed" if _oversubscribed(engine, job, other) else ""
    if job.spec.het_id is not None or other.spec.het_id is not None:
        return "heterogeneous"
    words = {word.upper() for word in ledger.select_parameters}
    if words & {"CR_CPU", "CR_CPU_MEMORY"} and ledger.rule("gang_counts_cpus"):
        return "cpus are counted"
    if job.partition is other.partition:
        return ""
    if job.partition.priority_tier == other.partition.priority_tier:
        return "equal tiers"
    lower, upper = sorted((job, other), key=lambda one: one.partition.priority_tier)
    if ledger.mode_of(lower).frees_all and lower.id in _doomed(engine):
        return "waits to be killed"
    if lower.id in engine.transitions.graces and not ledger.rule("gang_skips_grace"):
        return "in its grace time"
    if ledger.rule("stale_shadows") and _is_sliced(engine, upper):
        return "stale shadow"
    return ""


def _oversubscribed(engine: Engine, job: Job, other: Job) -> bool:
    """Whether all jobs in common places share them, no more than partitions allow.

    Some selectors count the jobs of a node, over all partitions; others the jobs of one partition on a core (4.5).
    """
    for index in bitmap.indices(job.nodes & other.nodes):
        there = [
            one for one in engine.ledger.active if one.nodes >> index & 1 and one.state is JobState.RUNNING
        ]
        if getattr(engine.selector, "shares_whole_nodes", False):
            most = max(one.partition.oversubscribe.count for one in there)
            if len(there) > most or not all(map(_is_shared, there)):
                return False
        elif not _rows_allow(there, index, _core_bits(job, index) & _core_bits(other, index)):
            return False
    return True


def _rows_allow(there: Sequence[Job], node: int, cores: CoreBits) -> bool:
    """Whether no partition has more jobs on one of `cores` than it allows."""
    for core in bitmap.each(cores):
        counts: dict[str, int] = {}
        for job in there:
            if _core_bits(job, node) & core:
                name = job.partition.name
                counts[name] = counts.get(name, 0) + 1
                if not _is_shared(job) or counts[name] > job.partition.oversubscribe.count:
                    return False
    return True


def _is_shared(job: Job) -> bool:
    return job.allocation is not None and job.allocation.shared


_ALL_CORES = bitmap.full(64)
"""Stands for the cores of a whole node, where only those that another job holds are looked at."""


def _core_bits(job: Job, node: int) -> CoreBits:
    allocation = job.allocation
    if allocation is None or allocation.cores is None:
        return _ALL_CORES
    return _cores_on(allocation, node)


def _is_sliced(engine: Engine, job: Job) -> bool:
    """Whether `job` takes turns with another job of its partition, if only with one that is leaving."""
    ledger = engine.ledger
    leaving = [ledger.jobs[job_id] for job_id in engine.transitions._leaving]
    return any(
        other is not job and other.partition is job.partition and _share_a_core(job, other)
        for other in (*ledger.active, *leaving)
    )


def _doomed(engine: Engine) -> set[str]:
    """Return the jobs that the built-in arbiter will kill or requeue when it acts next."""
    return {member.job.id for member in getattr(engine.gang, "_doomed", ())}


# -------------------------------------------------------------------------------------- 2. memory
def _check_memory(engine: Engine, resumed: frozenset[str]) -> Iterator[Excused]:
    """Yield what is excused."""
    ledger = engine.ledger
    used: dict[int, int] = {}
    given_back = bool(getattr(engine.selector, "suspension_frees_memory", False))
    for job in ledger.active:
        if given_back and job.state is JobState.SUSPENDED:
            continue
        allocation = job.allocation
        if allocation is not None and allocation.memory_mb is not None:
            for index, amount in zip(allocation.node_indices, allocation.memory_mb, strict=True):
                used[index] = used.get(index, 0) + amount
    for index, amount in used.items():
        node = ledger.cluster.nodes[index]
        if amount <= node.memory_mb:
            continue
        there = [job for job in ledger.active if job.nodes >> index & 1]
        names = tuple(job.id for job in there)
        if getattr(engine.selector, "shares_whole_nodes", False) and _was_forgotten(engine, there):
            yield Excused(ledger.now, "suspension frees memory", names)
            continue
        if resumed.intersection(names):
            yield Excused(ledger.now, "resumed by a person", names)
            continue
        if engine.gang is not None and any(job.spec.het_id is not None for job in there):
            yield Excused(ledger.now, "heterogeneous", names)  # removed in a simulation, never stopped
            continue
        text = f"{amount} MB on {node.name}, which has {node.memory_mb} MB"
        raise _broken(engine, 2, text, *names)


def _check_licences(engine: Engine) -> None:
    """Suspended jobs keep theirs (preemption 4.6 and 5.3)."""
    ledger = engine.ledger
    if not ledger.license_holders:
        return
    used: dict[str, int] = {}
    for job in ledger.active:
        for name, count in licences.held(job).items():
            used[name] = used.get(name, 0) + count
    for name, count in used.items():
        there = ledger.cluster.licenses.get(name, 0)
        if count > there:
            holders = [job.id for job in ledger.active if name in licences.held(job)]
            raise _broken(
                engine, 2, f"{count} of licence {name} in use, of which there are {there}", *holders
            )


def _was_forgotten(engine: Engine, jobs: Sequence[Job]) -> bool:
    """Whether select/linear may have taken the memory of one of `jobs` for free (gang 4.2.6)."""
    if any(job.suspended_by is SuspendedBy.ADMIN for job in jobs):
        return True
    if not engine.ledger.rule("linear_suspend_frees_memory") or engine.gang is None:
        return False
    # Whoever was to be suspended may still run, where gang stopped the newcomer or a shadow is stale.
    tiers = {job.partition.priority_tier for job in jobs}
    return len(tiers) > 1 or any(job.state is JobState.SUSPENDED for job in jobs)


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
        raise _broken(engine, 3, text)
    if metrics.jobs != len(ledger.jobs) + metrics.ended:
        text = f"{metrics.jobs} submitted, {len(ledger.jobs)} live, {metrics.ended} ended"
        raise _broken(engine, 3, text)


def _check_books(engine: Engine) -> None:
    """See that nodes are busy exactly where a job holds them or is leaving them."""
    ledger = engine.ledger
    held: NodeBits = ledger.completing
    for job in ledger.active:
        held |= job.nodes
    idle = ledger.up & ~held
    if idle != ledger.idle:
        odd = engine.recorder.node_list(idle ^ ledger.idle)
        raise _broken(engine, 3, f"nodes {odd} are held by nobody, or idle while held")


def _check_every_job(engine: Engine) -> None:
    ledger, queue, transitions = engine.ledger, engine.queue, engine.transitions
    histories = engine.recorder.histories
    for job in ledger.jobs.values():
        places = (job in queue, ledger.is_active(job), transitions.is_leaving(job))
        if places.count(True) != 1:
            raise _broken(engine, 3, f"waits, active, leaving: {places}", job.id)
        if places[0] and not (job.state is JobState.PENDING and job.reason):
            raise _broken(engine, 3, f"it waits, but is {job.state.value}, {job.reason!r}", job.id)
        if places[1] and not (job.state.active and job.allocation is not None):
            raise _broken(engine, 3, f"it is active, but {job.state.value}", job.id)
        if places[2] and job.allocation is None:
            raise _broken(engine, 3, "it is leaving, but holds no nodes", job.id)
        history = histories.get(job.id)
        if history is None or history.final_state is not None or history.state is not job.state:
            shown = "nothing" if history is None else (history.final_state or history.state).value
            raise _broken(engine, 3, f"it is {job.state.value}; the record has {shown}", job.id)
    for job_id, history in histories.items():
        if history.final_state is None and job_id not in ledger.jobs:
            raise _broken(engine, 3, "the record thinks it lives; the table has lost it", job_id)


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
    if engine.policies.admit((job,), engine.ledger):
        return False  # a limit counts running jobs: room under it is what it needs
    return not any(
        other.state is JobState.RUNNING and _share_a_core(job, other) for other in engine.ledger.active
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
            raise _broken(run.engine, 6, text, job_id)
    for spec in specs:
        found = histories.get(spec.id)
        if found is None:
            raise _broken(run.engine, 3, "it was submitted but is not in the record", spec.id)
        if found.final_state is not JobState.COMPLETED or spec.run_time is None:
            continue
        if abs(found.worked - spec.run_time) > _TINY * max(1.0, spec.run_time):
            text = f"completed after {found.worked:g} s of work; it had {spec.run_time:g} s to do"
            raise _broken(run.engine, 6, text, spec.id)
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
        raise _broken(run.engine, 6, f"{shown:g} core-seconds shown, {used:g} in the intervals")


def _cpus(run: Run, allocation: Allocation) -> int:
    if allocation.cpus is not None:
        return sum(allocation.cpus)
    return sum(run.recorder.cluster.nodes[index].cpus for index in allocation.node_indices)


RULES: Mapping[int, str] = {
    1: "cores",
    2: "memory",
    3: "no job is lost",
    4: "allowed victims",
    5: "suspended in vain",
    6: "work is counted",
}
"""The plan's numbers."""


def _broken(engine: Engine, rule: int, text: str, *jobs: str) -> InvariantError:
    about = f" (jobs {', '.join(jobs)})" if jobs else ""
    return InvariantError(f"rule {rule}, {RULES[rule]}, at {engine.ledger.now:g} s: {text}{about}")


__all__ = [
    "EXCUSES",
    "RULES",
    "Excused",
    "InvariantChecker",
    "check_conservation",
    "check_invariants",
]
