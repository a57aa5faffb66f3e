"""Turn the parameters of a slurm.conf about time into the scheduler table.

Section numbers are those of slurm-preemption.md. Only values that the file sets are written beside
the preset ``slurm``, which has Slurm's defaults.
"""

from __future__ import annotations

import attrs

from makeway.config import SchedulerTable
from makeway.errors import nearest
from makeway_slurm.readers.conf_parts import Setting, shown
from makeway_slurm.readers.draft import Draft, reporting
from makeway_slurm.readers.partitions import limit_parser, parse_limit
from makeway_slurm.readers.values import (
    OptionValues,
    parse_count,
    parse_preempt_parameters,
    parse_scheduler_parameters,
    parse_seconds,
    parse_yes_no,
)
from makeway_slurm_rules.vendor import of_release

_SCHEDULERS = {"sched/backfill": "backfill", "sched/builtin": "builtin"}
_NEVER = 365 * 86400.0
"""An interval that no replay outlasts."""


def read_scheduler(draft: Draft) -> SchedulerTable:
    """Translate what decides when the queue is looked at, and how limits are enforced."""
    options = scheduler_options(draft)
    over = draft.get("OverTimeLimit")
    no_more: int | None = 0
    parse = parse_limit if over is None else limit_parser(draft.refuser(over))
    minutes = draft.read(over, parse, no_more, "scheduler.over_time_limit")
    return SchedulerTable(
        type=_scheduler_type(draft, options),
        clockwork={"preset": "slurm", **_clockwork(draft, options)},
        **of_release(draft.release),
        enforce_time_limits=minutes is not None,
        kill_invalid_depend=_kills_invalid(draft),
        requeue=_requeue(draft),
        max_requeues=draft.read(draft.get("MaxBatchRequeue"), parse_count, None, "scheduler.max_requeues"),
        over_time_limit=(minutes or 0) * 60.0,
    )


def _kills_invalid(draft: Draft) -> bool:
    """Translate the one word of DependencyParameters that is about jobs of this cluster."""
    return "kill_invalid_depend" in _words(draft, "DependencyParameters")


def kills_over_memory(draft: Draft) -> bool:
    """Whether jobs are cancelled that have more memory than they asked for: Slurm has to look, and to act on it."""
    kind, often, words = (_words(draft, f"JobAcctGather{name}") for name in ("Type", "Frequency", "Params"))
    looks = kind not in ([], ["jobacct_gather/none"]) and not {"0", "task=0"} & set(often)
    return looks and "overmemorykill" in words


def _words(draft: Draft, key: str) -> list[str]:
    setting = draft.get(key)
    return [] if setting is None else [word.strip() for word in setting.value.lower().split(",")]


def _requeue(draft: Draft) -> bool:
    """Translate JobRequeue, a number to slurmctld."""
    setting = draft.get("JobRequeue")
    if setting is None or not setting.value.isdecimal():
        requeue = draft.read(setting, parse_yes_no, True, "scheduler.requeue")
        if setting is not None and "scheduler.requeue" not in draft.bad:
            draft.refuser(setting)(f"got {shown(setting.value)}; taken as {int(requeue)}")
        return requeue
    return draft.read(setting, parse_count, 1, "scheduler.requeue") != 0


def _scheduler_type(draft: Draft, options: OptionValues) -> str:
    setting = draft.get("SchedulerType")
    name = draft.read_plugin(setting, tuple(_SCHEDULERS), "sched/backfill", "scheduler.type")
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
    "bf_max_job_array_resv": _Option("bf_max_job_array_resv", unit=None, least=1),
    "bf_min_prio_reserve": _Option("bf_min_prio_reserve", unit=None),
    "default_queue_depth": _Option("default_queue_depth", unit=None, least=1),
}
_ELSEWHERE = frozenset(
    """assoc_limit_stop bf_licenses max_switch_wait preempt_reorder_count preempt_send_user_signal preempt_strict_order
    preempt_youngest_first requeue_delay""".split()
)
"""Options of SchedulerParameters that are used, but not by `_OPTIONS`."""


def scheduler_options(draft: Draft) -> OptionValues:
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
    if options.get("bf_licenses"):
        values["bf_licenses"] = True
    for key, field in (
        ("KillWait", "kill_wait"),
        ("MessageTimeout", "message_timeout"),
        ("MinJobAge", "min_job_age"),
    ):
        given = draft.get(key)
        if given is not None:
            values[field] = float(draft.read(given, parse_seconds, 0, f"scheduler.clockwork.{field}"))
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
    parse = reporting(parse_scheduler_parameters, draft, setting)
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
    """Return cred_expire of an AuthInfo, which may have quotes around each word. None: it is not given."""
    for word in text.replace('"', "").split(","):
        name, _, value = word.strip().partition("=")
        if name.lower() == "cred_expire":
            return parse_count(value)
    return None


def _suspend_grace_time(draft: Draft) -> dict[str, float | int]:
    """Return suspend_grace_time, which can be set since 23.11 (6.5)."""
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
    draft.places["scheduler.clockwork.suspend_grace_time"] = setting.where
    return {"suspend_grace_time": float(options["suspend_grace_time"])}
