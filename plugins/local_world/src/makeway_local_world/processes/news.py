"""What the hand tells the world: facts about incarnations and actions, before they become events."""

from __future__ import annotations

from typing import NamedTuple

from makeway.model import JobState, Seconds
from makeway.worlds.events import Action
from makeway_local_world.processes.ends import End
from makeway_local_world.processes.rundir import Key


class Began(NamedTuple):
    """The job's program runs, or would if it were not started stopped."""

    key: Key
    at: Seconds
    obstacle: str = ""
    """Why it cannot be checkpointed; empty: it can be."""


class Done(NamedTuple):
    """An action was performed."""

    key: Key
    serial: int


class Refused(NamedTuple):
    """An action was not performed, and will not be."""

    key: Key
    action: Action
    why: str
    retry: bool = True


class Over(NamedTuple):
    """Nothing of an incarnation is left."""

    key: Key
    end: End | None
    """How it ended; None: it was not there."""


class Lost(NamedTuple):
    """Nothing of an incarnation is left, and it did not come to its end."""

    key: Key
    why: str
    rule: str
    """requeue, fail or hold."""


class Seen(NamedTuple):
    """Another than the daemon continued what stood still by the daemon's word."""

    key: Key
    state: JobState
    by: str


class Saved(NamedTuple):
    """It was saved, or brought back from what was."""

    key: Key
    work: Seconds
    """For how long it had run then."""


class BegunAnew(NamedTuple):
    """It could not go on from what was saved before."""

    key: Key
    why: str


class Hindered(NamedTuple):
    """Why it cannot be checkpointed has changed."""

    key: Key
    obstacle: str
    """Empty: it can be."""


class Use(NamedTuple):
    """A person uses this machine, or has not for as long as a partition wants."""

    partition: str
    used: bool
    why: str = ""


OfJob = Began | Done | Refused | Over | Lost | Seen | Saved | BegunAnew | Hindered
News = OfJob | Use
__all__ = [
    *("Began", "BegunAnew", "Done", "Hindered", "Lost", "News", "OfJob", "Over", "Refused", "Saved", "Seen"),
    "Use",
]
