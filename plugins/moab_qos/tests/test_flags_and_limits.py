"""Flags of QoS, limits they ignore, backfill's order and depth, reservations, SUSPENDRESOURCES (moab 7, 10)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from makeway.model import JobState
from makeway_moab_qos.expressions import jobs_named
from makeway_moab_qos.priority import bypassed, start_priority
from makeway_moab_qos.reservations import lock_end

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
    """Only nodes that are idle, and no job beside it."""
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


@pytest.mark.parametrize(
    ("limit", "starts"),
    [
        pytest.param("MAXPROC=5", None, id="3 + 3 processors are more than 5"),
        pytest.param("MAXPROC=6", 0, id="and no more than 6"),
        pytest.param("MAXNODE=1", None, id="they would be on two nodes"),
        pytest.param("MAXNODE=2", 0, id="which may be"),
        pytest.param("MAXJOB=1", None, id="two jobs"),
    ],
)
def test_what_a_limit_counts(play: Any, limit: str, starts: float | None) -> None:
    """Processors, nodes, or jobs; here one node has four processors, and a job takes three."""
    run = play("A(med,3p,user=ann)", "J(med,3p,user=ann)", f"USERCFG[ann] {limit}", nodes="n1=4 n2=4")
    assert _when(run, "J") == [starts]


def test_a_lock_needs_a_waiting_job_that_asked(play: Any) -> None:
    """Section 7.1: only a pending job keeps nodes, and only those that it has had freed."""
    view = play("A(med,4p)", "W(med,4p)").table.engine.ledger
    waiting = attrs.evolve(view.job("W"), asked_at=10.0, asked_nodes=0b1)
    assert lock_end(waiting, view) is not None
    for other in ({"asked_at": None}, {"asked_nodes": 0}, {"state": JobState.RUNNING}):
        assert lock_end(attrs.evolve(waiting, **other), view) is None


def test_commands_name_jobs(play: Any) -> None:
    """A plain id that no job has is the command's business; an expression that fits no job names none."""
    view = play("A(med,1p)", "B(med,4p)").table.engine.ledger
    assert jobs_named("nobody", "cancel", None, view) is None
    assert jobs_named("x[0-9]+", "cancel", None, view) == []
    assert jobs_named("A,B", "cancel", None, view) == ["A", "B"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("-w state=running", ["A", "C"]),
        ("-w state=idle", ["B"]),
        ("-w state=gone", []),
        ("-w user=ann", ["B"]),
        ("-w state=idle -w user=bob", ["C", "B"]),
        ("-w colour=red", []),
    ],
)
def test_commands_describe_jobs(play: Any, words: str, found: list[str]) -> None:
    """Several words are joined by or (2.1); A and C run, and B waits."""
    view = play("A(med,1p) C(med,1p,user=bob)", "B(med,4p,user=ann)").table.engine.ledger
    assert jobs_named(words, "cancel", None, view) == found
    assert jobs_named(words, "requeue", None, view) == []


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


def test_bfprioritypolicy_takes_the_shortest_first(play: Any) -> None:
    """Under BACKFILLPOLICY PREEMPT; three processors are idle, and either of two jobs would fill them."""
    waiting = f"{BLOCKED} K(low,3p,q9,run=1800,limit=3600) L(low,3p,{SHORT})"
    more = "BACKFILLPOLICY PREEMPT\n"
    assert _when(play(ONE_HOUR, waiting, more), "K", "L") == [0, None]
    assert _when(play(ONE_HOUR, waiting, more + "BFPRIORITYPOLICY DURATION"), "K", "L") == [None, 0]


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
    kept = play(*TIGHT, SUSPEND + "SUSPENDRESOURCES MEM,SWAP", nodes="n1=4//8192")
    assert kept.victims == [("L", "requeue")], "if necessary to free up resources, it is requeued"


@pytest.mark.parametrize("words", ["PROC,MEM", "NODE"])
def test_suspendresources_with_processors(play: Any, words: str) -> None:
    """Suspension would free nothing: no job is suspended, and the check list says why."""
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
    """Whatever suspends a job, its processors are not given to others."""
    from makeway.worlds.events import Command

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


# ------------------------------------------------------------------------------------- calendar
DAILY = "SRCFG[r] HOSTLIST=n1 ACCOUNTLIST=jup OWNER=ACCT:jup FLAGS=OWNERPREEMPT PERIOD=DAY "
NOON = 43_200.0


def _at(seconds: float) -> float:
    """Return the `monday_at` that makes `T`, when waiting jobs come, so many seconds after Monday's midnight."""
    return 100_000.0 - seconds


