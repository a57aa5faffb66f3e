"""Work out the short list: what each candidate does, to which users, how sure that is, and which one is recommended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import attrs

from makeway_tune.facts import Facts, value
from makeway_tune.files import Chosen, Site
from makeway_tune.goals import RATES, WAIT, Goals, Limit, Measure
from makeway_tune.log import Array, Group, Log
from makeway_tune.search import Score
from makeway_tune.sure import Drawn, Told, change, told

_USERS = 8
"""Users that are told one by one: those who lose or wait most."""
_GROUPS = 12
"""Partitions, or QOS, that are told one by one."""
_NAMED = 3
STATS = ("median", "p95")


@attrs.frozen(kw_only=True)
class Candidate:
    """A candidate that was replayed over the whole log."""

    name: str
    """A: as configured."""
    chosen: Chosen
    words: tuple[str, ...]
    """Each change in one line."""
    diff: str
    figures: Mapping[Measure, Told]
    changes: Mapping[Measure, Told]
    """Against the site as configured; empty for itself."""
    beyond: tuple[Limit, ...]
    """Limits that it does not keep to."""
    unsure: tuple[Limit, ...]
    """Limits that it keeps to in this log, and not in every week."""
    undone: int
    """Jobs that did not end, or that preemption ended."""
    users: Mapping[str, Mapping[str, float]]
    """User -> mean wait and lost hours a day."""
    won: tuple[str, ...] = ()
    """Who waits or loses less, most first; a sentence each."""
    hurt: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Answer:
    """What is told."""

    candidates: tuple[Candidate, ...]
    goals: Goals
    groups: Mapping[str, tuple[Group, ...]]
    """Kind -> those that are told one by one."""
    weeks: str
    """Of what intervals are: weeks, or what a short log was cut into."""
    recommended: str
    """Name of a candidate; empty: none."""
    reason: str
    impossible: str = ""
    """Why no candidate keeps to the limits; empty: one does."""


# ------------------------------------------------------------------------------------- figures
def score_of(goals: Goals, log: Log, facts: Facts, today: Facts, of: Array, undone: int) -> Score:
    """Return what a candidate came to over some of the jobs.

    :param of: which jobs.
    :param undone: how many more jobs than as configured it leaves undone.
    """

    def figure(measure: Measure, whose: Facts) -> float:
        found = value(measure, log, whose, of)
        return 0.0 if math.isnan(found) else found

    return Score(
        values=tuple(figure(each, facts) for each in goals.minimise),
        beyond=(
            *(
                _excess(each, figure(each.measure, facts), figure(each.measure, today))
                for each in goals.limits
            ),
            float(undone),
        ),
    )


def _excess(limit: Limit, here: float, today: float) -> float:
    """Return by what share a limit is exceeded."""
    bound = limit.bound(today)
    return (here - bound) / bound if bound > 0 else here


def groups_of(log: Log, runs: Sequence[Facts]) -> dict[str, tuple[Group, ...]]:
    """Return which partitions, QOS and users are told one by one."""
    found = {}
    for kind in ("partition", "qos"):
        names = log.names(kind)[:_GROUPS]
        if kind == "partition" or len(names) > 1:
            found[kind] = tuple(Group(kind, name) for name in sorted(names))
    heavy = {name: float(runs[0].lost[log.mask(Group("user", name))].sum()) for name in log.names("user")}
    order = sorted(heavy, key=lambda name: (-heavy[name], name))[:_USERS]
    found["user"] = tuple(Group("user", name) for name in order)
    return {kind: each for kind, each in found.items() if each}


def measures_of(goals: Goals, groups: Mapping[str, Sequence[Group]]) -> list[Measure]:
    """Return all figures that are told of a candidate."""
    found = [*goals.minimise, *(each.measure for each in goals.limits)]
    for group in (None, *(each for listed in groups.values() for each in listed)):
        found += [Measure(what=WAIT, whose=group, stat=stat) for stat in STATS]
        found += [Measure(what=what, whose=group) for what in RATES]
    return list(dict.fromkeys(found))


def candidate(
    name: str,
    chosen: Chosen,
    site: Site,
    runs: Sequence[Facts],
    today: Sequence[Facts],
    undone: int,
    log: Log,
    goals: Goals,
    measures: Sequence[Measure],
    drawings: Drawn,
) -> Candidate:
    """Work out what a candidate does.

    :param runs: its replays, the undisturbed one first; `today`: those of the site as configured.
    """
    figures = {each: told(each, log, runs, drawings) for each in measures}
    before = {each.measure: value(each.measure, log, today[0]) for each in goals.limits}
    beyond = [
        each for each in goals.limits if figures[each.measure].value > each.bound(before[each.measure]) + 1e-9
    ]
    unsure = [
        each
        for each in goals.limits
        if each not in beyond and not figures[each.measure].high <= each.bound(before[each.measure]) + 1e-9
    ]
    changes = {} if not chosen else {each: change(each, log, today, runs, drawings) for each in measures}
    users = _users(log, runs[0])
    won, hurt = _who(users, _users(log, today[0])) if chosen else ((), ())
    return Candidate(
        name=name,
        chosen=chosen,
        words=tuple(site.words(chosen)),
        diff=site.diff(chosen),
        figures=figures,
        changes=changes,
        beyond=tuple(beyond),
        unsure=tuple(unsure),
        undone=undone,
        users=users,
        won=won,
        hurt=hurt,
    )


def _users(log: Log, facts: Facts) -> dict[str, dict[str, float]]:
    found = {}
    for name in log.names("user"):
        group = Group("user", name)
        wait = value(Measure(what=WAIT, whose=group, stat="mean"), log, facts)
        lost = value(Measure(what="lost-hours", whose=group), log, facts)
        found[name] = {"mean_wait": 0.0 if math.isnan(wait) else wait, "lost_hours_a_day": lost}
    return found


def _who(
    after: Mapping[str, Mapping[str, float]], before: Mapping[str, Mapping[str, float]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return who wins most and who loses most, by waits and by lost hours."""
    won: list[str] = []
    hurt: list[str] = []
    for key, least in (("mean_wait", 60.0), ("lost_hours_a_day", 0.05)):
        moved = sorted((after[name][key] - before[name][key], name) for name in after)
        won += [f"user {name}: {_amount(key, -by)} less" for by, name in moved[:_NAMED] if by <= -least]
        hurt += [f"user {name}: {_amount(key, by)} more" for by, name in moved[::-1][:_NAMED] if by >= least]
    return tuple(won), tuple(hurt)


