"""Forget what was found out about jobs that have ended, so that a long log takes no more memory than a short one."""

from __future__ import annotations

from typing import Any

from makeway.model import ClusterView
from makeway_moab_qos.credentials import settings_of

_BY_JOB = (
    "access",
    "qos_of",
    "flags",
    "parts",
    "frozen",
    "bypassed",
    "never_displaces",
    "requests",
    "possible",
)
"""Tables of `Settings.memo` whose keys are the id of a job, or begin with it."""
_FEWEST = 1000
"""How many jobs a table may know before any is forgotten."""


def forget_ended(view: ClusterView) -> None:
    """Forget jobs that neither wait nor run, where a table has become twice as long as when it was last looked at."""
    memo = settings_of(view).memo
    lengths: dict[str, int] = memo.setdefault("lengths", {})
    for name in _BY_JOB:
        table: dict[Any, Any] = memo.get(name, {})
        if len(table) <= max(_FEWEST, 2 * lengths.get(name, 0)):
            continue
        for key in [each for each in table if view.job(each if isinstance(each, str) else each[0]) is None]:
            del table[key]
        lengths[name] = len(table)
