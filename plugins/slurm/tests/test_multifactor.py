"""Priorities and fair share by hand: the numbered examples P1 to P13."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs
import pytest

from makeway.config import Config, build_cluster
from makeway.model import ClusterView, JobSpec
from makeway.priorities import Occasion
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.settings import structure
from makeway.state import read_state, write_state
from makeway.worlds.events import Command
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_slurm.accounts.tree import Tree, build
from makeway_slurm.accounts.tres import billable, parse_weights
from makeway_slurm.accounts.usage import RAW, UsageBook
from makeway_slurm.multifactor.fair_tree import FairTree
from makeway_slurm.multifactor.tables import PriorityRow, multifactor_of, priority_rows, share_rows

NAME = "priority/multifactor"
FOUR: dict[str, Any] = {"name": "n[1-4]", "cpus": 4, "cores_per_socket": 4, "memory_mb": 1000}


def site(
    settings: Mapping[str, Any],
    associations: Sequence[Mapping[str, Any]] = (),
    *,
    partitions: Sequence[Mapping[str, Any]] = ({"name": "main", "default": True, "max_time": 3600.0},),
    qos: Sequence[Mapping[str, Any]] = (),
    clockwork: Mapping[str, Any] | str = "ideal",
    **policy: Any,
) -> Config:
    """Return a cluster of 4 nodes with 4 CPUs and 1000 MB, recalculated at 60, 120, ... s unless stated."""
    tables = {
        "cluster": {"attributes": {"associations": list(associations)}},
        "node": [FOUR],
        "partition": list(partitions),
        "qos": list(qos),
        "policy": {
            "select": "select/cons_tres",
            "select_parameters": ["CR_CPU"],
            "priority": NAME,
            "settings": {NAME: {"calc_period": 60.0, **settings}},
            **policy,
        },
        "scheduler": {"type": "builtin", "clockwork": clockwork},
    }
    return structure(tables, Config, "test")


BLOCKER = JobSpec(id="blocker", min_nodes=4, max_nodes=4, tasks=16, run_time=3000, time_limit=3000)


def rows(
    config: Config,
    jobs: Sequence[JobSpec],
    at: float,
    commands: Sequence[tuple[float, Command]] = (),
) -> dict[tuple[str, str], PriorityRow]:
    """Return what sprio shows at an instant, by job and partition."""
    found: dict[tuple[str, str], PriorityRow] = {}

    def look(engine: Engine) -> None:
        found.update({(row.job, row.partition): row for row in priority_rows(engine.ledger)})

    replay(config, jobs, commands, Options(snapshots={at: look}, until=at + 1))
    return found


def priorities(*given: Any, **more: Any) -> dict[tuple[str, str], int]:
    """Return the priorities of `rows`."""
    return {key: row.priority for key, row in rows(*given, **more).items()}


# ------------------------------------------------------------------------------------- P1 to P5
@pytest.mark.parametrize(
    ("at", "column", "priority"), [(53, "5300", 5300), (79, "7900", 7899), (700, "60000", 60000)]
)
def test_p1_age_is_rounded_in_its_column_and_truncated_in_the_sum(
    at: int, column: str, priority: int
) -> None:
    """Weight 60000 over 600 s; a job that is eligible at 0, and one computation at the second named."""
    config = site({"weight_age": 60000, "max_age": 600.0, "calc_phase": float(at), "calc_period": 5000.0})
    row = rows(config, (BLOCKER, JobSpec(id="j", time_limit=300)), at + 0.5)["j", "main"]
    assert (row.cells()[5], row.priority) == (column, priority)


@pytest.mark.parametrize(("at", "age"), [(300.0, "30000"), (600.0, "60000"), (1200.0, "60000")])
def test_p1_age_ends_where_it_is_as_high_as_it_can_be(at: float, age: str) -> None:
    """The same beside fair share: half the weight after half of 600 s, and never more than all of it."""
    users = ({"Account": "a", "Share": "1"}, {"Account": "a", "User": "user", "Share": "1"})
    more = {"weight_age": 60000, "max_age": 600.0, "weight_fairshare": 1}
    config = site({**more, "calc_phase": 0.0, "calc_period": 300.0}, users)
    jobs = (attrs.evolve(BLOCKER, account="a"), JobSpec(id="j", account="a", time_limit=300))
    assert rows(config, jobs, at + 0.5)["j", "main"].cells()[5] == age


def job(id: str = "j", cpus: int = 1, nodes: int = 1, minutes: float = 5, **more: Any) -> JobSpec:
    """Return a job that waits behind the blocker."""
    return JobSpec(
        id=id, submit_at=1.0, tasks=cpus, min_nodes=nodes, max_nodes=nodes, time_limit=minutes * 60, **more
    )


@pytest.mark.parametrize(
    ("settings", "cpus", "nodes", "minutes", "priority"),
    [
        ({"weight_job_size": 1000}, 1, 1, 5, 156),
        ({"weight_job_size": 1000}, 8, 2, 5, 500),
        ({"weight_job_size": 10**6, "favor_small": True}, 1, 1, 5, 843750),
        ({"weight_job_size": 10**6, "favor_small": True}, 4, 2, 5, 625000),
        ({"weight_job_size": 10**6, "favor_small": True}, 16, 4, 5, 1),
        ({"weight_job_size": 10**6, "flags": ["SMALL_RELATIVE_TO_TIME"]}, 1, 1, 5, 50000),
        ({"weight_job_size": 10**6, "flags": ["SMALL_RELATIVE_TO_TIME"]}, 2, 1, 60, 4166),
        ({"weight_job_size": 10**6, "flags": ["SMALL_RELATIVE_TO_TIME"]}, 16, 4, 1, 1000000),
    ],
)
def test_p2_size(settings: dict[str, Any], cpus: int, nodes: int, minutes: float, priority: int) -> None:
    """N = 4 nodes, C = 16 CPUs."""
    assert priorities(site(settings), (BLOCKER, job("j", cpus, nodes, minutes)), 10) == {
        ("j", "main"): priority
    }


P3 = {
    "weight_partition": 2000,
    "weight_qos": 3000,
    "weight_job_size": 1000,
    "weight_tres": {"cpu": 400.0, "mem": 800.0, "node": 10.0},
}
P3_PARTITIONS = (
    {"name": "big", "default": True, "priority_job_factor": 10},
    {"name": "small", "nodes": "n[1-2]", "priority_job_factor": 5},
    {"name": "none", "priority_job_factor": 0},
)
P3_QOS = ({"name": "normal"}, {"name": "mid", "priority": 50}, {"name": "high", "priority": 101})


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"big": 2203}),
        ({"partitions": ("small",)}, {"small": 1251}),
        ({"partitions": ("none",)}, {"none": 203}),
        ({"qos": "mid"}, {"big": 3688}),
        ({"qos": "high"}, {"big": 5203}),
        ({"nice": 100}, {"big": 2103}),
        ({"nice": 1000000}, {"big": 1}),
        ({"partitions": ("small", "big")}, {"small": 1251, "big": 2203}),
    ],
)
def test_p3_partition_qos_tres(more: dict[str, Any], expected: dict[str, int]) -> None:
    """Of a job with 1 CPU and 100 MB: partition, 156.25, 25 + 20 + 2.5, and what the QOS adds."""
    config = site(P3, partitions=P3_PARTITIONS, qos=P3_QOS)
    found = priorities(config, (BLOCKER, job(memory_mb_per_node=100, **more)), 10)
    assert {partition: value for (_, partition), value in found.items()} == expected


def test_p4_the_age_clock() -> None:
    """From the begin time, the release of a hold; not while a job depends on another."""
    config = site({"weight_age": 60000, "max_age": 600.0, "calc_phase": 55.0})
    jobs = (
        BLOCKER,
        job("begins", begin_at=40.0),
        job("held", priority=0),
        job("dependent", depends_on=("begins",)),
    )
    found = priorities(config, jobs, 56, [(30.0, Command("release", "held"))])
    assert found == {("begins", "main"): 1500, ("held", "main"): 2500}


def test_p4_a_requeued_job_is_young_again() -> None:
    """Requeued at 30 with a delay of 6 s: 19 s old at 55."""
    settings = {"weight_age": 60000, "max_age": 600.0, "calc_phase": 55.0}
    config = site(settings, clockwork={"requeue_delay": 6.0})
    jobs = (BLOCKER, JobSpec(id="next", min_nodes=4, max_nodes=4, tasks=16, run_time=500, submit_at=1.0))
    assert (
        rows(config, jobs, 56, [(30.0, Command("requeue", "blocker"))])["blocker", "main"].cells()[5]
        == "1900"
    )


P5_QOS = ({"name": "normal"}, {"name": "high", "priority": 1000})


@pytest.mark.parametrize(
    ("user", "qos", "expected"), [("a", "normal", 156438), ("a", "high", 158438), ("b", "normal", 156483)]
)
def test_p5_raw_numbers(user: str, qos: str, expected: int) -> None:
    """NO_NORMAL_ALL: partition 40 * 3, QOS 1000 * 2, association 9 * 5, cpu 7, mem 100 * 0.5, node 11."""
    settings = {
        "weight_job_size": 10**6,
        "weight_partition": 3,
        "weight_qos": 2,
        "weight_assoc": 5,
        "weight_tres": {"cpu": 7.0, "mem": 0.5, "node": 11.0},
        "flags": ["NO_NORMAL_ALL"],
    }
    tree: list[dict[str, Any]] = [
        {"Account": "acct"},
        {"Account": "acct", "User": "a"},
        {"Account": "acct", "User": "b", "Priority": 9},
    ]
    config = site(
        settings, tree, partitions=({"name": "main", "default": True, "priority_job_factor": 40},), qos=P5_QOS
    )
    spec = job(user=user, account="acct", qos=qos, memory_mb_per_node=100)
    assert priorities(config, (BLOCKER, spec), 10) == {("j", "main"): expected}


# ------------------------------------------------------------------------------------- P6 to P8
ONE = [{"Account": "acct"}, {"Account": "acct", "User": "user"}]
H300 = {"weight_fairshare": 1000, "decay_half_life": 300.0, "calc_phase": 55.0}


def used(
    config: Config, jobs: Sequence[JobSpec], times: Sequence[float], user: str = "user", **more: Any
) -> list[float]:
    """Return the raw usage of a user's association at some instants."""
    found: list[float] = []

    def look(engine: Engine, at: float) -> None:
        book = engine.ledger.book(UsageBook)
        book.advance(at)
        assert book.tree is not None
        node = next(node for node in book.tree.users if node.user == user)
        found.append(book.associations[node.index].used(RAW))

    looks = {at: (lambda engine, at=at: look(engine, at)) for at in times}
    replay(config, jobs, more.get("commands", ()), Options(snapshots=looks, until=max(times) + 1))
    return found


