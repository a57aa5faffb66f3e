"""Read sums of usage as ``sreport -P cluster AccountUtilizationByUser`` prints them (slurm-priority-and-limits 13).

One file may hold several reports, one for each day or hour. Rows without a login are sums of those below them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from makeway.errors import ConfigError, Problem
from makeway.readers.lines import Line, read_lines, shown
from makeway_slurm.accounts.tres import CPU
from makeway_slurm.readers.sacct_rows import unix_time

_TITLE = re.compile(r"Cluster/Account/User Utilization (\S+) - \S+ \(([0-9]{1,10}) secs\)")
_UNIT = re.compile(r"Usage reported in (?:CPU|TRES) (Seconds|Minutes|Hours)\b.*")
_SECONDS: Mapping[str, float] = {"Seconds": 1.0, "Minutes": 60.0, "Hours": 3600.0}
_USED = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)(?:\([0-9.]+%\))?")
_HEAD = 8
"""The title stands within so many lines."""
_NEEDED = ("account", "login", "used")
_ASK = "`sreport -P -t seconds cluster AccountUtilizationByUser start=DAY end=DAY` prints it"


class Sum(NamedTuple):
    """What one user used in one account, in the time of one report."""

    start: float
    """Unix time."""
    seconds: float
    """Length of the report."""
    user: str
    account: str
    used: Mapping[str, float]
    """Seconds by TRES."""


def is_report(path: Path) -> bool:
    """Say by its title whether a file holds such reports."""
    head = itertools.islice(read_lines(path), _HEAD)
    return any(_TITLE.fullmatch(text.strip()) or _UNIT.fullmatch(text.strip()) for _, text in head)


def read_sums(path: Path, source: str) -> Iterator[Sum]:
    """Yield what each user used in each account, report by report.

    :raises ConfigError: with the first line that cannot be read.
    """
    report = _Report(path.name, source)
    for line in read_lines(path):
        yield from report.take(line)
    yield from report.end()


class _Report:
    """The report that is being read."""

    def __init__(self, file: str, source: str) -> None:
        self._file, self._source = file, source
        self._start: float | None = None
        self._length = 0.0
        self._unit: float | None = None
        self._columns: Sequence[str] = ()
        self._used: dict[tuple[str, str], dict[str, float]] = {}

    def take(self, line: Line) -> Iterator[Sum]:
        """Take one line; a title ends the report before it."""
        number, text = line[0], line[1].strip()
        if not text or not text.strip("-"):
            return
        title, unit = _TITLE.fullmatch(text), _UNIT.fullmatch(text)
        if title is not None:
            yield from self.end()
            self._start, self._length = unix_time(title[1]), float(title[2])
            self._unit, self._columns = None, ()
            if self._start is None or not self._length:
                raise self._wrong(number, f"got {shown(text)}; expected a time such as 2024-05-01T00:00:00")
        elif unit is not None:
            self._unit = _SECONDS[unit[1]]
        elif text.startswith("Usage reported in"):
            raise self._wrong(number, f"got {shown(text)}; expected seconds, minutes or hours (-t seconds)")
        elif not self._columns:
            self._header(number, text)
        else:
            self._row(number, line[1])

    def _header(self, number: int, text: str) -> None:
        columns = [cell.strip().replace(" ", "").lower() for cell in text.split("|")]
        if self._start is None or self._unit is None:
            raise self._wrong(number, f"no title that says the time and the unit; {_ASK} (leave out -n)")
        missing = [name for name in _NEEDED if name not in columns]
        if missing:
            names = ", ".join(name.capitalize() for name in missing)
            raise self._wrong(number, f"no column {names} in {shown(text)}; {_ASK}")
        self._columns = columns

    def _row(self, number: int, text: str) -> None:
        cells = [cell.strip() for cell in text.split("|")]
        if len(cells) != len(self._columns):
            counts = f"{len(cells)} values below {len(self._columns)} columns"
            raise self._wrong(number, f"{counts}: {shown(text)}")
        row = dict(zip(self._columns, cells, strict=True))
        found = _USED.fullmatch(row["used"])
        if found is None:
            raise self._wrong(number, f"Used: got {shown(row['used'])}; expected a number")
        if not row["login"]:
            return
        tres = row.get("tresname", CPU).lower()
        used = self._used.setdefault((row["login"], row["account"]), {})
        used[tres] = used.get(tres, 0.0) + float(found[1]) * (self._unit or 1.0)

    def end(self) -> Iterator[Sum]:
        """Yield what was read of the report."""
        for (user, account), used in self._used.items():
            if self._start is not None and any(used.values()):
                yield Sum(self._start, self._length, user, account, used)
        self._used = {}

    def _wrong(self, number: int, text: str) -> ConfigError:
        return ConfigError(self._source, [Problem(f"{self._file}:{number}", text)])
