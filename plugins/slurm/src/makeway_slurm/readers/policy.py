"""Turn the simple parameters of a slurm.conf into policy and cluster tables.

Section numbers are those of slurm-preemption.md unless another document is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from makeway.config import ClusterTable, McsTable, PolicyTable
from makeway.errors import nearest
from makeway.preemption import PreemptionTable
from makeway_slurm.check import MIN_TIMESLICE, TIMESLICE
from makeway_slurm.readers import limits, priority, topology
from makeway_slurm.readers.conf_parts import shown
from makeway_slurm.readers.draft import Draft, one_of, reporting
from makeway_slurm.readers.partitions import (
    is_unit,
    mode_words,
    parse_limit,
    read_memory,
    select_parser,
    select_words,
)
from makeway_slurm.readers.releases import GONE_SELECTORS
from makeway_slurm.readers.scheduler import scheduler_options
from makeway_slurm.readers.values import (
    OptionValues,
    parse_count,
    parse_licenses,
    parse_preempt_parameters,
    parse_seconds,
    parse_time,
)

GANG = "gang/timeslice"
PREEMPT_PLUGINS = ("preempt/none", "preempt/partition_prio", "preempt/qos")
SELECT_PLUGINS = ("select/cons_tres", "select/linear")

_SELECT_ALIASES = {"select/cons_res": "select/cons_tres", "select/serial": "select/cons_tres"}
_CRAY = "select/cray_aries"
"""A layer for Cray's machines over select/linear, or over another one that a word names."""
_PRIORITIES = ("priority/basic", "priority/multifactor")
_ENFORCED = ("associations", "limits", "qos", "safe", "wckeys", "nojobs", "nosteps", "all", "1", "2")
"""Words of AccountingStorageEnforce that 22.05.8 takes."""
_MCS_SELECT = ("noselect", "select", "ondemandselect")


# ---------------------------------------------------------------------------------------- policy
def read_policy(draft: Draft) -> PolicyTable:
    """Translate what decides which job is placed where and which makes way for which."""
    mode = _cluster_mode(draft)
    gang = "gang" in mode
    settings: dict[str, dict[str, Any]] = {GANG: {"timeslice": _timeslice(draft)}} if gang else {}
    multifactor = priority.in_force(draft)
    if multifactor:
        settings[priority.NAME] = priority.read_priority(draft)
    held = limits.read_limits(draft, _words(draft, "AccountingStorageEnforce"), _part_limits(draft))
    if held is not None:
        settings[limits.NAME] = held
    plugins = [limits.NAME] if held is not None else []
    if topology.in_force(draft):
        plugins.append(topology.NAME)
        settings[topology.NAME] = topology.read_settings(draft)
    return PolicyTable(
        select=_select(draft),
        select_parameters=_select_parameters(draft),
        preempt=_preempt_type(draft),
        preempt_mode=mode,
        gang=GANG if gang else None,
        preemption=_preemption(draft),
        mcs=_mcs(draft),
        priority=priority.NAME if multifactor else None,
        plugins=tuple(plugins),
        settings=settings,
    )


def _preempt_type(draft: Draft) -> str:
    """Translate PreemptType; one that cannot be loaded stops the controller (6.2)."""
    setting = draft.get("PreemptType")
    if setting is not None:
        draft.places.setdefault("policy.preempt_mode", setting.where)
    name = draft.read_plugin(setting, PREEMPT_PLUGINS, "preempt/none", "policy.preempt")
    if "policy.preempt" in draft.bad:
        draft.bad.add("policy.preempt_mode")
    return name


def _cluster_mode(draft: Draft) -> tuple[str, ...]:
    """Translate the cluster's PreemptMode; unset is OFF."""
    return draft.read(draft.get("PreemptMode"), mode_words, ("off",), "policy.preempt_mode")


def _select(draft: Draft) -> str:
    """Translate SelectType, whose default changed with 23.11. 4.12."""
    setting = draft.get("SelectType")
    default = "select/cons_tres" if draft.since("23.11") else "select/linear"
    allowed = (*SELECT_PLUGINS, *_SELECT_ALIASES, _CRAY)
    name = draft.read_plugin(setting, allowed, default, "policy.select")
    if setting is not None:
        draft.places.setdefault("policy.select_parameters", setting.where)
    if "policy.select" in draft.bad:
        draft.bad.add("policy.select_parameters")
    if setting is not None and name == _CRAY:
        words = draft.get("SelectTypeParameters")
        below = "cons_tres" if words is not None and "other_cons" in words.value.lower() else "linear"
        draft.warn(setting, f"{name} is taken as select/{below}, which does the work below it")
        return f"select/{below}"
    if setting is None or name not in _SELECT_ALIASES:
        return name
    gone = GONE_SELECTORS.get(name)
    if gone is not None and draft.since(gone):
        text = f"{name} is gone since Slurm {gone}, which does not start with it; taken as {_SELECT_ALIASES[name]}"
        draft.refuse(setting, text)
    else:
        tell = draft.refuser(setting) if name == "select/serial" else draft.reporter(setting)
        tell(f"{name} is taken as {_SELECT_ALIASES[name]}, which took its place")
    return _SELECT_ALIASES[name]


