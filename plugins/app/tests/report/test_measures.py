"""Measures of GPU clusters, each held against a calculation by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway.bitmap import of
from makeway.hookspecs import hookimpl
from makeway.model import Allocation, Candidates, Cluster, JobSpec, Node, PreemptMode
from makeway_app.cli import cli
from makeway_report import gpus
from makeway_report.fragments import Fragments
from makeway_testing import TableRun, cluster, replay_table


class HighOverLow:
    """Let the job high requeue the job low."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Any, active: Any) -> Candidates:
        """Name low for high."""
        jobs = tuple(job for job in active if (job.id, preemptor.id) == ("low", "high"))
        return Candidates(jobs=jobs, modes=(PreemptMode.REQUEUE,) * len(jobs))


def two_jobs(**machine: Any) -> TableRun:
    """Replay low, which asks for 4 GPUs, from 0 to 30 and from 50 to 150, and high, for 2 GPUs, from 30 to 50."""
    return replay_table(
        [
            JobSpec(id="low", run_time=100, gres={"gpu": 4} if machine else {}),
            JobSpec(id="high", run_time=20, submit_at=30, gres={"gpu": 2} if machine else {}),
        ],
        cluster=cluster(1, cpus=4, **machine),
        config={
            "preempt": "high/low",
            "preempt_mode": "requeue",
            "scheduler": "builtin",
            "clockwork": {"preset": "ideal"},
        },
        plugins={"high/low": HighOverLow()},
    )


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    """Return the metrics of two jobs on a node with four GPUs."""
    metrics: dict[str, Any] = two_jobs(gres={"gpu": 4}).run.summary()["metrics"]
    return metrics


def test_completion_times_and_evictions(figures: dict[str, Any]) -> None:
    """low ends after 150 s, high 20 s after it came; one preemption of two jobs."""
    assert (figures["jct_mean"], figures["jct_median"], figures["jct_p99"]) == (85.0, 85.0, 150.0)
    assert figures["evictions_per_job"] == 0.5


def test_use_of_gpus(figures: dict[str, Any]) -> None:
    """130 s of four GPUs and 20 s of two are 560 of 600 GPU-seconds; 30 s of four were for nothing."""
    assert figures["gpus"] == 4
    assert figures["gpu_utilisation"] == figures["gpu_allocation"] == round(560 / 600, 6)
    assert figures["gpu_seconds_lost"] == 120.0


def test_stranded_gpus(figures: dict[str, Any]) -> None:
    """high has the whole node for 20 of 150 s, so that two GPUs are free and of use to no job."""
    assert figures["gpus_stranded"] == round(2 * 20 / 150, 6)
    assert figures["gpu_fragmentation"] == 1.0


def test_fairness(figures: dict[str, Any]) -> None:
    """Two jobs share for 20 s: low meets 170/150 jobs on average, so 4 GPUs are 17/15 of its fair share.

    Alone on that share it would take 100 s * 17/15; it took 150 s, which is 45/34 of it. high asks for half of the
    GPUs and meets two jobs, which is its fair share; it waited for none: 1.
    """
    low, high = 45 / 34, 1.0
    assert figures["finish_time_fairness_worst"] == round(low, 6)
    jain = (low + high) ** 2 / (2 * (low**2 + high**2))
    assert figures["finish_time_fairness_jain"] == round(jain, 6)


def test_clusters_without_gpus_keep_their_figures() -> None:
    """Nothing is added unless it is asked for."""
    metrics = two_jobs().run.summary()["metrics"]
    assert not any("jct" in name or "gpu" in name for name in metrics)


# ------------------------------------------------------------------------------- fragmentation
NODES = (
    Node(name="a", index=0, cpus=16, gres={"gpu": 8, "gpu:a100": 8}, features=frozenset({"fast"})),
    Node(name="v", index=1, cpus=4, gres={"gpu": 4, "gpu:v100": 4}),
)


def held(index: int, gpu: int, cpus: int) -> tuple[Allocation, tuple[float, ...]]:
    """Return an allocation on one node."""
    found = Allocation(
        nodes=of([index]), node_indices=(index,), cpus=(cpus,), cores=(0,), gres={"gpu": (gpu,)}
    )
    return found, (float(gpu),)


