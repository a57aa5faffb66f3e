"""``priority/multifactor`` keeps every rule of the contract of its kind, with fair share and with limits beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from makeway_testing.contracts import PriorityContract

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
    """With priorities of running jobs that grow, too, so that no job preempts by growing older."""

    __test__ = True
    plugin = "priority/multifactor"
    settings: ClassVar[Mapping[str, Any]] = {**SETTINGS, "flags": ("CALCULATE_RUNNING",)}
    policies: ClassVar[Sequence[tuple[str, str]]] = (("preempt/none", "off"),)
