"""Turn each option that stands for an inferred rule, and see the rule change (lsf 12); the first value is the
default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway_lsf_queue.settings import Settings

Lsf = Callable[..., Any]
PAIR = "high 80 {PREEMPTIVE}; low 20 {}"
_PLAIN = (str, bool, int, float, type(None))
OPTIONS = [field.name for field in attrs.fields(Settings) if isinstance(field.default, _PLAIN)]
HELD_OPEN = "R 80 {} SLOT_RESERVE = MAX_RESERVE_TIME[1000]; low 20 {}"
GPU_HOST = {"nodes": {"h1": {"gres": {"gpu": 1}}}, "files": {"lsf.conf": "LSB_GPU_NEW_SYNTAX=Y\n"}}
GPU_JOBS = {"L1": {"gres": {"gpu": 1}}, "H1": {"gres": {"gpu": 1}}}
GPU_QUEUES = "high 80 {PREEMPTIVE}; low 20 {} RERUNNABLE = y | MIG = 5"


def _state(job: str, at: float) -> Callable[[Any], object]:
    return lambda run: run.at(at)[job]


def _victims(run: Any) -> object:
    return run.victims


def _starts(job: str) -> Callable[[Any], object]:
    return lambda run: run.starts(job)


def _both_at_31(run: Any) -> object:
    return run.at(31)["L"], run.at(31)["N"]


def _row(
    option: str, value: object, asked: Callable[[Any], object], default: object, turned: object, **site: Any
) -> Any:
    return pytest.param(option, value, asked, default, turned, site, id=option)


ROWS = [
    _row(
        "preemptable_list",
        "union",
        _state("X", 5),
        "PEND",
        "RUN",
        queues="qb 90 {PREEMPTIVE}; low 20 {PREEMPTABLE[qa]}; qa 50 {}",
        jobs="L low; X qb start=5",
    ),
    _row(
        # the whole line of `high` is void then
        "unknown_queue",
        "disable",
        _state("H1", 5),
        "RUN",
        "PEND",
        queues="high 80 {PREEMPTIVE[low ghost]}; low 20 {}",
        jobs="L1 low; H1 high start=5",
    ),
    _row(
        # turns of MBD_SLEEP_TIME, which is 60 s
        "accept_interval",
        1,
        _starts("B"),
        [0.0],
        [1.0],
        queues="low 20 {}",
        hosts="h1(2)",
        jobs="A low; B low",
    ),
    _row(
        # h1 is full and not loaded; of h2, which is, two slots of three are in use
        "host_order",
        "slots",
        _victims,
        ["L1"],
        ["L2"],
        queues=PAIR,
        hosts="h1(2) h2(3)",
        nodes={"h2": {"load": 0.5}},
        jobs="L1 low n=2 host=h1; L2 low n=2 host=h2; H1 high n=2 start=5",
    ),
    _row(
        "same_host",
        "ties",
        _victims,
        ["W"],
        ["N"],
        queues="high 80 {PREEMPTIVE}; normal 40 {}; low 20 {}",
        hosts="h1(2)",
        jobs="W low; N normal start=1; H1 high start=5",
    ),
    _row(
        "ties",
        "oldest",
        _victims,
        ["L2"],
        ["L1"],
        queues=PAIR,
        hosts="h1(2)",
        jobs="L1 low; L2 low start=1; H1 high start=5",
    ),
    _row(
        # the shortest run first, on one host: A frees two slots, B four, which alone are enough
        "over_preempt",
        False,
        _victims,
        ["A", "B"],
        ["B"],
        queues=PAIR,
        hosts="h1(6)",
        params="PREEMPT_FOR = LEAST_RUN_TIME",
        jobs="B low n=4; A low n=2 start=1; H1 high n=4 start=5",
    ),
    _row(
        # L is estimated to run 20 min and limited to 100: the share of 50% is 10 or 50 min
        "duration",
        "run_limit",
        _state("L", 15),
        "RUN",
        "SSUSP",
        queues=PAIR,
        params="NO_PREEMPT_RUN_TIME = 50%",
        jobs="L low we=20 limit=100; H high start=15",
    ),
    _row(
        "without_duration",
        "protected",
        _state("L", 15),
        "SSUSP",
        "RUN",
        queues=PAIR,
        params="NO_PREEMPT_RUN_TIME = 50%",
        jobs="L low; H high start=15",
    ),
    _row(
        # 5 min in RUN, 10 suspended, 3 in RUN: 8 min or 18
        "run_time",
        "since_start",
        _state("L", 18),
        "SSUSP",
        "RUN",
        queues=PAIR,
        params="NO_PREEMPT_RUN_TIME = 10",
        jobs="L low; H1 high start=5 run=10; H2 high start=18",
    ),
    _row(
        "overrun_protected",
        False,
        _state("L", 15),
        "RUN",
        "SSUSP",
        queues=PAIR,
        params="NO_PREEMPT_FINISH_TIME = 1",
        jobs="L low we=10; H high start=15",
    ),
    _row(
        "preempt_count",
        "exceeded",
        _victims,
        ["L"],
        ["L", "L"],
        queues="high 80 {PREEMPTIVE}; low 20 {} MAX_JOB_PREEMPT = 1",
        jobs="L low; H1 high start=5 run=1; H2 high start=10 run=1; H3 high start=15 run=1",
    ),
    _row(
        "brun_protected",
        False,
        _state("L", 5),
        "RUN",
        "SSUSP",
        queues=PAIR,
        jobs="L low; H high start=5",
        more={"L": {"flags": frozenset({"brun"})}},
    ),
    _row(
        "queue_users",
        "refuse",
        lambda run: (run.at(5)["H"], run.at(5)["L"]),
        ("RUN", "SSUSP"),
        ("EXIT", "RUN"),
        queues="high 80 {PREEMPTIVE} USERS = ops ~omar; low 20 {}",
        files={"lsb.users": "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nops (olga omar)\nEnd UserGroup\n"},
        jobs="L low; H high user=omar start=5",
    ),
    _row(
        "sla_protected",
        False,
        _state("L", 5),
        "RUN",
        "SSUSP",
        queues=PAIR,
        jobs="L low; H high start=5",
        more={"L": {"attributes": {"service_class": "gold"}}},
    ),
    _row(
        "backfill_guard",
        "7.3",
        _state("P1", 5),
        "RUN",
        "PEND",
        queues="R 80 {} SLOT_RESERVE = MAX_RESERVE_TIME[1000]; B 50 {PREEMPTABLE} BACKFILL = Y; P 75 {PREEMPTIVE}",
        hosts="h1(1) h2(1)",
        params="PREEMPT_JOBTYPE = BACKFILL",
        jobs="X R host=h2 run=60 limit=60; R1 R n=2 start=1 run=10; B1 B start=2 limit=30 run=30; P1 P start=5",
    ),
    _row(
        "killed_exit_value",
        99,
        _state("L", 5),
        "EXIT (TERM_PREEMPT)",
        "PEND",
        queues="high 80 {PREEMPTIVE}; low 20 {} TERMINATE_WHEN = PREEMPT | REQUEUE_EXIT_VALUES = 99",
        jobs="L low; H high start=5",
    ),
    _row(
        "resize_preempts",
        True,
        _state("H", 5),
        "PEND",
        "RUN",
        queues=PAIR,
        jobs="L low; H high start=5",
        more={"H": {"attributes": {"resize": True}}},
    ),
    _row(
        # at 10 H is through, but u may run one job and runs O: L1 stays suspended, beside an idle slot
        "ssusp_closes_host",
        False,
        _state("P", 12),
        "PEND",
        "RUN",
        queues=PAIR,
        hosts="h1(2) h2(1)",
        files={"lsb.users": "Begin User\nUSER_NAME MAX_JOBS\nu 1\nEnd User\n"},
        jobs="X low host=h1 run=8; L1 low user=u host=h1 start=1; H high host=h1 start=5 run=5;"
        "O low user=u host=h2 start=6 run=14; P low start=11 host=h1",
    ),
    _row(
        # C (low) under B (mid) under A, who has no right over low: slots of B are A's, so those of C are, too
        "chain",
        False,
        _state("A", 10),
        "RUN",
        "PEND",
        queues="top 80 {PREEMPTIVE[mid]}; mid 50 {PREEMPTIVE}; low 20 {}",
        jobs="C low; B mid start=5; A top start=10",
    ),
    _row(
        "gpu_resource",
        False,
        _state("H1", 5),
        "PEND",
        "RUN",
        queues=GPU_QUEUES,
        jobs="L1 low; H1 high start=5",
        more=GPU_JOBS,
        **GPU_HOST,
    ),
    _row(
        "resume",
        "preemptor",
        _state("L1", 20),
        "RUN",
        "SSUSP",
        queues=PAIR,
        hosts="h1(2)",
        jobs="L2 low run=20; L1 low start=1; H1 high start=5 run=100",
    ),
    _row(
        # N (normal) is the higher queue, L was stopped first
        "resume_order",
        "first_suspended",
        _both_at_31,
        ("SSUSP", "RUN"),
        ("RUN", "SSUSP"),
        queues="high 80 {PREEMPTIVE}; normal 40 {}; low 20 {}",
        hosts="h1(2)",
        jobs="L low; N normal start=1; H1 high start=5 run=100; H2 high start=10 run=20",
    ),
    _row(
        # M holds two slots, H uses one of them, L the other: when H ends, M could go on but for L
        "take_back",
        False,
        _state("M", 20),
        "RUN",
        "SSUSP",
        queues="high 80 {PREEMPTIVE}; mid 50 {PREEMPTIVE}; low 20 {}",
        hosts="h1(2)",
        jobs="M mid n=2; H high start=5 run=15; L low start=6",
    ),
    _row(
        # R1 lets go after its 300 s, so L may start; else after 1000 turns
        # a Sunday begins half an hour into the replay: the window that opens at 1:00 does so at minute 90
        "sunday_at",
        1800.0,
        _starts("L"),
        [60.0],
        [90.0],
        queues="low 20 {} DISPATCH_WINDOW = 0:1:00-0:2:00",
        jobs="L low run=10",
    ),
    _row(
        "reserve_longest",
        300.0,
        _starts("L"),
        [70.0],
        [6.0],
        queues=HELD_OPEN,
        hosts="h1(1) h2(1)",
        jobs="X R host=h2 run=60; R1 R n=2 start=1 run=10; T low start=2 run=1 host=h2; L low start=3 run=70 host=h1",
    ),
]


@pytest.mark.parametrize(("option", "value", "asked", "default", "turned", "site"), ROWS)
def test_option(
    lsf: Lsf,
    option: str,
    value: object,
    asked: Callable[[Any], object],
    default: object,
    turned: object,
    site: Any,
) -> None:
    """The default first, then the other value."""
    given = dict(site)
    jobs, more, commands = given.pop("jobs"), given.pop("more", {}), given.pop("commands", "")
    queues, hosts, params = given.pop("queues"), given.pop("hosts", "h1(1)"), given.pop("params", "")
    for options, expected in (({}, default), ({option: value}, turned)):
        run = lsf(queues, hosts, params, options=options, **given).run(
            jobs, until=200, commands=commands, **more
        )
        assert asked(run) == expected, options


def test_fewest_is_exact_up_to_a_number(lsf: Lsf) -> None:
    """exact_search: with 0 the set is found by taking the largest first, which is enough here."""
    jobs = "LA low n=4 host=h1; LB low n=2 host=h2; LC low n=2 host=h2 start=1; H1 high n=4 start=5"
    params = "PREEMPT_FOR = OPTIMAL_MINI_JOB | PARALLEL_SCHED_BY_SLOT = Y"
    for exact in (0, 4):
        site = lsf(PAIR, "h1(4) h2(4)", params, options={"exact_search": exact})
        assert site.run(jobs, until=6).victims == ["LA"]


def test_every_option_is_tried_and_documented() -> None:
    """In the rows above or tests of their own, the README, and the list of what the documentation leaves open."""
    root = Path(__file__).parents[3]
    readme = (root / "plugins/lsf_queue/README.md").read_text()
    coming = (root / "docs/coming-from-lsf.md").read_text()
    tried = {row.values[0] for row in ROWS} | {"exact_search", "jobs_limit_on_resume"}
    assert set(OPTIONS) == tried
    for name in OPTIONS:
        assert f"`{name}`" in readme, name
        assert f"`{name}`" in coming, name
