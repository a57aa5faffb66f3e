"""Say in a sentence each what decides at a site and is not modelled: fair share, limits that are enforced."""

from __future__ import annotations

from collections.abc import Iterator

from makeway_slurm.readers.defaults import FACTORS
from makeway_slurm.readers.draft import Draft

_WEIGHTS = {
    "PriorityWeightFairshare": "fair share",
    "PriorityWeightAge": "age",
    "PriorityWeightJobSize": "size",
    "PriorityWeightAssoc": "association",
    "PriorityWeightTRES": "TRES",
}
_LIMITS = frozenset(("limits", "safe", "all", "2"))
"""Words of AccountingStorageEnforce with which 22.05.8 enforces limits."""


def sentences(draft: Draft) -> Iterator[str]:
    """Yield what a reader of a replay's results should know about the site."""
    yield from _order(draft)
    yield from _limits(draft)


def _order(draft: Draft) -> Iterator[str]:
    weights = {key: setting for key in _WEIGHTS if (setting := draft.get(key)) is not None}
    heavy = {key: setting for key, setting in weights.items() if setting.value.strip("\"' ") not in ("", "0")}
    if not draft.multifactor or not heavy:
        return
    draft.told |= FACTORS
    named = ", ".join(f"{key}={setting.value}" for key, setting in heavy.items())
    what = [_WEIGHTS[key] for key in heavy]
    listed = " and ".join(filter(None, (", ".join(what[:-1]), what[-1])))
    yield (
        f"{listed} {'weighs' if len(what) == 1 else 'weigh'} in Slurm's order of jobs ({named}); "
        "the replay knows only the weights of QOS and partitions, and else goes by submission"
    )


def _limits(draft: Draft) -> Iterator[str]:
    setting = draft.get("AccountingStorageEnforce")
    if setting is None:
        return
    words = {word.strip() for word in setting.value.lower().split(",")}
    if words & _LIMITS:
        draft.told.add("accountingstorageenforce")
        yield (
            f"Slurm enforces limits of associations and QOS (AccountingStorageEnforce={setting.value}); "
            "the replay has none, so that jobs start that Slurm would keep waiting"
        )
