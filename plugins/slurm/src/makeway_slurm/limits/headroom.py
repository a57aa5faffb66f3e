"""Know for sure that no limit keeps anybody out who waits, without holding each job against each limit.

What jobs wait for is looked at once: how much more may start before one of the limits that hold for them can be
reached, by TRES, and up to when no limit on what is used up can be. Until then a try costs a few comparisons. `Judge`
says what it comes to without this, and `tests/test_sure.py` holds one to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from makeway.model import ClusterView, Job, Seconds
from makeway_slurm.limits.asked import Asked
from makeway_slurm.limits.counts import Seat

JOBS = "jobs"
RUN = "run "
"""Begins the names of what may still be used, in minutes; others are TRES that are held."""
_AMPLE = 0.05
"""What is left of a limit, as a part of it, where all that is held is looked at and no more."""
_MANY = 10_000
_MOST_PATIENT = 64
"""Starts, ends and submissions at most before it is tried anew, where some limit is near."""


class Headroom:
    """How much may start before a limit can keep somebody out who waits."""

    def __init__(
        self,
        view: ClusterView,
        asked_by: Callable[[Job], Asked],
        box_of: Callable[[Job], tuple[Seat, int, int, float] | None],
        shut: Callable[[Job], str],
        fits: Callable[[Asked, Headroom], bool],
    ) -> None:
        """Be there for one run.

        :param asked_by: says what a pending job asks for.
        :param box_of: says of a simple job where it counts, its nodes, CPUs and time limit: whoever asks for less of
            each breaks no limit that it does not break; None: it is not that simple.
        :param shut: says why a job may not run where it is tried; empty: it may.
        :param fits: notes by `keep` what limits leave to others beside such a job; False: one may keep it out.
        """
        self._view = view
        self._asked_by = asked_by
        self._box_of = box_of
        self._shut = shut
        self._fits = fits
        self._active: dict[str, tuple[Mapping[str, int], float]] = {}
        """What each active job holds, and for how many minutes at most."""
        self._names: dict[int, tuple[Mapping[str, int], Sequence[tuple[str, str]]]] = {}
        """By the identity of what is held: that, and its names; most jobs share it with others."""
        self._total: dict[str, float] = {JOBS: 0.0}
        """What they hold together, by name."""
        self._top: dict[str, float] = {}
        """Up to which of these totals nobody is kept out who is known."""
        self._grown: dict[str, float] = {}
        """What has started, by name, where that is asked for."""
        self._most: dict[str, float] = {}
        """Up to which of these sums nobody is kept out who is known."""
        self._until: Seconds = -math.inf
        self._stands = False
        """Whether all that is still so."""
        self._known: dict[Asked, bool] = {}
        """Requests that were looked at since it was last worked out; False: a limit is near."""
        self._new: dict[str, Job] = {}
        """Jobs that were submitted, and that nobody has looked at."""
        self._waiting: dict[str, Job] = {}
        """Those who wait, and were looked at."""
        self._boxes: dict[Seat, list[tuple[int, int, float]]] = {}
        """By seat: nodes, CPUs and time of requests that are surely let in, and so is whoever asks for no more."""
        self._several: set[str] = set()
        """Jobs about whom more counts: tried in several partitions, on nodes of their own, or where they may not."""
        self._near = False
        """Whether a limit is near for somebody who was looked at."""
        self._knows_all = False
        """Whether all in `_waiting` have been looked at since it was last worked out."""
        self._changes = 0
        self._patience = 1
        self._again_at = 0

    # ------------------------------------------------------------------------------- told
    def came(self, job: Job) -> None:
        """A job was submitted."""
        self._new[job.id] = job

    def gone(self, job: Job) -> None:
        """It was dropped."""
        self._drop(job.id)

    def started(self, job: Job, counts: Mapping[str, int], minutes: float) -> None:
        """A job holds so much from now on, and may run for so many minutes, UsageFactor applied."""
        self._drop(job.id)
        self._changes += 1
        self._active[job.id] = counts, minutes
        total, top = self._total, self._top
        jobs = total[JOBS] = total[JOBS] + 1.0
        stands = self._stands and jobs <= top.get(JOBS, jobs)
        if self._most:
            self._grow(counts, minutes)
            stands = stands and self._stands
        for name, run in self._names_in(counts):
            count = counts[name]
            held = total[name] = total[name] + count
            if name in top and held > top[name]:
                stands = False
            held = total[run] = total[run] + count * minutes
            if run in top and held > top[run]:
                stands = False
        self._stands = stands

    def _names_in(self, counts: Mapping[str, int]) -> Sequence[tuple[str, str]]:
        """Return the names of what a job holds, each with that of its minutes."""
        known = self._names.get(id(counts))
        if known is not None and known[0] is counts:
            return known[1]
        found = [(name, RUN + name) for name, count in counts.items() if count]
        for name, run in found:
            self._total.setdefault(name, 0.0)
            self._total.setdefault(run, 0.0)
        if len(self._names) > _MANY:
            self._names.clear()
        self._names[id(counts)] = counts, found
        return found

    def _grow(self, counts: Mapping[str, int], minutes: float) -> None:
        """Add a job to what has started since it was last worked out, where limits are nearer than all that is held."""
        grown, most = self._grown, self._most
        for name, more in (
            (JOBS, 1.0),
            *counts.items(),
            *((RUN + name, count * minutes) for name, count in counts.items()),
        ):
            if name in most:
                grown[name] += more
                if grown[name] > most[name]:
                    self._stands = False

    def left(self, job: Job, *, late: bool) -> None:
        """A job holds nothing any more.

        :param late: whether it had outlived its limit: it made up for minutes of others, which count in full now.
        """
        self._changes += 1
        if late:
            self._stands = False
        held = self._active.pop(job.id, None)
        if held is None:
            return
        counts, minutes = held
        total = self._total
        total[JOBS] -= 1.0
        for name, run in self._names_in(counts):
            count = counts[name]
            total[name] -= count
            total[run] -= count * minutes

    def _drop(self, job_id: str) -> None:
        if self._new.pop(job_id, None) is None:
            self._waiting.pop(job_id, None)
            if self._several:
                self._several.discard(job_id)

    # ------------------------------------------------------------------------------- asked
    def until(self, job: Job | None) -> Seconds:
        """Return up to when a job is surely let in, or all that wait; in the past: that is not known."""
        if not self._stands or self._until <= self._view.now or (self._near and self._is_worth_while()):
            if not self._is_worth_while():
                return -math.inf
            self._begin()
        if not self._near and not self._several:
            if (self._new and not self._sees_new()) or not (self._knows_all or self._covers_all()):
                return self._until_for(job)
            return self._until  # whoever is asked about is among those who wait
        return self._until_for(job)

    def _until_for(self, job: Job | None) -> Seconds:
        """Return the same where it is not known of all that wait."""
        if job is None or job.required or self._shut(job) or not self._covers(job):
            return -math.inf
        return self._until

    def _is_worth_while(self) -> bool:
        return self._changes >= self._again_at

    def _begin(self) -> None:
        """Work it out anew, for nobody yet."""
        self._patience = min(2 * self._patience, _MOST_PATIENT) if self._near else 1
        self._stands, self._near, self._knows_all = True, False, False
        self._until = math.inf
        self._top.clear()
        self._most.clear()
        self._known.clear()
        self._boxes.clear()

    def _sees_new(self) -> bool:
        """Look at those who came; say whether what they ask for tells all about them, and they are let in."""
        new, self._new = self._new, {}
        sure = True
        for job in new.values():
            if job.required or len(job.partitions) > 1 or self._shut(job):
                self._several.add(job.id)
                sure = False
            else:
                self._waiting[job.id] = job
                sure = self._covers(job) and sure
        return sure

    def _covers_all(self) -> bool:
        for job in self._waiting.values():
            if not self._covers(job):
                return False
        self._knows_all = True
        return True

    def _covers(self, job: Job) -> bool:
        """Whether a job is surely let in as things stand; keeps what more may start."""
        box = self._box_of(job)
        if box is None:
            return self._covers_asked(self._asked_by(job))
        seat, size, cpus, limit = box
        boxes = self._boxes.get(seat)
        if boxes is None:
            boxes = self._boxes[seat] = []
        for large in boxes:
            if size <= large[0] and cpus <= large[1] and limit <= large[2]:
                return True
        if not self._covers_asked(self._asked_by(job)):
            return False
        boxes[:] = [each for each in boxes if each[0] > size or each[1] > cpus or each[2] > limit]
        boxes.append((size, cpus, limit))
        return True

    def _covers_asked(self, asked: Asked) -> bool:
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = self._fits(asked, self)
            if not known:
                self._near = True
                self._again_at = self._changes + self._patience
        return known

    def keep(self, name: str, most: float, held: float) -> bool:
        """Let others hold so much at most, of which they hold some now; say whether that is so.

        Where all that is held on the cluster is less, that is easily told later on; else nobody else may start who
        holds more than is left.
        """
        if held > most:
            return False
        if self._total.get(name, 0.0) <= most - _AMPLE * abs(most):
            if self._top.get(name, math.inf) > most:
                self._top[name] = most
            return True
        bound = self._grown.setdefault(name, 0.0) + most - held
        if self._most.get(name, math.inf) > bound:
            self._most[name] = bound
        return True

    def keep_until(self, at: Seconds) -> bool:
        """Let it hold up to an instant; say whether that lies ahead."""
        self._until = min(self._until, at)
        return at > self._view.now


__all__ = ["JOBS", "RUN", "Headroom"]
