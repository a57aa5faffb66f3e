"""Hold jobs against the reservations of one run (slurm-priority-and-limits 9)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Blocked, ClusterView, Job, Overdue, Partition, Seconds, Window
from makeway_slurm.reservations.settings import Settings
from makeway_slurm.reservations.tables import Reservation, reservations_of

MAINTENANCE = "ReqNodeNotAvail,_Reserved_for_maintenance"
OTHERS = "ReqNodeNotAvail,_May_be_reserved_for_other_job"
BEFORE = "Reservation"
IMPOSSIBLE = "BadConstraints"
OVER_RUN = "resv_over_run"
"""Attribute of the cluster: ResvOverRun in seconds."""
_AHEAD: Seconds = 14 * 86400.0
"""How far ahead windows are named that come again and again."""
_MOST = 400
"""Windows of one reservation that are named at most."""


class ReservationBook:
    """The reservations of one run. See `makeway.model.Roll`."""

    def __init__(self, view: ClusterView) -> None:
        settings = view.settings(Settings)
        self._complete = settings.complete
        self._epoch = settings.epoch
        given = settings.overrun
        self._overrun = float(view.cluster.attributes.get(OVER_RUN, 0.0)) if given is None else given
        listed = reservations_of(view.cluster)
        self._all = listed if settings.documented else tuple(each.as_measured() for each in listed)
        self._by_name: dict[str, list[Reservation]] = {}
        for each in self._all:
            self._by_name.setdefault(each.name, []).append(each)
        self._inside: dict[str, tuple[Job, Seconds]] = {}
        """Active jobs in a reservation, and when they have to end."""
        self._present: dict[str, int] = {}
        """Jobs that asked for a reservation and wait or run, by its name."""
        self._last_gone: dict[str, Seconds] = {}
        """When the last of them went."""
        self._purged: set[tuple[Reservation, Seconds]] = set()
        """Reservations that were taken away before a job asked for them again, with the begin of their window."""
        self._magnetic = [each for each in self._all if "MAGNETIC" in each.flags]
        self._every_node = sum(1 << node.index for node in view.cluster.nodes)

    # ----------------------------------------------------------------------- as a book
    def came(self, job: Job, view: ClusterView) -> None:
        """Learn from a job that was submitted what time it is, and which jobs reservations are there for."""
        for name in _named(job):
            for each in self._by_name.get(name, ()):
                if self._purged_at(each, view.now) <= view.now:
                    self._purged.add((each, self._current(each, view.now)[0]))
            self._present[name] = self._present.get(name, 0) + 1
        if self._epoch is None and job.spec.wall_submit is not None:
            self._epoch = job.spec.wall_submit - job.spec.submit_at

    def gone(self, job: Job, view: ClusterView) -> None:
        """It no longer counts."""
        for name in _named(job):
            self._present[name] = self._present.get(name, 0) - 1
            self._last_gone[name] = view.now

    def started(self, job: Job, view: ClusterView) -> None:
        """Note when a job has to end because its reservation does."""
        mine = self._of(job, view.now) if job.spec.reservation else self._drawn_into(job, view.now)
        if mine is not None and "FLEX" not in mine.flags:
            end = self._current(mine, view.now)[1]
            if not math.isinf(end):
                self._inside[job.id] = job, end + self._overrun

    def left(self, job: Job, view: ClusterView) -> None:
        """It has ended."""
        del view
        self._inside.pop(job.id, None)

    # ------------------------------------------------------------------------- looking up
    def _of(self, job: Job, now: Seconds) -> Reservation | None:
        """Return the reservation that a job is in: of several of the name the first that is not over."""
        listed = [each for name in _named(job) for each in self._by_name.get(name, ())]
        return next((each for each in listed if self._lives(each, now)), listed[-1] if listed else None)

    def _lives(self, each: Reservation, now: Seconds) -> bool:
        return (
            each.created <= now < min(each.deleted, self._purged_at(each, now), self._current(each, now)[1])
        )

    def _purged_at(self, each: Reservation, now: Seconds) -> Seconds:
        """Return when a reservation is taken away if no job comes: it has begun, and no job asks for it."""
        begin = self._current(each, now)[0]
        if (each, begin) in self._purged:
            return begin
        if math.isinf(each.purged_after) or begin > now or self._present.get(each.name, 0):
            return math.inf
        return max(begin, self._last_gone.get(each.name, begin)) + each.purged_after

    def _drawn_into(self, job: Job, now: Seconds) -> Reservation | None:
        """Return the magnetic reservation that an active job without one runs in; None: there is none."""
        return next(
            (each for each in self._magnetic if job.nodes & each.nodes and self._draws(each, job, now)), None
        )

    def _draws(self, each: Reservation, job: Job, now: Seconds) -> bool:
        """Whether a magnetic reservation that has begun lets a job in that did not ask for any."""
        listed = bool(each.users or each.accounts or each.not_users or each.not_accounts)
        return (
            "MAGNETIC" in each.flags
            and not job.spec.reservation
            and listed
            and each.admits(job.user, job.account)
            and self._lives(each, now)
            and self._current(each, now)[0] <= now
        )

    def _current(self, each: Reservation, now: Seconds) -> tuple[Seconds, Seconds]:
        """Return begin and end of the window that a reservation is in, or that comes next."""
        start, end = each.start.seconds(self._epoch), each.end.seconds(self._epoch)
        if each.floats:
            passed = max(0.0, now - max(0.0, each.created))
            return start + passed, end + passed
        if each.repeats and end <= now:
            later = (math.floor((now - end) / each.repeats) + 1) * each.repeats
            return start + later, end + later
        return start, end

    # --------------------------------------------------------------------------- questions
    def refused(self, job: Job, view: ClusterView) -> str:
        """Return why a job is refused at its submission; empty: it is taken (no. 5).

        A reservation that is not described refuses no job, unless all are described (`Settings.complete`).
        """
        mine = self._of(job, view.now)
        if self._complete and (mine is None or not self._lives(mine, view.now)):
            return f"Requested reservation is invalid ({job.spec.reservation})"
        if mine is None:
            return ""
        if not mine.admits(job.user, job.account) and job.user != "root":
            return f"Access denied to requested reservation ({mine.name})"
        if view.now >= self._current(mine, view.now)[0] and all(
            _beyond(job, part, mine, view) for part in job.partitions
        ):
            return f"Requested node configuration is not available (reservation {mine.name})"
        return ""

    def waits(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return why a job in a reservation has to wait for the reservation itself; None: it has not."""
        mine = self._of(job, view.now)
        if mine is None or "FLEX" in mine.flags:
            return None
        if not self._lives(mine, view.now):
            if view.now < mine.created:
                return Blocked(reason=BEFORE, resource="limit", ask_again_at=mine.created, keeps_nothing=True)
            text = f"Reservation {mine.name} was deleted"
            return Blocked(reason=text.replace(" ", "_"), resource="limit", detail=text, keeps_nothing=True)
        start = self._current(mine, view.now)[0]
        if view.now >= start:
            if _beyond(job, job.partition, mine, view):
                text = f"reservation {mine.name} has no such nodes"
                end = self._current(mine, view.now)[1]
                again = None if math.isinf(end) or mine.floats else end
                return Blocked(
                    reason=IMPOSSIBLE, resource="limit", detail=text, ask_again_at=again, keeps_nothing=True
                )
            return None
        text = f"reservation {mine.name} begins at {start:,.0f} s"
        again = None if math.isinf(start) or mine.floats else start
        return Blocked(
            reason=BEFORE,
            resource="limit",
            detail=text,
            ask_again_at=again,
            keeps_nothing=True,
            before_nodes=True,
        )

    def windows(self, job: Job, view: ClusterView) -> list[Window]:
        """Return the times for which nodes are kept from a job."""
        now = view.now
        mine = self._of(job, now) if job.spec.reservation else None
        found: list[Window] = []
        if mine is not None and not mine.any_nodes:
            found.append(Window(nodes=self._every_node & ~mine.nodes))
        for each in self._all:
            if each is mine or each.created > now or each.deleted <= now or not each.nodes:
                continue
            if mine is not None and _passes(mine, each):
                continue
            if self._draws(each, job, now):
                continue
            reason = self._reason(each, job.partition.nodes)
            gone = min(each.deleted, self._purged_at(each, now))
            if each.floats:
                if _longest(job) > self._current(each, now)[0] - now:
                    found.append(Window(nodes=each.nodes, end=gone, reason=reason))
                continue
            for start, end in self._times(each, now):
                found.append(Window(nodes=each.nodes, start=start, end=min(end, gone), reason=reason))
        return found

    def _times(self, each: Reservation, now: Seconds) -> Iterator[tuple[Seconds, Seconds]]:
        start, end = self._current(each, now)
        if end <= now or math.isinf(start):
            return
        yield start, end
        for _ in range(_MOST if each.repeats else 0):
            start, end = start + each.repeats, end + each.repeats
            if start > now + _AHEAD:
                return
            yield start, end

    def _reason(self, each: Reservation, partition: NodeBits) -> str:
        """Return what jobs wait for that find no node beside it (no. 2)."""
        everything = not self._every_node & ~each.nodes
        whole = "MAINT" in each.flags and not partition & ~each.nodes
        return MAINTENANCE if everything or whole else OTHERS

    def overdue(self, view: ClusterView) -> Overdue | None:
        """Return the jobs whose reservation is over (no. 5), and when the next one is."""
        if not self._inside:
            return None
        now = view.now
        over: dict[str, str] = {}
        later: list[Seconds] = []
        for job_id, (job, end) in self._inside.items():
            if end <= now:
                over[job_id] = f"its reservation {job.spec.reservation} is over"
            else:
                later.append(end)
        return Overdue(jobs=over, ask_again_at=min(later, default=None))


