"""Understand ``preempt_prio``: levels of statuses, and the preemption value of a job (sections 1.4 and 2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from makeway.errors import nearest

EXPRESS, STARVING, FAIRSHARE = "express_queue", "starving_jobs", "fairshare"
QUEUE_SOFT, SERVER_SOFT, NORMAL = "queue_softlimits", "server_softlimits", "normal_jobs"
STATUSES = (EXPRESS, STARVING, FAIRSHARE, QUEUE_SOFT, SERVER_SOFT, NORMAL)
TOP = 100_000
"""Rank of a job that is being run by qrun."""
STEP = 1_000
MOST = 19
"""Most levels; the table has 20 rows, and the first is reserved."""


@attrs.frozen
class Level:
    """One element of ``preempt_prio``."""

    statuses: frozenset[str]
    rank: int
    text: str


@attrs.frozen
class Levels:
    """All of ``preempt_prio``."""

    listed: tuple[Level, ...]
    """Highest first."""

    @property
    def normal(self) -> int:
        """Rank of a normal job; 0 where normal_jobs is not listed."""
        return next((level.rank for level in self.listed if level.statuses == {NORMAL}), 0)

    def value(self, statuses: Iterable[str], queue_priority: int) -> tuple[int, str]:
        """Return the preemption value of a job, and the level that gives it.

        The level with the most joined statuses that the job all has counts, the highest of them; if it is an
        express level the queue's Priority is added. A job that no level fits is normal.

        :param statuses: all that hold; none: the job is normal.
        """
        has = frozenset(statuses) or frozenset({NORMAL})
        fitting = [level for level in self.listed if level.statuses <= has]
        if not fitting:
            return self.normal, NORMAL
        found = max(fitting, key=lambda level: (len(level.statuses), level.rank))
        return found.rank + (queue_priority if EXPRESS in found.statuses else 0), found.text


def levels_of(text: str, *, starving: bool = True) -> Levels:
    """Read ``preempt_prio``.

    :param starving: whether starving_jobs is a status of this version.
    :raises ValueError: naming the word that is wrong, and what is allowed.
    """
    known = [status for status in STATUSES if starving or status != STARVING]
    elements = [element.strip() for element in text.split(",")]
    if len(elements) > MOST:
        raise ValueError(f"got {len(elements)} levels; allowed: at most {MOST}")
    listed: list[Level] = []
    for place, element in enumerate(elements, start=1):
        statuses = _statuses(element, known)
        listed.append(Level(statuses, TOP - STEP * place, element))
    return Levels(tuple(listed))


def _statuses(element: str, known: Sequence[str]) -> frozenset[str]:
    words = element.split("+")
    for word in words:
        if word == STARVING and word not in known:
            raise ValueError(f"got {word!r}, which is gone since 22.05; allowed: {', '.join(known)}")
        if word not in known:
            options = ", ".join(known)
            raise ValueError(f"got {word!r}; allowed: {options}, joined by '+'{nearest(word, known)}")
    if len(set(words)) < len(words):
        raise ValueError(f"got {element!r}: a status is there twice")
    return frozenset(words)
