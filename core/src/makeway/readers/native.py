"""Read makeway's own workloads: TOML with ``[[job]]`` tables, or JSON lines, one job each.

The keys are those of `JobTable`. A wrong key or value is an error, all of them at once: people
write these files themselves. Jobs without an id are numbered; they come in order of submission.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.arrays import parse_array, tasks_of
from makeway.errors import ConfigError, Problem, nearest, reason_of
from makeway.features import unreadable
from makeway.hostlist import expand_hostlist
from makeway.model import Exclusive, JobSpec, UserSignal
from makeway.readers.api import ReadOptions, Workload
from makeway.readers.lines import read_text, shown
from makeway.readers.seen import Seen
from makeway.settings import structure

_JSON_ARRAY = re.compile(r"\s*\[\s*[{\]]")
_NO_ARRAYS = (
    "a JSON array; allowed: JSON lines, one object per line without brackets around and commas between "
    "(`jq -c '.[]'` makes them), or TOML with [[job]] tables"
)
_NO_SPREAD = "one JSON object over several lines; allowed: one object per line (`jq -c .` makes them)"
_JOB_HEADING = re.compile(r"^[ \t]*\[\[[ \t]*job[ \t]*\]\]", re.MULTILINE)
_JOB_KEY = re.compile(r"^[ \t]*(\[\[[ \t]*job\b|job[ \t]*=)", re.MULTILINE)
_ON_TERM = ("default", "exit", "ignore")
_MOST_PROBLEMS = 100


@attrs.frozen(kw_only=True)
class SignalTable:
    """``signal``: asked for ahead of the job's end."""

    name: str
    lead: float = 60.0
    batch_only: bool = False
    borrows_reservation: bool = False


@attrs.frozen(kw_only=True)
class ComponentTable:
    """``[[job.component]]``: a part of a heterogeneous job; also all that a job may ask for.

    In a component, None means "as in the job itself".
    """

    partition: str | tuple[str, ...] | None = None
    """One or several, any of which will do; None: the default one."""
    qos: str | None = None
    nodes: int | None = None
    """Exactly so many; None: see `min_nodes` and `max_nodes`."""
    min_nodes: int | None = None
    max_nodes: int | None = None
    tasks: int | None = None
    cpus: int | None = None
    """Tasks of one CPU each; None: see `tasks`."""
    cpus_per_task: int | None = None
    tasks_per_node: int | None = None
    tasks_per_socket: int | None = None
    tasks_per_core: int | None = None
    threads_per_core: int | None = None
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    min_cpus_per_node: int | None = None
    distribution: str | None = None
    spread: bool | None = None
    memory_mb: int | None = None
    """On each node; 0: all of it."""
    memory_mb_per_cpu: int | None = None
    gres: Mapping[str, int] | None = None
    """On each node."""
    gres_total: Mapping[str, int] | None = None
    """Over the whole job."""
    licenses: Mapping[str, int] | None = None
    licenses_any: bool | None = None
    exclusive: bool | str | None = None
    """True or ``node``: whole nodes; ``user``, ``mcs``: only shared with jobs of the same."""
    oversubscribe: bool | None = None
    contiguous: bool | None = None
    features: str | None = None
    required_nodes: str | tuple[str, ...] | None = None
    excluded_nodes: str | tuple[str, ...] | None = None
    """Host lists."""
    steps: bool | None = None
    on_term: str | None = None
    """What its processes do on SIGTERM: default (die), exit (end well), ignore."""
    command: str | tuple[str, ...] | None = None
    """Words, or one line for the shell."""


@attrs.frozen(kw_only=True)
class JobTable(ComponentTable):
    """``[[job]]``, or one line of JSON."""

    id: str | int | None = None
    """None: the next number that is free."""
    name: str = ""
    user: str = "user"
    group: str | None = None
    account: str | None = None
    submit: float = 0.0
    """Seconds since the start."""
    begin: float | None = None
    """Not before this instant."""
    run_time: float | None = None
    """Seconds of undisturbed running; None: runs until it ends or is told to."""
    time_limit: float | None = None
    """Seconds; None: the partition's."""
    priority: int | None = None
    """None: by order of submission; 0: held."""
    nice: int = 0
    requeue: bool | None = None
    """None: as the cluster does."""
    batch: bool = True
    signal: SignalTable | None = None
    mcs_label: str | None = None
    reservation: str | None = None
    depends_on: str | tuple[str, ...] = ()
    array: str | None = None
    """Tasks of an array, as ``sbatch --array`` takes them: ``0-15``, ``0-99%4``; each becomes a job."""
    component: tuple[ComponentTable, ...] = ()
    """Parts of a heterogeneous job: they start together; what one leaves out is as in the job."""
    flags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = attrs.field(factory=dict)


