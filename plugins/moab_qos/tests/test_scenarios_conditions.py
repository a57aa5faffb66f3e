"""Scenarios 1 to 24: the three conditions, priority, and which jobs the search takes."""

from __future__ import annotations

from typing import Any

import pytest

PAIR = ("L(low,4p,q10)", "H(high,4p,q0)")


# --------------------------------------------------------------------------- conditions and priority
def test_01_three_conditions_together(play: Any) -> None:
    """L is requeued, H starts at the same instant."""
    run = play(*PAIR)
    assert run.victims == [("L", "requeue")]
    assert run.started("H") == 0


def test_02_c1_no_preemptor_flag(play: Any) -> None:
    """Without the flag nothing happens, and the check list says so."""
    run = play(*PAIR, "QOSCFG[high] QFLAGS= PRIORITY=1000")
    assert run.victims == []
    assert run.code("H", "K01").verdict == "fail"


def test_03_c2_no_preemptee_flag(play: Any) -> None:
    """high may preempt low, not med."""
    run = play("M(med,4p,q0)", "H(high,4p,q600)")
    assert run.victims == []
    assert run.code("H", "K02").verdict == "fail"


def test_04_high_does_not_preempt_high(play: Any) -> None:
    """A preemptor is no preemptee."""
    assert play("H1(high,4p,q0)", "H2(high,4p,q99)").victims == []


EQUAL = "QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=100"


def test_05_c3_lower_priority(play: Any) -> None:
    """100 against 110: the gap is -10."""
    run = play(*PAIR, EQUAL)
    assert run.victims == []
    check = run.code("H", "K03")
    assert check.verdict == "fail"
    assert "gap -10" in check.found
    assert "eligible in 11.0 minutes" in check.found


def test_06_c3_is_strict_and_grows_by_waiting(play: Any) -> None:
    """At 10 minutes 110 equals 110; at 11 minutes 111 is above."""
    assert play(*PAIR, EQUAL, until=659.0).victims == []
    run = play(*PAIR, EQUAL, until=661.0)
    assert run.victims == [("L", "requeue")]
    assert run.started("H") == 660.0


def test_07_fractions_do_not_count(play: Any) -> None:
    """Priorities of 10.9 and 10.2 count as 10 each."""
    run = play("L(low,4p,q10.2)", "H(high,4p,q10.9)", "QOSWEIGHT 0")
    assert run.victims == []


@pytest.mark.parametrize("line", ["QOSWEIGHT 0", "CREDWEIGHT 0"], ids=["8: QOSWEIGHT", "9: CREDWEIGHT"])
def test_08_and_09_a_weight_of_zero_makes_qos_priority_idle(play: Any, line: str) -> None:
    """H has waited less than L did."""
    run = play(*PAIR, line)
    assert run.victims == []
    check = run.code("H", "K17")
    assert check.verdict == "fail"
    assert line.replace(" ", " ") in check.found


NEGATIVE = """
QOSCFG[low] PRIORITY=-5000
QOSCFG[high] PRIORITY=-10
"""


def test_10_priorities_are_raised_to_one(play: Any) -> None:
    """Both are clipped to 1."""
    run = play("L(low,4p,q10)", "H(high,4p,q5)", NEGATIVE + "ENABLENEGJOBPRIORITY FALSE")
    assert run.victims == []


def test_11_negative_priorities(play: Any) -> None:
    """-5 is above -4990."""
    run = play("L(low,4p,q10)", "H(high,4p,q5)", NEGATIVE + "ENABLENEGJOBPRIORITY TRUE")
    assert run.victims == [("L", "requeue")]
    assert run.started("H") == 0


def test_12_system_priority_beats_the_cap(play: Any) -> None:
    """1,000,000,005 against one that is capped at 1,000,000,000."""
    more = "QOSCFG[low] PRIORITY=5000000000"
    assert play("L(low,4p,q0)", "H(high,4p,sysprio=5)", more).victims == [("L", "requeue")]
    assert play("L(low,4p,q0)", "H(high,4p)", more).victims == []


MIDDLE = "QOSCFG[mid] QFLAGS=PREEMPTOR:PREEMPTEE PRIORITY=500 JOBFLAGS=RESTARTABLE"


def test_13_a_middle_tier_goes_both_ways(play: Any) -> None:
    """mid displaces low and is displaced by high."""
    assert play("L(low,4p)", "X(mid,4p)", MIDDLE).victims == [("L", "requeue")]
    assert play("X(mid,4p)", "H(high,4p)", MIDDLE).victims == [("X", "requeue")]


# ------------------------------------------------------------------------------------- selection
def test_14_idle_first(play: Any) -> None:
    """There is room beside L."""
    run = play("L(low,4p,q0)", "H(high,4p)", nodes="n1=8")
    assert run.victims == []
    assert run.started("H") == 0


