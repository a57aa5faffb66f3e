"""What the mutation run changes, and with which tests, is there; the run itself is nightly (`.ci/nightly mutants`)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TARGETS: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "tests/mutation/targets.toml").read_text())


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_has_its_modules_and_tests(name: str) -> None:
    """A folder that moved would leave nothing to change, and nothing to notice it."""
    target = TARGETS[name]
    assert [pattern for pattern in target["modules"] if not any(ROOT.glob(pattern))] == []
    assert [path for path in target["tests"] if not (ROOT / path).exists()] == []


def test_a_change_that_alters_nothing_is_of_a_line_that_is_there() -> None:
    """Else the run ends before it has begun."""
    entries = tomllib.loads((ROOT / "tests/mutation/equivalent.toml").read_text())["mutant"]
    assert entries
    for entry in entries:
        assert entry["line"] in map(str.strip, (ROOT / entry["module"]).read_text().splitlines())


def test_the_engine_and_the_policies_of_all_vendors_are_targets() -> None:
    """Engine, backfill, preempt policies, selectors, the search, Slurm, Moab, LSF and Kueue."""
    wanted = {
        "engine",
        "preempt_partition_prio",
        "preempt_qos",
        "select_linear",
        "select_cons_tres",
        "moab_qos",
        "lsf_queue",
        "backfill",
        "slurm",
        "kueue_cohort",
        "search_least_disruption",
    }
    assert wanted - set(TARGETS) == set()
