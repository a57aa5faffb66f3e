"""Turn the simple parameters of a slurm.conf into policy, scheduler and cluster tables.

Section numbers are those of slurm-preemption.md unless another document is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from makeway.check import MIN_TIMESLICE, TIMESLICE
from makeway.config import ClusterTable, McsTable, PolicyTable, PreemptionTable, SchedulerTable
from makeway.errors import nearest
from makeway.readers.slurm_draft import Draft
from makeway.readers.slurm_grammar import Setting, shown
from makeway.readers.slurm_partitions import mode_words, parse_limit, read_memory, select_words
from makeway.readers.slurm_values import (
    OptionValues,
    parse_count,
    parse_licenses,
    parse_preempt_parameters,
    parse_scheduler_parameters,
    parse_time,
    parse_yes_no,
)

GANG = "gang/timeslice"
PREEMPT_PLUGINS = ("preempt/none", "preempt/partition_prio", "preempt/qos")
SELECT_PLUGINS = ("select/cons_tres", "select/linear")
CRED_EXPIRE = 120
"""Lifetime of a credential in seconds, by default."""

_SELECT_ALIASES = {"select/cons_res": "select/cons_tres", "select/serial": "select/cons_tres"}
_SCHEDULERS = {"sched/backfill": "backfill", "sched/builtin": "builtin"}
_PRIORITIES = ("priority/basic", "priority/multifactor")
_MCS_SELECT = ("noselect", "select", "ondemandselect")
_NEVER = 365 * 86400.0
"""An interval that no replay outlasts."""


# ---------------------------------------------------------------------------------------- policy
def read_policy(draft: Draft) -> PolicyTable:
    """Translate what decides who is placed where and who makes way for whom."""
    mode = _cluster_mode(draft)
    gang = "gang" in mode
    return PolicyTable(
        select=_select(draft),
        select_parameters=_select_parameters(draft),
        preempt=_preempt_type(draft),
        preempt_mode=mode,
        gang=GANG if gang else None,
        preemption=_preemption(draft),
        mcs=_mcs(draft),
        settings={GANG: {"timeslice": _timeslice(draft)}} if gang else {},
    )


def _preempt_type(draft: Draft) -> str:
    """Translate PreemptType; one that cannot be loaded stops the controller. 6.2."""
    setting = draft.get("PreemptType")
    if setting is not None:
        draft.places.setdefault("policy.preempt_mode", setting.where)
    parse = _one_of(PREEMPT_PLUGINS, "Slurm has no such plugin to load")
    name = draft.read(setting, parse, "preempt/none", "policy.preempt")
    if "policy.preempt" in draft.bad:
        draft.bad.add("policy.preempt_mode")
    if setting is not None and name == "preempt/qos":
        draft.warn(
            setting,
            "slurm.conf does not hold the QOS; add them as [[qos]] tables by hand "
            "or from `sacctmgr dump`",
        )
    return name


def _cluster_mode(draft: Draft) -> tuple[str, ...]:
    """Translate the cluster's PreemptMode; unset is OFF."""
    return draft.read(draft.get("PreemptMode"), mode_words, ("off",), "policy.preempt_mode")


def _select(draft: Draft) -> str:
    """Translate SelectType, whose default changed with 23.11. 4.12."""
    setting = draft.get("SelectType")
    default = "select/cons_tres" if draft.since("23.11") else "select/linear"
    allowed = (*SELECT_PLUGINS, *_SELECT_ALIASES)
    name = draft.read(setting, _one_of(allowed, "Slurm has no such plugin"), default, "policy.select")
    if "policy.select" in draft.bad:
        draft.bad.add("policy.select_parameters")
    if setting is None or name not in _SELECT_ALIASES:
        return name
    draft.warn(setting, f"{name} was dropped by Slurm; taken as {_SELECT_ALIASES[name]}")
    return _SELECT_ALIASES[name]


def _select_parameters(draft: Draft) -> tuple[str, ...]:
    """Translate SelectTypeParameters. slurm-gang-and-select 0.3, 4.6."""
    setting = draft.get("SelectTypeParameters")
    words = draft.read(setting, select_words, (), "policy.select_parameters")
    if setting is not None or not draft.since("23.11"):
        return words
    select = draft.get("SelectType")
    linear = select is not None and select.value.lower() == "select/linear"
    return () if linear else ("CR_Core_Memory",)


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
    """Translate PreemptExemptTime and PreemptParameters, with their older spellings. 6.5."""
    exempt = draft.read(
        draft.get("PreemptExemptTime"), parse_time, None, "policy.preemption.exempt_time"
    )
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
        for name, value in _scheduler_options(draft).items()
        if name.startswith("preempt_")
    }
    return older | _old_signal_option(draft) | _preempt_parameters(draft)


