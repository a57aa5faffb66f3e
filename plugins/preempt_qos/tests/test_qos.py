"""Which job may displace which, in which order and how: slurm-preemption 1.4, 1.13, 2.1, 3.1, rule by rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from makeway.hookspecs import hookimpl
from makeway.model import Blocked, Candidates, ClusterView, Job, JobSpec, Limits, PreemptMode
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine
from makeway_preempt_qos import PreemptorsFirst, kinds_of, ranks_of
from makeway_testing.builders import Machine, build_cluster, config, one_node
from makeway_testing.builders import cluster as nodes
from makeway_testing.scenario import replay_table, timeline

QOS = {"low": {"priority": 1}, "high": {"priority": 10, "preempt": "low"}}


def engine(machine: Machine | None = None, **given: Any) -> Engine:
    """Return an engine on four one-CPU nodes, with the QOS low and high."""
    settings = {"preempt": "preempt/qos", "preempt_mode": "cancel", "qos": QOS, "scheduler": "builtin"}
    built = config(machine or nodes(4, cpus=1), settings, **given)
    return Engine(built, Recorder(build_cluster(built)), Policies(built))


def start(run: Engine, job_id: str, at: float = 0.0, **asked: Any) -> None:
    """Let a job start at once."""
    asked.setdefault("max_nodes", asked.get("min_nodes", 1))
    run.step(at, [Submitted(JobSpec(id=job_id, **asked))])
    assert run.ledger.jobs[job_id].state.value == "RUNNING"


def ask(run: Engine, **asked: Any) -> Candidates:
    """Return the candidates of a pending job, no pass having seen it."""
    run.submit(JobSpec(id="P", **asked))
    return run.placer.order.candidates(run.ledger.jobs["P"])


def ids(jobs: Sequence[Job]) -> list[str]:
    """Return the ids of jobs."""
    return [job.id for job in jobs]


# ---------------------------------------------------------------------------------- which may (1.4)
@pytest.mark.parametrize(
    ("mine", "its", "allowed"),
    [
        pytest.param("high", "low", True, id="listed: yes"),
        pytest.param("low", "high", False, id="not listed: no"),
        pytest.param("high", "high", False, id="same QOS without WITHIN: no"),
        pytest.param(None, "low", False, id="preemptor without QOS: no"),
        pytest.param("high", None, False, id="victim without QOS: no"),
    ],
)
def test_who_may(mine: str | None, its: str | None, allowed: bool) -> None:
    """Only the list of the preemptor's QOS counts."""
    run = engine()
    start(run, "v", qos=its)
    assert ids(ask(run, qos=mine).jobs) == (["v"] if allowed else [])


def test_the_list_is_not_transitive() -> None:
    """S16: A may displace B, B may displace C; A may not displace C, whatever its priority."""
    qos = {"c": {}, "b": {"preempt": "c"}, "a": {"priority": 1000, "preempt": "b"}}
    run = engine(qos=qos)
    start(run, "v", qos="c")
    assert ids(ask(run, qos="a").jobs) == []


@pytest.mark.parametrize(
    ("partition", "allowed"),
    [
        pytest.param({"preempt_mode": "off"}, True, id="partition OFF: yes"),
        pytest.param({"priority_tier": 9}, True, id="higher tier: yes"),
        pytest.param({"nodes": "n[2-4]"}, False, id="nodes outside the preemptor's partition: no"),
    ],
)
def test_partitions_play_no_role(partition: Mapping[str, Any], allowed: bool) -> None:
    """Tier and mode of the victim's partition do not count, its nodes do (1.2 no. 8)."""
    partitions = {"its": partition, "mine": {"nodes": "n1"}}
    run = engine(partitions=partitions)
    start(run, "v", qos="low", partitions=("its",))
    assert ids(ask(run, qos="high", partitions=("mine",)).jobs) == (["v"] if allowed else [])


