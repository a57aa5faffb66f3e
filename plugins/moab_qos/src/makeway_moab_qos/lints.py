"""Placeholder."""
from __future__ import annotations
from makeway.errors import Finding
from makeway.model import Cluster
from makeway_moab_qos.settings import Settings
def findings(cluster: Cluster, settings: Settings) -> list[Finding]:
    return []
