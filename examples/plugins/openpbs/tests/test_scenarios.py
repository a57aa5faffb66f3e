"""The numbered scenarios, with the values that it expects.

Unless said: one vnode n1; queues workq (Priority 0) and expressq (200); jobs ask for CPUs only. Times are
seconds. A job line is id, queue, submission, CPUs, run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway_testing import node, timeline

Pbs = Callable[..., Any]
LONG = 100_000
TWO = [node("a", cpus=2), node("b", cpus=2)]
SOFT = "express_queue, normal_jobs, queue_softlimits"


# ------------------------------------------------------------------------- which job preempts which (section 2)
def test_s01_suspend_and_resume(pbs: Pbs) -> None:
    """4.2, 5.1."""
    run = pbs("J1 workq 0 1 100; E1 expressq 5 1 30")
    assert run.table.timeline == timeline("""
          0 J1 start
          5 J1 suspend for E1
          5 E1 start
         35 E1 complete
         35 J1 resume
        130 J1 complete
    """)
    assert run.nodes("J1") == "n1"


def test_s02_the_most_recent_first(pbs: Pbs) -> None:
    """3.5."""
    run = pbs("J1 workq 0 1 100; J2 workq 1 1 100; E1 expressq 2 1 10", nodes=2)
    assert run.at(2) == {"J1": "R", "J2": "S", "E1": "R"}


def test_s03_normal_queues_are_equal(pbs: Pbs) -> None:
    """2.1: whatever their Priority below preempt_queue_prio."""
    run = pbs("Ja a 0 1 100; Jb b 5 1 10", queues={"a": 10, "b": 140})
    assert run.at(5) == {"Ja": "R", "Jb": "Q"}
    assert run.victims == ()


@pytest.mark.parametrize(
    ("priorities", "victims"),
    [((150, 200), ("J",)), ((200, 150), ()), ((200, 200), ())],
    ids=["higher over lower", "the reverse", "equal"],
)
def test_s04_express_queues_among_themselves(pbs: Pbs, priorities: tuple[int, int], victims: Any) -> None:
    """2.2 no. 4."""
    queues = dict(zip(("x", "y"), priorities, strict=True))
    assert pbs("J x 0 1 100; K y 5 1 10", queues=queues).victims == victims


@pytest.mark.parametrize(("priority", "victims"), [(150, ("J",)), (149, ())])
def test_s05_at_or_above_is_express(pbs: Pbs, priority: int, victims: Any) -> None:
    """1.3."""
    run = pbs("J workq 0 1 100; K q 5 1 10", queues={"workq": 0, "q": priority}, preempt_queue_prio=150)
    assert run.victims == victims


# ------------------------------------------------------------------- by the share of time left (section 4)
@pytest.mark.parametrize(
    ("used", "mode"),
    # Groups SCR, SC, SC, S, S, told apart by what is refused: with suspension impossible (eoe stands for
    # "neither S nor C"), only SCR has a letter left, R.
    [(190, "requeue"), (195, None), (200, None), (499, None), (500, None)],
)
def test_s06_groups_by_time_left_with_r_alone(pbs: Pbs, used: int, mode: str | None) -> None:
    """4.1: 81 % is SCR; 80.5, cut to 80, is SC."""
    run = pbs(
        f"J1 workq 0 1 {LONG} limit=1000; E1 expressq {used} 1 10",
        preempt_order="SCR 80 SC 50 S",
        more={"J1": {"attributes": {"eoe": "low"}}},
        until=used + 1,
    )
    assert run.modes == ((("J1", mode),) if mode else ())


@pytest.mark.parametrize(
    ("used", "order", "mode"),
    [
        # The same boundaries, with groups that can be told apart by what is done.
        *(
            (used, "S 80 R 50 D", mode)
            for used, mode in [(190, "suspend"), (195, "requeue"), (200, "requeue")]
        ),
        *((used, "S 80 R 50 D", mode) for used, mode in [(489, "requeue"), (499, "cancel"), (500, "cancel")]),
    ],
)
def test_s06_groups_by_time_left(pbs: Pbs, used: int, order: str, mode: str) -> None:
    """4.1: 81.0, 80.5, 80, 51.1, 50.1 and 50 % left."""
    run = pbs(f"J1 workq 0 1 {LONG} limit=1000; E1 expressq {used} 1 10", preempt_order=order, until=used + 1)
    assert run.modes == (("J1", mode),)


@pytest.mark.parametrize(("used", "mode"), [(10, "suspend"), (30, "requeue")])
def test_s07_suspend_early_requeue_late(pbs: Pbs, used: int, mode: str) -> None:
    """4.1."""
    run = pbs(f"J1 workq 0 1 38 limit=40; E1 expressq {used} 1 10", preempt_order="S 50 R")
    assert run.modes == (("J1", mode),)


def test_s08_beyond_the_soft_walltime(pbs: Pbs) -> None:
    """4.1: 1 % is left, so it is requeued."""
    run = pbs(
        "J1 workq 0 1 1000 limit=5000; E1 expressq 120 1 10",
        preempt_order="S 50 R",
        more={"J1": {"attributes": {"soft_walltime": 100}}},
    )
    assert run.modes == (("J1", "requeue"),)


def test_s09_no_limit_is_the_first_group(pbs: Pbs) -> None:
    """4.1: after a week."""
    run = pbs(f"J1 workq 0 1 1000000; E1 expressq {7 * 86400} 1 10", preempt_order="S 50 R")
    assert run.modes == (("J1", "suspend"),)


def test_s10_no_usable_letter_is_no_candidate(pbs: Pbs) -> None:
    """3.3 d: Rerunable = n in the range of R."""
    run = pbs(
        "J1 workq 0 1 95 limit=100; E1 expressq 60 1 10",
        preempt_order="S 50 R",
        more={"J1": {"requeue": False}},
    )
    assert run.victims == ()
    assert run.failures == []
    assert run.starts("E1") == (95.0,)


def test_s11_the_next_letter(pbs: Pbs) -> None:
    """4.3: no checkpoint_abort script, so it is requeued."""
    run = pbs("J1 workq 0 1 100; E1 expressq 5 1 10", preempt_order="CR")
    assert run.modes == (("J1", "requeue"),)
    assert run.starts("E1") == (5.0,)
    (entry,) = run.table.run.recorder.preemptions
    assert entry.why == "C refused: there is no checkpoint_abort script; requeued (preempt_order CR)"


def test_s12_rounds(pbs: Pbs) -> None:
    """3.7, 4.3: J2 fails, then J1; none is left, and both run on."""
    text = "J1 workq 0 1 100; J2 workq 2 1 100; E1 expressq 5 1 10"
    stubborn = {"requeue": False}
    run = pbs(text, nodes=2, preempt_order="CR", more={"J1": stubborn, "J2": stubborn}, until=50)
    assert run.failures == ["J2", "J1"]
    assert run.at(49) == {"J1": "R", "J2": "R", "E1": "Q"}


def test_s12_rerunable(pbs: Pbs) -> None:
    """The same jobs, Rerunable = y: J2 is requeued, E1 runs."""
    text = "J1 workq 0 1 100; J2 workq 2 1 100; E1 expressq 5 1 10"
    run = pbs(text, nodes=2, preempt_order="CR", until=10)
    assert run.at(9) == {"J1": "R", "J2": "Q", "E1": "R"}


# ------------------------------------------------------------------------------ the search (section 3)
def test_s13_not_the_fewest(pbs: Pbs) -> None:
    """3.5, 3.6: J3 and J2, though J1 alone would do."""
    run = pbs("J1 workq 0 3 100; J2 workq 1 2 100; J3 workq 2 1 100; E1 expressq 5 3 10", nodes=6)
    assert run.at(5) == {"J1": "R", "J2": "S", "J3": "S", "E1": "R"}


def test_s14_let_off_from_the_back(pbs: Pbs) -> None:
    """3.6: taken J4, J3, J2, J1; J2, J3, J4 fit back."""
    run = pbs(
        "J1 workq 0 4 100; J2 workq 1 1 100; J3 workq 2 1 100; J4 workq 3 1 100; E1 expressq 5 5 10", nodes=8
    )
    assert run.victims == ("J1",)
    assert run.at(5) == {"J1": "S", "J2": "R", "J3": "R", "J4": "R", "E1": "R"}


def test_s15_all_ten(pbs: Pbs) -> None:
    """3.5."""
    text = "; ".join(f"J{at} workq 0 1 100" for at in range(10))
    run = pbs(f"{text}; E1 expressq 5 10 10", nodes=10)
    assert sorted(run.victims) == [f"J{at}" for at in range(10)]
    assert run.starts("E1") == (5.0,)


def test_s16_no_job_is_touched_in_vain(pbs: Pbs) -> None:
    """3.5 no. 7: E1 is equal to E2, and J1 alone does not suffice."""
    run = pbs("J1 workq 0 2 100; E1 expressq 0 2 100; E2 expressq 5 4 10", nodes=4, until=50)
    assert run.victims == ()
    assert run.at(49) == {"J1": "R", "E1": "R", "E2": "Q"}


# -------------------------------------------------------------------- culling by the reason (3.4)
def test_s17_a_limit_of_a_user(pbs: Pbs) -> None:
    """U's own most recent job goes, though CPUs are free, and V's is more recent."""
    run = pbs(
        "J1 workq 0 1 100 user=U; J2 workq 1 1 100 user=U; J3 workq 2 1 100 user=V; E1 expressq 5 1 10 user=U",
        nodes=8,
        server={"max_run": "[u:PBS_GENERIC=2]"},
        until=6,
    )
    assert run.victims == ("J2",)
    assert run.at(5) == {"J1": "R", "J2": "S", "J3": "R", "E1": "R"}


def test_s18_a_limit_of_the_queue(pbs: Pbs) -> None:
    """Only jobs of the same queue could help, and they are equal."""
    run = pbs(
        "E1 expressq 0 1 100; J1 workq 0 1 100; E2 expressq 5 1 10",
        nodes=4,
        queues={"workq": 0, "expressq": {"Priority": 200, "max_run": "[o:PBS_ALL=1]"}},
        until=50,
    )
    assert run.victims == ()
    assert run.at(49) == {"E1": "R", "J1": "R", "E2": "Q"}


# ---------------------------------------------------------------------------- soft limits (2.3, 2.4)
def soft(most: int = 1) -> dict[str, Any]:
    """Return queues of which workq has a soft limit of jobs per user."""
    return {"workq": {"max_run_soft": f"[u:PBS_GENERIC={most}]"}, "expressq": 200}


def test_s19_over_the_soft_limit(pbs: Pbs) -> None:
    """U's jobs are below V's; J2 turns normal by being suspended, equal to J3, which is tolerated."""
    run = pbs(
        "J1 workq 0 1 100 user=U; J2 workq 1 1 100 user=U; J3 workq 5 1 50 user=V",
        nodes=2,
        queues=soft(),
        preempt_prio=SOFT,
    )
    assert run.at(5) == {"J1": "R", "J2": "S", "J3": "R"}
    assert run.victims == ("J2",)
    assert run.steps("J2")[2] == "55 J2 resume"


def test_s20_no_escalation(pbs: Pbs) -> None:
    """Suspending any of U's jobs would lift U's jobs above V's level."""
    text = "; ".join(f"U{at} workq 0 1 100 user=U" for at in range(5))
    run = pbs(
        f"{text}; V1 workq2 0 3 100 user=V; V2 workq2 5 1 10 user=V",
        nodes=8,
        queues={"workq": {"max_run_res_soft.ncpus": "[u:U=4]"}, "workq2": 0},
        server={"max_run_res_soft.ncpus": "[u:V=2]"},
        preempt_prio="express_queue, normal_jobs, server_softlimits, queue_softlimits",
        until=50,
    )
    assert run.victims == ()
    assert run.at(49)["V2"] == "Q"


