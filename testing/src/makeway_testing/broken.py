"""Say which rule was broken, and what is excused."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway.errors import InvariantError
from makeway.model import Seconds
from makeway_engine.engine import Engine

EXCUSES: Mapping[str, str] = {
    "oversubscribed": "without gang, so many jobs as the partition says run on one node",
    "equal tiers": "gang does not slice partitions of one tier against each other",
    "heterogeneous": "gang does not see heterogeneous jobs",
    "resumed by a person": "a person's resume may run beside the holder",
    "stale shadow": "a tick that swaps shadows leaves the lower row as it was",
    "waits to be killed": "gang kills at its next start event or tick",
    "cpus are counted": "with CR_CPU gang adds up CPUs and does not compare cores",
    "suspension frees memory": "select/linear forgets the memory of suspended jobs",
}
"""What real Slurm does although it may never happen; "gang" and "preemption" are the two specs for Slurm."""


@attrs.frozen
class Excused:
    """One time that something excused what would else be an error."""

    at: Seconds
    excuse: str
    """A key of `EXCUSES`."""
    jobs: tuple[str, ...]


RULES: Mapping[int, str] = {
    1: "cores",
    2: "memory",
    3: "no job is lost",
    4: "allowed victims",
    5: "suspended in vain",
    6: "work is counted",
}
"""The plan's numbers."""


def broken(engine: Engine, rule: int, text: str, *jobs: str) -> InvariantError:
    """Return the error that names the rule, the instant and the jobs."""
    about = f" (jobs {', '.join(jobs)})" if jobs else ""
    return InvariantError(f"rule {rule}, {RULES[rule]}, at {engine.ledger.now:g} s: {text}{about}")
