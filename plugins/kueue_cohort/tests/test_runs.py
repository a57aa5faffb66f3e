"""Whole replays: which jobs start, which are reclaimed for which and why, which wait again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway_kueue_cohort.plugin import Quotas
from makeway_kueue_cohort.yard import Yard

Make = Callable[..., Any]


def reasons(run: Any) -> list[tuple[str, str, str]]:
    """Return victim, preemptor and reason of every preemption."""
    return [(p.victim, p.preemptor, p.why.partition(":")[0]) for p in run.run.recorder.preemptions]


def test_borrowed_quota_is_reclaimed(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """a lends 4 CPUs to b; when a needs its own again, the job of b that was admitted last leaves, and waits again."""
    run = play(
        """
        job   partition  submit  cpus   run_time
        b1    b               0  4           100
        b2    b               1  4           100
        a1    a              10  4            50
        """,
        site(queue("a", quota(4)), queue("b", quota(4))),
    )
    assert reasons(run) == [("b2", "a1", "InCohortReclamation")]
    assert run.starts("a1") == (10.0,)
    assert run.starts("b2") == (1.0, 60.0)
    assert run.history("b2").job.spec.submit_at == 1.0


def test_what_jobs_hold_is_handed_over(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """A job in a and none that waits for victims: its flavor is told, and another engine takes it over (3.1)."""
    run = play(
        """
        job   partition  submit  cpus   run_time
        a1    a               0  4           100
        """,
        site(queue("a", quota(4))),
        until=10.0,
    )
    assert Quotas().save(run.engine.ledger) == {
        "held": {"a1": [["default", "cpu", 4000]]},
        "kept": {},
    }


def test_no_backoff_and_the_old_place(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """kueue 8.2: what was preempted queues by its creation, so it goes before one that came in between."""
    run = play(
        """
        job   partition  submit  cpus   run_time
        b1    b               0  8           100
        b2    b               5  8            10
        a1    a              10  4            50
        """,
        site(queue("a", quota(4)), queue("b", quota(4))),
    )
    assert run.starts("b1") == (0.0, 60.0)
    assert run.starts("b2") == (160.0,)


def test_lower_priority_of_the_own_queue(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """A queue alone: the lower priority leaves, the equal one does not."""
    config = site(queue("a", quota(4), cohort=None, reclaim="Never"))
    run = play(
        """
        job   partition  submit  cpus   run_time  priority
        low   a               0  4           100         1
        same  a               1  4            10         1
        high  a               2  4            10         2
        """,
        config,
    )
    assert reasons(run) == [("low", "high", "InClusterQueue")]
    assert run.starts("same") == (112.0,)


@pytest.mark.parametrize(("sharing", "victims"), [("classic", ["b2"]), ("fair", ["b2"])])
def test_both_ways_of_sharing(
    play: Make, site: Make, queue: Make, quota: Make, sharing: str, victims: list[str]
) -> None:
    """Within its nominal quota the preemptor is entitled under either."""
    run = play(
        """
        job   partition  submit  cpus   run_time
        b1    b               0  4           100
        b2    b               1  4           100
        a1    a              10  4            50
        """,
        site(queue("a", quota(4)), queue("b", quota(4)), sharing=sharing),
    )
    assert [each[0] for each in reasons(run)] == victims


def test_fair_shares_even_out(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """c borrows all 6 CPUs of a pool; b may have half of them, and no more (6.8: final share)."""
    pool = queue("pool", quota(6), within_queue="Never", reclaim="Never")
    jobs = "job partition submit cpus run_time\n"
    jobs += "".join(f"c{at} c {at} 1     1000\n" for at in range(6))
    jobs += "".join(f"b{at} b {10 + at} 1     1000\n" for at in range(6))
    run = play(jobs, site(pool, queue("b", quota(0)), queue("c", quota(0)), sharing="fair"), until=100.0)
    assert [each[0] for each in reasons(run)] == ["c5", "c4", "c3"]
    assert {each[2] for each in reasons(run)} == {"InCohortFairSharing"}
    assert run.starts("b3") == ()


def test_strict_order_holds_up_the_queue(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """StrictFIFO waits behind its first; BestEffortFIFO does not (7.1)."""
    jobs = """
        job   partition  submit  cpus   run_time
        one   a               0  2           100
        wide  a               1  4            10
        thin  a               2  2            10
        """
    never = {"within_queue": "Never", "reclaim": "Never"}
    run = play(jobs, site(queue("a", quota(4), strategy="StrictFIFO", **never)))
    assert (run.starts("wide"), run.starts("thin")) == ((100.0,), (110.0,))
    run = play(jobs, site(queue("a", quota(4), **never)))
    assert (run.starts("wide"), run.starts("thin")) == ((100.0,), (2.0,))


def test_the_limit_on_borrowing(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """Quota of its own and 2 borrowed: the third pair of CPUs is not to be had, though they lie idle."""
    run = play(
        """
        job   partition  submit  cpus   run_time
        a1    a               0  2           100
        a2    a               0  2           100
        a3    a               0  2           100
        """,
        site(queue("a", quota(2, borrowing_limit=2)), queue("b", quota(8))),
    )
    assert [run.starts(each) for each in ("a1", "a2", "a3")] == [(0.0,), (0.0,), (100.0,)]


def test_the_next_flavor(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """The first flavor is full, so the second is taken, on its nodes; both are of one resource group (1.3)."""
    flavors = [{"name": "old", "nodes": "n1"}, {"name": "new", "nodes": "n2"}]
    both = queue("a", quota(4, "old"), quota(4, "new"))
    run = play(
        """
        job   partition  submit  cpus   run_time
        a1    a               0  4           100
        a2    a               0  4           100
        a3    a               0  4           100
        """,
        site(both, flavor=flavors),
    )
    assert (run.nodes("a1"), run.nodes("a2")) == ("n1", "n2")
    assert run.starts("a3") == (100.0,)


def test_quota_is_free_once_the_pods_have_stopped(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """8.1: with 30 s of grace the preemptor starts after them, and no other job takes the quota meanwhile."""
    run = play(
        """
        job   partition  submit  cpus   run_time
        b1    b               0  8           100
        a1    a              10  4            50
        b2    b              20  4            10
        """,
        site(queue("a", quota(4)), queue("b", quota(4)), grace_time=30.0),
    )
    assert run.starts("a1") == (40.0,)
    assert run.starts("b2") == (40.0,)
    assert reasons(run) == [("b1", "a1", "InCohortReclamation")]


def test_a_queue_that_does_not_exist(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """Its jobs are refused, with the name."""
    run = play(
        "job partition submit cpus run_time\nx a 0 1     5\n",
        site(queue("a", quota(4)), queue_by="account"),
    )
    assert [(job, why) for job, _, why in run.run.recorder.unrunnable] == [
        ("x", "there is no ClusterQueue or LocalQueue named ''")
    ]


def test_what_can_never_be_had_waits(play: Make, site: Make, queue: Make, quota: Make) -> None:
    """Kueue keeps it as inadmissible: a quota may grow. Others go on."""
    run = play(
        "job partition submit cpus run_time\nbig a 0 9     5\nok a 1 2     5\n",
        site(queue("a", quota(4))),
    )
    assert run.starts("ok") == (1.0,)
    assert run.reason("big") == "InsufficientQuota"


@pytest.mark.parametrize("wide", [2, 1])
def test_one_head_a_pass(play: Make, site: Make, queue: Make, quota: Make, wide: int) -> None:
    """kueue 7.1, 7.2, 7.6: a pass tries one head of each queue, and a queue with reclaim Any has nothing kept.

    At 100 one of a's two CPUs falls free. First in a is the job `wide`. If it asks for two CPUs, it does not fit, and
    b1 is admitted in the same pass; in the next pass it is a3's turn, which reclaims a's quota at once. If it asks for
    one, it is admitted itself, and after it a3; b1 waits for both.
    """
    run = play(
        f"""
        job   partition  submit  cpus   run_time
        a1    a               0  1           100
        a2    a               0  1           500
        wide  a               1  {wide}       50
        a3    a               2  1            50
        b1    b               3  1           300
        """,
        site(queue("a", quota(2)), queue("b", quota(0))),
    )
    starts = {name: run.starts(name) for name in ("wide", "a3", "b1")}
    if wide == 1:
        assert starts == {"wide": (100.0,), "a3": (150.0,), "b1": (200.0,)}
        assert reasons(run) == []
        return
    assert starts == {"wide": (500.0,), "a3": (100.0,), "b1": (150.0,)}  # its start at 100 came to nothing
    assert reasons(run) == [("b1", "a3", "InCohortReclamation")]
    assert [each.at for each in run.run.recorder.preemptions] == [100.0]


def test_ended_jobs_are_forgotten(
    play: Make, site: Make, queue: Make, quota: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a job asked for is kept no longer than the job: a year of jobs needs the memory of those that are there."""
    yards = []
    begin = Yard.__init__

    def noted(self: Yard, view: Any) -> None:
        begin(self, view)
        yards.append(self)

    monkeypatch.setattr(Yard, "__init__", noted)
    play(
        "job partition submit cpus run_time\nj1 a 0 1 10\nj2 a 0 1 10\nj3 a 5 1 10\nj4 a 30 1 9",
        site(queue("a", quota(2))),
    )
    (yard,) = yards
    assert set(yard._asking) <= {"j4"}  # the run ends with it


def test_quota_left_over_by_a_preemption_is_lent_at_once(
    play: Make, site: Make, queue: Make, quota: Make
) -> None:
    """A head that was nominated before another one's victim left is tried again by what that victim leaves."""
    config = site(
        queue("a", quota(4)),
        queue("b", quota(0), within_queue="Never", reclaim="Never"),
    )
    run = play(
        """
        job   partition  submit  cpus   run_time  priority
        low   a               0  4           900         1
        high  a              10  2           100         2
        lent  b              10  2           100         1
        """,
        config,
    )
    assert (run.starts("high"), run.starts("lent")) == ((10.0,), (10.0,))
