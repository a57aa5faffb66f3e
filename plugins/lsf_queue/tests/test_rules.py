"""Single rules that no numbered scenario is about: protections (section 4), actions and going on (5.3, 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway.model import JobState

Lsf = Callable[..., Any]
PAIR = "high 80 {PREEMPTIVE}; low 20 {}"
HIGH = "high 80 {PREEMPTIVE}"


def _application(*lines: str) -> dict[str, str]:
    return {"lsb.applications": "\n".join(["Begin Application", "NAME = app", *lines, "End Application", ""])}


# -------------------------------------------------------------------------------- protections
@pytest.mark.parametrize(
    ("reset", "times"), [("", 3), (" | MAX_JOB_PREEMPT_RESET = Y", 3), (" | MAX_JOB_PREEMPT_RESET = N", 1)]
)
def test_a_requeue_resets_the_count(lsf: Lsf, reset: str, times: int) -> None:
    """4.1: MAX_JOB_PREEMPT counts anew after a requeue, unless MAX_JOB_PREEMPT_RESET = N."""
    low = "low 20 {} JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID] | MAX_JOB_PREEMPT = 1"
    jobs = "L low; H1 high start=5 run=1; H2 high start=10 run=1; H3 high start=15 run=1"
    assert lsf(f"{HIGH}; {low}{reset}").run(jobs, until=30).victims == ["L"] * times


def test_time_spent_preempted(lsf: Lsf) -> None:
    """MAX_TOTAL_TIME_PREEMPT = 10: suspended for 6 min, then for 4, then never again."""
    site = lsf(f"{HIGH}; low 20 {{}} MAX_TOTAL_TIME_PREEMPT = 10")
    jobs = "L low; H1 high start=5 run=6; H2 high start=20 run=4; H3 high start=30 run=1"
    run = site.run(jobs, until=60)
    assert run.victims == ["L", "L"]
    assert run.at(31) == {"L": "RUN", "H1": "DONE", "H2": "DONE", "H3": "PEND"}


@pytest.mark.parametrize(
    ("params", "queue", "application", "state"),
    [
        pytest.param("9", "", "", "RUN", id="cluster"),
        pytest.param("9", "1", "", "SSUSP", id="queue over cluster"),
        pytest.param("1", "9", "", "RUN", id="queue over cluster, the other way"),
        pytest.param("9", "9", "1", "SSUSP", id="application over queue"),
        pytest.param("", "1", "9", "RUN", id="application over queue, the other way"),
    ],
)
def test_levels(lsf: Lsf, params: str, queue: str, application: str, state: str) -> None:
    """4.1: NO_PREEMPT_INTERVAL, minutes; the victim's application, then its queue, then the cluster."""
    key = "NO_PREEMPT_INTERVAL = "
    low = "low 20 {}" + (f" {key}{queue}" if queue else "")
    files = _application(key + application) if application else {}
    site = lsf(f"{HIGH}; {low}", "h1(1)", key + params if params else "", files=files)
    assert site.run("L low app=app; H high start=5", until=6).at(5)["L"] == state


@pytest.mark.parametrize(
    ("params", "queue", "application", "start"),
    [("60", "", "", 6.0), ("60", "120", "", 7.0), ("60", "120", "180", 8.0)],
    ids=["cluster", "queue", "application"],
)
def test_levels_of_the_preemptors_wait(
    lsf: Lsf, params: str, queue: str, application: str, start: float
) -> None:
    """4.1, 4.2: PREEMPT_DELAY, seconds, of the preemptor."""
    key = "PREEMPT_DELAY = "
    files = _application(key + application) if application else {}
    site = lsf(HIGH + (f" {key}{queue}" if queue else "") + "; low 20 {}", "h1(1)", key + params, files=files)
    assert site.run("L low; H high app=app start=5 run=1").starts("H") == [start]


def test_a_requeued_preemptor_does_not_wait_again(lsf: Lsf) -> None:
    """4.7: PREEMPT_DELAY counts from when the master accepted the job."""
    mid = "mid 50 {PREEMPTIVE} PREEMPT_DELAY = 600 | JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID]"
    run = lsf(f"{HIGH}; {mid}; low 20 {{}}").run("L low; M mid start=5 run=100; H high start=20 run=2")
    assert run.starts("M") == [15.0, 22.0]


@pytest.mark.parametrize(("params", "state"), [("", "RUN"), ("PREEMPT_JOBTYPE = AFFINITY", "SSUSP")])
def test_affinity(lsf: Lsf, params: str, state: str) -> None:
    """4.6, 8.5."""
    run = lsf(PAIR, "h1(1)", params).run(
        "L low; H high start=5", until=6, L={"attributes": {"affinity": True}}
    )
    assert run.at(5)["L"] == state