def test_s20_before_20_0_there_was_no_such_rule(pbs: Pbs) -> None:
    """2.4: from 20.0."""
    text = "; ".join(f"U{at} workq 0 1 100 user=U" for at in range(5))
    run = pbs(
        f"{text}; V1 workq2 0 3 100 user=V; V2 workq2 5 1 10 user=V",
        nodes=8,
        version="19.1",
        queues={"workq": {"max_run_res_soft.ncpus": "[u:U=4]"}, "workq2": 0},
        server={"max_run_res_soft.ncpus": "[u:V=2]"},
        preempt_prio="express_queue, normal_jobs, server_softlimits, queue_softlimits",
        until=6,
    )
    assert len(run.victims) == 1


def test_s21_no_self_demotion(pbs: Pbs) -> None:
    """J4 is normal while it waits; once it ran, V would be over the limit."""
    run = pbs(
        "J1 workq 0 1 100 user=U; J2 workq 1 1 100 user=U; J3 workq 2 1 100 user=V; J4 workq 5 1 10 user=V",
        nodes=3,
        queues=soft(),
        preempt_prio=SOFT,
        until=50,
    )
    assert run.victims == ()
    assert run.at(49)["J4"] == "Q"


FAIR = {"rich": {"share": 0.5, "usage": 90.0}, "poor": {"share": 0.5, "usage": 10.0}}


