"""Find where each job was written: in TOML by its heading, in JSON by its line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.bounds import toml_of
from makeway.errors import ConfigError, Problem, nearest, reason_of
from makeway.readers.lines import shown

JSON_ARRAY = re.compile(r"\s*\[\s*[{\]]")
_NO_SPREAD = "one JSON object over several lines; allowed: one object per line (`jq -c .` makes them)"
_JOB_HEADING = re.compile(r"^[ \t]*\[\[[ \t]*job[ \t]*\]\]", re.MULTILINE)
_MOST_PROBLEMS = 100


@attrs.frozen
class Place:
    """Where a job was written."""

    path: str
    """For messages: ``job[3]``, or file and line."""
    line: int
    """0: unknown."""
    data: Mapping[str, Any]


def toml_places(path: Path, text: str) -> list[Place]:
    data = toml_of(text, str(path))
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
    return [Place(f"job[{at}]", line, job) for at, (line, job) in enumerate(found)]


def _heading_lines(text: str) -> list[int]:
    """Return the lines of all ``[[job]]``; tomllib keeps none."""
    lines, line, last = [], 1, 0
    for match in _JOB_HEADING.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        lines.append(line)
    return lines


def json_places(path: Path, text: str) -> list[Place]:
    places: list[Place] = []
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
                places.append(Place(where, number, data))
            else:
                problems.append(Problem(where, f"got {shown(line)}; allowed: a JSON object"))
    if problems:
        if _is_json(text):
            problems = [Problem(f"{path.name}:1", _NO_SPREAD)]
        raise ConfigError(str(path), most_of(problems))
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


def most_of(problems: list[Problem]) -> list[Problem]:
    """Keep so many as can be read."""
    left = len(problems) - _MOST_PROBLEMS
    return [*problems[:_MOST_PROBLEMS], Problem("", f"and {left} more")] if left > 0 else problems
