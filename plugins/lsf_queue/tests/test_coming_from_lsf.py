"""Hold docs/coming-from-lsf.md to the readers: every keyword that they know by name is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from makeway_lsf_queue.reader import keywords

PAGE = (Path(__file__).parents[3] / "docs" / "coming-from-lsf.md").read_text()
NAMED = {word for span in re.findall(r"`([^`]+)`", PAGE) for word in re.findall(r"[A-Z][A-Z0-9_/]+", span)}
# lsf 9.3, the files' parameters that matter for preemption.
SPEC = (
    *("PRIORITY PREEMPTION JOB_CONTROLS TERMINATE_WHEN BACKFILL INTERRUPTIBLE_BACKFILL SLOT_RESERVE").split(),
    *(
        "EXCLUSIVE QJOB_LIMIT UJOB_LIMIT HJOB_LIMIT PJOB_LIMIT RUNLIMIT RUNTIME RUN_WINDOW DISPATCH_WINDOW"
    ).split(),
    *(
        "QUEUE_NAME RERUNNABLE CHKPNT MIG REQUEUE_EXIT_VALUES SLA_GUARANTEES_IGNORE HOSTS USERS MAX_JOB_PREEMPT"
    ).split(),
    *(
        "MAX_JOB_PREEMPT_RESET MAX_TOTAL_TIME_PREEMPT NO_PREEMPT_INTERVAL PREEMPT_DELAY NO_PREEMPT_RUN_TIME"
    ).split(),
    *(
        "NO_PREEMPT_FINISH_TIME PREEMPT_FOR PREEMPT_JOBTYPE PREEMPTABLE_RESOURCES PREEMPTION_WAIT_TIME"
    ).split(),
    *(
        "USE_SUSP_SLOTS PARALLEL_SCHED_BY_SLOT MBD_SLEEP_TIME SBD_SLEEP_TIME JOB_ACCEPT_INTERVAL MXJ JL/U"
    ).split(),
    *("MAX_JOBS JL/P SLOTS SLOTS_PER_PROCESSOR JOBS MEM PER_USER PER_HOST PER_QUEUE QUEUES").split(),
    *("LSB_DISABLE_LIMLOCK_EXCL LSB_GPU_NEW_SYNTAX MAX_PREEMPT_JOBS PREEMPT_SLOT_SUSPEND").split(),
)
READ = (
    *(*keywords.QUEUE, *keywords.PARAMS, *keywords.PARAMS_OPENLAVA, *keywords.APPLICATION),
    *(*keywords.HOST, *keywords.USER, *keywords.LIMIT, *keywords.LSF_CONF),
)
NAMES = {"NAME", "HOST_NAME", "USER_NAME"}


@pytest.mark.parametrize("key", sorted({*SPEC, *READ} - NAMES))
def test_it_is_in_the_page(key: str) -> None:
    """Same, different, or absent: the page says so."""
    assert key in NAMED


def test_the_spec_is_known() -> None:
    """What lsf 9.3 lists is read, or known to be without an effect."""
    known = {*READ, *keywords.QUEUE_IDLE, *keywords.PARAMS_IDLE}
    assert sorted(set(SPEC) - known) == []
