"""Flags of QoS, limits they ignore, backfill's order and depth, reservations, SUSPENDRESOURCES (spec moab 7, 10)."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.model import JobState
from makeway_moab_qos.priority import bypassed, start_priority

ONE_HOUR = "A(med,1p,run=7200,limit=7200)"
"""Ends one hour after the others come."""
BLOCKED = "B(med,4p)"
SHORT = "run=1800,limit=1800"


def _when(run: Any, *jobs: str) -> list[float | None]:
    return [run.started(job) for job in jobs]


# ------------------------------------------------------------------------------------- QFLAGS
def test_nobf(play: Any) -> None:
    """Never backfilled, though there is room; it starts in its turn all the same."""
    more = "QOSCFG[low] QFLAGS=NOBF"
    assert _when(play(ONE_HOUR, f"{BLOCKED} L(low,1p,{SHORT})"), "L") == [0]
    assert _when(play(ONE_HOUR, f"{BLOCKED} L(low,1p,{SHORT})", more), "L") == [None]
    assert _when(play(ONE_HOUR, f"L(low,1p,{SHORT})", more), "L") == [0]


def test_noreservation(play: Any) -> None:
    """Nothing is kept for B, so that L starts although it will be in B's way."""
    long = "L(low,3p,run=36000,limit=36000)"
    assert _when(play(ONE_HOUR, f"{BLOCKED} {long}"), "L") == [None]
    more = "QOSCFG[med] PRIORITY=500 QFLAGS=NORESERVATION"
    assert _when(play(ONE_HOUR, f"{BLOCKED} {long}", more), "L") == [0]


def test_reservealways(play: Any) -> None:
    """The second in the queue holds a reservation too, beyond a depth of 1: L would end after C's start."""
    # A ends at 3600 s; B takes n1 then; C wants n2, which D leaves at 7200 s; L would hold n2 for ten hours.
    running = "A(med,4p,node=n1,run=7200,limit=7200) D(med,1p,node=n2,run=10800,limit=10800)"
    waiting = "B(med,4p,node=n1) C(keep,4p,node=n2) L(low,3p,node=n2,run=36000,limit=36000)"
    nodes = "n1=4 n2=4"
    plain = "QOSCFG[keep] PRIORITY=200"
    assert _when(play(running, waiting, plain, nodes=nodes), "L") == [0]
    assert _when(play(running, waiting, f"{plain} QFLAGS=RESERVEALWAYS", nodes=nodes), "L") == [None]
    assert _when(play(running, waiting, f"{plain}\nRESERVATIONDEPTH 2", nodes=nodes), "L") == [None]


def test_dedicated(play: Any) -> None:
    """Only nodes that are idle, and nobody beside it."""
    more = "QOSCFG[alone] PRIORITY=700 QFLAGS=DEDICATED"
    run = play("A(med,1p,node=n1)", "D(alone,1p) M(med,1p)", more, nodes="n1=4 n2=4")
    assert _when(run, "D", "M") == [0, 0]
    view = run.table.engine.ledger
    assert view.job("D").nodes == 0b10
    assert view.job("M").nodes == 0b01


def test_usereserved(play: Any) -> None:
    """Only inside reservations that the job may use, or inside the one that is named."""
    more = (
        "SRCFG[chem] HOSTLIST=n2 ACCOUNTLIST=jup\nSRCFG[open] HOSTLIST=n3 ACCOUNTLIST=jup,sat\n"
        "QOSCFG[any] PRIORITY=300 QFLAGS=USERESERVED\nQOSCFG[one] PRIORITY=300 QFLAGS=USERESERVED:open\n"
    )
    for qos, account, nodes in (("any", "jup", 0b010), ("one", "jup", 0b100), ("any", "sat", 0b100)):
        run = play("", f"J({qos},1p,account={account})", more, nodes="n1=4 n2=4 n3=4")
        assert run.table.engine.ledger.job("J").nodes == nodes, (qos, account)
    assert _when(play("", "J(any,1p,account=ura)", more, nodes="n1=4 n2=4 n3=4"), "J") == [None]


@pytest.mark.parametrize(
    ("flag", "starts"), [("IGNUSER", 0), ("IGNALL", 0), ("IGNGROUP", None), ("NTR", None)]
)
def test_limits_that_a_qos_ignores(play: Any, flag: str, starts: float | None) -> None:
    """The user may have one job; the QoS of the second one may ignore that."""
    more = f"USERCFG[ann] MAXJOB=1\nQOSCFG[free] PRIORITY=500 QFLAGS={flag}"
    assert _when(play("A(med,1p,user=ann)", "J(free,1p,user=ann)", more), "J") == [starts]


