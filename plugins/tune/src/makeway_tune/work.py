"""Search, finalists, answer: what is replayed, over how many days, and how long that may take.

The time that is given is kept.  Where trials on a week of the log would not fit, they are made on fewer days; a replay
that takes too long is given up; and finalists are replayed first as they are, then with other run times.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from makeway.errors import ConfigError, Problem
from makeway.model import Seconds
from makeway.obstacle import counted
from makeway_app.report import clock, short_name
from makeway_sweep.work import Outcome
from makeway_tune.answer import Answer, answer, candidate, groups_of, measures_of, score_of
from makeway_tune.facts import Costs, Facts, facts_of, of_each
from makeway_tune.files import Chosen
from makeway_tune.goals import Goals
from makeway_tune.log import DAY, Array, Log, busiest
from makeway_tune.runs import Runner
from makeway_tune.search import Score, front, least, search
from makeway_tune.sure import Drawn, disturbed

ALL, SHORT = "all", "short"
_SEARCHING, _LEANING = 0.4, 0.47
"""Shares of the time that is left after the site as configured, at which the search is over, and the search for changes
that change nothing."""
_LATER, _WORTH = 0.3, 10.0
"""How much later, where no candidate came to anything; and how many replays there must be time for then."""
_SLOW, _SLOWER = 0.1, 4.0
"""Share of the search's time that one trial may take, and how many times that of the site as configured in any case."""
_FINALISTS = 5
_DISTURBED = 2
"""Replays with other run times."""
_MANY = 20
"""So many replays of the whole log fit into time that is not short."""

_NARROW = "there was no time for all replays with other run times, so that intervals are a little too narrow"

Advance = Callable[[int], None]
"""Told how many more replays are over."""


def _silent(number: int) -> None:
    """Tell nothing."""