@pytest.mark.parametrize(
    ("levels", "running", "victims"),
    [
        # Express and over fairshare: 96200, below normal and below plain fairshare.
        ("express_queue, normal_jobs, fairshare, express_queue+fairshare", "workq", ()),
        ("express_queue, normal_jobs, fairshare, express_queue+fairshare", "fairshare", ()),
        # Without the fourth element: 99200.
        ("express_queue, normal_jobs, fairshare", "workq", ("J1",)),
    ],
)
def test_s22_a_combination_beats_single_levels(
    pbs: Pbs, levels: str, running: str, victims: tuple[str, ...]
) -> None:
    """2.2 no. 3."""
    owner = "rich" if running == "fairshare" else "poor"
    run = pbs(
        f"J1 workq 0 1 100 user={owner}; E1 expressq 5 1 10 user=rich", preempt_prio=levels, fairshare=FAIR
    )
    assert run.victims == victims


def test_s22_normal_over_the_combination(pbs: Pbs) -> None:
    """A normal job displaces the express job whose owner is over fairshare: 96200 is below 98000."""
    run = pbs(
        "E1 expressq 0 1 100 user=rich; J1 workq 5 1 10 user=poor",
        preempt_prio="express_queue, normal_jobs, fairshare, express_queue+fairshare",
        fairshare=FAIR,
    )
    assert run.victims == ("E1",)