def _select_parameters(draft: Draft) -> tuple[str, ...]:
    """Translate SelectTypeParameters; without a unit, cons_tres hands out cores and memory."""
    setting = draft.get("SelectTypeParameters")
    nothing: tuple[str, ...] = ()
    parse = select_words if setting is None else select_parser(draft, setting)
    words = draft.read(setting, parse, nothing, "policy.select_parameters")
    select = draft.get("SelectType")
    name = select.value.lower() if select is not None else ""
    if setting is not None and name == "select/linear" and any(is_unit(word) for word in words):
        draft.refuser(setting)(f"got {shown(setting.value)}; select/linear knows CR_Memory only")
    consumes = name in ("select/cons_tres", "select/cons_res") or (select is None and draft.since("23.11"))
    return ("CR_Core_Memory",) if consumes and not words else words


def _timeslice(draft: Draft) -> float:
    """Translate SchedulerTimeSlice; below 5 Slurm uses 30. slurm-gang-and-select 0.3."""
    setting = draft.get("SchedulerTimeSlice")
    path = f"policy.settings.{GANG}.timeslice"
    seconds = draft.read(setting, lambda text: parse_count(text, 65533), int(TIMESLICE), path)
    if setting is not None and seconds < MIN_TIMESLICE:
        draft.warn(
            setting,
            f"got {seconds}; the least is {MIN_TIMESLICE:g}, Slurm uses {TIMESLICE:g} instead",
        )
        return TIMESLICE
    return float(seconds)


# ------------------------------------------------------------------------------------ preemption
def _preemption(draft: Draft) -> PreemptionTable:
    """Translate PreemptExemptTime and PreemptParameters, with their older spellings (6.5)."""
    exempt = draft.read(draft.get("PreemptExemptTime"), parse_time, None, "policy.preemption.exempt_time")
    options = _preempt_options(draft)
    return PreemptionTable(
        exempt_time=None if exempt is None else float(exempt),
        min_exempt_priority=_number(options, "min_exempt_priority"),
        youngest_first="youngest_first" in options,
        reorder_count=int(options.get("reorder_count", 1)),
        strict_order="strict_order" in options,
        send_user_signal="send_user_signal" in options,
        reclaim_licenses="reclaim_licenses" in options,
    )


def _number(options: OptionValues, key: str) -> int | None:
    return int(options[key]) if key in options else None


def _preempt_options(draft: Draft) -> OptionValues:
    """Join PreemptParameters with what stands under older names; the newer spelling wins."""
    older = {
        name.removeprefix("preempt_"): value
        for name, value in scheduler_options(draft).items()
        if name.startswith("preempt_")
    }
    setting = draft.get("SchedulerParameters")
    if setting is not None:
        draft.places |= {f"policy.preemption.{name}": setting.where for name in older}
    return older | _old_signal_option(draft) | _preempt_parameters(draft)


def _preempt_parameters(draft: Draft) -> OptionValues:
    setting = draft.get("PreemptParameters")
    if setting is None:
        return {}
    if not draft.since("23.02"):
        draft.refuse(setting, f"Slurm {draft.release} does not know it (since 23.02); taken anyway")
    parse = reporting(parse_preempt_parameters, draft, setting)
    empty: tuple[OptionValues, list[str]] = ({}, [])
    known, unknown = draft.read(setting, parse, empty, "policy.preemption")
    for word in unknown:
        options = (field.name for field in attrs.fields(PreemptionTable))
        close = nearest(word.partition("=")[0], options)
        draft.warn(setting, f"{shown(word)} is unknown; Slurm ignores it silently{close}")
    return known


def _old_signal_option(draft: Draft) -> OptionValues:
    """Find preempt_send_user_signal in SlurmctldParameters."""
    setting = draft.get("SlurmctldParameters")
    if setting is None:
        return {}
    words = [word.strip() for word in setting.value.split(",") if word.strip()]
    old = "preempt_send_user_signal"
    for word in words:
        if word.lower() != old:
            name = word.partition("=")[0]
            draft.leave_out(f"{setting.key}={name}", setting, relevant=False)
    return {"send_user_signal": True} if old in (word.lower() for word in words) else {}


