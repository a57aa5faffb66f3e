"""Say what a job asks for: chunks, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway.model import Exclusive, Job, JobSpec


@attrs.frozen(kw_only=True)
class Request:
    """A request: so many like chunks, each whole on one vnode."""

    chunks: int
    chunk: Mapping[str, float]
    """Resource -> amount of each chunk; ``ncpus`` is always there, ``mem`` in MB."""
    per_vnode: Mapping[str, float]
    """Resource -> amount that each vnode in use gives once."""
    most_per_vnode: int | None
    """Most chunks on one vnode; None: as many as fit."""
    vnodes: int
    """Fewest vnodes wanted."""
    whole: bool
    """Wants vnodes for itself (place=excl)."""


def request_of(job: Job) -> Request:
    """Read the request of `job`: a task is a chunk."""
    return _request(job.spec, max(1, job.size, job.required.bit_count()))


def _request(spec: JobSpec, vnodes: int) -> Request:
    per_chunk = max(1, spec.cpus_per_task)
    chunks = max(1, -(-spec.cpus // per_chunk), vnodes)
    most = spec.tasks_per_node
    if vnodes > 1:
        spread = -(-chunks // vnodes)
        most = spread if most is None else min(most, spread)
    chunk: dict[str, float] = {"ncpus": per_chunk}
    if spec.memory_mb_per_cpu:
        chunk["mem"] = spec.memory_mb_per_cpu * per_chunk
    per_vnode: dict[str, float] = dict(spec.gres)
    if spec.memory_mb_per_node:
        per_vnode["mem"] = spec.memory_mb_per_node
    return Request(
        chunks=chunks,
        chunk=chunk,
        per_vnode=per_vnode,
        most_per_vnode=most,
        vnodes=vnodes,
        whole=spec.exclusive is Exclusive.NODE,
    )


def resources_of(job: Job) -> dict[str, float]:
    """Return all that a job asks for, as limits count it: ``ncpus``, ``mem`` in MB, and whatever else is counted."""
    asked = request_of(job)
    found = {name: amount * asked.chunks for name, amount in asked.chunk.items()}
    for name, amount in asked.per_vnode.items():
        found[name] = found.get(name, 0.0) + amount * asked.vnodes
    for name, amount in {**job.spec.gres_total, **job.spec.licenses}.items():
        found[name] = found.get(name, 0.0) + amount
    return found


def text_of(job: Job, resource: str) -> str:
    """Return what a job asked of a resource as text: as it was written, if the workload says it."""
    written = job.spec.attributes.get("Resource_List", {})
    if isinstance(written, Mapping) and resource in written:
        return str(written[resource])
    if resource == "walltime" and job.time_limit is not None:
        seconds = int(job.time_limit)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    amount = resources_of(job).get(resource)
    return "" if amount is None else f"{amount:g}"