def test_p6_decay() -> None:
    """d = 0.99769; 4 CPUs from 0 to 200 s, recalculated at 55, 115, 175 and 235."""
    spec = JobSpec(id="j", account="acct", tasks=4, run_time=200, time_limit=600)
    found = used(site(H300, ONE), (spec,), (50, 56, 116, 176, 201, 236))
    assert [round(each, 2) for each in found] == [0.0, 193.72, 377.53, 537.52, 631.90, 550.03]


def test_p6_a_long_run_comes_to_rest() -> None:
    """After hundreds of half lives 4 CPUs stand at the sum of the row 4 * 60 * d^60 * (1 + d^60 + d^120 + ...)."""
    settings = {"decay_half_life": 60.0, "calc_period": 60.0}
    one = {"max_time": 10**6, "name": "main", "default": True}
    config = site(settings, ONE, partitions=(one,))
    spec = JobSpec(id="j", account="acct", tasks=4, run_time=40000, time_limit=50000)
    left = (1 - 0.693 / 60) ** 60
    (found,) = used(config, (spec,), (30000.5,))
    assert found == pytest.approx(4 * 60 * left / (1 - left), rel=1e-9)


@pytest.mark.parametrize("reset", ["NONE", "YEARLY"])
@pytest.mark.parametrize("half_life", [1.0, 60.0])
def test_p6_nothing_is_left_after_a_long_pause(half_life: float, reset: str) -> None:
    """After 10,000 and more half lives with no job running, a job is charged as if none had run before."""
    settings = {"decay_half_life": half_life, "calc_period": 60.0, "usage_reset_period": reset}
    early = JobSpec(id="early", account="acct", tasks=4, run_time=600, time_limit=700)
    late = attrs.evolve(early, id="late", submit_at=600_000.0)
    left = 1 - 0.693 / half_life
    config = site(settings, ONE)
    (found,) = used(config, (early, late), (600_061,))
    assert found == pytest.approx(4 * 60 * left**60, rel=1e-9)
    (alone,) = used(config, (late,), (600_061,))
    assert found == alone


