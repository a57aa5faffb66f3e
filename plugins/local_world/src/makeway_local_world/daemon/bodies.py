"""Read what people send: bodies of JSON, and queries. Each has a class that says its types and its limits.

Before a body is parsed its brackets, commas and texts are counted, without a look at what they hold: what is too deep
or has too many parts would cost seconds, whatever it is.
"""

from __future__ import annotations

import json
import math
import re
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

from makeway.errors import ConfigError, Problem
from makeway.plain import shown
from makeway.settings import structure
from makeway_local_world.daemon.verbs import LONGEST_UPDATE
from makeway_local_world.limits import Items, Number, Program, Table, Text, limited, problems
from makeway_local_world.requests import SOURCE, Request, check

T = TypeVar("T")
LARGEST = 8 << 20
"""Bytes of the largest body: a script, a command and an environment."""
DEEPEST = 8
"""Levels of brackets in a body."""
MOST_PARTS = 50_000
"""Values and names in a body."""
MOST_DIGITS = 400
"""Digits of a whole number, before it is looked at whether it is too large."""
_LETTERS = bytes(set(range(256)) - set(b"[]{}"))
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_USER = Text(255)


@attrs.frozen(kw_only=True)
class OrderBody:
    """What is to be done to jobs."""

    verb: str = limited("", Text(40))
    jobs: tuple[str, ...] = limited((), Items(10_000, Text(100)), "Ids of jobs and of arrays.")
    user: str | None = limited(None, _USER, "All jobs of this user.")
    all: bool = limited(False, None, "All jobs that the caller may change.")
    partition: str | None = limited(None, Text(255), "All jobs of this partition that the caller may change.")
    name: str | None = limited(None, Text(255), "All jobs of this name.")
    state: str | None = limited(None, Text(40), "All jobs in this state: pending, running, suspended.")
    value: str = limited(
        "", Text(40), "With signal: its name; with start: ignorepolicies, ignorersv, or both."
    )
    changes: Mapping[str, str] = limited(
        dict,
        Table(10, Text(40), Text(1000)),
        "With update: begin (Unix time), dependency, gpus, mem (MB), name, nice, partition, priority, qos, time (s).",
    )
    command: tuple[str, ...] = limited(
        (), Items(1000, Program(LONGEST_UPDATE)), "With update, instead of changes: what the job runs."
    )


@attrs.frozen(kw_only=True)
class DrainBody:
    """Why nothing is to start."""

    reason: str = limited("", Text(500))


@attrs.frozen(kw_only=True)
class BookingBody:
    """What is to be booked, and for when."""

    cpus: int = limited(
        0, Number(0, 1e6), "With 0 the share of the CPUs that belongs to the GPUs, one at least."
    )
    gpus: int = limited(0, Number(0, 1e6))
    memory_mb: int = limited(0, Number(0, 1e12))
    start: float = limited(0.0, Number(0, 1e11), "Unix time.")
    end: float = limited(0.0, Number(0, 1e11), "Unix time.")


@attrs.frozen(kw_only=True)
class ReloadBody:
    """Another configuration."""

    config: str = limited("", Program(4 << 20), "TOML")
    source: str = limited("reload", Text(4096))


@attrs.frozen(kw_only=True)
class PageBody:
    """Which page is wanted."""

    control: bool = limited(False, None)
    port: int = limited(0, Number(0, 65535))


@attrs.frozen(kw_only=True)
class QueueQuery:
    """Whose jobs are wanted."""

    user: str | None = limited(None, _USER, "Only jobs of this user.")


@attrs.frozen(kw_only=True)
class LastQuery:
    """Which of one's jobs count."""

    terminal: int = limited(0, Number(0, 1), "1: only jobs that have a terminal, and have not ended.")


@attrs.frozen(kw_only=True)
class WaitQuery:
    """How long to wait."""

    longest: float = limited(55.0, Number(0, 1e9), "Seconds after which it is answered anyway; at most 55.")


@attrs.frozen(kw_only=True)
class RequestQuery:
    """Which tasks are wanted."""

    failed: int = limited(0, Number(0, 1), "1: of an array only the tasks that failed.")


