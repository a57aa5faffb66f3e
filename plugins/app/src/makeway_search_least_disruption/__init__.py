"""Take provably the fewest victims, then those that lose the least work
(``search/least_disruption``).

Slurm's two-stage search takes victims that are good but need not be the best; its page on
preemption lists a search that leaves as many jobs alone as possible under future ideas. This is
one: of all choices of candidates that make room it takes one of the fewest victims, among these
one that loses the least work, and among these the jobs submitted last. Putting any single victim
back makes the placement impossible.

A selector may say that the job needs so many nodes, whichever they are (`makeway.model.Cover`). The
answer then comes from a decomposition and a dynamic programme (`parts`, `combine`), else from
probing (`probing`). Both stop at a limit, and then say in `Choice.method`
what is proved and what is not.

========= ================================================================
module    what it owns
========= ================================================================
price     what each candidate would lose
parts     a cover problem taken apart: which stand alone, which are entangled
combine   the best choice over all parts
counting  a good choice, when the best one takes too long to prove
probing   the same questions where only probes can answer
effort    the limit
========= ================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from makeway.hookspecs import hookimpl
from makeway.model import (
    Attempt,
    Candidates,
    Choice,
    ClusterView,
    Cover,
    PreemptMode,
    Seconds,
)
from makeway_search_least_disruption.combine import combine
from makeway_search_least_disruption.counting import at_least, good_choice
from makeway_search_least_disruption.effort import Effort, OutOfEffortError
from makeway_search_least_disruption.parts import parts_of
from makeway_search_least_disruption.price import prices
from makeway_search_least_disruption.probing import Found, Prober, by_probing

PROVED = "fewest victims, proved"
COUNT_PROVED = "fewest victims, proved; least work not proved (effort limit)"
NOT_PROVED = "not proved fewest (effort limit)"


@attrs.frozen(kw_only=True)
class Settings:
    """Keys of ``[policy.settings."search/least_disruption"]``."""

    effort: int = attrs.field(default=200_000, validator=attrs.validators.ge(0))
    """Most steps of one search: simulated removals, probes, partial choices looked at."""


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


@hookimpl
def makeway_search(
    attempt: Attempt, candidates: Candidates, view: ClusterView, now: Seconds
) -> Choice | None:
    """Take the fewest victims, then the least work."""
    return least_disruption(attempt, candidates, view, now, view.settings(Settings).effort)


def least_disruption(
    attempt: Attempt, candidates: Candidates, view: ClusterView, now: Seconds, effort: int
) -> Choice | None:
    """Return the choice that disturbs least; None if removing all candidates does not help."""
    price = prices(candidates.jobs, view, now)
    prober = Prober(attempt, candidates)
    cover = attempt.cover(candidates.jobs, candidates.modes)
    if cover is not None:
        budget = Effort(effort)
        found = by_counting(cover, price, budget)
        if found is not None:
            choice = _choice(prober, found, price, budget, len(candidates.jobs))
            if choice is not None:
                return choice
    # No cover, or one that left out a reason for which the job does not fit (a licence, say).
    budget = Effort(effort)
    open_to = [at for at, mode in enumerate(candidates.modes) if mode is not PreemptMode.OFF]
    found = by_probing(prober, open_to, price, budget)
    return None if found is None else _choice(prober, found, price, budget, len(candidates.jobs))


def by_counting(cover: Cover, price: Sequence[int], effort: Effort) -> Found | None:
    """Return which to take so that enough nodes are free; None if there are too few."""
    need = cover.wanted - cover.free
    if need <= 0:
        return Found((), 0, complete=True)
    if len(cover.blockers) < need:
        return None
    groups = Counter(cover.blockers.values())
    most, good = len(price), None
    if any(len(group) > 1 for group in groups):
        good = good_choice(groups, price, need)
        most = len(good)
        effort.at_least = at_least(groups, need)
    try:
        best = combine(parts_of(groups, price, need, most, effort), need, effort)
    except OutOfEffortError:
        return _found(good or good_choice(groups, price, need), price, complete=False)
    return None if best is None else _found(best, price, complete=True)


def _found(victims: Sequence[int], price: Sequence[int], *, complete: bool) -> Found:
    return Found(tuple(victims), sum(price[at] for at in victims), complete)


def _choice(
    prober: Prober, found: Found, price: Sequence[int], effort: Effort, considered: int
) -> Choice | None:
    """Ask the selector where the job goes once the victims are gone; None if it does not fit."""
    victims = sorted(found.victims, key=lambda at: (price[at], at))
    placement = prober.place(victims)
    if placement is None:
        return None
    return Choice(
        placement=placement,
        victims=tuple(victims),
        method=_method(found, effort),
        considered=considered,
    )


def _method(found: Found, effort: Effort) -> str:
    if found.complete:
        return PROVED
    return COUNT_PROVED if len(found.victims) <= effort.at_least else NOT_PROVED
