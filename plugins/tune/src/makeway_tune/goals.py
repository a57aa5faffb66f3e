"""Read what is wanted: ``lost-hours``, ``wait[urgent].p95<=10min``, ``preempted[gold]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import attrs

from makeway.errors import ConfigError, Problem, nearest
from makeway.plain import seconds_of
from makeway_app.report import clock
from makeway_tune.log import KINDS, Group, Log

RATES: Mapping[str, str] = {
    "lost-hours": "core-hours lost a day",
    "preempted": "preemptions a day",
    "hit-twice": "jobs hit twice a day",
}
"""Measure that adds up -> what it is called in tables."""
WAIT = "wait"
MEASURES = (WAIT, *RATES)
_SHOWN = 8
_STATS = ("mean", "median", "max")
_GOAL = re.compile(r"(?P<what>[\w-]+)(?:\[(?P<whose>[^\]]*)\])?(?:\.(?P<stat>\w+))?")
_LIMIT = re.compile(r"(?P<goal>.*?)\s*(?P<sign><=|>=|==|<|>|=)\s*(?P<most>.*)")
_PERCENTILE = re.compile(r"p(\d{1,2})")


@attrs.frozen(kw_only=True)
class Measure:
    """One figure of one group of jobs; less is better."""

    what: str
    whose: Group | None = None
    """None: all jobs."""
    stat: str = ""
    """Of a wait: mean, median, max or a percentile such as p95."""

    def __str__(self) -> str:
        """Return it as a goal is written."""
        whose = f"[{self.whose.name}]" if self.whose is not None else ""
        return f"{self.what}{whose}{f'.{self.stat}' if self.stat else ''}"

    @property
    def share(self) -> float | None:
        """Which quantile of the waits it is; None: it is none."""
        found = _PERCENTILE.fullmatch(self.stat)
        return int(found[1]) / 100 if found else {"median": 0.5, "max": 1.0}.get(self.stat)

    @property
    def show(self) -> Callable[[float], str]:
        """Return what writes a value for people."""
        return clock if self.what == WAIT else _number


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


@attrs.frozen(kw_only=True)
class Limit:
    """What a candidate must keep to."""

    measure: Measure
    most: float
    relative: bool = False
    """Whether `most` is a share of what it is as configured."""
    said: str = ""
    """As it was written."""

    def bound(self, today: float) -> float:
        """Return the most that is allowed, where it is `today` as configured."""
        return self.most * today if self.relative else self.most


@attrs.frozen(kw_only=True)
class Goals:
    """All that is wanted."""

    minimise: tuple[Measure, ...]
    limits: tuple[Limit, ...] = ()


def goals_of(minimise: Sequence[str], keep: Sequence[str], never: Sequence[str], log: Log) -> Goals:
    """Read the options of the same names; without ``--minimise`` it is lost hours and the mean wait.

    :raises ConfigError: one cannot be read, names jobs that are not in the log, or can never be reached.
    """
    wanted = [measure_of(text, "--minimise", log) for text in (minimise or ("lost-hours", "wait"))]
    for text, each in zip(minimise, wanted, strict=False):
        if wanted.count(each) > 1:
            raise _wrong("--minimise", text, "it is given twice")
    limits = [_limit(text, log) for text in keep]
    for text in never:
        measure = measure_of(text, "--never", log)
        if measure.what == WAIT:
            allowed = ", ".join(RATES)
            raise _wrong("--never", text, f"jobs may always wait a moment; allowed: {allowed}")
        limits.append(Limit(measure=measure, most=0.0, said=f"never {text.strip()}"))
    return Goals(minimise=tuple(wanted), limits=tuple(limits))


def measure_of(goal: str, option: str, log: Log, text: str | None = None) -> Measure:
    """Read one measure, such as ``wait[urgent].p95``.

    :param text: what was written, of which it is a part; None: it is all.
    :raises ConfigError: it cannot be read, or names jobs that are not in the log.
    """
    text = goal if text is None else text
    found = _GOAL.fullmatch(goal.strip())
    if found is None or found["what"] not in MEASURES:
        what = found["what"] if found else goal.strip()
        allowed = f"allowed: {', '.join(MEASURES)}, with [GROUP] behind it"
        raise _wrong(option, text, f"{what!r} is no measure; {allowed}{nearest(what, MEASURES)}")
    stat = found["stat"] or ""
    if found["what"] != WAIT and stat:
        raise _wrong(option, text, f"{found['what']} has no .{stat}; only wait has one")
    if found["what"] == WAIT:
        stat = stat or "mean"
        if stat not in _STATS and not _PERCENTILE.fullmatch(stat):
            allowed = ", ".join((*_STATS, "p95"))
            raise _wrong(option, text, f"got .{stat}; allowed: {allowed}{nearest(stat, (*_STATS, 'p95'))}")
    return Measure(what=found["what"], whose=_group(found["whose"], option, text, log), stat=stat)


def _group(name: str | None, option: str, text: str, log: Log) -> Group | None:
    if name is None:
        return None
    kind, equals, rest = name.partition("=")
    kinds = (kind,) if equals and kind in KINDS else KINDS
    wanted = rest if equals and kind in KINDS else name
    for each in kinds:
        if wanted in log.names(each):
            return Group(each, wanted)
    known = [known for each in kinds for known in log.names(each)]
    what = kinds[0] if len(kinds) == 1 else "partition, QOS, account or user"
    shown = ", ".join(sorted(log.names("partition"))[:_SHOWN])
    said = f"no {what} {wanted!r} has jobs in the log; partitions: {shown}{nearest(wanted, known)}"
    raise _wrong(option, text, said)


def _limit(text: str, log: Log) -> Limit:
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        raise _wrong("--keep", text, "allowed: MEASURE<=VALUE, such as 'wait[urgent].p95<=10min'")
    if found["sign"] not in ("<=", "<"):
        raise _wrong(
            "--keep", text, f"got {found['sign']!r}; allowed: <=, for less of each measure is better"
        )
    measure = measure_of(found["goal"], "--keep", log, text)
    most = found["most"].strip()
    relative = most.endswith("%")
    value = _value(most, measure, relative=relative)
    if value is None:
        example = "10min, 2h or 90% of today's" if measure.what == WAIT else "a number, or 90% of today's"
        raise _wrong("--keep", text, f"got {most!r}; allowed: {example}")
    if value < 0 or (value == 0 and found["sign"] == "<"):
        raise _wrong("--keep", text, f"it can never be reached: {measure.what} is never below 0")
    return Limit(measure=measure, most=value, relative=relative, said=text.strip())


def _value(text: str, measure: Measure, *, relative: bool) -> float | None:
    bare = text.removesuffix("%").strip() if relative else text
    try:
        number = float(bare)
    except ValueError:
        if relative or measure.what != WAIT:
            return None
        sign = -1.0 if bare.startswith("-") else 1.0
        length = seconds_of(bare.lstrip("-"))
        return None if length is None else sign * float(length)
    if number != number or number in (float("inf"), float("-inf")):
        return None
    return number / 100 if relative else number


def _wrong(option: str, text: str, message: str) -> ConfigError:
    return ConfigError(f"{option} {text}", [Problem("", message)])