_MANY = (1, 10_000_000)
_MEGABYTES = (0, 2**50)
_TIME = (0, 1e11)
_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("nodes", "min_nodes", "max_nodes", "tasks", "cpus", "cpus_per_task"), _MANY),
    **dict.fromkeys(("tasks_per_node", "tasks_per_socket", "tasks_per_core"), _MANY),
    **dict.fromkeys(("threads_per_core", "sockets_per_node", "cores_per_socket"), _MANY),
    **dict.fromkeys(("min_cpus_per_node",), _MANY),
    **dict.fromkeys(("memory_mb", "memory_mb_per_cpu"), _MEGABYTES),
    **dict.fromkeys(("submit", "begin", "run_time", "time_limit"), _TIME),
    "priority": (0, 2**32),
    "nice": (-(2**31), 2**31),
}
_COUNTS = ("gres", "gres_total", "licenses")
_SAID_TWICE = (
    ("nodes", "min_nodes"),
    ("nodes", "max_nodes"),
    ("cpus", "tasks"),
    ("cpus", "cpus_per_task"),
    ("memory_mb", "memory_mb_per_cpu"),
)
"""Pairs of keys that exclude each other."""
_PLAIN_TEXT = (
    *("id", "name", "user", "group", "account", "partition", "qos", "features"),
    *("mcs_label", "reservation"),
)
_OWN = (
    *("partition", "nodes", "min_nodes", "cpus", "memory_mb", "exclusive", "command"),
    *("required_nodes", "excluded_nodes"),
)
"""Keys of a component that JobSpec has under another name or in another form."""
_SAME = tuple(one.name for one in attrs.fields(ComponentTable) if one.name not in _OWN)
"""Keys of a component that JobSpec has as they are; None stands for JobSpec's default."""
_OF_JOB = (
    *("name", "user", "group", "account", "run_time", "time_limit", "priority", "nice"),
    *("requeue", "batch", "mcs_label", "reservation", "attributes"),
)
"""Keys of a job that JobSpec takes as they are."""


@attrs.frozen
class _Place:
    """Where a job was written."""

    path: str
    """For messages: ``job[3]``, or file and line."""
    line: int
    """0: unknown."""
    data: Mapping[str, Any]


