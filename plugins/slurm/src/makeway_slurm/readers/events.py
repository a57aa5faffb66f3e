"""Read which nodes were out of service from ``sacctmgr -P show event`` (``--outages``).

Such a row has the node, when it began and ended, and the state; a row without a node is about the cluster as a whole.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from makeway.config import OutageTable
from makeway.errors import ConfigError, Problem
from makeway.hostlist import fold_hostlist
from makeway.readers.lines import read_lines
from makeway_slurm.readers.sacct_rows import unix_time

_COLUMNS = ("nodename", "timestart", "timeend", "state")
_DOWN = frozenset(("DOWN",))
_DRAINED = frozenset(("DRAIN", "DRAINED", "DRAINING", "DRNG", "FAIL", "FAILING", "FAILG", "MAINT"))
_OPEN = ("", "unknown", "none")
"""How an event ends that goes on."""


def outages_in(path: Path) -> tuple[tuple[OutageTable, ...], list[str]]:
    """Return the outages of a file in order of time, and what was left out of it.

    :raises ConfigError: it has no such rows.
    """
    places: Mapping[str, int] | None = None
    nodes: dict[tuple[str, str | None, str], list[str]] = {}
    odd: Counter[str] = Counter()
    for _, line in read_lines(path):
        cells = [cell.strip() for cell in line.split("|")]
        if places is None:
            names = [cell.lower() for cell in cells]
            if missing := [name for name in _COLUMNS if name not in names]:
                text = f"no column {', '.join(missing)} in its first line; allowed: what sacctmgr -P show event prints"
                raise ConfigError(str(path), [Problem("", text)])
            places = {name: names.index(name) for name in _COLUMNS}
            continue
        if len(cells) <= max(places.values()):
            odd["too few columns"] += bool(line.strip())
            continue
        node, start, end, said = (cells[places[name]] for name in _COLUMNS)
        if not node:
            continue
        state = _state(said)
        if state is None:
            odd[f"state {said}"] += 1
        elif unix_time(start) is None or (end.lower() not in _OPEN and unix_time(end) is None):
            odd[f"time {start} to {end}"] += 1
        else:
            nodes.setdefault((start, None if end.lower() in _OPEN else end, state), []).append(node)
    if not nodes:
        raise ConfigError(str(path), [Problem("", "it names no node that was down or drained")])
    tables = tuple(
        OutageTable(nodes=fold_hostlist(listed), state=state, at=_date(start), until=end and _date(end))
        for (start, end, state), listed in sorted(nodes.items(), key=lambda item: item[0][0])
        if end is None or _date(end) > _date(start)
    )
    return tables, [f"{count} rows left out: {why}" for why, count in odd.items()]


def _date(text: str) -> str:
    """Return a time in the shape that ``[[outage]]`` has: all digits are seconds since 1970."""
    seconds = unix_time(text)
    assert seconds is not None
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()


def _state(text: str) -> str | None:
    words = set(re.findall(r"[A-Z_]+", text.upper()))
    return "down" if words & _DOWN else "drain" if words & _DRAINED else None
