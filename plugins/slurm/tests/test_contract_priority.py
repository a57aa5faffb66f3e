"""``priority/multifactor`` keeps every rule of the contract of its kind, with fair share and with limits beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from makeway.model import ClusterView, Job
from makeway_slurm.multifactor.prioritizer import Multifactor
from makeway_testing.contracts import PriorityContract
from makeway_testing.failures import ContractError

SETTINGS: Mapping[str, Any] = {
    "weight_age": 1000,
    "max_age": 600.0,
    "weight_job_size": 100,
    "weight_partition": 50,
    "calc_period": 10.0,
    "decay_half_life": 60.0,
}


class TestContract(PriorityContract):
    """One test per rule, each on random clusters and workloads."""

    __test__ = True
    plugin = "priority/multifactor"
    settings: ClassVar[Mapping[str, Any]] = SETTINGS


class TestContractThatCalculatesRunning(PriorityContract):
    """With priorities of running jobs that grow, too, so that nobody preempts by growing older."""

    __test__ = True
    plugin = "priority/multifactor"
    settings: ClassVar[Mapping[str, Any]] = {**SETTINGS, "flags": ("CALCULATE_RUNNING",)}
    policies: ClassVar[Sequence[tuple[str, str]]] = (("preempt/none", "off"),)


def test_a_wrong_standing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever says that the last one leads lets other jobs start where nobody watches."""
    standings = Multifactor.standings

    def reversed_(policy: Multifactor, jobs: Sequence[Job], view: ClusterView) -> list[Any]:
        return [each and (-each[0], each[1]) for each in standings(policy, jobs, view)]

    monkeypatch.setattr(Multifactor, "standings", reversed_)
    with pytest.raises(ContractError, match="where somebody watches"):
        TestContract().test_nobody_has_to_watch()
