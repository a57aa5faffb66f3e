"""Hand the state of a run over, and take one over: recovery, reload, and runs that begin with a full machine.

`save` collects what each part of the engine says of itself; `adopt` fills a new engine with it. Jobs are facts
and always count. The memory of the engine's own parts counts where configuration and cluster are the same as they
were; elsewhere each part begins from the jobs. A plugin's memory goes to the plugin of the same name, which has to
cope with one that is a little older than the jobs (docs/adoption.md).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway.errors import ConfigError, Problem, unknown
from makeway.model import (
    Allocation,
    Job,
    JobDraft,
    JobState,
    SuspendedBy,
)
from makeway.registry import guarded
from makeway.state import Standing, State, allocation_of, nodes_from_text
from makeway.worlds.events import Action
from makeway_engine.ledger import put
from makeway_engine.parts import Parts
from makeway_engine.plugins_told import PluginsTold, reading, told_of_starts, told_of_starts_of_gang
from makeway_engine.snapshot import fingerprint, parts_of
from makeway_engine.standing import fill

_RUNNING = JobState.RUNNING
_SUSPENDED = JobState.SUSPENDED


def adopt(engine: Parts, state: State, source: str) -> list[Action]:
    """Fill a new engine; see `makeway_engine.engine.Engine.adopt`."""
    if engine.ledger.jobs:
        raise ConfigError(source, [Problem("", "only an engine without jobs can adopt a state")])
    return _Adoption(engine, state, source).run()


def take_in(engine: Parts, standing: Standing) -> str:
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

    def __init__(self, engine: Parts, state: State, source: str) -> None:
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
        orders = PluginsTold(engine, self._state, self._source, same=self._same).tell(active, leaving)
        self._recall(pending)
        transitions.obey(orders)
        return self._numbered(transitions.actions)

    def _numbered(self, actions: Sequence[Action]) -> list[Action]:
        """Go on with numbers of actions and with what failed where the engine before stood, whatever has changed."""
        engine, ledger = self._engine, self._ledger
        told = self._state.memory.get("engine")
        if isinstance(told, Mapping):
            with reading(self._source, "memory.engine"):
                engine.reports.restore(told.get("reports", {}))
                engine.in_use.recall(told.get("in_use", {}), ledger.jobs)
                engine.vacating.go_on()
                if "transitions" in told:
                    engine.transitions.no_priority_above(told["transitions"]["lowest_priority"])
                if engine.deeds is not None and "deeds" in told:
                    engine.deeds.restore(told["deeds"], ledger.jobs, ledger.cluster)
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
            lambda: told_of_starts(engine.selector, active, None, ledger),
        )
        engine.queue.adopt(pending, ledger.now)
        transitions.changed = True
        if engine.gang is not None:
            gang, ours = engine.gang, [job for job in active if job.spec.het_id is None]
            call = functools.partial(told_of_starts_of_gang, gang, ours, (), None, ledger)
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
        fill(draft, told, self._state.at)
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
        """Refuse a state with suspended jobs that nothing here would let go on."""
        if self._engine.gang is not None:
            return
        stopped = [
            job.id for job in jobs if job.state is _SUSPENDED and job.suspended_by is SuspendedBy.POLICY
        ]
        if stopped:
            shown = ", ".join(stopped[:5]) + (", ..." if len(stopped) > 5 else "")
            text = (
                f"job {shown} was suspended by a policy, and nothing here would let it go on; allowed: a policy.gang "
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
            with reading(self._source, "memory.engine"):
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

    def _recall(self, pending: Sequence[Job]) -> None:
        """Let the engine's own parts go on where they stood, or begin from the jobs."""
        engine, memory = self._engine, self._memory
        if memory is None:
            engine.queue.adopt(pending, self._ledger.now)
            engine.wake_up(pending)
            return
        with reading(self._source, "memory.engine"):
            engine.queue.restore(pending, memory["queue"])
            for name, part in parts_of(engine).items():
                part.restore(memory[name])
            engine.remember(memory["engine"])


def _held(job: Job) -> Allocation:
    assert job.allocation is not None  # a state without is refused
    return job.allocation