def test_runnow(play: Any) -> None:
    """A preemptor above the cap of computed priorities; the amount is a setting."""
    more = "QOSCFG[now] QFLAGS=RUNNOW"
    run = play("L(low,4p,q10)", "N(now,4p)", more, until=0.0)
    assert run.victims == [("L", "requeue")]
    view = run.table.engine.ledger
    assert start_priority(run.table.history("N").job, view, view.now) == 1_000_000_001
    assert play("L(low,4p,q10)", "N(now,4p)", more, settings={"runnow_priority": 0}).victims == []
    assert play("L(low,4p,q10)", "N(now,4p)", more, maui=True, until=120.0).victims == []


# ------------------------------------------------------------------------------------ backfill
def test_backfilldepth(play: Any) -> None:
    """Of the jobs after B only the first is looked at."""
    waiting = f"{BLOCKED} C(med,4p,q0) L(low,1p,{SHORT})"
    assert _when(play(ONE_HOUR, waiting), "L") == [0]
    assert _when(play(ONE_HOUR, waiting, "BACKFILLDEPTH 2"), "L") == [0]
    assert _when(play(ONE_HOUR, waiting, "BACKFILLDEPTH 1"), "L") == [None]


def test_bestfit_takes_the_widest_first(play: Any) -> None:
    """Three processors are idle; the one that asks for most fits best."""
    waiting = f"{BLOCKED} K(low,1p,q9,{SHORT}) L(low,3p,{SHORT})"
    assert _when(play(ONE_HOUR, waiting), "K", "L") == [0, None]
    assert _when(play(ONE_HOUR, waiting, "BACKFILLPOLICY BESTFIT"), "K", "L") == [None, 0]


def test_bypass(play: Any) -> None:
    """B was passed by once; BYPASSWEIGHT 7 makes that 7 points."""
    more = "BYPASSWEIGHT 7\nQUEUETIMEWEIGHT 0"
    run = play(ONE_HOUR, f"{BLOCKED} L(low,1p,{SHORT}) K(med,4p,at=5)", more, until=10.0)
    view = run.table.engine.ledger
    job = run.table.history("B").job
    assert bypassed(job, view) == 1
    assert start_priority(job, view, view.now) == 507


def test_reservations_outlast_the_lead_under_highest(play: Any) -> None:
    """B held the reservation first; C, which comes later and ranks higher, does not take it away."""
    running = "A(med,4p,node=n1,run=7200,limit=7200) D(med,1p,node=n2,run=10800,limit=10800)"
    waiting = "C(med,4p,node=n2) B(up,4p,node=n1,at=10) L(low,3p,node=n2,at=20,run=36000,limit=36000)"
    up = "QOSCFG[up] PRIORITY=900"
    assert _when(play(running, waiting, up, nodes="n1=4 n2=4", until=30.0), "L") == [20]
    more = f"{up}\nRESERVATIONPOLICY HIGHEST"
    assert _when(play(running, waiting, more, nodes="n1=4 n2=4", until=30.0), "L") == [None]


@pytest.mark.parametrize(
    ("lines", "priority"),
    [
        ("JOBPRIOACCRUALPOLICY QUEUEPOLICY", 500),
        ("JOBPRIOACCRUALPOLICY QUEUEPOLICY\nUSESYSTEMQUEUETIME ON", 500),
        ("JOBPRIOACCRUALPOLICY ALWAYS", 530),
    ],
)
def test_when_queue_time_begins(play: Any, lines: str, priority: int) -> None:
    """Submitted half an hour before it may start."""
    run = play("A(med,4p)", "B(med,4p,q30)", lines)
    view = run.table.engine.ledger
    assert start_priority(run.table.history("B").job, view, view.now) == priority


def test_usesystemqueuetime_counts_where_no_policy_is_given(settings_of: Any) -> None:
    """It is superseded by JOBPRIOACCRUALPOLICY, and stands for ALWAYS."""
    assert settings_of("USESYSTEMQUEUETIME ON")["use_system_queue_time"] is True


