"""Test policies and the engine with small tables; what may never happen is checked after every step.

========== ==================================================================================
module     what it offers
========== ==================================================================================
builders   nodes, configurations, workloads and single jobs in one line each
scenario   `replay_table` and `timeline`: a small table in, a small table out
invariants `InvariantChecker`, `check_invariants`: what may never happen
strategies random clusters, policies and workloads; needs Hypothesis (``makeway[testing]``)
========== ==================================================================================
"""

from __future__ import annotations

from makeway.testing.builders import cluster, config, job, jobs, node, one_node, tiers
from makeway.testing.invariants import InvariantChecker, check_conservation, check_invariants
from makeway.testing.scenario import TableRun, replay_table, timeline

__all__ = [
    "InvariantChecker",
    "TableRun",
    "check_conservation",
    "check_invariants",
    "cluster",
    "config",
    "job",
    "jobs",
    "node",
    "one_node",
    "replay_table",
    "tiers",
    "timeline",
]
