"""Scenarios 44 to 57: QoS access, owners, soft limits, backfill, guarantee."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.worlds.events import Command
from makeway_moab_qos.credentials import access, qos_name

BOUND = "CLASSCFG[other] PRIORITY=0\nCLASSCFG[special] QDEF=high&\nUSERCFG[bob] QDEF=low\n"


def _qos(run: Any, job: str) -> str | None:
    return qos_name(run.table.history(job).job, run.table.engine.ledger)


def test_44_an_ampersand_binds_a_class(play: Any) -> None:
    """The class's list stands against the user's default."""
    waiting = "J(-,1p,user=bob,class=special)"
    assert _qos(play("", waiting, BOUND), "J") == "high"
    assert _qos(play("", waiting, BOUND.replace("&", "")), "J") == "low"


def test_45_it_keeps_others_out(play: Any) -> None:
    """Asking for low gives high, after an hour's deferral."""
    run = play("", "J(low,1p,user=bob,class=special)", BOUND, until=4000.0)
    assert _qos(run, "J") == "high"
    assert run.started("J") == 3600.0
    early = play("", "J(low,1p,user=bob,class=special)", BOUND)
    assert early.table.reason("J") == "Deferred"
    check = early.code("J", "K18")
    assert check.verdict == "fail"
    assert "requested low, got high" in check.found
    assert access(early.table.history("J").job, early.table.engine.ledger).allowed == ("high",)


OWNER = "SRCFG[r] OWNER=ACCOUNT:jup FLAGS=OWNERPREEMPT HOSTLIST=n1\nQOSCFG[plain] PRIORITY=5\n"
OWNED = ("S(low,4p,account=sat,prio=900)", "J(plain,4p,account=jup)")


def test_46_an_owner_preempts(play: Any) -> None:
    """J ranks lower and is no preemptor."""
    run = play(*OWNED, OWNER)
    assert run.victims == [("S", "requeue")]
    assert run.started("J") == 0


def test_47_an_owners_own_jobs_are_safe(play: Any) -> None:
    """S is of the same account."""
    assert play("S(low,4p,account=jup,prio=900)", OWNED[1], OWNER).victims == []


def test_48_the_victim_needs_preemptee(play: Any) -> None:
    """A job without the flag is never displaced by accident."""
    running = "S(med,4p,account=sat,flags=RESTARTABLE)"
    assert play(running, OWNED[1], OWNER).victims == []
    run = play(running, OWNED[1], OWNER, settings={"owner_requires_preemptee": False})
    assert run.victims == [("S", "requeue")]


def test_49_outside_the_reservation(play: Any) -> None:
    """n2 is not the owner's."""
    run = play("S(low,4p,account=sat,node=n2) X(med,4p,node=n1)", OWNED[1], OWNER, nodes="n1=4 n2=4")
    assert run.victims == []


@pytest.mark.parametrize(
    ("flags", "goes"),
    [
        pytest.param("OWNERPREEMPT", False, id="the owner waits"),
        pytest.param("OWNERPREEMPT,OWNERPREEMPTIGNOREMINTIME", True, id="the flag lets him not wait"),
    ],
)
def test_an_owner_and_the_least_time(play: Any, flags: str, goes: bool) -> None:
    """S has run for an hour of the two that JOBPREEMPTMINACTIVETIME gives it."""
    more = OWNER.replace("OWNERPREEMPT", flags) + "JOBPREEMPTMINACTIVETIME 7200\n"
    assert bool(play(*OWNED, more).victims) is goes


SOFT = "QOSCFG[med] PRIORITY=500 QFLAGS=PREEMPTSPV JOBFLAGS=RESTARTABLE\nUSERCFG[u] MAXJOB=1,2\n"


def test_50_soft_limit(play: Any) -> None:
    """The later of two jobs breaks the limit and goes; the other one no longer does."""
    running = "M1(med,2p,user=u,ran=4000) M2(med,2p,user=u,ran=3600)"
    run = play(running, "H(high,2p) H2(high,2p,at=5)", SOFT, until=10.0)
    assert run.victims == [("M2", "requeue")]
    assert run.started("H") == 0
    assert run.started("H2") is None


# ------------------------------------------------------------------ backfill, reservations, guarantee
RUNNING = "A(med,1p,run=7200,limit=7200)"
"""A ends one hour after the others come."""


def test_51_cycle_stealing(play: Any) -> None:
    """Without reservations L starts beside B, which waits."""
    run = play(RUNNING, "B(med,4p) L(low,3p)", "RESERVATIONPOLICY NEVER")
    assert run.started("L") == 0
    assert run.started("B") is None