@pytest.mark.parametrize(
    ("hour", "limit", "starts"),
    [
        pytest.param(7, 1800, 0, id="before it, and ends before it begins"),
        pytest.param(7, 7200, 10 * 3600, id="would run into it: waits until it is over"),
        pytest.param(9, 60, 8 * 3600, id="while it is active"),
        pytest.param(18, 7200, 0, id="after it"),
    ],
)
def test_a_reservation_by_the_clock(play: Any, hour: int, limit: int, starts: float) -> None:
    """From 8 to 17 o'clock n1 is closed to all but jup."""
    more = f"{DAILY} STARTTIME=08:00:00 ENDTIME=17:00:00"
    waiting = f"J(med,1p,account=sat,run={limit},limit={limit})"
    run = play("", waiting, more, site={"monday_at": _at(hour * 3600.0)}, until=40_000.0)
    assert run.started("J") == starts


@pytest.mark.parametrize(
    ("days", "starts"),
    [("DAYS=MON,TUE", None), ("DAYS=Tue", 0), ("DAYS=[ALL]", None), ("PERIOD=INFINITY", None)],
)
def test_a_reservation_by_days(play: Any, days: str, starts: float | None) -> None:
    """It is Monday noon."""
    run = play("", "J(med,1p,account=sat,run=60,limit=60)", f"{DAILY} {days}", site={"monday_at": _at(NOON)})
    assert run.started("J") == starts


@pytest.mark.parametrize(("unix", "starts"), [(345_600 + 43_200, None), (345_600 + 86_400 + 43_200, 0)])
def test_the_calendar_of_the_workload(play: Any, unix: int, starts: float | None) -> None:
    """5 January 1970, 345,600 s of Unix time, was a Monday; a day later it is Tuesday."""
    run = play("", f"J(med,1p,account=sat,run=60,limit=60,wall={unix})", f"{DAILY} DAYS=MON")
    assert run.started("J") == starts


def test_a_reservation_over_midnight(play: Any) -> None:
    """From 22 to 6 o'clock: at 5 it is still active, for another hour."""
    more = f"{DAILY} STARTTIME=22:00:00 ENDTIME=06:00:00"
    waiting = "J(med,1p,account=sat,run=60,limit=60)"
    run = play("", waiting, more, site={"monday_at": _at(5 * 3600.0)}, until=4000.0)
    assert run.started("J") == 3600


def test_a_reservation_by_the_week(play: Any) -> None:
    """From Tuesday noon (two and a half days after Sunday began) to Wednesday: on Monday it is not active."""
    more = f"{DAILY.replace('PERIOD=DAY', 'PERIOD=WEEK')} STARTTIME=2:12:00:00 ENDTIME=3:00:00:00"
    waiting = "J(med,1p,account=sat,run=60,limit=60)"
    assert play("", waiting, more, site={"monday_at": _at(NOON)}).started("J") == 0
    assert play("", waiting, more, site={"monday_at": _at(86_400 + NOON)}).started("J") is None


def test_x4_only_while_the_reservation_is_active(play: Any) -> None:
    """The owner displaces at 8 o'clock, when it begins, not before."""
    listed = DAILY.replace("ACCOUNTLIST=jup", "ACCOUNTLIST=jup,sat")
    more = f"{listed} STARTTIME=08:00:00 ENDTIME=17:00:00\nQOSCFG[plain] PRIORITY=5"
    waiting = "J(plain,4p,account=jup)"
    run = play("L(low,4p,account=sat)", waiting, more, site={"monday_at": _at(7 * 3600.0)}, until=4000.0)
    assert run.victims == [("L", "requeue")]
    assert run.started("J") == 3600


# ------------------------------------------------------------------------------------- most nodes
@pytest.mark.parametrize(
    ("request_", "nodes"),
    [
        pytest.param("W(med,8p,most=1)", 0b0100, id="one node: only the third has eight"),
        pytest.param("W(med,6p,most=2)", 0b0101, id="two: the first, with the third"),
        pytest.param("W(med,4p,most=2)", 0b0011, id="two: the first two will do"),
        pytest.param("W(med,14p,most=4)", 0b1111, id="four: all of them"),
        pytest.param("W(med,9p,most=1)", None, id="none has nine"),
    ],
)
def test_no_more_nodes_than_the_job_accepts(play: Any, request_: str, nodes: int | None) -> None:
    """Nodes of 2, 2, 8 and 2 processors, filled in this order where that is possible."""
    run = play("", request_, nodes="n1=2 n2=2 n3=8 n4=2")
    job = run.table.engine.ledger.job("W")
    assert (job.nodes if job is not None else None) == nodes


def test_a_reservation_on_no_more_nodes_than_accepted(play: Any) -> None:
    """W waits for n2 alone, until D ends; the other nodes are free for L all the time."""
    running = "D(med,8p,node=n2,run=7200,limit=7200)"
    waiting = "W(med,8p,most=1) L(low,4p,run=36000,limit=36000)"
    assert _when(play(running, waiting, nodes="n1=4 n2=8 n3=4"), "W", "L") == [None, 0]
