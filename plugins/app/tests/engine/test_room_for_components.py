"""What may make way for a component of a het job: nothing where a plugin says that preempting is no answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from makeway.model import Candidates, Job, PreemptMode
from makeway_engine.placing.search import Search


@pytest.mark.parametrize(
    ("candidates", "why"),
    [(0, ""), (0, "licences are no reason"), (1, "licences are no reason")],
    ids=["nothing is there", "neither", "they would not help"],
)
def test_no_job_is_chosen(candidates: int, why: str) -> None:
    """The search is not even asked (slurm-preemption 1.11)."""
    jobs = cast(tuple[Job, ...], (SimpleNamespace(id="v"),) * candidates)
    found = Candidates(jobs=jobs, modes=(PreemptMode.REQUEUE,) * candidates)

    def choose(*_: object) -> None:
        raise AssertionError

    search: Any = SimpleNamespace(
        _order=SimpleNamespace(candidates=lambda job: found, not_for=lambda job, listed: why), choose=choose
    )
    assert Search.find_room(search, cast(Job, SimpleNamespace(id="p")), 1) is None
