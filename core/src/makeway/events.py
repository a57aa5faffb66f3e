"""Name what a world tells the engine (events) and what the engine asks of a world (actions).

They live in `makeway.worlds.events`; this module keeps the name that plugins have used so far.
"""

from __future__ import annotations

from makeway.worlds.events import (
    Action,
    Adopted,
    Checkpoint,
    Checkpointed,
    Cleaned,
    Command,
    Event,
    Failed,
    Finished,
    Kill,
    NodesDown,
    NodesDrained,
    NodesUp,
    Noticed,
    Performed,
    Resume,
    SendSignal,
    Start,
    Started,
    Submitted,
    Suspend,
)

__all__ = [
    "Action",
    "Adopted",
    "Checkpoint",
    "Checkpointed",
    "Cleaned",
    "Command",
    "Event",
    "Failed",
    "Finished",
    "Kill",
    "NodesDown",
    "NodesDrained",
    "NodesUp",
    "Noticed",
    "Performed",
    "Resume",
    "SendSignal",
    "Start",
    "Started",
    "Submitted",
    "Suspend",
]