@pytest.mark.parametrize(
    ("attributes", "state"),
    [
        ({}, "PEND"),
        ({"gpu_mode": "shared"}, "RUN"),
        ({"gpu_mode": "shared", "gpu_j_exclusive": True}, "PEND"),
    ],
    ids=["exclusive_process: it migrates", "shared: safe", "shared, j_exclusive: it migrates"],
)
def test_shared_gpus(lsf: Lsf, attributes: dict[str, object], state: str) -> None:
    """8.3: the victim has its GPUs for itself."""
    site = lsf(
        f"{HIGH}; low 20 {{}} MIG = 5 | RERUNNABLE = y",
        "h1(1)",
        "PREEMPTABLE_RESOURCES = ngpus_physical",
        files={"lsf.conf": "LSB_GPU_NEW_SYNTAX=extend\n"},
        nodes={"h1": {"gres": {"gpu": 1}}},
    )
    gpu = {"gres": {"gpu": 1}}
    run = site.run("L low; H high start=5", until=6, L={**gpu, "attributes": attributes}, H=gpu)
    assert run.at(5)["L"] == state


@pytest.mark.parametrize(
    ("release", "state"), [(True, "RUN"), (False, "PEND")], ids=["releasable", "not releasable: rejected"]
)
def test_resources_that_are_not_releasable_are_rejected(lsf: Lsf, release: bool, state: str) -> None:
    """8.1."""
    options = {"resources": {"lic": {"total": 1, "release": release}}}
    site = lsf(PAIR, "h1(4)", "PREEMPTABLE_RESOURCES = lic", options=options)
    holds = {"attributes": {"rusage": {"lic": 1}}}
    run = site.run("L low; H high start=5", until=6, L=holds, H=holds)
    assert run.at(5)["H"] == state
    assert run.at(5)["L"] == ("SSUSP" if release else "RUN")


@pytest.mark.parametrize(
    ("profile", "limit", "state"),
    [
        pytest.param("RUNTIME = 20", "limit=100", "RUN", id="estimate of the application: 10 of 20"),
        pytest.param("RUNLIMIT = 20", "", "RUN", id="limit of the application: 10 of 20"),
        pytest.param("RUNLIMIT = 20", "limit=100", "SSUSP", id="its own limit comes first: 10 of 100"),
        pytest.param("RUNLIMIT = 1:40", "", "SSUSP", id="hours and minutes: 10 of 100"),
        pytest.param("MIG = 5", "", "SSUSP", id="limit of the queue: 10 of 200"),
    ],
)
def test_duration_of_a_job(lsf: Lsf, profile: str, limit: str, state: str) -> None:
    """4.3: NO_PREEMPT_RUN_TIME = 50% of the estimate, else of the limit of the job, its application, its queue."""
    queues = f"{HIGH}; low 20 {{}} RUNLIMIT = 200"
    site = lsf(queues, "h1(1)", "NO_PREEMPT_RUN_TIME = 50%", files=_application(profile))
    assert site.run(f"L low app=app {limit}; H high start=10", until=11).at(10)["L"] == state


# ------------------------------------------------------------------------------------- actions
WHOLE = 60_000.0
"""A job that ends for good is submitted again, with all of its work."""


@pytest.mark.parametrize(
    ("lines", "state", "lost"),
    [
        pytest.param("JOB_CONTROLS = SUSPEND[SIGTSTP]", "SSUSP", 0, id="a signal"),
        pytest.param("JOB_CONTROLS = SUSPEND[CHKPNT]", "SSUSP", 0, id="checkpoint, then stop"),
        pytest.param("JOB_CONTROLS = SUSPEND[/site/stop.sh]", "SSUSP", 0, id="a command"),
        pytest.param(
            "JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID] | CHKPNT = /c", "PEND", 300, id="from nothing"
        ),
        pytest.param("JOB_CONTROLS = SUSPEND[bmig $LSB_JOBID]", "PEND", 300, id="bmig, not checkpointable"),
        pytest.param(
            "JOB_CONTROLS = SUSPEND[bmig $LSB_JOBID] | CHKPNT = /c", "PEND", 0, id="bmig with its work"
        ),
        pytest.param("JOB_CONTROLS = SUSPEND[bkill $LSB_JOBID]", "EXIT (TERM_PREEMPT)", WHOLE, id="bkill"),
        pytest.param("TERMINATE_WHEN = WINDOW", "SSUSP", 0, id="terminated for other causes only"),
        pytest.param("TERMINATE_WHEN = LOAD PREEMPT", "EXIT (TERM_PREEMPT)", WHOLE, id="terminated"),
        pytest.param(
            "TERMINATE_WHEN = PREEMPT | REQUEUE_EXIT_VALUES = 1 130", "PEND", 300, id="requeued by value"
        ),
        pytest.param(
            "TERMINATE_WHEN = PREEMPT | REQUEUE_EXIT_VALUES = 1",
            "EXIT (TERM_PREEMPT)",
            WHOLE,
            id="other value",
        ),
    ],
)
def test_actions(lsf: Lsf, lines: str, state: str, lost: float) -> None:
    """6.1: what becomes of a victim that ran for 300 of 60,000 s."""
    run = lsf(f"{HIGH}; low 20 {{}} {lines}").run("L low; H high start=5", until=6)
    assert run.at(5) == {"L": state, "H": "RUN"}
    assert run.history("L").lost == lost