# -------------------------------------------------------------------------- suspended jobs' resources
SUSPEND = "PREEMPTPOLICY SUSPEND\nQOSCFG[low] JOBFLAGS=SUSPENDABLE\n"
TIGHT = ("L(low,4p,mem=6144)", "H(high,4p,mem=4096)")


def test_suspendresources_without_memory(play: Any) -> None:
    """Memory is given back, so that H fits beside L's; L goes on once it is there again."""
    run = play(
        TIGHT[0],
        "H(high,4p,mem=4096,run=100)",
        SUSPEND + "SUSPENDRESOURCES SWAP",
        nodes="n1=4//8192",
        until=150.0,
    )
    assert run.victims == [("L", "suspend")]
    assert run.moves("L") == ["0 suspend for H", "100 resume"]
    assert play(*TIGHT, SUSPEND + "SUSPENDRESOURCES MEM,SWAP", nodes="n1=4//8192").victims == []


@pytest.mark.parametrize("words", ["PROC,MEM", "NODE"])
def test_suspendresources_with_processors(play: Any, words: str) -> None:
    """Suspension would free nothing: nobody is suspended, and the check list says why."""
    run = play("L(low,4p)", "H(high,4p)", f"{SUSPEND}SUSPENDRESOURCES {words}")
    assert run.victims == []
    check = run.code("H", "K22")
    assert (check.verdict, check.setting) == ("fail", 'policy.settings."moab/qos".suspend_resources')


def test_suspendresources_of_another_partition(play: Any) -> None:
    """The index names a partition."""
    assert play("L(low,4p)", "H(high,4p)", f"{SUSPEND}SUSPENDRESOURCES[else] PROC").victims == [
        ("L", "suspend")
    ]
    assert play("L(low,4p)", "H(high,4p)", f"{SUSPEND}SUSPENDRESOURCES[batch] PROC").victims == []


def test_processors_stay_booked_by_hand_too(play: Any) -> None:
    """Whoever suspends a job, its processors are not given to others."""
    from makeway.events import Command

    commands = [(0.0, Command("suspend", "L"))]
    running = "L(med,4p,flags=SUSPENDABLE)"
    run = play(running, "M(med,4p,at=5)", "SUSPENDRESOURCES PROC", commands=commands, until=30.0)
    assert run.state("L") is JobState.SUSPENDED
    assert run.started("M") is None
    free = play(running, "M(med,4p,at=5)", "CHECKSUSPENDEDJOBPRIORITY FALSE", commands=commands, until=30.0)
    assert free.started("M") == 5


# --------------------------------------------------------------------------------- reservations
def test_a_reservation_lies_on_the_hosts_that_were_asked_for(play: Any) -> None:
    """C wants all of n2 and something of n1 at 7200 s, so that M may not stay there, but L on n1 may."""
    running = "A(med,2p,node=n1,run=10800,limit=10800) D(med,1p,node=n2,run=10800,limit=10800)"
    long = "run=36000,limit=36000"
    waiting = f"C(med,6p,node=n2) L(low,2p,node=n1,{long}) M(low,1p,node=n2,{long})"
    assert _when(play(running, waiting, nodes="n1=4 n2=4"), "C", "L", "M") == [None, 0, None]


def test_a_reservation_counts_memory(play: Any) -> None:
    """B waits for memory until A ends, not for processors: L may have them until then."""
    running = "A(med,1p,mem=6000,run=7200,limit=7200)"
    run = play(running, f"B(med,1p,mem=4000) L(low,3p,{SHORT})", nodes="n1=4//8192")
    assert _when(run, "B", "L") == [None, 0]


@pytest.mark.parametrize("line", ["JOBATTRLIST=PREEMPTEE", "ACCOUNTLIST=jup FLAGS=PREEMPTEE"])
def test_reservations_open_to_preemptees(play: Any, line: str) -> None:
    """L carries the flag, M does not."""
    run = play("", "L(low,1p) M(med,1p)", f"SRCFG[r] HOSTLIST=n1 {line}")
    assert _when(run, "L", "M") == [0, None]


# --------------------------------------------------------------------------------------- signals
def test_suspendsig(play: Any) -> None:
    """The world is told which signal stops the job."""
    run = play("L(low,4p)", "H(high,4p)", SUSPEND + "RMCFG[base] SUSPENDSIG=SIGSTOP")
    (entry,) = run.table.run.recorder.preemptions
    assert entry.why.endswith("SUSPENDSIG STOP")