def test_p7_billing() -> None:
    """CPU=1.0,Mem=2.0G for 1 CPU and 1024 MB: 3 for each second; with MAX_TRES the larger, 2."""
    cluster = build_cluster(
        site({}, partitions=({"name": "main", "attributes": {"TRESBillingWeights": "CPU=1.0,Mem=2.0G"}},))
    )
    assert parse_weights("CPU=1.0,Mem=2.0G") == {"cpu": 1.0, "mem": 2.0 / 1024}
    partition = cluster.partitions[0]
    counts = {"cpu": 1, "mem": 1024, "node": 1}
    assert billable(counts, partition) == 3.0
    assert billable(counts, partition, frozenset({"MAX_TRES"})) == 2.0


@pytest.mark.parametrize(("qos", "factor"), [("double", 2), ("gratis", 0), ("normal", 1)])
def test_p7_usage_factor(qos: str, factor: int) -> None:
    """The job's QOS multiplies what it is charged; 0: nothing."""
    table: list[dict[str, Any]] = [
        {"name": "normal"},
        *({"name": n, "attributes": {"UsageFactor": f}} for n, f in (("double", 2), ("gratis", 0))),
    ]
    config = site({"decay_half_life": 0.0}, ONE, qos=table)
    spec = JobSpec(id="j", account="acct", qos=qos, run_time=50, time_limit=600)
    assert used(config, (spec,), (51,)) == [50.0 * factor]