@pytest.mark.parametrize(
    ("action", "values", "state"),
    [
        pytest.param("bkill $LSB_JOBID", "130", "PEND", id="bkill"),
        pytest.param("bkill $LSB_JOBID", "137", "EXIT (TERM_PREEMPT)", id="bkill, another value"),
        pytest.param("SIGKILL", "137", "PEND", id="SIGKILL"),
        pytest.param("SIGKILL", "130", "EXIT (TERM_PREEMPT)", id="SIGKILL, another value"),
        pytest.param("15", "1 143", "PEND", id="SIGTERM by number"),
        pytest.param("SIGTSTP", "all ~0", "SSUSP", id="a signal that stops"),
    ],
)
def test_killed_by_the_suspend_action(lsf: Lsf, action: str, values: str, state: str) -> None:
    """6.1: a killed job whose exit value is listed is requeued, whatever killed it."""
    lines = f"JOB_CONTROLS = SUSPEND[{action}] | REQUEUE_EXIT_VALUES = {values}"
    assert lsf(f"{HIGH}; low 20 {{}} {lines}").run("L low; H high start=5", until=6).at(5)["L"] == state


def test_interactive_jobs_are_not_requeued(lsf: Lsf) -> None:
    """6.1: brequeue does not work on them."""
    site = lsf(f"{HIGH}; low 20 {{}} JOB_CONTROLS = SUSPEND[brequeue $LSB_JOBID]")
    assert site.run("L low; H high start=5", until=6, L={"batch": False}).at(5)["L"] == "SSUSP"


@pytest.mark.parametrize(
    ("low", "host", "own", "minute"),
    [
        pytest.param(" MIG = 10 | RERUNNABLE = y", "()", None, 11, id="queue"),
        pytest.param(" MIG = 10 | RERUNNABLE = y", "()", 3, 4, id="job over queue"),
        pytest.param(" RERUNNABLE = y", "()", 3, 4, id="job alone"),
        pytest.param(" MIG = 10 | RERUNNABLE = y", "2", None, 3, id="a smaller one of the host"),
        pytest.param(" MIG = 10 | RERUNNABLE = y", "20", None, 11, id="a larger one of the host"),
        pytest.param(" MIG = 10", "()", None, None, id="not rerunnable"),
    ],
)
def test_migration(lsf: Lsf, low: str, host: str, own: int | None, minute: int | None) -> None:
    """6.1: suspended at 1 on h1 for long, while h2 is free: after more than MIG minutes it goes there."""
    site = lsf(f"{HIGH}; low 20 {{}}{low}", "h1(1) h2(1)", host_columns={"h1": {"MIG": host}})
    more: dict[str, Any] = {} if own is None else {"attributes": {"mig": own}}
    run = site.run("X low host=h2 run=0.5; L low run=100; H high host=h1 start=1 run=500", L=more)
    assert run.host("L") == ("h1" if minute is None else "h2")
    moved = [start / 60 for state, start, *_ in run.history("L").intervals if state is JobState.RUNNING][1]
    # If it never moves it goes on when H is through.
    assert moved == pytest.approx(501 if minute is None else minute, abs=0.001)


def test_work_goes_along_with_a_checkpointable_job(lsf: Lsf) -> None:
    """6.1: 1 min on h1, 10 suspended, then the other 19 of 20 on h2."""
    site = lsf(f"{HIGH}; low 20 {{}} MIG = 10 | CHKPNT = /c", "h1(1) h2(1)")
    run = site.run("X low host=h2 run=0.5; L low run=20; H high host=h1 start=1 run=500")
    ended = run.history("L").ended_at
    assert ended == pytest.approx(30 * 60, abs=0.1)
    assert run.history("L").lost == 0


