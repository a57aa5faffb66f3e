"""What it costs to look at a running Slurm with many jobs, in seconds of CPU of makeway's own.

    python benchmarks/slurm_look.py [JOBS]

The texts are made up in the form in which Slurm 22.05.8 prints them; the controller's own cost is not in here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from makeway_slurm_world.driving.eyes import Eyes
from makeway_slurm_world.reading.jobs import Zone
from makeway_slurm_world.talking.runner import Answer, Reader
from makeway_slurm_world.talking.words import Question

JOB = (
    "JobId={number} JobName=wrap UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A Priority=1000 Nice=0 "
    "Account=(null) QOS=(null) JobState=PENDING Reason=Priority Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 "
    "Reboot=0 ExitCode=0:0 DerivedExitCode=0:0 RunTime=00:00:00 TimeLimit=1-00:00:00 TimeMin=N/A "
    "SubmitTime=2026-11-22T16:26:59 EligibleTime=2026-11-22T16:26:59 AccrueTime=2026-11-22T16:26:59 StartTime=Unknown "
    "EndTime=Unknown Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-22T16:27:01 Scheduler=Main "
    "Partition=low AllocNode:Sid=login:25564 ReqNodeList=(null) ExcNodeList=(null) NodeList= NumNodes=1 NumCPUs=4 "
    "NumTasks=4 CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=4,mem=400M,node=1,billing=4 Socks/Node=* "
    "NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 MinMemoryCPU=100M MinTmpDiskNode=0 Features=(null) "
    "DelayBoot=00:00:00 OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null) Command=(null) WorkDir=/tmp\n"
)


class Printed(Reader):
    """Answers from texts that lie ready."""

    def __init__(self, jobs: int) -> None:
        super().__init__({})
        self.records = "".join(JOB.format(number=number) for number in range(1, jobs + 1))
        self.rows = "".join(f"{number}|PENDING|Priority||N/A|{number}\n" for number in range(1, jobs + 1))

    def ask(self, question: Question, *, may_fail: bool = False) -> Answer:
        """Print what is asked for."""
        del may_fail
        words = question.words
        text = self.rows if words[0] == "squeue" else self.records if words[-1] == "job" else ""
        if words[-2:-1] == ("job",):
            text = JOB.format(number=words[-1])
        return Answer(code=0, out=text, err="")


def measured(call: Callable[[], object]) -> float:
    """Return the CPU seconds that a call takes."""
    before = time.process_time()
    call()
    return time.process_time() - before


def main() -> None:
    """Measure a read of everything, a look at which nothing changed, and one at which one job did."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    printed = Printed(jobs)
    eyes = Eyes(printed, Zone(wall=0.0), frozenset(("n1",)), "makeway", 1e9)
    print(f"{jobs:,} jobs, read whole: {measured(lambda: eyes.look(0.0)):.3f} s")
    print(f"nothing changed: {measured(lambda: eyes.look(1.0)):.3f} s")
    printed.rows = printed.rows.replace("1|PENDING|Priority", "1|PENDING|Resources", 1)
    print(f"one job changed: {measured(lambda: eyes.look(2.0)):.3f} s")


if __name__ == "__main__":
    main()
