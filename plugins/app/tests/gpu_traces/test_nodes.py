"""``makeway import`` of the machines that traces come with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from makeway.config import Config
from makeway.errors import ConfigError
from makeway_app.cli.inputs import load_config
from makeway_testing.command_line import Run

OPENB = """sn,cpu_milli,memory_mib,gpu,model
openb-node-0000,32000,262144,0,
openb-node-0001,32000,262144,0,
openb-node-0002,96000,393216,8,G2
openb-node-0004,96000,393216,8,G2
"""
SPOT = """gpu_model,gpu_capacity_num,cpu_num,node_name
A100,8,128,node_a
A100,8,128,node_b
"""
PHILLY = """machineId,number of GPUs,single GPU mem
m1,8,24GB
m2,2,12GB
"""
QUOTAS = """date,vcA,vcB,total
2020-04-01,8,16,24
2020-04-02,16,16,32
2020-04-03,16,16,32
"""


def _imported(path: Path, text: str) -> tuple[Config, tuple[str, ...]]:
    path.write_text(text)
    loaded = load_config(path)
    return loaded.config, loaded.warnings


def _nodes(config: Config) -> list[tuple[Any, ...]]:
    return [(each.name, each.cpus, dict(each.gres), tuple(each.features)) for each in config.node]


def test_nodes_of_openb_become_tables_of_like_nodes(tmp_path: Path) -> None:
    """A gap in the numbers ends a table."""
    config, warnings = _imported(tmp_path / "nodes.csv", OPENB)
    gpus = {"gpu": 8, "gpu_milli": 8000}
    assert _nodes(config) == [
        ("openb-node-[0000-0001]", 32, {}, ()),
        ("openb-node-0002", 96, gpus, ("G2",)),
        ("openb-node-0004", 96, gpus, ("G2",)),
    ]
    assert [each.memory_mb for each in config.node] == [262144, 393216, 393216]
    assert {each.name for each in config.qos} == {"LS", "Guaranteed", "Burstable", "BE"}
    assert warnings == ()


def test_nodes_of_spot_and_philly(tmp_path: Path) -> None:
    """Philly does not say how many cores there are."""
    spot, _ = _imported(tmp_path / "node_info_df.csv", SPOT)
    assert _nodes(spot) == [("node_a", 128, {"gpu": 8}, ("A100",)), ("node_b", 128, {"gpu": 8}, ("A100",))]
    philly, warnings = _imported(tmp_path / "cluster_machine_list", PHILLY)
    assert _nodes(philly) == [("m1", 8, {"gpu": 8}, ()), ("m2", 2, {"gpu": 2}, ())]
    assert len(warnings) == 1


def test_quotas_of_most_days_become_queues_of_one_cohort(tmp_path: Path) -> None:
    """Two of three days have 16 and 16 GPUs: four nodes of eight."""
    config, warnings = _imported(tmp_path / "cluster_gpu_number.csv", QUOTAS)
    assert _nodes(config) == [("n[1-4]", 48, {"gpu": 8}, ())]
    queues = config.policy.settings["kueue/cohort"]["queue"]
    assert [(each["name"], each["quotas"][0]["nominal"]) for each in queues] == [("vcA", 16), ("vcB", 16)]
    assert warnings[1] == "quotas change from day to day: those of 2 of 3 days hold for the whole replay"


def test_quotas_lend_in_a_replay(run: Run, tmp_path: Path) -> None:
    """vcA borrows all of vcB's GPUs, and vcB takes its own back: the job of vcA starts again."""
    (tmp_path / "cluster_gpu_number.csv").write_text(QUOTAS)
    header = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    rows = [
        "1,u,vcA,32,192,4,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,x,100,0",
        "2,u,vcB,16,96,2,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:10,x,50,0",
    ]
    (tmp_path / "cluster_log.csv").write_text(header + "\n".join(rows) + "\n")
    site = str(tmp_path / "site.toml")
    assert run("import", str(tmp_path / "cluster_gpu_number.csv"), "-o", site).status == 0
    found = run("replay", site, str(tmp_path / "cluster_log.csv"))
    assert found.status == 0, found.out + found.err
    assert "vcB" in (found.out + found.err)
    assert "core-hours lost 0.5" in " ".join(found.out.split())  # 192 cores for 10 s


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("n.csv", OPENB.replace("0004", "0002"), "node 'openb-node-0002' is there twice"),
        ("n.csv", OPENB.replace("96000", "many"), "n.csv:4: cpu_milli: got 'many'"),
        ("n.csv", OPENB.splitlines()[0], "there are no nodes"),
        ("q.csv", QUOTAS.replace("24", "24\n2020-04-09,x,1,1"), "q.csv:3: vcA: got 'x'"),
        ("q.csv", QUOTAS.splitlines()[0], "there are no quotas"),
    ],
)
def test_what_cannot_be_meant_is_an_error(run: Run, tmp_path: Path, name: str, text: str, said: str) -> None:
    """It names the line, and writes nothing."""
    (tmp_path / name).write_text(text)
    found = run("import", str(tmp_path / name), "-o", str(tmp_path / "out.toml"))
    assert found.status != 0
    assert said in (found.out + found.err)
    assert not (tmp_path / "out.toml").exists()


def test_a_field_without_end_is_one_error(tmp_path: Path) -> None:
    """Longer than Python's csv reads, 131,072 characters."""
    with pytest.raises(ConfigError, match=r"nodes\.csv:3: cannot be read as CSV"):
        _imported(
            tmp_path / "nodes.csv", SPOT.splitlines()[0] + "\nA100,8,128,a\n" + "x" * 200_000 + ",8,1,b\n"
        )
