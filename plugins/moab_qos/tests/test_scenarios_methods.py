"""Scenarios 25 to 43: methods and escalation, throttles, suspended jobs."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import Config
from makeway.model import JobSpec, JobState
from makeway.settings import structure
from makeway.worlds.events import Command
from makeway_app.replay import Options, replay

PAIR = ("L(low,4p,q10)", "H(high,4p,q0)")
SUSPEND = "PREEMPTPOLICY SUSPEND\n"
SUSPENDABLE = SUSPEND + "QOSCFG[low] JOBFLAGS=SUSPENDABLE\n"
BARE = "QOSCFG[low] JOBFLAGS-=RESTARTABLE\n"


# ---------------------------------------------------------------------------------------- methods
def test_25_suspend(play: Any) -> None:
    """L stops and keeps its memory; H runs."""
    run = play("L(low,4p,q10,mem=100)", "H(high,4p)", SUSPENDABLE, nodes="n1=4//8192")
    assert run.victims == [("L", "suspend")]
    assert run.state("L") is JobState.SUSPENDED
    assert run.started("H") == 0
    assert run.table.engine.selector.books.memory == [100]


def test_26_escalate_to_requeue(play: Any) -> None:
    """L is not SUSPENDABLE, but RESTARTABLE; the record says why."""
    run = play(*PAIR, SUSPEND)
    assert run.victims == [("L", "requeue")]
    assert "suspend -> requeue: not SUSPENDABLE" in run.table.run.recorder.preemptions[0].why


@pytest.mark.parametrize("rm", ["", "RMCFG[base] TYPE=SLURM", "RMCFG[base] TYPE=HAL9000"])
@pytest.mark.parametrize(("flags", "mode"), [("JOBFLAGS=RESTARTABLE", "requeue"), ("", "cancel")])
def test_a_job_that_cannot_be_suspended_is_requeued_or_cancelled(
    read: Any, rm: str, flags: str, mode: str
) -> None:
    """As the guide says (5.3): no job is known to checkpoint, so CHECKPOINT is no stop on the way."""
    lines = [
        *("PREEMPTPOLICY SUSPEND", "QOSWEIGHT 1", "NODECFG[n1] PROCS=4", rm),
        *(
            "QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=1000",
            f"QOSCFG[low] QFLAGS=PREEMPTEE PRIORITY=100 {flags}",
        ),
    ]
    assert played(read, lines) == [("L", mode)]


def test_a_resource_manager_that_checkpoints_is_a_stop_on_the_way(read: Any) -> None:
    """A site that gives it a signal for that says so (5.3, U8); LoadLeveler can by the guide's table."""
    lines = [
        *("PREEMPTPOLICY SUSPEND", "QOSWEIGHT 1", "NODECFG[n1] PROCS=4"),
        *("QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=1000", "QOSCFG[low] QFLAGS=PREEMPTEE JOBFLAGS=RESTARTABLE"),
    ]
    assert played(read, [*lines, "RMCFG[base] CHECKPOINTSIG=SIGUSR1"]) == [("L", "checkpoint")]
    assert played(read, [*lines, "RMCFG[base] TYPE=LL"]) == [("L", "checkpoint")]


def played(read: Any, lines: list[str]) -> list[tuple[str, str]]:
    """Return what makes way, and how, where L of QoS low fills the node and H of QoS high comes at 10 s."""
    config = structure(read("\n".join(lines)).tables, Config, "moab.cfg")
    jobs = [
        JobSpec(id=name, user=f"u_{name}", qos=qos, tasks=4, submit_at=at, run_time=100.0, time_limit=100.0)
        for name, qos, at in (("L", "low", 0.0), ("H", "high", 10.0))
    ]
    run = replay(config, jobs, [], Options())
    return [(each.victim, each.mode.value) for each in run.recorder.preemptions]


@pytest.mark.parametrize(
    "lines", [SUSPEND + BARE, BARE], ids=["27: suspend, neither flag", "28: requeue, not RESTARTABLE"]
)
def test_27_and_28_escalate_to_cancel(play: Any, lines: str) -> None:
    """A job that can do nothing else is cancelled."""
    assert play(*PAIR, lines).victims == [("L", "cancel")]


def test_29_never_less_disruptive(play: Any) -> None:
    """CANCEL cancels even a job that could be suspended."""
    assert play(*PAIR, SUSPENDABLE + "PREEMPTPOLICY CANCEL").victims == [("L", "cancel")]


def test_30_the_resource_manager_lacks_the_rung(play: Any) -> None:
    """PBS cannot checkpoint: the next rung is requeue, never back to suspend."""
    run = play(*PAIR, SUSPENDABLE + "PREEMPTPOLICY CHECKPOINT")
    assert run.victims == [("L", "requeue")]


def test_31_methods_are_mixed(play: Any) -> None:
    """Each victim has its own."""
    more = SUSPEND
    run = play("S(low,2p,flags=SUSPENDABLE) V(low,2p)", "H(high,4p)", more)
    assert sorted(run.victims) == [("S", "suspend"), ("V", "requeue")]


MEMORY = ("L(low,4p,mem=6144)", "H(high,4p,mem=4096)")


