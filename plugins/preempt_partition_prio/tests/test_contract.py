"""The plugin keeps the contract of preempt policies."""

from __future__ import annotations

from makeway_testing.contracts import PreemptPolicyContract


class TestContract(PreemptPolicyContract):
    """Ties stay in job-table order, as in Slurm: so the order of `active` shows."""

    __test__ = True
    plugin = "preempt/partition_prio"
