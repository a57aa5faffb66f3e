"""Keep the old name of `makeway.worlds.watch`."""

from __future__ import annotations

from makeway.worlds.watch import time_limit

__all__ = ["time_limit"]