def _preempt_parameters(draft: Draft) -> OptionValues:
    setting = draft.get("PreemptParameters")
    if setting is None:
        return {}
    if not draft.since("23.02"):
        draft.warn(setting, f"Slurm {draft.release} does not know it; since 23.02. Taken all the same")
    parse = _reporting(parse_preempt_parameters, draft, setting)
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
    plugin = draft.read(draft.get("MCSPlugin"), _one_of(plugins), "mcs/none", "policy.mcs.label")
    setting = draft.get("MCSParameters")
    words = setting.value.partition(":")[0].lower().split(",") if setting else []
    select = next((word for word in words if word in _MCS_SELECT), "ondemandselect")
    known = {*_MCS_SELECT, "enforced", "ondemand", "privatedata", "noprivatedata", ""}
    if setting is not None:
        draft.places["policy.mcs"] = setting.where
        for word in words:
            if plugin != "mcs/group" and word not in known:
                draft.warn(setting, f"{shown(word)} is unknown{nearest(word, known)}")
    return McsTable(
        label=plugin.removeprefix("mcs/"), enforced="enforced" in words, select=select
    )


# ------------------------------------------------------------------------------------- scheduler
def read_scheduler(draft: Draft) -> SchedulerTable:
    """Translate what decides when the queue is looked at, and how limits are enforced."""
    options = _scheduler_options(draft)
    over = draft.get("OverTimeLimit")
    minutes = draft.read(over, parse_limit, 0, "scheduler.over_time_limit")
    return SchedulerTable(
        type=_scheduler_type(draft, options),
        clockwork={"preset": "slurm", **_clockwork(draft, options)},
        slurm_release=draft.release,
        enforce_time_limits=minutes is not None,
        requeue=draft.read(draft.get("JobRequeue"), parse_yes_no, True, "scheduler.requeue"),
        max_requeues=draft.read(
            draft.get("MaxBatchRequeue"), parse_count, None, "scheduler.max_requeues"
        ),
        over_time_limit=(minutes or 0) * 60.0,
    )


def _scheduler_type(draft: Draft, options: OptionValues) -> str:
    setting = draft.get("SchedulerType")
    name = draft.read(setting, _one_of(tuple(_SCHEDULERS)), "sched/backfill", "scheduler.type")
    if name == "sched/backfill" and options.get("bf_interval") == -1:
        return "builtin"
    return _SCHEDULERS[name]


@attrs.frozen
class _Option:
    """A number of SchedulerParameters that the clockwork has."""

    field: str
    unit: float | None = 1.0
    """Seconds per unit. None: it is a count."""
    least: int = 0


_OPTIONS = {
    "sched_interval": _Option("sched_interval"),
    "batch_sched_delay": _Option("submit_delay"),
    "bf_interval": _Option("bf_interval", least=1),
    "bf_window": _Option("bf_window", unit=60.0, least=1),
    "bf_resolution": _Option("bf_resolution", least=1),
    "bf_max_job_test": _Option("bf_max_job_test", unit=None, least=1),
    "default_queue_depth": _Option("default_queue_depth", unit=None, least=1),
}
_ELSEWHERE = frozenset(
    """preempt_reorder_count preempt_send_user_signal preempt_strict_order preempt_youngest_first
    requeue_delay""".split()
)
"""Options of SchedulerParameters that are used, but not by `_OPTIONS`."""


def _scheduler_options(draft: Draft) -> OptionValues:
    """Return SchedulerParameters; notes and complaints are made once, see `_clockwork`."""
    setting = draft.get("SchedulerParameters")
    if setting is None:
        return {}
    try:
        return parse_scheduler_parameters(setting.value)[0]
    except ValueError:
        return {}


def _clockwork(draft: Draft, options: OptionValues) -> dict[str, float | int]:
    """Return the values that the file sets; all others are those of the preset. 4.12."""
    _complain_about_options(draft)
    values: dict[str, float | int] = {}
    setting = draft.get("SchedulerParameters")
    for name, option in _OPTIONS.items():
        if setting is not None and name in options:
            values |= _clock_value(draft, setting, name, option, int(options[name]))
    for key, field in (("KillWait", "kill_wait"), ("MessageTimeout", "message_timeout")):
        given = draft.get(key)
        if given is not None:
            values[field] = float(draft.read(given, parse_count, 0, f"scheduler.clockwork.{field}"))
    return values | _requeue_delay(draft, options) | _suspend_grace_time(draft)


def _clock_value(
    draft: Draft, setting: Setting, name: str, option: _Option, number: int
) -> dict[str, float | int]:
    """Translate one option; -1 switches a scheduler off, other odd numbers mean the default."""
    if number == -1 and name == "bf_interval":
        draft.warn(setting, "bf_interval=-1 switches backfill off; taken as sched/builtin")
        return {}
    if number == -1 and name == "sched_interval":
        draft.warn(setting, "sched_interval=-1 switches the main scheduler off")
        off = {"pass_on_submit": False, "pass_on_completion": False}
        return {"sched_interval": _NEVER, "sched_phase": _NEVER, **off}
    if number < option.least:
        draft.warn(setting, f"{name}={number} is out of range; Slurm uses its default")
        return {}
    return {option.field: number if option.unit is None else number * option.unit}