def test_what_is_free_and_of_use() -> None:
    """Of 100 s, node a has 2 GPUs and 8 CPUs free for 60 s, and v has 4 GPUs and no CPU free for 30 s.

    One job of the mix wants 4 GPUs and 4 CPUs of a node, two want a v100 and a CPU, one wants a GPU with ``fast``.
    """
    seen = Fragments(Cluster(nodes=NODES), {})
    for each in (
        JobSpec(id="four", tasks=4, gres={"gpu": 4}, min_cpus_per_node=4),
        JobSpec(id="v1", gres={"gpu": 1, "gpu:v100": 1}),
        JobSpec(id="v2", gres={"gpu": 1, "gpu:v100": 1}),
        JobSpec(id="fast", gres={"gpu": 1}, features="fast"),
        JobSpec(id="none"),
    ):
        seen.came(each, 0.0)
    six, of_six = held(0, 6, 8)
    none, of_none = held(1, 0, 4)
    seen.change(six, of_six, -1, 0.0)
    seen.change(six, of_six, 1, 60.0)
    seen.change(none, of_none, -1, 70.0)
    free, stranded, unusable = seen.figures(100.0)
    assert free == 2 * 60 + 8 * 40 + 4 * 100
    assert stranded == 4 * 30  # v without CPUs; the 2 GPUs of a are of use to fast
    # a, 60 s: four and the v100s cannot; a, 40 s: the v100s cannot; v, 70 s: fast cannot; v, 30 s: none can
    assert unusable == 120 * 3 / 4 + 320 * 2 / 4 + 280 * 1 / 4 + 120


def test_quota_alone_has_no_fragments() -> None:
    """Where a node holds more GPUs than it has, nothing places them, and there is nothing to say."""
    seen = Fragments(Cluster(nodes=NODES), {})
    many, of_many = held(0, 9, 1)
    seen.change(many, of_many, -1, 0.0)
    assert not seen.placed


def test_parts_of_gpus() -> None:
    """Thousandths are fixed; shards are as many as the nodes divide their GPUs into."""
    nodes = [
        Node(name="n1", index=0, gres={"gpu": 2, "shard": 8}),
        Node(name="n2", index=1, gres={"gpu": 2, "gpu_milli": 2000}),
    ]
    parts = gpus.parts_in_one(nodes)
    assert parts == {"gpu_milli": 1000, "shard": 4}
    assert gpus.wanted(JobSpec(id="1", gres={"shard": 2}, min_nodes=3), parts) == 1.5
    assert gpus.wanted(JobSpec(id="2", gres_total={"gpu_milli": 250}), parts) == 0.25
    assert gpus.wanted(JobSpec(id="3", gres={"gpu": 2, "gpu:a100": 2}), parts) == 2
    assert gpus.wanted(JobSpec(id="4", gres={"gpu:a100": 2, "gpu:v100": 1}), parts) == 3


@pytest.mark.parametrize(
    ("asked", "least"),
    [
        ({"gres_total": {"gpu": 16}}, 1),
        ({"gres_total": {"gpu": 12}, "max_nodes": 2}, 4),
        ({"gres_total": {"gpu": 3}, "max_nodes": 1}, 3),
        ({"gres": {"gpu": 2}, "min_nodes": 4}, 2),
    ],
)
def test_the_least_that_one_node_has_to_give(asked: dict[str, Any], least: float) -> None:
    """Nodes have 8 GPUs: 12 on two nodes leave 4 for the one that gives less."""
    need = gpus.need(JobSpec(id="1", **asked), {}, 8)
    assert need is not None
    assert need.gpus == least


# ------------------------------------------------------------------------------ command line
CONFIG = """
[[node]]
name = "n1"
cpus = 4
{gpus}
[[partition]]
name = "all"
default = true

[policy]
select = "select/whole_nodes"
preempt = "preempt/none"
preempt_mode = ["off"]
"""
JOBS = """
[[job]]
id = "1"
run_time = 100
[[job]]
id = "2"
run_time = 50
"""


def played(folder: Path, *more: str, machine: str = "") -> tuple[str, dict[str, Any]]:
    """Replay two jobs; return what is shown, and the metrics of the record."""
    (folder / "c.toml").write_text(CONFIG.format(gpus=machine))
    (folder / "jobs.toml").write_text(JOBS)
    names = [str(folder / name) for name in ("c.toml", "jobs.toml")]
    done = CliRunner().invoke(cli, ["replay", *names, "--json", str(folder / "out.json"), *more])
    assert done.exit_code == 0, done.output
    metrics: dict[str, Any] = json.loads((folder / "out.json").read_text())["metrics"]
    return done.output, metrics


def test_the_table_has_them_where_there_are_gpus(tmp_path: Path) -> None:
    """A node with GPUs is enough."""
    shown, metrics = played(tmp_path, machine="gres = { gpu = 4 }")
    assert "GPU utilisation" in shown
    assert metrics["gpus"] == 4


def test_the_table_has_them_where_they_are_asked_for(tmp_path: Path) -> None:
    """Without GPUs they are left out, but for ``--metrics``: 100 s and 150 s are 125 s on average."""
    shown, metrics = played(tmp_path)
    assert "JCT" not in shown
    assert "jct_mean" not in metrics
    shown, metrics = played(tmp_path, "--metrics")
    assert "mean JCT" in shown
    assert "GPU" not in shown
    assert metrics["jct_mean"] == 125.0