# ------------------------------------------------------------------- the slots of suspended jobs
@pytest.mark.parametrize(
    ("params", "state"), [("", "RUN"), ("USE_SUSP_SLOTS = Y", "RUN"), ("USE_SUSP_SLOTS = N", "PEND")]
)
def test_lower_queues_use_slots_of_suspended_jobs(lsf: Lsf, params: str, state: str) -> None:
    """5.3: M holds two slots of which H uses one; L, which M's queue may preempt, gets the other."""
    site = lsf("high 80 {PREEMPTIVE}; mid 50 {PREEMPTIVE}; low 20 {}", "h1(2)", params)
    run = site.run("M mid n=2; H high start=5; L low start=6", until=7)
    assert run.at(6) == {"M": "SSUSP", "H": "RUN", "L": state}
    if state == "PEND":
        assert "(1003)" in run.reason("L")


def test_unrelated_queues_do_not(lsf: Lsf) -> None:
    """5.3: a third queue without a relation cannot slip into the gap."""
    site = lsf("high 80 {PREEMPTIVE[mid]}; other 60 {}; mid 50 {}; low 20 {}", "h1(2)")
    run = site.run("M mid n=2; H high start=5; O other start=6; L low start=6", until=7)
    assert run.at(6) == {"M": "SSUSP", "H": "RUN", "O": "PEND", "L": "PEND"}


def test_who_stands_in_a_gap_leaves_the_rest_to_peers_of_whose_it_is(lsf: Lsf) -> None:
    """5.3, 6.3: M may use the two slots that L keeps on h2, so the third is N's; T's end gives L back all of its own.

    By count (two slots in use and two kept of three) N may stop M for it, which then goes on at the same instant.
    """
    site = lsf("top 57 {}; low 35 {PREEMPTIVE PREEMPTABLE}; mid 20 {}", "h1(1) h2(3)")
    jobs = "L low n=3 host=h1; T top start=1 run=10 host=h1; M mid n=2 start=2; N low start=3 run=2; O low start=4"
    run = site.run(jobs, until=12)
    assert run.at(4) == {"L": "SSUSP", "T": "RUN", "M": "RUN", "N": "RUN", "O": "PEND"}
    assert run.at(11) == {"L": "RUN", "T": "DONE", "M": "SSUSP", "N": "DONE", "O": "RUN"}


@pytest.mark.parametrize(("cores", "state"), [(3, "PEND"), (4, "PEND")])
def test_slots_are_kept_whichever_cores_they_are(lsf: Lsf, cores: int, state: str) -> None:
    """5.3: L1 holds three of four slots, H takes three, one of them idle before: none is left for a peer."""
    run = lsf(PAIR, "h1(4)").run(f"L1 low n=3; H high n={cores} start=5 run=30; L3 low start=6", until=7)
    assert run.at(6)["L3"] == state
    assert "(1003)" in run.reason("L3")


def test_slots_of_jobs_that_people_suspend_are_kept(lsf: Lsf) -> None:
    """5.1, 6.3: peers do not get them; a related queue does, and then bresume makes the job wait as SSUSP."""
    site = lsf(PAIR)
    commands = "120 suspend L1\n600 resume L1"
    alone = site.run("L1 low run=60; L2 low start=3 run=20", commands=commands)
    assert alone.at(5) == {"L1": "SSUSP", "L2": "PEND"}  # `at` knows no persons
    assert alone.starts("L2") == [68.0], "58 minutes of L1 were left at 10"
    related = site.run("L1 low run=60; H high start=3 run=20", commands=commands)
    assert related.at(5)["H"] == "RUN"
    assert related.victims == []
    assert [(state.value, start / 60) for state, start, *_ in related.history("L1").intervals] == [
        ("RUNNING", 0.0),
        ("SUSPENDED", 2.0),
        ("SUSPENDED", 10.0),
        ("RUNNING", 23.0),
    ]


def test_going_on_respects_limits(lsf: Lsf) -> None:
    """6.3: u may run one job; L's slot is free at 10, but u's other job runs on until 20."""
    files = {"lsb.users": "Begin User\nUSER_NAME MAX_JOBS\nu 1\nEnd User\n"}
    site = lsf(PAIR, "h1(1) h2(1)", files=files)
    run = site.run(
        "L low user=u host=h1; H high host=h1 start=5 run=5; O low user=u host=h2 start=6 run=14", until=30
    )
    assert run.at(10) == {"L": "SSUSP", "H": "DONE", "O": "RUN"}
    assert run.at(20)["L"] == "RUN"