def test_s23_statuses_that_no_level_lists(pbs: Pbs) -> None:
    """2.2 no. 5: with the default levels the job is normal, and so not beneath another normal one."""
    run = pbs(
        "J1 workq 0 1 100 user=rich; J2 workq 1 1 100 user=rich; J3 workq 5 1 10 user=poor",
        nodes=2,
        queues=soft(),
        fairshare=FAIR,
        until=50,
    )
    assert run.victims == ()
    assert run.at(49)["J3"] == "Q"


# ------------------------------------------------------------------------------- targets (1.7)
TARGETS = "J1 workq 0 1 100; J2 workq2 1 1 100; E1 expressq 5 1 10"


def test_s24_targets(pbs: Pbs) -> None:
    """J1, not the more recent J2."""
    more = {"E1": {"attributes": {"preempt_targets": "queue=workq"}}}
    assert pbs(TARGETS, nodes=2, more=more).victims == ("J1",)


@pytest.mark.parametrize("targets", ["None", "queue=idle"])
def test_s25_no_targets(pbs: Pbs, targets: str) -> None:
    """None, or a queue that runs nothing: E1 waits."""
    more = {"E1": {"attributes": {"preempt_targets": targets}}}
    queues = {"workq": 0, "workq2": 0, "expressq": 200, "idle": 0}
    run = pbs(TARGETS, nodes=2, more=more, queues=queues)
    assert run.victims == ()
    assert run.starts("E1") == (100.0,)


def test_s26_targets_do_not_replace_levels(pbs: Pbs) -> None:
    """Both are normal."""
    more = {"J2": {"attributes": {"preempt_targets": "queue=workq2"}}}
    assert pbs("J1 workq2 0 1 100; J2 workq 5 1 10", more=more).victims == ()


