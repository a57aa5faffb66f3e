"""What a job is short of, which holds it, and what to try: each by the request, the site and what others hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

HEAD = "ClusterName=c\nSlurmctldHost=head\n"
TWO = (
    "NodeName=comp1 CPUs=12 RealMemory=48000\nNodeName=comp2 CPUs=16 RealMemory=64000\n"
    "PartitionName=test Nodes=comp[1-2] Default=YES\n"
)
MEMORY = HEAD + "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU_Memory\n" + TWO
LINEAR = HEAD + "SelectType=select/linear\n" + TWO
GPUS = (
    HEAD
    + "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nPreemptType=preempt/partition_prio\n"
    + "PreemptMode=SUSPEND,GANG\nGresTypes=gpu\nNodeName=v1 CPUs=32 CoresPerSocket=32 RealMemory=128000 Gres=gpu:4\n"
    + "PartitionName=DEFAULT Nodes=v1 DefMemPerCPU=1000\n"
    + "PartitionName=long PriorityTier=1 PreemptMode=SUSPEND Default=YES\n"
    + "PartitionName=short PriorityTier=10 PreemptMode=OFF\n"
)
HET = (
    HEAD
    + "SelectType=select/linear\nPreemptType=preempt/partition_prio\nPreemptMode=CANCEL\nNodeName=n[1-2] CPUs=2\n"
    + "PartitionName=low1 Nodes=n1 PriorityTier=1 Default=YES\nPartitionName=low2 Nodes=n2 PriorityTier=1\n"
    + "PartitionName=high2 Nodes=n2 PriorityTier=10\n"
)
LICENCES = HEAD + "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nLicenses=vcs:2\n" + TWO
HOUR = '"run_time": 600, "time_limit": 3600}\n'


@pytest.mark.parametrize(
    ("site", "jobs", "job", "said"),
    [
        pytest.param(
            MEMORY,
            '{"id": 26, "cpus": 1, "array": "0-3", ' + HOUR,
            "26_2",
            (
                "comp1: all of its memory is wanted, 0 of 48,000 MB free; held by 26_0 (48,000 MB)",
                "DefMemPerCPU=4000 (--compare cluster.def_mem_per_cpu=4000)",
            ),
            id="memory that no job asked for",
        ),
        pytest.param(
            LINEAR,
            "".join(f'{{"id": {number}, "nodes": 1, "tasks_per_node": 3, {HOUR}' for number in (1, 2, 3)),
            "3",
            ("comp1: the whole node is wanted; held by 1", "it wants 3 of 16 CPUs", "select/cons_tres"),
            id="whole nodes",
        ),
        pytest.param(
            GPUS,
            '{"id": 1, "partition": "long", "cpus": 8, "gres": {"gpu": 4}, "run_time": 36000, "time_limit": 86400}\n'
            '{"id": 2, "partition": "short", "submit": 600, "cpus": 8, "gres": {"gpu": 1}, ' + HOUR,
            "2",
            (
                "v1: 1 gpu wanted, 0 of 4 free; held by 1 (4), which would keep it while suspended",
                "--compare partition.long.preempt_mode=requeue",
            ),
            id="GPUs that suspended jobs keep",
        ),
        pytest.param(
            HET,
            '{"id": 1, "run_time": 3600, "time_limit": 7200, "component": [{"partition": "low1", "nodes": 1}, '
            '{"partition": "low2", "nodes": 1}]}\n{"id": 3, "submit": 600, "partition": "high2", "nodes": 1, '
            + HOUR,
            "3",
            ("n2: the whole node is wanted; held by 1+1", "only the nodes of this leader count as freed"),
            id="only the leader's nodes",
        ),
        pytest.param(
            LICENCES,
            '{"id": 1, "cpus": 1, "licenses": {"vcs": 1}, "run_time": 3000, "time_limit": 3600}\n'
            '{"id": 2, "submit": 10, "cpus": 1, "licenses": {"vcs": 2}, '
            + HOUR
            + '{"id": 3, "submit": 20, "cpus": 1, "licenses": {"vcs": 1}, '
            + HOUR,
            "2",
            (
                "licence vcs: held by 1 (1)",
                "SchedulerParameters=bf_licenses",
                "1 job with licences of vcs: 3",
            ),
            id="licences, and which overtook it",
        ),
        pytest.param(
            MEMORY,
            '{"id": 26, "cpus": 1, "array": "0-5", ' + HOUR,
            "26_4",
            ("Priority, behind job 26_2 of priority", "which waits for Resources"),
            id="the job ahead",
        ),
    ],
)
def test_the_scarce_thing_is_named(
    run: Run, tmp_path: Path, site: str, jobs: str, job: str, said: tuple[str, ...]
) -> None:
    (tmp_path / "slurm.conf").write_text(site)
    (tmp_path / "jobs.jsonl").write_text(jobs)
    done = run("explain", tmp_path / "slurm.conf", tmp_path / "jobs.jsonl", "--job", job)
    assert done.status == 0, done.err
    for text in said:
        assert text in done.out


@pytest.mark.parametrize(
    ("held", "wanted", "said"),
    [
        (10, 4, "comp1: 4 CPUs wanted, 2 of 12 free; held by 1 (10)"),
        (12, 1, "comp1: 1 CPU wanted, 0 of 12 free; held by 1 (12)"),
    ],
)
def test_cores_that_others_have_are_named(
    run: Run, tmp_path: Path, held: int, wanted: int, said: str
) -> None:
    (tmp_path / "slurm.conf").write_text(MEMORY)
    here = '"required_nodes": "comp1", "memory_mb": 100, '
    jobs = f'{{"id": 1, "cpus": {held}, {here}{HOUR}{{"id": 2, "cpus": {wanted}, "nodes": 1, "submit": 60, '
    (tmp_path / "jobs.jsonl").write_text(jobs + here + HOUR)
    done = run("explain", tmp_path / "slurm.conf", tmp_path / "jobs.jsonl", "--job", "2")
    assert said in done.out


def test_memory_is_told_in_megabytes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(MEMORY)
    here = '"required_nodes": "comp1", "cpus": 1, '
    jobs = (
        f'{{"id": 1, "memory_mb": 40000, {here}{HOUR}{{"id": 2, "memory_mb": 9000, "submit": 60, {here}{HOUR}'
    )
    (tmp_path / "jobs.jsonl").write_text(jobs)
    done = run("explain", tmp_path / "slurm.conf", tmp_path / "jobs.jsonl", "--job", "2")
    assert "comp1: 9,000 MB of memory wanted, 8,000 of 48,000 free; held by 1 (40,000 MB)" in done.out


def test_what_to_try_is_in_the_words_of_the_sites_file(run: Run, tmp_path: Path) -> None:
    """Of a TOML file the keys alone."""
    site = tmp_path / "site.toml"
    site.write_text(
        'node = [{ name = "n1", cpus = 4 }]\npartition = [{ name = "all" }]\n'
        + "".join(f'[[job]]\nid = {at}\nuser = "a"\ncpus = 1\nnodes = 1\nrun_time = 60\n' for at in (1, 2))
    )
    done = run("explain", site, "--job", "2")
    assert "CPUs: try --compare 'policy.select=select/cons_tres" in done.out
    assert "SelectType=" not in done.out
