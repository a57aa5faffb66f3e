"""Take in what people submit: ids, keys, and what is stored before the engine hears of a job.

The order makes it safe to repeat: the submission is stored, then the step that brings the job in is written down,
then the client is answered. A client that hears nothing asks again with the same key, and gets the same job. The key
stands in the journal with the job, so this holds over restarts.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs

from makeway.errors import MakewayError
from makeway.model import Job, JobSpec, JobState
from makeway.record import Line
from makeway.worlds.events import Submitted
from makeway_local_world import submission
from makeway_local_world.daemon.desk import Desk, Unwritten
from makeway_local_world.daemon.fairness import Share
from makeway_local_world.daemon.past import Past
from makeway_local_world.daemon.tally import Tally
from makeway_local_world.keeping.files import store
from makeway_local_world.processes.rundir import all_keys
from makeway_local_world.requests import Request, Who, specs, submission_of
from makeway_local_world.submission import Submission

_ENDS = frozenset(state.value for state in JobState if state.ended)
ROW = 2000
"""Bytes that a job takes in the journal, but for what it waits for."""
BLOCK = 100
"""Ids that are set aside on disk at a time, so that none is given twice even if the journal forgets old jobs."""
_COUNTER = "next-id"


class Refusal(MakewayError):  # noqa: N818  # an answer, not a fault
    """A submission that the engine refused; its text is the reason."""


@attrs.frozen(kw_only=True)
class Taken:
    """What became of a submission."""

    id: str
    """Id of the job, or of the array."""
    jobs: tuple[str, ...]
    repeated: bool = False
    """Whether the key was known: no job was made now."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return attrs.asdict(self) | {"jobs": list(self.jobs)}


class Numbers:
    """Hands out ids of jobs: 1, 2, 3, never one twice."""

    def __init__(self, state: Path, used: Sequence[str]) -> None:
        self._path = state / _COUNTER
        known = [int(each.partition("_")[0]) for each in used if each.partition("_")[0].isdigit()]
        given = 0
        with contextlib.suppress(OSError, ValueError):
            given = int(self._path.read_text())
        # A block that was begun goes on behind the last id that the journal knows.
        self.next = max([*known, given - BLOCK, 0]) + 1
        self._until = 0

    def take(self) -> str:
        """Return the next id.

        :raises OSError: the block that it begins cannot be stored.
        """
        if self.next > self._until:
            until = self.next + BLOCK - 1
            store(self._path, f"{until}\n")
            self._until = until
        self.next += 1
        return str(self.next - 1)

    def close(self) -> None:
        """Store the last id that was given, so that the next daemon goes on right behind it."""
        with contextlib.suppress(OSError):
            self._path.write_text(f"{self.next - 1 + BLOCK}\n")


