"""Turn a site's sched_config, and what qmgr prints beside it, into the tables of a configuration (section 6).

``sched_config`` holds little since 20.0: queues, limits and the parameters of preemption are objects of the
server. Their text form is what ``qmgr`` prints; saved as ``qmgr.txt`` beside sched_config it is read too::

    for what in sched server "node @default"; do qmgr -c "print $what"; done > qmgr.txt

Vnodes may be said by ``pbsnodes -a`` instead, saved as ``pbsnodes.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from makeway.errors import ConfigError, Problem, nearest
from makeway.foreign import ForeignConfig, Source
from makeway_openpbs_sched import keywords
from makeway_openpbs_sched.grammar import Command, Option, command_of, lines_of, option_of
from makeway_openpbs_sched.letters import duration, order_of
from makeway_openpbs_sched.levels import levels_of
from makeway_openpbs_sched.limits import amount_of, is_limit, limits_of
from makeway_openpbs_sched.settings import NAME, PATH
from makeway_openpbs_sched.torque import is_torque, sentence

QMGR = "qmgr.txt"
PBSNODES = "pbsnodes.txt"
_HEAD = re.compile(
    r"^\s*(preemptive_sched|job_sort_key|by_queue|strict_ordering|round_robin)\s*:", re.MULTILINE
)
_SCHED = ("preempt_queue_prio", "preempt_prio", "preempt_order", "preempt_sort")
"""Options of sched_config to 19.1, attributes of the scheduler since 20.0 (section 1.1)."""


@attrs.define
class _Draft:
    """What was read so far."""

    settings: dict[str, Any] = attrs.field(factory=dict)
    places: dict[str, str] = attrs.field(factory=dict)
    """Key of the settings -> where it was said."""
    queues: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    nodes: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    server: dict[str, Any] = attrs.field(factory=dict)
    queue_places: dict[str, str] = attrs.field(factory=dict)
    said: list[str] = attrs.field(factory=list)
    """Warnings."""
    unknown: dict[str, None] = attrs.field(factory=dict)
    """What is not modelled, in the order found, as ``name (file)``."""
    problems: list[Problem] = attrs.field(factory=list)
    old: dict[str, Option] = attrs.field(factory=dict)
    """Parameters of preemption found in sched_config."""
    strict: bool = False
    non_prime: dict[str, tuple[bool, str]] = attrs.field(factory=dict)
    """Options that have a value of their own in non-prime time, and where."""
    has_qmgr: bool = False

    def take(self, key: str, value: Any, place: str) -> None:
        """Remember a setting of the plugin."""
        self.settings[key] = value
        self.places[f"{PATH}.{key}"] = place

    def wrong(self, place: str, message: str) -> None:
        """Remember a problem."""
        self.problems.append(Problem(place, message))


@attrs.frozen
class SchedConfigReader:
    """Reads sched_config. See `makeway.foreign.ForeignReader`."""

    name: str = "sched_config"

    def claims(self, name: str, head: str) -> bool:
        """Recognise the name, or an option that only this file has."""
        return name in ("sched_config", "pbs_sched_config") or _HEAD.search(head) is not None

    def translate(self, source: Source) -> ForeignConfig:
        """Read it, and ``qmgr.txt`` beside it.

        :raises ConfigError: with all values that OpenPBS would not take.
        """
        draft = _Draft()
        _read_options(source, draft)
        torque = is_torque(lines_of(source.text, source.name))
        text = _beside(source, draft)
        if text is not None:
            draft.has_qmgr = True
            _read_qmgr(text, draft)
        listed = _there(source, PBSNODES, draft)
        if listed is not None:
            _read_pbsnodes(listed, draft)
        _choose_version(draft)
        _judge(draft)
        if draft.problems:
            raise ConfigError(source.name, draft.problems)
        if draft.unknown:
            draft.said.append(f"not modelled, no effect here: {', '.join(draft.unknown)}")
        tables = _tables(draft)
        if torque and not draft.has_qmgr:
            draft.said = [sentence(source.name)]
        return ForeignConfig(tables=tables, warnings=tuple(draft.said), places=_places(draft))


def _beside(source: Source, draft: _Draft) -> str | None:
    text = _there(source, QMGR, draft)
    if text is None and not draft.problems:
        draft.said.append(
            f"there is no {QMGR} beside {source.name}, so queues, their Priority, limits and vnodes are unknown; "
            f"save what qmgr prints there, or say them by --nodes"
        )
    return text


def _there(source: Source, name: str, draft: _Draft) -> str | None:
    """Return the text of a file beside `source`; None: there is none, or it cannot be read."""
    try:
        return source.beside(name).text
    except ConfigError as error:
        message = error.problems[0].message
        if "No such file" not in message:
            draft.wrong(name, message)
        return None


# --------------------------------------------------------------------------------- sched_config
def _read_options(source: Source, draft: _Draft) -> None:
    said_on: set[str] = set()
    for line in lines_of(source.text, source.name):
        option = option_of(line)
        if option is None:
            text = f"skipped as OpenPBS does, for it is not 'name: value [prime]': {line.text.strip()!r}"
            draft.said.append(f"{line.place}: {text}")
            continue
        if option.oddity and option.name in keywords.MODELLED:
            draft.wrong(option.place, f"{option.name}: {option.oddity}")
        elif option.prime != "none" or option.name not in keywords.WITH_PRIME:
            said_on.add(option.name)
            _read_option(option, draft, source.name)
    for name, (value, place) in draft.non_prime.items():
        if value is not (draft.strict if name == "strict_ordering" else draft.settings.get(name, False)):
            draft.said.append(
                f"{place}: {name} is as in prime time; a value for non-prime time is not modelled"
            )
    for name in ("by_queue", "help_starving_jobs"):  # true in the file as shipped, false without a line
        draft.settings.setdefault(name, False)
    if "preemptive_sched" not in said_on:
        draft.take("preemptive_sched", False, source.name)
        draft.said.append(f"{source.name} has no line preemptive_sched, so preemption is off")


def _read_option(option: Option, draft: _Draft, file: str) -> None:
    name = option.name
    if name in _SCHED:
        draft.old[name] = option
    elif name == "preemptive_sched":
        _read_switch(option, draft)
    elif name == "preempt_attempts":
        _whole(option.value, name, option.place, draft)
    elif name in ("by_queue", "round_robin", "strict_ordering", "help_starving_jobs"):
        value = _truth(option.value, name, option.place, draft)
        if option.prime == "non_prime":
            draft.said.append(
                f"{option.place}: {name} for non-prime time is not modelled; its value for prime time counts"
            )
        elif name == "strict_ordering":
            draft.strict = value
        else:
            draft.take(name, value, option.place)
    elif name == "max_starve":
        seconds = duration(option.value)
        if seconds is None:
            draft.wrong(option.place, f"max_starve: got {option.value!r}; allowed: HH:MM:SS")
        else:
            draft.take(name, seconds, option.place)
    elif name in keywords.RELICS:
        draft.said.append(f"{option.place}: {name} is older than preempt_order and has no effect")
    else:
        close = "" if name in keywords.OPTIONS else nearest(name, (*keywords.MODELLED, *keywords.OPTIONS))
        if close:
            draft.said.append(f"{option.place}: unknown option {name!r}, skipped as OpenPBS does{close}")
        else:
            draft.unknown[f"{name} ({file})"] = None


def _read_switch(option: Option, draft: _Draft) -> None:
    value = _truth(option.value, option.name, option.place, draft)
    if option.prime in ("all", "prime"):
        draft.take("preemptive_sched", value, option.place)
    if option.prime in ("all", "non_prime"):
        draft.take("preemptive_sched_non_prime", value, option.place)


def _truth(text: str, name: str, place: str, draft: _Draft) -> bool:
    """Read a Boolean; words that OpenPBS would silently take as true are refused (section 6.1)."""
    word = text.lower()
    if word in ("true", "false"):
        return word == "true"
    if word.isdigit():
        return int(word) != 0
    draft.wrong(place, f"{name}: got {text!r}; allowed: true, false, or a number")
    return False


def _whole(text: str, name: str, place: str, draft: _Draft) -> None:
    if re.fullmatch(r"-?\d{1,9}", text):
        draft.take(name, int(text), place)
    else:
        draft.wrong(place, f"{name}: got {text!r}; allowed: a whole number")


# ----------------------------------------------------------------------------------------- qmgr
def _read_qmgr(text: str, draft: _Draft) -> None:
    kinds: Mapping[str, Callable[[Command, _Draft], None]] = {
        "sched": _read_sched,
        "server": _read_server,
        "queue": _read_queue,
        "node": _read_node,
    }
    for line in lines_of(text, QMGR):
        command = command_of(line)
        if command is None:
            draft.wrong(line.place, f"got {line.text.strip()!r}; allowed: lines as qmgr prints them")
        elif command.kind in kinds:
            kinds[command.kind](command, draft)
        else:
            draft.unknown[f"{command.kind} ({QMGR})"] = None


def _read_sched(command: Command, draft: _Draft) -> None:
    if command.name not in ("", "default"):
        draft.unknown[f"scheduler {command.name} ({QMGR})"] = None
        return
    name, value, place = command.attribute, command.value, command.place
    if command.verb == "unset":
        if name == "preempt_sort":
            draft.take(name, "", place)
        else:
            draft.settings.pop(name, None)
    elif command.verb != "set":
        return
    elif name in ("preempt_prio", "preempt_order", "preempt_sort"):
        draft.take(name, value, place)
    elif name == "preempt_queue_prio":
        _whole(value, name, place, draft)
    elif name in ("preempt_targets_enable", "sched_preempt_enforce_resumption"):
        draft.take(name, _truth(value, name, place, draft), place)
    elif name == "scheduler_iteration":
        _seconds(command, draft)
    else:
        _not_modelled(name, draft)


def _seconds(command: Command, draft: _Draft) -> None:
    seconds = duration(command.value)
    if seconds:
        draft.take(command.attribute, seconds, command.place)
    else:
        text = f"{command.attribute}: got {command.value!r}; allowed: seconds, or HH:MM:SS"
        draft.wrong(command.place, text)


def _not_modelled(name: str, draft: _Draft) -> None:
    if name not in keywords.QUIET:
        draft.unknown[f"{name} ({QMGR})"] = None


def _read_server(command: Command, draft: _Draft) -> None:
    name, place = command.attribute, command.place
    if command.verb == "unset":
        draft.server.pop(name, None)
    elif name == "restrict_res_to_release_on_suspend":
        known = list(draft.settings.get(name, ()))
        listed = [word for word in re.split(r"[,\s]+", command.value) if word]
        if command.sign == "-=":
            known = [word for word in known if word not in listed]
        else:
            known = [*(known if command.sign == "+=" else ()), *listed]
        draft.take(name, list(dict.fromkeys(known)), place)
    elif name == "backfill_depth":
        _whole(command.value, name, place, draft)
    elif name == "scheduler_iteration":
        _seconds(command, draft)
    elif name == "default_queue":
        draft.server[name] = command.value
    elif is_limit(name) or name.startswith(("resources_available.", "resources_default.preempt_targets")):
        _add(draft.server, command, draft)
        draft.places.setdefault(f"{PATH}.server", place)
    elif command.verb == "set":
        _not_modelled(name, draft)


def _add(into: dict[str, Any], command: Command, draft: _Draft) -> None:
    """Set an attribute, or add to one of several values."""
    try:
        limits_of({command.attribute: command.value})
    except ValueError as error:
        draft.wrong(command.place, str(error))
        return
    before = into.get(command.attribute)
    if command.sign == "+=" and before:
        into[command.attribute] = f"{before},{command.value}"
    elif command.sign != "-=":
        into[command.attribute] = command.value


def _read_queue(command: Command, draft: _Draft) -> None:
    queue = draft.queues.setdefault(command.name, {})
    draft.queue_places.setdefault(command.name, command.place)
    name, value = command.attribute, command.value
    if command.verb == "create" or not name:
        return
    if command.verb == "unset":
        queue.pop(name, None)
    elif name == "Priority":
        if re.fullmatch(r"-?\d{1,6}", value):
            queue[name] = int(value)
        else:
            draft.wrong(command.place, f"Priority: got {value!r}; allowed: a whole number from -1024 to 1023")
    elif name in ("enabled", "started"):
        queue[name] = _truth(value, name, command.place, draft)
    elif name in ("resources_max.walltime", "resources_default.walltime"):
        seconds = duration(value)
        if seconds is None:
            draft.wrong(command.place, f"{name}: got {value!r}; allowed: HH:MM:SS")
        else:
            queue[name] = seconds
    elif name == "queue_type":
        queue[name] = value
    elif is_limit(name) or name.startswith(("resources_available.", "resources_default.preempt_targets")):
        _add(queue, command, draft)
    else:
        _not_modelled(name, draft)


def _read_node(command: Command, draft: _Draft) -> None:
    node = draft.nodes.setdefault(command.name, {})
    name, value = command.attribute, command.value
    if command.verb != "set":
        return
    if name.startswith("resources_available."):
        resource = name.partition(".")[2]
        if resource in keywords.NODE_WORDS:
            return
        _available(node, resource, value)
    elif name == "state":
        node["state"] = value
    elif name == "queue":
        node["queue"] = value
    else:
        _not_modelled(name, draft)


def _available(node: dict[str, Any], resource: str, value: str) -> None:
    """Take note of what a vnode has: an amount, or words, which jobs ask for as ``resource=word``."""
    try:
        node[resource] = int(amount_of(resource, value))
    except ValueError:
        words = (word.strip() for word in value.strip("\"'").split(","))
        node.setdefault("features", []).extend(f"{resource}={word}" for word in words if word)


def _read_pbsnodes(text: str, draft: _Draft) -> None:
    """Read what ``pbsnodes -a`` prints: the name of a vnode, and below it what it has, further in."""
    node: dict[str, Any] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, equals, value = (part.strip() for part in line.partition(" = "))
        if not line[0].isspace() and not equals:
            node = draft.nodes.setdefault(name, {})
        elif node is None:
            draft.wrong(f"{PBSNODES}:{number}", f"got {line.strip()!r}; allowed: the output of pbsnodes -a")
            return
        elif name.startswith("resources_available."):
            resource = name.partition(".")[2]
            if resource not in keywords.NODE_WORDS:
                _available(node, resource, value)
        elif name in ("state", "queue"):
            node[name] = value
        elif name == "np":  # Torque's
            _available(node, "ncpus", value)
        elif name == "properties":
            node.setdefault("features", []).extend(word.strip() for word in value.split(",") if word.strip())


# -------------------------------------------------------------------------------------- versions
def _choose_version(draft: _Draft) -> None:
    """Say to which version the files belong, by where the parameters of preemption stand (section 1.1)."""
    if not draft.old:
        return
    names = ", ".join(draft.old)
    if draft.has_qmgr and any(name in draft.settings for name in _SCHED):
        first = next(iter(draft.old.values()))
        text = f"{names}: attributes of the scheduler since 20.0, without effect here; {QMGR} says them"
        draft.said.append(f"{first.place}: {text}")
        return
    for name, option in draft.old.items():
        if name == "preempt_queue_prio":
            _whole(option.value, name, option.place, draft)
        else:
            draft.take(name, option.value, option.place)
    draft.settings["version"] = "19.1"
    draft.said.append(
        f"{names} stand in sched_config, which counts only up to 19.1, so the rules of 19.1 are taken; "
        f"for a later version move them to {QMGR}"
    )


# --------------------------------------------------------------------------------------- tables
def _judge(draft: _Draft) -> None:
    """Refuse values that OpenPBS refuses, with their lines."""
    version = draft.settings.get("version", "22.05")
    rules: Mapping[str, Callable[[str], object]] = {
        "preempt_prio": lambda text: levels_of(text, starving=version != "22.05"),
        "preempt_order": lambda text: order_of(text, deletion=version != "19.1"),
    }
    for name, rule in rules.items():
        if name in draft.settings:
            try:
                rule(draft.settings[name])
            except ValueError as error:
                draft.wrong(draft.places[f"{PATH}.{name}"], f"{name}: {error}")


def _tables(draft: _Draft) -> dict[str, Any]:
    settings = dict(draft.settings)
    other = settings.get("preemptive_sched_non_prime")
    if other is not None and other == settings.get("preemptive_sched"):
        del settings["preemptive_sched_non_prime"]
    if settings.get("preempt_attempts", 0) < 0:
        del settings["preempt_attempts"]
    default = draft.server.pop("default_queue", None)
    if draft.server:
        settings["server"] = draft.server
    settings = {"version": "22.05", **settings}
    depth = settings.get("backfill_depth", 1)
    scheduler = ("easy" if depth else "builtin") if draft.strict else "greedy"
    tables: dict[str, Any] = {
        "policy": {
            "select": "openpbs/vnodes",
            "preempt": NAME,
            "preempt_mode": ["suspend"],
            "settings": {NAME: settings},
        },
        "scheduler": {"type": scheduler, "clockwork": {"preset": "ideal"}},
    }
    nodes = [_node(name, node) for name, node in draft.nodes.items()]
    if nodes:
        tables["node"] = nodes
    tables["partition"] = _queues(draft, default)
    return tables


def _node(name: str, node: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "cpus": max(1, node.get("ncpus", 1))}
    if node.get("mem"):
        made["memory_mb"] = node["mem"]
    if any(word in str(node.get("state", "")) for word in ("offline", "down")):
        made["up"] = False
    if node.get("features"):
        made["features"] = list(dict.fromkeys(node["features"]))
    known = ("ncpus", "mem", "state", "queue", "features")
    counted = {key: value for key, value in node.items() if key not in known}
    return {**made, "gres": counted} if counted else made


def _queues(draft: _Draft, default: str | None) -> list[dict[str, Any]]:
    routes = [name for name, queue in draft.queues.items() if str(queue.get("queue_type", "e"))[:1] in "Rr"]
    if routes:
        draft.said.append(
            f"routing queues are not modelled: {', '.join(routes)}; submit to an execution queue"
        )
    queues = {name: queue for name, queue in draft.queues.items() if name not in routes}
    if not queues:
        draft.said.append("no queue is known; there is one named workq")
        queues = {"workq": {}}
    chosen = default if default in queues else next(iter(queues))
    bound = {name: node["queue"] for name, node in draft.nodes.items() if node.get("queue")}
    tables = []
    for name, queue in queues.items():
        table: dict[str, Any] = {"name": name}
        if bound:
            own = [node for node, where in bound.items() if where == name]
            free = [node for node in draft.nodes if node not in bound]
            table["nodes"] = ",".join(own or free)
        if name == chosen:
            table["default"] = True
        if "resources_max.walltime" in queue:
            table["max_time"] = queue["resources_max.walltime"]
        if "resources_default.walltime" in queue:
            table["default_time"] = queue["resources_default.walltime"]
        left_out = ("queue_type", "resources_max.walltime", "resources_default.walltime")
        attributes = {key: value for key, value in queue.items() if key not in left_out}
        tables.append({**table, "attributes": attributes} if attributes else table)
    return tables


def _places(draft: _Draft) -> dict[str, str]:
    found = dict(draft.places)
    execution = [
        name for name, queue in draft.queues.items() if str(queue.get("queue_type", "e"))[:1] not in "Rr"
    ]
    for at, name in enumerate(execution):
        found[f"partition[{at}]"] = draft.queue_places[name]
    return found
