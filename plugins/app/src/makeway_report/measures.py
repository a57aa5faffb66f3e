"""Add up the measures that papers on GPU clusters report; docs/gpus.md says what each means."""

from __future__ import annotations

import math
from array import array
from typing import Any

from makeway import measures
from makeway.metrics import SLOWDOWN_BOUND, median, tidy
from makeway.model import Allocation, Cluster, Job, JobState, PreemptMode, Seconds
from makeway_report import gpus
from makeway_report.fragments import Fragments

_HOLDS = frozenset((JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING))
_EVICTS = frozenset((PreemptMode.REQUEUE, PreemptMode.CANCEL, PreemptMode.CHECKPOINT))


class Measures(measures.Measures):
    """Completion times, use of GPUs, fragmentation, fairness and evictions of one run."""

    def __init__(self, cluster: Cluster) -> None:
        """Begin with an empty cluster."""
        nodes = cluster.nodes
        self._parts = gpus.parts_in_one(nodes)
        self._gpus = sum(gpus.of_node(node) for node in nodes)
        self._all = self._gpus or float(sum(node.cpus for node in nodes))
        """What jobs share: GPUs, or CPUs where there are none."""
        self._fragments = Fragments(cluster, self._parts) if self._gpus else None
        self._holding: dict[str, tuple[Allocation, tuple[float, ...], Seconds]] = {}
        """Job -> what it holds, its GPUs on each node, and since when."""
        self._held = self._used = self._lost = 0.0
        self._jobs = self._evictions = 0
        self._times = array("d")
        self._fairness = array("d")
        self._crowd = 0
        """Jobs in the system that ask for what is shared."""
        self._crowded = 0.0
        """The integral of their number over time."""
        self._at: Seconds = 0.0
        self._came: dict[str, float] = {}
        """Job in the system -> the integral when it came."""

    # ------------------------------------------------------------------------------ events
    def entered(self, job: Job, now: Seconds) -> None:
        """A job was submitted, or was there before."""
        self._jobs += 1
        if self._fragments is not None:
            self._fragments.came(job.spec, now)
        if self._wants(job):
            self._pass(now)
            self._crowd += 1
            self._came[job.id] = self._crowded

    def moved(self, job: Job, before: JobState, state: JobState, since: Seconds, now: Seconds) -> None:
        """A job is in another state; it was in the one before since `since`."""
        known = self._holding.get(job.id)
        if known is not None and before is JobState.RUNNING:
            self._used += (now - since) * sum(known[1])
        if state in _HOLDS:
            if known is None and job.allocation is not None:
                self.holds(job, job.allocation, now)
        elif known is not None:
            self._let_go(job.id, now)

    def holds(self, job: Job, allocation: Allocation, now: Seconds) -> None:
        """A job holds an allocation from now on."""
        each = gpus.held(job.spec, allocation, self._parts)
        self._holding[job.id] = allocation, each, now
        if self._fragments is not None:
            self._fragments.change(allocation, each, -1, now)

    def _let_go(self, job_id: str, now: Seconds) -> None:
        allocation, each, since = self._holding.pop(job_id)
        self._held += (now - since) * sum(each)
        if self._fragments is not None:
            self._fragments.change(allocation, each, 1, now)

    def amended(self, job: Job, allocation: Allocation | None, seconds: Seconds) -> None:
        """A job ran so many seconds more than was thought, or fewer."""
        if allocation is not None:
            self._used += seconds * sum(gpus.held(job.spec, allocation, self._parts))

    def lost(self, job: Job, allocation: Allocation | None, seconds: Seconds) -> None:
        """So many seconds of a job's running on this allocation were thrown away."""
        if allocation is not None:
            self._lost += seconds * sum(gpus.held(job.spec, allocation, self._parts))

    def preempted(self, mode: PreemptMode) -> None:
        """A job was told to make way."""
        self._evictions += mode in _EVICTS

    def ended(self, job: Job, *, started: bool, needed: Seconds, now: Seconds) -> None:
        """A job is over.

        :param started: whether it ever ran.
        :param needed: for how many seconds it had to run.
        """
        shared = self._left(job, now)
        if not started:
            return
        time = now - job.spec.submit_at
        self._times.append(time)
        if shared is None:
            return
        crowd = shared / time if time > 0 else float(self._crowd + 1)
        slower = max(1.0, self._share(job) * max(1.0, crowd) / self._all)
        self._fairness.append(time / (max(needed, SLOWDOWN_BOUND) * slower))

    def rejected(self, job: Job, now: Seconds) -> None:
        """A job can never run here: none shares with it."""
        self._left(job, now)

    # ------------------------------------------------------------------------------ sharing
    def _share(self, job: Job) -> float:
        return gpus.wanted(job.spec, self._parts) if self._gpus else float(job.spec.cpus)

    def _wants(self, job: Job) -> bool:
        return self._share(job) > 0

    def _pass(self, now: Seconds) -> None:
        self._crowded += self._crowd * (now - self._at)
        self._at = now

    def _left(self, job: Job, now: Seconds) -> float | None:
        """Return the integral of the number of jobs over the time of a job; None: it is not counted."""
        came = self._came.pop(job.id, None)
        if came is None:
            return None
        self._pass(now)
        self._crowd -= 1
        return self._crowded - came

    # ------------------------------------------------------------------------------ results
    def as_dict(self, begin: Seconds, end: Seconds) -> dict[str, Any]:
        """Return the measures by name; times in seconds.

        :param begin: first submission.
        :param end: last end of a job.
        """
        found: dict[str, Any] = {}
        times = self._times
        if times:
            found |= {
                "jct_mean": tidy(math.fsum(times) / len(times)),
                "jct_median": tidy(median(times)),
                "jct_p99": tidy(sorted(times)[math.ceil(0.99 * len(times)) - 1]),
            }
        found["evictions_per_job"] = tidy(self._evictions / self._jobs) if self._jobs else 0.0
        if self._fairness:
            total, squares = math.fsum(self._fairness), math.fsum(each * each for each in self._fairness)
            found["finish_time_fairness_worst"] = tidy(max(self._fairness))
            found["finish_time_fairness_jain"] = tidy(total * total / (len(self._fairness) * squares))
        return found | self._of_gpus(begin, end)

    def _of_gpus(self, begin: Seconds, end: Seconds) -> dict[str, Any]:
        """Return how GPUs were used; nothing where there are none."""
        if self._fragments is None:
            return {}
        capacity = self._gpus * (end - begin)
        held = self._held + sum(
            max(0.0, end - since) * sum(each) for _, each, since in self._holding.values()
        )
        found = {
            "gpus": tidy(self._gpus),
            "gpu_utilisation": tidy(self._used / capacity) if capacity > 0 else 0.0,
            "gpu_allocation": tidy(held / capacity) if capacity > 0 else 0.0,
            "gpu_seconds_lost": tidy(self._lost),
        }
        if self._fragments.placed and capacity > 0:
            free, stranded, unusable = self._fragments.figures(end)
            found["gpus_stranded"] = tidy(stranded / (end - begin))
            found["gpu_fragmentation"] = tidy(unusable / free) if free else 0.0
        return found


def measures_of(cluster: Cluster, *, always: bool) -> Measures | None:
    """Return what adds up the measures of a run; None: there are no GPUs, and it is not `always` asked for."""
    return Measures(cluster) if always or gpus.has_gpus(cluster) else None
