"""Fairshare: usage, targets, priority, violations (moab 3.2 X3 and X9, 8.1 FS), computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from makeway_moab_qos.fairshare import share, violation
from makeway_moab_qos.priority import start_priority

HOUR = 3600.0
FAIR = "FSPOLICY DEDICATEDPS\nFSINTERVAL 01:00:00\nFSDEPTH 2\nFSDECAY 0.5\n"
WINDOW = 100_000.0 - 100_000.0 % HOUR
"""Start of the window in which waiting jobs come: 97,200 s, window 27."""


def _share(run: Any, name: str, kind: str = "user") -> float:
    return share(kind, name, run.table.engine.ledger)


def test_usage_is_a_share_of_what_all_have_used(play: Any) -> None:
    """a: 3 processors, b: 1, both for the same time: 75% and 25%."""
    run = play("a(med,3p,ran=1000,user=ann) b(med,1p,ran=1000,user=bob)", "E(med,1p)", FAIR)
    assert (_share(run, "ann"), _share(run, "bob"), _share(run, "eve")) == (75.0, 25.0, 0.0)
    assert _share(run, "med", "qos") == 100.0


def test_earlier_windows_count_less(play: Any) -> None:
    """Window 26 half: ann 3600 x 2 there; in window 27, of which 2800 s have passed, bob 2 and ann none."""
    ran = 100_000.0 - (WINDOW - HOUR)  # ann starts with window 26, and ends with it
    running = f"a(med,2p,ran={ran},length={HOUR},user=ann) b(med,2p,ran=2800,user=bob)"
    run = play(running, "E(med,1p,at=0)", FAIR)
    early, late = 0.5 * 2 * HOUR, 2 * 2800.0
    assert _share(run, "ann") == pytest.approx(100 * early / (early + late), abs=0.05)
    assert _share(run, "bob") == pytest.approx(100 * late / (early + late), abs=0.05)


def test_windows_beyond_the_depth_do_not_count(play: Any) -> None:
    """With a depth of 1 window 26 is forgotten."""
    ran = 100_000.0 - (WINDOW - HOUR)
    running = f"a(med,2p,ran={ran},length={HOUR},user=ann) b(med,2p,ran=2800,user=bob)"
    run = play(running, "E(med,1p)", FAIR.replace("FSDEPTH 2", "FSDEPTH 1"))
    assert (_share(run, "ann"), _share(run, "bob")) == (0.0, 100.0)


def test_a_percentage_of_the_machine(play: Any) -> None:
    """One processor of four, all through the window: 25%."""
    more = FAIR.replace("DEDICATEDPS", "DEDICATEDPS%").replace("FSDEPTH 2", "FSDEPTH 1")
    run = play("a(med,1p,ran=3000,user=ann)", "E(med,1p)", more)
    assert _share(run, "ann") == pytest.approx(25.0, abs=0.1)


@pytest.mark.parametrize(
    ("mark", "ann", "bob"),
    [
        pytest.param("", -25, 25, id="target: both ways"),
        pytest.param("+", 0, 25, id="floor: only below"),
        pytest.param("-", -25, 0, id="ceiling: only above"),
    ],
)
def test_priority_is_target_less_usage(play: Any, mark: str, ann: int, bob: int) -> None:
    """FSUSERWEIGHT 10: ann has used 75% and bob 25% of a target of 50% each."""
    more = FAIR + (
        "FSUSERWEIGHT 10\nENABLENEGJOBPRIORITY TRUE\nQOSWEIGHT 0\nQUEUETIMEWEIGHT 0\n"
        f"USERCFG[DEFAULT] FSTARGET=50{mark}\n"
    )
    running = "a(med,3p,ran=1000,user=ann) b(med,1p,ran=1000,user=bob)"
    run = play(running, "A(med,1p,user=ann) B(med,1p,user=bob)", more)
    view = run.table.engine.ledger
    found = [start_priority(run.table.history(name).job, view, view.now) for name in ("A", "B")]
    assert found == [10 * ann, 10 * bob]


def test_a_running_job_keeps_the_priority_of_its_start(play: Any) -> None:
    """Nothing had been used when a and b started: target less nothing is 50 for both."""
    more = FAIR + "FSUSERWEIGHT 10\nQOSWEIGHT 0\nQUEUETIMEWEIGHT 0\nUSERCFG[DEFAULT] FSTARGET=50\n"
    run = play("a(med,3p,ran=1000,user=ann)", "A(med,4p,user=ann)", more)
    view = run.table.engine.ledger
    assert start_priority(run.table.history("a").job, view, view.now) == 500


FSV = FAIR + "QOSCFG[med] PRIORITY=500 QFLAGS=PREEMPTFSV JOBFLAGS=RESTARTABLE\nUSERCFG[ann] FSTARGET=60\n"


def test_x3_a_job_beyond_its_target_is_preemptible(play: Any) -> None:
    """ann has used 75%, her target is 60; bob has none."""
    running = "a(med,3p,ran=1000,user=ann) b(med,1p,ran=1000,user=bob)"
    run = play(running, "H(high,1p)", FSV)
    assert run.victims == [("a", "requeue")]
    assert play(running, "H(high,1p)", FSV.replace("=60", "=80")).victims == []
    assert play(running, "H(high,1p)", FSV.replace("=60", "=60+")).victims == []
    assert play(running, "H(high,1p)", FSV.replace("DEDICATEDPS", "NONE")).victims == []


def test_x3_the_check_list_says_why(play: Any) -> None:
    """H cannot start, and K02 names the rule."""
    running = "a(med,3p,ran=1000,user=ann) b(med,1p,ran=1000,user=bob)"
    run = play(running, "H(high,4p)", FSV)
    assert run.victims == []
    assert "user ann has used 75.0%, FSTARGET is 60%" in run.code("H", "K02").found
    assert violation(run.table.history("b").job, run.table.engine.ledger) == ""


def test_x3_as_it_was_at_the_start(play: Any) -> None:
    """With `fs_violation_while_running` off only what started beyond the target is preemptible."""
    running = "a(med,3p,ran=1000,user=ann) b(med,1p,ran=1000,user=bob)"
    off = {"fs_violation_while_running": False}
    assert play(running, "H(high,1p)", FSV, settings=off).victims == []
    running = "x(med,1p,ran=9000,length=5000,user=ann) a(med,4p,ran=1000,user=ann)"
    assert play(running, "H(high,1p)", FSV, settings=off).victims == [("a", "requeue")]


def test_x9_within_a_class_no_preemptor_is_needed(play: Any) -> None:
    """c is inside its target, ann is not; another class is left alone, and so is what is inside."""
    more = FAIR + (
        "ENABLEFSVIOLATIONPREEMPTION TRUE\nQOSCFG[med] JOBFLAGS=RESTARTABLE\nQOSCFG[up] PRIORITY=600\n"
        "USERCFG[ann] FSTARGET=60\nCLASSCFG[one] PRIORITY=0\nCLASSCFG[two] PRIORITY=0\n"
    )
    running = "a(med,3p,ran=1000,user=ann,class=one) b(med,1p,ran=1000,user=bob,class=one)"
    assert play(running, "C(up,1p,user=eve,class=one)", more).victims == [("a", "requeue")]
    assert play(running, "C(up,1p,user=eve,class=two)", more).victims == []
    assert play(running, "C(up,1p,user=ann,class=one)", more).victims == []
    needs = {"class_violation_needs_preemptor": True}
    assert play(running, "C(up,1p,user=eve,class=one)", more, settings=needs).victims == []


def test_x9_priority_still_counts(play: Any) -> None:
    """C3: one of lower priority does not."""
    more = FAIR + "ENABLEFSVIOLATIONPREEMPTION TRUE\nUSERCFG[ann] FSTARGET=60\nQOSCFG[down] PRIORITY=1\n"
    running = "a(med,4p,ran=1000,user=ann)"
    assert play(running, "C(down,1p,user=eve)", more).victims == []