def test_32_suspension_frees_no_memory(play: Any) -> None:
    """Without the option no job is preempted: H would not fit beside L's memory."""
    run = play(*MEMORY, SUSPENDABLE, nodes="n1=4//8192", settings={"escalate_for_resources": False})
    assert run.victims == []
    check = run.code("H", "K22")
    assert check.verdict == "fail"
    assert "L would keep 6144 MB" in check.found


def test_32_escalate_for_resources(play: Any) -> None:
    """L is requeued instead: suspension escalates "if necessary to preempt and free up resources"."""
    run = play(*MEMORY, SUSPENDABLE, nodes="n1=4//8192")
    assert run.victims == [("L", "requeue")]
    assert run.started("H") == 0


def test_33_interactive(play: Any) -> None:
    """Safe from a requeue, not from a cancel."""
    running = "L(low,4p,flags=INTERACTIVE)"
    run = play(running, "H(high,4p)")
    assert run.victims == []
    assert run.code("H", "K14").verdict == "fail"
    assert play(running, "H(high,4p)", "PREEMPTPOLICY CANCEL").victims == [("L", "cancel")]


def test_34_bookkeeping(play: Any) -> None:
    """Idle again, one restart, queue time from zero, 4 x 3600 processor-seconds lost."""
    from makeway_moab_qos.priority import start_priority

    run = play(*PAIR, until=0.5)
    history = run.table.history("L")
    job = history.job
    assert (run.state("L"), job.restarts, job.preemptions) == (JobState.PENDING, 1, 1)
    ledger = run.table.engine.ledger
    assert start_priority(job, ledger, ledger.now) == 100
    assert history.lost == 14400.0


# -------------------------------------------------------------------------------------- throttles
LEAST = "JOBPREEMPTMINACTIVETIME 00:10:00\n"


def test_35_minimum_active_time(play: Any) -> None:
    """After 599 s it is safe for one more second."""
    young = play("L(low,4p,q10,ran=599)", "H(high,4p)", LEAST, until=0.5)
    assert young.victims == []
    assert "eligible in 1 s" in young.code("H", "K13").found
    assert play("L(low,4p,q10,ran=599)", "H(high,4p)", LEAST).started("H") == 1.0
    assert play("L(low,4p,q10,ran=600)", "H(high,4p)", LEAST, until=0.5).victims == [("L", "requeue")]


def test_36_a_resume_restarts_the_clock(play: Any) -> None:
    """It ran for two hours, but was resumed 60 s ago."""
    commands = [(-120.0, Command("suspend", "L")), (-60.0, Command("resume", "L"))]
    running = "L(low,4p,ran=7200,flags=SUSPENDABLE)"
    run = play(running, "H(high,4p)", LEAST, commands=commands)
    assert run.victims == []
    assert "active for 60 s" in run.code("H", "K13").found
    assert play(running, "H(high,4p)", LEAST).victims == [("L", "requeue")]


@pytest.mark.parametrize(("ran", "goes"), [(3600, True), (3601, False)])
def test_37_maximum_active_time(play: Any, ran: int, goes: bool) -> None:
    """The end is inclusive."""
    run = play(f"L(low,4p,ran={ran})", "H(high,4p)", "JOBPREEMPTMAXACTIVETIME 01:00:00")
    assert bool(run.victims) is goes


def test_38_a_veto_makes_it_infeasible(play: Any) -> None:
    """b is too young, and a alone does not suffice."""
    run = play("a(low,2p,ran=5000) b(low,2p,ran=100)", "H(high,4p)", LEAST)
    assert run.victims == []


# --------------------------------------------------------------------------------- suspended jobs
def test_39_hold_down(play: Any) -> None:
    """H ends after 20 s; L goes on 60 s after its suspension."""
    run = play("L(low,4p,q10)", "H(high,4p,run=20)", SUSPENDABLE, until=100.0)
    assert run.moves("L") == ["0 suspend for H", "60 resume"]


def test_40_own_nodes_only(play: Any) -> None:
    """n2 is idle, but L sits on n1."""
    run = play("L(low,4p,node=n1)", "H(high,4p,node=n1,run=500)", SUSPENDABLE, nodes="n1=4 n2=4", until=100.0)
    assert run.state("L") is JobState.SUSPENDED
    assert run.moves("L") == ["0 suspend for H"]


def test_41_a_suspended_job_is_no_victim(play: Any) -> None:
    """M runs where L is suspended; H2 finds none to displace."""
    commands = [(-100.0, Command("suspend", "L"))]
    running = "L(low,4p,ran=3600,flags=SUSPENDABLE) M(med,4p,ran=99)"
    run = play(running, "H2(high,4p)", "CHECKSUSPENDEDJOBPRIORITY FALSE", commands=commands)
    assert run.victims == []
    assert run.code("H2", "K19").verdict == "warning"


def test_42_minadminstime(play: Any) -> None:
    """The hold-down is what the site says."""
    more = SUSPENDABLE + "MINADMINSTIME 00:05:00"
    run = play("L(low,4p,q10)", "H(high,4p,run=20)", more, until=400.0)
    assert run.moves("L") == ["0 suspend for H", "300 resume"]


def test_43_resume_comes_before_the_queue(play: Any) -> None:
    """K ranks higher, but H's end lets L go on first."""
    run = play("L(low,4p,q10)", "H(high,4p,run=100) K(med,4p,at=50)", SUSPENDABLE, until=150.0)
    assert run.moves("L") == ["0 suspend for H", "100 resume"]
    assert run.started("K") is None