@pytest.mark.parametrize("where", ["the QOS", "the cluster"])
@pytest.mark.parametrize(
    ("mine", "its", "allowed"),
    [
        pytest.param(101, 100, True, id="higher: yes"),
        pytest.param(100, 100, False, id="equal: no"),
        pytest.param(99, 100, False, id="lower: no"),
    ],
)
def test_within(where: str, mine: int, its: int, allowed: bool) -> None:
    """S18: WITHIN lets jobs of one QOS displace each other, strictly by priority."""
    given: dict[str, Any] = {"qos": {"q": {"preempt_mode": "within,cancel"}}}
    if where == "the cluster":
        given = {"qos": {"q": {}}, "preempt_mode": "cancel,within"}
    run = engine(**given)
    start(run, "v", qos="q", priority=its)
    assert ids(ask(run, qos="q", priority=mine).jobs) == (["v"] if allowed else [])


@pytest.mark.parametrize(
    ("mine", "its", "release", "allowed"),
    [
        pytest.param(2001, 2000, "25.05", True, id="higher: yes"),
        pytest.param(2000, 2000, "25.05", False, id="equal: no (S19)"),
        pytest.param(2000, 2000, "24.11", True, id="unknown before 25.05: no condition"),
    ],
)
@pytest.mark.parametrize("where", ["the QOS", "the cluster"])
def test_priority_modifier(where: str, mine: int, its: int, release: str, allowed: bool) -> None:
    """S19: PRIORITY demands a higher priority, unlike preempt/partition_prio (1.5)."""
    mode = "cancel,priority"
    given: dict[str, Any] = {"preempt_mode": mode}
    if where == "the QOS":
        given = {"qos": {**QOS, "high": {"preempt": "low", "preempt_mode": mode}}}
    run = engine(slurm_release=release, **given)
    start(run, "v", qos="low", priority=its)
    assert ids(ask(run, qos="high", priority=mine).jobs) == (["v"] if allowed else [])


# ------------------------------------------------------------------------------------ order (2.1)
def test_order_by_qos_priority_then_nodes_then_table() -> None:
    """S17 and 2.3: lowest QOS priority first, fewest nodes within it, the older among equals."""
    qos = {"x": {"priority": 5}, "y": {"priority": 1}, "p": {"preempt": "x,y"}}
    run = engine(nodes(8, cpus=1), qos=qos)
    start(run, "x1", qos="x", priority=10)
    start(run, "wide", qos="y", min_nodes=2, priority=5000)
    start(run, "old", qos="y", priority=5000)
    start(run, "young", qos="y", priority=5000)
    assert ids(ask(run, qos="p").jobs) == ["old", "young", "wide", "x1"]


def test_qos_priorities_beyond_the_cap_are_equal() -> None:
    """Section 2.1: min(priority, 65535)."""
    qos = {"x": {"priority": 100_000}, "y": {"priority": 70_000}, "p": {"preempt": "x,y"}}
    run = engine(qos=qos)
    start(run, "x1", qos="x")
    start(run, "y1", qos="y")
    assert ids(ask(run, qos="p").jobs) == ["x1", "y1"]


# ------------------------------------------------------------------------------------- mode (3.1)
@pytest.mark.parametrize(
    ("cluster", "own", "mode"),
    [
        pytest.param("cancel", None, PreemptMode.CANCEL, id="the cluster's"),
        pytest.param("cancel", "requeue", PreemptMode.REQUEUE, id="the QOS's own"),
        pytest.param("cancel", "off", PreemptMode.CANCEL, id="a QOS cannot be switched off"),
        pytest.param("suspend,gang", None, PreemptMode.SUSPEND, id="gang is stripped"),
        pytest.param("cancel,within", None, PreemptMode.CANCEL, id="within is stripped"),
        pytest.param("cancel", "within,requeue", PreemptMode.REQUEUE, id="and from the QOS's"),
        pytest.param("cancel", "within", PreemptMode.OFF, id="modifiers alone leave nothing (S20)"),
        pytest.param("cancel", "priority", PreemptMode.OFF, id="nor does priority"),
    ],
)
def test_mode(cluster: str, own: str | None, mode: PreemptMode) -> None:
    """How a victim makes way; one whose mode is OFF is protected."""
    low = {"priority": 1} | ({"preempt_mode": own} if own is not None else {})
    run = engine(preempt_mode=cluster, qos={**QOS, "low": low})
    start(run, "v", qos="low")
    assert list(run.policies.modes(run.ledger.active, run.ledger)) == [mode]
    found = ask(run, qos="high")
    assert found.modes == (() if mode is PreemptMode.OFF else (mode,))
    assert ("v" in found.protected) is (mode is PreemptMode.OFF)