# --------------------------------------------------------------------------------- vnodes (3.3)
def test_s27_reservations(pbs: Pbs) -> None:
    """1.11: a job that runs in a reservation is safe."""
    run = pbs("J1 workq 0 1 100; E1 expressq 5 1 10", more={"J1": {"reservation": "R1"}})
    assert run.victims == ()


def test_s28_a_vnode_offline(pbs: Pbs) -> None:
    """3.3 e."""
    run = pbs("J1 workq 0 4 100; E1 expressq 5 2 10", nodes=TWO, commands="3 drain b", until=50)
    assert run.victims == ()
    assert run.at(49) == {"J1": "R", "E1": "Q"}


def test_s29_a_named_vnode(pbs: Pbs) -> None:
    """3.4: J1 on it, although J2 is more recent."""
    run = pbs(
        "J1 workq 0 2 100; J2 workq 1 2 100; E1 expressq 5 2 10",
        nodes=TWO,
        more={"E1": {"required_nodes": ("a",)}},
    )
    assert run.victims == ("J1",)


def test_s30_it_never_moves(pbs: Pbs) -> None:
    """5.1: b falls idle at 20, a at 105."""
    run = pbs(
        "J1 workq 0 2 100; J2 workq 1 2 19; E1 expressq 5 2 100",
        nodes=TWO,
        more={"E1": {"required_nodes": ("a",)}},
    )
    assert run.steps("J1") == timeline("""
          0 J1 start
          5 J1 suspend for E1
        105 J1 resume
        200 J1 complete
    """)


@pytest.mark.parametrize(
    ("order", "restrict", "modes"),
    [
        ("S", ["ncpus"], ()),
        ("R", ["ncpus"], (("J1", "requeue"),)),
        ("SR", ["ncpus"], ()),
        ("S", [], (("J1", "suspend"),)),
    ],
    ids=["a", "b", "c", "d"],
)
def test_s31_what_a_suspension_gives_back(pbs: Pbs, order: str, restrict: list[str], modes: Any) -> None:
    """1.9, 3.5 no. 4: 4 CPUs and 8 GB; J1 has 2 CPUs and 6 GB, E1 wants 2 CPUs and 4 GB."""
    run = pbs(
        "J1 workq 0 2 100; E1 expressq 5 2 10",
        nodes=[node("n1", cpus=4, memory_mb=8192)],
        more={"J1": {"memory_mb_per_node": 6144}, "E1": {"memory_mb_per_node": 4096}},
        preempt_order=order,
        restrict_res_to_release_on_suspend=restrict,
    )
    assert run.modes == modes


# -------------------------------------------------------------------------- coming back (section 5)
@pytest.mark.parametrize(("enforce", "start"), [(True, 110.0), (False, 6.0)])
def test_s32_enforced_resumption(pbs: Pbs, enforce: bool, start: float) -> None:
    """5.4: J1 has run 5 of its 80 s; it goes on from 35 to 110, and J3 would delay it."""
    run = pbs(
        "J1 workq 0 2 80 limit=80; E1 expressq 5 1 30 limit=30; J3 workq 6 1 90 limit=90",
        nodes=2,
        sched_preempt_enforce_resumption=enforce,
    )
    assert run.victims == ("J1",)
    assert run.starts("J3") == (start,)
    assert run.steps("J1")[2] == ("35 J1 resume" if enforce else "96 J1 resume")


def test_s33_fillers_that_do_not_delay(pbs: Pbs) -> None:
    """5.4: J2 and J3 end before E1 does, J4 would not."""
    run = pbs(
        "J1 workq 0 4 50 limit=50; J2 workq 1 1 80 limit=80; J3 workq 2 1 50 limit=50;"
        "J4 workq 3 1 150 limit=150; E1 expressq 5 1 100 limit=100",
        nodes=4,
        sched_preempt_enforce_resumption=True,
    )
    assert run.at(5) == {"J1": "S", "J2": "R", "J3": "R", "J4": "Q", "E1": "R"}
    assert run.steps("J1")[2] == "105 J1 resume"


