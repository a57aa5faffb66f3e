"""What an attempt to start a job asks, and what it may come to."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from makeway import licences
from makeway.bitmap import NodeBits
from makeway.model import Blocked, Job, Partition, PreemptMode
from makeway_engine.placing.limited import LIMIT


class Question(NamedTuple):
    """One attempt: may this job start now, there, and at whose cost?"""

    job: Job
    partition: Partition
    allowed: NodeBits
    """Nodes that it may be placed on."""
    preempt: bool = True
    """Whether it may displace others."""
    limits: bool = True
    """Whether limits of policies hold."""
    closes: bool = True
    """Whether nodes that policies keep for others stay closed to it."""
    note: str = ""
    """What to say beside if it has to wait."""


class Outcome(enum.Enum):
    """How an attempt ended."""

    STARTED = "started"
    PREEMPTING = "preempting"
    """Others were told to make way; the job starts in a later attempt."""
    BUSY = "busy"
    LIMITED = "limited"
    """A limit or a licence keeps it out; it does not hold up others."""
    NEVER = "never"
    """It cannot run on this cluster at all."""
    FAILED = "failed"
    """Some of its victims could not make way; for the time of one attempt only."""


class Room(NamedTuple):
    """Where a job could start once its victims were gone."""

    nodes: NodeBits
    victims: Sequence[Job]
    modes: Sequence[PreemptMode]
    reasons: Sequence[str]
    """Why each of them; empty: nothing was said."""

    @property
    def kills(self) -> bool:
        """Whether some of them leave their nodes, so that they have to be waited for."""
        return any(mode not in (PreemptMode.SUSPEND, PreemptMode.OFF) for mode in self.modes)


# Bound once: Python 3.11 looks up members of an Enum by a detour.
_LIMITED = Outcome.LIMITED
_BUSY = Outcome.BUSY


def outcome_of(blocked: Blocked) -> Outcome:
    """Return what an attempt came to that ended with this answer."""
    limited = blocked.resource in (licences.LICENCES, LIMIT)
    return _LIMITED if limited else _BUSY
