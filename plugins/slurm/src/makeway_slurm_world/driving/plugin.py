"""What makeway finds under ``world/slurm``."""

from __future__ import annotations

from makeway.hookspecs import hookimpl
from makeway.worlds.api import WorldFactory
from makeway_slurm_world.driving.settings import Settings


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


@hookimpl
def makeway_world() -> WorldFactory:
    """Offer nodes of a running Slurm."""
    from makeway_slurm_world.driving.world import SlurmWorld  # a replay asks for dialects, not for worlds

    return SlurmWorld