def test_p8_suspended_time_is_charged() -> None:
    """2 CPUs from 0 to 116 s, suspended by a person from 10 to 100: 232."""
    config = site({"decay_half_life": 0.0, "calc_phase": 56.0}, ONE)
    spec = JobSpec(id="j", account="acct", tasks=2, run_time=600, time_limit=3600)
    orders = [(10.0, Command("suspend", "j")), (100.0, Command("resume", "j"))]
    assert used(config, (spec,), (117,), commands=orders) == [232.0]


def test_p8_the_lost_run_stays_charged() -> None:
    """4 CPUs from 0 to 20, requeued with a delay of 11 s, from 31 to 56: 80 + 100."""
    config = site({"decay_half_life": 0.0, "calc_phase": 56.0}, ONE, clockwork={"requeue_delay": 11.0})
    spec = JobSpec(id="j", account="acct", tasks=4, run_time=600, time_limit=3600)
    assert used(config, (spec,), (57,), commands=[(20.0, Command("requeue", "j"))]) == [180.0]


# ------------------------------------------------------------------------------------ P9 to P13
def tree(text: str) -> Tree:
    """Build a tree of lines ``account share [parent]`` and ``account/user share``."""
    tables = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, share, *parent = line.split()
        account, _, user = name.partition("/")
        tables.append(
            {"Account": account, "User": user, "Share": share, "ParentName": (parent or ["root"])[0]}
        )
    return build(tables)


def ranks(grown: Tree, usage: Mapping[str, float], order: str = "newest_first") -> dict[str, float]:
    """Return the factor of each user, in units of the step between two ranks; accounts use what their users do."""
    amounts = [0.0] * len(grown.nodes)
    for node in grown.users:
        for each in node.chain:
            amounts[each.index] += usage.get(node.user, 0.0)
    shares = FairTree(grown, order).rank(amounts)
    return {node.user: (shares[node.index].factor or 0.0) * len(grown.users) for node in grown.users}


P9 = """
A 50
B 30
C 20
A/a1 1
A/a2 3
B/b1 1
B/b2 1
B/b3 1
C/c1 1
C/c2 parent
"""