def _mcs(draft: Draft) -> McsTable:
    """Translate MCSPlugin and MCSParameters. 1.10."""
    plugins = tuple(f"mcs/{source}" for source in ("none", "user", "group", "account", "label"))
    plugin = draft.read(draft.get("MCSPlugin"), one_of(plugins), "mcs/none", "policy.mcs.label")
    setting = draft.get("MCSParameters")
    words = setting.value.partition(":")[0].lower().split(",") if setting else []
    select = next((word for word in words if word in _MCS_SELECT), "ondemandselect")
    known = {*_MCS_SELECT, "enforced", "ondemand", "privatedata", "noprivatedata", ""}
    if setting is not None:
        draft.places["policy.mcs"] = setting.where
        if plugin == "mcs/none":
            draft.warn(setting, "has no effect without MCSPlugin: labels keep no jobs apart")
        for word in words:
            if plugin != "mcs/group" and word not in known:
                draft.warn(setting, f"{shown(word)} is unknown{nearest(word, known)}")
    return McsTable(label=plugin.removeprefix("mcs/"), enforced="enforced" in words, select=select)


# --------------------------------------------------------------------------------------- cluster
def read_cluster(draft: Draft) -> ClusterTable:
    """Translate the cluster's name, licences and memory limits."""
    name = draft.get("ClusterName")
    return ClusterTable(
        name=name.value if name is not None and name.value else "cluster",
        licenses=draft.read(draft.get("Licenses"), parse_licenses, {}, "cluster.licenses"),
        **read_memory(draft, draft.get, "cluster."),
        attributes=_attributes(draft),
    )


def _attributes(draft: Draft) -> Mapping[str, Any]:
    """Keep what the model has no field for, but a plugin may ask."""
    kept: dict[str, Any] = {
        "task_plugin": _task_plugin(draft),
        "priority_type": _priority_type(draft),
        "complete_wait": _optional(draft, "CompleteWait", parse_seconds),
        "enforce_part_limits": _part_limits(draft),
        "accounting_storage_enforce": _enforced(draft),
        "resv_over_run": _over_run(draft),
        "topology": topology.read_topology(draft) or None,
    }
    return {key: value for key, value in kept.items() if value is not None}


def _task_plugin(draft: Draft) -> str | None:
    """Return TaskPlugin; it decides what CR_CPU means to gang. slurm-gang-and-select 1.2."""
    setting = draft.get("TaskPlugin")
    if setting is None:
        return None if draft.since("23.11") else "task/none"
    words = _lower_words(setting.value)
    return ",".join(word if word.startswith("task/") else f"task/{word}" for word in words)


def _priority_type(draft: Draft) -> str | None:
    """Return PriorityType; its default changed with 23.11. slurm-gang-and-select 0.3."""
    setting = draft.get("PriorityType")
    if setting is None:
        if draft.release is None:
            return None
        return _PRIORITIES[1] if draft.since("23.11") else _PRIORITIES[0]
    return draft.read_plugin(setting, _PRIORITIES, _PRIORITIES[0])


def _optional(draft: Draft, key: str, parse: Callable[[str], Any], *, relevant: bool = True) -> Any:
    setting = draft.get(key)
    if setting is None:
        return None
    draft.leave_out(key, setting, relevant)
    return draft.read(setting, parse, None)


def _part_limits(draft: Draft) -> str | None:
    """Return EnforcePartLimits as NO, ANY or ALL; 22.05.8 takes YES as ANY."""
    setting = draft.get("EnforcePartLimits")
    if setting is None:
        return None
    word = setting.value.upper()
    known = {
        "NO": "NO",
        "FALSE": "NO",
        "0": "NO",
        "YES": "ANY",
        "TRUE": "ANY",
        "1": "ANY",
        "ANY": "ANY",
        "ALL": "ALL",
    }
    if word not in known:
        draft.refuser(setting)(
            f"got {shown(setting.value)}; allowed: NO, ANY, ALL{nearest(word, known)}; taken as NO"
        )
    return known.get(word, "NO")


def _enforced(draft: Draft) -> Any:
    """Return the words of AccountingStorageEnforce."""
    words = _optional(draft, "AccountingStorageEnforce", _lower_words, relevant=False)
    setting = draft.get("AccountingStorageEnforce")
    for word in words or ():
        if setting is not None and word not in _ENFORCED:
            allowed = ", ".join(_ENFORCED[:-2])
            draft.refuser(setting)(f"got {shown(word)}; allowed: {allowed}{nearest(word, _ENFORCED)}")
    return words


def _over_run(draft: Draft) -> float | None:
    """Return ResvOverRun in seconds; UNLIMITED is a year. slurm-priority-and-limits 9."""
    setting = draft.get("ResvOverRun")
    if setting is None:
        return None
    none: int | None = 0
    minutes = draft.read(setting, parse_limit, none, "cluster.attributes.resv_over_run")
    return 365 * 86400.0 if minutes is None else minutes * 60.0


def _words(draft: Draft, key: str) -> list[str]:
    setting = draft.get(key)
    return [] if setting is None else _lower_words(setting.value)


def _lower_words(text: str) -> list[str]:
    return [word.strip() for word in text.lower().split(",") if word.strip()]
