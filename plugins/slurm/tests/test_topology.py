"""Switches by hand (slurm-priority-and-limits 10), beside both of Slurm's selectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import Config, build_cluster
from makeway.errors import ConfigError
from makeway.model import Exclusive, JobSpec
from makeway.settings import structure
from makeway_app.replay import Run, replay
from makeway_slurm.readers.conf import SlurmConfReader
from makeway_slurm.readers.sbatch_args import parse_sbatch
from makeway_slurm.topology.switches import trees_of

NAME = "topology/tree"
LEAVES = (
    {"SwitchName": "s1", "Nodes": "n[1-4]"},
    {"SwitchName": "s2", "Nodes": "n[5-8]"},
    {"SwitchName": "top", "Switches": "s[1-2]"},
)
SELECTORS = pytest.mark.parametrize("select", ["select/linear", "select/cons_tres"])


def site(select: str, own: Mapping[str, Any] | None = None, tables: Any = LEAVES) -> Config:
    """Return two leaf switches with four nodes each."""
    found: dict[str, Any] = {
        "cluster": {"attributes": {"topology": [dict(each) for each in tables]}},
        "node": [{"name": "n[1-8]", "cpus": 2, "cores_per_socket": 2, "memory_mb": 1000}],
        "partition": [{"name": "main", "default": True, "max_time": 86400.0}],
        "policy": {"select": select, "plugins": [NAME], "settings": {NAME: dict(own or {})}},
        "scheduler": {"type": "backfill"},
    }
    if select == "select/cons_tres":
        found["policy"]["select_parameters"] = ["CR_CPU"]
    return structure(found, Config, "test")


def job(id: str, at: float, nodes: int, run_time: float = 10.0, **more: Any) -> JobSpec:
    """Return a job on whole nodes, with a limit of an hour."""
    return JobSpec(
        id=id,
        submit_at=at,
        min_nodes=nodes,
        max_nodes=nodes,
        run_time=run_time,
        time_limit=3600.0,
        exclusive=Exclusive.NODE,
        **more,
    )


def filler(names: str, run_time: float = 1000.0) -> JobSpec:
    """Return a job on these nodes."""
    listed = tuple(names.split())
    return attrs.evolve(job(f"fill {names}", 0, len(listed), run_time), required_nodes=listed)


def places(run: Run) -> dict[str, tuple[float, str]]:
    """Return when and where each job ran."""
    return {
        job_id: (each["intervals"][-1]["start"], each["intervals"][-1].get("nodes", ""))
        for job_id, each in run.summary()["jobs"].items()
        if not job_id.startswith("fill")
    }


@SELECTORS
def test_jobs_lie_below_the_tightest_leaf(select: str) -> None:
    """With three free below one leaf and two below the other, each job takes the leaf that it fills best (no. 1)."""
    run = replay(site(select), [filler("n1 n5 n6"), job("two", 1, 2), job("three", 2, 3), job("one", 20, 1)])
    assert places(run) == {"two": (1.0, "n[7-8]"), "three": (2.0, "n[2-4]"), "one": (20.0, "n7")}


@SELECTORS
def test_jobs_that_ask_for_one_switch_lie_below_the_tightest_leaf_too(select: str) -> None:
    """Three are free below one leaf and two below the other: the pair takes the latter (no. 1 and 2)."""
    run = replay(site(select), [filler("n1 n5 n6"), job("two", 1, 2, attributes={"switches": 1})])
    assert places(run) == {"two": (1.0, "n[7-8]")}


@SELECTORS
def test_a_job_that_no_leaf_holds_lies_across(select: str) -> None:
    """Five of eight nodes start at once below the switch above both leaves."""
    run = replay(site(select), [filler("n1 n2"), job("five", 1, 5)])
    assert places(run) == {"five": (1.0, "n[3-7]")}


@SELECTORS
def test_x5_switches_wait_for_their_time(select: str) -> None:
    """n4 and n8 alone are free: a pair starts at once, with --switches=1@10s after 10 s, else after 300 s."""
    full = filler("n1 n2 n3 n5 n6 n7")
    assert places(replay(site(select), [full, job("any", 61, 2)])) == {"any": (61.0, "n[4,8]")}
    ten = {"switches": 1, "switches_wait": 10.0}
    found = places(replay(site(select), [full, job("ten", 61, 2, attributes=ten)]))
    assert found == {"ten": (71.0, "n[4,8]")}
    found = places(replay(site(select), [full, job("usual", 61, 2, attributes={"switches": 1})]))
    assert found == {"usual": (361.0, "n[4,8]")}


@SELECTORS
def test_x5_a_leaf_with_two_free_nodes_ends_the_wait(select: str) -> None:
    """n1 is free at 90: the pair starts below its leaf then, long before 300 s."""
    first = [filler("n1", 90.0), filler("n2 n3 n5 n6 n7")]
    found = places(replay(site(select), [*first, job("pair", 61, 2, attributes={"switches": 1})]))
    assert found == {"pair": (90.0, "n[1,4]")}


@SELECTORS
def test_a_site_may_allow_a_shorter_wait(select: str) -> None:
    """max_switch_wait bounds what a job asks for (no. 2)."""
    ask = {"switches": 1, "switches_wait": 1000.0}
    full = filler("n1 n2 n3 n5 n6 n7")
    found = places(
        replay(site(select, {"max_switch_wait": 20.0}), [full, job("pair", 61, 2, attributes=ask)])
    )
    assert found == {"pair": (81.0, "n[4,8]")}


@SELECTORS
def test_optional_switches_count_for_who_asks(select: str) -> None:
    """TopoOptional: an ordinary job lies wherever the selector puts it."""
    jobs = [filler("n2 n3 n4"), job("pair", 1, 2)]
    assert places(replay(site(select), jobs)) == {"pair": (1.0, "n[5-6]")}
    lone = [filler("n1 n3 n5 n6 n7"), job("pair", 1, 2)]
    assert places(replay(site(select, {"optional": True}), lone))["pair"][0] == 1.0


def test_a_waiting_pair_holds_up_its_partition() -> None:
    """It blocks later jobs like any job that lacks room, but not those that backfill finds room for (no. 2)."""
    config = site("select/linear")
    builtin = attrs.evolve(config, scheduler=attrs.evolve(config.scheduler, type="builtin"))
    full = filler("n1 n2 n3 n5 n6 n7")
    jobs = [full, job("pair", 61, 2, attributes={"switches": 1}), job("next", 62, 1)]
    assert places(replay(builtin, jobs))["next"][0] >= 361.0


# ------------------------------------------------------------------------------------- reading
CONF = """\
ClusterName=c
SlurmctldHost=h
SelectType=select/linear
TopologyPlugin=topology/tree
SchedulerParameters=max_switch_wait=60
NodeName=n[1-8] CPUs=2
PartitionName=main Nodes=n[1-8] Default=YES
"""
TOPOLOGY = "SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[5-8]\nSwitchName=top Switches=s[1-2]\n"


def test_topology_conf_beside_slurm_conf(tmp_path: Path) -> None:
    """It is read where switches decide; nothing of it is left out."""
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "topology.conf").write_text(TOPOLOGY)
    found = SlurmConfReader().read(tmp_path / "slurm.conf")
    assert list(found.config.cluster.attributes["topology"]) == [dict(each) for each in LEAVES]
    assert found.config.policy.plugins == (NAME,)
    assert found.config.policy.settings[NAME] == {"max_switch_wait": 60.0}
    assert not [each.name for each in found.unmodelled if "opolog" in each.name or "witch" in each.name]


def test_a_missing_topology_conf_is_named(tmp_path: Path) -> None:
    """The replay goes on without switches, and says so."""
    (tmp_path / "slurm.conf").write_text(CONF)
    found = SlurmConfReader().read(tmp_path / "slurm.conf")
    assert any("no topology.conf beside it" in text for text in found.warnings)
    assert NAME not in found.config.policy.plugins


def test_other_topologies_may_matter(tmp_path: Path) -> None:
    """topology/block is not modelled, and is named."""
    (tmp_path / "slurm.conf").write_text(CONF.replace("topology/tree", "topology/block"))
    found = SlurmConfReader().read(tmp_path / "slurm.conf")
    assert "TopologyPlugin=topology/block" in [each.name for each in found.unmodelled]


@pytest.mark.parametrize(
    ("word", "found"),
    [("1", {"switches": 1.0}), ("2@00:10:00", {"switches": 2.0, "switches_wait": 600.0})],
)
def test_switches_among_the_options_of_sbatch(word: str, found: Mapping[str, float]) -> None:
    """A number, and perhaps a time."""
    (spec,) = parse_sbatch(
        [f"--switches={word}", "-N2"], id="1", user="ann", submit_at=0.0, run_time=1.0, source="test"
    )
    assert {key: spec.attributes[key] for key in found} == found


def test_a_wrong_number_of_switches() -> None:
    """It is refused with the place of the mistake."""
    with pytest.raises(ValueError, match="expected a number of switches"):
        parse_sbatch(["--switches=few"], id="1", user="ann", submit_at=0.0, run_time=1.0, source="test")


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([{"Nodes": "n1"}], "SwitchName is missing"),
        ([{"SwitchName": "s"}], "has neither Nodes nor Switches"),
        ([{"SwitchName": "s", "Nodes": "x1"}], "'x1' is no node"),
        ([{"SwitchName": "s", "Switches": "t"}], "'t' is no switch"),
        ([{"SwitchName": "s", "Switches": "s"}], "'s' lies above it as well"),
        ([{"SwitchName": "s", "Node": "n1"}], "got 'Node'"),
        ([{"SwitchName": "s", "Nodes": "n1"}, {"SwitchName": "s", "Nodes": "n2"}], "stands there twice"),
    ],
)
def test_wrong_switches(tables: Any, said: str) -> None:
    """Each mistake is named."""
    with pytest.raises(ConfigError) as caught:
        trees_of(build_cluster(site("select/linear", tables=tables)))
    assert said in str(caught.value)
