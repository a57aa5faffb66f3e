"""What the engine keeps for a while: the last jobs to end, and sums of what is held."""

from __future__ import annotations

from typing import Any, cast

import pytest

from makeway.engine.echoes import ENDS_KEPT, Echoes
from makeway.engine.usage import UsageBooks
from makeway.model import Allocation, JobState
from makeway_testing import builders


def test_the_last_to_end_are_remembered() -> None:
    """As many as are kept, all of them; of one more the first is forgotten."""
    echoes = Echoes(cast(Any, None), cast(Any, None), told=False)
    jobs = [str(at) for at in range(ENDS_KEPT + 1)]
    echoes.note_ended(jobs[:-1])
    assert echoes.ended == jobs[:-1]
    echoes.note_ended(jobs[-1:])
    assert echoes.ended == jobs[1:]


@pytest.mark.parametrize(("running", "held"), [(True, 1), (False, 2)])
def test_sums_that_are_first_asked_for_while_a_job_is_suspended(running: bool, held: int) -> None:
    """Of two active jobs one runs."""
    cluster = builders.build_cluster(builders.config(builders.cluster(2)))
    jobs = [
        builders.job(
            str(index),
            state=state,
            allocation=Allocation(nodes=1 << index, node_indices=(index,), shared=True),
        )
        for index, state in enumerate((JobState.RUNNING, JobState.SUSPENDED))
    ]
    usage = UsageBooks(cluster, jobs).of("user", running=running)
    assert sum(each.jobs for each in usage.values()) == held
