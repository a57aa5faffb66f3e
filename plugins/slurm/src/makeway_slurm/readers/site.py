"""Say in a sentence each what decides at a site and has to come from elsewhere: accounts, usage, limits."""

from __future__ import annotations

from collections.abc import Iterator

from makeway_slurm.readers.draft import Draft

_TREE = "`sacctmgr -P show assoc tree`, then --accounting"
_QOS = "`sacctmgr -P show qos`"
_USED = "`sshare -a -l -P -m`"
_LIMITS = frozenset(("limits", "safe", "all", "2"))
"""Words of AccountingStorageEnforce with which 22.05.8 enforces limits."""


def sentences(draft: Draft, *, has_tree: bool, has_qos: bool) -> Iterator[str]:
    """Yield what a reader of a replay's results should know about the site.

    :param has_tree: whether accounting says which accounts and users there are.
    :param has_qos: whether it describes QOS.
    """
    if not has_tree:
        yield from _order(draft)
    yield from _limits(draft, has_tree=has_tree, has_qos=has_qos)


def _order(draft: Draft) -> Iterator[str]:
    weight = draft.get("PriorityWeightFairshare")
    if weight is None or not draft.multifactor or weight.value.strip("\"' ") in ("", "0"):
        return
    yield (
        f"fair share weighs in Slurm's order of jobs ({weight.key}={weight.value}): it needs the accounts with their "
        f"shares ({_TREE}) and what everybody had used when the replay begins ({_USED})"
    )


def _limits(draft: Draft, *, has_tree: bool, has_qos: bool) -> Iterator[str]:
    setting = draft.get("AccountingStorageEnforce")
    if setting is None:
        return
    words = {word.strip() for word in setting.value.lower().split(",")}
    if words & _LIMITS:
        draft.told.add("accountingstorageenforce")
        missing = [text for text, there in ((_QOS, has_qos), (_TREE, has_tree)) if not there]
        if missing:
            yield (
                f"Slurm enforces limits of associations and QOS (AccountingStorageEnforce={setting.value}): "
                f"they come from {' and '.join(missing)}"
            )
