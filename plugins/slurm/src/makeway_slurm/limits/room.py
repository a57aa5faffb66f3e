"""Say how much limits leave to others beside a job that they let in, for `Headroom`."""

from __future__ import annotations

import math

from makeway_slurm.accounts.tres import NODE
from makeway_slurm.accounts.usage import WALL, UsageBook
from makeway_slurm.limits.asked import Asked, Listed
from makeway_slurm.limits.counts import CountBook
from makeway_slurm.limits.ending import Ending
from makeway_slurm.limits.headroom import JOBS, RUN, Headroom
from makeway_slurm.limits.kinds import EACH, Kind
from makeway_slurm.limits.tres_minutes import minutes_of

_TRES, _JOBS, _RUN_MINUTES, _USED_WALL = Kind.TRES, Kind.JOBS, Kind.RUN_MINUTES, Kind.USED_WALL


class Room:
    """What is left of the limits of one run."""

    def __init__(self, counts: CountBook, usage: UsageBook, ending: Ending) -> None:
        self._counts = counts
        self._usage = usage
        self._ending = ending

    def fits(self, asked: Asked, headroom: Headroom) -> bool:
        """Note what limits leave to others beside one such job; False: one may keep it out."""
        self._counts.brought_up()
        limits = asked.quiet
        if limits is not asked.open and not headroom.keep_until(self._ending.quiet_until(asked.seat.group)):
            return False
        rooms: list[tuple[str, float]] = []
        for listed, wanted in limits:
            kind, name = listed.kind, listed.name
            room: float
            if kind is _TRES:
                holds = listed.holds
                have = holds.nodes.bit_count() if name == NODE else holds.tres.get(name, 0)
                room = listed.most - wanted - have
            elif kind is _JOBS:
                name, room = JOBS, listed.most - 1 - listed.holds.jobs
            elif kind is _RUN_MINUTES:
                if self._usage.drifts:
                    return False  # an end may take off more or less than its job is thought to hold
                entry = self._usage.shared.get(listed.key) if listed.rule.key in EACH else listed.entry
                running = entry.may_use(name) / 60.0 if entry is not None else 0.0
                name, room = RUN + name, listed.most - 1.0 - minutes_of(asked, wanted) - running
            elif listed.uses_up:
                name, room = self._when_safe(listed, wanted, asked, headroom)
            else:
                return False
            if room < 0.0:
                return False
            rooms.append((name, room))
        headroom.keep(rooms)
        return True

    def _when_safe(self, listed: Listed, wanted: int, asked: Asked, headroom: Headroom) -> tuple[str, float]:
        """Return what is left of a limit on what is used up, where a job has to last, by name; less than 0: too little.

        Half of it is for those who start, half for time.
        """
        wall, entry = listed.kind is _USED_WALL, listed.entry
        name = WALL if wall else listed.name
        if entry is None:
            return RUN + name, math.inf
        if asked.booked is None:
            return RUN + name, -math.inf
        minutes = float(asked.booked) if wall else minutes_of(asked, wanted)
        running = 0.0 if wall else entry.may_use(name) / 60.0
        spare = (listed.most - 2.0 - entry.used(name) / 60.0 - running - minutes) / 2.0
        if spare < 0.0 or not headroom.keep_until(self._ending.grown_by(name, spare * 60.0)):
            return RUN + name, -math.inf
        return RUN + name, math.inf if wall else spare


__all__ = ["Room"]
