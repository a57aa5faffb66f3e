"""Hand the state of a run over, and take one over: recovery, reload, and runs that begin with a full machine.

`hand_over` collects what each part of the engine says of itself; `adopt` fills a new engine with it. Jobs are facts
and always count. The memory of the engine's own parts counts where configuration and cluster are the same as they
were; elsewhere each part begins from the jobs. A plugin's memory goes to the plugin of the same name, which has to
cope with one that is a little older than the jobs (docs/adoption.md).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from makeway.engine.ledger import Ledger, put
from makeway.errors import ConfigError, MakewayError, Problem, unknown
from makeway.model import (
    Allocation,
    ClusterView,
    Gang,
    GangOrder,
    Job,
    JobDraft,
    JobState,
    Seconds,
    Selector,
    SuspendedBy,
)
from makeway.registry import guarded
from makeway.state import Standing, State, allocation_of, job_now, nodes_from_text, nodes_to_text
from makeway.worlds.events import Action

if TYPE_CHECKING:
    from makeway.engine.engine import Engine

_RUNNING = JobState.RUNNING
_SUSPENDED = JobState.SUSPENDED


# ----------------------------------------------------------------------------------- handing over
def hand_over(engine: Engine, *, jobs: bool = True) -> State:
    """Return the state of a run.

    :param jobs: False: only the instant, the nodes and the memory, for those who keep the jobs themselves.
    """
    ledger = engine.ledger
    cluster = ledger.cluster
    return State(
        at=ledger.now,
        cluster=cluster.name,
        down_nodes=nodes_to_text(cluster, ledger.all_nodes & ~ledger.up),
        jobs=tuple(job_of(engine, job) for job in sorted(ledger.jobs.values(), key=_index)) if jobs else (),
        memory={
            "config": fingerprint(engine),
            "engine": engine_memory(engine),
            **plugins_memory(engine),
        },
    )


def job_of(engine: Engine, job: Job) -> Standing:
    """Return one live job as a state shows it."""
    ledger = engine.ledger
    history = engine.recorder.histories.get(job.id)
    left = ledger.left_early(job)
    return job_now(
        job,
        ledger.cluster,
        first_start_at=history.first_start if history is not None else None,
        left_nodes=nodes_to_text(ledger.cluster, left) if left else "",
        **engine.transitions.departure_of(job),
    )


def engine_memory(engine: Engine) -> dict[str, Any]:
    """Return what the engine's own parts hand over, in values that JSON has."""
    found = {name: part.hand_over() for name, part in parts_of(engine).items()}
    if engine.deeds is not None:
        found["deeds"] = engine.deeds.hand_over(engine.ledger.cluster)
    if reported := engine.reports.hand_over():
        found["reports"] = reported
    return {**found, "queue": engine.queue.hand_over(), "engine": engine.memory()}


def plugins_memory(engine: Engine) -> dict[str, Any]:
    """Return what selector, arbiter and policies hand over, in values that JSON has.

    :raises PolicyError: one hands over something else.
    """
    policies = engine.policies
    found: dict[str, Any] = {}
    for name, hook, part in (
        ("selector", "makeway_selector", engine.selector),
        ("gang", "makeway_gang", engine.gang),
        ("priorities", "makeway_priority", engine.transitions.priorities.prioritizer),
    ):
        if part is not None:
            call = getattr(part, "hand_over", None)
            memory = call() if call is not None else {}
            found[name] = {"plugin": policies.who(hook), "memory": memory}
    if remembered := policies.hand_over(engine.ledger):
        found["policies"] = remembered
    return found


def fingerprint(engine: Engine) -> str:
    """Return a short text that differs where the engine's own memory would not fit."""
    config = engine.config
    tables = (config.cluster, config.node, config.partition, config.qos, config.policy, config.scheduler)
    said = "\n".join(map(repr, (*tables, engine.clockwork)))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def parts_of(engine: Engine) -> dict[str, Any]:
    """Return the parts of an engine that remember something, without the queue."""
    return {
        "ledger": engine.ledger,
        "transitions": engine.transitions,
        "making_way": engine.making_way,
        "placing": engine.placer,
        "passes": engine.schedulers,
        "easy": engine.schedulers.easy,
        "backfill": engine.schedulers.backfill,
    }


