"""What all starts have in common: this machine, these settings, this state directory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from makeway.model import Cluster, Job
from makeway.state import held_of
from makeway.worlds.api import State
from makeway.worlds.events import Start
from makeway_local_world.keeping import words
from makeway_local_world.processes import environment
from makeway_local_world.processes.case import Case
from makeway_local_world.processes.gpus import Inventory, Strangers
from makeway_local_world.processes.machine import Cgroups, Cores, threads_of_cores
from makeway_local_world.processes.request import ahead_of, encode, mandate_of, request_of
from makeway_local_world.processes.saving import Saving
from makeway_local_world.processes.settings import Settings
from makeway_local_world.submission import Submission, SubmissionError, load, store_held


class Site:
    """Where jobs run, and how."""

    def __init__(self, cluster: Cluster, settings: Settings, state: State, inventory: Inventory) -> None:
        """Find out what this machine lets us do."""
        self.cluster = cluster
        self.settings = settings
        self.directory: Path = state.directory
        self.clock = state.clock
        place = os.stat(state.directory)
        self.daemon = f"{place.st_dev:x}-{place.st_ino:x}"
        """Names this state directory: the mark of its jobs, and their cgroup."""
        self.saving = Saving(settings, self.daemon)
        self.cores = Cores(cluster, threads_of_cores())
        off = Cgroups(why_not="world.settings.cgroups is off")
        self.cgroups = off if settings.cgroups == "off" else Cgroups.find(self.daemon)
        self.cgroups.limit_all(sum(node.usable_memory_mb for node in cluster.nodes))
        self.gpus = Strangers(inventory)
        self.kill_wait = state.clockwork.kill_wait or settings.kill_wait
        self.stop_delay = state.clockwork.suspend_grace_time or settings.stop_delay

    def request(self, action: Start, cases: Iterable[Case]) -> tuple[bytes, bytes, tuple[str, ...]]:
        """Return mandate and request for an incarnation, as they are sent, and its GPUs.

        :param cases: those that live, whose GPUs are taken.
        :raises LookupError: it cannot start; a KeyError: it never will.
        """
        submission = self._submission(action.job)
        taken = {gpu for case in cases for gpu in case.gpus}
        gpus = self.gpus.choose(_gpus_of(submission, action), taken)
        obstacle = self.saving.obstacle(submission, action.job, len(gpus or ()))
        mandate = encode(
            mandate_of(
                submission,
                action,
                settings=self.settings,
                cores=self.cores,
                cgroups=self.cgroups,
                gpus=gpus,
                obstacle=obstacle,
            )
        )
        if len(mandate) > words.LONGEST_MANDATE:
            raise KeyError(f"{submission.user} is in too many groups to start anything")
        request = request_of(
            submission,
            action,
            cluster=self.cluster,
            settings=self.settings,
            kill_wait=self.kill_wait,
            daemon=self.daemon,
            cores=self.cores,
            gpus=gpus,
        )
        if not obstacle:
            request = self.saving.saved(request, submission, action.job, gpus=bool(gpus))
        return mandate, encode(request), tuple(gpus or ())

    def _submission(self, job: Job) -> Submission:
        """Return what to run; where nothing is submitted, a workload may say it, and this user runs it."""
        if (self.directory / "jobs").is_dir():
            try:
                return load(self.directory, job.id)
            except SubmissionError as error:
                raise KeyError(str(error)) from None
        try:
            return environment.of_this_user(job)
        except LookupError as error:
            raise KeyError(error.args[0]) from None

    def note_held(self, action: Start) -> None:
        """Store what a start holds: a journal that got lost is made anew from that."""
        allocation = action.allocation or action.job.allocation
        if allocation is not None:
            with contextlib.suppress(OSError):  # only a journal that is lost, too, needs it
                store_held(
                    self.directory, action.job.id, action.incarnation, held_of(self.cluster, allocation)
                )

    def leader_only(self, job_id: str) -> bool:
        """Whether only the first process of a job gets signals."""
        try:
            return load(self.directory, job_id).signal_leader_only
        except SubmissionError:
            return False

    def ahead(self, job_id: str, limit: float | None) -> dict[str, Any] | None:
        """Return the signal that a job gets ahead of a time limit; None: none."""
        try:
            return ahead_of(load(self.directory, job_id), limit)
        except SubmissionError:
            return None

    def cores_of(self, job: Job) -> list[int]:
        """Return the CPUs to which a job is bound; empty: it is not."""
        return self.cores.of(job.allocation) if self.settings.bind else []


def _gpus_of(submission: Submission, action: Start) -> int:
    allocation = action.allocation or action.job.allocation
    if allocation is not None and "gpu" in allocation.gres:
        return sum(allocation.gres["gpu"])
    return submission.gpus