def test_a_job_without_qos_leaves_as_the_cluster_says() -> None:
    """Gang may ask about any job."""
    run = engine(preempt_mode="requeue")
    start(run, "v")
    assert list(run.policies.modes(run.ledger.active, run.ledger)) == [PreemptMode.REQUEUE]


@pytest.mark.parametrize(
    ("mode", "victims"),
    [
        pytest.param("within", [], id="WITHIN alone"),
        pytest.param("within,cancel", ["v"], id="with an action"),
    ],
)
def test_flag_only_mode(mode: str, victims: list[str]) -> None:
    """S20: jobs of a QOS whose mode is a modifier alone are candidates but cannot be removed."""
    run = engine(one_node(cpus=1), qos={"q": {"preempt_mode": mode}}, select="select/cons_tres")
    start(run, "v", qos="q", priority=100)
    run.step(1.0, [Submitted(JobSpec(id="p", qos="q", priority=101))])
    assert [entry.victim for entry in run.recorder.preemptions] == victims


def test_grace_time_is_the_victims_qos() -> None:
    """Section 4.3: 30 s of notice; the partition's grace time does not count."""
    run = replay_table(
        """
        job   qos   submit  cpus  run_time
        low   low        0     1       100
        high  high      10     1        20
        """,
        cluster=one_node(cpus=1),
        config={
            "preempt": "preempt/qos",
            "preempt_mode": "cancel",
            "qos": {**QOS, "low": {"grace_time": 30.0}},
            "partitions": {"p": {"default": True, "grace_time": 5.0}},
        },
    )
    assert run.timeline == timeline(
        """
         0  low   start
        10  low   notice    for high
        40  low   preempted
        40  high  start
        60  high  complete
        """
    )


# ------------------------------------------------------------------------------ the queue (1.13, 7.1)
def queue(run: Engine, *wanted: tuple[str, Mapping[str, Any]]) -> list[str]:
    """Submit jobs to a full machine; return the order in which they are tried."""
    for name, asked in wanted:
        run.submit(JobSpec(id=name, **asked))
    return [entry[1].id for entry in run.schedulers.attempts.ordered()]


def test_preemptors_are_tried_first() -> None:
    """S49: a QOS that may preempt comes before the other, tiers and priorities or not."""
    partitions = {"slow": {"priority_tier": 1}, "fast": {"priority_tier": 9}}
    order = queue(
        engine(partitions=partitions),
        ("b", {"qos": "low", "partitions": ("fast",), "priority": 9000}),
        ("a", {"qos": "high", "partitions": ("slow",), "priority": 1}),
    )
    assert order == ["a", "b"]


def test_others_keep_the_default_order() -> None:
    """Within one QOS: tier, priority, submission."""
    partitions = {"slow": {"priority_tier": 1}, "fast": {"priority_tier": 9}}
    order = queue(
        engine(partitions=partitions),
        ("low1", {"qos": "low", "partitions": ("slow",), "priority": 5}),
        ("low2", {"qos": "low", "partitions": ("slow",), "priority": 9}),
        ("low3", {"qos": "low", "partitions": ("fast",), "priority": 1}),
        ("high", {"qos": "high", "partitions": ("slow",), "priority": 1}),
    )
    assert order == ["high", "low3", "low2", "low1"]


