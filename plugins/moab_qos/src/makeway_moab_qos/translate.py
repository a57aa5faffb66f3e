"""Put tiers, QOS and modes into the words of moab.cfg, and those into tiers and QOS."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from makeway.foreign import HOW, Common, Term, Translated, Translator, Way, has_tiers
from makeway.model import Cluster
from makeway.settings import structure
from makeway_moab_qos.actions import by_flags
from makeway_moab_qos.credentials import may_use
from makeway_moab_qos.reader import PLUGIN as NAME
from makeway_moab_qos.settings import Settings, path

if TYPE_CHECKING:
    from makeway.config import Config

_CLASS_WEIGHT = 1_000_000
_QOS_WEIGHT = 1_000
"""More than the minutes that any job waits, so that tiers and QOS come before queue time."""
_FLAG = {"requeue": "RESTARTABLE", "suspend": "SUSPENDABLE"}


def into(common: Common) -> Translated:
    """Give classes and QoS priority and flags, and priority its weights."""
    config = common.config
    terms: list[Term] = []
    settings: dict[str, Any] = {
        "weights": {"klass": _CLASS_WEIGHT},
        "choices": {"derive_flags": common.by_qos},
    }
    if has_tiers(config):
        terms.append(Term("tiers come before all else", f"CLASSWEIGHT {_CLASS_WEIGHT}"))
    classes = {}
    for table in config.partition:
        flags = _flags(common, table) if not common.by_qos else _way(common, [common.mode(table)])
        classes[table.name] = {"priority": table.priority_tier, "jobflags": list(flags)}
        text = f"CLASSCFG[{table.name}] PRIORITY={table.priority_tier}"
        text += f" JOBFLAGS={','.join(flags)}" if flags else ""
        terms.append(Term(f"partition {table.name}: tier {table.priority_tier}, {common.mode(table)}", text))
    settings["klass"] = classes
    if config.qos:
        settings["weights"]["qos"] = _QOS_WEIGHT
        settings["qos"] = {qos.name: {"priority": qos.priority} for qos in config.qos}
        terms.append(Term("priority of QOS", f"QOSCFG[...] PRIORITY, QOSWEIGHT {_QOS_WEIGHT}"))
        lists = [qos for qos in config.qos if qos.preempt]
        if lists and common.by_qos:
            why = "Moab asks for higher priority too; any PREEMPTOR may take any PREEMPTEE"
            names = ", ".join(qos.name for qos in lists)
            terms.append(
                Term(f"Preempt lists of QOS {names}", "QFLAGS=PREEMPTOR, PREEMPTEE of the listed", why)
            )
        elif lists:
            terms.append(Term("Preempt lists of QOS", "", "tiers decided, and decide"))
    modes = list(dict.fromkeys(common.mode(table) for table in config.partition))
    policy = next((mode for mode in modes if mode != "off"), "requeue").upper()
    settings["preempt_policy"] = policy
    terms.append(Term(f"preempt_mode {', '.join(modes)}", f"PREEMPTPOLICY {policy}"))
    exempt = config.policy.preemption.exempt_time
    if exempt:
        settings["min_active_time"] = exempt
        terms.append(Term(f"exempt_time {exempt:g} s", f"JOBPREEMPTMINACTIVETIME {exempt:g}"))
    terms += _graces(config)
    chosen = attrs.evolve(config.policy, settings={**config.policy.settings, NAME: settings})
    return attrs.evolve(config, policy=chosen), terms


def _flags(common: Common, table: Any) -> list[str]:
    found = ["PREEMPTOR"] if common.below(table) else []
    if common.above(table) and common.mode(table) != "off":
        found.append("PREEMPTEE")
        found += _way(common, [common.mode(table)])
    return found


def _way(common: Common, modes: Iterable[str]) -> list[str]:
    able = common.config.scheduler.requeue
    return [_FLAG[mode] for mode in modes if mode in _FLAG and (able or mode != "requeue")]


def _graces(config: Config) -> list[Term]:
    return [
        Term(f"{kind} {each.name}: grace_time {each.grace_time:g} s", "", "Moab gives no time to save")
        for kind, tables in (("partition", config.partition), ("QOS", config.qos))
        for each in tables
        if each.grace_time
    ]


def out_of(config: Config) -> Translated:
    """Let QoS that are PREEMPTOR list those that are PREEMPTEE, and order partitions by their flags."""
    settings: Any = config.policy.settings[NAME]
    terms: list[Term] = []
    marked = {name: set(table.get("flags", ())) for name, table in settings.get("qos", {}).items()}
    victims = tuple(name for name, flags in marked.items() if "PREEMPTEE" in flags and name != "DEFAULT")
    tables = []
    for qos in config.qos:
        lower = tuple(name for name in victims if name != qos.name)
        if "PREEMPTOR" in marked.get(qos.name, ()) and lower and not qos.preempt:
            qos = attrs.evolve(qos, preempt=lower)
            terms.append(
                Term(f"QOSCFG[{qos.name}] QFLAGS=PREEMPTOR", f"QOS {qos.name} preempts {', '.join(lower)}")
            )
        tables.append(qos)
    said, partitions = has_tiers(config), []
    for table in config.partition:
        flags = settings.get("klass", {}).get(table.name, {}).get("jobflags", ())
        if "PREEMPTOR" in flags and not said:
            table = attrs.evolve(table, priority_tier=2)
            terms.append(
                Term(f"CLASSCFG[{table.name}] JOBFLAGS=PREEMPTOR", f"partition {table.name}: tier 2")
            )
        partitions.append(table)
    why = "the next policy orders jobs in its own way"
    terms.append(Term(f"priority weights ({path('weights')})", "", why))
    return attrs.evolve(config, qos=tuple(tables), partition=tuple(partitions)), terms


def ways(config: Config, cluster: Cluster) -> list[Way]:
    """Say which classes and QoS make way for which, and how by their flags."""
    del cluster
    settings = structure(config.policy.settings.get(NAME, {}), Settings, "config")
    qos = {name: each for name, each in settings.qos.items() if name != "DEFAULT"}
    lists = {each.name: each.preempt for each in config.qos} if settings.choices.derive_flags else {}
    derives = not any({"PREEMPTOR", "PREEMPTEE"} & {*each.flags, *each.jobflags} for each in qos.values())
    flags = {name: {*each.flags, *each.jobflags} for name, each in qos.items()}
    for name, listed in lists.items() if derives else ():
        flags.setdefault(name, set()).update({"PREEMPTOR"} if listed else ())
        for other in listed:
            flags.setdefault(other, set()).add("PREEMPTEE")
    classes = {name: {*each.jobflags} for name, each in settings.klass.items() if name != "DEFAULT"} or {
        "": set[str]()
    }
    by = [f"QoS {name}" for name, own in flags.items() if "PREEMPTOR" in own]
    by += [f"class {name}" for name, own in classes.items() if "PREEMPTOR" in own]
    found = []
    for name, own in classes.items():
        for other, more in (flags or {"": set[str]()}).items():
            both = own | more
            if "PREEMPTEE" not in both or "PREEMPTOR" in more or not by:
                continue
            if name and other and not may_use(other, name, settings):
                continue
            way = by_flags(frozenset(both), settings)
            words = [f"class {name}" if name else "", f"QoS {other}" if other else ""]
            found.append(Way(", ".join(filter(None, words)), HOW[way.mode.value], ", ".join(by), way.why))
    return found


TRANSLATOR = Translator(into=into, out_of=out_of, ways=ways)
