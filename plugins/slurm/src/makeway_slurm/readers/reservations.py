"""Read reservations as ``scontrol show reservation`` and ``sacctmgr -P show reservation`` print them.

Section numbers are those of slurm-priority-and-limits.md (9, 13).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

Row = dict[str, str]
_FIELD = re.compile(r"\b(\w++)=(\S*)")
_NOTHING = ("", "(null)", "n/a", "none")
_KEPT = ("StartTime", "EndTime", "Nodes", "PartitionName", "Users", "Accounts", "Flags", "MaxStartDelay")
_COLUMNS: Mapping[str, str] = {
    "name": "ReservationName",
    "timestart": "StartTime",
    "starttime": "StartTime",
    "start": "StartTime",
    "timeend": "EndTime",
    "endtime": "EndTime",
    "end": "EndTime",
    "nodenames": "Nodes",
    "nodes": "Nodes",
    "flags": "Flags",
}
"""Columns of sacctmgr and of ``sreport -P reservation utilization``, in small letters."""
_OURS = frozenset(_COLUMNS) - {"name", "flags"}
NEEDED = "Name, TimeStart, TimeEnd and NodeNames"
"""Columns without which a table says nothing, as sacctmgr heads them."""


def is_scontrol(line: str) -> bool:
    """Say by its first line whether a text is one of ``scontrol show reservation``."""
    return line.startswith("ReservationName=")


def is_table(columns: Iterable[str]) -> bool:
    """Say by its columns, in small letters, whether a table is one of ``sacctmgr -P show reservation``."""
    return not _OURS.isdisjoint(columns)


def missing(columns: Iterable[str]) -> list[str]:
    """Return the columns that a table of reservations lacks, as sacctmgr heads them."""
    known = {_COLUMNS[column] for column in columns if column in _COLUMNS}
    heads = {"ReservationName": "Name", "StartTime": "TimeStart", "EndTime": "TimeEnd", "Nodes": "NodeNames"}
    return [head for name, head in heads.items() if name not in known]


def read_scontrol(lines: Iterable[str]) -> list[Row]:
    """Return one table for each reservation; one may stand on one line or on several."""
    found: list[Row] = []
    for line in lines:
        for name, value in _FIELD.findall(line):
            if name == "ReservationName":
                found.append({"ReservationName": value})
            elif found and name in _KEPT and value.lower() not in _NOTHING:
                found[-1][name] = value
    return found


def read_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[Row]:
    """Return one table for each row; who may use it, the ids of associations say, which a log does not need.

    :param columns: in small letters.
    """
    found: list[Row] = []
    for cells in rows:
        row = {
            _COLUMNS[column]: cell.strip()
            for column, cell in zip(columns, cells, strict=False)
            if column in _COLUMNS and cell.strip().lower() not in _NOTHING
        }
        if "ReservationName" not in row or "StartTime" not in row or "EndTime" not in row:
            continue
        found.append(row)
    return found


def joined(rows: Sequence[Row]) -> list[Row]:
    """Return each reservation once for each time that it was in force; what one row leaves out another may say."""
    known: dict[str, Row] = {}
    for row in rows:
        known.setdefault(row["ReservationName"], {}).update(
            {key: value for key, value in row.items() if key not in ("StartTime", "EndTime")}
        )
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row["ReservationName"], row.get("StartTime", "")
        found.setdefault(key, {}).update({**known[key[0]], **row})
    return list(found.values())
