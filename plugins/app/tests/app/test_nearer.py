"""A change from the command line that changes nothing says so, and a compared file says what the first one would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway.config import parse_toml
from makeway_app.cli.changes import change
from makeway_app.cli.nearer import overruled

Run = Callable[..., Any]

SITE = parse_toml(
    """
node = [{ name = "n1" }]
partition = [{ name = "low", preempt_mode = ["suspend"], def_mem_per_node = 100 }, { name = "high" }]
qos = [{ name = "normal", preempt_mode = ["off"], exempt_time = 0 }, { name = "urgent", preempt_mode = ["cancel"] }]
[policy]
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
""",
    "site",
)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        pytest.param(
            ["policy.preempt_mode=requeue"],
            "partition low has preempt_mode of its own, so that it changes nothing there; "
            "try partition.low.preempt_mode=...",
            id="the partition's mode",
        ),
        pytest.param(
            ["policy.preempt=preempt/qos", "policy.preempt_mode=requeue"],
            "qos urgent has preempt_mode of its own, so that it changes nothing there; try qos.urgent.preempt_mode=...",
            id="the mode of a QOS; OFF is none",
        ),
        pytest.param(
            ["cluster.def_mem_per_cpu=5"],
            "partition low has def_mem_per_node of its own, so that it changes nothing there; "
            "try partition.low.def_mem_per_node=...",
            id="memory in another unit",
        ),
        pytest.param(
            ["partition.high.def_mem_per_cpu=7", "cluster.def_mem_per_cpu=5"],
            "partition low, high have def_mem_per_node of their own, so that it changes nothing; "
            "try partition.low.def_mem_per_node=...",
            id="everywhere",
        ),
        pytest.param(
            ["policy.preemption.exempt_time=60"],
            "qos normal has exempt_time of its own, so that it changes nothing there; try qos.normal.exempt_time=...",
            id="no time at all is a time",
        ),
        pytest.param(
            ["partition.low.preempt_mode=requeue", "policy.preempt_mode=requeue"], "", id="the same value"
        ),
        pytest.param(["partition.low.preempt_mode=", "policy.preempt_mode=requeue"], "", id="taken back"),
        pytest.param(["policy.preempt=preempt/none", "policy.preempt_mode=off"], "", id="another policy"),
        pytest.param(["cluster.max_mem_per_cpu=1000"], "", id="nothing nearer"),
    ],
)
def test_what_is_nearer_is_named(typed: list[str], told: str) -> None:
    """Slurm takes a partition's memory before the cluster's, and the mode of what its PreemptType compares."""
    config, key = SITE, typed[-1].partition("=")[0]
    for text in typed:
        config = change(config, text)
    assert list(overruled(config, "--set", key)) == ([f"--set {key}: {told}"] if told else [])


@pytest.mark.slow
def test_what_is_so_already_is_told(run: Run, with_jobs: Path) -> None:
    same = "policy.preempt_mode=requeue"
    done = run(
        "replay", with_jobs, "--set", same, "--compare", "policy.preempt_mode=off; scheduler.type=builtin"
    )
    assert f"warning: --set {same}: it changes nothing, for the configuration says the same\n" in done.err
    assert done.err.count("it changes nothing") == 1
    done = run("explain", with_jobs, "--job", "1", "--set", same)
    assert f"warning: --set {same}: it changes nothing" in done.err
    done = run("replay", with_jobs, "--compare", same)
    assert f"warning: --compare {same}: it changes nothing" in done.err


@pytest.mark.slow
def test_a_compared_file_is_told_of_like_the_first(
    run: Run, config: Path, with_jobs: Path, workload: Path, tmp_path: Path
) -> None:
    """Its own warnings, what it leaves out, and what decides at that site and not here; it gets the same jobs."""
    other = tmp_path / "other.conf"
    other.write_text(
        "ClusterName=x\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nVSizeFactor=5\n"
        "JobSubmitPlugins=lua\nNodeName=n[1-2] CPUs=4\nPartitionName=low Nodes=ALL Default=YES\n"
        "PartitionName=high Nodes=ALL PreemptMode=SUSPEND,GANG\nAccountingStorageEnforce=limits\n"
    )
    alone = run("replay", other, workload)
    told = [f"warning: --compare {other}: {text}\n" for text in _warnings(alone.err)]
    compared = run("replay", config, workload, "--compare", other)
    assert compared.status == 0, compared.err
    assert len(told) > 1
    assert all(line in compared.err for line in told)
    assert "\nB: what decides at this site and not in a replay\n  Slurm enforces limits" in compared.out
    assert run("replay", with_jobs, "--compare", other).out.splitlines()[0].startswith("2 jobs")


def _warnings(shown: str) -> list[str]:
    return [line.removeprefix("warning: ") for line in shown.splitlines() if line.startswith("warning: ")]