def test_queue_within_a_qos() -> None:
    """WITHIN: priority decides even against the tier."""
    partitions = {"slow": {"priority_tier": 1}, "fast": {"priority_tier": 9}}
    order = queue(
        engine(partitions=partitions, qos={"q": {"preempt_mode": "within,cancel"}}),
        ("a", {"qos": "q", "partitions": ("fast",), "priority": 5}),
        ("b", {"qos": "q", "partitions": ("slow",), "priority": 9}),
    )
    assert order == ["b", "a"]


def test_a_circle_of_three_is_sorted_as_a_merge_sort_does() -> None:
    """The comparison need not be transitive (7.1); what matters is that the answer is always the same.

    x may displace y, y may displace z, x and z have nothing to do with each other; z has the highest priority.
    Halves are (x) and (y, z); y comes before z, x before y.
    """
    qos = {"z": {}, "y": {"preempt": "z"}, "x": {"preempt": "y"}}
    order = queue(
        engine(qos=qos),
        ("x", {"qos": "x", "priority": 1}),
        ("y", {"qos": "y", "priority": 2}),
        ("z", {"qos": "z", "priority": 3}),
    )
    assert order == ["x", "y", "z"]


GAP = {"low": {}, "mid": {"preempt": "low"}, "high": {"preempt": "mid"}}
"""high may displace mid, mid may displace low; high and low have nothing to do with each other."""


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(1, ["high", "other", "mid", "low"], id="all take part"),
        pytest.param(
            2, ["low", "high", "mid", "other"], id="one beyond MaxNodes takes no part, and comes last"
        ),
    ],
)
def test_jobs_beyond_the_bounds_of_their_partition_take_no_part(nodes: int, expected: list[str]) -> None:
    """Halves are (low, other) and (mid, high), or (low) and (mid, high)."""
    order = queue(
        engine(qos=GAP, partitions={"main": {"max_nodes": 1}}, enforce_part_limits=False),
        ("low", {"qos": "low"}),
        ("other", {"qos": "mid", "min_nodes": nodes, "max_nodes": nodes}),
        ("mid", {"qos": "mid"}),
        ("high", {"qos": "high"}),
    )
    assert order == expected


def test_of_several_partitions_those_of_a_higher_tier_come_first() -> None:
    """Halves are (mid in p1, low in p2) and (low in p1, high in p2)."""
    order = queue(
        engine(qos=GAP, partitions={"p1": {"priority_tier": 1}, "p2": {"priority_tier": 2}}),
        ("mid", {"qos": "mid", "partitions": ("p1",)}),
        ("low", {"qos": "low", "partitions": ("p1", "p2")}),
        ("high", {"qos": "high", "partitions": ("p2",)}),
    )
    assert order == ["high", "mid", "low", "low"]


def test_an_arriving_preemptor_overtakes_a_reservation() -> None:
    """EASY keeps no place for a blocked job before one that the policy puts first (7.1, 1.13)."""
    run = replay_table(
        """
        job    qos   submit  nodes  time_limit  run_time
        runs   low        0      3         100       100
        waits  low        1      4         100       100
        rush   high      10      4          50        50
        """,
        cluster=nodes(4, cpus=1),
        config={"preempt": "preempt/qos", "preempt_mode": "cancel", "qos": QOS, "scheduler": "easy"},
    )
    assert run.timeline == timeline(
        """
          0  runs   start
         10  runs   preempted for rush
         10  rush   start
         60  rush   complete
         60  waits  start
        160  waits  complete
        """
    )