@pytest.mark.parametrize(("length", "starts"), [(36000, None), (1800, 0)], ids=["10 h: no", "30 min: yes"])
def test_52_a_reservation_protects(play: Any, length: int, starts: float | None) -> None:
    """B is to start in an hour; only what ends before may start."""
    run = play(RUNNING, f"B(med,4p) L(low,3p,run={length},limit={length})")
    assert run.started("L") == starts


OPTIMISTIC = "BACKFILLPOLICY PREEMPT\nQOSCFG[plain] PRIORITY=10 JOBFLAGS=RESTARTABLE\n"


def test_53_optimistic_backfill_marks(play: Any) -> None:
    """L starts although it will be in B's way, and may be displaced for it."""
    run = play(RUNNING, "B(med,4p) L(plain,3p) K(plain,4p,at=1)", OPTIMISTIC, until=2.0)
    assert run.started("L") == 0
    assert run.table.history("L").job.marks >= {"BACKFILL", "PREEMPTEE"}


def test_54_optimistic_backfill_yields(play: Any) -> None:
    """When A ends B takes all; L is requeued."""
    run = play(RUNNING, "B(med,4p) L(plain,3p)", OPTIMISTIC, until=3700.0)
    assert run.victims == [("L", "requeue")]
    assert run.started("B") == 3600.0


def test_55_demotion_lasts(play: Any) -> None:
    """B is cancelled, no idle job outranks L: H does not displace it later."""
    commands = [(50.0, Command("cancel", "B"))]
    waiting = "B(med,4p) L(plain,3p) H(high,4p,at=100)"
    run = play(RUNNING, waiting, OPTIMISTIC, commands=commands, until=200.0)
    assert run.table.history("L").job.marks == {"RANKED", "BACKFILL"}
    assert run.victims == []
    still = play(RUNNING, waiting, OPTIMISTIC, until=200.0)
    assert "PREEMPTEE" in still.table.history("L").job.marks


LOCK = "GUARANTEEDPREEMPTION TRUE\nJOBRETRYTIME 60\n"
SLOW = {"completing_time": 20.0}
RIVALS = "H(high,4p) K(high,4p,at=10,q99)"


def test_56_a_guarantee_holds_the_nodes(play: Any) -> None:
    """L needs 20 s to vacate; K comes after 10 s and ranks higher."""
    locked = play("L(low,4p)", RIVALS, LOCK, clock=SLOW, until=100.0)
    assert locked.started("H") == 20.0
    assert locked.started("K") is None
    free = play("L(low,4p)", RIVALS, clock=SLOW, until=100.0)
    assert free.started("K") == 20.0
    assert free.started("H") is None


TWO = ("A(low,4p,node=n1) B(low,4p,node=n2,q1)", "H(high,4p)")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param("", [("A", 0)], id="it waits for the first victim, as long as that takes"),
        pytest.param(LOCK, [("A", 0), ("B", 60)], id="once the lock is over it may preempt afresh"),
        pytest.param("NOWAITPREEMPTION TRUE", [("A", 0), ("B", 60)], id="NOWAIT: at the next poll"),
        pytest.param(
            LOCK + "NOWAITPREEMPTION TRUE\nJOBRETRYTIME 300",
            [("A", 0), ("B", 60)],
            id="NOWAIT, in spite of the lock",
        ),
    ],
)
def test_whether_a_preemptor_waits_for_its_first_victims(
    play: Any, more: str, told: list[tuple[str, float]]
) -> None:
    """7.1: they take 200 s to vacate, JOBRETRYTIME is 60 s, and the resource manager is polled every 60 s."""
    run = play(*TWO, more, nodes="n1=4 n2=4", clock={"completing_time": 200.0}, until=250.0)
    found = [(each.victim, each.at - 100_000.0) for each in run.table.run.recorder.preemptions]
    assert found == told
    assert run.started("H") == 200.0


def test_57_a_guarantee_expires(play: Any) -> None:
    """L never vacates: after 60 s the lock is gone."""
    never = {"completing_time": 100000.0}
    run = play("L(low,4p)", "H(high,4p)", LOCK, clock=never, until=59.0)
    assert run.code("H", "K09").verdict == "warning"
    late = play("L(low,4p)", "H(high,4p) K(med,1p,at=70)", LOCK, clock=never, until=80.0)
    assert late.started("H") is None
    assert late.code("H", "K09").verdict == "fail"
    assert "expired" in late.code("H", "K09").found