class Intake:
    """Takes submissions in; used from the thread of the socket alone, but for `heard`."""

    def __init__(self, desk: Desk, state: Path, past: Past, share: Callable[[], Share]) -> None:
        self._desk = desk
        self._state = state
        self._share = share
        used = past.ids()
        self._numbers = Numbers(state, used)
        self._keys: dict[str, tuple[str, ...]] = {key: tuple(jobs) for key, jobs in past.keys().items()}
        self._under_way: dict[str, asyncio.Future[Taken]] = {}
        self._disk = ThreadPoolExecutor(4, "store")
        self._tally = Tally()
        self._count(desk.engine.ledger.jobs.values())
        self._forget_orphans(set(used))

    def _count(self, jobs: Iterable[Job]) -> None:
        """Count the jobs that an earlier daemon took in."""
        for job in jobs:
            size = 0
            with contextlib.suppress(OSError):
                size = os.stat(submission.directory_of(self._state, job.id) / submission.FILE).st_size
            self._tally.enter(job.user, (job.id,), size)

    def _forget_orphans(self, known: set[str]) -> None:
        """Delete what was stored for jobs that never came in, or that the journal has forgotten; not what was started.

        No user was answered about the former; the latter's starts were forgotten with them.
        """
        started = {job_id for job_id, _ in all_keys(self._state)}
        names = {submission.file_name(submission.stored_as(job_id)) for job_id in known | started}
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._state / "jobs"):
                if entry.name not in names:
                    shutil.rmtree(entry.path, ignore_errors=True)

    def heard(self, lines: Sequence[Line]) -> None:
        """Take note of jobs that have ended: what was run for them is cut off; called on the engine's thread."""
        for line in lines:
            if line.kind == "state" and line.data.get("state") in _ENDS and self._tally.ended(line.job):
                with contextlib.suppress(RuntimeError):  # the daemon ends
                    self._disk.submit(submission.forget, self._state, line.job)

    async def take(self, request: Request, who: Who, *, free: bool) -> Taken:
        """Make the jobs of a request; answer once they would survive a crash.

        :param free: whether this user may have more than a share.

        :raises ConfigError: the request is wrong.
        :raises Refusal: the job can never run here.
        :raises Unwritten: it cannot be stored.
        """
        if not request.key:
            return await self._make(request, who, free)
        key = f"{who.uid}:{request.key}"
        if key in self._under_way:
            return attrs.evolve(await asyncio.shield(self._under_way[key]), repeated=True)
        if key in self._keys:
            return _taken(self._keys[key], repeated=True)
        promise: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        self._under_way[key] = promise
        try:
            taken = await self._make(request, who, free)
        except BaseException as error:
            promise.set_exception(error)
            promise.exception()  # perhaps nothing else waits
            raise
        else:
            self._keys[key] = taken.jobs
            promise.set_result(taken)
            return taken
        finally:
            del self._under_way[key]

    async def _make(self, request: Request, who: Who, free: bool) -> Taken:
        # Whatever the engine does meanwhile: each of these is one value, and waits for no step.
        engine, clock = self._desk.engine, self._desk.live.clock
        now, wall = max(clock.now(), engine.ledger.now), clock.wall()
        requeues = engine.config.scheduler.requeue
        default = engine.ledger.cluster.default_partition
        if not request.partitions and default is not None:
            request = attrs.evolve(request, partitions=(default.name,))
        # The id comes last, so that a request that is wrong uses none up.
        made = specs(request, who, "0", now, wall)
        job_id = self._numbers.take()
        made = [_renamed(spec, job_id) for spec in made]
        requeueable = requeues if request.requeue is None else request.requeue
        stored = submission_of(request, who, made[0], requeueable)
        stored = attrs.evolve(stored, job_id=job_id)
        names = tuple(spec.id for spec in made)
        size = _size(request, len(made))
        if not free:
            self._check_share(who.user, len(made), size)
        self._tally.enter(who.user, names, size)
        try:
            await self._feed(request, who, made, stored)
        except Exception as error:
            if isinstance(error, Unwritten) and error.fed:
                raise
            for name in names:
                self._tally.ended(name)
            submission.delete(self._state, job_id)
            raise
        return _taken(names)

    def _check_share(self, user: str, jobs: int, size: int) -> None:
        """Refuse what is beyond the share of one user."""
        share, (had, held) = self._share(), self._tally.held_by(user)
        if had + jobs > share.jobs:
            more = f" and submits {jobs:,}" if jobs > 1 else ""
            raise Refusal(
                f"{user} has {had:,} jobs that wait or run{more}; allowed: {share.jobs:,} of one user (user_jobs)"
            )
        if held + size > share.storage:
            raise Refusal(
                f"the submissions of {user} take {(held + size) >> 20:,} MB with this one; "
                f"allowed: {share.storage >> 20:,} of one user (user_storage)"
            )

    async def _feed(self, request: Request, who: Who, made: Sequence[JobSpec], stored: Submission) -> None:
        """Store a submission, and bring its jobs in."""
        desk, names = self._desk, [spec.id for spec in made]
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._disk, submission.store, self._state, stored)
        try:
            why = await asyncio.wrap_future(
                desk.tell([Submitted(spec) for spec in made], lambda: _rejection(desk, names))
            )
        except Unwritten as error:
            if error.fed and request.key:  # who asks again is answered once the step is written down
                self._keys[f"{who.uid}:{request.key}"] = tuple(names)
            raise
        if why:
            raise Refusal(why)

    def close(self) -> None:
        """Take nothing any more."""
        self._numbers.close()
        self._disk.shutdown()


def _size(request: Request, tasks: int) -> int:
    """Return about how many bytes a submission takes on disk: what is run once, what is waited for with each task."""
    run = [
        *request.command,
        *(text for item in request.environment.items() for text in item),
        request.script or "",
        request.export,
    ]
    each = ROW + len(request.dependency or "") + len(request.features)
    return sum(map(len, run)) + tasks * each


def _renamed(spec: JobSpec, job_id: str) -> JobSpec:
    if spec.array_id is None:
        return attrs.evolve(spec, id=job_id)
    return attrs.evolve(spec, id=f"{job_id}_{spec.array_task}", array_id=job_id)


def _taken(jobs: tuple[str, ...], *, repeated: bool = False) -> Taken:
    return Taken(id=jobs[0].partition("_")[0], jobs=jobs, repeated=repeated)


def _rejection(desk: Desk, names: Sequence[str]) -> str:
    """Return why the engine rejected one of the jobs in the last turn; empty: it took them."""
    wanted = set(names)
    for line in desk.lines:
        if line.kind == "rejected" and line.job in wanted:
            reason = str(line.data.get("reason", ""))
            return reason if " " in reason else f"{reason}: by itself it asks for more than this limit allows"
    return ""
