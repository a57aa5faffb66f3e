"""Turn a moab.cfg or maui.cfg into a makeway configuration (moab 9 and 10).

Unknown parameters are ignored, as Moab does, and named in one warning; so are unknown attributes. A value
that cannot be read leaves the default, with a warning that says so.
"""

from __future__ import annotations

from typing import Any

from makeway.errors import ConfigError, Problem, nearest
from makeway.foreign import ForeignConfig, LeftOut, Source
from makeway_moab_qos import records
from makeway_moab_qos.draft import SLIP, Draft, weight_of
from makeway_moab_qos.grammar import (
    Parsed,
    parse,
)
from makeway_moab_qos.parameters import (
    CLOCK,
    CREDENTIALS,
    PLAIN,
    RECORDS,
    WITHOUT_EFFECT,
)
from makeway_moab_qos.settings import NO_CLASS, path

PLUGIN = "moab/qos"


def translate(source: Source, *, maui: bool) -> ForeignConfig:
    """Read a file and what it includes.

    :raises ConfigError: an included file cannot be read, or no parameter is one of the scheduler's.
    """
    parsed = parse(source, maui=maui)
    if not any(knows(entry.param) for entry in parsed.entries):
        raise ConfigError(source.name, [Problem("", _no_parameter(parsed, maui=maui))])
    draft = Draft(maui=maui)
    for place, text in parsed.ignored:
        why = (
            "Maui ignores a line that does not start in the first column" if maui and text else "no parameter"
        )
        draft.warn(place, f"{why}: {text[:60]!r}")
    for entry in parsed.entries:
        if entry.param in RECORDS:
            draft.written[entry.param] = None
            records.READERS[entry.param](draft, entry)
        else:
            draft.take(entry)
    return _finished(draft)


def _no_parameter(parsed: Parsed, *, maui: bool) -> str:
    """Say why a text is no configuration, with what may have been meant."""
    whose = "Maui" if maui else "Moab"
    if any(knows(entry.param.upper()) for entry in parsed.entries):
        first = next(entry for entry in parsed.entries if knows(entry.param.upper()))
        return f"no parameter of {whose}'s; {first.spelled} ({first.place}) is not, as {whose} compares case"
    return f"no parameter of {whose}'s, such as BACKFILLPOLICY or QOSCFG[name]; is it another kind of file?"


def _finished(draft: Draft) -> ForeignConfig:
    """Return the tables."""
    settings = {"profile": "maui" if draft.maui else "moab", **draft.settings}
    settings["written"] = tuple(draft.written)
    qos = [
        {"name": name, "priority": int(table.get("priority", 0)), "flags": table.get("flags", ())}
        for name, table in draft.settings.get("qos", {}).items()
        if name != "DEFAULT"
    ]
    tables: dict[str, Any] = {
        "partition": _partitions(draft),
        "policy": {
            "select": "moab/tasks",
            "preempt": PLUGIN,
            "preempt_mode": (_mode(draft.settings.get("preempt_policy", "REQUEUE")),),
            "settings": {PLUGIN: _listed(settings)},
        },
        "scheduler": _scheduler(draft),
    }
    if qos:
        tables["qos"] = qos
    default = draft.nodes.pop("DEFAULT", {})
    known = [{"name": name, "memory_mb": 1, **default, **table} for name, table in draft.nodes.items()]
    if known and all("cpus" in table for table in known):
        tables["node"] = known
    _look_for_qos(draft)
    _sum_up(draft)
    idle = tuple(LeftOut(name=name, places=tuple(draft.idle[name])) for name in sorted(draft.idle))
    return ForeignConfig(tables=tables, warnings=tuple(draft.warnings), idle=idle, places=draft.places)


def _partitions(draft: Draft) -> list[dict[str, Any]]:
    """Return a partition for each class, and the one of jobs that name none: no other class's rules bind them.

    That is DEFAULTCLASS, or else `NO_CLASS`, to which only the lines of CLASSCFG[DEFAULT] apply.
    """
    names = [name for name in draft.settings.get("klass", {}) if name != "DEFAULT"]
    default = draft.default_class or (NO_CLASS if names else "batch")
    every = dict.fromkeys((*names, default))
    return [{"name": name, "default": True} if name == default else {"name": name} for name in every]


def _scheduler(draft: Draft) -> dict[str, Any]:
    """Return the pace: a pass at every event, or Maui's, one per poll of the resource manager."""
    table: dict[str, Any] = {"type": "greedy", "clockwork": {"preset": "ideal", "keep_freed": False}}
    if draft.overrun:
        table["over_time_limit"] = draft.overrun
    if draft.maui:
        table["clockwork"] = maui_clock(draft.clockwork.get("sched_interval", 60.0))
    elif draft.clockwork:
        note = "RMPOLLINTERVAL is not used: passes follow events; set [scheduler.clockwork] for polls"
        draft.warnings.append(note)
    return table


def _look_for_qos(draft: Draft) -> None:
    """Complain about lists that name a QoS which no QOSCFG line describes."""
    known = draft.settings.get("qos", {})
    for kind in ("user", "group", "account", "klass"):
        for name, table in draft.settings.get(kind, {}).items():
            named = (*table.get("qlist", ()), *filter(None, (table.get("qdef"),)))
            for qos in dict.fromkeys(each for each in named if each not in known):
                param = next(key for key, value in CREDENTIALS.items() if value == kind)
                place = draft.places[path(kind, name)]
                text = f"{param}[{name}] names QoS {qos!r}, which no QOSCFG line describes"
                draft.warn(place, text + nearest(qos, known))


def _sum_up(draft: Draft) -> None:
    if draft.unknown:
        named = ", ".join(f"{name}{draft.unknown[name]}" for name in sorted(draft.unknown))
        draft.warnings.append(f"not modelled, and ignored: {named}")


def maui_clock(interval: float) -> dict[str, Any]:
    """Return the clockwork of a scheduler that looks once per poll, and starts preemptors in the same pass."""
    return {
        "preset": "ideal",
        "keep_freed": False,  # its own rules say what is kept for a preemptor
        "sched_interval": interval,
        "pass_on_submit": False,
        "pass_on_completion": True,
        "pass_on_own_end": False,
        "requeue_delay": min(1.0, interval / 2),
    }


def _mode(policy: str) -> str:
    lower = policy.lower()
    return lower if lower in ("suspend", "checkpoint", "requeue", "cancel") else "requeue"


def knows(param: str) -> bool:
    """Whether a parameter is one of the scheduler's, modelled or without effect."""
    tables = (PLAIN, CREDENTIALS, CLOCK, RECORDS, WITHOUT_EFFECT)
    return weight_of(param) is not None or param == SLIP or any(param in table for table in tables)


def _listed(value: Any) -> Any:
    """Return `value` with lists for tuples, as TOML has them."""
    if isinstance(value, dict):
        return {key: _listed(each) for key, each in value.items()}
    return [_listed(each) for each in value] if isinstance(value, list | tuple) else value
