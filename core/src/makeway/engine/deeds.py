"""Number the actions of a run, and say which of them rest on others."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Allocation, Job, JobState
from makeway.worlds.events import Action, Resume, Start, Suspend

_SWEEP = 256
"""Actions that are remembered at least before those of jobs that are gone are swept out."""


class Deeds:
    """Gives every action its serial number, its incarnation, and the serials that must have succeeded before it.

    A start or a resumption waits for every job that is stopped on the same cores, in this step or an earlier one.
    """

    def __init__(self, first: int = 1) -> None:
        """Begin with serial `first`; after a restart, the one that the journal names."""
        self.next_serial = first
        self._stopped: dict[str, tuple[int, Job]] = {}
        """Id of each suspended job -> the serial of the action that stopped it, and the job."""
        self._open: dict[int, Action] = {}
        """The last action of each kind about each job, by serial: whatever may still turn out to have failed."""
        self._last: dict[tuple[str, type[Action]], int] = {}
        self._swept = _SWEEP

    def number(self, actions: Sequence[Action]) -> list[Action]:
        """Return `actions` of one step with their last three fields filled in."""
        numbered = [self._numbered(action) for action in actions]
        self._stopped = {
            id: each for id, each in self._stopped.items() if each[1].state is JobState.SUSPENDED
        }
        if self._stopped:
            numbered = [
                action._replace(after=self._before(action)) if isinstance(action, Start | Resume) else action
                for action in numbered
            ]
        for action in numbered:
            self._remember(action)
        return numbered

    def _remember(self, action: Action) -> None:
        key = action.job.id, type(action)
        self._open.pop(self._last.get(key, 0), None)
        self._last[key] = action.serial
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

    def settle(self, serial: int) -> None:
        """Forget an action whose outcome is known."""
        action = self._open.pop(serial, None)
        if action is not None:
            self._last.pop((action.job.id, type(action)), None)

    def last(self, job: Job, kind: type[Action]) -> int:
        """Return the serial of the last action of a kind about a job whose outcome is not known; 0: there is none."""
        serial = self._last.get((job.id, kind), 0)
        return serial if self.find(serial) is not None else 0

    def resting_on(self, serial: int) -> list[Action]:
        """Return the actions that are not performed if the one with `serial` failed, in order of their serials."""
        return [action for action in self._open.values() if serial in action.after and is_current(action)]

    def _numbered(self, action: Action) -> Action:
        serial, job = self.next_serial, action.job
        self.next_serial += 1
        if isinstance(action, Suspend):
            self._stopped[job.id] = serial, job
        else:
            self._stopped.pop(job.id, None)
        return action._replace(serial=serial, incarnation=job.starts)

    def _before(self, action: Start | Resume) -> tuple[int, ...]:
        place = action.job.allocation
        if place is None:
            return ()
        waits_for = [
            serial
            for serial, job in self._stopped.values()
            if job is not action.job and job.allocation is not None and overlap(place, job.allocation)
        ]
        return tuple(sorted(waits_for))


def is_current(action: Action) -> bool:
    """Whether an action is about the incarnation that its job is in now."""
    return action.incarnation == action.job.starts and not action.job.state.ended


def overlap(one: Allocation, other: Allocation) -> bool:
    """Whether two allocations have a core in common."""
    if not one.nodes & other.nodes:
        return False
    mine, its = one.cores, other.cores
    if mine is None or its is None:
        return True
    cores_of = dict(zip(other.node_indices, its, strict=True))
    return any(cores & cores_of.get(node, 0) for node, cores in zip(one.node_indices, mine, strict=True))


__all__ = ["Deeds", "is_current", "overlap"]
