"""Stand between the loop and its world: nodes that people have drained stay drained, whatever a survey shows."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Seconds
from makeway.worlds.api import Moment, Survey, World
from makeway.worlds.events import Action
from makeway_local_world.keeping.files import store

_FILE = "drained.json"


class Warded:
    """A world whose surveys also show the nodes that are drained on purpose."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.drained: NodeBits = 0

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Begin actions."""
        self.world.perform(actions, now)

    def wait(self, until: Seconds | None) -> Moment | None:
        """Wait for what happens."""
        return self.world.wait(until)

    def survey(self) -> Survey:
        """Look at what is there, and add what people have drained."""
        found = self.world.survey()
        return attrs.evolve(found, nodes_drained=found.nodes_drained | self.drained)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)


@attrs.frozen(kw_only=True)
class Drain:
    """Who drained the machine, when, and why."""

    by: str
    at: float
    reason: str = ""


def read(state: Path) -> Drain | None:
    """Return who drained the machine; None: no one did."""
    try:
        return Drain(**json.loads((state / _FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write(state: Path, drain: Drain | None) -> None:
    """Store who drained the machine; None: no one."""
    path = state / _FILE
    if drain is None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    store(path, json.dumps(attrs.asdict(drain)))


def drained(by: str, reason: str) -> Drain:
    """Return a drain of the machine that begins now."""
    return Drain(by=by, at=time.time(), reason=reason)
