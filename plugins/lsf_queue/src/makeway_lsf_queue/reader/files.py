"""Turn lsb.queues, and what lies beside it, into the tables of a configuration (lsf 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from makeway.errors import ConfigError, nearest
from makeway.foreign import ForeignConfig, Knob, Source
from makeway.settings import structure
from makeway_lsf_queue import check, values
from makeway_lsf_queue.compiling import build_site
from makeway_lsf_queue.groups import hosts_in
from makeway_lsf_queue.reader import keywords, tables, tuning
from makeway_lsf_queue.reader.grammar import Messages
from makeway_lsf_queue.reader.hosts import drop_wrong_hosts, places_of
from makeway_lsf_queue.reader.lsf_conf import lsf_conf
from makeway_lsf_queue.reader.sound import cluster_of, drop_wrong_values, slots
from makeway_lsf_queue.reader.tables import Draft
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
_OWN_CLOCK = {"preset": "ideal"}
_HIGHEST_TIER = 65533
_ALL = {"all", "others"}
"""What HOSTS calls all hosts, whichever there are."""


def translate(source: Source, clock: Clock | None) -> ForeignConfig:
    """Read lsb.queues, and the files beside it."""
    draft = Draft()
    said: list[str] = []
    guesses: list[str] = []
    _take(source.name, source.text, tables.read_queues, draft, said, clock)
    for name, read in SIBLINGS.items():
        text = _text_of(source, name)
        if text is not None:
            _take(name, text, read, draft, said, clock)
        elif name == "lsb.hosts":
            guesses.append("lsb.hosts: not there; the hosts are those that queues name, with one slot each")
    text = _text_of(source, "lsf.conf")
    if text is not None:
        messages = Messages("lsf.conf")
        known = lsf_conf(text, messages)
        draft.lsf_conf = {key: known[key] for key in keywords.LSF_CONF if key in known}
        said += messages.found
    return _translated(draft, said, guesses, source.name)


def knobs(source: Source, clock: Clock | None) -> Sequence[Knob]:
    """Return what a search may change in lsb.queues, and in lsb.params beside it.

    :raises ConfigError: one of them cannot be read.
    """
    draft, said = Draft(), list[str]()
    params = _text_of(source, "lsb.params") or ""
    _take(source.name, source.text, tables.read_queues, draft, said, clock)
    _take("lsb.params", params, tables.read_params, draft, said, clock)
    return tuning.knobs(source.name, draft)


def _take(
    name: str,
    text: str,
    read: Callable[[Any, Draft, Messages], None],
    draft: Draft,
    said: list[str],
    clock: Clock | None,
) -> None:
    messages = Messages(name)
    read(tables.parsed(text, messages, clock), draft, messages)
    said += messages.found


def _text_of(source: Source, name: str) -> str | None:
    """Return the text of a file beside `source`; None: there is none.

    :raises ConfigError: it is there, and cannot be read.
    """
    try:
        return source.beside(name).text
    except ConfigError as error:
        if "No such file" in error.problems[0].message:
            return None
        raise


def _translated(draft: Draft, said: list[str], guesses: list[str], name: str) -> ForeignConfig:
    drop_wrong_hosts(draft, said)
    if not draft.queues:
        said.append(f"{name}: no queue; there is one named default")
        draft.queues["default"] = {}
    drop_wrong_values(draft, said)
    made = _tables(draft, said, guesses)
    settings = structure(made["policy"]["settings"][NAME], Settings, name)
    places = _places(draft) | places_of(made["node"], draft)
    for finding in check.load_time(build_site(cluster_of(made), settings)):
        said.append(str(finding.at(places)).removeprefix("warning: "))
    said += _without_effect(draft.idle)
    return ForeignConfig(tables=made, warnings=tuple(said), guesses=tuple(guesses), places=places)


def _without_effect(idle: Iterable[str]) -> Iterator[str]:
    """Yield what has no effect here: together what has the same reason, last what is about something else."""
    by_reason: dict[str, list[str]] = {}
    for each in idle:
        by_reason.setdefault(keywords.WHY_IDLE.get(each, ""), []).append(each)
    for reason in sorted(by_reason, key=lambda text: not text):
        why = f"; {reason}" if reason else ""
        yield f"no effect here: {', '.join(_by_file(by_reason[reason]))}{why}"


def _by_file(idle: Iterable[str]) -> list[str]:
    found: dict[str, list[str]] = {}
    for each in idle:
        file, _, key = each.partition(":")
        found.setdefault(file, []).append(key)
    return [f"{' '.join(keys)} ({file})" for file, keys in found.items()]


# ------------------------------------------------------------------------------------- building
def _tables(draft: Draft, said: list[str], guesses: list[str]) -> dict[str, Any]:
    nodes = _nodes(draft, guesses)
    names = [node["name"] for node in nodes]
    default = draft.params.pop("DEFAULT_QUEUE", "").split()
    chosen = next((name for name in default if name in draft.queues), next(iter(draft.queues)))
    for name in default:
        if name not in draft.queues:
            place = draft.places.get(("params", "", "DEFAULT_QUEUE"), "lsb.params")
            said.append(f"{place}: DEFAULT_QUEUE: no queue named {name!r}{nearest(name, draft.queues)}")
    settings = {
        "params": draft.params,
        "applications": draft.applications,
        "users": draft.users,
        "user_groups": {name: list(listed) for name, listed in draft.user_groups.items()},
        "host_groups": {name: list(listed) for name, listed in draft.host_groups.items()},
        "limits": draft.limits,
        "lsf_conf": draft.lsf_conf,
    }
    policy: dict[str, Any] = {
        "select": "select/cons_tres",
        "select_parameters": ["CR_Core"],
        "preempt": NAME,
        "preempt_mode": ["suspend"],
        "settings": {NAME: {key: table for key, table in settings.items() if table}},
    }
    return {
        "node": nodes,
        "partition": [_queue(name, draft, names, said, chosen) for name in draft.queues],
        "policy": policy,
        "scheduler": {"type": "greedy", "clockwork": _OWN_CLOCK},
    }


def _nodes(draft: Draft, guesses: list[str]) -> list[dict[str, Any]]:
    """Return the hosts: of lsb.hosts, and those that queues name besides."""
    default = draft.hosts.get("default", {})
    rows: dict[str, dict[str, str]] = {}
    for name, table in draft.hosts.items():
        if name != "default":
            for host in hosts_in(name, draft.host_groups, ()):
                rows.setdefault(host, table)
    words = " ".join(table.get("HOSTS", "") for table in draft.queues.values()).split()
    listed = " ".join(word for word in words if not word.startswith("~"))
    for host in hosts_in(listed, draft.host_groups, ()):
        rows.setdefault(host, default)
    unknown = [host for host, table in rows.items() if table.get("MXJ", "!") == "!"]
    if unknown:
        few = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        text = f"lsb.hosts: MXJ of {few} is the number of processors, which no file says; 1 is assumed"
        guesses.append(f"{text} (--nodes can say it)")
    return [_node(host, table) for host, table in rows.items()]


def _node(host: str, table: Mapping[str, str]) -> dict[str, Any]:
    node: dict[str, Any] = {"name": host, "cpus": max(1, slots(table.get("MXJ", "!")))}
    if table.get("MXJ") == "0":
        node["up"] = False
    kept = {key: table[key] for key in ("JL/U", "MIG") if key in table}
    return {**node, "attributes": kept} if kept else node


def _queue(name: str, draft: Draft, names: Sequence[str], said: list[str], default: str) -> dict[str, Any]:
    table = draft.queues[name]
    place = draft.places.get(("queue", name, ""), "lsb.queues")
    priority = int(table.get("PRIORITY", "1"))
    if priority > _HIGHEST_TIER:
        said.append(f"{place}: PRIORITY {priority} is queued as {_HIGHEST_TIER}, the highest tier there is")
    made: dict[str, Any] = {"name": name, "priority_tier": min(priority, _HIGHEST_TIER)}
    if "HOSTS" in table:
        listed = hosts_in(table["HOSTS"], draft.host_groups, names)
        hosts = [host for host in listed if host in names]
        if len(hosts) < len(names) or not _ALL & {word.partition("+")[0] for word in table["HOSTS"].split()}:
            made["nodes"] = ",".join(hosts)
    if name == default:
        made["default"] = True
    if "RUNLIMIT" in table:
        try:
            least, made["max_time"] = values.run_limits(table["RUNLIMIT"])
        except WrongValueError as error:
            said.append(f"{draft.places.get(('queue', name, 'RUNLIMIT'), place)}: RUNLIMIT: {error}; ignored")
        else:
            if least is not None:
                made["default_time"] = least
    left_out = ("RUNLIMIT",) if "+" in table.get("HOSTS", "") else ("HOSTS", "RUNLIMIT")
    attributes = {key: text for key, text in table.items() if key not in left_out}
    return {**made, "attributes": attributes} if attributes else made


def _places(draft: Draft) -> dict[str, str]:
    found = {}
    at = {name: number for number, name in enumerate(draft.queues)}
    table = f'policy.settings."{NAME}"'
    for (kind, name, key), place in draft.places.items():
        if kind == "queue" and name in at:
            path = f"partition[{at[name]}]"
            found[f"{path}.attributes.{key}" if key else path] = place
        elif kind == "params":
            found[f"{table}.params.{key}"] = place
        elif kind == "lsb.users":
            found[f"{table}.users.{name}"] = place
        elif kind == "limit":
            found[f"{table}.limits[{name}]"] = place
        elif kind == "app":
            found[f"{table}.applications.{name}.{key}"] = place
    return found
