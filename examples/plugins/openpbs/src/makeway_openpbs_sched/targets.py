"""Understand ``preempt_targets``: which jobs one may preempt at all (section 1.7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from makeway.errors import nearest
from makeway.model import Job
from makeway_openpbs_sched.requests import text_of

KNOWN_RESOURCES = ("ncpus", "mem", "walltime", "cput", "nodect", "soft_walltime")
"""Resources that every server has, as far as they are modelled."""


@attrs.frozen
class Targets:
    """Running jobs that fit any item are targets."""

    queues: frozenset[str] = frozenset()
    resources: tuple[tuple[str, str], ...] = ()
    none: bool = False
    """``None``: the job preempts no other."""

    def fit(self, running: Job) -> bool:
        """Whether a running job is a target."""
        return running.partition.name in self.queues or any(
            text_of(running, resource) == value for resource, value in self.resources
        )


def asked_targets(job: Job, server: Mapping[str, object]) -> str | None:
    """Return the job's preempt_targets as text: its own, its queue's, or the server's; None: there are none."""
    default = "resources_default.preempt_targets"
    for holder, key in (
        (job.spec.attributes, "preempt_targets"),
        (job.partition.attributes, default),
        (server, default),
    ):
        value = holder.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, Sequence):
            return ",".join(str(item) for item in value)
    return None


def targets_of(text: str, queues: Collection[str], resources: Collection[str]) -> Targets:
    """Read preempt_targets.

    :raises ValueError: naming the item that is wrong.
    """
    items = [item.strip() for item in text.split(",")]
    if any(item.lower() == "none" for item in items):
        if len(items) > 1:
            raise ValueError(f"preempt_targets: got {text!r}; None stands alone")
        return Targets(none=True)
    named: set[str] = set()
    asked: list[tuple[str, str]] = []
    for item in items:
        key, equals, value = item.partition("=")
        prefix, dot, resource = key.partition(".")
        if equals and key.strip().lower() == "queue":
            if value.strip() not in queues:
                raise ValueError(
                    f"preempt_targets: no queue {value.strip()!r}{nearest(value.strip(), queues)}"
                )
            named.add(value.strip())
        elif equals and dot and prefix == "Resource_List":
            if resource not in resources:
                raise ValueError(f"preempt_targets: no resource {resource!r}{nearest(resource, resources)}")
            asked.append((resource, value.strip()))
        else:
            options = "None, queue=NAME, Resource_List.RESOURCE=VALUE"
            raise ValueError(f"preempt_targets: got {item!r}; allowed: {options}")
    return Targets(frozenset(named), tuple(asked))
