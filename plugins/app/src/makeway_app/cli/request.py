"""Say what a replay was asked for, and in which world it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway import registry
from makeway.config import Config
from makeway.model import Seconds
from makeway.readers.api import Loaded
from makeway.state import State

CONFIGURED = "as configured"


@attrs.frozen(kw_only=True)
class Request:
    """What was asked for, the files opened."""

    loaded: Loaded
    workload: Path | None
    format: str | None
    limit: int | None
    until: Seconds | None
    queues: Mapping[str, tuple[Seconds, ...]] = attrs.field(factory=dict)
    """Status command (empty: the site's own) -> the instants at which it is shown."""
    check_invariants: bool = False
    all_rejected: bool = False
    begin: State | None = None
    """Begin there; None: with an empty machine."""
    begin_from: str = ""
    states_at: tuple[tuple[Seconds, str], ...] = ()
    """When to write the state of the run, and to which file."""
    plugins: Mapping[str, Any] = attrs.field(factory=dict)
    """Plugins by name that need no installation."""
    warm_up: tuple[Path, ...] = ()
    """Logs of the time before, from which usage at the start is worked out."""
    measures: bool = False
    """Add up completion times, fairness and evictions where there are no GPUs, too."""


def in_world(config: Config, name: str | None) -> Config:
    """Return `config` with the world of ``--world``; None: as it is.

    :raises PluginError, ConfigError: there is no such world, or its settings do not fit it.
    """
    if name is not None:
        config = attrs.evolve(config, world=attrs.evolve(config.world, name=registry.full_name(name)))
    if config.world.real:
        registry.world_settings(config)
    return config
