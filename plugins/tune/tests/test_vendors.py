"""A site whose best settings are worked out by hand, in the files of each scheduler.

A node of 4 CPUs. Every two hours a job of 50 minutes begins on all of them, and 40 minutes later an urgent one of 5
minutes comes, which takes them: 40 minutes of 4 CPUs are lost twelve times a day, 32 core-hours. Where the urgent one
waits instead, it waits 10 minutes. In Kueue none has a priority, so that no job is of a lower one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Tune = Callable[..., Result]

LSF = {
    "lsb.hosts": "Begin Host\nHOST_NAME MXJ\nn1 4\nEnd Host\n",
    "lsb.queues": """\
Begin Queue
QUEUE_NAME = batch
PRIORITY = 10
PREEMPTION = PREEMPTABLE
RERUNNABLE = yes
JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID]
End Queue
Begin Queue
QUEUE_NAME = urgent
PRIORITY = 40
PREEMPTION = PREEMPTIVE[batch]
End Queue
""",
}
MOAB = {
    "moab.cfg": """\
RMCFG[base] TYPE=PBS
PREEMPTPOLICY REQUEUE
QOSWEIGHT 1
CREDWEIGHT 1
CLASSCFG[batch] QDEF=low
CLASSCFG[urgent] QDEF=high
QOSCFG[low] QFLAGS=PREEMPTEE PRIORITY=1 JOBFLAGS=RESTARTABLE
QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=100000
NODECFG[n1] PROCS=4 MEMORY=1000
"""
}
QUEUE = """\
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: {name}
spec:
  cohortName: everybody
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: cores
      resources:
      - name: cpu
        nominalQuota: {quota}
  preemption:
    withinClusterQueue: Never
    reclaimWithinCohort: {reclaim}
"""
KUEUE = {
    "kueue.yaml": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata:\n  name: cores\n"
    + QUEUE.format(name="batch", quota=0, reclaim="Never")
    + QUEUE.format(name="urgent", quota=4, reclaim="Any")
}


@pytest.mark.parametrize(
    ("files", "config", "only", "change"),
    [
        (
            LSF,
            "lsb.queues",
            "NO_PREEMPT_RUN_TIME",
            ["+Begin Parameters", "+NO_PREEMPT_RUN_TIME = 30", "+End Parameters"],
        ),
        (MOAB, "moab.cfg", "JOBPREEMPTMINACTIVETIME", ["+JOBPREEMPTMINACTIVETIME 01:00:00"]),
        (
            KUEUE,
            "kueue.yaml",
            "urgent reclaimWithinCohort",
            ["-    reclaimWithinCohort: Any", "+    reclaimWithinCohort: LowerPriority"],
        ),
    ],
    ids=["lsf", "moab", "kueue"],
)
def test_what_protects_long_jobs_is_recommended(
    tune: Tune, tmp_path: Path, files: dict[str, str], config: str, only: str, change: list[str]
) -> None:
    """With the change in the scheduler's own words, nothing is lost any more, and urgent jobs wait 10 minutes."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    rows = [
        f"{2 * hour + at} {7200 * hour + after} -1 {run} 4 -1 -1 4 7200 -1 1 {at} 1 1 {at} {at} -1 -1"
        for hour in range(252)
        for at, after, run in ((1, 0, 3000), (2, 2400, 300))
    ]
    (tmp_path / "log.swf").write_text("; UnixStartTime: 0\n" + "\n".join(rows) + "\n")
    mapped = ("--map", "queue=1:batch", "--map", "queue=2:urgent")
    goals = ("--minimise", "lost-hours", "--keep", "wait[urgent].max<=12min")
    found = tmp_path / "found.json"
    result = tune(tmp_path / config, tmp_path / "log.swf", *mapped, *goals, "--only", only, "--json", found)
    assert result.exit_code == 0, result.output
    told = json.loads(found.read_text())
    today, best = told["candidates"]
    assert told["recommended"] == best["name"]
    lines = [each for each in best["diff"].splitlines() if each[0] in "+-" and each[:3] not in ("+++", "---")]
    assert lines == change
    assert lost(today) == pytest.approx(32.0, rel=0.02)
    assert lost(best) == 0.0
    assert longest(best) == pytest.approx(600.0, abs=61.0)


def lost(candidate: dict[str, list[dict[str, object]]]) -> object:
    """Return the core-hours lost a day."""
    return next(each["value"] for each in candidate["figures"] if each["measure"] == "lost-hours")


def longest(candidate: dict[str, list[dict[str, object]]]) -> object:
    """Return the longest wait of urgent jobs."""
    return next(each["value"] for each in candidate["figures"] if each["stat"] == "max")
