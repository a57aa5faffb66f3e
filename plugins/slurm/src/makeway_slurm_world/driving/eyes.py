"""See what Slurm shows, as cheaply as possible (slurm-live 3).

A narrow ``squeue`` each time says what changed; only that is asked for in detail. Now and then, and after any outage,
everything is read again.
"""

from __future__ import annotations

from collections.abc import Collection

from makeway.hostlist import expand_hostlist
from makeway.model import JobState, Seconds
from makeway_slurm_world.driving.components import parts_of
from makeway_slurm_world.reading.jobs import LIVE, LiveJob, Zone, ids_of, live_jobs
from makeway_slurm_world.reading.look import reserved_nodes
from makeway_slurm_world.reading.records import UnreadableError, job_lines, job_record
from makeway_slurm_world.talking.runner import Reader, SlurmError
from makeway_slurm_world.talking.words import QUEUE, Question, show, show_jobs

_ONE_BY_ONE = 8
"""Changed jobs that are asked for one by one; more are read with everything."""
_AT_WORK = (JobState.RUNNING, JobState.COMPLETING)
ENDS = {
    "COMPLETED": JobState.COMPLETED,
    "CANCELLED": JobState.CANCELLED,
    "TIMEOUT": JobState.TIMEOUT,
    "DEADLINE": JobState.CANCELLED,
    "NODE_FAIL": JobState.NODE_FAIL,
    "OUT_OF_MEMORY": JobState.OUT_OF_MEMORY,
    "PREEMPTED": JobState.PREEMPTED,
}
"""Any other end is a failure."""


