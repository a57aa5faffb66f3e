"""The plugin keeps the contract of selectors."""

from __future__ import annotations

from makeway_testing import cluster, replay_table
from makeway_testing.contracts import SelectContract


class TestContract(SelectContract):
    """Whole nodes."""

    __test__ = True
    plugin = "select/linear"


class TestContractWithMemory(SelectContract):
    """With memory as a consumable."""

    __test__ = True
    plugin = "select/linear"
    parameters = ("CR_Memory",)


def test_impossible_in_one_partition_is_not_impossible_in_the_next() -> None:
    """The contract found it: a job too large for its first partition displaced none in its second."""
    run = replay_table(
        """
        job  partition   submit  nodes  run_time
        old  low              0      4       100
        new  small,large      5      3        10
        """,
        cluster=cluster(4, cpus=1),
        config={
            "preempt": "preempt/partition_prio",
            "preempt_mode": "requeue",
            "partitions": {
                "low": {},
                "small": {"nodes": "n[3-4]", "priority_tier": 3},
                "large": {"priority_tier": 2},
            },
        },
    )
    assert run.starts("new") == (5.0,)
