"""Understand limits on running jobs and resources, hard and soft, and count against them (section 2.3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from makeway.errors import nearest
from makeway.model import Job
from makeway_openpbs_sched import requests
from makeway_openpbs_sched.reasons import Reason, entity_of

GENERIC = "PBS_GENERIC"
ALL = "PBS_ALL"
_ENTITIES = {"u": "user", "g": "group", "p": "project", "o": "all"}
_SPEC = re.compile(r"\s*([ugpo]):([^=\s]+|\"[^\"]+\")\s*=\s*(\S+)\s*")
_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)([bw]?)", re.IGNORECASE)
_OLD = {
    "max_running": ("o", ALL, "jobs"),
    "max_user_run": ("u", GENERIC, "jobs"),
    "max_group_run": ("g", GENERIC, "jobs"),
    "max_user_res": ("u", GENERIC, ""),
    "max_group_res": ("g", GENERIC, ""),
}
"""Limits of the older form -> entity, name and what is counted."""
NAMES = ("max_run", "max_run_res", *_OLD)


@attrs.frozen
class Limits:
    """Limits of the server or of one queue; by kind of entity and resource, name -> most."""

    hard: Mapping[tuple[str, str], Mapping[str, float]] = attrs.field(factory=dict)
    soft: Mapping[tuple[str, str], Mapping[str, float]] = attrs.field(factory=dict)
    total: Mapping[str, float] = attrs.field(factory=dict)
    """``resources_available``: resource -> most of it in use."""


def limits_of(attributes: Mapping[str, object]) -> Limits:
    """Read the limits among the attributes of the server or a queue.

    :raises ValueError: beginning with the attribute that is wrong.
    """
    hard: dict[tuple[str, str], dict[str, float]] = {}
    soft: dict[tuple[str, str], dict[str, float]] = {}
    total: dict[str, float] = {}
    for key, value in attributes.items():
        name, dot, resource = key.partition(".")
        if name == "resources_available" and dot:
            total[resource] = amount_of(key, str(value))
            continue
        if not is_limit(key):
            continue
        base = name.removesuffix("_soft")
        into = soft if base != name else hard
        of_resource = base.endswith("_res")
        if of_resource is not bool(dot):
            form = f"{name}.RESOURCE" if of_resource else name
            raise ValueError(f"{key}: allowed: {form}")
        for entity, who, most in _entries(key, base, str(value)):
            into.setdefault((_ENTITIES[entity], resource or "jobs"), {})[who] = most
    return Limits(hard, soft, total)


def unknown_attribute(key: str, further: Iterable[str] = ()) -> str:
    """Say that an attribute is none that is modelled, with the nearest that is; empty: it is one.

    :param further: attributes that are no limits.
    """
    name, _, resource = key.partition(".")
    if is_limit(key) or key in further or (name == "resources_available" and resource):
        return ""
    known = [
        *NAMES,
        *(f"{each}_soft" for each in NAMES if each != "max_running"),
        "resources_available.RESOURCE",
    ]
    return f"{key}: no such attribute is modelled{nearest(key, (*known, *further))}"


def is_limit(key: str) -> bool:
    """Whether an attribute is a limit that counts running jobs."""
    return key.partition(".")[0].removesuffix("_soft") in NAMES


def _entries(key: str, base: str, value: str) -> Iterator[tuple[str, str, float]]:
    if base in _OLD:
        entity, who, _ = _OLD[base]
        yield entity, who, amount_of(key, value)
        return
    parts = re.findall(r"\[([^\]]*)\]", value)
    if not parts or re.sub(r"\[[^\]]*\]", "", value).strip(" ,"):
        raise ValueError(
            f"{key}: got {value!r}; allowed: [u:NAME=n], [g:...], [p:...], [o:{ALL}=n], with commas"
        )
    for spec in (each for part in parts for each in part.split(",")):
        match = _SPEC.fullmatch(spec)
        if match is None:
            raise ValueError(f"{key}: got [{spec}]; allowed: u, g, p or o, a colon, a name, '=' and a number")
        entity, who, most = match.groups()
        who = who.strip('"')
        if (entity == "o") is not (who == ALL):
            raise ValueError(
                f"{key}: got [{spec}]; {ALL} goes with o: and nothing else{nearest(who, [ALL, GENERIC])}"
            )
        yield entity, who, amount_of(key, most)


def amount_of(key: str, text: str) -> float:
    """Read a number, or a size, which comes back in MB.

    :raises ValueError: it is neither.
    """
    match = _SIZE.fullmatch(text.strip().strip('"'))
    if match is None:
        raise ValueError(f"{key}: got {text!r}; allowed: a whole number, or a size such as 8gb")
    number, prefix, unit = match.groups()
    if not prefix and not unit:
        return float(number)
    scale = 1024.0 ** ("kmgtp".index(prefix.lower()) + 1) if prefix else 1.0
    return int(number) * scale * (8 if unit.lower() == "w" else 1) / 1024.0**2


# ----------------------------------------------------------------------------------- counting
class Usage:
    """What running jobs use, by server or queue, entity and resource; jobs in reservations do not count."""

    def __init__(self, running: Iterable[Job]) -> None:
        self._used: Counter[tuple[str, str, str, str]] = Counter()
        for job in running:
            self.add(job)

    def add(self, job: Job, times: int = 1) -> None:
        """Count one more job; with ``times=-1`` one less."""
        if job.spec.reservation is not None:
            return
        amounts = {"jobs": 1.0, **requests.resources_of(job)}
        for queue in ("", job.partition.name):
            for entity in _ENTITIES.values():
                who = entity_of(job, entity)
                for resource, amount in amounts.items():
                    self._used[queue, entity, who, resource] += times * amount  # type: ignore[assignment]  # amounts

    def of(self, queue: str, entity: str, who: str, resource: str) -> float:
        """Return what is used; `queue` is empty for the server."""
        return self._used[queue, entity, who, resource]


def _most(limits: Mapping[str, float], entity: str, who: str) -> float | None:
    """Return the limit of one entity: its own, else the generic one."""
    return limits.get(ALL) if entity == "all" else limits.get(who, limits.get(GENERIC))


def over_soft(job: Job, limits: Limits, queue: str, usage: Usage) -> bool:
    """Whether an entity of `job` is over a soft limit; limits on a resource are for jobs that ask for it."""
    if job.spec.reservation is not None:
        return False
    asked = {"jobs": 1.0, **requests.resources_of(job)}
    for (entity, resource), named in limits.soft.items():
        who = entity_of(job, entity)
        most = _most(named, entity, who)
        if most is not None and asked.get(resource, 0) > 0 and usage.of(queue, entity, who, resource) > most:
            return True
    return False


def hit_hard(job: Job, limits: Limits, queue: str, usage: Usage) -> Iterator[tuple[Reason, float, float]]:
    """Yield the hard limits that the start of `job` would break, with what it asks for and what is left."""
    scope = "queue" if queue else "server"
    asked = {"jobs": 1.0, **requests.resources_of(job)}
    for (entity, resource), named in limits.hard.items():
        who = entity_of(job, entity)
        most = _most(named, entity, who)
        used = usage.of(queue, entity, who, resource)
        if most is not None and asked.get(resource, 0) > 0 and used + asked[resource] > most:
            reason = Reason("limit", scope=scope, entity=entity, resource=resource)
            yield reason, asked[resource], most - used
    for resource, most in limits.total.items():
        used = usage.of(queue, "all", "", resource)
        if asked.get(resource, 0) > 0 and used + asked[resource] > most:
            reason = Reason("resource", scope=scope, resource=resource)
            yield reason, asked[resource], most - used