def _complain_about_options(draft: Draft) -> None:
    """Note wrong, unknown and unused words of SchedulerParameters."""
    setting = draft.get("SchedulerParameters")
    if setting is None:
        return
    parse = _reporting(parse_scheduler_parameters, draft, setting)
    empty: tuple[OptionValues, list[str]] = ({}, [])
    known, unknown = draft.read(setting, parse, empty, "scheduler.clockwork")
    used = _OPTIONS.keys() | _ELSEWHERE
    for name in [*known, *(word.partition("=")[0] for word in unknown)]:
        if name not in used:
            draft.leave_out(f"{setting.key}={name}{_guess(name, known, used)}", setting)


def _guess(name: str, known: OptionValues, used: frozenset[str] | set[str]) -> str:
    """Return the option that an unknown word may have been meant for."""
    return "" if name in known else nearest(name, used).replace("; did", " - did")


def _requeue_delay(draft: Draft, options: OptionValues) -> dict[str, float | int]:
    """Return D + 1 where D is requeue_delay (25.11) or a credential's lifetime. 4.5 no. 4."""
    if "requeue_delay" in options and int(options["requeue_delay"]) >= 0:
        return {"requeue_delay": int(options["requeue_delay"]) + 1.0}
    setting = draft.get("AuthInfo")
    if setting is None:
        return {}
    lifetime = draft.read(setting, _parse_cred_expire, None, "scheduler.clockwork.requeue_delay")
    return {} if lifetime is None else {"requeue_delay": lifetime + 1.0}


def _parse_cred_expire(text: str) -> int | None:
    """Return cred_expire of an AuthInfo. None: it is not given."""
    for word in text.split(","):
        name, _, value = word.strip().partition("=")
        if name.lower() == "cred_expire":
            return parse_count(value)
    return None


def _suspend_grace_time(draft: Draft) -> dict[str, float | int]:
    """Return suspend_grace_time, which can be set since 23.11. 6.5."""
    setting = draft.get("PreemptParameters")
    if setting is None:
        return {}
    try:
        options = parse_preempt_parameters(setting.value)[0]
    except ValueError:
        return {}
    if "suspend_grace_time" not in options:
        return {}
    if not draft.since("23.11"):
        draft.warn(setting, f"suspend_grace_time is fixed at 2 s in Slurm {draft.release}")
        return {}
    return {"suspend_grace_time": float(options["suspend_grace_time"])}


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
        "complete_wait": _optional(draft, "CompleteWait", parse_count),
        "enforce_part_limits": _optional(draft, "EnforcePartLimits", str.upper),
        "accounting_storage_enforce": _optional(draft, "AccountingStorageEnforce", _lower_words),
    }
    return {key: value for key, value in kept.items() if value is not None}


def _task_plugin(draft: Draft) -> str | None:
    """Return TaskPlugin; it decides what CR_CPU means to gang. slurm-gang-and-select 1.2."""
    setting = draft.get("TaskPlugin")
    if setting is None:
        return None if draft.since("23.02.5") else "task/none"
    words = _lower_words(setting.value)
    return ",".join(word if word.startswith("task/") else f"task/{word}" for word in words)


def _priority_type(draft: Draft) -> str | None:
    """Return PriorityType; its default changed with 23.02.5. slurm-gang-and-select 0.3."""
    setting = draft.get("PriorityType")
    if setting is None:
        if draft.release is None:
            return None
        return _PRIORITIES[1] if draft.since("23.02.5") else _PRIORITIES[0]
    name = draft.read(setting, _one_of(_PRIORITIES), _PRIORITIES[0])
    if name == "priority/multifactor":
        draft.leave_out("PriorityType=priority/multifactor", setting)
    return name


def _optional(draft: Draft, key: str, parse: Callable[[str], Any]) -> Any:
    setting = draft.get(key)
    return None if setting is None else draft.read(setting, parse, None)


def _lower_words(text: str) -> list[str]:
    return [word.strip() for word in text.lower().split(",") if word.strip()]


# ---------------------------------------------------------------------------------------- helpers
def _one_of(allowed: tuple[str, ...], reason: str = "") -> Callable[[str], str]:
    """Return a parser of one of some words in any case."""

    def parse(text: str) -> str:
        word = text.lower()
        if word in allowed:
            return word
        why = f"; {reason}" if reason else ""
        raise ValueError(
            f"got {shown(text)}{why}; allowed: {', '.join(allowed)}{nearest(word, allowed)}"
        )

    return parse


Parsed = tuple[OptionValues, list[str]]


def _reporting(
    parse: Callable[[str, Callable[[str], object]], Parsed], draft: Draft, setting: Setting
) -> Callable[[str], Parsed]:
    """Bind a parser of options to what notes its reports."""
    return lambda text: parse(text, draft.reporter(setting))


