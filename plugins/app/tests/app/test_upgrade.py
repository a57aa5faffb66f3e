"""What another release of Slurm changes in a log, and which of its rules do it.

The stories are those of recordings: `requeue_loses_place` and `grace_exit_natural` (tests/oracle), with Slurm's
own clocks instead of the recordings' short ones.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

_CONF = """ClusterName=x
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PriorityType=priority/basic
NodeName=n1 CPUs=8 Sockets=2 CoresPerSocket=4
PartitionName=low Nodes=ALL Default=YES PriorityTier=1
PartitionName=hi Nodes=ALL PriorityTier=2
"""
_JOBS = """
[[job]]
id = "low1"
submit = 0
run_time = 1500
tasks = 8
[[job]]
id = "low2"
submit = 200
run_time = 800
tasks = 8
[[job]]
id = "hi"
submit = 400
run_time = 1200
tasks = 8
partition = "hi"
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a slurm.conf and a workload: hi displaces low1 while low2 waits; all runs are made in this process."""
    monkeypatch.setattr("makeway_app.cli.replay.cores", lambda: 0)
    monkeypatch.setattr("makeway_app.cli.upgrade.cores", lambda: 0)
    conf, jobs = tmp_path / "slurm.conf", tmp_path / "jobs.toml"
    conf.write_text(_CONF)
    jobs.write_text(_JOBS)
    return conf, jobs


@pytest.mark.slow
def test_the_rule_that_makes_the_difference_is_named(run: Run, site: tuple[Path, Path]) -> None:
    """A requeued job keeps its place on 22.05, and loses it on 26.05: low2 goes first there."""
    done = run("replay", *site, "--release", "22.05", "--compare", "release=26.05")
    assert done.status == 0, done.err
    *_, story = done.out.split("\n\n")
    lines = story.splitlines()
    assert lines[0] == "B: Slurm 26.05 in place of 22.05: 2 of 3 jobs fare otherwise"
    assert lines[1:3] == ["  1 start earlier: low2", "  1 run otherwise: low1"]
    assert lines[3].startswith("because of 24.05.5, gone: a requeued job keeps its priority, ")
    assert lines[3].endswith(" [requeue_keeps_priority]")
    assert lines[4:6] == lines[1:3]
    assert lines[6].endswith(" differences between them change nothing here")
    assert len(lines) == 7


def test_nothing_is_told_of_releases_that_are_alike_here(run: Run, site: tuple[Path, Path]) -> None:
    """Between 25.05 and the default, the newest, no rule differs that this log touches."""
    done = run("replay", *site, "--compare", "release=25.05")
    assert "B: Slurm 25.05 in place of 26.11: what becomes of 3 jobs is the same; " in done.out


@pytest.mark.slow
def test_who_makes_way_is_named_with_the_preemptor(run: Run, site: tuple[Path, Path]) -> None:
    """min_exempt_priority came with 23.02: before, all of the lower tier have to go."""
    conf, _ = site
    text = _CONF.replace("basic", "multifactor") + "PriorityWeightPartition=100000\n"
    text = text.replace("PriorityTier=1", "PriorityTier=1 PriorityJobFactor=10")
    conf.write_text(f"{text}PreemptParameters=min_exempt_priority=1000\n")
    done = run("replay", *site, "--release", "22.05", "--compare", "release=23.02")
    assert "\n  1 no longer make way: low1 for hi\n" in done.out
    assert "because of 23.02, new: min_exempt_priority is known [min_exempt_priority]\n" in done.out
    assert done.out.count("because of ") == 1


@pytest.mark.slow
def test_several_rules_add_up(run: Run, site: tuple[Path, Path]) -> None:
    """Since 24.05 low1, which exits in its grace time, is run once more; since 24.05.5 low2 goes before it."""
    conf, _ = site
    conf.write_text(_CONF.replace("PriorityTier=1", "PriorityTier=1 GraceTime=3000"))
    done = run("replay", *site, "--release", "22.05", "--compare", "release=26.05")
    reasons = [line for line in done.out.splitlines() if line.startswith("because of ")]
    assert [line.rpartition("[")[2] for line in reasons] == [
        "grace_exit_is_preemption]",
        "requeue_keeps_priority]",
    ]


@pytest.mark.slow
def test_what_is_read_otherwise_is_named(run: Run, site: tuple[Path, Path]) -> None:
    """Without PriorityType the default counts: basic, since 23.02.5 multifactor; with keys of people beside."""
    conf, _ = site
    conf.write_text(_CONF.replace("PriorityType=priority/basic\n", ""))
    asked = "release=26.05; policy.preempt_mode=cancel"
    done = run("replay", *site, "--release", "22.05", "--compare", asked)
    (told,) = (line for line in done.out.splitlines() if line.startswith("because of what the release reads"))
    assert "policy.priority" in told
    assert "policy.preempt_mode" in told


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("release=26,05", "--compare release=26,05: got '26,05'; allowed: a Slurm release"),
        ("release=", "--compare release=: got ''; allowed: a Slurm release"),
    ],
)
def test_what_is_no_release(run: Run, site: tuple[Path, Path], asked: str, said: str) -> None:
    """It is an error, with what is one."""
    done = run("replay", *site, "--compare", asked)
    assert done.status == 2
    assert said in done.err


def test_only_simulated_worlds_have_releases(run: Run, site: tuple[Path, Path]) -> None:
    """No defect of a release is on where jobs are real."""
    done = run("replay", *site, "--compare", "release=26.05", "--world", "local")
    assert done.status == 2
    assert "--compare release=26.05: is for the simulated world; leave out --world" in done.err
