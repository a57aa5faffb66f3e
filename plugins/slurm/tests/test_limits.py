"""Limits of QOS, associations and partitions by hand: the numbered examples L1 to L11 and X1 to X3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from makeway.arrays import parse_array, tasks_of
from makeway.config import Config
from makeway.errors import ConfigError
from makeway.model import Exclusive, JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, Run, replay

NAME = "limits/slurm"
FOUR: dict[str, Any] = {"name": "n[1-4]", "cpus": 4, "cores_per_socket": 4, "memory_mb": 1000}


def site(
    qos: Mapping[str, Mapping[str, Any]] | None = None,
    accounts: Sequence[Mapping[str, Any]] = (),
    *,
    partitions: Sequence[Mapping[str, Any]] = ({"name": "main", "default": True, "max_time": 3600.0},),
    own: Mapping[str, Any] | None = None,
    nodes: Mapping[str, Any] = FOUR,
    scheduler: Mapping[str, Any] | None = None,
    **policy: Any,
) -> Config:
    """Return a cluster of 4 nodes with 4 CPUs; QOS by name, with limits in sacctmgr's words."""
    tables = {
        "cluster": {"attributes": {"associations": list(accounts)}},
        "node": [nodes],
        "partition": list(partitions),
        "qos": [_qos(name, table) for name, table in (qos or {}).items()],
        "policy": {
            "select": "select/cons_tres",
            "select_parameters": ["CR_CPU"],
            "plugins": [NAME],
            **policy,
            "settings": {NAME: dict(own or {}), **policy.get("settings", {})},
        },
        "scheduler": {"type": "backfill", **(scheduler or {})},
    }
    return structure(tables, Config, "test")


