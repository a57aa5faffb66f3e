"""Follow the scontrol commands of a scenario that create and delete reservations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway.config import Config
from makeway.model import Seconds
from makeway_slurm.readers.accounting import RESERVING
from makeway_slurm.reservations.tables import ATTRIBUTE

_MARK = re.compile(r"<([+-]\d+)>")


def is_about(command: Iterable[object]) -> bool:
    """Whether a command is one of scontrol about a reservation."""
    words = [str(word).lower() for word in command]
    if words[:1] != ["scontrol"] or len(words) < 3:
        return False
    return words[2] == "reservation" or words[2].startswith("reservation")


def with_reservations(
    config: Config, actions: Iterable[Mapping[str, Any]], arguments: Iterable[Sequence[str]], second: Seconds
) -> Config:
    """Return the config with the reservations that people made, if there are any.

    :param actions: what was typed, with what came of it where that is known.
    :param arguments: of the jobs, each of which may ask for a reservation.
    :param second: offset of the first full second of the controller's clock.
    """
    found = reservations(actions, second)
    if not found and not any(str(word).startswith("--reservation") for words in arguments for word in words):
        return config
    policy = config.policy
    return attrs.evolve(
        config,
        cluster=attrs.evolve(config.cluster, attributes={**config.cluster.attributes, ATTRIBUTE: found}),
        policy=attrs.evolve(
            policy,
            plugins=(*policy.plugins, RESERVING),
            settings={**policy.settings, RESERVING: {**policy.settings.get(RESERVING, {}), "complete": True}},
        ),
    )


def reservations(actions: Iterable[Mapping[str, Any]], second: Seconds = 0.0) -> list[dict[str, Any]]:
    """Return the tables of ``cluster.attributes.reservations``; what was refused is left out."""
    found: dict[str, dict[str, Any]] = {}
    listed: list[dict[str, Any]] = []
    for action in actions:
        words = [str(word) for word in action["command"]]
        if not is_about(words) or action.get("rc", 0) != 0:
            continue
        at = float(action.get("done", action["at"]))
        if words[1].lower() == "create":
            table = {**_table(words[2:], second), "created": at}
            found[table["ReservationName"]] = table
            listed.append(table)
        elif words[1].lower() == "delete":
            name = words[-1].rpartition("=")[2]
            if name in found:
                found[name]["deleted"] = at
    return listed


def _table(words: Iterable[str], second: Seconds) -> dict[str, Any]:
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
            # what is asked for by the second begins with it
            table[key] = math.floor(float(mark[1]) - second) + second if mark is not None else value
    return table