def test_s34_earliest_preempted_first(pbs: Pbs) -> None:
    """5.2: J1 (preempted at 10), J2 (at 12), and J3, fresh though it waits since 0.

    E1 takes J1's CPUs at 10, E2 takes J2's at 12; 2 CPUs fall free at 50, at 60 and at 160.
    """
    run = pbs(
        "J1 workq 0 2 110; J2 workq 0 2 212; J3 workq 0 2 10; E1 expressq 10 2 40; E2 expressq 12 2 48",
        nodes=4,
    )
    assert run.at(12) == {"J1": "S", "J2": "S", "J3": "Q", "E1": "R", "E2": "R"}
    assert run.at(50) == {"J1": "R", "J2": "S", "J3": "Q", "E1": "F", "E2": "R"}
    assert run.at(60) == {"J1": "R", "J2": "R", "J3": "Q", "E1": "F", "E2": "F"}
    assert run.starts("J3") == (150.0,)


@pytest.mark.parametrize(
    ("enforce", "express", "resumed"),
    [(False, 18, 30), (True, 18, 140), (True, 8, 20)],
    ids=["not enforced", "it would delay J1", "it would not"],
)
def test_s35_while_another_waits_for_more(pbs: Pbs, enforce: bool, express: int, resumed: int) -> None:
    """5.2, 5.4: J1 wants all 4 CPUs, of which E1 has 2 until 50; E2 had J2's other two until 30, or 20."""
    run = pbs(
        "J1 workq 0 4 100 limit=100; E1 expressq 10 2 40 limit=40; J2 workq 11 2 30 limit=30;"
        f"E2 expressq 12 2 {express} limit={express}",
        nodes=4,
        sched_preempt_enforce_resumption=enforce,
    )
    assert run.at(12) == {"J1": "S", "E1": "R", "J2": "S", "E2": "R"}
    assert f"{resumed} J2 resume" in run.steps("J2")


S36 = "J1 workq 0 4 100 limit=100 user=U; E2 expressq 1 2 20 limit=20; J3 workq 2 2 25 limit=25 user=V"
S36_SITE: dict[str, Any] = {
    "nodes": 4,
    "sched_preempt_enforce_resumption": True,
    "preempt_prio": "express_queue, normal_jobs, server_softlimits",
    "server": {"max_run_res_soft.ncpus": "[u:U=2]"},
}


def test_s36_over_the_limit_by_itself(pbs: Pbs) -> None:
    """2.3, 5.2, 5.4: J1 waits as a normal job, goes on at 21, is over its limit at once, and makes way again."""
    run = pbs(S36, **S36_SITE)
    assert run.at(1)["J1"] == "S"
    assert run.at(20) == {"J1": "S", "E2": "R", "J3": "Q"}
    assert run.starts("J3") == (21.0,)
    assert run.modes == (("J1", "suspend"), ("J1", "suspend"))
    assert run.at(21) == {"J1": "S", "E2": "F", "J3": "R"}
    assert "46 J1 resume" in run.steps("J1")


def test_s36_looking_ahead(pbs: Pbs) -> None:
    """8.2: judged as if it ran, J1 is below normal while suspended, gets no start in the calendar, and stays put."""
    run = pbs(S36, over_limit_resume="look_ahead", **S36_SITE)
    assert run.starts("J3") == (2.0,)
    assert run.modes == (("J1", "suspend"),)
    assert "27 J1 resume" in run.steps("J1")


def test_s37_searches_in_a_cycle(pbs: Pbs) -> None:
    """1.10: E1 preempts in the first cycle, E2 in the next, 60 s later as nothing else happens."""
    run = pbs(
        "J1 workq 0 1 1000; J2 workq 0 1 1000; E1 expressq 5 1 200; E2 expressq 5 1 200",
        nodes=2,
        preempt_attempts=1,
        scheduler_iteration=60.0,
    )
    assert run.starts("E1") == (5.0,)
    assert run.starts("E2") == (65.0,)


# ----------------------------------------------------------------------------- the action (section 4)
def test_s38_deletion(pbs: Pbs) -> None:
    """4.2: gone for good; E1 starts once the end is confirmed, here 3 s later."""
    run = pbs(
        "J1 workq 0 1 100; E1 expressq 5 1 10",
        preempt_order="D",
        clockwork={"completing_time": 3.0},
    )
    assert run.modes == (("J1", "cancel"),)
    assert run.starts("J1") == (0.0,)
    assert run.starts("E1") == (8.0,)
    assert run.at(30)["J1"] == "F"


