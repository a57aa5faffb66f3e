"""Follow the scontrol commands of a scenario that create and delete reservations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_MARK = re.compile(r"<([+-]\d+)>")


def is_about(command: Iterable[object]) -> bool:
    """Whether a command is one of scontrol about a reservation."""
    words = [str(word).lower() for word in command]
    if words[:1] != ["scontrol"] or len(words) < 3:
        return False
    return words[2] == "reservation" or words[2].startswith("reservation")


def reservations(actions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tables of ``cluster.attributes.reservations``; what was refused is left out."""
    found: dict[str, dict[str, Any]] = {}
    listed: list[dict[str, Any]] = []
    for action in actions:
        words = [str(word) for word in action["command"]]
        if not is_about(words) or action.get("rc", 0) != 0:
            continue
        at = float(action.get("done", action["at"]))
        if words[1].lower() == "create":
            table = {**_table(words[2:]), "created": at}
            found[table["ReservationName"]] = table
            listed.append(table)
        elif words[1].lower() == "delete":
            name = words[-1].rpartition("=")[2]
            if name in found:
                found[name]["deleted"] = at
    return listed


def _table(words: Iterable[str]) -> dict[str, Any]:
    spelled = {
        **dict.fromkeys(("reservationname", "reservation"), "ReservationName"),
        **{name.lower(): name for name in ("StartTime", "EndTime", "Duration", "Nodes", "Users", "Accounts")},
        "flags": "Flags",
        "partitionname": "PartitionName",
    }
    table: dict[str, Any] = {"ReservationName": "unnamed", "StartTime": 0.0}
    for word in words:
        name, equals, value = word.partition("=")
        key = spelled.get(name.lower())
        if equals and key is not None:
            mark = _MARK.fullmatch(value)
            table[key] = float(mark[1]) if mark is not None else value
    return table
