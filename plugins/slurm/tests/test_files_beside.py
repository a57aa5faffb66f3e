"""What the files beside a slurm.conf say: topology.yaml, resources.yaml, gres.conf.

Keys and their meaning are those of the manual pages topology.yaml(5), resources.yaml(5) and gres.conf(5).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from makeway.config import build_cluster
from makeway.errors import ConfigError
from makeway.foreign import LeftOut
from makeway.model import Exclusive, JobSpec
from makeway.readers.api import Loaded
from makeway_app.replay import replay
from makeway_slurm.readers.conf import SlurmConfReader
from makeway_slurm.topology.switches import trees_of

CONF = """ClusterName=x
SchedulerType=sched/builtin
SelectType=select/linear
NodeName=n[1-8] CPUs=4
PartitionName=main Nodes=ALL Default=YES
PartitionName=other Nodes=ALL Topology=pairs
PartitionName=any Nodes=ALL Topology=none
"""
TOPOLOGIES = """---
- topology: halves        # the first default counts
  cluster_default: True
  tree:
    switches:
    - switch: top
      children: left,right
    - switch: left
      nodes: n[1-4]
    - switch: right
      nodes: n[5-8]
- topology: pairs
  tree:
    switches:
    - switch: top
      children: [a, b]
    - switch: a
      nodes: n[1-2]
    - switch: b
      nodes:
        - n3
        - n[4-8]
- topology: none
  flat: true
- topology: unused
  cluster_default: true
  block:
    block_sizes: [4, 8]
    blocks:
    - block: b1
      nodes: n[1-4]
"""


def site(folder: Path, conf: str = CONF, release: str | None = None, **files: str) -> Loaded:
    """Read a slurm.conf with files beside it; ``topology_yaml`` is topology.yaml."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    path = folder / "slurm.conf"
    path.write_text(conf)
    return SlurmConfReader(release=release).read(path)


def test_each_partition_goes_by_its_topology(tmp_path: Path) -> None:
    """One without Topology by the default; a flat one by none."""
    found = site(tmp_path, topology_yaml=TOPOLOGIES)
    assert found.warnings == ()
    assert found.unmodelled == ()
    assert "topology/tree" in found.config.policy.plugins
    cluster = build_cluster(found.config)
    trees = {
        name: [(each.name, each.nodes.bit_count()) for each in tree]
        for name, tree in trees_of(cluster).items()
    }
    assert trees == {
        "": [("left", 4), ("right", 4), ("top", 8)],
        "pairs": [("a", 2), ("b", 6), ("top", 8)],
    }
    own = [each.attributes.get("topology") for each in cluster.partitions]
    assert own == [None, "pairs", "none"]


def test_jobs_lie_below_the_switches_of_their_partition(tmp_path: Path) -> None:
    """With n1 and n2 taken, three nodes below one switch are n[5-7] of a half, n[3-5] of b, and n[3-5] of none."""
    config = site(tmp_path, topology_yaml=TOPOLOGIES).config

    def where(partition: str) -> str:
        filler = JobSpec(
            id="f",
            submit_at=0,
            min_nodes=2,
            run_time=900,
            exclusive=Exclusive.NODE,
            required_nodes=("n1", "n2"),
        )
        job = JobSpec(
            id="j",
            submit_at=1,
            min_nodes=3,
            max_nodes=3,
            run_time=9,
            exclusive=Exclusive.NODE,
            partitions=(partition,),
        )
        ran = replay(config, [filler, job]).summary()["jobs"]["j"]["intervals"]
        nodes: str = ran[-1]["nodes"]
        return nodes

    assert where("main") == "n[5-7]"
    assert where("other") == "n[3-5]"
    assert where("any") == "n[3-5]"


def test_before_25_05_topology_conf_counts(tmp_path: Path) -> None:
    """The file of later releases is named, and passed over."""
    found = site(
        tmp_path,
        CONF.replace(" Topology=pairs", "").replace(" Topology=none", "") + "TopologyPlugin=topology/tree\n",
        "24.11",
        topology_yaml=TOPOLOGIES,
        topology_conf="SwitchName=all Nodes=n[1-8]\n",
    )
    assert found.warnings == ("topology.yaml: Slurm 24.11 does not read it (since 25.05)",)
    assert [each["SwitchName"] for each in found.config.cluster.attributes["topology"]] == ["all"]


