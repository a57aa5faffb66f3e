"""Name what blocks a job, and say which running jobs could help with it (sections 3.4 and 3.6)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Job
from makeway_openpbs_sched import requests

_LIMIT = re.compile(r"(server|queue) limit on (\S+) of (user|group|project|all)")
_RESOURCE = re.compile(r"(server|queue) resource (\S+) is short")
_VNODES = re.compile(r"not enough (\S+) on vnodes")
_NAMED = "a named vnode is busy"
_NO_MATCH = "no vnode matches"


@attrs.frozen
class Reason:
    """Why a job cannot start; two are the same if kind and resource are."""

    kind: str
    """limit, resource, vnodes, named, other."""
    scope: str = ""
    """server or queue."""
    entity: str = ""
    """user, group, project or all."""
    resource: str = ""
    """A resource; ``jobs``: the number of running jobs."""

    @property
    def text(self) -> str:
        """How it is shown; `reason_of` reads it back."""
        if self.kind == "limit":
            return f"{self.scope} limit on {self.resource} of {self.entity}"
        if self.kind == "resource":
            return f"{self.scope} resource {self.resource} is short"
        if self.kind == "vnodes":
            return f"not enough {self.resource} on vnodes"
        return _NAMED if self.kind == "named" else _NO_MATCH


def reason_of(text: str) -> Reason:
    """Read a pending reason; what is none of ours is of the kind ``other``."""
    if match := _LIMIT.fullmatch(text):
        return Reason("limit", scope=match[1], resource=match[2], entity=match[3])
    if match := _RESOURCE.fullmatch(text):
        return Reason("resource", scope=match[1], resource=match[2])
    if match := _VNODES.fullmatch(text):
        return Reason("vnodes", resource=match[1])
    return Reason("named") if text == _NAMED else Reason("other")


def entity_of(job: Job, kind: str) -> str:
    """Return the user, group or project of a job; ``all`` is every one."""
    if kind == "user":
        return job.user
    if kind == "group":
        return job.spec.group or ""
    return str(job.spec.attributes.get("project", "_pbs_project_default")) if kind == "project" else ""


def helps(reason: Reason, running: Job, preemptor: Job, oddities: bool) -> bool:
    """Whether the end of `running` could cure `reason` for `preemptor` (the table of section 3.4).

    :param oddities: whether the server's limit on a resource of a project compares users, as the source does.
    """
    same_queue = running.partition.name == preemptor.partition.name
    asked = requests.resources_of(running)
    if reason.kind == "limit":
        entity = reason.entity
        if oddities and (reason.scope, entity) == ("server", "project") and reason.resource != "jobs":
            entity = "user"
        return (
            (reason.scope == "server" or same_queue)
            and (reason.resource == "jobs" or _asks(asked, reason.resource))
            and entity_of(running, entity) == entity_of(preemptor, entity)
        )
    if reason.kind == "resource":
        return (reason.scope == "server" or same_queue) and _asks(asked, reason.resource)
    if reason.kind == "vnodes":
        request = requests.request_of(running)
        return _asks(request.chunk, reason.resource) or _asks(request.per_vnode, reason.resource)
    if reason.kind == "named":
        return bool(running.nodes & preemptor.required)
    return True


def is_similar(reason: Reason, victim: Job, preemptor: Job, nodes: NodeBits) -> bool:
    """Whether a victim has to do with a reason of its preemptor, which is placed on `nodes` (section 3.6)."""
    if reason.kind in ("vnodes", "named"):
        return bool(victim.nodes & nodes)
    if reason.kind == "limit":
        same_queue = victim.partition.name == preemptor.partition.name
        entity = reason.entity
        return (reason.scope == "server" or same_queue) and (
            entity_of(victim, entity) == entity_of(preemptor, entity)
        )
    if reason.kind == "resource":
        return _asks(requests.resources_of(victim), reason.resource)
    return True


def _asks(asked: Mapping[str, float], resource: str) -> bool:
    return asked.get(resource, 0) > 0
