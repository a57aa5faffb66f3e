"""Hold the reference pages to the code: every key with its type's default."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.clockwork import Clockwork
from makeway.config import (
    ClusterTable,
    Config,
    FailureTable,
    JournalTable,
    MappingRule,
    McsTable,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
    StayOnTable,
    WorkloadTable,
    WorldTable,
)
from makeway.config.tables import SCHEDULERS
from makeway.preemption import PreemptionTable
from makeway.vendors import clockworks
from makeway_app.cli import COMMANDS
from makeway_app.readers.commands import ActionTable
from makeway_app.readers.native import JobTable, SignalTable
from makeway_slurm import gang_timeslice
from makeway_slurm_rules.rules import RULES

DOCS = Path(__file__).parents[1] / "docs"
CONFIG = (DOCS / "config.md").read_text()
WORKLOADS = (DOCS / "workloads.md").read_text()

SECTIONS: Mapping[str, Any] = {
    "[cluster]": ClusterTable,
    "[[node]]": NodeTable,
    "[[partition]]": PartitionTable,
    "[[qos]]": QosTable,
    "[policy]": PolicyTable,
    "[policy.preemption]": PreemptionTable,
    "[policy.mcs]": McsTable,
    "[scheduler]": SchedulerTable,
    "[workload]": WorkloadTable,
    "[[workload.map]]": MappingRule,
    "[world]": WorldTable,
    "[world.failures]": FailureTable,
    "[world.journal]": JournalTable,
    "[[action]]": ActionTable,
    "[[stay_on]]": StayOnTable,
}


def _section(text: str, heading: str) -> str:
    """Return what stands below a heading."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def _rows(text: str) -> dict[str, list[str]]:
    """Return the cells of each row that begins with a key."""
    lines = [line.replace(r"\|", "\0") for line in text.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in rows}


def _default(field: attrs.Attribute[Any]) -> str:
    """Return a default as the pages write it; empty: not set."""
    value = field.default
    if value is attrs.NOTHING:
        return "required"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"`{value:g}`" if abs(value) < 1e5 else f"`{int(value)}`"
    if isinstance(value, str) and value:
        return f'`"{value}"`'
    if isinstance(value, tuple) and value:
        return "`[" + ", ".join(f'"{word}"' for word in value) + "]`"
    return ""


def _documented(cls: Any, rows: Mapping[str, list[str]]) -> None:
    fields = {field.name: field for field in attrs.fields(cls)}
    assert set(fields) - set(rows) == set()
    wrong = {name: rows[name][1] for name in fields if rows[name][1] != _default(fields[name])}
    assert wrong == {}
    assert [name for name in fields if not rows[name][2].endswith(".")] == []


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_key_is_documented(heading: str) -> None:
    """With its default and a sentence, and no key that is none."""
    rows = _rows(_section(CONFIG, f"`{heading}`"))
    _documented(SECTIONS[heading], rows)
    assert set(rows) == {field.name for field in attrs.fields(SECTIONS[heading])}


def test_every_scheduler_is_documented() -> None:
    """In the row of `type`, each with what it does."""
    meaning = _rows(_section(CONFIG, "`[scheduler]`"))["type"][2]
    assert [name for name in SCHEDULERS if f"`{name}` (" not in meaning] == []


def test_every_table_is_documented() -> None:
    """All that a configuration may hold has a section."""
    headings = re.findall(r"^## `\[+([a-z_.]+)", CONFIG, re.MULTILINE)
    assert {heading.partition(".")[0] for heading in headings} == {
        field.name for field in attrs.fields(Config)
    }


def test_every_delay_is_documented() -> None:
    """With both presets."""
    rows = _rows(_section(CONFIG, "`[scheduler.clockwork]`"))
    for field in attrs.fields(Clockwork):
        shown = []
        for preset in ("ideal", "slurm"):
            value = getattr(clockworks()[preset], field.name)
            text = str(value).lower() if isinstance(value, bool) else f"{value or 0:g}"
            shown.append("" if value is None else f"`{text}`".replace("1e+06", "1000000"))
        assert rows[field.name][1:3] == shown, field.name


def test_every_rule_is_documented() -> None:
    """With its sentence."""
    rows = _rows(_section(CONFIG, "`[scheduler.rules]`"))
    assert {name: row[1] for name, row in rows.items()} == {
        name: f"{rule.text} ({rule.section})" for name, rule in RULES.items()
    }


def test_settings_of_built_in_plugins_are_documented() -> None:
    """Below the section on settings."""
    _documented(gang_timeslice.Settings, _rows(_section(CONFIG, '`[policy.settings."NAME"]`')))


def test_every_key_of_a_job_is_documented() -> None:
    """With its default; and those of a signal."""
    text = _section(WORKLOADS, "makeway's own format")
    of_job, _, of_signal = text.partition("`signal` is a table:")
    _documented(JobTable, _rows(of_job))
    _documented(SignalTable, _rows(of_signal))


def test_every_command_is_listed() -> None:
    """As people type it."""
    text = (DOCS / "commands.md").read_text()
    missing = [name for name in COMMANDS if f"`makeway {name}" not in text]
    assert missing == []