def _qos(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    known = {"priority", "preempt", "flags", "preempt_mode"}
    return {
        "name": name,
        **{key: value for key, value in table.items() if key in known},
        "attributes": {key: value for key, value in table.items() if key not in known},
    }


def job(id: str, cpus: int = 1, run_time: float = 10, minutes: float = 5, **more: Any) -> JobSpec:
    """Return a job on as few nodes as it needs."""
    return JobSpec(id=id, tasks=cpus, run_time=run_time, time_limit=minutes * 60, **more)


def starts(run: Run) -> dict[str, float | None]:
    """Return the first start of each job; None: it never started."""
    found: dict[str, float | None] = {}
    for job_id, told in run.summary()["jobs"].items():
        begun = [each["start"] for each in told["intervals"] if each["state"] == "RUNNING"]
        found[job_id] = begun[0] if begun else None
    return found


def reasons(run: Run) -> dict[str, str]:
    """Return why each job waits in the end."""
    return {each.id: each.reason for each in run.engine.ledger.pending}


def refused(run: Run) -> dict[str, str]:
    """Return which jobs were refused, and why."""
    return {job_id: why for job_id, _, why in run.recorder.unrunnable}


def play(config: Config, *jobs: JobSpec, until: float | None = None) -> Run:
    """Replay jobs."""
    return replay(config, jobs, (), Options(until=until))


# ------------------------------------------------------------------------------------ L1 to L5
def test_l1_jobs_of_a_user() -> None:
    """MaxJobsPU=2: 10, 20, 10, 10 s at 0 start at 0, 0, 10, 20; another user's at 0."""
    config = site({"q": {"MaxJobsPU": 2}})
    lengths = {"a": 10, "b": 20, "c": 10, "d": 10}
    jobs = [job(name, run_time=length, qos="q") for name, length in lengths.items()]
    run = play(config, *jobs, job("other", user="bob", qos="q"))
    assert starts(run) == {"a": 0.0, "b": 0.0, "c": 10.0, "d": 20.0, "other": 0.0}


def test_l2_cpus_of_a_user() -> None:
    """MaxTRESPU=cpu=4: the 1-CPU job passes the 2-CPU job; 5 CPUs wait for ever, or are refused."""
    config = site({"q": {"MaxTRESPU": "cpu=4"}, "deny": {"MaxTRESPU": "cpu=4", "flags": ["DenyOnLimit"]}})
    run = play(
        config,
        job("three", 3, 12, qos="q"),
        job("two", 2, qos="q"),
        job("one", 1, 30, qos="q"),
        job("five", 5, qos="q", user="bob"),
        job("denied", 5, qos="deny"),
        until=100,
    )
    assert starts(run) == {"three": 0.0, "two": 12.0, "one": 0.0, "five": None, "denied": None}
    assert reasons(run) == {"five": "QOSMaxCpuPerUserLimit"}
    assert refused(run) == {"denied": "QOSMaxCpuPerUserLimit"}


CAPPED: list[dict[str, Any]] = [{"Account": "acct", "GrpTRES": "cpu=6"}, {"Account": "acct", "User": "user"}]


def test_l3_cpus_of_an_account() -> None:
    """GrpTRES=cpu=6: 4 and 2 start at once, the 3 in between when the 4 has ended."""
    jobs = (job("four", 4, 12), job("three", 3), job("two", 2, 30))
    run = play(site(accounts=CAPPED), *(attrs.evolve(each, account="acct") for each in jobs), until=11)
    assert starts(run) == {"four": 0.0, "three": None, "two": 0.0}
    assert reasons(run) == {"three": "AssocGrpCpuLimit"}
    run = play(site(accounts=CAPPED), *(attrs.evolve(each, account="acct") for each in jobs))
    assert starts(run)["three"] == 12.0


def test_l4_distinct_nodes() -> None:
    """GrpTRES=node=1: two jobs on n1 run together, one on n2 waits."""
    config = site({"q": {"GrpTRES": "node=1"}})
    run = play(
        config,
        job("one", required_nodes=("n1",), qos="q"),
        job("too", required_nodes=("n1",), qos="q"),
        job("other", required_nodes=("n2",), qos="q"),
    )
    assert starts(run) == {"one": 0.0, "too": 0.0, "other": 10.0}


MULTIFACTOR = "priority/multifactor"


def counting(**settings: Any) -> dict[str, Any]:
    """Return the policy that counts usage, recalculated at 56, 116, ... s, without decay."""
    return {
        "priority": MULTIFACTOR,
        "settings": {
            MULTIFACTOR: {"calc_period": 60.0, "calc_phase": 56.0, "decay_half_life": 0.0, **settings}
        },
    }


def test_l5_run_minutes() -> None:
    """GrpTRESRunMins=cpu=10, two 5-min jobs: a 2-min job starts at the recalculation at 56 s (488 div 60 + 2 = 10)."""
    config = site({"q": {"GrpTRESRunMins": "cpu=10"}}, **counting())
    run = play(
        config,
        job("a", run_time=250, qos="q"),
        job("b", run_time=85, qos="q"),
        job("two", minutes=2, run_time=20, qos="q"),
        job("five", run_time=20, qos="q"),
        until=300,
    )
    assert starts(run) == {"a": 0.0, "b": 0.0, "two": 56.0, "five": 85.0}


def test_run_minutes_of_a_job_that_outlived_its_limit() -> None:
    """It leaves nothing behind: a second 6-min job waits until the first has 284 s left (284 div 60 + 6 = 10)."""
    config = site({"q": {"GrpTRESRunMins": "cpu=10"}}, scheduler={"over_time_limit": 300.0}, **counting())
    run = play(
        config,
        job("outlives", minutes=1, run_time=320, qos="q"),
        job("first", minutes=6, run_time=100, submit_at=400, qos="q"),
        job("second", minutes=6, run_time=20, submit_at=400, qos="q"),
        until=900,
    )
    assert ended(run)["outlives"] == ("COMPLETED", 320.0)
    assert starts(run) == {"outlives": 0.0, "first": 400.0, "second": 476.0}


# ----------------------------------------------------------------------------------- L6 to L11
def test_l6_minutes_used_up() -> None:
    """GrpTRESMins=cpu=3 without decay: at 60 s 112 s are used, 1 < 3: a job starts; at 120 s 4 >= 3: none does."""
    config = site({"q": {"GrpTRESMins": "cpu=3"}}, **counting())
    run = play(
        config,
        job("runs", 2, 500, minutes=10, qos="q"),
        job("early", run_time=20, submit_at=60, qos="q"),
        job("late", run_time=20, submit_at=120, qos="q"),
        until=400,
    )
    assert starts(run) == {"runs": 0.0, "early": 60.0, "late": None}
    assert reasons(run) == {"late": "QOSGrpCPUMinutesLimit"}
    assert ended(run)["runs"] == ("TIMEOUT", 116.0)  # 232 + 20 seconds are 4 minutes


def ended(run: Run) -> dict[str, tuple[str, float]]:
    """Return how and when each job ended."""
    found = {}
    for job_id, told in run.summary()["jobs"].items():
        if told["final_state"]:
            found[job_id] = (told["final_state"], told["intervals"][-1]["end"])
    return found


def test_l6_the_sweep_ends_jobs() -> None:
    """Where limits are swept every 30 s, the job ends at the first sweep after the recalculation."""
    clock = {"limit_sweep": 30.0, "limit_phase": 10.0}
    config = site({"q": {"GrpTRESMins": "cpu=3"}}, **counting(), scheduler={"clockwork": clock})
    run = play(config, job("runs", 2, 500, minutes=10, qos="q"), until=400)
    assert ended(run) == {"runs": ("TIMEOUT", 130.0)}


def test_minutes_that_others_used_up_end_free_jobs() -> None:
    """With UsageFactor 0, too, which does not keep such a job from starting (recorded: limit_minutes_free_job)."""
    clock = {"limit_sweep": 30.0, "limit_phase": 10.0}
    accounts: list[dict[str, Any]] = [
        {"Account": "acct", "GrpTRESMins": "cpu=3"},
        {"Account": "acct", "User": "user"},
    ]
    config = site(
        {"normal": {}, "free": {"UsageFactor": 0}}, accounts, **counting(), scheduler={"clockwork": clock}
    )
    run = play(
        config,
        job("runs", 2, 500, minutes=10, account="acct", qos="normal"),
        job("free", 1, 500, minutes=10, account="acct", qos="free"),
        job("later", 1, 500, minutes=10, account="acct", qos="free", submit_at=140),
        until=400,
    )
    assert ended(run) == {"runs": ("TIMEOUT", 130.0), "free": ("TIMEOUT", 130.0), "later": ("TIMEOUT", 160.0)}


def test_wall_time_that_others_used_up_holds_free_jobs() -> None:
    """With UsageFactor 0, too, unlike used minutes (recorded: limit_minutes_free_job)."""
    accounts: list[dict[str, Any]] = [{"Account": "acct", "GrpWall": 3}, {"Account": "acct", "User": "user"}]
    run = play(
        site({"normal": {}, "free": {"UsageFactor": 0}}, accounts, **counting()),
        *(job(name, run_time=500, account="acct", qos="normal") for name in "ab"),
        job("free", account="acct", qos="free", submit_at=140),
        until=170,
    )
    assert starts(run)["free"] is None
    assert reasons(run) == {"free": "AssocGrpWallLimit"}


def test_l6_safe_ends_no_job() -> None:
    """With safe a job only starts if its minutes last, and is left alone (6.4)."""
    config = site({"q": {"GrpTRESMins": "cpu=30"}}, own={"safe": True}, **counting())
    run = play(config, job("runs", 2, 500, minutes=10, qos="q"))
    assert ended(run)["runs"] == ("COMPLETED", 500.0)


def test_wall_time_used_up_ends_jobs() -> None:
    """GrpWall=3 of an account: two jobs for 116 s are 232 s of wall time, 3 minutes."""
    accounts: list[dict[str, Any]] = [{"Account": "acct", "GrpWall": 3}, {"Account": "acct", "User": "user"}]
    run = play(
        site({"normal": {}}, accounts, **counting()),
        *(job(name, run_time=500, account="acct", qos="normal") for name in "ab"),
    )
    assert ended(run) == {"a": ("TIMEOUT", 116.0), "b": ("TIMEOUT", 116.0)}


def test_minutes_of_one_job_end_it() -> None:
    """MaxTRESMins=cpu=4 and no time limit of its own: 2 CPUs for 2 minutes; a QOS without UsageFactor goes on."""
    config = site(
        {"q": {"GrpTRESMins": "cpu=3"}, "free": {"GrpTRESMins": "cpu=3", "UsageFactor": 0}}, **counting()
    )
    run = play(config, job("free", 2, 500, minutes=10, qos="free"))
    assert ended(run) == {"free": ("COMPLETED", 500.0)}
    config = site({"q": {"MaxTRESMins": "cpu=20"}}, **counting())
    run = play(config, job("long", 4, 500, minutes=5, qos="q"))
    assert ended(run) == {"long": ("TIMEOUT", 300.0)}


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("MaxTRESRunMinsPU", "MaxCPURunMinsPerUser"), ("MaxTRESRunMinsPA", "MaxCPURunMinsPerAccount")],
)
def test_run_minutes_of_each(limit: str, reason: str) -> None:
    """As GrpTRESRunMins (L5), but each user, or account, has ten minutes of its own (6.1 no. 10)."""
    config = site({"q": {limit: "cpu=10"}}, **counting())
    who: dict[str, Any] = {"user": "ann", "account": "x"}
    jobs = [
        job("a", run_time=250, qos="q", **who),
        job("b", run_time=85, qos="q", **who),
        job("two", minutes=2, run_time=20, qos="q", **who),
        job("other", run_time=20, qos="q", user="bob", account="y"),
    ]
    run = play(config, *jobs, until=300)
    assert starts(run) == {"a": 0.0, "b": 0.0, "two": 56.0, "other": 0.0}
    assert reasons(play(config, *jobs, until=30)) == {"two": reason}


