"""Turn lsb.queues, and what lies beside it, into a configuration of makeway (spec lsf 9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.config import (
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    SchedulerTable,
    build_cluster,
    validate,
)
from makeway.errors import ConfigError, Problem
from makeway.readers.api import Imported
from makeway.readers.lines import read_text
from makeway.settings import structure
from makeway_lsf_queue import lint, values
from makeway_lsf_queue.compiling import build_site
from makeway_lsf_queue.groups import hosts_in
from makeway_lsf_queue.readers import keywords, tables
from makeway_lsf_queue.readers.grammar import Messages
from makeway_lsf_queue.readers.lsf_conf import lsf_conf
from makeway_lsf_queue.readers.tables import Draft
from makeway_lsf_queue.settings import NAME, Settings
from makeway_lsf_queue.values import WrongValueError
from makeway_lsf_queue.windows import Clock

SIBLINGS: Mapping[str, Callable[[Any, Draft, Messages], None]] = {
    "lsb.params": tables.read_params,
    "lsb.hosts": tables.read_hosts,
    "lsb.users": tables.read_users,
    "lsb.resources": tables.read_limits,
    "lsb.applications": tables.read_applications,
}
_QUEUE = re.compile(r"^\s*begin\s+queue\b", re.IGNORECASE | re.MULTILINE)
_HIGHEST_TIER = 65533


@attrs.define(kw_only=True)
class LsbQueuesReader:
    """Reads lsb.queues."""

    name: str = "lsb.queues"
    clock: Clock | None = None
    """When ``#if time(...)`` is asked; None: midnight between Saturday and Sunday."""

    def claims(self, path: Path, head: str) -> bool:
        """Recognise the name, or a Queue section."""
        return path.name == "lsb.queues" or _QUEUE.search(head) is not None

    def read(self, path: Path) -> Imported:
        """Read it, and the files beside it.

        :raises ConfigError: there is nothing to run on, or a file cannot be read.
        """
        draft = Draft()
        said: list[str] = []
        self._take(path, tables.read_queues, draft, said)
        beside = {name: path.with_name(name) for name in (*SIBLINGS, "lsf.conf")}
        for name, read in SIBLINGS.items():
            if beside[name].is_file():
                self._take(beside[name], read, draft, said)
        if beside["lsf.conf"].is_file():
            messages = Messages("lsf.conf")
            known = lsf_conf(read_text(beside["lsf.conf"]), messages)
            draft.lsf_conf = {key: known[key] for key in keywords.LSF_CONF if key in known}
            said += messages.found
        return _imported(draft, said, path)

    def _take(
        self, path: Path, read: Callable[[Any, Draft, Messages], None], draft: Draft, said: list[str]
    ) -> None:
        messages = Messages(path.name)
        read(tables.parsed(read_text(path), messages, self.clock), draft, messages)
        said += messages.found


def _imported(draft: Draft, said: list[str], path: Path) -> Imported:
    if not draft.queues:
        said.append(f"{path.name}: no queue; there is one named default")
        draft.queues["default"] = {}
    _drop_wrong_values(draft, said)
    config = _config(draft, said, path)
    validate(config, str(path))
    cluster = build_cluster(config)
    settings = structure(config.policy.settings[NAME], Settings, str(path))
    places = _places(config, draft)
    for finding in lint.load_time(build_site(cluster, settings)):
        said.append(str(finding.at(places)).removeprefix("warning: "))
    if draft.idle:
        said.append(f"no effect here: {', '.join(_by_file(draft.idle))}")
    return Imported(config=config, warnings=tuple(said), places=places)


def _by_file(idle: Iterable[str]) -> list[str]:
    found: dict[str, list[str]] = {}
    for each in idle:
        file, _, key = each.partition(":")
        found.setdefault(file, []).append(key)
    return [f"{' '.join(keys)} ({file})" for file, keys in found.items()]


# ----------------------------------------------------------------------------------- wrong values
def _drop_wrong_values(draft: Draft, said: list[str]) -> None:
    """Leave out what the daemons would ignore with a message, so that defaults apply (9.2 no. 8, 9)."""
    trial = Config(
        node=(NodeTable(name="trial"),),
        partition=tuple(
            PartitionTable(name=name, attributes=table) for name, table in draft.queues.items()
        ),
    )
    settings = Settings(params=draft.params, applications=draft.applications, lsf_conf=draft.lsf_conf)
    names = list(draft.queues)
    for problem in build_site(build_cluster(trial), settings).problems:
        head, _, key = problem.where.rpartition(".")
        queue = re.fullmatch(r"partition\[(\d+)\]\.attributes", head)
        if queue is not None:
            name = names[int(queue.group(1))]
            table, place = draft.queues[name], draft.places.get(("queue", name, key), "lsb.queues")
        elif ".applications." in head:
            name = head.partition(".applications.")[2]
            table, place = draft.applications[name], draft.places.get(("app", name, key), "lsb.applications")
        elif head == "lsf.conf":
            table, place = draft.lsf_conf, "lsf.conf"
        else:
            table, place = draft.params, draft.places.get(("params", "", key), "lsb.params")
        if key in table:
            del table[key]
            said.append(f"{place}: {key}: {problem.message}; the line is ignored")
    _drop_wrong_numbers(draft, said)


