"""What the main scheduler finds when a begin time comes, and whether backfill makes a pass for it."""

from __future__ import annotations

import pytest

from makeway_testing import cluster, node, replay_table

CLOCKS = {
    "sched_interval": 1.0,
    "sched_phase": 0.5,
    "bf_interval": 1.0,
    "bf_phase": 0.25,
    "pass_on_submit": False,
    "pass_on_completion": False,
}
"""Looks of the main scheduler at 0.5, 1.5, ..., passes of backfill a quarter of a second before each."""
FIRST = """
    job  submit  nodes  run_time  time_limit  begin
    w         0      1        20     20      -
    h         2      2         5      5      8
"""
LAST = "    b         3      1         4      4      9\n"


@pytest.mark.parametrize(
    ("between", "quiet", "start"),
    [
        ("", True, 10.25),  # the look at 8.5 is no news, the one at 9.5 gives b the reason Priority
        ("", False, 9.25),  # the look at 8.5 wakes backfill
        (
            "    i         2      2         5      5      8\n",
            True,
            9.25,
        ),  # at 8.5 i waits for h, which is news
    ],
)
def test_a_job_that_waits_for_resources_is_no_news(between: str, quiet: bool, start: float) -> None:
    """One node is idle; `h` needs two from 8 on, and `b` could run on one before `w` ends."""
    run = replay_table(
        FIRST + between + LAST,
        cluster=cluster(2),
        config={
            "scheduler": "backfill",
            "clockwork": CLOCKS,
            "rules": {"begin_time_wakes_no_backfill": True, "resources_wake_no_backfill": quiet},
        },
    )
    assert run.starts("b") == (start,)


@pytest.mark.parametrize(
    ("wide", "start"),
    [
        ("x    low             2      2         5      -\n", 9.25),  # x wants two: each look is news
        ("", 9.5),  # nothing is: the look at 9.5 finds b first, and starts it on n3
    ],
)
def test_nodes_kept_for_a_higher_tier_are_news_each_second(wide: str, start: float) -> None:
    """`h` waits and keeps n1 and n2 from all that ask for `low`; no end is known, so backfill plans for no job."""
    run = replay_table(
        "job  partition  submit  nodes  run_time  begin\n"
        "w    hi              0      2        20      -\n"
        "h    hi              1      1         5      -\n"
        f"{wide}b    low             3      1         4      9\n",
        cluster=cluster(3),
        config={
            "scheduler": "backfill",
            "clockwork": CLOCKS,
            "partitions": {
                "low": {"nodes": "n[1-3]", "priority_tier": 1},
                "hi": {"nodes": "n[1-2]", "priority_tier": 2},
            },
            "rules": {"begin_time_wakes_no_backfill": True, "reasons_are_news": True},
        },
    )
    assert run.starts("b") == (start,)


@pytest.mark.parametrize(("news", "start"), [(True, 9.25), (False, 10.25)])
def test_a_job_that_waits_for_priority_is_news_each_second(news: bool, start: float) -> None:
    """`i` waits behind `h` for n1 and n2, which are not idle; `b` could run on n3 from 9 on, behind both."""
    run = replay_table(
        "job  submit  nodes  run_time  time_limit  features  begin\n"
        "w         0      2        20          20         a      -\n"
        "h         1      2         5           5         a      -\n"
        "i         1      2         5           5         a      -\n"
        "b         3      1         4           4         -      9\n",
        cluster=(node("n[1-2]", features=["a"]), node("n3")),
        config={
            "scheduler": "backfill",
            "clockwork": CLOCKS,
            "rules": {"begin_time_wakes_no_backfill": True, "reasons_are_news": news},
        },
    )
    assert run.starts("b") == (start,)
