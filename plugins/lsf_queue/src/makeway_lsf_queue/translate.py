"""Put tiers and modes into the words of lsb.queues, and those into tiers and modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from makeway.foreign import HOW, Common, Term, Translated, Translator, Way
from makeway.model import Cluster
from makeway.settings import structure
from makeway_lsf_queue.compiling import build_site
from makeway_lsf_queue.controls import job_controls, manner_of, terminate_when
from makeway_lsf_queue.reader import keywords
from makeway_lsf_queue.requirement import requirement
from makeway_lsf_queue.settings import NAME, Settings
from makeway_lsf_queue.values import WrongValueError

if TYPE_CHECKING:
    from makeway.config import Config, PartitionTable

_MODES: Mapping[str, Mapping[str, str]] = {
    "requeue": {"JOB_CONTROLS": "SUSPEND[brequeue]", "RERUNNABLE": "Y"},
    "cancel": {"TERMINATE_WHEN": "PREEMPT"},
    "checkpoint": {"MIG": "0", "CHKPNT": "dir", "RERUNNABLE": "Y"},
    "suspend": {},
}


def into(common: Common) -> Translated:
    """Give each partition PRIORITY, PREEMPTION, and the way in which its jobs make way."""
    config = common.config
    if any(set(partition.attributes) & set(keywords.QUEUE) for partition in config.partition):
        return config, ()
    terms: list[Term] = []
    queues = [_queue(table, common, terms) for table in config.partition]
    if any(qos.preempt for qos in config.qos):
        why = "LSF knows no QOS; jobs of one queue never displace one another"
        terms.append(Term("Preempt lists of QOS", "", why))
    settings = {**config.policy.settings, NAME: {}}
    policy = attrs.evolve(config.policy, settings=settings)
    return attrs.evolve(config, partition=tuple(queues), policy=policy), terms


def _queue(table: PartitionTable, common: Common, terms: list[Term]) -> PartitionTable:
    name, lower = table.name, [other.name for other in common.below(table)]
    said = {"PRIORITY": str(max(1, table.priority_tier))}
    terms.append(Term(f"partition {name}: tier {table.priority_tier}", f"PRIORITY={said['PRIORITY']}"))
    if lower:
        said["PREEMPTION"] = f"PREEMPTIVE[{' '.join(lower)}]"
        terms.append(Term(f"partition {name}: above {', '.join(lower)}", f"PREEMPTION={said['PREEMPTION']}"))
    mode = common.mode(table)
    if common.above(table) and mode != "off":
        words = _MODES.get(mode, {})
        said |= words
        becomes = (
            ", ".join(f"{key}={value}" for key, value in words.items()) or "suspended, as LSF does by itself"
        )
        terms.append(Term(f"partition {name}: {mode}", becomes))
        terms += _of_times(table, common, said)
    return attrs.evolve(table, attributes={**table.attributes, **said})


def _of_times(table: PartitionTable, common: Common, said: dict[str, str]) -> list[Term]:
    found = []
    exempt = common.config.policy.preemption.exempt_time
    if exempt:
        minutes = max(1, round(exempt / 60))
        said["NO_PREEMPT_INTERVAL"] = str(minutes)
        why = "" if minutes * 60 == exempt else "LSF counts minutes"
        found.append(Term(f"exempt_time {exempt:g} s", f"NO_PREEMPT_INTERVAL={minutes}", why))
    if table.grace_time:
        why = "LSF gives no time to save; JOB_CONTROLS may"
        found.append(Term(f"partition {table.name}: grace_time {table.grace_time:g} s", "", why))
    return found


def out_of(config: Config) -> Translated:
    """Say by mode of preemption how jobs of each queue make way; tiers are there, as PRIORITY.

    A queue that does not say how takes preempt_mode, and where that is off, LSF suspends.
    """
    terms = [Term("PRIORITY of queues", "tiers of partitions")]
    suspends = all(mode.lower() == "off" for mode in config.policy.preempt_mode)
    tables = []
    for table in config.partition:
        says = suspends or {"JOB_CONTROLS", "TERMINATE_WHEN"} & set(table.attributes)
        mode = _mode(table.attributes) if says else ""
        if mode and table.preempt_mode is None:
            table = attrs.evolve(table, preempt_mode=(mode,))
            terms.append(Term(f"queue {table.name}: how jobs make way", f"preempt_mode {mode}"))
        if "PREEMPTION" in table.attributes:
            said = f"queue {table.name}: PREEMPTION={table.attributes['PREEMPTION']}"
            terms.append(Term(said, "", "every higher tier may take every lower"))
        if "RES_REQ" in table.attributes:
            table = _required(table, terms)
        tables.append(table)
    return attrs.evolve(config, partition=tuple(tables)), terms


def _required(table: PartitionTable, terms: list[Term]) -> PartitionTable:
    """Put span[hosts=1] and rusage[mem=] of a queue into its partition; the rest has no equal."""
    try:
        asked = requirement(str(table.attributes["RES_REQ"]))
    except WrongValueError:
        return table
    where = f"queue {table.name}: RES_REQ"
    if asked.one_host and table.max_nodes is None:
        table = attrs.evolve(table, max_nodes=1)
        terms.append(Term(f"{where} span[hosts=1]", "max_nodes 1"))
    if asked.memory_mb and table.def_mem_per_node is None:
        table = attrs.evolve(table, def_mem_per_node=asked.memory_mb)
        terms.append(Term(f"{where} rusage[mem={asked.memory_mb}]", f"def_mem_per_node {asked.memory_mb}"))
    if asked.select or asked.tile or asked.order or asked.same or asked.amounts or asked.idle:
        terms.append(
            Term(
                f"{where} {table.attributes['RES_REQ']}",
                "",
                "only span[hosts=1] and rusage[mem=] have an equal",
            )
        )
    return table


def _mode(said: Mapping[str, object]) -> str:
    try:
        controls = job_controls(str(said.get("JOB_CONTROLS", ""))) if "JOB_CONTROLS" in said else {}
        when = (
            terminate_when(str(said.get("TERMINATE_WHEN", ""))) if "TERMINATE_WHEN" in said else frozenset()
        )
        return manner_of(controls, when, frozenset(), 0).mode.value
    except WrongValueError:
        return ""


def ways(config: Config, cluster: Cluster) -> list[Way]:
    """Say which queues take whose jobs, and how these make way (2.2, 6.1)."""
    settings = structure(config.policy.settings.get(NAME, {}), Settings, "config")
    site = build_site(cluster, settings)
    found = []
    for queue in site.queues.values():
        others = [name for name in site.queues if site.may_preempt(name, queue.name)]
        if others:
            how = HOW[queue.manner.mode.value]
            found.append(Way(f"queue {queue.name}", how, ", ".join(others), queue.manner.why))
    return found


TRANSLATOR = Translator(into=into, out_of=out_of, ways=ways)
