"""What makeway finds under ``world/local``."""

from __future__ import annotations

from makeway.hookspecs import hookimpl
from makeway.worlds.api import WorldFactory


@hookimpl
def makeway_world() -> WorldFactory | None:
    """Offer the processes of this machine."""
    return None