def test_usage_threshold() -> None:
    """A user whose fair share is below UsageThreshold waits; without the flag no job does (6.3 no. 4)."""
    accounts: list[dict[str, Any]] = [
        {"Account": "acct", "RawUsage": "100000"},
        {"Account": "acct", "User": "ann", "RawUsage": "100000"},
        {"Account": "acct", "User": "bob"},
    ]
    for flags, waits in ((["EnforceUsageThreshold"], {"greedy": "QOSUsageThreshold"}), ([], {})):
        config = site({"q": {"UsageThreshold": "0.9", "flags": flags}}, accounts, **counting())
        jobs = [
            job("greedy", qos="q", user="ann", account="acct"),
            job("modest", qos="q", user="bob", account="acct"),
        ]
        assert reasons(play(config, *jobs, until=5)) == waits


def test_l6_safe() -> None:
    """With safe and 5 minutes: of 3, 3 and 2 minutes the second waits (3 + 3 > 5), the third runs (3 + 2)."""
    config = site({"q": {"GrpTRESMins": "cpu=5"}}, own={"safe": True}, **counting())
    run = play(
        config,
        job("a", run_time=40, minutes=3, qos="q"),
        job("b", run_time=40, minutes=3, qos="q"),
        job("c", run_time=40, minutes=2, qos="q"),
        until=30,
    )
    assert starts(run) == {"a": 0.0, "b": None, "c": 0.0}


L7: list[dict[str, Any]] = [
    {"Account": "acct", "GrpTRES": "cpu=2", "MaxTRES": "cpu=3", "MaxJobs": 1, "MaxWall": 2},
    {"Account": "acct", "User": "user"},
]


def test_l7_a_qos_hides_the_limits_of_associations() -> None:
    """Three wide jobs of 4, 4 and 1 CPUs and 10 min run; normal ones wait, the second for the number of jobs."""
    config = site(
        {
            "normal": {},
            "wide": {"GrpTRES": "cpu=12", "MaxTRESPerJob": "cpu=8", "MaxJobsPU": 5, "MaxWall": 30},
        },
        L7,
    )
    wide = [
        job(f"w{cpus}{at}", cpus, 60, 10, qos="wide", account="acct") for at, cpus in enumerate((4, 4, 1))
    ]
    first = play(config, job("n1", 4, minutes=1, qos="normal", account="acct"), until=10)
    assert reasons(first) == {"n1": "AssocMaxCpuPerJobLimit"}
    run = play(config, *wide, job("n", 1, minutes=1, qos="normal", account="acct"), until=10)
    assert [starts(run)[each.id] for each in wide] == [0.0, 0.0, 0.0]
    assert reasons(run) == {"n": "AssocMaxJobsLimit"}


@pytest.mark.parametrize(("flags", "there"), [((), 4), (("OverPartQOS",), 2)])
def test_l8_the_qos_of_the_partition_comes_first(flags: tuple[str, ...], there: int) -> None:
    """Partition QOS 4 CPUs for each user, job QOS 2: the user gets 4 in the partition, with OverPartQOS the job's 2."""
    config = site(
        {"part": {"MaxTRESPU": "cpu=4"}, "own": {"MaxTRESPU": "cpu=2", "flags": list(flags)}},
        partitions=(
            {"name": "fast", "default": True, "qos": "part", "max_time": 3600.0},
            {"name": "main", "max_time": 3600.0},
        ),
    )
    run = play(config, *(job(str(at), qos="own") for at in range(6)), until=5)
    assert sum(at is not None for at in starts(run).values()) == there


