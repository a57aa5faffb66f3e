"""Check tables of jobs: all that is wrong at once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from makeway.arrays import parse_array
from makeway.dependencies import NOT_OK, OK, SINGLE, TASK, dependency
from makeway.errors import ConfigError, Problem, nearest
from makeway.features import unreadable
from makeway.model import Exclusive
from makeway.obstacle import counted
from makeway.readers.lines import shown
from makeway.readers.seen import Seen
from makeway.settings import structure
from makeway_app.readers.native.building import hosts_of, words_of
from makeway_app.readers.native.places import Place
from makeway_app.readers.native.tables import (
    COUNTS,
    PLAIN_TEXT,
    RANGES,
    SAID_TWICE,
    TIME,
    ComponentTable,
    JobTable,
)

_ON_SIGNAL = ("die", "exit", "ignore")
_ON_TERM = ("default", "exit", "ignore")
_SIGNAL = re.compile(r"(?!SIG)[A-Z][A-Z0-9+-]{1,10}")


def checked_table(place: Place, source: str, problems: list[Problem]) -> JobTable | None:
    """Structure and check one job; None: it has problems."""
    table, found = None, list[Problem]()
    try:
        table = structure(place.data, JobTable, source, place.path)
    except ConfigError as error:
        found.extend(error.problems)
    except RecursionError:
        found.append(Problem(place.path, "nested too deeply"))
    else:
        found.extend(_problems(table, place.path))
        for at, part in enumerate(table.component):
            found.extend(_problems(part, f"{place.path}.component[{at}]"))
    problems.extend(_in_order(found, place))
    return None if found else table


def _in_order(problems: list[Problem], place: Place) -> list[Problem]:
    """Sort by the place of the key that each is about."""
    keys = [*place.data]

    def position(problem: Problem) -> int:
        key = re.split(r"[.\[]", problem.where.removeprefix(f"{place.path}."))[0]
        return keys.index(key) if key in keys else len(keys)

    return sorted(problems, key=position)


def _problems(table: ComponentTable, path: str) -> Iterator[Problem]:
    values = attrs.asdict(table, recurse=False)
    for key, value in values.items():
        message = _wrong(key, value)
        if message:
            yield Problem(f"{path}.{key}", message)
    yield from _contradictions(table, path)
    for key in ("required_nodes", "excluded_nodes"):
        try:
            hosts_of(values[key])
        except ValueError as error:
            yield Problem(f"{path}.{key}", str(error))
    if isinstance(table, JobTable) and table.array is not None:
        try:
            parse_array(table.array)
        except ValueError as error:
            yield Problem(f"{path}.array", str(error))
        if table.component:
            yield Problem(f"{path}.array", "a heterogeneous job cannot be an array")
    if isinstance(table, JobTable) and table.signal is not None:
        message = _out_of_range(table.signal.lead, *TIME)
        if message:
            yield Problem(f"{path}.signal.lead", message)


def _wrong(key: str, value: Any) -> str:
    """Say what is wrong with a value of the right type; empty: nothing."""
    if value is None:
        return ""
    if key in RANGES:
        return _out_of_range(value, *RANGES[key])
    if key in COUNTS:
        wrong = {name: _out_of_range(count, 0, 2**50) for name, count in value.items()}
        return next((f"{shown(name)}: {message}" for name, message in wrong.items() if message), "")
    if key == "on_term" and value not in _ON_TERM:
        return f"got {shown(value)}; allowed: {', '.join(_ON_TERM)}{nearest(value, _ON_TERM)}"
    if key == "on_signal":
        return next(filter(None, (_wrong_reaction(name, reaction) for name, reaction in value.items())), "")
    if key == "exclusive" and isinstance(value, str) and value not in [e.value for e in Exclusive]:
        options = ["true", "false", *(one.value for one in Exclusive)]
        return f"got {shown(value)}; allowed: {', '.join(options)}{nearest(value, options)}"
    if key == "features" and (why := unreadable(value)):
        return f"{why}; allowed: such as 'a', 'a&b', '[a|b]', 'a*2'"
    return _unclean(key, value)


def _wrong_reaction(name: str, reaction: str) -> str:
    """Say what is wrong with one entry of `on_signal`; empty: nothing."""
    if name == "TERM":
        return "TERM has a key of its own: on_term"
    if name == "KILL":
        return "KILL always ends a job; allowed: other signals, such as USR1"
    if name == "STOP":
        return "STOP always stops a job; allowed: other signals, such as USR1"
    if not _SIGNAL.fullmatch(name):
        return f"got the signal {shown(name)}; allowed: a name without SIG, such as USR1"
    if reaction not in _ON_SIGNAL:
        return (
            f"{name}: got {shown(reaction)}; allowed: {', '.join(_ON_SIGNAL)}{nearest(reaction, _ON_SIGNAL)}"
        )
    return ""


def _out_of_range(value: float, low: float, high: float) -> str:
    if low <= value <= high:
        return ""
    return f"got {_number(value)}; allowed: {_number(low)} to {_number(high)}"


def _unclean(key: str, value: Any) -> str:
    """Say whether text that ends up in reports holds what a terminal would obey."""
    if key not in PLAIN_TEXT:
        return ""
    texts = value if isinstance(value, tuple) else (str(value),)
    if key == "id" and not texts[0].strip():
        return "empty; allowed: a number or a word"
    bad = [text for text in texts if not text.isprintable()]
    return f"got {ascii(bad[0])[:60]}; allowed: printable characters" if bad else ""


def _number(value: float) -> str:
    if abs(value) < 1e15:
        return str(value).removesuffix(".0")
    return f"{float(value):g}" if abs(value) < 1e300 else "a number without end"


def _contradictions(table: ComponentTable, path: str) -> Iterator[Problem]:
    for one, other in SAID_TWICE:
        if getattr(table, one) is not None and getattr(table, other) is not None:
            yield Problem(f"{path}.{other}", f"{one} says that already; allowed: one of them")
    least, most = table.min_nodes, table.max_nodes
    if least is not None and most is not None and most < least:
        yield Problem(f"{path}.max_nodes", f"got {most}; allowed: {least} (min_nodes) or more")


def ids_of(tables: Sequence[tuple[Place, JobTable]], problems: list[Problem]) -> list[str]:
    """Return the id of each job, given or numbered, and report doubles."""
    given = [None if table.id is None else str(table.id) for _, table in tables]
    taken = {job for job in given if job is not None}
    free = (str(number) for number in itertools.count(1) if str(number) not in taken)
    seen = Seen()
    for (place, _), job in zip(tables, given, strict=True):
        if job is not None and job in seen:
            problems.append(Problem(f"{place.path}.id", f"job {shown(job)} was there before"))
        elif job is not None:
            seen.add(job)
    return [job if job is not None else next(free) for job in given]


def outcomes_not_told(tables: Sequence[tuple[Place, JobTable]], ids: Sequence[str]) -> list[str]:
    """Say of which jobs the workload does not tell how they end, though others wait for that; empty: of none."""
    told = {job for job, (_, table) in zip(ids, tables, strict=True) if "ends_as" in (table.attributes or {})}
    asked = {
        job: None
        for _, table in tables
        for kind, job, _ in map(dependency, words_of(table.depends_on))
        if kind in (OK, NOT_OK, TASK) and job not in told
    }
    if not asked:
        return []
    few = ", ".join(list(asked)[:5]) + (", ..." if len(asked) > 5 else "")
    return [
        f"others wait for how {counted(len(asked), 'job')} ended ({few}), which the workload does not say "
        "(attributes.ends_as): unless the replay ends them otherwise, they count as COMPLETED"
    ]


def check_dependencies(
    tables: Sequence[tuple[Place, JobTable]], ids: Sequence[str], problems: list[Problem]
) -> None:
    """Complain about jobs that are not there, or not yet: so no job waits for itself, or in a circle."""
    came = {job: (table.submit, at) for at, (job, (_, table)) in enumerate(zip(ids, tables, strict=True))}
    for own, (place, table) in zip(ids, tables, strict=True):
        for word in words_of(table.depends_on):
            kind, job, _ = dependency(word)
            if kind == SINGLE:
                continue
            if job not in came:
                message = f"no job {shown(job)}{nearest(job, came)}"
            elif job == own:
                message = f"job {shown(job)} is this one; allowed: jobs submitted before it"
            elif came[job] > came[own]:
                message = f"job {shown(job)} is submitted later; allowed: jobs submitted before this one"
            else:
                continue
            problems.append(Problem(f"{place.path}.depends_on", message))
