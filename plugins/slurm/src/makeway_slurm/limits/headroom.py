"""Know for sure that no limit keeps a job out, without holding each job against each limit.

What a job asks for is looked at once: how much more may start before one of the limits that hold for it can be
reached, by TRES, and up to when no limit on what is used up can be. A job that starts takes up a part of that, the
largest that it takes up of anything, until it ends. As long as all parts together are less than the whole, a try costs
a comparison. `Judge` says what it comes to without this, and `tests/test_sure.py` holds one to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from makeway.model import ClusterView, Job, Seconds
from makeway_slurm.limits.access import Door
from makeway_slurm.limits.asked import Asked
from makeway_slurm.limits.counts import Seat

JOBS = "jobs"
RUN = "run "
"""Begins the names of what may still be used, in minutes; others are TRES that are held."""
_FULL = 0.999
"""Which part of the room may be taken up; the rest is for the rounding of sums."""
_NONE_LEFT = 1e30
"""Part of the room where there is none."""
_MANY = 10_000
_MOST_PATIENT = 64
"""Starts and ends at most before it is tried anew, where some limit is near."""


class Box(NamedTuple):
    """What a simple job asks for: whoever counts in the same places and asks for no more breaks no more limits."""

    seat: Seat
    nodes: int
    cpus: int
    limit: Seconds


class Headroom:
    """How much may start before a limit can keep somebody out who waits."""

    def __init__(
        self,
        view: ClusterView,
        asked_by: Callable[[Job], Asked],
        box_of: Callable[[Job], Box | None],
        door: Door,
        fits: Callable[[Asked, Headroom], bool],
    ) -> None:
        """Be there for one run.

        :param asked_by: says what a pending job asks for.
        :param box_of: says what a simple job asks for; None: it is not that simple.
        :param door: says who may run where.
        :param fits: notes by `keep` what limits leave to others beside such a job that is let in; False: one may keep
            it out.
        """
        self._view = view
        self._asked_by = asked_by
        self._box_of = box_of
        self._door = door
        self._fits = fits
        self._room: dict[str, float] = {}
        """How much more may start, by name, before somebody is kept out who is known; not there: any amount."""
        self.spent = 0.0
        """Which part of it those take up who have started since, and run."""
        self.since: dict[str, float] = {}
        """What each of them takes up."""
        self._shares: dict[int, tuple[Mapping[str, int], float, float]] = {}
        """By the identity of what is held: that, which part of the room it takes up, and which in a minute."""
        self._until: Seconds = -math.inf
        self.stands = False
        """Whether all that is still so."""
        self._known: dict[Asked, bool] = {}
        """Requests that were looked at since it was last worked out; False: a limit is near."""
        self._boxes: dict[Seat, list[Box]] = {}
        """By seat: nodes, CPUs and time of requests that are surely let in, and so is whoever asks for no more."""
        self._near = False
        """Whether a limit is near for a job that was looked at."""
        self.changes = 0
        self._patience = 1
        self._again_at = 0

    # ------------------------------------------------------------------------------- told
    def take_up(self, job_id: str, counts: Mapping[str, int], minutes: float) -> None:
        """A job holds so much from now on, and may run for so many minutes, UsageFactor applied."""
        known = self._shares.get(id(counts))
        _, share, each = known if known is not None and known[0] is counts else self._share_of(counts)
        if each * minutes > share:
            share = each * minutes
        if share:
            self.since[job_id] = share
            self.spent += share
            if self.spent > _FULL:
                self.stands = False

    def _share_of(self, counts: Mapping[str, int]) -> tuple[Mapping[str, int], float, float]:
        """Return which part of the room a job takes up that holds so much, of what is scarcest; and in a minute."""
        parts, minutely = [0.0], [0.0]
        for name, room in self._room.items():
            lasts = name.startswith(RUN)
            amount = 1 if name == JOBS else counts.get(name[len(RUN) :] if lasts else name, 0)
            if amount > 0:
                (minutely if lasts else parts).append(amount / room if room > 0.0 else _NONE_LEFT)
        if len(self._shares) > _MANY:
            self._shares.clear()
        found = self._shares[id(counts)] = counts, max(parts), max(minutely)
        return found

    # ------------------------------------------------------------------------------- asked
    def until(self, job: Job) -> Seconds:
        """Return up to when a job is surely let in; in the past: that is not known."""
        if not self.stands or self._until <= self._view.now or (self._near and self._is_worth_while()):
            if not self._is_worth_while():
                return -math.inf
            self._begin()
        door, partition = self._door, job.partition
        if (
            job.required
            or (partition.index not in door.open and door.shut(job, partition))
            or not self._covers(job)
        ):
            return -math.inf
        return self._until

    def _is_worth_while(self) -> bool:
        return self.changes >= self._again_at

    def _begin(self) -> None:
        """Work it out anew, for nobody yet."""
        self._patience = min(2 * self._patience, _MOST_PATIENT) if self._near else 1
        self.stands, self._near = True, False
        self._until = math.inf
        self._room.clear()
        self._shares.clear()
        self.since.clear()
        self.spent = 0.0
        self._known.clear()
        self._boxes.clear()

    def _covers(self, job: Job) -> bool:
        """Whether a job is surely let in as things stand; keeps what more may start."""
        box = self._box_of(job)
        if box is None:
            return self._covers_asked(self._asked_by(job))
        seat, nodes, cpus, limit = box
        boxes = self._boxes.get(seat)
        if boxes is None:
            boxes = self._boxes[seat] = []
        for _, most_nodes, most_cpus, longest in boxes:
            if nodes <= most_nodes and cpus <= most_cpus and limit <= longest:
                return True
        if not self._covers_asked(self._asked_by(job)):
            return False
        boxes[:] = [each for each in boxes if each.nodes > nodes or each.cpus > cpus or each.limit > limit]
        boxes.append(box)
        return True

    def _covers_asked(self, asked: Asked) -> bool:
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = self._fits(asked, self)
            if not known:
                self._near = True
                self._again_at = self.changes + self._patience
        return known

    def keep(self, rooms: Iterable[tuple[str, float]]) -> None:
        """Let others start who hold no more than this, by name."""
        for name, room in rooms:
            if room < self._room.get(name, math.inf):
                self._room[name] = room
                self._shares.clear()  # who has started takes up what he took up: he is among those who hold

    def keep_until(self, at: Seconds) -> bool:
        """Let it hold up to an instant; say whether that lies ahead."""
        self._until = min(self._until, at)
        return at > self._view.now


__all__ = ["JOBS", "RUN", "Box", "Headroom"]