class NativeReader:
    """Reads TOML with ``[[job]]`` tables, and JSON lines."""

    name = "native"

    def claims(self, path: Path, head: str) -> bool:
        """Recognise ``[[job]]``, a line that is a JSON object, or ``*.toml``, ``*.jsonl``."""
        if path.suffix in (".toml", ".jsonl", ".ndjson"):
            return True
        if head.lstrip().startswith("{") or _JSON_ARRAY.match(head) is not None:
            return True
        return _JOB_KEY.search(head) is not None

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Read all of `path`.

        :raises ConfigError: with all problems.
        """
        text = read_text(path)
        if not text.strip():
            raise ConfigError(str(path), [Problem("", "the file is empty")])
        if _JSON_ARRAY.match(text) is not None:
            raise ConfigError(str(path), [Problem(f"{path.name}:1", _NO_ARRAYS)])
        as_json = text.lstrip().startswith("{")
        places = (_json_places if as_json else _toml_places)(path, text)
        if options.progress is not None:
            options.progress(path.stat().st_size)
        return _workload(places, path.name, str(path))


def workload_of_tables(tables: Sequence[Mapping[str, Any]], source: str) -> Workload:
    """Read jobs that stand in a configuration (``[[job]]``).

    :raises ConfigError: with all problems.
    """
    places = [_Place(f"job[{at}]", 0, table) for at, table in enumerate(tables)]
    return _workload(places, source, source)


# ----------------------------------------------------------------------------------------- text
def _toml_places(path: Path, text: str) -> list[_Place]:
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ConfigError(str(path), [Problem("", f"not valid TOML: {reason_of(error)}")]) from None
    jobs = data.pop("job", None)
    problems = [
        Problem(key[:60], f"unknown key; allowed: [[job]] tables{nearest(key, ['job'])}") for key in data
    ]
    if not isinstance(jobs, list) or not jobs:
        problems.append(Problem("job", "no jobs; add a [[job]] table"))
        jobs = []
    elif not all(isinstance(job, dict) for job in jobs):
        problems.append(Problem("job", "allowed: tables only, [[job]]"))
    if problems:
        raise ConfigError(str(path), problems)
    lines = _heading_lines(text)
    if len(lines) != len(jobs):
        lines = [0] * len(jobs)
    found = zip(lines, jobs, strict=True)
    return [_Place(f"job[{at}]", line, job) for at, (line, job) in enumerate(found)]


def _heading_lines(text: str) -> list[int]:
    """Return the lines of all ``[[job]]``; tomllib keeps none."""
    lines, line, last = [], 1, 0
    for match in _JOB_HEADING.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        lines.append(line)
    return lines


def _json_places(path: Path, text: str) -> list[_Place]:
    places: list[_Place] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path.name}:{number}"
        try:
            data = json.loads(line, object_pairs_hook=_without_doubles)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(where, f"not a line of JSON: {reason_of(error)}"))
        else:
            if isinstance(data, dict):
                places.append(_Place(where, number, data))
            else:
                problems.append(Problem(where, f"got {shown(line)}; allowed: a JSON object"))
    if problems:
        if _is_json(text):
            problems = [Problem(f"{path.name}:1", _NO_SPREAD)]
        raise ConfigError(str(path), _first(problems))
    return places


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return "\n" in text.strip()


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {shown(double)} is there twice")
    return table


def _first(problems: list[Problem]) -> list[Problem]:
    """Keep so many as can be read."""
    left = len(problems) - _MOST_PROBLEMS
    return [*problems[:_MOST_PROBLEMS], Problem("", f"and {left} more")] if left > 0 else problems


# --------------------------------------------------------------------------------------- checks
def _workload(places: Sequence[_Place], name: str, source: str) -> Workload:
    problems: list[Problem] = []
    tables = [(place, _table(place, source, problems)) for place in places]
    good = [(place, table) for place, table in tables if table is not None]
    ids = _ids(good, problems)
    _check_dependencies(good, ids, problems)
    if problems:
        raise ConfigError(source, _first(problems))
    ordered = sorted(zip(ids, good, strict=True), key=lambda item: item[1][1].submit)
    jobs = (
        spec
        for job, (place, table) in ordered
        for spec in _specs(job, table, f"{name}:{place.line or place.path}")
    )
    return Workload(name=name, jobs=jobs)


def _table(place: _Place, source: str, problems: list[Problem]) -> JobTable | None:
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


def _in_order(problems: list[Problem], place: _Place) -> list[Problem]:
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
            _hosts(values[key])
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
        message = _out_of_range(table.signal.lead, *_TIME)
        if message:
            yield Problem(f"{path}.signal.lead", message)


def _wrong(key: str, value: Any) -> str:
    """Say what is wrong with a value of the right type; empty: nothing."""
    if value is None:
        return ""
    if key in _RANGES:
        return _out_of_range(value, *_RANGES[key])
    if key in _COUNTS:
        wrong = {name: _out_of_range(count, 0, 2**50) for name, count in value.items()}
        return next((f"{shown(name)}: {message}" for name, message in wrong.items() if message), "")
    if key == "on_term" and value not in _ON_TERM:
        return f"got {shown(value)}; allowed: {', '.join(_ON_TERM)}{nearest(value, _ON_TERM)}"
    if key == "exclusive" and isinstance(value, str) and value not in [e.value for e in Exclusive]:
        options = ["true", "false", *(one.value for one in Exclusive)]
        return f"got {shown(value)}; allowed: {', '.join(options)}{nearest(value, options)}"
    if key == "features" and (why := unreadable(value)):
        return f"{why}; allowed: such as 'a', 'a&b', '[a|b]', 'a*2'"
    return _unclean(key, value)


def _out_of_range(value: float, low: float, high: float) -> str:
    if low <= value <= high:
        return ""
    return f"got {_number(value)}; allowed: {_number(low)} to {_number(high)}"


def _unclean(key: str, value: Any) -> str:
    """Say whether text that ends up in reports holds what a terminal would obey."""
    if key not in _PLAIN_TEXT:
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
    for one, other in _SAID_TWICE:
        if getattr(table, one) is not None and getattr(table, other) is not None:
            yield Problem(f"{path}.{other}", f"{one} says that already; allowed: one of them")
    least, most = table.min_nodes, table.max_nodes
    if least is not None and most is not None and most < least:
        yield Problem(f"{path}.max_nodes", f"got {most}; allowed: {least} (min_nodes) or more")


def _ids(tables: Sequence[tuple[_Place, JobTable]], problems: list[Problem]) -> list[str]:
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


def _check_dependencies(
    tables: Sequence[tuple[_Place, JobTable]], ids: Sequence[str], problems: list[Problem]
) -> None:
    """Complain about jobs that are not there, or not yet: so nobody waits for itself, or in a circle."""
    came = {job: (table.submit, at) for at, (job, (_, table)) in enumerate(zip(ids, tables, strict=True))}
    for own, (place, table) in zip(ids, tables, strict=True):
        for job in _words(table.depends_on):
            if job not in came:
                message = f"no job {shown(job)}{nearest(job, came)}"
            elif job == own:
                message = f"job {shown(job)} is this one; allowed: jobs submitted before it"
            elif came[job] > came[own]:
                message = f"job {shown(job)} is submitted later; allowed: jobs submitted before this one"
            else:
                continue
            problems.append(Problem(f"{place.path}.depends_on", message))


# -------------------------------------------------------------------------------------- building
def _specs(job: str, table: JobTable, source: str) -> Iterator[JobSpec]:
    """Yield the job, or its components."""
    common = {key: getattr(table, key) for key in _OF_JOB} | {
        "submit_at": table.submit,
        "begin_at": table.begin,
        "signal": None if table.signal is None else UserSignal(**attrs.asdict(table.signal)),
        "depends_on": _words(table.depends_on),
        "flags": frozenset(table.flags),
        "source": source,
    }
    if not table.component:
        spec = JobSpec(id=job, **common, **_request(table))
        yield from (spec,) if table.array is None else tasks_of(spec, parse_array(table.array))
    for at, part in enumerate(table.component):
        whole = _inherited(part, table)
        yield JobSpec(id=f"{job}+{at}", het_id=job, het_offset=at, **common, **_request(whole))


def _inherited(part: ComponentTable, job: JobTable) -> ComponentTable:
    """Fill in from the job what the component leaves out, never against what it says."""
    own = attrs.asdict(part, recurse=False)
    said = {key for key, value in own.items() if value is not None}
    for group in (_SAID_TWICE[:2], _SAID_TWICE[2:4], _SAID_TWICE[4:]):
        keys = {key for pair in group for key in pair}
        if keys & said:
            said |= keys
    filled = {key: own[key] if key in said else getattr(job, key) for key in own}
    return ComponentTable(**filled)


def _request(table: ComponentTable) -> dict[str, Any]:
    """Return what is asked for, as fields of JobSpec."""
    asked = {key: value for key in _SAME if (value := getattr(table, key)) is not None}
    if table.nodes is not None:
        asked |= {"min_nodes": table.nodes, "max_nodes": table.nodes}
    elif table.min_nodes is not None:
        asked["min_nodes"] = table.min_nodes
    if table.cpus is not None:
        asked["tasks"] = table.cpus
    if table.memory_mb is not None:
        asked["memory_mb_per_node"] = table.memory_mb
    command = table.command
    return asked | {
        "partitions": _words(table.partition),
        "exclusive": _exclusive(table.exclusive),
        "required_nodes": _hosts(table.required_nodes),
        "excluded_nodes": _hosts(table.excluded_nodes),
        "command": ("/bin/sh", "-c", command) if isinstance(command, str) else command or (),
    }


def _exclusive(value: bool | str | None) -> Exclusive | None:
    if isinstance(value, str):
        return Exclusive(value)
    return Exclusive.NODE if value else None


def _words(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return a list; text is split at commas."""
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(part.strip() for part in parts if part.strip())


def _hosts(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the hosts of one host list or several.

    :raises ValueError: one is no host list.
    """
    lists = (value,) if isinstance(value, str) else value or ()
    return tuple(dict.fromkeys(host for text in lists for host in expand_hostlist(text)))