@attrs.define(eq=False)
class Work:
    """What is replayed, and what came of it."""

    runner: Runner
    log: Log
    goals: Goals
    costs: Costs
    within: Seconds
    began: float
    """By `time.monotonic`."""
    cut: list[str] = attrs.field(factory=list)
    """What there was no time for."""
    one: Seconds = 0.0
    """What a replay of the whole log takes, as configured."""
    days: int = 0
    """Parts of the log on which candidates are tried."""
    tried_on: Array = None
    """Jobs of these."""
    names: list[str] = attrs.field(factory=lambda: [ALL])
    """Workloads that are replayed whole: the log, then the log with other run times."""
    others: bool = True
    """Whether any other setting was tried."""
    _later: float = 0.0
    """By how much of the time the search was given more."""
    _most: int = 0
    """Parts of the log on which candidates are tried if there is time."""
    _took: Seconds = 0.0
    """What a trial of the site as configured takes."""
    _replayed: float = 0.0
    """When the site as configured was."""

    @property
    def _until(self) -> float:
        return self.began + self.within

    def _at(self, share: float) -> float:
        """Return when so much of the time is over that was left after the site as configured."""
        return self._replayed + share * max(0.0, self._until - self._replayed)

    @property
    def _searching(self) -> float:
        return self._at(_SEARCHING + self._later)

    # -------------------------------------------------------------------------- as configured
    def as_configured(self, start: Seconds | None, seed: int, advance: Advance = _silent) -> None:
        """Replay the site as it is: the log, and the log with other run times, as often as there is time for.

        :raises ConfigError: there is no time for that.
        """
        self.runner.add(ALL, self.log.jobs, start)
        for at in range(_DISTURBED):
            self.runner.add(f"{ALL}~{at}", disturbed(self.log.jobs, seed * 1000 + at), start)
        names = [ALL, *(f"{ALL}~{at}" for at in range(_DISTURBED))]
        missing = [each for each in names if ((), each) not in self.runner.kept]
        few = 1 if len(missing) < len(names) else 2
        began = time.monotonic()
        self._replay_whole((), missing[:few], advance)
        if not self.one:
            self.one = (time.monotonic() - began) / math.ceil(few / self.runner.workers)
        if ((), ALL) not in self.runner.kept:
            raise self.too_long()
        if self.one * _MANY < self.within:
            self._replay_whole((), missing[few:], advance)
        self.names = [each for each in names if ((), each) in self.runner.kept]
        if len(self.names) < len(names):
            self.cut.append(_NARROW)
        self._replayed = time.monotonic()

    def _replay_whole(self, chosen: Chosen, names: Sequence[str], advance: Advance) -> None:
        self.runner.outcomes([(chosen, each) for each in names], until=self._until, advance=advance)

    def too_long(self) -> ConfigError:
        """Return what is said where the site as configured cannot be replayed in time."""
        text = "one replay of the whole log takes longer; give more time, or take fewer jobs with --limit"
        return ConfigError(f"--within {clock(self.within)}", [Problem("", text)])

    # --------------------------------------------------------------------------------- search
    def searched(self, trials: int, seed: int, advance: Advance = _silent) -> dict[Chosen, Score]:
        """Replay candidates over the days that have most of what is to become less."""
        self._choose_days(trials)
        tried = self._search(trials, seed, advance)
        # Days on which nothing is better than today say little of others.
        while not _promising(tried) and self.days < self.log.parts and self._time_for_more():
            self.days = min(self.log.parts, 2 * self.days)
            self._took = self._take(self._busiest(self.days))
            tried = self._search(trials, seed, advance)
        self.others = len(tried) > 1
        if len(tried) + len(self.runner.refused) < trials and time.monotonic() >= self._searching:
            self.cut.append(f"{len(tried):,} of {trials:,} candidates were tried, for want of time")
        if self.runner.slow:
            few = len(self.runner.slow)
            self.cut.append(f"{few:,} of them given up: a replay took more than {clock(self._longest)}")
        if self.days < self._most:
            self.cut.append(
                f"candidates were tried on {counted(self.days, self.log.unit)} of the log, "
                f"not {counted(self._most, self.log.unit)}, for want of time"
            )
        return tried

    def _search(self, trials: int, seed: int, advance: Advance) -> dict[Chosen, Score]:
        return search(
            self.runner.site,
            functools.partial(self.scores, searching=True),
            len(self.goals.minimise),
            trials=trials,
            seed=seed,
            until=self._searching,
            progress=advance,
        )

    def _time_for_more(self) -> bool:
        """Give the search more of the time, and say whether that is worth it."""
        self._later = _LATER
        return self._searching - time.monotonic() > _WORTH * self._took

    @property
    def _longest(self) -> Seconds:
        return max((self._searching - self._replayed) * _SLOW, self._took * _SLOWER)

    def _choose_days(self, trials: int) -> None:
        """Take a week, or so many of its days that all trials fit into the time, and at least one."""
        self._most = self.days = self.log.tried
        left = max(0.0, self._searching - time.monotonic()) * self.runner.workers / trials
        expected = self.one * float(self._busiest(self._most).mean())
        if expected > left:
            least = min(self._most, max(1, round(DAY / self.log.length)))
            self.days = max(least, int(self._most * left / expected))
        self._took = self._take(self._busiest(self.days))
        # What waits grows with the days, so that a few take less than their share.
        while self.days < self._most and 2 * self._took < left:
            self.days = min(self._most, 2 * self.days)
            self._took = self._take(self._busiest(self.days))

    def _busiest(self, days: int) -> Array:
        today = self._facts(self.runner.kept[(), ALL])
        shares = [
            _shares(np.where(self.log.mask(each.whose), of_each(each, today), 0.0))
            for each in self.goals.minimise
        ]
        return busiest(self.log, np.sum(shares, axis=0), days)

    def _take(self, mine: Array) -> Seconds:
        """Let these be the jobs on which candidates are tried; return what that takes as configured."""
        self.tried_on = mine
        jobs = [spec for spec, each in zip(self.log.jobs, mine, strict=True) if each]
        self.runner.forget(SHORT)
        self.runner.add(SHORT, jobs, self.runner.workloads[ALL].epoch)
        began = time.monotonic()
        if not self.runner.outcomes([((), SHORT)], until=self._until):
            raise self.too_long()
        return time.monotonic() - began

    def scores(self, chosen: Sequence[Chosen], *, searching: bool = False) -> list[Score | None]:
        """Return what candidates came to over these days; None: refused, or given up.

        :param searching: whether they are of the search, which ends earlier.
        """
        outcomes = self.runner.outcomes(
            [((), SHORT), *((each, SHORT) for each in chosen)],
            longest=self._longest,
            until=self._at((_SEARCHING if searching else _LEANING) + self._later),
        )
        today = outcomes[(), SHORT]
        return [self._score(outcomes.get((each, SHORT)), today) for each in chosen]

    def _score(self, outcome: Outcome | None, today: Outcome) -> Score | None:
        if outcome is None:
            return None
        more = max(0, _undone(outcome) - _undone(today))
        return score_of(self.goals, self.log, self._facts(outcome), self._facts(today), self.tried_on, more)

    def _facts(self, outcome: Outcome) -> Facts:
        assert outcome.by_job is not None
        return facts_of(self.log, outcome.by_job, self.costs)

    # ------------------------------------------------------------------------------ finalists
    def finalists(self, tried: dict[Chosen, Score], advance: Advance = _silent) -> list[Chosen]:
        """Replay the best of these days over the whole log, as many as there is time for.

        Changes that change nothing are taken back first.
        """
        best = [each for each in front(tried) if each][:_FINALISTS]
        self.scores([less for each in best for less in _without_one(each)])  # side by side
        lean = [each for each in dict.fromkeys(self._lean(each, tried) for each in best) if each]
        rounds = (self._until - time.monotonic()) / self.one if self.one else math.inf
        # The last round is for other run times.
        most = (
            max(1, int((rounds - len(self.names) + 1) * self.runner.workers))
            if rounds < math.inf
            else len(lean)
        )
        chosen = lean[:most]
        self._rounds(chosen, advance)
        done = [each for each in chosen if (each, ALL) in self.runner.kept]
        if len(done) < len(lean):
            self.cut.append(f"{len(done)} of {len(lean)} finalists were replayed over all, for want of time")
        return done

    def _rounds(self, chosen: Sequence[Chosen], advance: Advance) -> None:
        for at, name in enumerate(self.names):
            best = self._on_front(chosen)[1:] if at else chosen
            found = self.runner.outcomes([(each, name) for each in best], until=self._until, advance=advance)
            missed = [each for each in best if (each, name) not in found and each not in self.runner.refused]
            if at and missed:
                self.cut += [] if _NARROW in self.cut else [_NARROW]
                return

    def _lean(self, chosen: Chosen, tried: dict[Chosen, Score]) -> Chosen:
        """Take back changes one by one that make no figure of these days better."""
        score = tried[chosen]
        for each in chosen:
            less = tuple(other for other in chosen if other != each)
            if not less:
                break
            (found,) = [tried[less]] if less in tried else self.scores([less])
            if found is not None and (found == score or _as_good(found, score)):
                chosen, score = less, found
        return chosen

    # --------------------------------------------------------------------------------- answer
    def answered(self, chosen: Sequence[Chosen], drawings: Drawn) -> Answer:
        """Work out the answer from the replays of the whole log."""
        every = self._on_front(chosen)
        runs = {each: self._runs(each) for each in every}
        groups = groups_of(self.log, runs[()])
        measures = measures_of(self.goals, groups)
        candidates = [
            candidate(
                short_name(at),
                each,
                self.runner.site,
                runs[each],
                runs[()][: len(runs[each])],
                _undone(self.runner.kept[each, ALL]),
                self.log,
                self.goals,
                measures,
                drawings,
            )
            for at, each in enumerate(every)
        ]
        found = answer(candidates, self.goals, groups, self.log.stretches)
        return found if self.others else attrs.evolve(found, reason="no other setting was tried")

    def _runs(self, chosen: Chosen) -> list[Facts]:
        kept = self.runner.kept
        return [self._facts(kept[chosen, name]) for name in self.names if (chosen, name) in kept]

    def _on_front(self, chosen: Sequence[Chosen]) -> list[Chosen]:
        """Return what is configured, and the candidates that no other beats over the whole log."""
        kept = self.runner.kept
        every = [each for each in ((), *chosen) if (each, ALL) in kept]
        today = kept[(), ALL]
        of = self.log.mask(None)
        scores = {
            each: score_of(
                self.goals,
                self.log,
                self._facts(kept[each, ALL]),
                self._facts(today),
                of,
                max(0, _undone(kept[each, ALL]) - _undone(today)),
            )
            for each in every
        }
        best = [each for each in least(scores) if each]
        best = [each for each in best if not any(other.dominates(scores[each]) for other in scores.values())]
        return [(), *best]


def _promising(tried: Mapping[Chosen, Score]) -> bool:
    """Whether any candidate is better than the site as configured in anything."""
    today = tried[()]
    return any(
        each.excess < today.excess
        or any(one < two for one, two in zip(each.values, today.values, strict=True))
        for each in tried.values()
    )


def _without_one(chosen: Chosen) -> list[Chosen]:
    """Return it without each of its changes, if it has several."""
    if len(chosen) < 2:
        return []
    return [tuple(other for other in chosen if other != each) for each in chosen]


def _shares(values: Array) -> Array:
    """Return the share of each job in a sum; of a sum of nothing, nothing."""
    known = np.nan_to_num(values)
    total = known.sum()
    return known / total if total else known


def _as_good(one: Score, other: Score) -> bool:
    return one.kept >= other.kept and all(a <= b for a, b in zip(one.values, other.values, strict=True))


def _undone(outcome: Outcome) -> int:
    metrics: Mapping[str, float] = outcome.metrics or {}
    ends = ("jobs_unfinished", "jobs_ended_by_preemption", "jobs_ended_by_node_failure")
    return sum(int(metrics.get(each, 0)) for each in ends)
