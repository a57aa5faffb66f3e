"""``world/slurm``: some nodes of a running Slurm, as the engine sees them.

What Slurm shows is compared with what the engine was told; every difference becomes an event. After a crash nothing
is known of what the engine was told, so that it is told again: to an engine, what is no news changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import attrs

from makeway.bitmap import NodeBits
from makeway.errors import ConfigError, Problem
from makeway.hostlist import fold_hostlist
from makeway.model import Cluster, JobState, Seconds
from makeway.worlds.api import Moment, Seen, State, Survey
from makeway.worlds.events import (
    Action,
    Adopted,
    Cleaned,
    Command,
    Event,
    Finished,
    Kill,
    NodesDrained,
    NodesUp,
    Noticed,
    Performed,
    Resume,
    Reused,
    Start,
    Started,
    Submitted,
    Suspend,
)
from makeway_slurm_world.driving.bearers import Bearers
from makeway_slurm_world.driving.components import is_whole
from makeway_slurm_world.driving.desk import Desk, Task
from makeway_slurm_world.driving.door import Door
from makeway_slurm_world.driving.eyes import Eyes
from makeway_slurm_world.driving.lease import Lease
from makeway_slurm_world.driving.notebook import Notebook
from makeway_slurm_world.driving.nudge import SETTLE, Nudge
from makeway_slurm_world.driving.settings import Settings
from makeway_slurm_world.reading.conf import out_of_service
from makeway_slurm_world.reading.jobs import LiveJob, Zone
from makeway_slurm_world.talking.runner import Away, Hand, SlurmError
from makeway_slurm_world.talking.words import Question

_log = logging.getLogger("makeway")
_BY = "Slurm"
_ALL_NODES = Question(("sinfo", "-h", "-a", "-N", "-o", "%N"))
_NATURAL = (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)
_THERE = (JobState.RUNNING, JobState.SUSPENDED)


@attrs.define
class Told:
    """How the engine believes a job to stand."""

    state: JobState
    """PENDING, RUNNING or SUSPENDED; what was asked for counts as done."""
    incarnation: int = 0
    held: bool = False
    elsewhere: bool = False
    """Whether Slurm runs it where makeway does not decide; the engine holds it meanwhile."""
    nodes: tuple[str, ...] = ()
    priority: int = 0


class SlurmWorld:
    """Starts and displaces jobs on some nodes of a running Slurm; see `makeway.worlds.api.World`."""

    def __init__(
        self, cluster: Cluster, settings: Settings | None, state: State, hand: Hand | None = None
    ) -> None:
        """Take the lease and have a first look.

        :param hand: runs Slurm's commands; None: those in PATH.
        :raises ConfigError: the settings name no nodes.
        :raises LeaseError: the lease cannot be had.
        :raises SlurmError: the controller does not answer.
        """
        self._settings = settings or Settings()
        if not self._settings.nodes:
            raise ConfigError(
                "config", [Problem("world.settings.nodes", "missing; the nodes to decide over")]
            )
        self._cluster = cluster
        self._clock = state.clock
        self._hand = hand or Hand()
        self._zone = Zone(wall=state.clock.wall() - state.clock.now())
        self._mine = frozenset(node.name for node in cluster.nodes)
        self.notebook = Notebook(state.directory)
        self._door = Door(cluster, self.notebook)
        name, nodes = self._settings.reservation, fold_hostlist(sorted(self._mine))
        self._lease = Lease(self._hand, self.notebook, name, nodes, self._settings.lease)
        self._eyes = Eyes(self._hand, self._zone, self._mine, name, self._settings.full_look)
        everything = self._hand.ask(_ALL_NODES).out.split()
        self._desk = Desk(
            cluster, self._settings, self._hand, self._eyes, self.notebook, frozenset(everything)
        )
        self._told: dict[str, Told] = {}
        self._bearers = Bearers()
        self._out: NodeBits = 0
        """Nodes of which the engine was told that they get no jobs."""
        self._events: list[Event] = []
        self._nudge = Nudge(self._settings.nudge)
        self._settle: Seconds = SETTLE
        """Seconds until the next look, while something is under way whose end is not told."""
        self._poll_at: Seconds = 0.0
        self._fresh = True
        """Whether the engine may know jobs of an earlier daemon, and is told everything again."""
        self.away = ""
        """Why Slurm cannot be seen; empty: it can."""
        self._lease.take(self._clock.now())
        self._look(self._clock.now())

    # ----------------------------------------------------------------------------- performing
    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Begin `actions`."""
        for action in actions:
            told = self._told.setdefault(action.job.id, Told(JobState.PENDING))
            told.incarnation = action.incarnation
            if isinstance(action, Start):
                told.state = JobState.RUNNING
                self._events = [each for each in self._events if not _puts_back(each, action.job.id)]
            elif isinstance(action, Suspend):
                told.state = JobState.SUSPENDED
            elif isinstance(action, Resume):
                told.state = JobState.RUNNING
            self._desk.take(action, now)
        self._advance(now)

    def _advance(self, now: Seconds) -> None:
        try:
            self._note(self._desk.advance(now))
            self._desk.sweep()
        except Away as error:
            self._gone(error)

    def _note(self, events: Sequence[Event]) -> None:
        """Keep events for the engine, and remember what it will believe."""
        for event in events:
            task = self._desk.tasks.get(getattr(event, "serial", 0))
            if task is not None and task.phase == "failed":
                self._failed(task)
            elif isinstance(event, Cleaned):
                self._left(event.job_id)
        self._events += events

    def _failed(self, task: Task) -> None:
        told = self._told.get(task.action.job.id)
        if told is None:
            return
        if isinstance(task.action, Start):
            told.state = JobState.PENDING
            self._eyes.again(task.action.job.id)
        elif isinstance(task.action, Suspend):
            told.state = JobState.RUNNING
        elif isinstance(task.action, Resume):
            told.state = JobState.SUSPENDED

    def _left(self, job_id: str) -> None:
        told = self._told.get(job_id)
        if told is not None:
            told.state = JobState.PENDING
            self._eyes.again(job_id)

    # --------------------------------------------------------------------------------- waiting
    def wake(self) -> None:
        """Make a `wait` that is under way return; called from any thread."""
        self._clock.wake()

    def wait(self, until: Seconds | None) -> Moment:
        """Look at Slurm every second or so, until something has happened or `until` has come.

        A hint ends the wait.
        """
        now = self._clock.now()
        if not self._events and now < self._poll_at:
            ends = [at for at in (until, self._poll_at, self._desk.next_at()) if at is not None]
            self._nudge.wait(self._clock, min(ends))
            now = self._clock.now()
        nudged = self._nudge.came()
        if nudged or now >= self._poll_at:
            self._look(now)
            self._look_soon(now, nudged=nudged)
        self._advance(now)
        events, self._events = self._events, []
        return now, events

    def _look_soon(self, now: Seconds, *, nudged: bool) -> None:
        """Let a look follow soon after a hint, which tells of an end before it is complete, and while jobs complete.

        One that takes long, as on a node that fails, is looked for ever less often.
        """
        if nudged:
            self._settle = SETTLE
        if nudged or self._eyes.leaving:
            self._poll_at = min(self._poll_at, now + self._settle)
            self._settle *= 2
        else:
            self._settle = SETTLE

    def _look(self, now: Seconds) -> None:
        self._poll_at = now + min(self._settings.poll, self._settings.lease / 3)  # a look renews the lease
        if self._eyes.blind:
            self._lease.renew_at = (
                now  # an outage may have cost the lease: answers are not durable (slurm-live 4.2)
            )
        try:
            wrong = self._lease.renew(now)
            if wrong:
                _log.error("%s", wrong)
            changed = self._eyes.look(now)
            if not self._eyes.leased:
                self._lease.take(now)
                self._eyes.leased = True
        except SlurmError as error:
            self._gone(error)
            return
        if self.away:
            _log.warning("Slurm answers again; everything was read anew")
            self.away = ""
        try:
            for job_id in sorted(changed, key=_order):
                self._events += self._digest(job_id, now)
            self._events += self._digest_nodes()
            self._fresh = False
        except Away as error:
            self._gone(error)

    def _gone(self, error: SlurmError) -> None:
        self._eyes.blind = True
        if not self.away:
            _log.warning("%s; nothing is started or displaced until it answers", error)
        self.away = str(error)

    # -------------------------------------------------------------------------------- digesting
    def _digest(self, job_id: str, now: Seconds) -> Iterator[Event]:
        """Yield what the engine has to be told of one job."""
        job = self._eyes.jobs.get(job_id)
        told = self._told.get(job_id)
        if job is not None and self._bearers.is_another(job):
            yield self._reused(job_id, now)
        elif told is None:
            if job is not None:
                yield from self._stranger(job, now)
        elif told.state is JobState.PENDING:
            yield from self._of_waiting(job_id, job, told)
        else:
            yield from self._of_active(job_id, job, told, now)
        if job is None:
            self.notebook.forget(job_id)

    def _reused(self, job_id: str, now: Seconds) -> Event:
        """Slurm lost a job and gave its number to another one, which comes in at the next look."""
        _log.warning("job %s is another one than before: Slurm lost that, and gave its number anew", job_id)
        self._desk.drop(job_id, now)
        self._told.pop(job_id, None)
        self.notebook.forget(job_id)
        self._eyes.again(job_id)
        return Reused(job_id, _BY)

    def _stranger(self, job: LiveJob, now: Seconds) -> Iterator[Event]:
        """A job of which this world has told nothing yet."""
        parts = self._eyes.parts(job)
        opened = self.notebook.pages.starts.get(job.id)
        if opened is not None and all(self._is_asked(part) for part in parts):
            self._told[job.id] = Told(JobState.RUNNING, opened.incarnation)
            start = _StartAgain(job.id, opened.serial, opened.incarnation)
            self._desk.recall(job.id, opened, start, now)
            return
        if job.state is JobState.PENDING:
            yield from self._newcomer(job, parts, now)
        elif job.state is not JobState.COMPLETING and self._door.holds(parts):
            self._told[job.id] = Told(job.state, nodes=job.nodes)
            if opened is not None or job.spec.reservation == self._settings.reservation:
                self._desk.leave_lease(job.id)
            yield Adopted(self._door.standing(job))
            if self._fresh:
                yield Started(job.id, 0, job.started_at)

    def _is_asked(self, job: LiveJob) -> bool:
        """Whether an earlier daemon asked for the start of a job that waits."""
        waits = job.state is JobState.PENDING and job.spec.reservation is not None
        return waits and job.id in self.notebook.pages.starts

    def _newcomer(self, job: LiveJob, parts: Sequence[LiveJob], now: Seconds) -> Iterator[Event]:
        """A job that waits, and could run here; the engine gets all components or none."""
        if job.spec.reservation == self._settings.reservation:
            self._throw_out(job)
        requests = {part.id: self._door.request(part) for part in parts}
        if self._fresh:
            for part in parts:
                self._desk.waits_again(part, (), now)
        if any(part.spec.reservation not in (None, self._settings.reservation) for part in parts):
            return
        if not is_whole(parts) or not all(self._door.suits(request) for request in requests.values()):
            return
        for part in parts:
            if part.id in self._told:
                continue
            self._told[part.id] = Told(JobState.PENDING, held=part.waits_for_slurm, priority=part.priority)
            yield Submitted(requests[part.id])
            if self._fresh:  # the engine may know it: as one that leaves, or runs
                yield Cleaned(part.id)
                yield Noticed(part.id, JobState.PENDING, 0, _BY)

    def _throw_out(self, job: LiveJob) -> None:
        """A user put his job into the lease (slurm-live 1.2): take it out again."""
        if job.id not in self.notebook.pages.starts:
            _log.warning("job %s names the reservation of makeway; it is taken out", job.id)
        self._desk.leave_lease(job.id)

    def _of_waiting(self, job_id: str, job: LiveJob | None, told: Told) -> Iterator[Event]:
        """The engine believes that it waits."""
        if job is None:
            del self._told[job_id]
            yield Noticed(job_id, self._eyes.ended.get(job_id, JobState.CANCELLED), 0, _BY)
        elif job.state is JobState.PENDING:
            if job.spec.reservation == self._settings.reservation:
                self._throw_out(job)
            held = job.waits_for_slurm
            if told.elsewhere or held != told.held:
                told.elsewhere, told.held = False, held
                yield Command("hold" if held else "release", job_id)
            elif job.priority != told.priority and job.priority:
                told.priority = job.priority
                yield Command("priority", job_id, None, str(job.priority))
        elif not told.elsewhere and self._desk.of(job_id, Kill) is None:
            told.elsewhere = True
            yield Command("hold", job_id)

    def _of_active(self, job_id: str, job: LiveJob | None, told: Told, now: Seconds) -> Iterator[Event]:
        """The engine believes that it runs or is suspended, or wants it to."""
        start, kill = self._desk.of(job_id, Start), self._desk.of(job_id, Kill)
        if start is not None:
            yield from self._of_start(start, job_id, job, told, now)
            return
        if kill is not None and (job is None or job.state is JobState.PENDING):
            yield from self._of_killed(kill, job_id, job, told, now)
            return
        if job is None:
            yield self._end(job_id, told)
        elif job.state is JobState.PENDING:
            self._desk.waits_again(job, told.nodes, now)
            told.state, told.held, told.priority = JobState.PENDING, job.held, job.priority
            yield Noticed(job_id, JobState.PENDING, told.incarnation, _BY)
        elif kill is None and job.state in _THERE:
            yield from self._of_stopped(job, told, now)

    def _of_start(
        self, start: Task, job_id: str, job: LiveJob | None, told: Told, now: Seconds
    ) -> Iterator[Event]:
        """A start was asked for."""
        waits = job is not None and job.state is JobState.PENDING
        ran = job is not None and start.restarts is not None and job.restarts > start.restarts
        if start.phase != "asked" or (waits and not ran):
            return
        self._desk.finish(start, now)
        if job is not None and waits:  # it ran and was requeued between two looks, as when its node went down
            self._desk.leave_lease(job_id)
            self._desk.waits_again(job, start.nodes, now)
            told.state, told.held, told.priority = JobState.PENDING, job.held, job.priority
            yield Started(job_id, told.incarnation, now)
            yield Noticed(job_id, JobState.PENDING, told.incarnation, _BY)
            return
        if job is None:
            yield Started(job_id, told.incarnation, now)
            yield self._end(job_id, told)
            return
        told.nodes = job.nodes
        if set(job.nodes) != set(start.nodes):
            _log.error(
                "job %s runs on %s, not on %s", job_id, fold_hostlist(job.nodes), fold_hostlist(start.nodes)
            )
        self._desk.leave_lease(job_id)
        yield Started(job_id, told.incarnation, job.started_at)

    def _of_killed(
        self, kill: Task, job_id: str, job: LiveJob | None, told: Told, now: Seconds
    ) -> Iterator[Event]:
        """A job that had to leave has left."""
        self._desk.finish(kill, now)
        yield Performed(kill.action.serial)
        yield Cleaned(job_id, None, told.incarnation)
        if job is not None:
            self._desk.waits_again(job, told.nodes, now)
            told.state, told.held, told.priority = JobState.PENDING, False, job.priority
        else:
            del self._told[job_id]
            if (
                isinstance(kill.action, Kill) and kill.action.becomes is JobState.PENDING
            ):  # it ended by itself
                yield Noticed(job_id, self._eyes.ended.get(job_id, JobState.COMPLETED), 0, _BY)

    def _of_stopped(self, job: LiveJob, told: Told, now: Seconds) -> Iterator[Event]:
        """It is there; does it run, and should it?"""
        stop, go_on = self._desk.of(job.id, Suspend), self._desk.of(job.id, Resume)
        if stop is not None and stop.phase == "asked" and job.state is JobState.SUSPENDED:
            stop.phase, stop.since = "stopping", now
        elif go_on is not None and go_on.phase == "asked" and job.state is JobState.RUNNING:
            self._desk.resumed(go_on, now)
            yield Performed(go_on.action.serial)
        elif stop is None and go_on is None and job.state is not told.state:
            told.state = job.state
            if job.state is JobState.RUNNING:
                self.notebook.resumed(job.id)
            yield Noticed(job.id, job.state, told.incarnation, _BY)

    def _end(self, job_id: str, told: Told) -> Event:
        del self._told[job_id]
        state = self._eyes.ended.get(job_id, JobState.CANCELLED)
        if state in _NATURAL:
            return Finished(job_id, state, True, told.incarnation)
        return Noticed(job_id, state, told.incarnation, _BY)

    # ------------------------------------------------------------------------------------ nodes
    def _digest_nodes(self) -> Iterator[Event]:
        """Yield what changed of the nodes; one that holds a job that is not all here gets no others.

        Nodes are never said to be down: Slurm itself ends or requeues what ran there, and each job shows that.
        """
        out, foreign = 0, self._foreign()
        for node in self._cluster.nodes:
            away = out_of_service(self._eyes.nodes.get(node.name, "DOWN")) or node.name in self._eyes.reserved
            if away or node.name in foreign:
                out |= 1 << node.index
        told, self._out = self._out, out
        if out & ~told:
            yield NodesDrained(out & ~told)
        if told & ~out:
            yield NodesUp(told & ~out)

    def _foreign(self) -> set[str]:
        """Return the nodes that hold a job which the engine does not know there."""
        found: set[str] = set()
        for job in self._eyes.jobs.values():
            if job.nodes:
                told = self._told.get(job.id)
                if told is None or told.elsewhere or not self._mine.issuperset(job.nodes):
                    found.update(job.nodes)
        return found

    # ----------------------------------------------------------------------------------- survey
    def survey(self) -> Survey:
        """Show what was seen last; a job whose start was asked for waits, one that has ended shows how.

        Jobs that wait in Slurm's queue are not there: what was decided about them before a crash is done again.
        """
        jobs: dict[str, Seen] = {}
        for job_id, state in self._eyes.ended.items():
            jobs[job_id] = Seen(job_id=job_id, state=state)
        for job in self._eyes.jobs.values():
            told = self._told.get(job.id)
            waits = job.state is JobState.PENDING
            if (waits and self._desk.of(job.id, Start)) or (
                not waits and job.nodes and set(job.nodes) <= self._mine
            ):
                jobs[job.id] = self._seen(job, told)
        return Survey(
            at=self._clock.now(),
            jobs=jobs,
            nodes_drained=self._out,
            complete=not self._eyes.blind,
        )

    def _seen(self, job: LiveJob, told: Told | None) -> Seen:
        """Show a job; with an action under way, as it will be once that has succeeded."""
        state = job.state
        if self._desk.of(job.id, Kill) is not None and state is not JobState.PENDING:
            state = JobState.COMPLETING
        elif (
            told is not None
            and state in _THERE
            and told.state in _THERE
            and self._desk.of(job.id, Suspend, Resume)
        ):
            state = told.state
        nodes = 0
        for name in job.nodes:
            node = self._cluster.node(name)
            nodes |= 0 if node is None else 1 << node.index
        return Seen(
            job_id=job.id,
            state=state,
            incarnation=told.incarnation if told is not None else 0,
            nodes=nodes,
            started_at=job.started_at,
            ran=job.ran,
        )

    def close(self) -> None:
        """Let go; jobs go on, and the lease ends by itself."""


@attrs.frozen
class _StartAgain:
    """Makes the action of a start that an earlier daemon asked for."""

    job: str
    serial: int
    incarnation: int

    def __call__(self) -> Start:
        return Start(job=_Named(self.job), serial=self.serial, incarnation=self.incarnation)  # type: ignore[arg-type]


@attrs.frozen
class _Named:
    """Stands for a job of which only the id is known."""

    id: str


def _puts_back(event: Event, job_id: str) -> bool:
    """Whether an event would tell the engine that a job waits, whose start it has just asked for again."""
    return isinstance(event, Cleaned | Noticed) and event.job_id == job_id


def _order(job_id: str) -> tuple[int, str]:
    """Order jobs as they were submitted."""
    digits = job_id.split("_")[0].split("+")[0]
    return (int(digits) if digits.isdigit() else 0, job_id)
