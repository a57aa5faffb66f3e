"""Cut the intervals of a job into pieces to draw: running, suspended, completing, and running for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from makeway_report.lost import Start, starts
from makeway_report.places import Places

STATES = ("RUNNING", "SUSPENDED", "COMPLETING")
"""States in which a job is somewhere; a piece has the place of its state here as its number."""
LOST = 4
"""The number of a piece whose work was thrown away."""


@attrs.frozen
class Piece:
    """A stretch of time in which a job was somewhere."""

    start: float
    end: float
    job: int
    state: int
    place: int
    restart: int


def pieces_of(number: int, job: Mapping[str, Any], places: Places) -> tuple[list[Piece], dict[int, Start]]:
    """Return the pieces of a job in order of time, and its starts by the number of restarts before.

    What a start lost is taken from its end backwards, over as many intervals of running as it takes.

    :param number: written into each piece.
    """
    held = [each for each in job["intervals"] if "nodes" in each and each["state"] in STATES]
    placed = [(each, places.number(each)) for each in held]
    runs = [
        (each["start"], each["end"], each["restart"], _cores(job, each, places.places[place].cores))
        for each, place in placed
        if each["state"] == "RUNNING"
    ]
    found = starts(job, runs)
    lost = {restart: start.lost for restart, start in found.items()}
    made: list[Piece] = []
    for each, place in reversed(placed):
        start, end, restart = each["start"], each["end"], each["restart"]
        state = STATES.index(each["state"])
        gone = lost.get(restart, 0.0) if state == 0 else 0.0
        if gone > 0:
            cut = max(start, end - gone)
            lost[restart] = gone - (end - cut)
            made.append(Piece(cut, end, number, LOST, place, restart))
            end = cut
            if end == start:
                continue
        made.append(Piece(start, end, number, state, place, restart))
    return made[::-1], found


def _cores(job: Mapping[str, Any], interval: Mapping[str, Any], drawn: int) -> int:
    """Return how many cores an interval counts for: where a policy names nodes and no CPUs, what the job asked for.

    :param drawn: the CPUs of the place at which the interval is drawn.
    """
    cpus: Mapping[str, str] = interval.get("cpus") or {}
    return drawn if not cpus or any(cpus.values()) else int(job["requested"]["cpus"])
