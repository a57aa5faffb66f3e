"""Read makeway's own workloads: TOML with ``[[job]]`` tables, or JSON lines, one job each.

The keys are those of `JobTable`. A wrong key or value is an error, all of them at once: people
write these files themselves. Jobs without an id are numbered; they come in order of submission.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from makeway.errors import ConfigError, Problem
from makeway.readers.api import ReadOptions, Workload
from makeway.readers.lines import read_text
from makeway_app.readers.native.building import specs_of
from makeway_app.readers.native.checks import check_dependencies, checked_table, ids_of, outcomes_not_told
from makeway_app.readers.native.places import JSON_ARRAY, Place, json_places, most_of, toml_places

_NO_ARRAYS = (
    "a JSON array; allowed: JSON lines, one object per line without brackets around and commas between "
    "(`jq -c '.[]'` makes them), or TOML with [[job]] tables"
)
_JOB_KEY = re.compile(r"^[ \t]*(\[\[[ \t]*job\b|job[ \t]*=)", re.MULTILINE)


_LISTED = re.compile(r'\s*\{\s*"(?:jobs|meta|plugin)"\s*:')
"""A document that lists jobs, as schedulers print: none of ours."""


class NativeReader:
    """Reads TOML with ``[[job]]`` tables, and JSON lines."""

    name = "native"

    def claims(self, path: Path, head: str) -> bool:
        """Recognise ``[[job]]``, a line that is a JSON object, or ``*.toml``, ``*.jsonl``."""
        if path.suffix in (".toml", ".jsonl", ".ndjson"):
            return True
        if (head.lstrip().startswith("{") and not _LISTED.match(head)) or JSON_ARRAY.match(head) is not None:
            return True
        return _JOB_KEY.search(head) is not None

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Read all of `path`.

        :raises ConfigError: with all problems.
        """
        text = read_text(path)
        if not text.strip():
            raise ConfigError(str(path), [Problem("", "the file is empty")])
        if JSON_ARRAY.match(text) is not None:
            raise ConfigError(str(path), [Problem(f"{path.name}:1", _NO_ARRAYS)])
        as_json = text.lstrip().startswith("{")
        places = (json_places if as_json else toml_places)(path, text)
        if options.progress is not None:
            options.progress(path.stat().st_size)
        return _workload(places, path.name, str(path))


def workload_of_tables(tables: Sequence[Mapping[str, Any]], source: str) -> Workload:
    """Read jobs that stand in a configuration (``[[job]]``).

    :raises ConfigError: with all problems.
    """
    places = [Place(f"job[{at}]", 0, table) for at, table in enumerate(tables)]
    return _workload(places, source, source)


def _workload(places: Sequence[Place], name: str, source: str) -> Workload:
    problems: list[Problem] = []
    tables = [(place, checked_table(place, source, problems)) for place in places]
    good = [(place, table) for place, table in tables if table is not None]
    ids = ids_of(good, problems)
    check_dependencies(good, ids, problems)
    if problems:
        raise ConfigError(source, most_of(problems))
    ordered = sorted(zip(ids, good, strict=True), key=lambda item: item[1][1].submit)
    jobs = (
        spec
        for job, (place, table) in ordered
        for spec in specs_of(job, table, f"{name}:{place.line or place.path}")
    )
    return Workload(name=name, jobs=jobs, total=len(ordered), notes=outcomes_not_told(good, ids))