@pytest.mark.parametrize("kind", ["block", "ring", "torus3d"])
def test_other_topologies_are_named_with_their_place(tmp_path: Path, kind: str) -> None:
    """Only if a partition goes by them; the place is that of the kind."""
    text = f"- topology: t\n  cluster_default: true\n  {kind}:\n    what: ever\n"
    found = site(
        tmp_path, CONF.replace(" Topology=pairs", "").replace(" Topology=none", ""), topology_yaml=text
    )
    assert found.unmodelled == (LeftOut(name=f"topology.yaml {kind}", places=("topology.yaml:3",)),)
    assert "topology/tree" not in found.config.policy.plugins


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- topology: t\n  tre:\n    switches: []\n", "topology.yaml:2 tre: no such key; allowed: topology"),
        ("- topology: t\n", "topology.yaml:1: got none; allowed: one of tree, flat"),
        ("- flat: true\n", "topology.yaml:1: topology is missing"),
        ("- topology: t\n  tree:\n    switches:\n", "topology.yaml:2 tree: it has no switches"),
        (
            "- topology: t\n  flat: yes\n- topology: t\n  flat: no\n",
            "topology.yaml:3 topology: 't' stands there",
        ),
        ("- topology: t\n  flat: [\n", "topology.yaml:3: not valid YAML: "),
        ("topology: t\nflat: true\n", "topology.yaml:1: got a table; expected a list of tables"),
        ("- topology: t\n  topology: u\n", "topology.yaml:2 topology: it stands there twice"),
        (
            "- topology: t\n  tree:\n    switches:\n    - swich: s\n      nodes: n1\n",
            "topology.yaml:4 swich: no such key; allowed: switch, nodes, children, link_speed; did you mean 'switch'?",
        ),
        (
            TOPOLOGIES.replace("topology: pairs", "topology: pair"),
            "slurm.conf:6 Topology: topology.yaml has no topology 'pairs'; did you mean 'pair'?",
        ),
    ],
)
def test_bad_topologies(tmp_path: Path, text: str, said: str) -> None:
    """Each with its line."""
    with pytest.raises(ConfigError) as caught:
        site(tmp_path, topology_yaml=text)
    assert said in str(caught.value)


def test_a_topology_without_its_file(tmp_path: Path) -> None:
    """Nothing says what the name means."""
    found = site(tmp_path)
    assert found.warnings[0] == (
        f"{tmp_path}/slurm.conf:6 Topology: there is no topology.yaml beside the file, which would say what pairs is"
    )


def test_hierarchical_resources_are_named(tmp_path: Path) -> None:
    """Each with its line; releases before 25.05 do not read the file."""
    text = (
        "---\n- resource: flat\n  mode: MODE_2\n  layers:\n  - layer_name: top\n    nodes: ['n[1-8]']\n"
        "    count: 24\n- resource: power\n  mode: MODE_3\n"
    )
    conf = CONF.replace(" Topology=pairs", "").replace(" Topology=none", "")
    found = site(tmp_path, conf, resources_yaml=text)
    assert found.unmodelled == (
        LeftOut(name="resources.yaml flat", places=("resources.yaml:2",)),
        LeftOut(name="resources.yaml power", places=("resources.yaml:8",)),
    )
    older = site(tmp_path, conf, "24.11")
    assert older.unmodelled == ()
    assert older.warnings == ("resources.yaml: Slurm 24.11 does not read it (since 25.05)",)
    with pytest.raises(ConfigError) as caught:
        site(tmp_path, conf, resources_yaml=text.replace("MODE_2", "MODE_4"))
    assert "resources.yaml:3 mode: got 'MODE_4'; allowed: MODE_1, MODE_2, MODE_3" in str(caught.value)


GRES = "NodeName=n[1-8] Name=gpu Type=a100 File=/dev/nvidia[0-3] Cores=0-3\nAutoDetect=nvml\n"
_GPUS = CONF.replace(" Topology=pairs", "").replace(" Topology=none", "") + "GresTypes=gpu\n"


def test_autodetected_gpus_need_their_number(tmp_path: Path) -> None:
    """gres.conf(5): Gres of the NodeName line counts, whatever is found there."""
    found = site(tmp_path, _GPUS, gres_conf=GRES)
    (told,) = found.warnings
    assert told.startswith(
        f"{tmp_path}/gres.conf:2 AutoDetect: GPUs are counted on the nodes; no NodeName line"
    )
    assert [(each.name, each.places) for each in found.unmodelled] == [("gres.conf Cores", ("gres.conf:1",))]
    told_of_gpus = site(tmp_path, _GPUS.replace("CPUs=4", "CPUs=4 Gres=gpu:a100:4"))
    assert told_of_gpus.warnings == ()


def test_what_is_wrong_in_gres_conf(tmp_path: Path) -> None:
    """A name that GresTypes lacks, a value and a key that do not exist."""
    found = site(tmp_path, _GPUS, gres_conf="Name=gpus File=/dev/x\nAutoDetect=off\n")
    assert (
        "'gpus' is not in GresTypes, so that Slurm knows no such resource; did you mean 'gpu'?"
        in found.warnings[0]
    )
    with pytest.raises(ConfigError) as caught:
        site(tmp_path, _GPUS, gres_conf="AutoDetect=nvmll\nName=gpu Fil=/dev/x\n")
    assert "gres.conf:1 AutoDetect: got 'nvmll'; allowed: full, nrt, nvidia, nvml" in str(caught.value)
    assert "gres.conf:2 Fil: no such parameter in gres.conf; did you mean 'File'?" in str(caught.value)


def test_full_detection_came_with_26_05(tmp_path: Path) -> None:
    """Older releases do not start with it."""
    found = site(
        tmp_path, _GPUS.replace("CPUs=4", "CPUs=4 Gres=gpu:4"), "25.11", gres_conf="AutoDetect=full\n"
    )
    assert any("Slurm 25.11 does not know full (since 26.05)" in each for each in found.refused)