# ---------------------------------------------------------------------------------- taking over
def adopt(engine: Engine, state: State, source: str) -> list[Action]:
    """Fill a new engine; see `makeway.engine.engine.Engine.adopt`."""
    if engine.ledger.jobs:
        raise ConfigError(source, [Problem("", "only an engine without jobs can adopt a state")])
    return _Adoption(engine, state, source).run()


def take_in(engine: Engine, standing: Standing) -> str:
    """Take one job into the books of an engine at work, as it stands.

    :returns: why that cannot be; empty: it was done.
    """
    if standing.spec.id in engine.ledger.jobs:
        return "the job is known"
    if engine.reports.has_ended(standing.spec.id):
        return "the job has ended"
    if standing.state.ended:
        return f"the job is {standing.state.value}"
    if standing.state is not JobState.PENDING and standing.allocation is None:
        return "it is not said where the job is"
    try:
        _Adoption(engine, State(at=engine.ledger.now, jobs=(standing,)), "event").take_in()
    except ConfigError as error:
        return "; ".join(problem.message for problem in error.problems)
    return ""


class _Adoption:
    """One engine that takes one state over."""

    def __init__(self, engine: Engine, state: State, source: str) -> None:
        self._engine = engine
        self._ledger = engine.ledger
        self._state = state
        self._source = source
        self._problems: list[Problem] = []
        self._told: dict[str, Standing] = {}
        """Every job as the state shows it, by id."""
        self._same = state.memory.get("config") == fingerprint(engine)
        """Whether configuration and cluster are those under which the state came about."""
        own = state.memory.get("engine") if self._same else None
        self._memory: Mapping[str, Any] | None = own if own is not None and "queue" in own else None
        """What the engine's own parts hand over; None: nothing that fits."""

    def run(self) -> list[Action]:
        """Do it.

        :returns: what the arbiter orders when it sees the jobs.
        """
        engine, ledger = self._engine, self._ledger
        ledger.now = self._state.at
        jobs = self._enter(self._drafts())
        self._check(jobs)
        active, leaving, pending = self._sorted(jobs)
        self._recast(active)
        self._book(active, leaving)
        transitions = engine.transitions
        for job in jobs:
            told = self._told[job.id]
            transitions.adopt(job, told)
            engine.recorder.adopted(
                job, ledger.now, job.started_at if told.first_start_at is None else told.first_start_at
            )
        transitions.actions = []
        orders = self._tell_plugins(active, leaving)
        self._recall(pending)
        transitions.obey(orders)
        return self._numbered(transitions.actions)

    def _numbered(self, actions: Sequence[Action]) -> list[Action]:
        """Go on with numbers of actions and with what failed where the engine before stood, whatever has changed."""
        engine, ledger = self._engine, self._ledger
        told = self._state.memory.get("engine")
        if isinstance(told, Mapping):
            with self._reading("memory.engine"):
                engine.reports.take_over(told.get("reports", {}))
                if "transitions" in told:
                    engine.transitions.no_priority_above(told["transitions"]["lowest_priority"])
                if engine.deeds is not None and "deeds" in told:
                    engine.deeds.take_over(told["deeds"], ledger.jobs, ledger.cluster)
        return list(actions) if engine.deeds is None else engine.deeds.number(actions)

    def take_in(self) -> None:
        """Let the jobs join those that the engine has already."""
        engine, ledger = self._engine, self._ledger
        jobs = self._enter(self._drafts())
        self._check(jobs)
        active, leaving, pending = self._sorted(jobs)
        self._recast(active)
        self._book(active, leaving)
        ledger.version += 1
        transitions = engine.transitions
        for job in jobs:
            transitions.adopt(job, self._told[job.id])
            engine.recorder.adopted(job, ledger.now, job.started_at)
        guarded(
            engine.policies,
            "makeway_selector",
            None,
            lambda: _told_of_starts(engine.selector, active, None, ledger),
        )
        engine.queue.adopt(pending, ledger.now)
        transitions.changed = True
        if engine.gang is not None:
            gang, ours = engine.gang, [job for job in active if job.spec.het_id is None]
            call = functools.partial(_told_of_starts_of_gang, gang, ours, (), None, ledger)
            transitions.obey(guarded(engine.policies, "makeway_gang", None, call))

    # ------------------------------------------------------------------------------- the jobs
    def _drafts(self) -> list[tuple[Standing, JobDraft]]:
        """Make a draft of every job, in the order of the job table.

        :raises ConfigError: with all that does not fit this cluster.
        """
        self._set_nodes()
        jobs = self._state.jobs
        last = max(
            (told.index for told in jobs if told.index is not None),
            default=self._engine.submission.last_index,
        )
        found: list[tuple[Standing, JobDraft]] = []
        seen: set[int] = set()
        for at, told in enumerate(jobs):
            index = told.index
            if index is None:
                last += 1
                index = last
            elif index in seen:
                self._problems.append(Problem(f"jobs[{at}].index", f"{index} was there before"))
            seen.add(index)
            found.append((told, self._draft(told, index, f"jobs[{at}]")))
        if self._problems:
            raise ConfigError(self._source, self._problems)
        found.sort(key=lambda each: each[1].index)
        return found

    def _set_nodes(self) -> None:
        ledger, told = self._ledger, self._state.down_nodes
        if told is None:
            return
        try:
            ledger.up = ledger.all_nodes & ~nodes_from_text(ledger.cluster, told)
        except ValueError as error:
            self._problems.append(Problem("down_nodes", str(error)))

    def _draft(self, told: Standing, index: int, where: str) -> JobDraft:
        """Return a job as the state shows it; what is wrong with it is kept in mind."""
        draft, problem = self._engine.submission.draft(told.spec, index)
        if problem:
            self._problems.append(Problem(f"{where}.spec", f"job {told.spec.id}: {problem}"))
        cluster = self._ledger.cluster
        if told.partition:
            partition = cluster.partition(told.partition)
            if partition is None:
                names = [each.name for each in cluster.partitions]
                text = unknown("partition", told.partition, names)
                self._problems.append(Problem(f"{where}.partition", f"job {told.spec.id}: {text}"))
            else:
                draft.partition = partition
        key = "allocation"
        try:
            if told.allocation is not None:
                draft.allocation = allocation_of(cluster, told.allocation)
            key = "left_nodes"
            nodes_from_text(cluster, told.left_nodes)
            key = "asked_nodes"
            draft.asked_nodes = nodes_from_text(cluster, told.asked_nodes)
        except ValueError as error:
            self._problems.append(Problem(f"{where}.{key}", f"job {told.spec.id}: {error}"))
        _fill(draft, told, self._state.at)
        return draft

    def _enter(self, drafts: Sequence[tuple[Standing, JobDraft]]) -> list[Job]:
        """Enter the jobs into the job table; those without a priority get one, lower than all that were handed out."""
        transitions = self._engine.transitions
        jobs = []
        for told, draft in drafts:
            if told.state is JobState.COMPLETING and not told.leaving:
                told = attrs.evolve(told, leaving=JobState.COMPLETED.value)
            self._told[draft.id] = told
            jobs.append(self._ledger.enter(draft))
            if told.priority and told.spec.priority is None:
                transitions.no_priority_above(told.priority + told.spec.nice - 1)
        for job in jobs:
            if self._told[job.id].priority is None:
                put(job, priority=transitions.priorities.first(job))
            elif job.spec.priority:
                transitions.priorities.given.add(job.id)
        return jobs

    def _check(self, jobs: Sequence[Job]) -> None:
        """Refuse a state with suspended jobs that nobody here would let go on."""
        if self._engine.gang is not None:
            return
        stopped = [
            job.id for job in jobs if job.state is _SUSPENDED and job.suspended_by is SuspendedBy.POLICY
        ]
        if stopped:
            shown = ", ".join(stopped[:5]) + (", ..." if len(stopped) > 5 else "")
            text = (
                f"job {shown} was suspended by a policy, and here nobody would let it go on; allowed: a policy.gang "
                "that does, 'gang' among the preempt modes, or to wait until no job is suspended"
            )
            raise ConfigError(self._source, [Problem("policy.gang", text)])

    def _sorted(self, jobs: Sequence[Job]) -> tuple[list[Job], list[Job], list[Job]]:
        """Return the active jobs in the order in which they started, those that are leaving, and those that wait."""
        leaving = [job for job in jobs if self._told[job.id].leaving]
        pending = [job for job in jobs if job.state is JobState.PENDING]
        gone = set(map(id, (*leaving, *pending)))
        active = [job for job in jobs if id(job) not in gone]
        order: Mapping[str, int] = {}
        if self._memory is not None:
            with self._reading("memory.engine"):
                order = {job_id: at for at, job_id in enumerate(self._memory["ledger"]["started"])}
        active.sort(key=lambda job: (job.started_at, order.get(job.id, len(order)), job.index))
        return active, leaving, pending

    def _recast(self, active: Sequence[Job]) -> None:
        """Let the selector see in its own terms what another one has placed."""
        recast = getattr(self._engine.selector, "recast", None)
        told = self._state.memory.get("selector")
        own = isinstance(told, Mapping) and told.get("plugin") == self._engine.policies.who(
            "makeway_selector"
        )
        if recast is None or own:
            return
        for job in active:
            call = functools.partial(recast, job, _held(job), self._ledger)
            put(job, allocation=guarded(self._engine.policies, "makeway_selector", job, call))

    def _book(self, active: Sequence[Job], leaving: Sequence[Job]) -> None:
        ledger = self._ledger
        for job in active:
            ledger.adopt_active(job, _held(job))
        for job in leaving:
            left = nodes_from_text(ledger.cluster, self._told[job.id].left_nodes)
            ledger.adopt_leaving(job, _held(job), left)

    # ------------------------------------------------------------------------------ the memory
    @contextlib.contextmanager
    def _reading(self, where: str) -> Iterator[None]:
        """Say of memory that cannot be read that it cannot."""
        try:
            yield
        except MakewayError:
            raise
        except Exception as error:  # whatever comes of a file that somebody has changed
            text = f"it cannot be read ({type(error).__name__}: {error}); leave it out to begin from the jobs alone"
            raise ConfigError(self._source, [Problem(where, text)]) from error

    def _recall(self, pending: Sequence[Job]) -> None:
        """Let the engine's own parts go on where they stood, or begin from the jobs."""
        engine, memory = self._engine, self._memory
        if memory is None:
            engine.queue.adopt(pending, self._ledger.now)
            engine.wake_up(pending)
            return
        with self._reading("memory.engine"):
            engine.queue.take_over(pending, memory["queue"])
            for name, part in parts_of(engine).items():
                part.take_over(memory[name])
            engine.remember(memory["engine"])

    def _tell_plugins(self, active: Sequence[Job], leaving: Sequence[Job]) -> Sequence[GangOrder]:
        memory, policies = self._state.memory, self._engine.policies
        with self._reading("memory.policies"):
            policies.take_over(memory.get("policies") or {}, self._ledger)
        selector = memory.get("selector") if self._same else None
        self._tell_selector(active, _of_plugin(selector, policies.who("makeway_selector")))
        self._tell_prioritizer(_of_plugin(memory.get("priorities"), policies.who("makeway_priority")))
        if self._engine.gang is None:
            return ()
        seen = [[job for job in jobs if job.spec.het_id is None] for jobs in (active, leaving)]
        return self._tell_gang(seen[0], seen[1], _of_plugin(memory.get("gang"), policies.who("makeway_gang")))

    def _tell_prioritizer(self, memory: Mapping[str, Any] | None) -> None:
        take_over = getattr(self._engine.transitions.priorities.prioritizer, "take_over", None)
        if memory is not None and take_over is not None:
            with self._reading("memory.priorities"):
                take_over(memory, self._ledger)

    def _tell_selector(self, active: Sequence[Job], memory: Mapping[str, Any] | None) -> None:
        selector, ledger = self._engine.selector, self._ledger
        take_over = getattr(selector, "take_over", None)
        if take_over is None:
            take_over = functools.partial(_told_of_starts, selector)
        call = functools.partial(take_over, active, memory, ledger)
        if memory is not None:
            with self._reading("memory.selector"):
                call()
        else:
            guarded(self._engine.policies, "makeway_selector", None, call)

    def _tell_gang(
        self, active: Sequence[Job], leaving: Sequence[Job], memory: Mapping[str, Any] | None
    ) -> Sequence[GangOrder]:
        gang, ledger = self._engine.gang, self._ledger
        assert gang is not None
        take_over = getattr(gang, "take_over", None)
        if take_over is None:
            take_over = functools.partial(_told_of_starts_of_gang, gang)
        call = functools.partial(take_over, active, leaving, memory, ledger)
        if memory is None:
            return guarded(self._engine.policies, "makeway_gang", None, call) or ()
        with self._reading("memory.gang"):
            return call() or ()