def _drop_wrong_numbers(draft: Draft, said: list[str]) -> None:
    """The same for tables whose values are only looked at when jobs are counted."""
    checks: tuple[tuple[str, dict[str, dict[str, str]], Mapping[str, Callable[[str], object]]], ...] = (
        ("lsb.users", draft.users, {"MAX_JOBS": values.integer, "JL/P": values.decimal}),
        ("lsb.hosts", draft.hosts, {"MXJ": _slots, "JL/U": values.integer}),
        (
            "limit",
            {str(at): table for at, table in enumerate(draft.limits)},
            {"SLOTS": values.integer, "SLOTS_PER_PROCESSOR": values.decimal, "JOBS": values.integer},
        ),
    )
    for kind, named, reads in checks:
        for name, table in named.items():
            for key, read in reads.items():
                try:
                    read(table.get(key, "0"))
                except WrongValueError as error:
                    del table[key]
                    said.append(f"{draft.places.get((kind, name, ''), kind)}: {key}: {error}; it is ignored")


def _slots(text: str) -> int:
    return 1 if text == "!" else values.integer(text)


# ------------------------------------------------------------------------------------- building
def _config(draft: Draft, said: list[str], path: Path) -> Config:
    nodes = _nodes(draft, said, path)
    everybody = [node.name for node in nodes]
    slots = max((node.cpus or 1 for node in nodes), default=1)
    default = draft.params.get("DEFAULT_QUEUE", "").split()
    chosen = next((name for name in default if name in draft.queues), next(iter(draft.queues)))
    settings = {
        "params": {key: text for key, text in draft.params.items() if key != "DEFAULT_QUEUE"},
        "applications": draft.applications,
        "users": draft.users,
        "user_groups": {name: list(listed) for name, listed in draft.user_groups.items()},
        "host_groups": {name: list(listed) for name, listed in draft.host_groups.items()},
        "limits": draft.limits,
        "lsf_conf": draft.lsf_conf,
    }
    return Config(
        node=nodes,
        partition=tuple(
            _queue(name, table, draft, everybody, said, default=name == chosen)
            for name, table in draft.queues.items()
        ),
        policy=PolicyTable(
            select="select/cons_tres" if slots > 1 else "select/linear",
            select_parameters=("CR_Core",) if slots > 1 else (),
            preempt=NAME,
            preempt_mode=("suspend",),
            settings={NAME: {key: table for key, table in settings.items() if table}},
        ),
        scheduler=SchedulerTable(type="greedy", rules={"linear_suspend_frees_memory": False}),
    )


def _nodes(draft: Draft, said: list[str], path: Path) -> tuple[NodeTable, ...]:
    """Return the hosts: of lsb.hosts, and those that queues name besides."""
    default = draft.hosts.get("default", {})
    rows: dict[str, dict[str, str]] = {}
    for name, table in draft.hosts.items():
        if name != "default":
            for host in hosts_in(name, draft.host_groups, ()):
                rows.setdefault(host, table)
    listed = " ".join(table.get("HOSTS", "") for table in draft.queues.values())
    for host in hosts_in(listed.replace("~", " "), draft.host_groups, ()):
        rows.setdefault(host, default)
    if not rows:
        text = "no hosts: list them in the Host section of lsb.hosts beside it, or in HOSTS of the queues"
        raise ConfigError(str(path), [Problem("", text)])
    unknown = [host for host, table in rows.items() if table.get("MXJ", "!") == "!"]
    if unknown:
        few = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        said.append(f"lsb.hosts: MXJ of {few} is as many as there are processors, which no file says; 1 is assumed")
    return tuple(
        NodeTable(
            name=host,
            cpus=max(1, _slots(table.get("MXJ", "!"))),
            up=table.get("MXJ") != "0",
            attributes={"JL/U": table["JL/U"]} if "JL/U" in table else {},
        )
        for host, table in rows.items()
    )


def _queue(
    name: str,
    table: Mapping[str, str],
    draft: Draft,
    everybody: list[str],
    said: list[str],
    *,
    default: bool,
) -> PartitionTable:
    place = draft.places.get(("queue", name, ""), "lsb.queues")
    priority = int(table.get("PRIORITY", "1"))
    if priority > _HIGHEST_TIER:
        said.append(f"{place}: PRIORITY {priority} orders the queue as {_HIGHEST_TIER}, the highest tier there is")
    hosts = everybody
    if "HOSTS" in table:
        listed = hosts_in(table["HOSTS"], draft.host_groups, everybody)
        hosts = [host for host in listed if host in everybody]
    least: float | None = None
    most: float | None = None
    if "RUNLIMIT" in table:
        try:
            least, most = values.run_limits(table["RUNLIMIT"])
        except WrongValueError as error:
            said.append(f"{draft.places.get(('queue', name, 'RUNLIMIT'), place)}: RUNLIMIT: {error}; ignored")
    left = ("HOSTS", "RUNLIMIT")
    return PartitionTable(
        name=name,
        nodes="ALL" if len(hosts) == len(everybody) else ",".join(hosts),
        priority_tier=min(priority, _HIGHEST_TIER),
        default=default,
        max_time=most,
        default_time=least,
        attributes={key: text for key, text in table.items() if key not in left},
    )


def _places(config: Config, draft: Draft) -> dict[str, str]:
    found = {}
    for at, part in enumerate(config.partition):
        for (kind, name, key), place in draft.places.items():
            if kind == "queue" and name == part.name:
                path = f"partition[{at}]" + (f".attributes.{key}" if key else "")
                found[path] = place
    table = f'policy.settings."{NAME}"'
    for (kind, name, key), place in draft.places.items():
        if kind == "params":
            found[f"{table}.params.{key}"] = place
        elif kind == "lsb.users":
            found[f"{table}.users.{name}"] = place
        elif kind == "limit":
            found[f"{table}.limits[{name}]"] = place
    return found