def test_l9_a_limited_job_keeps_nothing() -> None:
    """GrpJobs=1 is reached: a 2-node job of that QOS waits, and a 50-min job of another starts on the free node."""
    config = site({"one": {"GrpJobs": 1}, "normal": {}}, nodes={**FOUR, "name": "n[1-2]"})
    whole: dict[str, Any] = {"cpus": 4, "run_time": 60}
    limited = play(
        config,
        job("first", minutes=2, qos="one", **whole),
        JobSpec(
            id="wide", submit_at=1, min_nodes=2, max_nodes=2, tasks=8, run_time=10, time_limit=120, qos="one"
        ),
        job("long", 4, 50, 50, submit_at=2, qos="normal"),
        until=30,
    )
    assert starts(limited) == {"first": 0.0, "wide": None, "long": 2.0}
    room = play(
        config,
        job("first", minutes=2, qos="normal", **whole),
        JobSpec(
            id="wide",
            submit_at=1,
            min_nodes=2,
            max_nodes=2,
            tasks=8,
            run_time=10,
            time_limit=120,
            qos="normal",
        ),
        job("long", 4, 50, 50, submit_at=2, qos="normal"),
        until=30,
    )
    assert starts(room) == {"first": 0.0, "wide": None, "long": None}


@pytest.mark.parametrize(
    ("limit", "asked", "reason"),
    [
        ({"MaxWall": 2}, {"minutes": 5}, "QOSMaxWallDurationPerJobLimit"),
        ({"MaxTRES": "cpu=2"}, {"cpus": 4}, "QOSMaxCpuPerJobLimit"),
        ({"GrpTRES": "cpu=3"}, {"cpus": 4}, "QOSGrpCpuLimit"),
        ({"MaxJobsPU": 0}, {}, ""),
    ],
)
def test_l10_deny_on_limit(limit: dict[str, Any], asked: dict[str, Any], reason: str) -> None:
    """What a job can never satisfy is refused; what others use up is waited for."""
    config = site({"q": {**limit, "flags": ["DenyOnLimit"]}, "waits": limit})
    run = play(config, job("denied", qos="q", **asked), job("waits", qos="waits", **asked), until=5)
    assert refused(run) == ({"denied": reason} if reason else {})
    assert starts(run)["waits"] is None


@pytest.mark.parametrize("limit", [{"MaxWall": 2}, {"GrpWall": 2}])
def test_deny_on_limit_counts_a_default_time(limit: dict[str, Any]) -> None:
    """That of the first partition is a job's time limit, if it names none (recorded: limit_deny_default_time)."""
    partitions = [
        {"name": "main", "default": True, "default_time": 600, "max_time": 3600},
        {"name": "short", "default_time": 60, "max_time": 3600},
        {"name": "none", "max_time": 3600},
    ]
    config = site({"q": {**limit, "flags": ["DenyOnLimit"]}, "lenient": limit}, partitions=partitions)

    def untold(id: str, *names: str, qos: str = "q") -> JobSpec:
        return JobSpec(id=id, run_time=10, qos=qos, partitions=names)

    run = play(
        config,
        untold("denied"),
        untold("main_first", "main", "short"),
        untold("short_first", "short", "main"),
        untold("none", "none"),
        untold("waits", qos="lenient"),
        until=5,
    )
    assert list(refused(run)) == ["denied", "main_first"]


def test_at_the_door_whole_nodes_count_as_what_was_asked_for() -> None:
    """As recorded: of ``-N1 --exclusive -t10`` the door sees 10 CPU minutes, the scheduler those of all 4 CPUs."""
    config = site({"q": {"GrpTRESRunMins": "cpu=13", "flags": ["DenyOnLimit"]}})
    whole: dict[str, Any] = {"exclusive": Exclusive.NODE, "qos": "q"}
    run = play(config, job("one", minutes=10, **whole), job("two", cpus=2, minutes=10, **whole), until=5)
    assert refused(run) == {"two": "QOSGrpCPURunMinutesLimit"}
    assert reasons(run)["one"] == "QOSGrpCPURunMinutesLimit"


def test_a_limit_before_nodes_comes_before_what_no_cluster_has() -> None:
    """As recorded: 8 CPUs of one node of 4 are refused at once, or once the limit on jobs lets the job be tried."""
    config = site({"q": {"MaxJobsPU": 1}})
    wide: dict[str, Any] = {"min_nodes": 1, "max_nodes": 1, "qos": "q"}
    run = play(config, job("runs", qos="q"), job("waits", cpus=8, submit_at=2, **wide), until=5)
    assert (refused(run), reasons(run)) == ({}, {"waits": "QOSMaxJobsPerUserLimit"})
    run = play(config, job("runs", qos="q"), job("waits", cpus=8, submit_at=2, **wide), until=20)
    assert (list(refused(run)), reasons(run)) == (["waits"], {})
    assert list(refused(play(config, job("alone", cpus=8, **wide), until=5))) == ["alone"]


def test_max_tres_per_node_holds_for_the_nodes_that_are_chosen() -> None:
    """As recorded: 6 CPUs on nodes of 4 are 3 a node on two; with MaxTRESPerNode=cpu=2 they need three."""
    config = site({"q": {"MaxTRESPerNode": "cpu=3"}, "less": {"MaxTRESPerNode": "cpu=2"}})
    run = play(config, job("two", cpus=6, qos="q"), job("three", cpus=6, submit_at=1, qos="less"), until=5)
    assert starts(run) == {"two": 0.0, "three": None}
    assert reasons(run) == {"three": "QOSMaxCpuPerNode"}


def test_l11_arrays_count_as_their_tasks() -> None:
    """MaxSubmitJobsPU=4: an array of 5 is refused, of 4 taken, then one more is refused."""
    config = site({"q": {"MaxSubmitJobsPU": 4}})
    base = JobSpec(id="a", run_time=5, time_limit=60, qos="q", user="ann")
    five = tasks_of(base, parse_array("1-5"))
    four = tasks_of(JobSpec(id="b", run_time=5, time_limit=60, qos="q"), parse_array("1-4"))
    run = play(config, *five, *four, job("more", submit_at=1, qos="q"))
    assert sorted(refused(run)) == ["a_1", "a_2", "a_3", "a_4", "a_5", "more"]
    assert [starts(run)[each.id] for each in four] == [0.0] * 4