def _told_of_starts(selector: Selector, active: Sequence[Job], memory: object, view: ClusterView) -> None:
    """Tell a selector that knows nothing of adoption what has happened, in order."""
    del memory, view
    for job in active:
        selector.placed(job)
    for job in sorted(active, key=lambda job: job.suspended_at or 0.0):
        if job.state is _SUSPENDED:
            selector.suspended(job)


def _told_of_starts_of_gang(
    gang: Gang, active: Sequence[Job], leaving: Sequence[Job], memory: object, ledger: Ledger
) -> list[GangOrder]:
    """Tell an arbiter that knows nothing of adoption of the starts, in order, each at its instant.

    First of those that run, so that they take their places before those that wait for one. It does not hear of jobs
    that a person suspended: it was told that they had ended.
    """
    del leaving, memory
    orders: list[GangOrder] = []
    now = ledger.now
    for job in sorted(active, key=lambda job: job.state is _SUSPENDED):
        if job.suspended_by is not SuspendedBy.ADMIN:
            ledger.now = _first(job.started_at, now)
            orders += gang.started(job, ledger)
    ledger.now = now
    return orders


# ------------------------------------------------------------------------------------ details
_AS_THEY_ARE = (
    *(
        "eligible_since",
        "started_at",
        "resumed_at",
        "end_at",
        "suspended_at",
        "suspended_by",
        "restarts",
        "preemptions",
    ),
    *(
        "preemptions_before",
        "preempted_at",
        "stopped",
        "resume_after",
        "preempt_at",
        "asked_at",
        "checkpointed",
    ),
    *("begun_with", "marked_saved", "lost", "state"),
)
"""Fields of a job that a state says as they are."""


