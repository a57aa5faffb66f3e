"""Write the record of a run as one JSON document without holding it in memory.

Jobs go to a temporary file when they end; in the end they are copied from there in order of submission, one line
each. Of each job only its place in that file stays in memory. The document's shape is docs/record.schema.json.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from types import TracebackType
from typing import IO, Any

import attrs

from makeway.config import Config
from makeway.history import RECORD_VERSION, History, Preemption, submission
from makeway.hostlist import fold_hostlist
from makeway.metrics import tidy
from makeway.model import Cluster, Node, Seconds
from makeway.record import Recorder
from makeway_app.replay import Run

_SEPARATORS = (",", ":")


@attrs.frozen(kw_only=True)
class About:
    """What a record says about its run, beside what happened."""

    config: Config
    cluster: Cluster
    workload: str
    label: str
    """What the run is called where several are shown."""
    epoch: float | None = None
    """Unix time of second 0; None: not known."""


# ------------------------------------------------------------------------------ beginning of a record
def heading(about: About, recorder: Recorder) -> dict[str, Any]:
    """Return the keys ``record`` and ``cluster``."""
    policy = about.config.policy
    return {
        "record": {
            "version": RECORD_VERSION,
            "makeway": metadata.version("makeway"),
            "label": about.label,
            "workload": about.workload,
            "epoch": about.epoch,
            "policy": {
                "select": policy.select,
                "preempt": policy.preempt,
                "preempt_mode": list(policy.preempt_mode),
                "gang": policy.gang,
                "protect": list(policy.protect),
                "displaces_by": recorder.grouping.noun,
                "scheduler": about.config.scheduler.type,
            },
        },
        "cluster": _cluster_dict(about.cluster, recorder),
    }


def _cluster_dict(cluster: Cluster, recorder: Recorder) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "cores": sum(node.cpus for node in cluster.nodes),
        "nodes": list(_alike(cluster.nodes)),
        "partitions": [
            {"name": each.name, "priority_tier": each.priority_tier, "nodes": recorder.node_list(each.nodes)}
            for each in cluster.partitions
        ],
        "qos": [{"name": each.name, "priority": each.priority} for each in cluster.qos],
    }


def _alike(nodes: tuple[Node, ...]) -> Iterator[dict[str, Any]]:
    """Yield neighbours of one size together, in index order."""
    start = 0
    for at in range(1, len(nodes) + 1):
        if at < len(nodes) and _size(nodes[at]) == _size(nodes[start]):
            continue
        names = fold_hostlist([node.name for node in nodes[start:at]])
        yield {"names": names, "count": at - start, **_size(nodes[start])}
        start = at


def _size(node: Node) -> dict[str, Any]:
    shown: dict[str, Any] = {"cpus": node.cpus, "memory_mb": node.memory_mb}
    if node.gres:
        shown["gres"] = dict(node.gres)
    return shown


# ---------------------------------------------------------------------------------- what happened
def job_record(history: History, recorder: Recorder, now: Seconds) -> dict[str, Any]:
    """Return one job in the record's shape; what is still open ends at `now`."""
    job = history.job
    waits = list(history.waits)
    if history.waiting is not None and now > history.waiting[0]:
        waits.append((history.waiting[0], now, history.waiting[1]))
    shown = {**recorder.job_dict(history, now), **submission(job), "displaces_as": recorder.grouping.of(job)}
    shown["waits"] = [
        {"start": tidy(start), "end": tidy(end), "reason": reason} for start, end, reason in waits
    ]
    shown["decisions"] = [{"at": tidy(each.at), **each.as_dict()} for each in history.told]
    if history.untold:
        shown["decisions_left_out"] = history.untold
    return shown


class JsonArchive:
    """Keeps jobs and preemptions in temporary files until they can be written in order."""

    def __init__(self, folder: str | None = None) -> None:
        """Open the temporary files.

        :param folder: where they are to lie; None: where the system has them.
        :raises OSError: nothing can be written there.
        """
        self._jobs = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by __exit__
        self._preemptions = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._places = array("q")
        """Where each job begins in the file, by its number; -1: it has not ended."""
        self._failed: OSError | None = None
        """Why nothing more is kept: a disk may be full long before the run is over."""

    def __enter__(self) -> JsonArchive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._jobs, self._preemptions):
            with contextlib.suppress(OSError):  # what a full disk did not take is of no use
                file.close()

    def ended(self, history: History, recorder: Recorder) -> None:
        """Take a job that has ended."""
        self._add(history, recorder, history.ended_at or 0.0)

    def preempted(self, entry: Preemption) -> None:
        """Take a preemption."""
        self._append(self._preemptions, _bytes(entry.as_dict()) + b"\n")

    def _append(self, file: IO[bytes], line: bytes) -> None:
        if self._failed is None:
            try:
                file.write(line)
            except OSError as error:
                self._failed = error

    def _add(self, history: History, recorder: Recorder, now: Seconds) -> None:
        places = self._places
        if history.number >= len(places):
            places.extend([-1] * (history.number + 1 - len(places)))
        places[history.number] = self._jobs.tell()
        shown = job_record(history, recorder, now)
        key = json.dumps(history.job.id).encode()
        self._append(self._jobs, key + b":" + _bytes(shown) + b"\n")

    def write(
        self,
        to: Callable[[str], object],
        run: Run,
        about: About,
        more: Mapping[str, Any],
    ) -> None:
        """Write the whole document; the run is over.

        :param more: further keys at the end, ``metrics`` among them.
        :raises OSError: there was no room for it.
        """
        if self._failed is not None:
            raise self._failed
        recorder = run.recorder
        recorder.finish(run.ended_at)
        self._jobs.seek(0, io.SEEK_END)  # it may have been read before, for another file
        for history in recorder.histories.values():
            if history.final_state is None:
                self._add(history, recorder, run.ended_at)
        for position, (key, value) in enumerate(heading(about, recorder).items()):
            to(("," if position else "{") + f"\n{json.dumps(key)}:{_text(value)}")
        to(',\n"jobs":{')
        _separated(to, self._in_order())
        to('},\n"preemptions":[')
        self._preemptions.seek(0)
        _separated(to, self._preemptions)
        to("]")
        about_nodes = recorder.about_nodes(run.ended_at)
        for key, value in {**recorder.mishaps(), **about_nodes, **more}.items():
            to(f",\n{json.dumps(key)}:{_text(value)}")
        to("\n}\n")

    def _in_order(self) -> Iterator[bytes]:
        jobs = self._jobs
        for place in self._places:
            if place >= 0:
                jobs.seek(place)
                yield jobs.readline()


def _separated(to: Callable[[str], object], lines: Iterator[bytes]) -> None:
    before = "\n"
    for line in lines:
        to(before + line[:-1].decode())
        before = ",\n"
    to("\n" if before != "\n" else "")


def _bytes(value: object) -> bytes:
    return _text(value).encode()


def _text(value: object) -> str:
    return json.dumps(value, separators=_SEPARATORS)
