"""Test policies and the engine with small tables; what may never happen is checked after every step.

============ ================================================================================
module       what it offers
============ ================================================================================
builders     nodes, configurations, workloads and single jobs in one line each
scenario     `replay_table` and `timeline`: a small table in, a small table out
contracts    what a plugin of each kind must keep to, as classes to inherit from
strategies   random clusters, policies and workloads
command_line the command line, run within a test
============ ================================================================================

`InvariantChecker` and `check_invariants`, what may never happen, are those of `makeway_testing.invariants`. The pytest
plugin lives in this package too, so nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from makeway_testing.builders import cluster, config, job, jobs, node, one_node, tiers
    from makeway_testing.invariants import InvariantChecker, check_conservation, check_invariants
    from makeway_testing.scenario import TableRun, replay_table, timeline

_HOMES = {
    "makeway_testing.invariants": ("InvariantChecker", "check_conservation", "check_invariants"),
    "makeway_testing.builders": ("cluster", "config", "job", "jobs", "node", "one_node", "tiers"),
    "makeway_testing.scenario": ("TableRun", "replay_table", "timeline"),
}


def __getattr__(name: str) -> Any:
    """Import what the package offers when it is first asked for."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
