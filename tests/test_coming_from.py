"""Hold docs/coming-from-slurm.md to the reader: a row for every parameter that it knows, and no other."""

from __future__ import annotations

import importlib.util
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import (
    ClusterTable,
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
    WorkloadTable,
)
from makeway.preemption import PreemptionTable
from makeway_slurm.readers import conf as slurm_conf
from makeway_slurm.readers import names, sacctmgr_names
from makeway_slurm.readers import values as slurm_values

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/coming-from-slurm.md"
TEXT = PAGE.read_text()
VERDICTS = ("same", "different", "absent")


def generator() -> types.ModuleType:
    """Import the script that writes parts of the page."""
    found = importlib.util.spec_from_file_location("generate_slurm", ROOT / "docs/generate_slurm.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def section(heading: str) -> str:
    """Return the text below a heading, up to the next one of any level."""
    return re.split(r"^#+ ", TEXT.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def rows(*headings: str) -> Iterator[tuple[str, str, str]]:
    """Yield parameter, verdict and explanation of each row of the sections."""
    for heading in headings:
        for line in section(heading).splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if line.startswith("| `") and len(cells) >= 2:
                for name in re.findall(r"`([^`]+)`", cells[0]):
                    yield name, cells[1].strip(" |"), " ".join(cells[2:])


def verdicts(*headings: str) -> dict[str, str]:
    """Return parameter -> verdict; one named twice is an error."""
    listed = [(name, verdict) for name, verdict, _ in rows(*headings)]
    assert len(dict(listed)) == len(listed), [name for name, _ in listed if dict(listed)[name] != _]
    return dict(listed)


SLURM_CONF = (
    "slurm.conf",
    "Absent, though it can change which job runs when",
    "Absent, without influence on a replay",
)
LINES = "NodeName, NodeSet and DownNodes lines"


def test_the_generated_parts_are_current() -> None:
    """Run docs/generate_slurm.py if this fails."""
    assert generator().render(TEXT) == TEXT


def test_every_parameter_of_slurm_conf_has_a_row() -> None:
    """Those that the reader uses are not absent, save one that only plugins may look at."""
    found = verdicts(*SLURM_CONF)
    assert set(found) == names.MODELLED | names.RELEVANT | names.PLUMBING
    kept = {"CompleteWait"}
    assert {name for name in names.MODELLED if found[name] == "absent"} == kept
    assert {found[name] for name in names.RELEVANT | names.PLUMBING} == {"absent"}


def test_every_parameter_of_a_partition_has_a_row() -> None:
    """Read ones and the others."""
    found = verdicts("PartitionName lines")
    assert set(found) == names.PARTITION_MODELLED | names.PARTITION_RELEVANT | names.PARTITION_PLUMBING
    assert {name for name in names.PARTITION_MODELLED if found[name] == "absent"} == {
        "OverTimeLimit",
    }
    assert {found[name] for name in names.PARTITION_RELEVANT | names.PARTITION_PLUMBING} == {"absent"}


def test_every_parameter_of_other_lines_has_a_row() -> None:
    """Nodes, node sets, nodes that are down, topology and front ends."""
    listed = {name for name, _, _ in rows(LINES)}
    known = names.NODE_MODELLED | names.NODE_RELEVANT | names.NODE_PLUMBING | names.NODESET_KEYS
    assert listed == known | names.DOWN_KEYS | names.FRONTEND_KEYS | names.POWER_KEYS | names.SWITCH_KEYS
    read = {name: verdict for name, verdict, _ in rows(LINES) if name in names.NODE_MODELLED - {"State"}}
    assert "absent" not in read.values()
    others = {names.RECORDS[kind] for kind in slurm_conf._OTHER_RECORDS}
    assert [kind for kind in others if f"`{kind}`" not in section(LINES)] == []


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        pytest.param(
            "PreemptParameters", slurm_values._PREEMPT_FLAGS | slurm_values._PREEMPT_NUMBERS, id="preempt"
        ),
        pytest.param(
            "SchedulerParameters",
            slurm_values._SCHEDULER_FLAGS | slurm_values._SCHEDULER_NUMBERS,
            id="scheduler",
        ),
    ],
)
def test_every_option_has_a_row(heading: str, known: frozenset[str]) -> None:
    """Of the two parameters that are lists of options."""
    assert set(verdicts(heading)) == known


def test_the_options_in_use_are_not_absent() -> None:
    """What the reader turns into the clockwork or the preemption table."""
    from makeway_slurm.readers import scheduler as slurm_scheduler

    found = verdicts("SchedulerParameters")
    used = slurm_scheduler._OPTIONS.keys() | slurm_scheduler._ELSEWHERE
    assert {name for name, verdict in found.items() if verdict != "absent"} == used


def test_every_column_of_sacctmgr_has_a_row() -> None:
    """QOS and associations."""
    listed = [name for name, _, _ in rows("sacctmgr: QOS and users")]
    assert sorted(listed) == sorted([*sacctmgr_names.QOS, *sacctmgr_names.USERS])


def _all_rows() -> list[tuple[str, str, str]]:
    return list(
        rows(
            *SLURM_CONF,
            "PreemptParameters",
            "SchedulerParameters",
            "PartitionName lines",
            LINES,
            "sacctmgr: QOS and users",
        )
    )


def test_every_row_has_a_verdict() -> None:
    """One of three words; what differs says how."""
    assert [row for row in _all_rows() if row[1] not in VERDICTS] == []
    assert [name for name, verdict, how in _all_rows() if verdict == "different" and len(how) < 20] == []


TABLES: dict[str, Any] = {
    "cluster": ClusterTable,
    "node": NodeTable,
    "partition": PartitionTable,
    "qos": QosTable,
    "policy": PolicyTable,
    "scheduler": SchedulerTable,
    "workload": WorkloadTable,
}


def test_every_path_exists() -> None:
    """A key of the configuration that a row names is one."""
    assert set(TABLES) <= {field.name for field in attrs.fields(Config)}
    paths = {path for _, _, how in _all_rows() for path in re.findall(r"`([a-z]+\.[a-z_.]+)`", how)}
    assert len(paths) > 40
    wrong = []
    for path in paths:
        table, _, key = path.partition(".")
        cls = TABLES.get(table)
        if path.startswith("policy.preemption."):
            cls, key = PreemptionTable, path.removeprefix("policy.preemption.")
        if cls is None or key not in {field.name for field in attrs.fields(cls)}:
            wrong.append(path)
    assert wrong == []
