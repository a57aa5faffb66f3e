"""What makeway finds under ``world/local``."""

from __future__ import annotations

from makeway.hookspecs import hookimpl
from makeway.worlds.api import WorldFactory
from makeway_local_world.processes.settings import Settings


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


@hookimpl
def makeway_world() -> WorldFactory:
    """Offer the processes of this machine."""
    from makeway_local_world.processes.world import LocalWorld  # a replay asks for dialects, not for worlds

    return LocalWorld
