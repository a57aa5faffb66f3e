"""Read when people used nodes (``--outages``): a CSV with node, begin and end, or what ``last`` prints.

``last`` does not name the machine, so that the file is named after it: ``pc17.txt``.
"""

from __future__ import annotations

import csv
import datetime
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from makeway.config import OutageTable
from makeway.errors import ConfigError, Problem, nearest
from makeway.hostlist import expand_hostlist
from makeway.plain import A_LENGTH, seconds_of
from makeway.readers.lines import read_head, read_lines

Tables = tuple[tuple[OutageTable, ...], list[str]]
"""Uses, and what was left out of the file."""
_COLUMNS = ("node", "begin", "end")
_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*"
_FULL = r"[A-Z][a-z]{2} +[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4}"
_SESSION = re.compile(
    rf"(?P<user>\S+) .*?(?P<begin>{_ISO}|{_FULL})(?: +- +(?P<end>{_ISO}|{_FULL}))?(?P<rest>.*)"
)
_LASTED = re.compile(r"\((?:(\d+)\+)?(\d\d):(\d\d)(?::(\d\d))?\)\s*$")
_SHORT = re.compile(r"\S+ .*[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d( |$)")
_NOBODY = ("reboot", "shutdown", "runlevel", "wtmp", "btmp")
"""What stands in the place of a user, and is none."""


def uses_in(path: Path, known: Collection[str]) -> Tables | None:
    """Return the uses that a file tells of; None: it is of another kind.

    :param known: the nodes of the site.
    :raises ConfigError: it cannot be read.
    """
    lines = [line for line in read_head(path).splitlines() if line.strip()]
    heading = {cell.strip().lower() for cell in lines[0].split(",")}
    if heading.issuperset(_COLUMNS):
        return tuple(_rows(path)), []
    if any(_SESSION.match(line) for line in lines):
        return _sessions(path, _machine(path, known))
    if "|" not in lines[0] and any(_SHORT.match(line) for line in lines):
        text = "these times have no year; allowed: what last -F or last --time-format iso prints"
        raise ConfigError(str(path), [Problem("", text)])
    return None


def _rows(path: Path) -> Iterator[OutageTable]:
    """Yield the rows of a CSV."""
    places: dict[str, int] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if not places:
            names = [cell.lower() for cell in cells]
            places = {name: names.index(name) for name in _COLUMNS}
            continue
        try:
            if len(cells) <= max(places.values()):
                raise ValueError(f"got {len(cells)} cells; allowed: one for each column of the first line")
            node, begin, end = (cells[places[name]] for name in _COLUMNS)
            expand_hostlist(node)
            yield OutageTable(nodes=node, state="use", at=_time(begin), until=_time(end) if end else None)
        except ValueError as error:
            raise ConfigError(str(path), [Problem(f"line {number}", str(error))]) from None


def _time(text: str) -> float | str:
    """Return seconds of the run, or a date as it stands.

    :raises ValueError: it is neither.
    """
    seconds = float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else seconds_of(text)
    if seconds is not None:
        return seconds
    if unix_time(text) is None:
        raise ValueError(f"got {text!r}; allowed: {A_LENGTH}, or a date such as 2026-06-01T12:00:00")
    return text


def _machine(path: Path, known: Collection[str]) -> str:
    """Return the node that a file of sessions is about.

    :raises ConfigError: it is named after none, and there is more than one.
    """
    name = next((name for name in (path.name, path.stem) if name in known), None)
    if name is None and len(known) == 1:
        (name,) = known
    if name is None:
        text = (
            f"last does not say which node that is; allowed: a file named after it{nearest(path.stem, known)}"
        )
        raise ConfigError(str(path), [Problem("", text)])
    return name


def _sessions(path: Path, node: str) -> Tables:
    """Return the sessions of people that ``last`` prints: from login to logout."""
    found: list[OutageTable] = []
    odd: Counter[str] = Counter()
    for _, line in read_lines(path):
        told = _SESSION.match(line)
        if told is None or told["user"] in _NOBODY:
            continue
        begin, rest = _moment(told["begin"]), told["rest"]
        lasted = _LASTED.search(rest)
        if told["end"]:
            end = _moment(told["end"])
        elif lasted is not None:
            days, hours, minutes, seconds = (int(each or 0) for each in lasted.groups())
            end = begin + datetime.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        elif "still" in rest:
            end = None
        else:
            odd["their ends are unknown"] += 1
            continue
        if end is None or end > begin:
            until = None if end is None else end.isoformat()
            found.append(OutageTable(nodes=node, state="use", at=begin.isoformat(), until=until))
    return tuple(found[::-1]), [f"{count} sessions left out: {why}" for why, count in odd.items()]


def _moment(text: str) -> datetime.datetime:
    """Return a time of ``last``, as UTC where it has no zone."""
    if text[:1].isdigit():
        moment = datetime.datetime.fromisoformat(text)
    else:
        moment = datetime.datetime.strptime(" ".join(text.split()), "%a %b %d %H:%M:%S %Y")  # noqa: DTZ007
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)


def unix_time(text: str) -> float | None:
    """Return a date as Unix time, read as UTC where it has no zone; None: it is none."""
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None
