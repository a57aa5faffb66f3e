"""The scheduler of ``scheduler.type = "backfill"``."""

from __future__ import annotations

from makeway_backfill.plan import Plan, Sliding
from makeway_backfill.scheduler import Backfill

__all__ = ["Backfill", "Plan", "Sliding"]
