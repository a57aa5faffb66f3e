"""What a real database printed of one small cluster, by each command that prints it (recording ``exports``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable
from makeway_slurm.accounts.tree import Tree, build
from makeway_slurm.readers.accounting import Accounting, merged
from makeway_slurm.readers.sacctmgr import read_accounting

RECORDING = Path(__file__).parents[3] / "tests" / "priority" / "exports.json"
WORDS = {
    "tree": "sacctmgr -P show assoc tree",
    "accounts": "sacctmgr -P show account withassoc",
    "users": "sacctmgr -P show user withassoc",
    "qos": "sacctmgr -P show qos",
    "sshare": "sshare -a -P",
    "assoc_mgr": "scontrol -o show assoc_mgr",
    "dump": "sh: sacctmgr -Q dump",
}


@pytest.fixture(scope="module")
def printed() -> Mapping[str, str]:
    """Return what each command printed."""
    tables = json.loads(RECORDING.read_text())["tables"]
    return {
        name: next(table["text"] for table in tables if table["what"].startswith(words) and table.get("text"))
        for name, words in WORDS.items()
    }


def read(printed: Mapping[str, str], folder: Path, *names: str) -> Accounting:
    """Read what some commands printed."""
    paths = []
    for name in names:
        text = printed[name]
        if name == "dump":  # the command also said on the screen what it wrote
            text = "\n".join(line for line in text.splitlines() if not line.startswith("sacctmgr:"))
        path = folder / f"{name}.txt"
        path.write_text(text)
        paths.append(path)
    return read_accounting(paths)


def tree(accounting: Accounting) -> Tree:
    """Return the tree that comes of it."""
    return build(accounting.rows.tables("cluster", accounting.default_accounts))


def shape(grown: Tree) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Return the account above each association, and its shares."""
    return {
        (node.account, node.user, node.partition): (
            node.parent.account if node.parent is not None else "",
            "parent" if node.by_parent else str(node.shares),
        )
        for node in grown.nodes
    }


SHAPE = {
    ("root", "", ""): ("", "1"),
    ("root", "root", ""): ("root", "1"),
    ("dept", "", ""): ("root", "60"),
    ("team", "", ""): ("dept", "parent"),
    ("team", "alice", ""): ("team", "2"),
    ("team", "bob", ""): ("team", "3"),
    ("solo", "", ""): ("root", "40"),
    ("solo", "bob", ""): ("solo", "1"),
    ("solo", "carol", ""): ("solo", "1"),
    ("solo", "carol", "fast"): ("solo", "7"),
}


@pytest.mark.parametrize(
    "names", [("tree",), ("dump",), ("accounts", "users"), ("users", "tree"), ("tree", "dump")]
)
def test_the_tree(names: tuple[str, ...], printed: Mapping[str, str], tmp_path: Path) -> None:
    """Which stands below which with how many shares, whatever prints it, in any order."""
    found = shape(tree(read(printed, tmp_path, *names)))
    if names == ("accounts", "users"):  # the accounts' table does not tell carol's two associations apart
        assert {key: value for key, value in found.items() if key[1] != "carol"} == {
            key: value for key, value in SHAPE.items() if key[1] != "carol"
        }
    else:
        assert found == SHAPE


@pytest.mark.parametrize("name", ["tree", "dump"])
def test_limits(name: str, printed: Mapping[str, str], tmp_path: Path) -> None:
    """Own ones, and those that an account hands down."""
    nodes = {
        (node.account, node.user, node.partition): node.limits
        for node in tree(read(printed, tmp_path, name)).nodes
    }
    assert nodes["dept", "", ""].grp_tres == {"cpu": 12}
    assert nodes["team", "", ""].grp_tres_mins == {"cpu": 100000}
    assert nodes["team", "bob", ""].grp_tres_run_mins == {"cpu": 1000}
    assert nodes["team", "alice", ""].max_jobs == 5
    assert nodes["solo", "bob", ""].max_jobs == 50
    assert nodes["solo", "carol", "fast"].max_tres == {"cpu": 2, "node": 1}


def test_qos(printed: Mapping[str, str], tmp_path: Path) -> None:
    """Limits, factor and flags of a QOS."""
    (high,) = (table for table in read(printed, tmp_path, "qos").qos if table.name == "high")
    assert high.flags == ("DenyOnLimit", "OverPartQOS")
    assert dict(high.attributes) == {
        "UsageFactor": "2.000000",
        "GrpTRES": "cpu=8,node=2",
        "MaxTRESMins": "cpu=600",
        "MaxWall": "1-00:00:00",
        "MaxJobsPU": "3",
        "MaxSubmitPU": "10",
    }


@pytest.mark.parametrize(("name", "alice"), [("sshare", 541.0), ("assoc_mgr", 541.94)])
def test_usage_at_the_start(name: str, alice: float, printed: Mapping[str, str], tmp_path: Path) -> None:
    """Of sshare whole seconds, of assoc_mgr two decimals; minutes of wall time and TRES of the latter."""
    grown = tree(read(printed, tmp_path, "tree", name))
    node = next(node for node in grown.users if node.user == "alice")
    assert node.start["raw"] == alice
    if name == "assoc_mgr":
        assert (node.start["wall"], node.start["cpu"]) == (5.03 * 60, 9 * 60)


def test_what_is_missing_is_said(printed: Mapping[str, str], tmp_path: Path) -> None:
    """Fair share without usage at the start is wrong for a while."""
    settings = {"priority/multifactor": {"weight_fairshare": 1000}}
    config = Config(
        node=(NodeTable(name="n"),),
        partition=(PartitionTable(name="p"),),
        policy=PolicyTable(priority="priority/multifactor", settings=settings),
    )
    bare = merged(config, read(printed, tmp_path, "tree"))
    assert any("first one to two half lives" in text for text in bare.without_usage)
    told = merged(config, read(printed, tmp_path, "sshare", "tree"))
    assert not any("half lives" in text for text in (*told.warnings, *told.without_usage))
    assert len(told.config.cluster.attributes["associations"]) == len(SHAPE)
