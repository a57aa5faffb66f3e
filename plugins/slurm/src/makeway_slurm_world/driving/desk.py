"""Perform what the engine asked for, step by step, as answers come and time passes.

Each step asks first what is there, so that doing it again is harmless. Nothing here waits: what is not done yet is
looked at again at the next look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.model import Cluster, JobState, Seconds
from makeway.worlds.events import (
    Action,
    Checkpoint,
    Cleaned,
    Event,
    Failed,
    Kill,
    Performed,
    Resume,
    SendSignal,
    Start,
    Suspend,
)
from makeway_slurm_world.driving import orders
from makeway_slurm_world.driving.components import (
    is_leader,
    is_whole,
    restore,
    start_together,
    take_back_together,
)
from makeway_slurm_world.driving.eyes import Eyes, in_use
from makeway_slurm_world.driving.notebook import Notebook, Open, Request
from makeway_slurm_world.driving.settings import Settings
from makeway_slurm_world.reading.conf import out_of_service
from makeway_slurm_world.reading.jobs import LiveJob
from makeway_slurm_world.talking.runner import Answer, Hand
from makeway_slurm_world.talking.words import Order

_log = logging.getLogger("makeway")
_HOPELESS = ("BadConstraints", "InvalidAccount", "InvalidQOS", "PartitionNodeLimit", "PartitionTimeLimit")
"""Reasons with which Slurm will not start a job where it was told to."""


@attrs.define(eq=False)
class Task:
    """One action on its way."""

    action: Action
    phase: str = "waits"
    """waits, asked, stopping (suspensions in their two seconds), done or failed."""
    since: Seconds = 0.0
    """Since when it is in this phase."""
    nodes: tuple[str, ...] = ()
    """Of starts: where."""
    restarts: int | None = None
    """Of starts: how often the job had been requeued when it was asked for; None: an earlier daemon asked."""

    @property
    def over(self) -> bool:
        """Whether its outcome is known."""
        return self.phase in ("done", "failed")


class Desk:
    """Has the tasks that are not over."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        hand: Hand,
        eyes: Eyes,
        notebook: Notebook,
        everything: Collection[str],
    ) -> None:
        """Begin with no task.

        :param everything: the nodes of the whole cluster.
        """
        self._cluster = cluster
        self._settings = settings
        self._hand = hand
        self._eyes = eyes
        self._notebook = notebook
        self._everything = everything
        self.tasks: dict[int, Task] = {}
        """By serial."""
        self.left: dict[str, tuple[frozenset[str], Seconds]] = {}
        """Job that was requeued -> the nodes of its last run, and when it left them."""

    # ---------------------------------------------------------------------------------- asking
    def take(self, action: Action, now: Seconds) -> None:
        """Take an action on; it is begun by `advance`."""
        if action.serial in self.tasks:
            return
        task = Task(action=action, since=now)
        if isinstance(action, Start):
            place = action.allocation or action.job.allocation
            assert place is not None
            task.nodes = tuple(self._cluster.nodes[index].name for index in bitmap.indices(place.nodes))
        self.tasks[action.serial] = task

    def of(self, job_id: str, *kinds: type[Action]) -> Task | None:
        """Return the last task of some kinds about a job that is not over."""
        found = [
            task
            for task in self.tasks.values()
            if task.action.job.id == job_id and isinstance(task.action, kinds) and not task.over
        ]
        return found[-1] if found else None

    def finish(self, task: Task, now: Seconds, *, failed: bool = False) -> None:
        """Note the outcome of a task."""
        task.phase, task.since = "failed" if failed else "done", now

    def drop(self, job_id: str, now: Seconds) -> None:
        """End what was to be done to a job that is gone, and say nothing of it."""
        for task in self.tasks.values():
            if task.action.job.id == job_id and not task.over:
                self.finish(task, now, failed=True)
        self.left.pop(job_id, None)

    def next_at(self) -> Seconds | None:
        """Return when something is due without anything having happened; None: nothing is."""
        wait = self._settings.suspend_wait
        return min(
            (task.since + wait for task in self.tasks.values() if task.phase == "stopping"), default=None
        )

    # -------------------------------------------------------------------------------- advancing
    def advance(self, now: Seconds) -> list[Event]:
        """Do what can be done now, in the order of the serials.

        :raises Away: the controller does not answer; what was asked last is looked at again.
        """
        events: list[Event] = []
        for serial in sorted(self.tasks):
            task = self.tasks.get(serial)
            if task is not None and not task.over:
                events += self._step(task, now)
        return events

    def sweep(self) -> None:
        """Forget tasks that are over and that no other waits for."""
        needed = {serial for task in self.tasks.values() if not task.over for serial in task.action.after}
        self.tasks = {
            serial: task for serial, task in self.tasks.items() if not task.over or serial in needed
        }

    def _step(self, task: Task, now: Seconds) -> Iterator[Event]:
        action = task.action
        if task.phase == "stopping":
            if now >= task.since + self._settings.suspend_wait:
                self.finish(task, now)
                yield Performed(action.serial)
        elif task.phase == "asked":
            if isinstance(action, Start):
                yield from self._overdue(task, action, now)
            elif isinstance(action, Suspend | Resume) and self._is_away(action):
                yield self._fail(task, now, "the job is not there any more")
        elif self._blocked(task):
            failed = [
                each for each in action.after if (found := self.tasks.get(each)) and found.phase == "failed"
            ]
            if failed:
                yield self._fail(task, now, "what it rests on failed")
        else:
            yield from self._begin(task, now)

    def _is_away(self, action: Action) -> bool:
        """Whether a job has ended or been requeued, so that it can neither stop nor go on."""
        job = self._eyes.jobs.get(action.job.id)
        return job is None or job.state is JobState.PENDING

    def _blocked(self, task: Task) -> bool:
        waits_for = (self.tasks.get(serial) for serial in task.action.after)
        return any(each is not None and each.phase != "done" for each in waits_for)

    def _begin(self, task: Task, now: Seconds) -> Iterator[Event]:
        action = task.action
        job = self._eyes.jobs.get(action.job.id)
        if isinstance(action, Start):
            yield from self._start(task, action, job, now)
        elif isinstance(action, Kill):
            yield from self._kill(task, action, job, now)
        elif isinstance(action, Suspend):
            yield from self._suspend(task, job, now)
        elif isinstance(action, Resume):
            yield from self._resume(task, job, now)
        elif isinstance(action, SendSignal):
            self._tell(
                orders.signal(action.job.id, action.signal, steps_only=action.steps_only), action.job.id
            )
            self.finish(task, now)
            yield Performed(action.serial)
        elif isinstance(action, Checkpoint):
            yield self._fail(
                task, now, "Slurm has no checkpoint; let jobs save themselves on a signal", retry=False
            )

    def _tell(self, order: Order, job_id: str) -> Answer:
        _log.info("%s", order)
        job = self._eyes.jobs.get(job_id)
        for each in (job_id,) if job is None else (part.id for part in self._eyes.parts(job)):
            self._eyes.again(each)
        answer = self._hand.tell(order)
        if not answer.good:
            _log.warning("%s: %s", order, answer.text)
        return answer

    def _fail(
        self, task: Task, now: Seconds, why: str, *, retry: bool = True, nodes: Sequence[str] = ()
    ) -> Event:
        self.finish(task, now, failed=True)
        bits = bitmap.of(node.index for name in nodes if (node := self._cluster.node(name)) is not None)
        return Failed(task.action.serial, why, retry, bits)

    # ----------------------------------------------------------------------------------- starts
    def _start(self, task: Task, action: Start, job: LiveJob | None, now: Seconds) -> Iterator[Event]:
        if job is None or job.state is not JobState.PENDING:
            where = f"Slurm started it on {fold_hostlist(job.nodes)}" if job is not None else "it is gone"
            yield self._fail(task, now, where)
            return
        out = self._out_of(task)
        if out:
            yield self._fail(task, now, f"{fold_hostlist(out)} went out of service", nodes=out)
            return
        parts = self._eyes.parts(job)
        found = {part.id: self.of(part.id, Start) for part in parts}
        tasks = {job_id: each for job_id, each in found.items() if each is not None}
        if len(tasks) < len(parts) or not is_whole(parts):
            yield self._fail(task, now, "its other components do not start")
        elif not any(
            self._blocked(each) or self._out_of(each) or self._too_soon(each, now) for each in tasks.values()
        ):
            yield from self._ask(parts, tasks, now)

    def _out_of(self, task: Task) -> list[str]:
        """Return the nodes of a start that went out of service."""
        return [name for name in task.nodes if out_of_service(self._eyes.nodes.get(name, "DOWN"))]

    def _too_soon(self, task: Task, now: Seconds) -> bool:
        """Whether its credential on a node that it has left is still being revoked (slurm-live 2.1)."""
        nodes, at = self.left.get(task.action.job.id, (frozenset(), 0.0))
        return bool(nodes & set(task.nodes)) and now < at + self._settings.restart_margin

    def _ask(self, parts: Sequence[LiveJob], tasks: Mapping[str, Task], now: Seconds) -> Iterator[Event]:
        """Ask for a start: of a job, or of all components together."""
        first, lease = parts[0], self._settings.reservation
        places = {job_id: task.nodes for job_id, task in tasks.items()}
        self._notebook.start(
            {job_id: _opened(task) for job_id, task in tasks.items()},
            {part.id: self._request(part) for part in parts},
        )
        if first.spec.het_id is None:
            nodes = places[first.id]
            asked = iter([orders.start(first.id, lease, fold_hostlist(nodes), len(nodes))])
        else:
            asked = start_together(parts, places, lease, self._everything)
        answers = (self._tell(order, first.id) for order in asked)
        refused = next((answer for answer in answers if not answer.good), None)
        for part in parts:
            task = tasks[part.id]
            task.phase, task.since, task.restarts = "asked", now, part.restarts
        if refused is not None:
            yield from self.give_back(tasks[first.id], first, now, refused.text)

    def _request(self, job: LiveJob) -> Request:
        """Return what a start changes of a job's request."""
        excluded = job.fields.get("ExcNodeList", "") if is_leader(job) else None
        required = job.fields.get("ReqNodeList", "")
        return Request(required=required, count=self._count(job), excluded=excluded)

    def _count(self, job: LiveJob) -> str:
        """Return the number of nodes that a job asked for, as it can be given back: any number is up to all."""
        spec = job.spec
        return f"{spec.min_nodes}-{spec.max_nodes or max(len(self._everything), spec.min_nodes)}"

    def _overdue(self, task: Task, action: Start, now: Seconds) -> Iterator[Event]:
        job = self._eyes.jobs.get(action.job.id)
        if job is None or job.state is not JobState.PENDING:
            return  # the look says what became of it
        out = self._out_of(task)
        limit = self._settings.start_limit if job.spec.het_id is None else self._settings.het_start_limit
        hopeless = job.reason in _HOPELESS and now > task.since + 2 * self._settings.poll
        if out:
            yield from self.give_back(task, job, now, f"{fold_hostlist(out)} went out of service", out)
        elif hopeless or now > task.since + limit:
            yield from self.give_back(task, job, now, f"Slurm did not start it: {job.reason}")

    def give_back(
        self, task: Task, job: LiveJob, now: Seconds, why: str, nodes: Sequence[str] = ()
    ) -> Iterator[Event]:
        """Take a start back: a job that still names its nodes would start when they come back (slurm-live 1.3).

        :param nodes: those to blame.
        """
        if self._undo(job):
            for part in self._eyes.parts(job):
                other = self.of(part.id, Start)
                if other is not None:
                    yield self._fail(other, now, why, nodes=nodes if other is task else ())

    def _undo(self, job: LiveJob) -> bool:
        """Give a job and its components their own requests back; False: it may have started, the next look says so."""
        parts, requests = self._eyes.parts(job), self._notebook.pages.requests
        if any(part.state is not JobState.PENDING for part in parts):
            return False
        if job.spec.het_id is None:
            request = requests.get(job.id, Request(count="1"))
            undone = iter([orders.take_back(job.id, request.required, request.count)])
        else:
            undone = take_back_together(parts, requests)
        if not all(self._tell(order, job.id).good for order in undone):
            return False
        for part in parts:
            self._notebook.restored(part.id)
        return True

    # ------------------------------------------------------------------------------- displacing
    def _kill(self, task: Task, action: Kill, job: LiveJob | None, now: Seconds) -> Iterator[Event]:
        job_id = action.job.id
        if job is None or job.state is JobState.PENDING:
            if job is not None and not (yield from self._drop_start(job, now)):
                return
            self.finish(task, now)
            yield Cleaned(job_id, None, action.incarnation)
            return
        task.phase, task.since = "asked", now
        if job.state is JobState.COMPLETING or action.becomes is JobState.TIMEOUT:
            return  # it ends by itself: Slurm keeps time limits
        if self._is_asked(task, job):
            return
        if action.becomes is JobState.PENDING:
            for part in self._eyes.parts(job):
                if part.state is JobState.SUSPENDED:
                    self._notebook.hold(part.id)
            answer = self._tell(orders.requeue(job_id), job_id)
        else:
            answer = self._tell(orders.cancel(job_id), job_id)
        if not answer.good:
            yield self._fail(task, now, answer.text)

    def _drop_start(self, job: LiveJob, now: Seconds) -> Generator[Event, None, bool]:
        """See to it that a job which has to leave before it was seen to start does not start; say whether that is so.

        Other components lose their starts with it; those that need not leave are told so.
        """
        start = self.of(job.id, Start)
        if start is None:
            return True
        if start.phase == "asked" and not self._undo(job):
            return False
        for part in self._eyes.parts(job):
            other = self.of(part.id, Start)
            if other is not None and self.of(part.id, Kill) is not None:
                self.finish(other, now, failed=True)
            elif other is not None:
                yield self._fail(other, now, "its other components do not start")
        return True

    def _is_asked(self, task: Task, job: LiveJob) -> bool:
        """Whether another component was told already what Slurm does to all of them."""
        others = (self.of(part.id, type(task.action)) for part in self._eyes.parts(job) if part.id != job.id)
        return any(other is not None and other.phase in ("asked", "stopping") for other in others)

    def _suspend(self, task: Task, job: LiveJob | None, now: Seconds) -> Iterator[Event]:
        job_id = task.action.job.id
        if job is None or job.state is JobState.PENDING:
            yield self._fail(task, now, "the job does not run")
        elif job.state is JobState.SUSPENDED:
            task.phase, task.since = "stopping", now
        elif self._is_asked(task, job):
            task.phase, task.since = "asked", now
        else:
            self._notebook.suspend(*(part.id for part in self._eyes.parts(job)))
            answer = self._tell(orders.suspend(job_id), job_id)
            if answer.good:
                task.phase, task.since = "asked", now
            else:
                self._notebook.resumed(*(part.id for part in self._eyes.parts(job)))
                yield self._fail(task, now, answer.text)

    def _resume(self, task: Task, job: LiveJob | None, now: Seconds) -> Iterator[Event]:
        job_id = task.action.job.id
        if job is None or job.state is JobState.PENDING:
            yield self._fail(task, now, "the job is not suspended")
        elif job.state is JobState.RUNNING:
            self.resumed(task, now)
            yield Performed(task.action.serial)
        elif in_use(job, self._eyes):
            return  # Slurm would let both run on the same CPUs (slurm-live 2.2)
        elif self._is_asked(task, job):
            task.phase, task.since = "asked", now
        else:
            answer = self._tell(orders.resume(job_id), job_id)
            task.phase, task.since = "asked", now
            if not answer.good and "not suspended" not in answer.text:
                yield self._fail(task, now, answer.text)

    def resumed(self, task: Task, now: Seconds) -> None:
        """A job goes on."""
        self._notebook.resumed(task.action.job.id)
        self.finish(task, now)

    # ------------------------------------------------------------------------------------ words
    def leave_lease(self, job_id: str) -> None:
        """Let a running job out of the lease; then any requeue of it waits like all others."""
        if self._tell(orders.leave_lease(job_id), job_id).good:
            self._notebook.started(job_id)

    def waits_again(self, job: LiveJob, nodes: Sequence[str], now: Seconds) -> None:
        """A job was requeued: give it its own request back, and lift the hold that a stopped one gets."""
        self.left[job.id] = frozenset(nodes), now
        if job.id in self._notebook.pages.suspended and job.priority == 0:
            self._notebook.hold(
                job.id
            )  # its node went down while it was stopped: Slurm holds it then (slurm-live 2.2)
        self._notebook.resumed(job.id)
        request = self._notebook.pages.requests.get(job.id)
        if request is not None and self._tell(restore(job, request), job.id).good:
            self._notebook.restored(job.id)
        if job.id in self._notebook.pages.held and self._tell(orders.release(job.id), job.id).good:
            self._notebook.released(job.id)

    def recall(self, job_id: str, opened: Open, make: Callable[[], Start], now: Seconds) -> None:
        """Go on with a start that was asked for before a crash."""
        if opened.serial not in self.tasks:
            self.tasks[opened.serial] = Task(
                action=make(), phase="asked", since=now, nodes=tuple(expand_hostlist(opened.nodes))
            )
            self._eyes.again(job_id)


def _opened(task: Task) -> Open:
    action = task.action
    return Open(incarnation=action.incarnation, serial=action.serial, nodes=fold_hostlist(task.nodes))