# ----------------------------------------------------------------------------- the queue (1.13)
GRAPHS: Mapping[str, Mapping[str, list[str]]] = {
    "a chain": {"a": ["b", "c"], "b": ["c"], "c": []},
    "two sides": {"a": ["b"], "c": ["b"], "b": []},
    "tiers": {"a": ["c", "d"], "b": ["c", "d"], "c": [], "d": []},
    "a gap": {"a": ["b"], "b": ["c"], "c": []},
    "a stranger": {"a": ["b"], "b": [], "c": []},
    "none": {"a": [], "b": []},
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("mode", ["cancel", "requeue,within", "cancel,priority"])
def test_ranks_say_what_the_order_says(name: str, mode: str) -> None:
    """Where there are ranks, sorting by them gives the order; a chain has them, save where priorities count."""
    graph = GRAPHS[name]
    qos = {each: {"preempt": listed} for each, listed in graph.items()}
    run = engine(nodes(1, cpus=1), qos=qos, preempt_mode=mode)
    names = [*sorted(graph), *sorted(graph, reverse=True)]
    for at, each in enumerate(names):
        run.submit(JobSpec(id=str(at), qos=each))
    ranks = ranks_of(run.ledger)
    if name == "a chain":
        assert (ranks is None) is (mode != "cancel")
    if ranks is None:
        return
    pending = run.ledger.pending
    for few in (pending, pending[: len(graph)], pending[1:], pending[::2]):
        by_rank = sorted(few, key=lambda job: cast(int, ranks(job)))
        assert ids(by_rank) == ids(PreemptorsFirst(run.ledger).sort(few, run.ledger))


def test_a_job_without_qos_has_no_rank() -> None:
    """It displaces none and none displaces it, so that it stands beside all others."""
    run = engine()
    run.submit(JobSpec(id="P"))
    ranks = ranks_of(run.ledger)
    assert ranks is not None
    assert ranks(run.ledger.jobs["P"]) is None


# ------------------------------------------------------------------------------- limits (0.1)
class FourCores(Limits):
    """A group limit as a site would write it: the jobs of a QOS hold at most four CPUs."""

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Be the limits."""
        return self

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Keep out a job that would be one too many."""
        held = [each.allocation.cpus for each in view.active if each.allocation and each.allocation.cpus]
        return Blocked(reason="QOSGrpCpuLimit") if sum(map(sum, held)) + job.spec.cpus > 4 else None


@pytest.mark.parametrize("limited", [True, False])
def test_preempting_does_not_lift_a_limit(limited: bool) -> None:
    """S48: the job of higher priority waits for the limit, and none is displaced for it; without it, one is."""
    run = replay_table(
        """
        job  qos  submit  tasks  run_time  priority
        j1   q         0      4       100       100
        p    q        10      4        10       200
        """,
        cluster=one_node(cpus=4),
        config={
            "preempt": "preempt/qos",
            "preempt_mode": "cancel",
            "qos": {"q": {"preempt_mode": "within,cancel"}},
            "select": "select/cons_tres",
            "plugins": ["x/four"] if limited else [],
        },
        plugins={"x/four": FourCores()} if limited else None,
        until=11.0,
    )
    assert run.victims == (() if limited else ("j1",))
    if limited:
        assert run.reason("p") == "QOSGrpCpuLimit"


# ------------------------------------------------------------------------ kinds of preemptors
@pytest.mark.parametrize(
    ("mode", "qos", "kind"),
    [
        ("cancel", "high", "high"),
        ("cancel", "low", "low"),
        ("cancel,within", "low", None),
        ("cancel,priority", "high", None),
        ("cancel", None, None),
    ],
)
def test_the_kind_of_a_preemptor(mode: str, qos: str | None, kind: object) -> None:
    """Its QOS, where no priority has a say (1.5)."""
    run = engine(preempt_mode=mode)
    start(run, "1", qos="low", min_nodes=4)
    ask(run, qos=qos)
    assert kinds_of(run.ledger)(run.ledger.jobs["P"]) == kind


def test_a_licence_makes_a_preemptor_its_own_kind() -> None:
    """A job that holds one may be displaced beyond its nodes (section 1.2 no. 8)."""
    run = engine(licenses={"a": 1})
    run.submit(JobSpec(id="P", qos="high", licenses={"a": 1}))
    assert kinds_of(run.ledger)(run.ledger.jobs["P"]) is None
