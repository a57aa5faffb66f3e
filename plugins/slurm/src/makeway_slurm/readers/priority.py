"""Turn the parameters of a slurm.conf about priorities into settings of ``priority/multifactor``.

Section numbers are those of slurm-priority-and-limits.md. Only values that the file sets are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from makeway.errors import nearest
from makeway_slurm.accounts.settings import FLAGS, RESETS
from makeway_slurm.accounts.tres import parse_weights
from makeway_slurm.readers.conf_parts import Setting, shown
from makeway_slurm.readers.draft import Draft
from makeway_slurm.readers.values import parse_count, parse_time, parse_yes_no

NAME = "priority/multifactor"
_MOST = 2**32 - 1
_NEWER_FLAGS = {"MAX_TRES_GRES": "25.05"}


def _weight(text: str) -> int:
    return parse_count(text, _MOST)


def _seconds(text: str) -> float:
    seconds = parse_time(text)
    if seconds is None:
        raise ValueError(f"got {shown(text)}; expected a time such as 7-0, or minutes")
    return float(seconds)


def _period(text: str) -> float:
    seconds = _seconds(text)
    if seconds < 60:
        raise ValueError(f"got {shown(text)}; expected minutes, 1 or more")
    return seconds


def _reset(text: str) -> str:
    word = text.upper()
    if word not in RESETS:
        raise ValueError(f"got {shown(text)}; allowed: {', '.join(RESETS)}{nearest(word, RESETS)}")
    return word


_KEYS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "PriorityWeightAge": ("weight_age", _weight),
    "PriorityWeightAssoc": ("weight_assoc", _weight),
    "PriorityWeightFairshare": ("weight_fairshare", _weight),
    "PriorityWeightJobSize": ("weight_job_size", _weight),
    "PriorityWeightPartition": ("weight_partition", _weight),
    "PriorityWeightQOS": ("weight_qos", _weight),
    "PriorityWeightTRES": ("weight_tres", parse_weights),
    "PriorityMaxAge": ("max_age", _seconds),
    "PriorityFavorSmall": ("favor_small", parse_yes_no),
    "FairShareDampeningFactor": ("dampening_factor", lambda text: max(1, parse_count(text))),
    "PriorityDecayHalfLife": ("decay_half_life", _seconds),
    "PriorityCalcPeriod": ("calc_period", _period),
    "PriorityUsageResetPeriod": ("usage_reset_period", _reset),
}
KEYS = frozenset((*_KEYS, "PriorityFlags"))
"""Parameters of slurm.conf that become settings."""


def in_force(draft: Draft) -> bool:
    """Whether priority/multifactor gives the priorities; of a file without release and PriorityType it is not said."""
    setting = draft.get("PriorityType")
    if setting is None:
        return draft.release is not None and draft.since("23.11")
    return setting.value.lower() == NAME


def read_priority(draft: Draft) -> dict[str, Any]:
    """Return the settings that the file states."""
    found: dict[str, Any] = {}
    path = f"policy.settings.{NAME}"
    for key, (name, parse) in _KEYS.items():
        setting = draft.get(key)
        if setting is not None:
            value = draft.read(setting, parse, None, f"{path}.{name}")
            if value is not None:
                found[name] = value
    flags = _flags(draft, draft.get("PriorityFlags"))
    if flags:
        found["flags"] = flags
    if not draft.since("23.11"):
        found["tie_order"] = "newest_first"
    _half_life_or_reset(draft, found)
    return found


def _flags(draft: Draft, setting: Setting | None) -> list[str]:
    """Return PriorityFlags in the manual's spelling; words that Slurm passes over are named."""
    if setting is None:
        return []
    found: list[str] = []
    for word in filter(None, (each.strip().upper() for each in setting.value.split(","))):
        since = _NEWER_FLAGS.get(word)
        if word not in FLAGS:
            draft.warn(
                setting, f"{shown(word)} is no flag of Slurm's; it is passed over{nearest(word, FLAGS)}"
            )
        elif since is not None and not draft.since(since):
            draft.warn(
                setting, f"Slurm {draft.release} does not know {word} (since {since}); it is passed over"
            )
        else:
            found.append(word)
    return sorted(dict.fromkeys(found))


def _half_life_or_reset(draft: Draft, found: Mapping[str, Any]) -> None:
    """Say that usage would grow for ever: slurmctld does not start then (2.2 no. 5)."""
    setting = draft.get("PriorityDecayHalfLife")
    if setting is not None and found.get("decay_half_life") == 0.0 and "usage_reset_period" not in found:
        draft.refuser(setting)("without decay PriorityUsageResetPeriod has to be set")
