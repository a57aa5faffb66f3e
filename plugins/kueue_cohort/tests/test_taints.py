"""Which taints a workload tolerates, as Kubernetes says it (Taints and Tolerations)."""

from __future__ import annotations

import pytest

from makeway_kueue_cohort.taints import closed, tolerated


@pytest.mark.parametrize(
    ("taint", "toleration", "goes"),
    [
        ("spot=true:NoSchedule", "spot=true:NoSchedule", True),
        ("spot=true:NoSchedule", "spot=false:NoSchedule", False),
        ("spot=true:NoSchedule", "spot", True),
        ("spot=true:NoSchedule", "spot=true", True),
        ("spot=true:NoSchedule", "spot:NoExecute", False),
        ("spot:NoSchedule", "spot=:NoSchedule", True),
        ("spot=true:NoSchedule", "*", True),
        ("spot=true:NoSchedule", "*:NoExecute", False),
        ("spot=true:NoSchedule", "other=true", False),
    ],
)
def test_tolerated(taint: str, toleration: str, goes: bool) -> None:
    """Key, value and effect have to be the same; what a toleration leaves out stands for all."""
    assert tolerated(taint, [toleration]) is goes


def test_closed_flavors() -> None:
    """Each with its first taint that keeps the workload out; one that is only preferred does not."""
    taints = {"a": ["x=1:PreferNoSchedule"], "b": ["x=1:NoSchedule", "y=1:NoExecute"], "c": ["y=1:NoExecute"]}
    assert closed(taints, ["x"]) == {"b": "y=1:NoExecute", "c": "y=1:NoExecute"}
    assert closed(taints, ["x", "y"]) == {}
