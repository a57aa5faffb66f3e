"""Show the answer in the terminal, and as data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from makeway.obstacle import counted
from makeway_app.report import Beside, signed
from makeway_report.interval import between
from makeway_tune.answer import STATS, Answer, Candidate
from makeway_tune.goals import RATES, WAIT, Measure
from makeway_tune.log import WEEK, Group, Log
from makeway_tune.sure import Told

NOUNS = {"partition": "partition", "qos": "QOS", "user": "user"}
_FEW = "too few weeks"
_SHORT = {
    "lost-hours": "core-hours lost a day",
    "preempted": "preemptions a day",
    "hit-twice": "hit twice a day",
}


def tables(found: Answer) -> Iterator[RenderableType]:
    """Yield the short list, what each does to which users, and what is recommended."""
    yield Text("\n".join(f"{each.name}  {changed(each)}" for each in found.candidates))
    names = [each.name for each in found.candidates]
    yield Beside(("wanted",), names, [*_goals(found)])
    if len(found.candidates) > 1:
        yield Beside(("change against A",), names[1:], [*_changes(found)], first=0)
    for kind, groups in found.groups.items():
        yield Beside((NOUNS[kind], ""), names, [*_groups(found, groups)])
    for each in found.candidates[1:]:
        if each.won or each.hurt:
            yield Text("\n".join(_who(each)))
    yield Text(verdict(found))
    best = recommended(found)
    if best is not None:
        yield Text(best.diff.rstrip("\n"))


def changed(each: Candidate) -> str:
    """Return what a candidate changes, in one line."""
    if not each.chosen:
        return "as configured"
    return "; ".join(each.words)


def verdict(found: Answer) -> str:
    """Return what is recommended, as a sentence."""
    if found.impossible:
        return found.impossible
    if not found.recommended:
        return found.reason
    return f"recommended: {found.recommended}, for {found.reason}"


def recommended(found: Answer) -> Candidate | None:
    """Return the candidate that is recommended."""
    return next((each for each in found.candidates if each.name == found.recommended), None)


def _who(each: Candidate) -> Iterator[str]:
    for words, listed in (("who wins", each.won), ("who loses", each.hurt)):
        yield f"{each.name}, {words}: {'; '.join(listed) if listed else 'no user by much'}"


def _goals(found: Answer) -> Iterator[tuple[tuple[str], list[str]]]:
    for measure in found.goals.minimise:
        yield (f"less {measure}",), [shown(measure, each.figures[measure]) for each in found.candidates]
    for limit in found.goals.limits:
        values = []
        for each in found.candidates:
            kept = "broken" if limit in each.beyond else "not sure" if limit in each.unsure else "kept"
            values.append(f"{limit.measure.show(each.figures[limit.measure].value)}, {kept}")
        yield (limit.said,), values


def _changes(found: Answer) -> Iterator[tuple[tuple[str], list[str]]]:
    for measure in found.goals.minimise:
        yield (
            (str(measure),),
            [moved(measure, each.changes[measure]) for each in found.candidates if each.chosen],
        )


def shown(measure: Measure, told: Told) -> str:
    """Return a figure with its interval."""
    if math.isnan(told.value):
        return "-"
    if math.isnan(told.high):
        return f"{measure.show(told.value)} ({_FEW})"
    return f"{measure.show(told.value)} ({measure.show(told.low)} to {measure.show(told.high)})"


def moved(measure: Measure, told: Told, *, alone: bool = False) -> str:
    """Return a change with its interval, and whether it is within the noise.

    :param alone: without these.
    """
    if math.isnan(told.value):
        return "-"
    if told.low == told.value == told.high == 0:
        return "none"
    value = signed(measure.show, told.value)
    if alone:
        return value
    ends = _FEW if math.isnan(told.high) else between(measure.show, told.low, told.high, differs=True)
    return f"{value} ({ends}){'' if told.differs else ', noise'}"


def _groups(found: Answer, groups: Sequence[Group]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    for group in groups:
        named = group.name
        for words, measure in measures_of_group(group):
            told = [each.figures[measure] for each in found.candidates]
            if measure.what == WAIT or any(each.value for each in told):
                yield (
                    (named, words),
                    ["-" if math.isnan(each.value) else measure.show(each.value) for each in told],
                )
                named = ""


def words_of(what: str) -> str:
    """Return what a measure that adds up is called in tables."""
    return _SHORT[what]


def measures_of_group(group: Group) -> Iterator[tuple[str, Measure]]:
    """Yield what is told of a group, with what it is called."""
    for stat in STATS:
        yield f"{stat} wait", Measure(what=WAIT, whose=group, stat=stat)
    for what in RATES:
        yield _SHORT[what], Measure(what=what, whose=group)


# --------------------------------------------------------------------------------------- data
def as_dict(found: Answer, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of it in values that JSON has."""
    return {
        "version": 1,
        **about,
        "minimise": [str(each) for each in found.goals.minimise],
        "limits": [each.said for each in found.goals.limits],
        "recommended": found.recommended or None,
        "reason": verdict(found),
        "candidates": [_candidate(each) for each in found.candidates],
    }


def _candidate(each: Candidate) -> dict[str, Any]:
    return {
        "name": each.name,
        "changes": dict(each.chosen),
        "diff": each.diff,
        "jobs_undone": each.undone,
        "limits_broken": [limit.said for limit in each.beyond],
        "limits_not_sure": [limit.said for limit in each.unsure],
        "figures": [
            {
                **measure_dict(measure),
                **_told(told),
                **({"change": _told(each.changes[measure])} if each.changes else {}),
            }
            for measure, told in each.figures.items()
        ],
        "users": {name: dict(values) for name, values in each.users.items()},
        "wins": list(each.won),
        "loses": list(each.hurt),
    }


def measure_dict(measure: Measure) -> dict[str, Any]:
    """Return which measure it is, in values that JSON has."""
    of = None if measure.whose is None else {"kind": measure.whose.kind, "name": measure.whose.name}
    return {"measure": measure.what, "stat": measure.stat or None, "of": of}


def _told(told: Told) -> dict[str, Any]:
    def plain(value: float) -> float | None:
        return None if math.isnan(value) else round(value, 6)

    return {
        "value": plain(told.value),
        "low": plain(told.low),
        "high": plain(told.high),
    }


def heading(log: Log, tried: int, days: int, jobs: int, whole: int) -> Text:
    """Return what was done.

    :param days: parts of the log on which candidates were tried, which have so many jobs.
    :param whole: candidates that were replayed over all of it.
    """
    stretch = "week" if days * log.length == WEEK else log.unit if days == 1 else counted(days, log.unit)
    return Text(
        f"{counted(len(log.jobs), 'job')} over {log.days:,.1f} days; {counted(tried, 'candidate')} on the "
        f"{counted(jobs, 'job')} of the busiest {stretch}, {counted(whole, 'finalist')} on all"
    )
