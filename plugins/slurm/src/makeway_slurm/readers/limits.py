"""Turn what a slurm.conf says about limits into settings of ``limits/slurm`` (slurm-priority-and-limits 6, 7)."""

from __future__ import annotations

from typing import Any

from makeway_slurm.limits.access import LISTS
from makeway_slurm.readers.draft import Draft
from makeway_slurm.readers.scheduler import scheduler_options
from makeway_slurm.readers.values import parse_count

NAME = "limits/slurm"
_LIMITS = frozenset(("limits", "safe", "all", "2"))
"""Words of AccountingStorageEnforce with which 22.05.8 enforces limits."""
_SAFE = frozenset(("safe",))


def read_limits(draft: Draft, words: list[str], part_limits: str | None) -> dict[str, Any] | None:
    """Return the settings; None: the file limits no job in this way.

    That Slurm refuses users without an association, or another QOS than theirs, is left out: it took the jobs of a log,
    and users who have gone since are no longer in the tree.

    :param words: those of AccountingStorageEnforce, in small letters.
    """
    given = frozenset(words)
    lists = any(
        record.get(key) is not None for record in draft.conf.records("PartitionName") for key in LISTS
    )
    enforce = bool(given & _LIMITS)
    array = draft.get("MaxArraySize")
    if not (enforce or lists or array is not None):
        return None
    found: dict[str, Any] = {"enforce": enforce}
    if given & _SAFE:
        found["safe"] = True
    if part_limits not in (None, "NO"):
        found["part_limits"] = part_limits
    if array is not None:
        found["max_array_size"] = draft.read(
            array, parse_count, 1001, f"policy.settings.{NAME}.max_array_size"
        )
    if enforce and "assoc_limit_stop" in scheduler_options(draft):
        found["limit_stop"] = True
    if not draft.since("23.02"):
        found |= {"groups_wait": False, "covers_below": False}
    if not draft.since("24.11"):
        found["accounts_as_config"] = False
    return found