def _named(job: Job) -> list[str]:
    """Return the reservations that a job asks for."""
    return [name.strip() for name in job.spec.reservation.split(",")] if job.spec.reservation else []


def _beyond(job: Job, partition: Partition, mine: Reservation, view: ClusterView) -> bool:
    """Whether a job asks for more than the nodes of its reservation have (recorded: reservation_too_small)."""
    if mine.any_nodes:
        return False
    nodes = mine.nodes & partition.nodes
    listed = [view.cluster.nodes[index] for index in bitmap.indices(nodes)]
    able = [
        node
        for node in listed
        if node.cpus >= job.spec.cpus_per_node
        and all(node.gres.get(name, 0) >= count for name, count in job.spec.gres.items())
    ]
    return (
        job.size > len(able) or bool(job.required & ~nodes) or job.spec.cpus > sum(node.cpus for node in able)
    )


def _longest(job: Job) -> Seconds:
    """Return for how long a job may run (no. 1)."""
    limit = job.time_limit if job.time_limit is not None else job.partition.max_time
    return math.inf if limit is None else limit


def _passes(mine: Reservation, other: Reservation) -> bool:
    """Whether a job in one reservation need not heed another (no. 6)."""
    return "MAINT" in mine.flags or ("OVERLAP" in mine.flags and "MAINT" not in other.flags)
