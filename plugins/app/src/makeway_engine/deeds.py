"""Number the actions of a run, and say which of them rest on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from makeway.model import Allocation, Cluster, Job, JobState
from makeway.worlds.encoding import action_of_plain, action_to_plain
from makeway.worlds.events import Action, Checkpoint, Kill, Resume, SendSignal, Start, Suspend

_SWEEP = 256
"""Actions that are remembered at least before those of jobs that are gone are swept out."""


class Deeds:
    """Gives every action its serial number, its incarnation, and the serials that must have succeeded before it.

    A start or a resumption waits for every job that is stopped or killed on the same cores, in this step or an earlier
    one.
    """

    def __init__(self, first: int = 1) -> None:
        """Begin with serial `first`; after a restart, the one that the journal names."""
        self.next_serial = first
        self._stopped: dict[str, tuple[int, Job]] = {}
        """Id of each job that is suspended or leaving -> the serial of what it was told, and the job."""
        self._open: dict[int, Action] = {}
        """The last action of each kind about each job, by serial: whatever may still turn out to have failed."""
        self._last: dict[tuple[str, type[Action]], int] = {}
        self._swept = _SWEEP

    def number(self, actions: Sequence[Action]) -> list[Action]:
        """Return `actions` of one step with their last three fields filled in.

        An action stands behind those that it rests on; those about one job keep their order.
        """
        rests = self._rests(actions)
        order = _behind(actions, rests) if any(rests.values()) else range(len(actions))
        serials: dict[int, int] = {}
        numbered = []
        for at in order:
            serials[at] = self.next_serial
            self.next_serial += 1
            numbered.append(self._numbered(actions[at], serials[at], rests.get(at, ()), serials))
        for action in numbered:
            self._remember(action)
        return numbered

    def _numbered(
        self, action: Action, serial: int, rests_on: Sequence[int], serials: Mapping[int, int]
    ) -> Action:
        after: tuple[int, ...] = ()
        if isinstance(action, Start) and action.job.state is JobState.SUSPENDED:
            action = action._replace(stopped=True)
        elif isinstance(action, Start | Resume):
            after = tuple(sorted([*self._stopped_before(action), *(serials[at] for at in rests_on)]))
        return action._replace(serial=serial, incarnation=action.job.starts, after=after)

    def _rests(self, actions: Sequence[Action]) -> dict[int, list[int]]:
        """Return which starts and resumptions wait for which others of the same step, by their places."""
        stops = {
            action.job.id: at
            for at, action in enumerate(actions)
            if isinstance(action, Suspend | Kill) and _makes_room(action.job)
        }
        begins = {action.job.id: at for at, action in enumerate(actions) if isinstance(action, Start)}
        self._stopped = {
            job_id: each
            for job_id, each in self._stopped.items()
            if job_id not in stops and _makes_room(each[1])
        }
        rests: dict[int, list[int]] = {}
        for at, action in enumerate(actions) if stops else ():
            if isinstance(action, Start | Resume) and not _makes_room(action.job):
                rests[at] = [
                    stop
                    for job_id, stop in stops.items()
                    # Of two that start and stop in one step, one over the other, the first waits for none.
                    if begins.get(job_id, -1) < at and _over(action.job, actions[stop].job)
                ]
        return rests

    def _stopped_before(self, action: Start | Resume) -> list[int]:
        return [serial for serial, job in self._stopped.values() if _over(action.job, job)]

    def _remember(self, action: Action) -> None:
        key = action.job.id, type(action)
        self._open.pop(self._last.get(key, 0), None)
        self._last[key] = action.serial
        if isinstance(action, Suspend | Kill) and _makes_room(action.job):
            self._stopped[action.job.id] = action.serial, action.job
        self._open[action.serial] = action
        if len(self._open) > self._swept:
            self._sweep()

    def _sweep(self) -> None:
        """Forget the actions of jobs that have ended or been requeued since."""
        self._open = {serial: action for serial, action in self._open.items() if is_current(action)}
        self._last = {(action.job.id, type(action)): serial for serial, action in self._open.items()}
        self._swept = 2 * len(self._open) + _SWEEP

    # ------------------------------------------------------------------------------ outcomes
    def find(self, serial: int) -> Action | None:
        """Return an action that may still turn out to have failed; None: it was settled or replaced."""
        action = self._open.get(serial)
        return action if action is not None and is_current(action) else None

    def succeeded(self, serial: int) -> None:
        """Settle an action that was performed; so were those it rests on; what is older about its job is past."""
        action = self._open.get(serial)
        if action is None:
            return
        job_id = action.job.id
        older = [other for (about, _), other in self._last.items() if about == job_id and other < serial]
        for other in (*older, serial):
            self.settle(other)
        for other in action.after:
            self.succeeded(other)

    def settle(self, serial: int) -> None:
        """Forget an action whose outcome is known."""
        action = self._open.pop(serial, None)
        if action is not None:
            self._last.pop((action.job.id, type(action)), None)

    def last(self, job: Job, kind: type[Action]) -> int:
        """Return the serial of the last action of a kind about a job whose outcome is not known; 0: there is none."""
        serial = self._last.get((job.id, kind), 0)
        return serial if self.find(serial) is not None else 0

    def unsettled(self) -> list[Action]:
        """Return what may not have been performed yet, by serial: to be asked for again after a crash.

        Of actions that undo one another the last one counts.
        """
        found = []
        for serial, action in sorted(self._open.items()):
            if is_current(action) and not self._undone(action, serial):
                found.append(action)
        return found

    def _undone(self, action: Action, serial: int) -> bool:
        later: tuple[type[Action], ...] = (
            (Kill,) if isinstance(action, Start | SendSignal) else (Kill, Suspend, Resume)
        )
        if isinstance(action, Kill | Checkpoint):
            return False
        return any(self._last.get((action.job.id, kind), 0) > serial for kind in later)

    def open_serials(self) -> set[int]:
        """Return the serials of all actions that may still turn out to have failed."""
        return set(self._open)

    def resting_on(self, serial: int) -> list[Action]:
        """Return the actions that are not performed if the one with `serial` failed, in order of their serials."""
        return [action for action in self._open.values() if serial in action.after and is_current(action)]

    # ------------------------------------------------------------------------------ adoption
    def save(self, cluster: Cluster) -> dict[str, Any]:
        """Return the next serial, what stopped each suspended job, and which actions may still have failed."""
        stopped = {id: each[0] for id, each in self._stopped.items() if _makes_room(each[1])}
        current = [action_to_plain(action, cluster) for action in self._open.values() if is_current(action)]
        return {"next_serial": self.next_serial, "stopped": stopped, "open": current}

    def restore(self, memory: Mapping[str, Any], jobs: Mapping[str, Job], cluster: Cluster) -> None:
        """Go on counting where another engine stood."""
        self.next_serial = max(self.next_serial, memory["next_serial"])
        for plain in memory["open"]:
            action = action_of_plain(plain, jobs, cluster)
            if action is not None:
                self._remember(action)
        # What is open still may have stopped a job that went on since: only what was handed over counts.
        self._stopped = {id: (serial, jobs[id]) for id, serial in memory["stopped"].items() if id in jobs}


def _behind(actions: Sequence[Action], rests: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the places of actions, each behind those that it rests on and those about the same job before it."""
    order: list[int] = []
    left = list(range(len(actions)))
    while left:
        done = set(order)
        busy: set[str] = set()
        for at in left:
            job_id = actions[at].job.id
            if job_id not in busy and done.issuperset(rests.get(at, ())):
                order.append(at)
                left.remove(at)
                break
            busy.add(job_id)
        else:  # they rest on one another: then they are performed as they were decided
            order.append(left.pop(0))
    return order


def _makes_room(job: Job) -> bool:
    """Whether a job is stopped or leaving, so that others may run on its cores."""
    return job.state in (JobState.SUSPENDED, JobState.COMPLETING)


def _over(job: Job, other: Job) -> bool:
    """Whether a job lies on cores of another."""
    mine, its = job.allocation, other.allocation
    return job is not other and mine is not None and its is not None and overlap(mine, its)


def is_current(action: Action) -> bool:
    """Whether an action is about the incarnation that its job is in now.

    A job that waits is in none: its last one is over, and never starts again.
    """
    job = action.job
    if action.incarnation != job.starts or job.state.ended:
        return False
    return job.state is not JobState.PENDING or isinstance(action, Kill)


def overlap(one: Allocation, other: Allocation) -> bool:
    """Whether two allocations have a core in common."""
    if not one.nodes & other.nodes:
        return False
    mine, its = one.cores, other.cores
    if mine is None or its is None:
        return True
    cores_of = dict(zip(other.node_indices, its, strict=True))
    return any(cores & cores_of.get(node, 0) for node, cores in zip(one.node_indices, mine, strict=True))
