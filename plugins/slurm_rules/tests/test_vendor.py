"""What the library tells makeway of Slurm, and what makeway-slurm adds to it."""

from __future__ import annotations

import pytest

from makeway import vendors
from makeway.config import SchedulerTable
from makeway.entry_points import points
from makeway_slurm_rules import rules
from makeway_slurm_rules.vendor import VENDOR, of_release, release_of


@pytest.mark.parametrize(
    ("release", "holds"), [("22.05", True), ("24.05", True), ("24.05.5", False), ("26.05", False)]
)
def test_a_rule_holds_until_its_release(release: str, holds: bool) -> None:
    """slurm-gang-and-select 5.2: sched/builtin walks unsorted before 24.05.5."""
    scheduler = SchedulerTable(**of_release(release))
    assert release_of(scheduler) == release
    assert VENDOR.in_force is not None
    assert VENDOR.in_force(scheduler)["builtin_raw_order"] is holds


def test_easy_promises_the_first_instant_at_which_a_job_fits() -> None:
    """So rules about estimates that are not exact do not hold under it."""
    assert VENDOR.in_force is not None
    strict, easy = (VENDOR.in_force(SchedulerTable(type=each)) for each in ("builtin", "easy"))
    switched = {rule for rule in strict if strict[rule] is not easy[rule]}
    assert switched
    assert all("forecast" in rule and not easy[rule] for rule in switched)


def test_defects_are_rules() -> None:
    assert VENDOR.defects < VENDOR.rules.keys() == rules.RULES.keys()
    assert vendors.defects() >= VENDOR.defects


def test_a_policy_alone_finds_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without makeway-slurm, whose commands and checks are then unknown."""
    ours = [each for each in points(vendors.GROUP) if each.value == "makeway_slurm_rules.vendor:VENDOR"]
    monkeypatch.setattr(vendors, "points", lambda group: ours)
    assert vendors.vendors.__wrapped__() == (VENDOR,)
    assert VENDOR.check is None
