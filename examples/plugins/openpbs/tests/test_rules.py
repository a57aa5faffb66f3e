"""Single rules, and what is refused, by the numbers of docs/rules/openpbs.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway.errors import ConfigError
from makeway_openpbs_sched.letters import order_of, percent_left
from makeway_openpbs_sched.levels import levels_of
from makeway_openpbs_sched.limits import amount_of, limits_of
from makeway_openpbs_sched.targets import targets_of
from makeway_openpbs_sched.windows import is_open, windows_of
from makeway_testing import job, node

Pbs = Callable[..., Any]


# --------------------------------------------------------------------------- preempt_order (1.5)
@pytest.mark.parametrize(("used", "group"), [(190, "SCR"), (195, "SC"), (200, "SC"), (499, "S"), (500, "S")])
def test_s06(used: float, group: str) -> None:
    """The scenario's own numbers."""
    one = job(time_limit=1000.0, nodes=1, ran=used, resumed_at=None)
    left = percent_left(one, 0.0, single=False)
    assert order_of("SCR 80 SC 50 S").group(left) == group


@pytest.mark.parametrize(
    ("used", "exact", "single"), [(54, 46, 45), (60, 40, 39), (50, 50, 50), (120, 1, 1), (100, 0, 0)]
)
def test_percent_left(used: float, exact: int, single: int) -> None:
    """4.1: of 100 s; single precision cuts 46 to 45 and 40 to 39; beyond the limit it is 1."""
    one = job(time_limit=100.0, nodes=1, ran=used, resumed_at=None)
    assert percent_left(one, 0.0, single=False) == exact
    assert percent_left(one, 0.0, single=True) == single


def test_soft_walltime_comes_first_and_cput_last() -> None:
    """4.1."""
    soft = job(time_limit=100.0, nodes=1, ran=50.0, resumed_at=None, attributes={"soft_walltime": "00:03:20"})
    assert percent_left(soft, 0.0, single=False) == 75
    cput = job(nodes=1, ran=50.0, resumed_at=None, attributes={"cput": 400}, tasks=2)
    assert percent_left(cput, 0.0, single=False) == 75
    assert percent_left(job(nodes=1), 0.0, single=False) is None


@pytest.mark.parametrize(("used", "mode"), [("running", "suspend"), ("elapsed", "requeue")])
def test_time_suspended(pbs: Pbs, used: str, mode: str) -> None:
    """4.1: of 100 s J1 has run 20 and been suspended for 60 when E2 comes."""
    text = "J1 workq 0 1 90 limit=100; E1 expressq 10 1 60; E2 expressq 80 1 5"
    run = pbs(text, preempt_order="S 50 R", walltime_used=used, until=90)
    assert run.modes == (("J1", "suspend"), ("J1", mode))


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("S 0 R", {100: "S", 1: "S", 0: "S"}),
        ("SCR 80", {81: "SCR", 80: "", 0: ""}),
        ("S 50 R 80 C", {70: "S", 40: "C"}),
        ("S 150 R", {100: "R", 0: "R"}),
        ("SCR\t80  SC", {81: "SCR", 80: "SC"}),
    ],
    ids=["a first percent of 0 is dead", "a trailing percent", "percents that rise", "above 100", "blanks"],
)
def test_odd_orders(text: str, groups: dict[int, str]) -> None:
    """1.5; where ranges are empty or overlap, the first range that fits counts, else the first group."""
    order = order_of(text)
    assert {left: order.group(left) for left in groups} == groups


@pytest.mark.parametrize(
    "text", ["SCR SC", "80 SC", "SCR 80 70", "PQR", "abc", "SS", "scr", "", "S -5 R", "S 5.5 R"]
)
def test_refused_orders(text: str) -> None:
    """1.5 and the list of refused configurations."""
    with pytest.raises(ValueError, match="allowed"):
        order_of(text)


# ----------------------------------------------------------------------------- preempt_prio (1.4)
@pytest.mark.parametrize(
    "text", ["abc", "nrmal_jobs", "normal_jobs+bogus", "Normal_jobs", "a,,b", "", "starving_jobs"]
)
def test_refused_levels(text: str) -> None:
    """1.4: whichever name of an element is wrong; starving_jobs since 22.05."""
    with pytest.raises(ValueError, match="allowed"):
        levels_of(text, starving=False)


def test_at_most_19_levels() -> None:
    """1.4: all different, though there are but so many combinations worth having."""
    with pytest.raises(ValueError, match="allowed: at most 19"):
        levels_of(",".join(["normal_jobs"] * 20))


