"""Write what a record shows of nodes, CPUs and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from makeway import bitmap
from makeway.history import History, Interval, last_run, needed
from makeway.hostlist import fold_hostlist
from makeway.metrics import tidy
from makeway.model import Allocation, Job, JobState, Node, Seconds

_PENDING = JobState.PENDING


class Shapes:
    """How things of one cluster are written; sets of nodes are folded once."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._names: dict[int, str] = {}
        self._cores = [node.cpus for node in nodes]
        self.same_cores = self._cores[0] if len(set(self._cores)) == 1 else None
        """CPUs of each node; None: they differ."""
        self.cpus = sum(self._cores)
        """Of all nodes."""

    def cores_of(self, job: Job) -> int:
        """Return how many CPUs a job holds."""
        return self.cpus_held(job.allocation)

    def cpus_held(self, allocation: Allocation | None) -> int:
        """Return how many CPUs an allocation holds; none without one."""
        if allocation is None:
            return 0
        if allocation.cpus is not None:
            return sum(allocation.cpus)
        if self.same_cores is not None:
            return self.same_cores * len(allocation.node_indices)
        return sum(self._cores[index] for index in allocation.node_indices)

    def node_list(self, nodes: bitmap.NodeBits) -> str:
        """Return a set of nodes as a folded host list."""
        text = self._names.get(nodes)
        if text is None:
            listed = self.nodes
            text = fold_hostlist([listed[index].name for index in bitmap.indices(nodes)])
            if len(self._names) < 10_000:
                self._names[nodes] = text
        return text

    def cpus_of(self, allocation: Allocation) -> dict[str, str]:
        """Return node name -> folded CPU numbers."""
        listed = self.nodes
        cores = allocation.cores
        shown = {}
        for at, index in enumerate(allocation.node_indices):
            node = listed[index]
            if cores is None:
                shown[node.name] = _folded(range(node.cpus))
            else:
                threads = node.threads_per_core
                shown[node.name] = _folded(
                    core * threads + thread for core in bitmap.indices(cores[at]) for thread in range(threads)
                )
        return shown

    def job_dict(self, history: History, now: Seconds) -> dict[str, Any]:
        """Return one job in the design's shape; an open interval ends at `now`."""
        job = history.job
        intervals = list(history.intervals)
        if history.final_state is None:
            intervals.append((history.state, history.since, now, history.allocation, job.restarts))
        shown: dict[str, Any] = {
            "name": job.spec.name,
            "partition": job.partition.name,
            "user": job.user,
            "submit": tidy(job.spec.submit_at),
            "final_state": (history.final_state or history.state).value,
            "reason": history.problem or ("" if history.final_state else job.reason),
            "restarts": job.restarts,
            "core_seconds_lost": tidy(history.lost),
            **({"core_seconds_to_submit_again": tidy(history.again)} if history.again else {}),
            "intervals": [self._interval_dict(interval) for interval in intervals],
        }
        run = needed(job, history.worked)
        if history.final_state is not None and history.first_start is not None and run > last_run(history):
            shown["needed"] = tidy(run)
        return shown

    def _interval_dict(self, interval: Interval) -> dict[str, Any]:
        state, start, end, allocation, restarts = interval
        shown: dict[str, Any] = {
            "state": state.value,
            "start": tidy(start),
            "end": tidy(end),
            "restart": restarts,
        }
        if allocation is not None and state is not _PENDING:
            shown["nodes"] = self.node_list(allocation.nodes)
            shown["cpus"] = self.cpus_of(allocation)
        return shown


def _folded(numbers: Iterable[int]) -> str:
    """Return 0-3,5 for 0 1 2 3 5."""
    shown = []
    for first, stop in bitmap.runs(bitmap.of(list(numbers))):
        shown.append(str(first) if stop == first + 1 else f"{first}-{stop - 1}")
    return ",".join(shown)