def test_l11_tasks_at_a_time() -> None:
    """``%2`` of 5 tasks of 8 s: starts at 0, 0, 8, 8, 16."""
    tasks = tasks_of(JobSpec(id="a", run_time=8, time_limit=60), parse_array("0-4%2"))
    assert list(starts(play(site(), *tasks)).values()) == [0.0, 0.0, 8.0, 8.0, 16.0]


def test_an_index_beyond_max_array_size_is_refused() -> None:
    """MaxArraySize=11: the largest index is 10."""
    config = site(own={"max_array_size": 11})
    largest = tasks_of(JobSpec(id="a", run_time=1), parse_array("10"))
    beyond = tasks_of(JobSpec(id="b", run_time=1), parse_array("0-11"))
    assert len(refused(play(config, *largest, *beyond))) == 12


# ---------------------------------------------------------------------------------- X1 to X3
PREEMPTING: dict[str, Any] = {
    "preempt": "preempt/qos",
    "preempt_mode": ["requeue"],
}


def whole(id: str, qos: str, run_time: float, **more: Any) -> JobSpec:
    """Return a job that needs a whole node of 4 CPUs."""
    return job(id, 4, run_time, qos=qos, min_nodes=1, max_nodes=1, **more)


def test_x1_a_limited_preemptor_preempts_no_job() -> None:
    """MaxJobsPU=1: the first high job preempts, the second waits, and starts on its node when it has ended."""
    config = site(
        {"low": {}, "high": {"priority": 10, "preempt": ["low"], "MaxJobsPU": 1}},
        nodes={**FOUR, "name": "n[1-2]"},
        scheduler={"clockwork": {"requeue_delay": 1000.0}},
        **PREEMPTING,
    )
    run = play(
        config,
        whole("l1", "low", 200),
        whole("l2", "low", 200),
        whole("h1", "high", 20, submit_at=5, user="ann"),
        whole("h2", "high", 20, submit_at=6, user="ann"),
        until=100,
    )
    assert (starts(run)["h1"], starts(run)["h2"]) == (5.0, 25.0)
    assert len(run.recorder.preemptions) == 1


def test_x2_no_job_makes_way_for_a_limit() -> None:
    """A high job of a capped account waits for its own low job, though it may preempt it."""
    accounts: list[dict[str, Any]] = [
        {"Account": "capped", "GrpTRES": "cpu=4"},
        {"Account": "capped", "User": "user"},
    ]
    config = site(
        {"low": {}, "high": {"priority": 10, "preempt": ["low"]}},
        accounts,
        nodes={**FOUR, "name": "n[1-2]"},
        **PREEMPTING,
    )
    run = play(
        config,
        whole("low", "low", 20, account="capped"),
        whole("high", "high", 10, submit_at=5, account="capped"),
    )
    assert starts(run) == {"low": 0.0, "high": 20.0}
    assert run.recorder.preemptions == []


@pytest.mark.parametrize("search", ["search/in_order", "search/least_disruption"])
@pytest.mark.parametrize("limit", [{"GrpTRES": "cpu=4"}, {"GrpJobs": 1}])
def test_a_setting_lets_jobs_make_way_for_a_limit(search: str, limit: dict[str, Any]) -> None:
    """Of two low jobs only that of the capped account helps: it makes way, the other one stays."""
    accounts: list[dict[str, Any]] = [
        {"Account": "capped", **limit},
        {"Account": "capped", "User": "user"},
        {"Account": "free"},
        {"Account": "free", "User": "user"},
    ]
    policy = {**PREEMPTING, "search": search}
    config = site(
        {"low": {}, "high": {"priority": 10, "preempt": ["low"]}},
        accounts,
        nodes={**FOUR, "name": "n[1-3]"},
        own={"lift_by_preempting": True},
        **policy,
    )
    run = play(
        config,
        whole("other", "low", 60, account="free"),
        whole("low", "low", 20, account="capped"),
        whole("high", "high", 10, submit_at=5, account="capped"),
    )
    assert starts(run)["high"] == 5.0
    assert [each.victim for each in run.recorder.preemptions] == ["low"]


def test_x3_ageing_makes_waiting_jobs_preempt() -> None:
    """WITHIN: B preempts A at 55 (530 > 1), and A, eligible again at 62, preempts B at 175 (1130 > 530)."""
    settings = {"weight_age": 6000, "max_age": 600.0, "calc_phase": 55.0, "calc_period": 60.0}
    config = site(
        {"normal": {}},
        nodes={**FOUR, "name": "n1"},
        scheduler={"clockwork": {"requeue_delay": 7.0}, "slurm_release": "22.05"},
        priority=MULTIFACTOR,
        preempt="preempt/qos",
        preempt_mode=["requeue", "within"],
        settings={MULTIFACTOR: settings},
    )
    run = play(
        config,
        whole("A", "normal", 400, minutes=10),
        whole("B", "normal", 400, minutes=10, submit_at=2),
        until=180,
    )
    assert [(each.at, each.preemptor, each.victim) for each in run.recorder.preemptions] == [
        (55.0, "B", "A"),
        (175.0, "A", "B"),
    ]


# ---------------------------------------------------------------------------------- partitions
@pytest.mark.parametrize(
    ("part_limits", "partitions", "refusal", "start"),
    [
        ("NO", ("closed",), "", None),
        ("ANY", ("closed",), "Job's account not permitted", None),
        ("ALL", ("closed", "main"), "Job's account not permitted", None),
        ("ANY", ("closed", "main"), "", 0.0),
    ],
)
def test_who_may_use_a_partition(
    part_limits: str, partitions: tuple[str, ...], refusal: str, start: float | None
) -> None:
    """AllowAccounts under EnforcePartLimits NO, ANY and ALL."""
    config = site(
        partitions=(
            {"name": "main", "default": True},
            {"name": "closed", "attributes": {"AllowAccounts": "other"}},
        ),
        own={"part_limits": part_limits},
    )
    run = play(config, job("j", account="acct", partitions=partitions), until=5)
    assert starts(run) == {"j": start}
    assert refused(run).get("j", "").startswith(refusal)
    assert bool(refused(run)) == bool(refusal)


