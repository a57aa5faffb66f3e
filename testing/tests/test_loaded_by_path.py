"""The rule on hash seeds holds a module that was loaded by path, which no other process finds by its name."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from makeway_testing.contracts import PreemptPolicyContract

SOURCE = """\
from makeway.hookspecs import hookimpl
from makeway.model import Candidates, PreemptMode


@hookimpl
def makeway_preempt_candidates(preemptor, active):
    tier = preemptor.partition.priority_tier
    jobs = [job for job in active if job.partition.priority_tier < tier]{order}
    return Candidates(jobs=tuple(jobs), modes=(PreemptMode.REQUEUE,) * len(jobs))
"""


def contract(tmp_path: Path, order: str = "") -> PreemptPolicyContract:
    """Return the contract of a policy in a file that is on no path."""
    file = tmp_path / "policy_of_a_file.py"
    file.write_text(SOURCE.format(order=order))
    spec = importlib.util.spec_from_file_location("policy_of_a_file", file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)

    class ByPath(PreemptPolicyContract):
        plugin = "preempt/by_path"
        module = loaded
        examples = 20

    return ByPath()


@pytest.mark.slow
def test_a_correct_one_passes(tmp_path: Path) -> None:
    """It was a RuntimeError of the other process."""
    contract(tmp_path).test_hash_seeds_change_nothing()


@pytest.mark.slow
def test_a_wrong_one_is_seen(tmp_path: Path) -> None:
    """Candidates in the order of a set of ids."""
    order = "\n    jobs = [next(job for job in jobs if job.id == one) for one in {job.id for job in jobs}]"
    with pytest.raises(AssertionError, match="hash seed"):
        contract(tmp_path, order).test_hash_seeds_change_nothing()