class Eyes:
    """Keeps what was seen last."""

    def __init__(
        self, reader: Reader, zone: Zone, nodes: Collection[str], lease: str, full_look: Seconds
    ) -> None:
        """Begin with nothing seen.

        :param nodes: the nodes that are watched.
        :param lease: the reservation that is ours.
        :param full_look: seconds between two reads of everything.
        """
        self._reader = reader
        self._zone = zone
        self._nodes = nodes
        self._lease = lease
        self._every = full_look
        self._all_at: Seconds | None = None
        self._rows: dict[str, tuple[str, ...]] = {}
        self._again: set[str] = set()
        self.jobs: dict[str, LiveJob] = {}
        """All jobs that have not ended, by id."""
        self.ended: dict[str, JobState] = {}
        """How jobs ended, as long as Slurm remembers."""
        self.nodes: dict[str, str] = {}
        """State of each watched node, in Slurm's words."""
        self.reserved: frozenset[str] = frozenset()
        """Nodes that other reservations hold."""
        self.leased = True
        """Whether the lease was there at the last read of everything."""
        self.blind = True
        """Whether everything has to be read again: nothing was seen yet, or the controller was away."""

    def again(self, job_id: str) -> None:
        """Ask for a job in detail the next time, whether it seems to have changed or not."""
        self._again.add(job_id)

    def look(self, now: Seconds) -> set[str]:
        """Look once; return the ids of jobs that may have changed, those that are gone included.

        :raises SlurmError: nothing could be seen; everything is read again the next time.
        """
        try:
            return self._look(now)
        except SlurmError:
            self.blind = True
            raise

    def _look(self, now: Seconds) -> set[str]:
        rows: dict[str, tuple[str, ...]] = {}
        for line in self._reader.ask(QUEUE).out.splitlines():
            number, _, rest = line.partition("|")
            state, reason, *more = rest.split("|")
            told = (state, reason) if state == "PENDING" else (state, *more[:2])
            rows[number] = (*rows.get(number, ()), *told)
        changed = {number for number in {*rows, *self._rows} if rows.get(number) != self._rows.get(number)}
        changed |= {str(self.jobs[each].number) if each in self.jobs else each for each in self._again}
        whole = self.blind or self._all_at is None or now >= self._all_at + self._every
        before = set(self.jobs)
        if whole or len(changed) > _ONE_BY_ONE:
            seen = self._read(show_jobs(), now, whole=True)
            self._all_at = now
            seen |= before
        else:
            seen = set()
            for number in sorted(changed):
                seen |= self._one(number, now)
        self._see_nodes(whole=whole)
        self._rows = rows
        self._again.clear()
        self.blind = False
        return seen

    def _one(self, number: str, now: Seconds) -> set[str]:
        """Ask for one record; ids that it had and has no more are gone."""
        old = {job_id for job_id, job in self.jobs.items() if str(job.number) == number}
        seen = self._read(show_jobs(number), now, whole=False)
        for job_id in old - seen:
            self.jobs.pop(job_id, None)
        return seen | old

    def _read(self, question: Question, now: Seconds, *, whole: bool) -> set[str]:
        """Take in records.

        :param whole: whether jobs that are not there have ended.
        """
        answer = self._reader.ask(question, may_fail=not whole)
        seen: set[str] = set()
        found: dict[str, LiveJob] = {}
        for line in job_lines(answer.out):
            try:
                record = job_record(line)
                jobs = live_jobs(record, self._zone, now)
                ids = ids_of(record)
            except (UnreadableError, ValueError):
                continue  # nothing is done with a job that cannot be told for certain
            seen.update(ids)
            found.update({job.id: job for job in jobs})
            if record.state not in LIVE:
                self.ended |= dict.fromkeys(ids, ENDS.get(record.state, JobState.FAILED))
                for job_id in ids:
                    if not whole:
                        self.jobs.pop(job_id, None)
        if whole:
            self.jobs = found
        else:
            self.jobs |= found
        for job_id in found:
            self.ended.pop(job_id, None)
        return seen

    def _see_nodes(self, *, whole: bool) -> None:
        text = self._reader.ask(Question(("sinfo", "-h", "-a", "-N", "-o", "%N|%T"))).out
        pairs = (line.strip().partition("|") for line in text.splitlines())
        self.nodes = {name: state for name, _, state in pairs if name in self._nodes}
        if whole:
            found = reserved_nodes(self._reader.ask(show("res")).out, "")
            self.leased = any(name == self._lease for name, _ in found)
            found = [each for each in found if each[0] != self._lease]
            self.reserved = frozenset(name for _, nodes in found for name in nodes if name in self._nodes)

    def parts(self, job: LiveJob) -> tuple[LiveJob, ...]:
        """Return all components of a job, the leader first; an ordinary job alone."""
        return parts_of(job, self.jobs)

    @property
    def leaving(self) -> bool:
        """Whether a job is completing on a watched node: nothing says when it is gone."""
        leaving = (job for job in self.jobs.values() if job.state is JobState.COMPLETING)
        return any(name in self._nodes for job in leaving for name in job.nodes)

    def holders(self, node: str) -> list[LiveJob]:
        """Return the jobs that hold something of a node."""
        return [job for job in self.jobs.values() if node in job.nodes]


def cores_of(job: LiveJob) -> dict[str, set[int]]:
    """Return the CPU ids that a job holds on each of its nodes."""
    found: dict[str, set[int]] = {}
    for place in job.places:
        ids: set[int] = set()
        for part in place.cpus.split(","):
            first, _, last = part.partition("-")
            if first.isdigit():
                ids |= set(range(int(first), int(last or first) + 1))
        for name in expand_hostlist(place.nodes):
            found[name] = ids
    return found


def in_use(job: LiveJob, eyes: Eyes) -> bool:
    """Whether another job is at work on CPUs of a job, or of one of its components."""
    parts = eyes.parts(job)
    ours = {part.id for part in parts}
    return any(
        other.state in _AT_WORK and overlap(part, other)
        for part in parts
        for name in part.nodes
        for other in eyes.holders(name)
        if other.id not in ours
    )


def overlap(one: LiveJob, other: LiveJob) -> bool:
    """Whether two jobs hold a CPU in common."""
    mine, its = cores_of(one), cores_of(other)
    return any(mine[name] & its[name] for name in mine.keys() & its.keys())
