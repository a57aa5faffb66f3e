"""Say which rule a plugin broke, where, and show the smallest scenario as a table for a test."""

from __future__ import annotations

import pprint
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import tomli_w

from makeway.columns import columns
from makeway.config import Config
from makeway.errors import MakewayError
from makeway.model import JobSpec
from makeway.settings import unstructure
from makeway_testing import builders
from makeway_testing.builders import Machine

if TYPE_CHECKING:
    from makeway_testing.strategies import Scenario


class BreachError(MakewayError):
    """Report what a plugin did against a rule, while a scenario is played.

    It is a `MakewayError` so that the engine hands it on as it is.
    """

    def __init__(self, found: str, *, hook: str = "", job: str = "", at: float | None = None) -> None:
        self.found = found
        self.hook = hook
        self.job = job
        self.at = at
        super().__init__(found)


@attrs.frozen(kw_only=True)
class Broken:
    """A rule that a plugin broke."""

    contract: str
    rule: str
    plugin: str
    found: str
    hook: str = ""
    job: str = ""
    at: float | None = None
    scenario: str = ""
    """Lines to be pasted into a test; empty: the rule needs none."""

    def __str__(self) -> str:
        facts = {
            "rule": self.rule,
            "plugin": self.plugin,
            "hook": self.hook,
            "job": self.job,
            "at": "" if self.at is None else f"{self.at:g} s",
            "found": self.found,
        }
        shown = [f"  {key:<6}  {_hung(value, 10)}" for key, value in facts.items() if value]
        lines = [f"{self.plugin} breaks a rule of {self.contract}", *shown]
        if self.scenario:
            lines += ["the smallest scenario found, to be pasted into a test:", ""]
            lines.append(textwrap.indent(self.scenario, "    "))
        return "\n".join(lines)


def _hung(text: str, width: int) -> str:
    return textwrap.indent(text, " " * width).strip()


class ContractError(AssertionError):
    """Fail a test of a contract; `broken` has the facts."""

    def __init__(self, broken: Broken) -> None:
        self.broken = broken
        super().__init__(str(broken))


# ------------------------------------------------------------------------------ scenarios as tables
_RENAMED = {
    "id": "job",
    "partitions": "partition",
    "submit_at": "submit",
    "begin_at": "begin",
    "memory_mb_per_node": "memory_mb",
}
"""Fields of `JobSpec` that a table calls otherwise."""
_FIRST = ("job", "user", "qos", "partition", "submit", "nodes", "min_nodes", "cpus", "run_time")


def source_of(scenario: Scenario) -> str:
    """Write the call of `replay_table` that plays `scenario`."""
    parts = [_jobs(scenario.specs), *_machine(scenario.machine, scenario.settings)]
    parts.append(f"config={_settings(scenario.machine, scenario.settings)},")
    if scenario.commands.strip():
        lines = "\n".join(line.strip() for line in scenario.commands.splitlines())
        parts.append(f'commands="""\n{textwrap.indent(lines, "    ")}\n""",')
    if scenario.until is not None:
        parts.append(f"until={scenario.until!r},")
    body = textwrap.indent("\n".join(parts), "    ")
    return f"run = replay_table(\n{body}\n)"


def _jobs(specs: Sequence[JobSpec]) -> str:
    text = table_of(specs)
    if text is None:
        shown = "".join(f"    {_spec(spec)},\n" for spec in specs)
        return f"[\n{shown}],"
    return f'"""\n{text}\n""",'


def table_of(specs: Sequence[JobSpec]) -> str | None:
    """Write jobs as a table for `makeway_testing.builders.jobs`; None: they ask for what no table can say."""
    rows = [_row(spec) for spec in specs]
    used = {key for row in rows for key in row}
    keys = [*(key for key in _FIRST if key in used), *sorted(used.difference(_FIRST))]
    cells = [keys, *([row.get(key, "-") for key in keys] for row in rows)]
    if any(not cell or " " in cell for line in cells for cell in line):
        return None
    text = "\n".join(columns(cells))
    return text if _says(text, specs) else None


def _says(text: str, specs: Sequence[JobSpec]) -> bool:
    """Whether the table gives back the same jobs."""
    try:
        read = builders.jobs(text)
    except (MakewayError, ValueError):
        return False
    bare = [attrs.evolve(spec, source="") for spec in specs]
    return [attrs.evolve(spec, source="") for spec in read] == bare


def _row(spec: JobSpec) -> dict[str, str]:
    row: dict[str, str] = {}
    for field in attrs.fields(JobSpec):
        value = getattr(spec, field.name)
        shown = field.name in ("id", "submit_at", "min_nodes") or value != field.default
        if shown and field.name not in ("source", "wall_submit"):
            row[_RENAMED.get(field.name, field.name)] = _cell(value)
    if spec.max_nodes == spec.min_nodes:
        row["nodes"] = row.pop("min_nodes")
        del row["max_nodes"]
    return row


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(getattr(value, "value", value))


def _spec(spec: JobSpec) -> str:
    fields = attrs.asdict(spec, recurse=False, filter=lambda field, value: value != field.default)
    return f"JobSpec({', '.join(f'{key}={value!r}' for key, value in fields.items())})"


def _machine(machine: Machine, settings: Mapping[str, Any] | Config) -> list[str]:
    if isinstance(settings, Config):
        return []
    nodes = ", ".join(f"node({_keys(unstructure(table))})" for table in machine)
    return [f"cluster=cluster([{nodes}]),"]


def _keys(table: Mapping[str, Any]) -> str:
    name, rest = repr(table["name"]), {key: value for key, value in table.items() if key != "name"}
    return ", ".join([name, *(f"{key}={value!r}" for key, value in rest.items())])


def _settings(machine: Machine, settings: Mapping[str, Any] | Config) -> str:
    if isinstance(settings, Config):
        text = tomli_w.dumps(unstructure(settings))
        return f'parse_toml("""\n{text}""", "test")'
    return pprint.pformat(telling(machine, settings), width=96, sort_dicts=False)


def telling(machine: Machine, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `settings` without what goes without saying: keys that say what holds anyway."""
    whole = builders.config(machine, settings)
    kept = _copied(settings)
    for table, key in _places(kept):
        value = table.pop(key)
        if not _is(machine, kept, whole):
            table[key] = value
    return kept


def _copied(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in table.items()}


def _places(table: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every key with the table that it is in, innermost first."""
    for key in list(table):
        if isinstance(table[key], dict):
            yield from _places(table[key])
        yield table, key


def _is(machine: Machine, settings: Mapping[str, Any], whole: Config) -> bool:
    try:
        return builders.config(machine, settings) == whole
    except (MakewayError, ValueError, TypeError):
        return False
