"""Number the actions of a run, and say which of them rest on others."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Allocation, Job, JobState
from makeway.worlds.events import Action, Resume, Start, Suspend


class Deeds:
    """Gives every action its serial number, its incarnation, and the serials that must have succeeded before it.

    A start or a resumption waits for every job that is stopped on the same cores, in this step or an earlier one.
    """

    def __init__(self, first: int = 1) -> None:
        """Begin with serial `first`; after a restart, the one that the journal names."""
        self.next_serial = first
        self._stopped: dict[str, tuple[int, Job]] = {}
        """Id of each suspended job -> the serial of the action that stopped it, and the job."""

    def number(self, actions: Sequence[Action]) -> list[Action]:
        """Return `actions` of one step with their last three fields filled in."""
        numbered = [self._numbered(action) for action in actions]
        self._stopped = {
            id: each for id, each in self._stopped.items() if each[1].state is JobState.SUSPENDED
        }
        if not self._stopped:
            return numbered
        return [
            action._replace(after=self._before(action)) if isinstance(action, Start | Resume) else action
            for action in numbered
        ]

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
            if job is not action.job and job.allocation is not None and _overlap(place, job.allocation)
        ]
        return tuple(sorted(waits_for))


def _overlap(one: Allocation, other: Allocation) -> bool:
    """Whether two allocations have a core in common."""
    if not one.nodes & other.nodes:
        return False
    mine, its = one.cores, other.cores
    if mine is None or its is None:
        return True
    cores_of = dict(zip(other.node_indices, its, strict=True))
    return any(cores & cores_of.get(node, 0) for node, cores in zip(one.node_indices, mine, strict=True))


__all__ = ["Deeds"]
