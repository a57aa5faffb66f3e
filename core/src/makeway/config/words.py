"""Read the small languages of single values: modes, parameters of selection, oversubscription."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.config.tables import SELECT_WORDS
from makeway.errors import nearest
from makeway.model import (
    ModeFlag,
    ModeSetting,
    OverSubscribe,
    PreemptMode,
    Sharing,
)


def parse_mode(words: Sequence[str]) -> ModeSetting:
    """Read a mode: at most one action, any modifiers (slurm-preemption 6.1).

    :raises ValueError: on an unknown word, two actions, or gang with within or priority.
    """
    actions = {mode.value: mode for mode in PreemptMode}
    flags = {flag.value: flag for flag in ModeFlag}
    action: PreemptMode | None = None
    found: set[ModeFlag] = set()
    for word in words:
        if word in actions:
            if action is not None:
                raise ValueError(f"two actions: {action.value!r} and {word!r}; allowed: one")
            action = actions[word]
        elif word in flags:
            found.add(flags[word])
        else:
            options = [*actions, *flags]
            raise ValueError(f"got {word!r}; allowed: {', '.join(options)}{nearest(word, options)}")
    for other in (ModeFlag.WITHIN, ModeFlag.PRIORITY):
        if ModeFlag.GANG in found and other in found:
            raise ValueError(f"gang and {other.value} exclude each other")
    return ModeSetting(action=action, flags=frozenset(found))


def parse_select_parameters(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of SelectTypeParameters in the manual's spelling, each once; case does not count.

    :raises ValueError: on an unknown word.
    """
    known = {word.lower(): word for word in SELECT_WORDS}
    for word in words:
        if word.lower() not in known:
            close = nearest(word, SELECT_WORDS)
            raise ValueError(f"got {word!r}; allowed: {', '.join(SELECT_WORDS)}{close}")
    return tuple(dict.fromkeys(known[word.lower()] for word in words))


def parse_oversubscribe(text: str) -> OverSubscribe:
    """Read NO, EXCLUSIVE, YES[:n], FORCE[:n]; a bare YES or FORCE means 4 (slurm-preemption 6.3).

    :raises ValueError: on anything else.
    """
    word, _, number = text.partition(":")
    try:
        sharing = Sharing(word.upper())
        count = int(number) if number else None
    except ValueError:
        raise ValueError(f"got {text!r}; allowed: NO, EXCLUSIVE, YES[:n], FORCE[:n]") from None
    if sharing in (Sharing.NO, Sharing.EXCLUSIVE):
        if count is not None:
            raise ValueError(f"got {text!r}; only YES and FORCE take a number")
        return OverSubscribe(sharing=sharing, count=1)
    if count is None:
        return OverSubscribe(sharing=sharing, count=4)
    if not 1 <= count <= 32767:
        raise ValueError(f"got {text!r}; allowed: 1 to 32767 jobs")
    if sharing is Sharing.YES and count == 1:
        return OverSubscribe()
    return OverSubscribe(sharing=sharing, count=count)