@pytest.mark.parametrize(
    ("levels", "statuses", "priority", "value"),
    [
        ("express_queue, normal_jobs", {"express_queue"}, 200, 99200),
        ("express_queue, normal_jobs", set(), 10, 98000),
        ("express_queue, normal_jobs", {"fairshare"}, 0, 98000),
        ("express_queue, fairshare", {"queue_softlimits"}, 0, 0),
        ("starving_jobs, normal_jobs, fairshare", {"starving_jobs", "fairshare"}, 0, 99000),
        ("starving_jobs, normal_jobs, starving_jobs+fairshare", {"starving_jobs", "fairshare"}, 0, 97000),
        ("normal_jobs, express_queue+fairshare", {"express_queue", "fairshare"}, 500, 98500),
    ],
)
def test_values(levels: str, statuses: set[str], priority: int, value: int) -> None:
    """2.2: rank 100000 - 1000 k, the most joined statuses first, Priority added to express levels."""
    assert levels_of(levels).value(statuses, priority)[0] == value


# ---------------------------------------------------------------------------- limits, targets
@pytest.mark.parametrize(
    ("text", "mb"), [("5", 5.0), ("8gb", 8192.0), ("512mb", 512.0), ("1048576kb", 1024.0), ("1mw", 8.0)]
)
def test_amounts(text: str, mb: float) -> None:
    """Numbers are numbers, sizes are MB."""
    assert amount_of("x", text) == mb


def test_named_limits_replace_generic_ones() -> None:
    """2.3; old and new forms."""
    found = limits_of({"max_run": "[u:PBS_GENERIC=2],[u:ada=5, g:staff=9]", "max_user_res_soft.ncpus": 4})
    assert found.hard == {
        ("user", "jobs"): {"PBS_GENERIC": 2.0, "ada": 5.0},
        ("group", "jobs"): {"staff": 9.0},
    }
    assert found.soft == {("user", "ncpus"): {"PBS_GENERIC": 4.0}}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_run", "5"),
        ("max_run", "[x:a=1]"),
        ("max_run", "[u:PBS_ALL=1]"),
        ("max_run", "[o:ada=1]"),
        ("max_run", "[u:a=many]"),
        ("max_run_res", "[u:a=1]"),
        ("max_run.ncpus", "[u:a=1]"),
    ],
)
def test_wrong_limits(key: str, value: str) -> None:
    """Beginning with the attribute."""
    with pytest.raises(ValueError, match=rf"^{key}: .*allowed|^{key}: .*goes with"):
        limits_of({key: value})


@pytest.mark.parametrize("text", ["None,queue=a", "queue=nowhere", "Resource_List.bogus=1", "walltime=5", ""])
def test_refused_targets(text: str) -> None:
    """1.7 and the list of refused configurations."""
    with pytest.raises(ValueError, match="preempt_targets"):
        targets_of(text, {"a"}, {"ncpus"})


def test_targets_compare_text() -> None:
    """1.7: ncpus=2 fits a job that asked for 2, not one that asked for 4; keywords ignore case."""
    two, four = job(tasks=2, partition="q"), job(tasks=4, partition="a")
    assert targets_of("Resource_List.ncpus=2", {"a"}, {"ncpus"}).fit(two)
    assert not targets_of("Resource_List.ncpus=2", {"a"}, {"ncpus"}).fit(four)
    assert targets_of("QUEUE=a,Resource_List.ncpus=2", {"a"}, {"ncpus"}).fit(four)
    assert targets_of("nOnE", set(), set()).none


def test_targets_that_are_refused_keep_the_job_out(pbs: Pbs) -> None:
    """qsub would refuse it; here it waits, and says why."""
    more = {"E1": {"attributes": {"preempt_targets": "queue=nowhere"}}}
    run = pbs("J1 workq 0 1 100; E1 expressq 5 1 10", more=more)
    assert run.starts("E1") == ()
    assert run.table.reason("E1") == "preempt_targets is refused"


def test_without_preemption_there_are_no_values(pbs: Pbs) -> None:
    """1.2: the queue is in its usual order, here queue by queue, and no job makes way."""
    text = "J1 workq 0 1 100; J2 workq 5 1 10; E1 expressq 6 1 10"
    off = pbs(text, preemptive_sched=False, by_queue=False)
    assert off.victims == ()
    assert (off.starts("J2"), off.starts("E1")) == ((100.0,), (110.0,))
    by_queue = pbs(text, preemptive_sched=False)
    assert (by_queue.starts("E1"), by_queue.starts("J2")) == ((100.0,), (110.0,))


def test_round_robin(pbs: Pbs) -> None:
    """3.2: queues of one Priority take turns within a cycle."""
    text = "J0 workq 0 2 10; A1 workq 1 1 10; A2 workq 2 1 10; B1 workq2 3 1 10"
    turns = pbs(text, nodes=2, round_robin=True)
    assert [turns.starts(name) for name in ("A1", "B1", "A2")] == [(10.0,), (10.0,), (20.0,)]
    plain = pbs(text, nodes=2)
    assert [plain.starts(name) for name in ("A1", "A2", "B1")] == [(10.0,), (10.0,), (20.0,)]