def _amount(key: str, by: float) -> str:
    if key == "mean_wait":
        return f"{by / 60:,.0f} min of waiting a job"
    return f"{by:,.1f} core-hours lost a day"


# --------------------------------------------------------------------------------- the answer
def answer(
    candidates: Sequence[Candidate], goals: Goals, groups: Mapping[str, tuple[Group, ...]], weeks: str
) -> Answer:
    """Choose which candidate is recommended, if any is.

    :param candidates: the site as configured first.
    :param weeks: of what intervals are.
    """
    today = candidates[0]
    able = [each for each in candidates if not each.beyond and each.undone <= today.undone]
    made = Answer(
        candidates=tuple(candidates), goals=goals, groups=groups, weeks=weeks, recommended="", reason=""
    )
    if not able:
        return attrs.evolve(made, impossible=_impossible(candidates, goals))
    better = [each for each in able if each.chosen and (today.beyond or _better(each, goals))]
    if not better:
        return attrs.evolve(made, reason=_nothing([each for each in able if each.chosen], goals))
    best = min(better, key=lambda each: (_gain(each, goals), len(each.chosen), each.name))
    return attrs.evolve(made, recommended=best.name, reason=_reason(best, today, made))


def _gain(each: Candidate, goals: Goals) -> float:
    """Return the sum of relative changes of what is to become less; below 0 is better."""
    return math.fsum(_relative(each, measure) for measure in goals.minimise)


def _relative(each: Candidate, measure: Measure) -> float:
    moved, here = each.changes[measure].value, each.figures[measure].value
    before = here - moved
    if math.isnan(moved):
        return 0.0
    return moved / before if before > 0 else math.copysign(1.0, moved) if moved else 0.0


def _better(each: Candidate, goals: Goals) -> bool:
    """Whether it is better beyond the noise in something, and on the whole."""
    changes = [each.changes[measure] for measure in goals.minimise]
    return any(change.differs and change.value < 0 for change in changes) and _gain(each, goals) < 0


def _reason(best: Candidate, today: Candidate, found: Answer) -> str:
    goals = found.goals
    said = list(_moves(best, goals))
    if today.beyond:
        said.append(f"as configured {', '.join(each.said for each in today.beyond)} does not hold")
    if goals.limits and not best.unsure:
        said.append(f"all limits hold in 9 of 10 {found.weeks}")
    elif best.unsure:
        listed = ", ".join(each.said for each in best.unsure)
        said.append(f"all limits hold in this log; not in 9 of 10 {found.weeks}: {listed}")
    return "; ".join(said)


def _moves(best: Candidate, goals: Goals) -> Iterator[str]:
    for measure in goals.minimise:
        told, moved = best.figures[measure], best.changes[measure]
        before = told.value - moved.value
        how = f"{measure} {measure.show(before)} -> {measure.show(told.value)}"
        yield how if moved.differs else f"{how}, within the noise"


def _nothing(others: Sequence[Candidate], goals: Goals) -> str:
    within = " within your limits" if goals.limits else ""
    text = f"nothing better was found{within}"
    if any(_gain(each, goals) < 0 for each in others):
        text += ": what the others gain is within the noise"
    return text


def _impossible(candidates: Sequence[Candidate], goals: Goals) -> str:
    for limit in goals.limits:
        if all(limit in each.beyond for each in candidates):
            best = min(candidates, key=lambda each: each.figures[limit.measure].value)
            show = limit.measure.show
            return (
                f"no setting that was tried keeps {limit.said}: "
                f"{best.name} comes nearest with {show(best.figures[limit.measure].value)}"
            )
    return "no setting that was tried keeps all limits at once"
