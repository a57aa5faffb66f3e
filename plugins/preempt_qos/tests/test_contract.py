"""The plugin keeps the contract of preempt policies."""

from __future__ import annotations

from makeway_testing.contracts import PreemptPolicyContract


class TestContract(PreemptPolicyContract):
    """Three QOS that may displace one another; ties stay in job-table order, as in Slurm."""

    __test__ = True
    plugin = "preempt/qos"
    by_qos = True
