"""Put tiers and modes into the words of sched_config and qmgr, and those into tiers and modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from makeway.foreign import HOW, Common, Term, Translated, Translator, Way, has_tiers
from makeway.model import Cluster
from makeway.settings import structure
from makeway_openpbs_sched.settings import NAME, Settings

if TYPE_CHECKING:
    from makeway.config import Config, PartitionTable, QosTable

_EXPRESS = 150
_LETTERS = {"requeue": "R", "suspend": "S", "checkpoint": "C", "cancel": "D"}


def into(common: Common) -> Translated:
    """Give queues Priority by tier, those above the lowest as express queues, and preempt_order a letter."""
    config = common.config
    tiers = sorted({table.priority_tier for table in config.partition})
    terms, tables = [], []
    for table in config.partition:
        rank = tiers.index(table.priority_tier)
        priority = _EXPRESS + rank - 1 if rank else 0
        tables.append(attrs.evolve(table, attributes={**table.attributes, "Priority": priority}))
        kind = ", an express queue" if rank else ""
        terms.append(
            Term(f"partition {table.name}: tier {table.priority_tier}", f"Priority = {priority}{kind}")
        )
    modes = list(dict.fromkeys(common.mode(table) for table in config.partition))
    mode = next((each for each in modes if each != "off"), "requeue")
    why = "one order for all queues" if len(modes) > 1 else ""
    terms.append(Term(f"preempt_mode {', '.join(modes)}", f"preempt_order = {_LETTERS.get(mode, 'R')}", why))
    if any(qos.preempt for qos in config.qos):
        terms.append(Term("Preempt lists of QOS", "", "PBS knows no QOS; queues and limits decide"))
    limited: tuple[PartitionTable | QosTable, ...] = (*config.partition, *config.qos)
    for each in limited:
        if each.grace_time:
            terms.append(
                Term(f"{each.name}: grace_time {each.grace_time:g} s", "", "PBS gives no time to save")
            )
    if config.policy.preemption.exempt_time:
        terms.append(Term("exempt_time", "", "PBS protects no job for a time"))
    settings = {"preempt_order": _LETTERS.get(mode, "R"), "preempt_queue_prio": _EXPRESS}
    policy = attrs.evolve(config.policy, settings={**config.policy.settings, NAME: settings})
    return attrs.evolve(config, partition=tuple(tables), policy=policy), terms


def out_of(config: Config) -> Translated:
    """Order partitions by Priority, and take the first letter of preempt_order for the mode."""
    settings = config.policy.settings[NAME]
    priorities = {table.name: int(table.attributes.get("Priority", 0)) for table in config.partition}
    ranks = {value: rank for rank, value in enumerate(sorted(set(priorities.values())), 1)}
    terms, tables = [], config.partition
    if not has_tiers(config):
        tables = tuple(attrs.evolve(table, priority_tier=ranks[priorities[table.name]]) for table in tables)
        terms += [
            Term(f"queue {name}: Priority = {value}", f"tier {ranks[value]}")
            for name, value in priorities.items()
        ]
    letters = {letter: mode for mode, letter in _LETTERS.items()}
    order = str(settings.get("preempt_order", "SCR"))
    mode = letters.get(order[:1], "requeue")
    terms.append(Term(f"preempt_order = {order}", f"preempt_mode {mode}", "the first letter counts"))
    terms.append(Term("preempt_prio, soft limits", "", "tiers alone decide"))
    return attrs.evolve(
        config, partition=tables, policy=attrs.evolve(config.policy, preempt_mode=(mode,))
    ), terms


def ways(config: Config, cluster: Cluster) -> list[Way]:
    """Say which levels of preempt_prio make way for those before them, and by which letter first."""
    del cluster
    settings = structure(config.policy.settings.get(NAME, {}), Settings, "config")
    if not settings.preemptive_sched:
        return []
    levels = [word.strip() for word in settings.preempt_prio.split(",")]
    able = {letter: mode for mode, letter in _LETTERS.items() if letter != "C" or settings.checkpoint_abort}
    mode = next((able[letter] for letter in settings.preempt_order.split()[0] if letter in able), "off")
    why = f"preempt_order {settings.preempt_order}"
    if "C" in settings.preempt_order and not settings.checkpoint_abort:
        why += "; C fails without checkpoint_abort"
    return [
        Way(f"level {level}", HOW[mode], ", ".join(levels[:at]), why) for at, level in enumerate(levels) if at
    ]


TRANSLATOR = Translator(into=into, out_of=out_of, ways=ways)