def test_s39_checkpoint_n(pbs: Pbs) -> None:
    """3.3 d, 4.3: C is refused, D is next."""
    run = pbs(
        "J1 workq 0 1 100; E1 expressq 5 1 10",
        preempt_order="CD",
        checkpoint_abort=True,
        more={"J1": {"attributes": {"Checkpoint": "n"}}},
    )
    assert run.modes == (("J1", "cancel"),)


def test_s40_a_subjob(pbs: Pbs) -> None:
    """4.2: C is refused for a subjob, which is then suspended."""
    run = pbs(
        "J1 workq 0 1 100; E1 expressq 5 1 10",
        preempt_order="CS",
        checkpoint_abort=True,
        more={"J1": {"flags": frozenset({"SUBJOB"})}},
    )
    assert run.modes == (("J1", "suspend"),)


# ------------------------------------------------------------------------------- time (1.2, 2.6)
def test_s41_dedicated_time(pbs: Pbs) -> None:
    """2.6: no search is made for a job that would run into it; J1 itself ends in time."""
    text = "J1 workq 0 1 45 limit=45; E1 expressq 5 1 10 limit={}"
    run = pbs(text.format(100), dedicated_time=[[50.0, 60.0]])
    assert run.victims == ()
    assert run.starts("E1") == (60.0,)
    assert pbs(text.format(30), dedicated_time=[[50.0, 60.0]]).victims == ("J1",)


def test_s42_prime_time(pbs: Pbs) -> None:
    """1.2: E1 comes at 07:00:05 and waits until 08:00."""
    run = pbs(
        "J1 workq 0 1 100000; E1 expressq 5 1 10",
        preemptive_sched=True,
        preemptive_sched_non_prime=False,
        prime_time=["Mon-Fri 08:00-18:00"],
        start="2026-03-02T07:00:00",
    )
    assert run.starts("E1") == (3600.0,)
    assert run.victims == ("J1",)


def test_s43_the_start_of_the_preemptor_is_refused(pbs: Pbs) -> None:
    """3.7: what was suspended goes on at once, the preemptor waits.

    The simulated world refuses no start: here E1 goes back to the queue a millisecond later, and is held so that it
    is not tried again.
    """
    run = pbs("J1 workq 0 1 100; E1 expressq 5 1 10", commands="5.001 hold E1\n5.001 requeue E1", until=50)
    assert run.steps("J1") == timeline("""
        0     J1 start
        5     J1 suspend for E1
        5.001 J1 resume
    """)
    assert run.at(49) == {"J1": "R", "E1": "Q"}


def test_s44_a_trailing_percent(pbs: Pbs) -> None:
    """1.5: with 70 % left there is no method."""
    text = "J1 workq 0 1 90 limit=100; E1 expressq {} 1 10"
    assert pbs(text.format(30), preempt_order="SCR 80").victims == ()
    assert pbs(text.format(10), preempt_order="SCR 80").victims == ("J1",)


@pytest.mark.parametrize(("gate", "victims"), [("plain", ("E1",)), ("source", ())])
def test_s45_qrun(pbs: Pbs, gate: str, victims: tuple[str, ...]) -> None:
    """2.5: documented, E1 is preempted; the source's gate does not see that any job is beneath."""
    run = pbs(
        "E1 expressq 0 1 100; J2 workq 5 1 10",
        more={"J2": {"flags": frozenset({"QRUN"})}},
        gate=gate,
    )
    assert run.victims == victims


def test_the_gate_of_the_source_sees_normal_jobs(pbs: Pbs) -> None:
    """2.5: they stand exactly at a rank; and once one runs anywhere, express jobs are eligible too."""
    qrun = {"J3": {"flags": frozenset({"QRUN"})}}
    text = "E1 expressq 0 1 100; J2 workq 0 1 100; J3 workq 5 {} 10"
    assert pbs(text.format(1), nodes=2, more=qrun, gate="source").victims == ("J2",)
    assert set(pbs(text.format(2), nodes=2, more=qrun, gate="source").victims) == {"E1", "J2"}