def test_p9_the_tree() -> None:
    """8 users with root's; C has used nothing."""
    usage = {"a1": 193.7, "a2": 96.9, "b1": 96.9, "b2": 193.7}
    expected = {"root": 8, "c1": 8, "c2": 8, "a2": 5, "a1": 4, "b3": 3, "b1": 2, "b2": 1}
    assert ranks(tree(P9), usage) == pytest.approx(expected)


def test_p9_root_counts_on_the_first_level() -> None:
    """The user root has one share: 50, 30 and 20 are parts of 101."""
    grown = tree(P9)
    assert {node.account: node.norm_shares for node in grown.root.children if not node.user} == {
        "a": 50 / 101, "b": 30 / 101, "c": 20 / 101,
    }  # fmt: skip


def test_p10_tied_accounts_are_not_merged() -> None:
    """The second account's first user shares the rank of the user ranked last; documentation says otherwise."""
    grown = tree("A 10\nB 10\nZ 0\nA/a1 3\nA/a2 1\nB/b1 2\nB/b2 2\nZ/z1 1\nZ/z2 1")
    usage = {"a1": 100.0, "a2": 100.0, "b1": 150.0, "b2": 50.0, "z1": 96.0}
    expected = {"root": 7, "b2": 6, "b1": 5, "a1": 5, "a2": 3, "z2": 2, "z1": 1}
    assert ranks(grown, usage) == pytest.approx(expected)


def test_p10_the_order_of_ties_by_name() -> None:
    """Since 23.11 account A comes before B: a1 is ranked first, and b's first user shares the rank of a's last."""
    grown = tree("A 10\nB 10\nA/a1 1\nB/b1 1")
    assert ranks(grown, {"a1": 5.0, "b1": 5.0}, "lineage") == pytest.approx({"root": 3, "a1": 2, "b1": 2})


def test_p11_nobody_used_anything() -> None:
    """Everybody has 1.0, save those whose share is 0."""
    grown = tree("A 1\nB 0\nA/a1 1\nA/a2 0\nB/b1 1")
    assert ranks(grown, {}) == pytest.approx({"root": 4, "a1": 4, "a2": 2, "b1": 1})


def test_p12_an_account_that_is_its_parent() -> None:
    """p1 and p2 of team1 compete with team2 for the shares of dept."""
    grown = tree("dept 60\nother 40\nteam1 parent dept\nteam2 5 dept\nteam1/p1 2\nteam1/p2 3")
    found = {node.user or node.account: node.norm_shares for node in grown.nodes}
    assert (found["p1"], found["p2"], found["team2"]) == (0.2, 0.3, 0.5)
    dept = next(node for node in grown.nodes if node.account == "dept")
    assert all(node.fs_parent is dept for node in grown.users if node.user != "root")


def test_p13_a_user_in_two_accounts_counts_twice() -> None:
    """Each job charges the association of its own account."""
    grown = tree("A 1\nB 1\nA/u 1\nB/u 1")
    assert len(grown.users) == 3
    both = [{"Account": each} for each in "AB"] + [{"Account": each, "User": "u"} for each in "AB"]
    config = site({"decay_half_life": 0.0}, both)
    jobs = (
        JobSpec(id="1", user="u", account="A", run_time=50, time_limit=600),
        JobSpec(id="2", user="u", account="B", tasks=2, run_time=50, time_limit=600),
    )
    shown: dict[str, str] = {}

    def look(engine: Engine) -> None:
        assert multifactor_of(engine.ledger) is not None
        shown.update({row[0].strip(): row[5] for row in share_rows(engine.ledger, 61.0) if row[1] == "u"})

    replay(config, jobs, (), Options(snapshots={61.0: look}, until=62))
    assert shown == {"a": "50", "b": "100"}