def test_explain_says_which_limit() -> None:
    """The limit in Slurm's words, and how much of it is taken."""
    config = site({"q": {"MaxJobsPU": 1}})
    run = play(config, job("runs", run_time=50, qos="q"), job("waits", qos="q"), until=5)
    engine = run.engine
    (waiting,) = engine.ledger.pending
    (told,) = engine.policies.explain(waiting, engine.ledger)
    assert (told.code, told.verdict) == ("LI1", "fail")
    assert told.found == "QOSMaxJobsPerUserLimit: 1 wanted, 1 of 1 taken (QOS q)"


# ------------------------------------------------------------------------- assoc_limit_stop
def starved(
    kind: str, limit: Mapping[str, Any], *, stop: bool, late: bool = False
) -> dict[str, float | None]:
    """Replay a job that a limit keeps out, and a long one behind it that has room.

    :param late: whether MaxJobsPA is looked at behind others, as before 24.11.
    """
    config = site(
        {"capped": limit, "normal": {}},
        own={"limit_stop": stop},
        nodes={**FOUR, "name": "n[1-2]"},
        scheduler={"type": kind, "rules": {"max_jobs_per_account_late": late}},
    )
    jobs = (
        job("first", 4, 60, 2, qos="capped"),
        job("held", 4, 10, 2, submit_at=1, qos="capped"),
        job("long", 4, 50, 50, submit_at=2, qos="normal"),
    )
    return starts(play(config, *jobs, until=30))


@pytest.mark.parametrize("kind", ["builtin", "backfill"])
def test_a_tres_limit_closes_the_partition_with_assoc_limit_stop(kind: str) -> None:
    """GrpTRES is reached (11.1 no. 2): no job behind starts, by the main scheduler or by backfill."""
    limit = {"GrpTRES": "cpu=4"}
    assert starved(kind, limit, stop=False) == {"first": 0.0, "held": None, "long": 2.0}
    assert starved(kind, limit, stop=True) == {"first": 0.0, "held": None, "long": None}


def test_a_limit_on_jobs_does_not_close_it() -> None:
    """GrpJobs is looked at before (11.1 no. 2, quirk): in the main loop the next job is tried all the same."""
    assert starved("builtin", {"GrpJobs": 1}, stop=True) == {"first": 0.0, "held": None, "long": 2.0}


def test_a_limit_on_jobs_of_an_account_closes_it() -> None:
    """MaxJobsPA is the exception before 24.11 (recorded: limit_stop_numbers, limit_stop_numbers_24_11)."""
    limit = {"MaxJobsPA": 1}
    assert starved("builtin", limit, stop=False, late=True) == {"first": 0.0, "held": None, "long": 2.0}
    assert starved("builtin", limit, stop=True, late=True) == {"first": 0.0, "held": None, "long": None}
    assert starved("builtin", limit, stop=True) == {"first": 0.0, "held": None, "long": 2.0}


# --------------------------------------------------------------------------------- reasons
TAKEN = "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions"


def _behind_all_nodes(*, late: bool, **held: Any) -> dict[str, str]:
    """Return why jobs wait while one before them waits for all nodes, and another runs for each limit on one job."""
    config = site(
        {"normal": {}, "one": {"MaxJobsPA": 1}, "each": {"MaxJobsPU": 1}, "bound": {"MaxJobsPA": 1}},
        [{"Account": "a"}, {"Account": "a", "User": "user"}],
        partitions=[
            {"name": "main", "default": True, "max_time": 3600.0},
            {"name": "other", "max_time": 3600.0},
            {"name": "third", "max_time": 3600.0},
            {"name": "short", "max_time": 300.0, "qos": "bound"},
        ],
        scheduler={"type": "builtin", "rules": {"max_jobs_per_account_late": late}},
    )
    of_a: dict[str, Any] = {"account": "a", "user": "user"}
    run = play(
        config,
        *(job(f"runs_{qos}", run_time=90, qos=qos, partitions=("other",), **of_a) for qos in ("one", "each")),
        job("runs_short", run_time=90, qos="normal", partitions=("short",), **of_a),
        job("all", 16, qos="normal", submit_at=1, **of_a),
        job("waits", submit_at=2, **held, **of_a),
        until=20,
    )
    return reasons(run)


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        ({"qos": "one", "partitions": ("third",)}, TAKEN),
        ({"qos": "each", "partitions": ("third",)}, "QOSMaxJobsPerUserLimit"),
        ({"qos": "normal", "minutes": 10, "partitions": ("main", "short")}, "PartitionTimeLimit"),
    ],
    ids=["MaxJobsPA", "MaxJobsPU", "beyond the bounds of the second partition"],
)
def test_reasons_behind_a_job_that_waits_for_all_nodes(held: dict[str, Any], reason: str) -> None:
    """As recorded: limit_jobs_without_nodes, part_bounds_before_limit; since 24.11 MaxJobsPA is no exception."""
    assert _behind_all_nodes(late=True, **held)["waits"] == reason
    later = "MaxJobsPerAccount" if reason == TAKEN else reason
    assert _behind_all_nodes(late=False, **held)["waits"] == later