def _fill(draft: JobDraft, told: Standing, now: Seconds) -> None:
    """Set the fields of a job; what the state leaves out follows from the rest."""
    spec = told.spec
    for name in _AS_THEY_ARE:
        setattr(draft, name, getattr(told, name))
    draft.submit_at = _first(told.submit_at, spec.submit_at)
    draft.eligible_at = _first(told.eligible_at, max(draft.submit_at, _first(spec.begin_at, draft.submit_at)))
    draft.marks = frozenset(told.marks)
    draft.priority = told.priority or 0
    draft.ran = told.ran or 0.0
    waits = told.state is JobState.PENDING
    draft.starts = told.starts if told.starts is not None else told.restarts + (not waits)
    if waits:
        draft.reason = told.reason
        return
    draft.reason = told.reason or "None"
    draft.started_at = _first(told.started_at, now)
    if told.state is _SUSPENDED:
        draft.suspended_at = _first(told.suspended_at, now)
        draft.suspended_by = told.suspended_by or SuspendedBy.POLICY
        if told.ran is None:
            draft.ran = max(0.0, draft.suspended_at - draft.started_at - draft.stopped)
    elif told.state is _RUNNING and told.resumed_at is None:
        since = draft.started_at + draft.stopped
        draft.resumed_at = since if told.ran is None else now
    if told.state is _RUNNING and told.end_at is None and draft.time_limit is not None:
        ran = draft.ran + now - _first(draft.resumed_at, now)
        draft.end_at = now + max(0.0, draft.time_limit - ran)


def _first(value: Seconds | None, otherwise: Seconds) -> Seconds:
    return otherwise if value is None else value


def _held(job: Job) -> Allocation:
    assert job.allocation is not None  # a state without is refused
    return job.allocation


def _of_plugin(told: Any, plugin: str) -> Mapping[str, Any] | None:
    """Return what a plugin of this name handed over; None: it was another, or nobody."""
    if not isinstance(told, Mapping) or told.get("plugin") != plugin:
        return None
    memory = told.get("memory")
    return memory if isinstance(memory, Mapping) and memory else None


def _index(job: Job) -> int:
    return job.index