def test_run_limits_do_not_run_while_suspended(lsf: Lsf) -> None:
    """6.3: 10 min of run time, 20 of suspension."""
    run = lsf(PAIR).run("L low run=100 limit=10; H high start=5 run=20")
    assert run.history("L").ended_at == 30 * 60
    assert run.at(31)["L"] == "EXIT (TERM_RUNLIMIT)"


# --------------------------------------------------------------------------------------- states
def test_states_of_people(lsf: Lsf) -> None:
    """0.3: USUSP is a person's doing, PSUSP a hold; neither is a victim of any job."""
    site = lsf(PAIR, "h1(2)")
    table = site.run(
        "L1 low; L2 low; P low start=1; H high n=2 start=5",
        until=6,
        commands="120 suspend L1",
        P={"priority": 0},
    ).table
    jobs = {name: history.job for name, history in table.run.recorder.histories.items()}
    words = table.run.engine.policies.vocabulary()
    shown = {name: words.state(job.state, job.suspended_by, held=job.held) for name, job in jobs.items()}
    assert shown == {"L1": "USUSP", "L2": "SSUSP", "P": "PSUSP", "H": "RUN"}
    assert words.suspension(jobs["L1"].state, jobs["L1"].suspended_by).startswith(
        "SUSP_ADMIN_STOP (0x00004000)"
    )
    assert words.suspension(jobs["L2"].state, jobs["L2"].suspended_by).startswith(
        "SUSP_MBD_PREEMPT (0x00000080)"
    )


@pytest.mark.parametrize(
    ("queues", "jobs", "states"),
    [
        pytest.param(
            "high 80 {PREEMPTIVE}; low 20 {PREEMPTABLE}", "L low -x; H high", "SSUSP RUN", id="victim"
        ),
        pytest.param(
            "high 80 {PREEMPTIVE}; low 20 {}", "L low -x; H high", "RUN PEND", id="victim, no PREEMPTION"
        ),
        pytest.param("high 80 {PREEMPTIVE}; low 20 {}", "L low; H high -x", "SSUSP RUN", id="preemptor"),
        pytest.param(
            "high 80 {}; low 20 {PREEMPTABLE}", "L low; H high -x", "RUN PEND", id="preemptor, no PREEMPTION"
        ),
    ],
)
def test_exclusive_jobs_of_marked_queues_only(lsf: Lsf, queues: str, jobs: str, states: str) -> None:
    """4.4: the queue of the exclusive job has to carry PREEMPTIVE or PREEMPTABLE."""
    files = {"lsf.conf": "LSB_DISABLE_LIMLOCK_EXCL=Y\n"}
    run = lsf(queues, "h1(2)", "PREEMPT_JOBTYPE = EXCLUSIVE", files=files).run(f"{jobs} start=5", until=6)
    assert [run.at(5)[name] for name in "LH"] == states.split()


@pytest.mark.parametrize(
    ("value", "said"), [("Y", ""), ("cu[enclosure]", ""), ("perhaps", "allowed: Y, N, CU or CU")]
)
def test_exclusive_is_looked_at(lsf: Lsf, value: str, said: str) -> None:
    """9.3: Y, N or CU."""
    warnings = lsf(f"low 20 {{}} EXCLUSIVE = {value}").warnings
    assert said in warnings
    assert bool(said) is ("EXCLUSIVE" in warnings)


def test_suspended_jobs_go_on_before_pending_jobs_of_lower_queues(lsf: Lsf) -> None:
    """6.3: when I ends, L takes its slot back before A and B are tried, and none is started only to be stopped."""
    site = lsf("top 57 {PREEMPTIVE[low]}; low 35 {PREEMPTIVE[mid]}; mid 27 {}", "h1(2)")
    run = site.run("L low; T top n=2 start=1 run=10; A mid start=2 run=5; B mid start=3 run=5", until=30)
    assert run.victims == ["L"]
    assert run.at(11) == {"L": "RUN", "T": "DONE", "A": "RUN", "B": "PEND"}
    assert (run.starts("A"), run.starts("B")) == ([11.0], [16.0])


def test_pending_jobs_of_higher_queues_go_before_suspended_jobs(lsf: Lsf) -> None:
    """6.3: U is tried before L goes on, which would only be stopped again."""
    site = lsf("top 57 {PREEMPTIVE}; low 35 {}", "h1(1)")
    run = site.run("L low; T top start=1 run=10; U top start=2 run=5", until=30)
    assert run.victims == ["L"]
    assert (run.starts("U"), run.at(15)["L"], run.at(16)["L"]) == ([11.0], "SSUSP", "RUN")
