"""Read Alibaba's pods of 2023 (openb) and its high-priority and spot jobs of 2026."""

from __future__ import annotations

import math
from typing import Any

import attrs

from makeway_gpu_traces.fields import BadRowError, Fields, amount, cores, known, whole, word

MILLI = "gpu_milli"
"""Counted resource: thousandths of GPUs."""


@attrs.frozen
class Openb:
    """Pods: each asks for cores, memory, and whole GPUs or a fraction of one."""

    name: str = "openb"
    needed: frozenset[str] = frozenset(
        "name cpu_milli memory_mib num_gpu gpu_milli gpu_spec qos creation_time deletion_time scheduled_time".split()
    )
    dated: bool = False
    notes: tuple[str, ...] = (
        f"GPUs are asked for in thousandths ({MILLI}); a fraction lies on one GPU under select/cons_tres "
        "and select/gpu_pack, other selectors count thousandths over a node",
    )

    def submitted(self, fields: Fields) -> float:
        """Return when a pod was created."""
        return amount(fields, "creation_time")

    def job(self, fields: Fields, number: int) -> dict[str, Any]:
        """Return one pod; it runs from its scheduling to its deletion."""
        del number
        if not known(fields["scheduled_time"]):
            raise BadRowError("it was never scheduled", usual=True)
        run = amount(fields, "deletion_time") - amount(fields, "scheduled_time")
        if run < 0:
            raise BadRowError("deletion_time is before scheduled_time")
        milli = whole(fields, "num_gpu") * whole(fields, "gpu_milli")
        memory = math.ceil(amount(fields, "memory_mib"))
        return {
            "id": word(fields, "name"),
            "qos": word(fields, "qos"),
            "run_time": run,
            "tasks": 1,
            "cpus_per_task": cores(amount(fields, "cpu_milli")),
            "max_nodes": 1,
            "memory_mb_per_node": memory or None,
            "gres": {MILLI: milli} if milli else {},
            "features": fields["gpu_spec"],
            "attributes": {
                "wait": max(0.0, amount(fields, "scheduled_time") - amount(fields, "creation_time")),
                "phase": fields.get("pod_phase", ""),
            },
        }


@attrs.frozen
class Spot:
    """Jobs: gangs of like workers, each high-priority (``HP``) or ``Spot``, which becomes the QOS."""

    name: str = "alibaba-spot"
    needed: frozenset[str] = frozenset(
        "job_name organization gpu_model cpu_request gpu_request worker_num submit_time duration job_type".split()
    )
    dated: bool = False
    notes: tuple[str, ...] = ()

    def submitted(self, fields: Fields) -> float:
        """Return when a job was submitted."""
        return amount(fields, "submit_time")

    def job(self, fields: Fields, number: int) -> dict[str, Any]:
        """Return one job; all of its workers start together."""
        del number
        workers = whole(fields, "worker_num", least=1)
        gpus = amount(fields, "gpu_request")
        found = {
            "id": word(fields, "job_name"),
            "account": fields["organization"] or None,
            "qos": word(fields, "job_type"),
            "run_time": amount(fields, "duration"),
            "tasks": workers,
            "cpus_per_task": max(1, math.ceil(amount(fields, "cpu_request"))),
            "features": fields["gpu_model"],
        }
        if gpus == int(gpus):
            return found | {"gres_total": {"gpu": int(gpus) * workers} if gpus else {}}
        raise BadRowError(f"gpu_request: got {fields['gpu_request']!r}; allowed: whole GPUs")


OPENB = Openb()
SPOT = Spot()