SHORT = ("a(low,1p,prio=10) b(low,1p,prio=20) c(low,1p,prio=30)", "H(high,4p)")


def test_15_only_the_shortage_is_taken(play: Any) -> None:
    """Two processors are idle; a and b provide the others."""
    run = play(*SHORT, nodes="n1=5")
    assert run.displaced == {"a", "b"}
    assert run.started("H") == 0


def test_15_in_maui_the_whole_size_is_taken(play: Any) -> None:
    """Q3 as section 17 corrects it: a, b and c go, and H starts in the same pass."""
    run = play(*SHORT, nodes="n1=5", maui=True, until=120.0, checked=False)
    assert run.displaced == {"a", "b", "c"}
    assert run.started("H") is not None


def test_16_cost_per_processor(play: Any) -> None:
    """Costs 100, 25 and 37: B alone."""
    run = play("A(low,1p,prio=100) B(low,4p,prio=100) C(low,8p,prio=300)", "H(high,4p)", nodes="n1=13")
    assert run.displaced == {"B"}


def test_17_wide_before_narrow(play: Any) -> None:
    """Costs 50, 20 and 45: W goes although N and M rank lower."""
    run = play("N(low,1p,prio=50) W(low,8p,prio=160) M(low,2p,prio=90)", "H(high,2p)", nodes="n1=11")
    assert run.displaced == {"W"}


GREEDY = ("a(low,1p,prio=10) b(low,1p,prio=10) c(low,1p,prio=12) d(low,4p,prio=60)", "H(high,4p)")


def test_18_greedy_is_not_minimal(play: Any) -> None:
    """Three cheap ones, then the one that would have done alone."""
    assert play(*GREEDY, nodes="n1=7").displaced == {"a", "b", "c", "d"}


def test_18_minimised(play: Any) -> None:
    """With the option the cheap ones are put back."""
    assert play(*GREEDY, nodes="n1=7", settings={"minimise": True}).displaced == {"d"}


def test_19_all_or_nothing(play: Any) -> None:
    """2 of 4 processors could be had."""
    run = play("L(low,2p) M(med,2p)", "H(high,4p)")
    assert run.victims == []
    check = run.code("H", "K20")
    assert check.verdict == "fail"
    assert "0 idle and 2 preemptible of 4" in check.found


@pytest.mark.parametrize(("count", "taken"), [(32, 32), (33, 0)], ids=["20: 32 go", "21: 33 are too many"])
def test_20_and_21_the_cap(play: Any, count: int, taken: int) -> None:
    """No more than 32 victims for one preemptor."""
    running = " ".join(f"v{at}(low,1p)" for at in range(count))
    run = play(running, f"H(high,{count}p)", nodes=f"n1={count}")
    assert len(run.displaced) == taken
    if not taken:
        check = run.code("H", "K05")
        assert check.verdict == "fail"
        assert check.found.startswith("33 needed, 32 allowed; in the order of cost: v0, v1")


def test_22_feasible_nodes_only(play: Any) -> None:
    """L1 is cheaper, but where it runs H cannot."""
    run = play(
        "L1(low,4p,prio=10,node=n1) L2(low,4p,prio=90,node=n2)",
        "H(high,4p,features=b)",
        nodes="n1=4/a n2=4/b",
    )
    assert run.displaced == {"L2"}


def test_23_the_higher_preemptor_first(play: Any) -> None:
    """H2 has waited longer; H1 waits, for H2 is no preemptee."""
    run = play("L(low,4p)", "H1(high,4p,q0) H2(high,4p,q5)")
    assert run.victims == [("L", "requeue")]
    assert run.started("H2") == 0
    assert run.started("H1") is None


def test_24_ties_are_deterministic(play: Any) -> None:
    """b started later, so it has less to lose; the same on every run."""
    runs = [play("a(low,2p,ran=7200) b(low,2p)", "H(high,2p)") for _ in range(2)]
    assert [run.displaced for run in runs] == [{"b"}, {"b"}]
    assert runs[0].table.record == runs[1].table.record


def test_a_priority_of_zero_is_not_negative(play: Any) -> None:
    """REJECTNEGPRIOJOBS refuses what is below zero."""
    more = "ENABLENEGJOBPRIORITY TRUE\nREJECTNEGPRIOJOBS TRUE\nQUEUETIMEWEIGHT 0\nQOSCFG[nil] PRIORITY=0\n"
    assert play("", "Z(nil,1p)", more).started("Z") == 0
    assert play("", "Z(nil,1p)", more + "QOSCFG[nil] PRIORITY=-1\n").started("Z") is None
