"""Say in a sentence each what decides at a site and is not modelled: fair share, limits that are enforced."""

from __future__ import annotations

from collections.abc import Iterator

from makeway_slurm.readers.draft import Draft

_TREE = "`sacctmgr -P show assoc tree`, then --accounting"
_USED = "`sshare -a -l -P -m`"
_LIMITS = frozenset(("limits", "safe", "all", "2"))
"""Words of AccountingStorageEnforce with which 22.05.8 enforces limits."""


def sentences(draft: Draft) -> Iterator[str]:
    """Yield what a reader of a replay's results should know about the site."""
    yield from _order(draft)
    yield from _limits(draft)


def _order(draft: Draft) -> Iterator[str]:
    weight = draft.get("PriorityWeightFairshare")
    if weight is None or not draft.multifactor or weight.value.strip("\"' ") in ("", "0"):
        return
    yield (
        f"fair share weighs in Slurm's order of jobs ({weight.key}={weight.value}): it needs the accounts with their "
        f"shares ({_TREE}) and what everybody had used when the replay begins ({_USED})"
    )


def _limits(draft: Draft) -> Iterator[str]:
    setting = draft.get("AccountingStorageEnforce")
    if setting is None:
        return
    words = {word.strip() for word in setting.value.lower().split(",")}
    if words & _LIMITS:
        draft.told.add("accountingstorageenforce")
        yield (
            f"Slurm enforces limits of associations and QOS (AccountingStorageEnforce={setting.value}): "
            f"they come from `sacctmgr -P show qos` and {_TREE}"
        )
