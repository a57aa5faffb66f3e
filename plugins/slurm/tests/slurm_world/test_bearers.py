"""A job is told from another one that has its number now; the lines are as Slurm 22.05.8 showed a requeue."""

from __future__ import annotations

import pytest

from makeway_slurm_world.driving.bearers import Bearers
from makeway_slurm_world.reading.jobs import LiveJob, Zone, live_jobs
from makeway_slurm_world.reading.records import job_record

LINE = (
    "JobId=1 JobName=wrap UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A Priority=1 Nice=0 Account=(null) "
    "QOS=(null) JobState={state} Reason=None Dependency=(null) Requeue=1 Restarts={restarts} BatchFlag=1 "
    "RunTime=00:00:00 TimeLimit=UNLIMITED SubmitTime=2026-11-24T03:{submitted} "
    "EligibleTime=2026-11-24T03:{submitted} StartTime=Unknown Partition=low ReqNodeList=(null) ExcNodeList=(null) "
    "NodeList= NumNodes=1-1 NumCPUs=1 NumTasks=1 CPUs/Task=1 MinCPUsNode=1 MinMemoryCPU=100M Features=(null) "
    "OverSubscribe=OK Command=(null)"
)
RAN = ("RUNNING", 0, "41:56")
LEAVES = ("COMPLETING", 1, "41:56")
WAITS = ("PENDING", 1, "42:00")


def seen(state: str, restarts: int, submitted: str) -> LiveJob:
    """Return a job as Slurm shows it."""
    text = LINE.format(state=state, restarts=restarts, submitted=submitted)
    (job,) = live_jobs(job_record(text), Zone(wall=0.0), 0.0)
    return job


@pytest.mark.parametrize(
    ("shown", "another"),
    [
        pytest.param([RAN, LEAVES, WAITS], False, id="requeued, seen while it leaves"),
        pytest.param([RAN, WAITS], False, id="requeued between two looks"),
        pytest.param([RAN, LEAVES, RAN], False, id="Slurm lost the requeue"),
        pytest.param([RAN, ("PENDING", 0, "42:00")], True, id="Slurm lost the job"),
        pytest.param([WAITS, ("PENDING", 0, "43:00")], True, id="Slurm lost a job that was requeued before"),
        pytest.param([WAITS, ("RUNNING", 0, "43:00")], True, id="the other one runs already"),
    ],
)
def test_who_has_the_number(shown: list[tuple[str, int, str]], another: bool) -> None:
    """slurm-live 3: JobId, Restarts and SubmitTime together say which job it is."""
    bearers = Bearers()
    found = [bearers.is_another(seen(*each)) for each in shown]
    assert found == [*[False] * (len(shown) - 1), another]
