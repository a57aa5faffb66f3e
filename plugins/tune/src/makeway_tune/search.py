"""Try candidates: first each setting alone, then what Optuna makes of what came of them.

Optuna is asked for a handful at a time and told what they came to, so that they may run side by side; how many cores
there are changes nothing in what is found.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence

import attrs
import optuna

from makeway.foreign import Knob
from makeway_tune.files import Chosen, Site

AT_ONCE = 8
_STARTS = 10
_IN_VAIN = 5
"""So many times that nothing new comes, and the search is over."""


@attrs.frozen(kw_only=True)
class Score:
    """What a candidate came to."""

    values: tuple[float, ...]
    """Of each figure that is to become less."""
    beyond: tuple[float, ...] = ()
    """Of each limit: by how much it is exceeded; at most 0: it is kept."""

    @property
    def kept(self) -> bool:
        """Whether all limits are."""
        return all(each <= 0 for each in self.beyond)

    @property
    def excess(self) -> float:
        """How far beyond limits it is in all."""
        return math.fsum(max(0.0, each) for each in self.beyond)

    def dominates(self, other: Score) -> bool:
        """Whether it is as good in all and better in something; who keeps to the limits is better than who does not."""
        if self.kept != other.kept:
            return self.kept
        if not self.kept:
            return self.excess < other.excess
        pairs = list(zip(self.values, other.values, strict=True))
        return all(one <= two for one, two in pairs) and any(one < two for one, two in pairs)


Run = Callable[[Sequence[Chosen]], Sequence[Score | None]]
"""Replays candidates; None: the site's reader refuses it."""


def search(
    site: Site, run: Run, goals: int, *, trials: int, seed: int, until: float, progress: Callable[[int], None]
) -> dict[Chosen, Score]:
    """Try up to `trials` candidates; what is configured is one of them.

    :param goals: how many figures are to become less.
    :param until: by `time.monotonic`; no batch begins later.
    :param progress: told how many more have run.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Optuna calls experimental
        return _search(site, run, goals, trials, seed, until, progress)


def _search(
    site: Site, run: Run, goals: int, trials: int, seed: int, until: float, progress: Callable[[int], None]
) -> dict[Chosen, Score]:
    sampler = optuna.samplers.TPESampler(
        seed=seed, n_startup_trials=_STARTS, multivariate=True, constant_liar=True, constraints_func=_beyond
    )
    study = optuna.create_study(directions=["minimize"] * goals, sampler=sampler)
    space: dict[str, optuna.distributions.BaseDistribution] = {
        each.name: optuna.distributions.CategoricalDistribution((each.now, *each.values))
        for each in site.knobs
    }
    for values in _alone(site.knobs, trials):
        study.enqueue_trial(values)
    known: dict[Chosen, Score | None] = {}
    vain = 0
    while len(known) < trials and vain < _IN_VAIN and (time.monotonic() < until or not known):
        asked = [study.ask(space) for _ in range(min(AT_ONCE, trials - len(known)))]
        chosen = [site.chosen({name: str(value) for name, value in each.params.items()}) for each in asked]
        fresh = [each for each in dict.fromkeys(chosen) if each not in known]
        vain = 0 if fresh else vain + 1
        known.update(zip(fresh, run(fresh), strict=True))
        progress(len(fresh))
        for trial, each in zip(asked, chosen, strict=True):
            score = known[each]
            if score is None or any(math.isnan(value) for value in score.values):
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                trial.set_user_attr("beyond", score.beyond)
                study.tell(trial, score.values)
    return {each: score for each, score in known.items() if score is not None}


def _beyond(trial: optuna.trial.FrozenTrial) -> Sequence[float]:
    found: Sequence[float] = trial.user_attrs.get("beyond", ())
    return found


def _alone(knobs: Sequence[Knob], trials: int) -> Iterator[dict[str, str]]:
    """Yield what is configured, then each setting changed alone: first the nearest value of each, then the next."""
    now = {each.name: each.now for each in knobs}
    yield now
    most = max(len(each.values) for each in knobs)
    alone = [
        {**now, each.name: each.values[at]} for at in range(most) for each in knobs if at < len(each.values)
    ]
    yield from alone[: max(0, trials // 2)]


def front(scores: dict[Chosen, Score]) -> list[Chosen]:
    """Return candidates in layers: those that none beats, then those that only these beat, and so on.

    Within a layer those with the fewest changes come first.
    """
    left = least(scores)
    found: list[Chosen] = []
    while left:
        layer = [each for each in left if not any(scores[other].dominates(scores[each]) for other in left)]
        found += layer
        left = [each for each in left if each not in layer]
    return found


def least(scores: dict[Chosen, Score]) -> list[Chosen]:
    """Return candidates, those with the fewest changes first; of several that come to the same, only that one."""
    found: dict[tuple[object, ...], Chosen] = {}
    for each, score in sorted(scores.items(), key=lambda item: (len(item[0]), item[0])):
        found.setdefault((score.values, score.beyond), each)
    return list(found.values())
