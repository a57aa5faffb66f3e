"""Read the limits of QOS and associations in sacctmgr's words (slurm-priority-and-limits 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from makeway.model import NOTHING
from makeway_slurm.accounts.tres import parse_counts
from makeway_slurm.readers.values import parse_time

Tres = Mapping[str, int]


@attrs.frozen(kw_only=True)
class Limits:
    """What one QOS or association allows; None, or a TRES that is not there: anything."""

    grp_tres: Tres = NOTHING
    grp_tres_mins: Tres = NOTHING
    grp_tres_run_mins: Tres = NOTHING
    grp_jobs: int | None = None
    grp_submit: int | None = None
    grp_wall: int | None = None
    """Minutes."""
    grp_jobs_accrue: int | None = None
    max_tres: Tres = NOTHING
    """Per job."""
    max_tres_per_node: Tres = NOTHING
    max_tres_mins: Tres = NOTHING
    max_wall: int | None = None
    """Minutes."""
    max_jobs: int | None = None
    """Of an association."""
    max_submit: int | None = None
    max_jobs_accrue: int | None = None
    max_tres_pu: Tres = NOTHING
    max_jobs_pu: int | None = None
    max_submit_pu: int | None = None
    max_jobs_accrue_pu: int | None = None
    max_tres_run_mins_pu: Tres = NOTHING
    max_tres_pa: Tres = NOTHING
    max_jobs_pa: int | None = None
    max_submit_pa: int | None = None
    max_jobs_accrue_pa: int | None = None
    max_tres_run_mins_pa: Tres = NOTHING
    min_tres: Tres = NOTHING

    @property
    def any(self) -> bool:
        """Whether anything is limited at all."""
        return self != _ANYTHING


_ANYTHING = Limits()
_HANDED_DOWN = (
    *(
        "max_tres",
        "max_tres_per_node",
        "max_tres_mins",
        "max_wall",
        "max_jobs",
        "max_submit",
        "max_jobs_accrue",
    ),
)


def inherited(own: Limits, above: Limits) -> Limits:
    """Return the limits of an association with those that its account hands down to it (6.1 no. 3)."""
    missing = {
        name: getattr(above, name)
        for name in _HANDED_DOWN
        if getattr(own, name) in (None, NOTHING) and getattr(above, name) not in (None, NOTHING)
    }
    return attrs.evolve(own, **missing) if missing else own


_RELATIVE = ("grp_tres", "max_tres", "max_tres_per_node", "max_tres_pu", "max_tres_pa", "min_tres")


def relative(limits: Limits, there: Tres) -> Limits:
    """Return limits whose counts of TRES were percentages of what there is; fractions are dropped (6.1 no. 9)."""
    found: dict[str, Any] = {}
    for field in _RELATIVE:
        percents: Tres = getattr(limits, field)
        if percents:
            found[field] = {name: each * there.get(name, 0) // 100 for name, each in percents.items()}
    return attrs.evolve(limits, **found)


def _count(text: str) -> int | None:
    if text in ("", "-1"):
        return None
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"got {text!r:.40}; expected a number, or -1 for none")
    return int(text[:12])


def _minutes(text: str) -> int | None:
    """Read a time as sacctmgr prints it (1-00:00:00), or minutes as one gives them."""
    if text in ("", "-1"):
        return None
    seconds = parse_time(text)
    return None if seconds is None else math.floor(seconds / 60)


_WORDS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "grptres": ("grp_tres", parse_counts),
    "grptresmins": ("grp_tres_mins", parse_counts),
    "grptresrunmins": ("grp_tres_run_mins", parse_counts),
    "grpjobs": ("grp_jobs", _count),
    "grpsubmit": ("grp_submit", _count),
    "grpsubmitjobs": ("grp_submit", _count),
    "grpwall": ("grp_wall", _minutes),
    "grpjobsaccrue": ("grp_jobs_accrue", _count),
    "maxtres": ("max_tres", parse_counts),
    "maxtresperjob": ("max_tres", parse_counts),
    "maxtrespj": ("max_tres", parse_counts),
    "maxtrespernode": ("max_tres_per_node", parse_counts),
    "maxtrespn": ("max_tres_per_node", parse_counts),
    "maxtresmins": ("max_tres_mins", parse_counts),
    "maxtresminsperjob": ("max_tres_mins", parse_counts),
    "maxtresminspj": ("max_tres_mins", parse_counts),
    "maxwall": ("max_wall", _minutes),
    "maxwalldurationperjob": ("max_wall", _minutes),
    "maxjobs": ("max_jobs", _count),
    "maxsubmit": ("max_submit", _count),
    "maxsubmitjobs": ("max_submit", _count),
    "maxjobsaccrue": ("max_jobs_accrue", _count),
    "maxtrespu": ("max_tres_pu", parse_counts),
    "maxtresperuser": ("max_tres_pu", parse_counts),
    "maxjobspu": ("max_jobs_pu", _count),
    "maxjobsperuser": ("max_jobs_pu", _count),
    "maxsubmitpu": ("max_submit_pu", _count),
    "maxsubmitjobspu": ("max_submit_pu", _count),
    "maxsubmitjobsperuser": ("max_submit_pu", _count),
    "maxjobsaccruepu": ("max_jobs_accrue_pu", _count),
    "maxjobsaccrueperuser": ("max_jobs_accrue_pu", _count),
    "maxtresrunminspu": ("max_tres_run_mins_pu", parse_counts),
    "maxtresrunminsperuser": ("max_tres_run_mins_pu", parse_counts),
    "maxtrespa": ("max_tres_pa", parse_counts),
    "maxtresperaccount": ("max_tres_pa", parse_counts),
    "maxjobspa": ("max_jobs_pa", _count),
    "maxjobsperaccount": ("max_jobs_pa", _count),
    "maxsubmitpa": ("max_submit_pa", _count),
    "maxsubmitjobspa": ("max_submit_pa", _count),
    "maxsubmitjobsperaccount": ("max_submit_pa", _count),
    "maxjobsaccruepa": ("max_jobs_accrue_pa", _count),
    "maxjobsaccrueperaccount": ("max_jobs_accrue_pa", _count),
    "maxtresrunminspa": ("max_tres_run_mins_pa", parse_counts),
    "maxtresrunminsperaccount": ("max_tres_run_mins_pa", parse_counts),
    "mintres": ("min_tres", parse_counts),
    "mintresperjob": ("min_tres", parse_counts),
}
WORDS = frozenset(_WORDS)
"""Words of sacctmgr that limit something, in lower case without blanks."""
_OLD = {"grpnodes": "node", "grpcpus": "cpu", "grpmem": "mem", "maxnodes": "node", "maxcpus": "cpu"}
_OLD_MINS = {
    "grpcpumins": "grp_tres_mins",
    "maxcpumins": "max_tres_mins",
    "grpcpurunmins": "grp_tres_run_mins",
}
OLD_WORDS = frozenset((*_OLD, *_OLD_MINS))
"""Words of ``show user withassoc`` and ``show account withassoc``, which still print them."""


def parse_limits(words: Mapping[str, Any]) -> Limits:
    """Return the limits among `words`, sacctmgr's columns or options; others are passed over.

    :raises ValueError: a value is none; says of which word.
    """
    found: dict[str, Any] = {}
    for word, value in words.items():
        key, text = word.replace(" ", "").lower(), str(value).strip()
        known = _WORDS.get(key)
        if known is not None:
            field, parse = known
            try:
                read = parse(text)
            except ValueError as error:
                raise ValueError(f"{word}: {error}") from None
            if read is not None and read != {}:
                found[field] = read
        elif key in OLD_WORDS and text not in ("", "-1"):
            field = _OLD_MINS.get(key) or ("grp_tres" if key.startswith("grp") else "max_tres")
            found[field] = {**found.get(field, {}), _OLD.get(key, "cpu"): int(text)}
    return Limits(**found)
