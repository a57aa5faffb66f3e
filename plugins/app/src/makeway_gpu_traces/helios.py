"""Read the logs of SenseTime's Helios and of Shanghai AI Lab's Acme: Slurm's accounting as CSV.

They share their columns, but for the virtual cluster (``vc``, Helios) and the kind of work (``type``, Acme). A virtual
cluster becomes a partition; the kind of work is the job's queue for ``[[workload.map]]``.
"""

from __future__ import annotations

from typing import Any

import attrs

from makeway_gpu_traces.fields import BadRowError, Fields, amount, instant, known, whole, word

_SHARED = frozenset(
    "job_id user gpu_num cpu_num node_num state submit_time start_time end_time duration queue".split()
)


@attrs.frozen(kw_only=True)
class SlurmCsv:
    """One of the two logs."""

    name: str
    own: str
    """The column that only this log has."""
    dated: bool = True
    notes: tuple[str, ...] = ()

    @property
    def needed(self) -> frozenset[str]:
        """See `makeway_gpu_traces.trace.Format`."""
        return _SHARED | {self.own}

    def submitted(self, fields: Fields) -> float:
        """Return when a job was submitted."""
        return instant(fields["submit_time"], "submit_time")

    def job(self, fields: Fields, number: int) -> dict[str, Any]:
        """Return one job; its whole allocation starts together."""
        del number
        if not known(fields["start_time"]) or not known(fields["duration"]):
            raise BadRowError(f"it never ran: {fields['state'] or 'no state'}", usual=True)
        gpus, nodes = whole(fields, "gpu_num"), max(1, whole(fields, "node_num"))
        run = amount(fields, "duration")
        said: dict[str, Any] = {"state": fields["state"]}
        if known(fields["queue"]):
            said["wait"] = amount(fields, "queue")
        group = word(fields, self.own)
        if self.own == "type":
            said["queue"] = group
        return {
            "id": word(fields, "job_id"),
            "user": fields["user"] or "user",
            "partitions": (group,) if self.own == "vc" else (),
            "run_time": run,
            "time_limit": run,
            "min_nodes": nodes,
            "max_nodes": nodes,
            "tasks": max(nodes, whole(fields, "cpu_num")),
            "gres_total": {"gpu": gpus} if gpus else {},
            "attributes": said,
        }


HELIOS = SlurmCsv(name="helios", own="vc")
ACME = SlurmCsv(name="acme", own="type")