def test_a_limit_is_the_reason_from_the_submission_on() -> None:
    """Behind a closed partition it stays; limits on TRES are named once a job tries (recorded: limit_reason_stays).

    The limit on jobs of alice is lifted at 12, which nothing looks at before the wide job has started.
    """
    config = site(
        {"one": {"MaxJobsPU": 1}, "cpus": {"MaxTRESPerJob": "cpu=2"}, "nodes": {"MaxTRESPerJob": "node=1"}},
        scheduler={"type": "builtin"},
    )
    jobs = (
        job("first", 4, 12, qos="one", user="alice"),
        job("second", 12, 40),
        job("wide", 16, submit_at=1),
        job("jobs", submit_at=2, qos="one", user="alice"),
        job("cpus", 3, submit_at=2, qos="cpus"),
        attrs.evolve(job("nodes", 2, submit_at=2, qos="nodes"), min_nodes=2, max_nodes=2),
        job("begins", submit_at=2, begin_at=50, qos="one", user="alice"),
    )
    behind = {"cpus": "Priority", "nodes": "QOSMaxNodePerJobLimit", "begins": "BeginTime"}
    for until in (5, 30):
        assert reasons(play(config, *jobs, until=until)) == {
            "wide": "Resources",
            "jobs": "QOSMaxJobsPerUserLimit",
            **behind,
        }
    assert reasons(play(config, *jobs, until=45))["jobs"] == "Resources"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"MaxTRESPA": 1, "MaxTRESPerJob": 1}, "MaxNodePerAccount"),
        ({"MaxTRESPU": 1, "MaxTRESPerJob": 1}, "QOSMaxNodePerJobLimit"),
        ({"GrpTRES": 1, "MaxTRESPerJob": 1}, "QOSMaxNodePerJobLimit"),
        ({"MaxTRESPA": 1, "MaxTRESPU": 1}, "MaxNodePerAccount"),
        ({"GrpTRES": 1, "MaxTRESPA": 1}, "MaxNodePerAccount"),
        ({"GrpTRES": 1, "MaxTRESPU": 1}, "QOSMaxNodePerUserLimit"),
        ({"GrpTRES": 2, "MaxTRESPerJob": 1}, "QOSMaxNodePerJobLimit"),
        ({"MaxTRESPA": 2, "MaxTRESPU": 1}, "QOSMaxNodePerUserLimit"),
    ],
)
def test_which_of_several_limits_caps_the_nodes(limits: Mapping[str, int], reason: str) -> None:
    """The least one; of equal ones that of accounts, of the job, of users, of all (recorded: limit_node_cap_which)."""
    config = site({"q": {key: f"node={most}" for key, most in limits.items()}})
    wide = attrs.evolve(job("wide", 3, qos="q"), min_nodes=3, max_nodes=3)
    assert reasons(play(config, wide, until=10)) == {"wide": reason}


@pytest.mark.parametrize(("most", "reason"), [(1, "QOSMaxNodePerJobLimit"), (2, "AssocGrpNodeLimit")])
def test_the_qos_caps_the_nodes_before_an_account_that_allows_as_many(most: int, reason: str) -> None:
    """Whichever allows fewer (recorded: limit_node_cap_which)."""
    account = [{"Account": "acct", "GrpTRES": "node=1"}, {"Account": "acct", "User": "user"}]
    config = site({"q": {"MaxTRESPerJob": f"node={most}"}}, account)
    wide = attrs.evolve(job("wide", 3, qos="q", account="acct", user="user"), min_nodes=3, max_nodes=3)
    assert reasons(play(config, wide, until=10)) == {"wide": reason}


def test_a_limit_before_nodes_comes_before_a_barred_account() -> None:
    """As recorded: part_bars_and_limit."""
    config = site(
        {"q": {"MaxWall": 3}},
        [{"Account": "b"}, {"Account": "b", "User": "user"}],
        partitions=[{"name": "main", "default": True, "attributes": {"AllowAccounts": "a"}}],
    )
    held = job("held", qos="q", account="b", user="user")
    assert reasons(play(config, held, until=10)) == {"held": "QOSMaxWallDurationPerJobLimit"}


def test_assoc_limit_stop_has_the_limit_as_reason() -> None:
    """A held job says its limit; what stands behind it waits for its priority."""
    config = site({"capped": {"GrpTRES": "cpu=4"}}, own={"limit_stop": True}, scheduler={"type": "builtin"})
    jobs = (job("first", 4, 60, 2, qos="capped"), job("held", 4, qos="capped"), job("next", qos="capped"))
    assert reasons(play(config, *jobs, until=30)) == {"held": "QOSGrpCpuLimit", "next": "Priority"}


# --------------------------------------------------------------------------- several partitions
def test_a_job_counts_where_it_runs() -> None:
    """In the second of its partitions it fills up GrpSubmitJobs of that one (recorded: limit_submit_runs_in_second)."""
    partitions = (
        {"name": "main", "nodes": "n[1-2]", "default": True, "max_time": 3600.0},
        {"name": "other", "nodes": "n[3-4]", "max_time": 3600.0, "qos": "few"},
    )
    config = site({"few": {"GrpSubmitJobs": 1}}, partitions=partitions)
    both = ("main", "other")
    run = play(
        config,
        job("blocks", 8, 30, partitions=("main",)),
        job("two", 1, 10, submit_at=1, partitions=both),
        job("too_many", submit_at=4, partitions=("other",)),
        job("again", run_time=12, submit_at=15, partitions=("other",)),
        job("two_more", submit_at=18, partitions=both),
    )
    assert starts(run) == {"blocks": 0.0, "two": 1.0, "too_many": None, "again": 15.0, "two_more": None}
    assert refused(run) == {"too_many": "QOSGrpSubmitJobsLimit", "two_more": "QOSGrpSubmitJobsLimit"}


