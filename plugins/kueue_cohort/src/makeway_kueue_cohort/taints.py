"""Say which flavors a workload may not use: their nodes are tainted, and it does not tolerate that (kueue 7.3).

A taint is written ``key=value:Effect``. A toleration is written the same way; without a value it stands for all
values, without an effect for all effects, and ``*`` for all taints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

HARD = ("NoSchedule", "NoExecute")
"""Effects that keep a workload out; PreferNoSchedule does not."""


def _parts(text: str) -> tuple[str, str | None, str]:
    rest, _, effect = text.partition(":")
    key, equals, value = rest.partition("=")
    return key, value if equals else None, effect


def tolerated(taint: str, tolerations: Iterable[str]) -> bool:
    """Whether any of the tolerations is of a taint."""
    key, value, effect = _parts(taint)
    for each in tolerations:
        its_key, its_value, its_effect = _parts(each)
        same = its_key == "*" or (its_key == key and its_value in (None, value or ""))
        if same and its_effect in ("", effect):
            return True
    return False


def closed(taints: Mapping[str, Iterable[str]], tolerations: Iterable[str]) -> dict[str, str]:
    """Return the flavors that are closed to a workload with these tolerations, each with the taint."""
    own = tuple(tolerations)
    found = {}
    for flavor, listed in taints.items():
        for taint in listed:
            if _parts(taint)[2] in HARD and not tolerated(taint, own):
                found[flavor] = taint
                break
    return found