@attrs.frozen(kw_only=True)
class EventsQuery:
    """Which events are wanted."""

    after: int | None = limited(
        None,
        Number(-1, 2**62),
        "Begin after this step; else with what happens from now on. Last-Event-ID comes before it.",
    )
    follow: int = limited(1, Number(0, 1), "0: end with what has happened so far.")


@attrs.frozen(kw_only=True)
class HistoryQuery:
    """Which jobs that have ended are wanted."""

    since: float = limited(0.0, Number(-1e12, 1e12), "Unix time.")
    until: float = limited(1e12, Number(-1e12, 1e12), "Unix time.")
    user: str | None = limited(None, _USER, "Only jobs of this user.")
    limit: int = limited(1000, Number(1, 1_000_000), "Only the last so many.")


# ------------------------------------------------------------------------------------- reading
def request_of(body: bytes, *, runs: bool = True) -> Request:
    """Return the submission that a body holds.

    :param runs: whether it has to name something to run.
    :raises ValueError: it is no JSON object.
    :raises ConfigError: with all that is wrong with it.
    """
    made = structure(parsed(body), Request, SOURCE)
    found = check(made, runs=runs)
    if found:
        raise ConfigError(SOURCE, found)
    return made


def body_of(body: bytes, cls: type[T]) -> T:
    """Return what a body holds.

    :raises ValueError: it is no JSON object.
    :raises ConfigError: with all that is wrong with it.
    """
    return _within(structure(parsed(body), cls, "request"), "request")


def query_of(pairs: Iterable[tuple[str, str]], cls: type[T]) -> T:
    """Return what a query asks for.

    :raises ConfigError: with all that is wrong with it.
    """
    hints = typing.get_type_hints(cls)
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in given:
            raise ConfigError("query", [Problem(name[:40], "it stands there twice")])
        given[name] = _value(text, hints.get(name))
    return _within(structure(given, cls, "query"), "query")


def _within(made: T, source: str) -> T:
    found = problems(made)
    if found:
        raise ConfigError(source, found)
    return made


def _value(text: str, hint: Any) -> Any:
    """Return the number that a text of a query is, where one is wanted."""
    options = (hint, *typing.get_args(hint))
    if int in options and _WHOLE.fullmatch(text):
        return int(text)
    if float in options:
        try:
            number = float(text)
        except ValueError:
            return text
        return number if math.isfinite(number) else text
    return text


# --------------------------------------------------------------------------------------- JSON
def parsed(body: bytes) -> dict[str, Any]:
    """Return the object that a body is.

    :raises ValueError: it is none, or has too many parts or levels.
    """
    _check_shape(body)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise ValueError("the request is not valid JSON: it is no UTF-8") from None
    try:
        found = json.loads(
            text or "{}", object_pairs_hook=_table, parse_constant=_no_number, parse_int=_whole
        )
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, _Unfit) else "the request is not valid JSON"
        raise ValueError(why) from None
    if not isinstance(found, dict):
        raise ValueError("the request is no JSON object")
    return found


class _Unfit(ValueError):  # noqa: N818  # an answer, not a fault
    """JSON that is taken nowhere."""


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _Unfit(f"the request names {shown(twice)} twice")
    return found


def _no_number(word: str) -> Any:
    raise _Unfit(f"got {word}; allowed: numbers")


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise _Unfit(f"got a number of {len(digits):,} digits; allowed: {MOST_DIGITS}")
    return int(digits)


def _check_shape(body: bytes) -> None:
    """Refuse what has too many parts or levels; all of it without a step for each letter."""
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")  # each quote that is left begins or ends a text
    if bare.count(b'"') > 2 * MOST_PARTS:
        raise ValueError(f"the request has too many parts; allowed: {MOST_PARTS:,}")
    outside = b" ".join(bare.split(b'"')[::2])
    brackets = outside.translate(None, _LETTERS)
    if outside.count(b",") + len(brackets) > MOST_PARTS:
        raise ValueError(f"the request has too many parts; allowed: {MOST_PARTS:,}")
    depth = deepest = 0
    for letter in brackets:
        depth += 1 if letter in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise ValueError(f"the request has {deepest:,} levels of brackets; allowed: {DEEPEST}")