@pytest.mark.parametrize("kind", ["builtin", "backfill", "easy", "greedy"])
@pytest.mark.parametrize("named", [("a", "b"), ("b", "a"), ("c", "a", "b")])
def test_a_job_is_tried_in_its_partitions_as_it_names_them(kind: str, named: tuple[str, ...]) -> None:
    """All have room (recorded: part_named_order, part_named_order_builtin)."""
    partitions = [{"name": name, "nodes": f"n{at}", "max_time": 3600.0} for at, name in enumerate("abc", 1)]
    run = play(site(partitions=partitions, scheduler={"type": kind}), job("one", partitions=named))
    (told,) = run.summary()["jobs"]["one"]["intervals"]
    assert told["nodes"] == f"n{'abc'.index(named[0]) + 1}"


@pytest.mark.parametrize(
    ("partitions", "cpus", "minutes", "reason"),
    [
        (("main", "strict"), 3, 2, "MaxCpuPerAccount"),
        (("strict", "main"), 3, 2, "MaxCpuPerAccount"),
        (("main", "strict"), 2, 2, None),
        (("main", "strict"), 1, 9, "QOSMaxWallDurationPerJobLimit"),
        (("main", "lenient"), 3, 2, None),
        (("main", "lenient", "strict"), 3, 2, "MaxCpuPerAccount"),
    ],
)
def test_any_of_its_partitions_may_deny_a_job(
    partitions: tuple[str, ...], cpus: int, minutes: float, reason: str | None
) -> None:
    """DenyOnLimit of the QOS of any partition refuses it (recorded: limit_deny_in_second)."""
    most = {"MaxTRESPA": "cpu=2", "MaxWall": 5}
    config = site(
        {"strict": {**most, "flags": ["DenyOnLimit"]}, "lenient": most},
        partitions=(
            {"name": "main", "default": True, "max_time": 3600.0},
            {"name": "strict", "max_time": 3600.0, "qos": "strict"},
            {"name": "lenient", "max_time": 3600.0, "qos": "lenient"},
        ),
    )
    run = play(config, job("one", cpus, 3, minutes, partitions=partitions))
    assert refused(run) == ({} if reason is None else {"one": reason})


@pytest.mark.parametrize(("name", "is_refused"), [("short", True), ("of_others", False), ("narrow", False)])
def test_a_partition_that_is_too_short_lets_no_job_wait_that_no_node_can_run(
    name: str, *, is_refused: bool
) -> None:
    """Nodes of 4 CPUs, 9 wanted on two; the last partition decides (recorded: part_impossible_and_too_long)."""
    config = site(
        {"mine": {}},
        partitions=(
            {"name": "main", "default": True, "max_time": 3600.0},
            {"name": "short", "max_time": 60.0},
            {"name": "of_others", "max_time": 3600.0, "attributes": {"AllowQos": "theirs"}},
            {"name": "narrow", "max_time": 3600.0, "max_nodes": 1},
        ),
        scheduler={"enforce_part_limits": False},
    )
    wide = attrs.evolve(job("wide", 9, qos="mine", partitions=("main", name)), min_nodes=2, max_nodes=2)
    assert bool(refused(play(config, wide, until=0))) is is_refused


# -------------------------------------------------------------------------------- thresholds
@pytest.mark.parametrize(
    ("threshold", "clockwork", "long"),
    [
        ({}, {}, None),
        ({"MinPrioThreshold": 4294967295}, {}, 2.0),
        ({}, {"bf_min_prio_reserve": 4294967295}, 2.0),
    ],
)
def test_nothing_is_kept_below_a_priority(
    threshold: Mapping[str, Any], clockwork: Mapping[str, Any], long: float | None
) -> None:
    """A 2-node job below MinPrioThreshold or bf_min_prio_reserve gets no reservation (11.1 no. 3)."""
    config = site(
        {"normal": threshold},
        nodes={**FOUR, "name": "n[1-2]"},
        scheduler={"clockwork": {"preset": "ideal", **clockwork}},
    )
    wide: dict[str, Any] = {
        "id": "wide",
        "submit_at": 1,
        "min_nodes": 2,
        "max_nodes": 2,
        "tasks": 8,
        "run_time": 10,
    }
    jobs = (
        job("first", 4, 60, 2, qos="normal"),
        JobSpec(**wide, time_limit=120, qos="normal"),
        job("long", 4, 50, 50, submit_at=2, qos="normal"),
    )
    assert starts(play(config, *jobs, until=30)) == {"first": 0.0, "wide": None, "long": long}


def test_a_threshold_that_is_no_number_is_refused() -> None:
    """The place, what was given, what is expected."""
    with pytest.raises(ConfigError, match=r"qos\.normal\.attributes\.MinPrioThreshold: got 'high'; expected"):
        play(site({"normal": {"MinPrioThreshold": "high"}}), job("a"))


# ------------------------------------------------------------------------------- relative QOS
def test_a_relative_qos_counts_percentages() -> None:
    """GrpTRES=cpu=50 of 16 CPUs (6.1 no. 9): 8; of a partition's QOS with 8 CPUs: 4; 30% of 16 is 4, not 4.8."""
    flags = {"flags": ["Relative"]}
    config = site(
        {
            "half": {"GrpTRES": "cpu=50", **flags},
            "some": {"MaxTRES": "cpu=30", **flags},
            "few": {"GrpTRES": "cpu=50", **flags},
        },
        partitions=[{"name": "main", "default": True}, {"name": "two", "nodes": "n[1-2]", "qos": "few"}],
        own={},
    )
    run = play(
        config,
        *(job(f"half{at}", 4, 50, qos="half") for at in range(3)),
        job("some4", 4, 50, qos="some"),
        job("some5", 5, 50, qos="some"),
        until=20,
    )
    assert starts(run) == {"half0": 0.0, "half1": 0.0, "half2": None, "some4": 0.0, "some5": None}
    assert reasons(run) == {"half2": "QOSGrpCpuLimit", "some5": "QOSMaxCpuPerJobLimit"}
    partition = play(config, *(job(f"two{at}", 4, 50, partitions=("two",)) for at in range(2)), until=20)
    assert starts(partition) == {"two0": 0.0, "two1": None}
