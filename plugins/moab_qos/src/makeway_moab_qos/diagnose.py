"""Placeholder."""
from __future__ import annotations
from makeway.model import Check, ClusterView, Job, Seconds
def checks(job: Job, view: ClusterView, now: Seconds) -> list[Check]:
    return []
