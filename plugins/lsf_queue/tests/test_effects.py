"""What is said of each way of making way, in LSF's states (lsf 3)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from makeway.model import PreemptMode
from makeway_lsf_queue.actions import plans


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (PreemptMode.SUSPEND, "SUSP_MBD_PREEMPT"),
        (PreemptMode.CHECKPOINT, "PEND_JOB_MIG (5), checkpointed"),
        (PreemptMode.REQUEUE, "PEND_JOB_REQUEUED (23), killed"),
        (PreemptMode.CANCEL, "TERM_PREEMPT"),
    ],
)
def test_each_mode_in_the_words_of_lsf(mode: PreemptMode, said: str) -> None:
    """And why, by the queue that says so."""
    job: Any = SimpleNamespace(partition=SimpleNamespace(name="night"))
    manner = SimpleNamespace(mode=mode, migrates=False, why="PREEMPTABLE")
    site: Any = SimpleNamespace(queue_of=lambda _: SimpleNamespace(manner=manner))
    (plan,) = plans([job], [mode], cast(Any, site))
    assert (plan.job, plan.mode) == (job, mode)
    assert plan.why.startswith(said)
    assert plan.why.endswith("; queue night: PREEMPTABLE")