def test_targets_can_be_switched_off(pbs: Pbs) -> None:
    """1.7: preempt_targets_enable."""
    more = {"E1": {"attributes": {"preempt_targets": "None"}}}
    text = "J1 workq 0 1 100; E1 expressq 5 1 10"
    assert pbs(text, more=more, preempt_targets_enable=False).victims == ("J1",)


# -------------------------------------------------------------------------------- versions (1.1)
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"preempt_prio": "starving_jobs, normal_jobs"}, "gone since 22.05"),
        ({"preempt_sort": ""}, "preempt_sort: got ''; allowed: min_time_since_start"),
        ({"preempt_sort": "max", "version": "20.0"}, "allowed: min_time_since_start, or nothing"),
        ({"preempt_order": "SD", "version": "19.1"}, "preempt_order: got 'SD'"),
        ({"version": "21"}, "got '21'; allowed: 19.1, 20.0, 22.05"),
        ({"preempt_order": "SCR SC"}, "preempt_order: got 'SC' in 'SCR SC'; allowed here: a percent"),
        ({"dedicated_time": [[5.0]]}, "dedicated_time[0]: got [5.0]; allowed: [begin, end]"),
        ({"prime_time": ["Mun 08:00-09:00"]}, "prime_time[0]: got 'Mun 08:00-09:00'; allowed days"),
        ({"server": {"max_run": "3"}}, "server.max_run: got '3'"),
        (
            {"server": {"max_rnu": "[u:a=3]"}},
            "server.max_rnu: no such attribute is modelled; did you mean 'max_run'?",
        ),
        ({"restrict_res_to_release_on_suspend": ["ncpsu"]}, "no resource 'ncpsu'"),
        ({"preempt_ordr": "S"}, "preempt_ordr: unknown key; did you mean 'preempt_order'?"),
        ({"fairshare": {"u": {"share": 2.0}}}, "u.share: got 2; allowed: 1 or less"),
        ({"queues": {"workq": {"Priority": 5000}}}, "got 5000; allowed: a whole number from -1024 to 1023"),
        ({"queues": {"workq": {"max_run": "3"}}}, "partition[0].attributes: max_run: got '3'"),
    ],
)
def test_wrong_settings_are_refused(pbs: Pbs, settings: dict[str, Any], said: str) -> None:
    """With the path, and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        pbs("J1 workq 0 1 10", **settings)
    assert said in str(caught.value)


def test_starving_jobs_to_20_0(pbs: Pbs) -> None:
    """1.4: a job that has waited longer than max_starve outranks normal jobs, and keeps its level while it runs."""
    run = pbs(
        "J1 workq 0 1 1000; J2 workq 5 1 200; J3 workq 6 1 10",
        version="20.0",
        preempt_prio="starving_jobs, normal_jobs",
        max_starve=100.0,
    )
    assert run.victims == ("J1",)
    assert run.starts("J2") == (106.0,)
    assert run.starts("J3") == (306.0,)  # J2 starved as it started; and J3 starved too, so it is before J1


def test_no_starving_jobs_since_22_05(pbs: Pbs) -> None:
    """1.1: the options are of no use."""
    assert pbs("J1 workq 0 1 1000; J2 workq 5 1 200", max_starve=100.0).victims == ()


@pytest.mark.parametrize(
    ("settings", "victim"),
    [
        ({}, "J1"),
        ({"version": "20.0", "preempt_sort": ""}, "J2"),
        ({"version": "20.0", "preempt_sort": "", "unsorted": "documented"}, "J3"),
    ],
    ids=["the most recent start", "by the server's list", "the longest running"],
)
def test_preempt_sort(pbs: Pbs, settings: dict[str, Any], victim: str) -> None:
    """1.6: J3 started at 0, J2 is first in the list but began at 20, J1 began last."""
    run = pbs(
        "J2 workq 0 1 300; J3 workq 0 1 300; J1 workq 40 1 300; E1 expressq 50 1 10",
        nodes=3,
        more={"J2": {"begin_at": 20.0}},
        **settings,
    )
    assert run.victims == (victim,)


# ------------------------------------------------------------------------- actions, coming back
def test_a_checkpointed_job_goes_back_to_its_vnode(pbs: Pbs) -> None:
    """4.2: C keeps the work and the vnode; R may start again anywhere at once (5.5)."""
    two = [node("a", cpus=1), node("b", cpus=1)]
    text = "J1 workq 0 1 100; J2 workq 0 1 4; E1 expressq 5 1 30"
    more = {"E1": {"required_nodes": ("a",)}}
    saved = pbs(text, nodes=two, more=more, preempt_order="C", checkpoint_abort=True)
    assert saved.starts("J1") == (0.0, 35.0)
    assert saved.nodes("J1") == "a"
    assert saved.steps("J1")[-1] == "130 J1 complete"  # 5 of its 100 s were saved
    again = pbs(text, nodes=two, more=more, preempt_order="R")
    assert again.starts("J1") == (0.0, 5.0)
    assert again.nodes("J1") == "b"


def test_a_requeued_victim_waits_as_a_preempted_job(pbs: Pbs) -> None:
    """4.4: before J2, though that has waited for longer."""
    run = pbs("J1 workq 0 1 100; J2 workq 1 1 10; E1 expressq 5 1 10", preempt_order="R", until=20)
    assert run.at(15) == {"J1": "R", "J2": "Q", "E1": "F"}


def test_a_suspended_job_may_preempt_where_it_was(pbs: Pbs) -> None:
    """2.6, 3.3 h: E1 is suspended by E9, J2 starts in what is left, and E1 takes it back when E9 ends."""
    queues = {"workq": 0, "mid": 200, "top": 300}
    run = pbs(
        "E1 mid 0 2 100; E9 top 5 2 20; J2 workq 6 1 100",
        nodes=3,
        queues=queues,
        until=60,
    )
    assert run.victims == ("E1",)
    run = pbs("E1 mid 0 3 100; E9 top 5 2 20; J2 workq 6 1 100", nodes=3, queues=queues, until=60)
    assert run.steps("E1") == ("0 E1 start", "5 E1 suspend for E9", "25 E1 resume")
    assert run.steps("J2") == ("6 J2 start", "25 J2 suspend for E1")


def test_a_suspended_job_whose_victims_would_not_do_touches_none(pbs: Pbs) -> None:
    """3.5: at 8, without J2 there would be 1 CPU of the 3 of E1, for E9 has 2 until 25."""
    run = pbs(
        "E1 mid 0 3 100; E9 top 5 2 20; J2 workq 6 1 100; J3 workq 8 1 10",
        nodes=3,
        queues={"workq": 0, "mid": 200, "top": 300},
        until=60,
    )
    assert run.steps("E1") == ("0 E1 start", "5 E1 suspend for E9", "25 E1 resume")
    assert run.steps("J2") == ("6 J2 start", "25 J2 suspend for E1")


def test_express_before_suspended_before_fresh(pbs: Pbs) -> None:
    """5.2: at 35 a fresh express job goes first, then the suspended one, then the fresh normal one."""
    run = pbs("J1 workq 0 1 100; J2 workq 1 1 10; E1 expressq 5 1 30; E2 expressq 10 1 10")
    assert run.starts("E2") == (35.0,)
    assert "45 J1 resume" in run.steps("J1")
    assert run.starts("J2") == (140.0,)


def test_a_suspended_job_counts_against_no_limit(pbs: Pbs) -> None:
    """5.3; and it goes on only under the limit (5.1)."""
    run = pbs(
        "J1 workq 0 1 100 user=U; E1 expressq 5 1 30; J2 workq 6 1 50 user=U",
        nodes=_named("a", "b"),
        more={"E1": {"required_nodes": ("a",)}},
        server={"max_run": "[u:U=1]"},
    )
    assert run.starts("J2") == (6.0,)
    assert "56 J1 resume" in run.steps("J1")


def test_no_job_takes_what_victims_are_leaving_for_another(pbs: Pbs) -> None:
    """4.3: the scheduler waits for all victims; J2 is suspended at once, J1 needs 10 s to be gone from b."""
    run = pbs(
        "J1 workq 0 1 90 limit=100; J2 workq 0 1 500 limit=1000; E1 expressq 60 2 30; J3 workq 61 1 10",
        nodes=_named("b", "a"),
        preempt_order="S 50 R",
        clockwork={"completing_time": 10.0},
    )
    assert run.modes == (("J1", "requeue"), ("J2", "suspend"))
    assert run.at(65) == {"J1": "E", "J2": "S", "E1": "Q", "J3": "Q"}
    assert run.starts("E1") == (70.0,)


def _named(*names: str) -> list[Any]:
    return [node(name, cpus=1) for name in names]


# --------------------------------------------------------------------------------------- windows
@pytest.mark.parametrize(
    ("day", "minute", "state", "change"),
    [
        (0, 7 * 60, False, 3600.0),
        (0, 8 * 60, True, 36000.0),
        (4, 18 * 60, False, (2 * 24 + 14) * 3600.0),
        (6, 23 * 60, False, 9 * 3600.0),
    ],
)
def test_prime_time(day: int, minute: int, state: bool, change: float) -> None:
    """Monday to Friday, 08:00 to 18:00; 1970-01-05 was a Monday."""
    unix = (4 + day) * 86400.0 + minute * 60.0
    assert is_open(windows_of("Mon-Fri 08:00-18:00"), unix) == (state, change)