# ---------------------------------------------------------------------------- fair share at work
def test_who_used_less_starts_first() -> None:
    """Ann has used the machine when a recalculation comes: Bob's job, submitted later, starts before hers."""
    both = [{"Account": "acct"}, *({"Account": "acct", "User": name} for name in ("ann", "bob"))]
    config = site({"weight_fairshare": 1000, "calc_period": 60.0}, both)
    whole: dict[str, Any] = {
        "min_nodes": 4,
        "max_nodes": 4,
        "tasks": 16,
        "account": "acct",
        "time_limit": 600.0,
    }
    jobs = (
        JobSpec(id="1", user="ann", run_time=100, **whole),
        JobSpec(id="2", user="ann", submit_at=1, run_time=10, **whole),
        JobSpec(id="3", user="bob", submit_at=2, run_time=10, **whole),
    )
    run = replay(config, jobs).summary()["jobs"]
    starts = {
        job_id: next(each["start"] for each in job["intervals"] if each["state"] == "RUNNING")
        for job_id, job in run.items()
    }
    assert starts == {"1": 0.0, "3": 100.0, "2": 110.0}


def test_another_engine_goes_on_with_what_was_used() -> None:
    """Usage is handed over by way of JSON; a minute later both have counted the same."""
    config = site(H300, ONE)
    jobs = (JobSpec(id="j", account="acct", tasks=4, run_time=500, time_limit=600),)
    plain = used(config, jobs, (150, 300))
    first = replay(config, jobs, (), Options(until=150.0)).engine
    state = read_state(write_state(first.save()), "test")
    second = Engine(config, Recorder(build_cluster(config)), Policies(config))
    second.adopt(state)
    book = second.ledger.book(UsageBook)
    node = next(node for node in book.tree.users if node.user == "user") if book.tree is not None else None
    assert node is not None
    entry = book.associations[node.index]
    book.advance(150.0)
    assert entry.used() == pytest.approx(plain[0])
    book.advance(300.0)
    assert entry.used() == pytest.approx(plain[1])


# --------------------------------------------------------------------------------- what is told
def test_explain_says_what_makes_up_a_priority() -> None:
    """The factors of the job, and those of the one in front of it."""
    config = site({"weight_partition": 100, "weight_qos": 50}, qos=({"name": "high", "priority": 3},))
    told: list[Any] = []

    def look(engine: Engine) -> None:
        waiting = next(job for job in engine.ledger.pending if job.id == "j")
        told.extend(engine.policies.explain(waiting, engine.ledger))

    jobs = (BLOCKER, job("j"), job("first", qos="high"))
    replay(config, jobs, (), Options(snapshots={5.0: look}, until=6))
    assert [(each.code, each.verdict, each.found) for each in told] == [
        ("PF1", "pass", "100 = partition 100"),
        ("PF2", "fail", "job first of user: 150 = partition 100 + QOS 50"),
    ]


def test_check_warns_that_jobs_preempt_as_they_age() -> None:
    """With WITHIN and an age weight; not with CALCULATE_RUNNING."""
    for flags, warned in (((), True), (("CALCULATE_RUNNING",), False)):
        config = site(
            {"weight_age": 100, "flags": list(flags)},
            preempt="preempt/qos",
            preempt_mode=["requeue", "within"],
            qos=({"name": "normal"},),
        )
        found = Policies(config).findings(config, build_cluster(config))
        assert any("preempt as they age" in each.message for each in found) is warned


def test_check_warns_of_fair_share_without_accounts() -> None:
    """The factor is 0 for everybody then."""
    config = site({"weight_fairshare": 100})
    found = Policies(config).findings(config, build_cluster(config))
    assert ["no accounts are known" in each.message for each in found] == [True]


def test_partitions_that_differ_have_a_priority_each() -> None:
    """Those of P3; where all agree one number stands for all of them (1.1 no. 5)."""
    config = site(P3, partitions=P3_PARTITIONS, qos=P3_QOS)
    engine = Engine(config, Recorder(build_cluster(config)), Policies(config))
    engine.submit(BLOCKER)
    engine.submit(job("both", partitions=("small", "big"), memory_mb_per_node=100))
    engine.submit(job("one", partitions=("none",), memory_mb_per_node=100))
    jobs, multifactor = engine.ledger.jobs, multifactor_of(engine.ledger)
    assert multifactor is not None
    listed = [jobs["both"], jobs["one"]]
    both, one = multifactor.fresh(listed, Occasion.CHANGED, cast(ClusterView, engine.ledger))
    assert both == {"small": 1251, "big": 2203}
    assert one == 203
