"""Say what may be changed in makeway's own TOML, and write it into its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tomlkit
from tomlkit.items import AoT, Array

from makeway.config import Config
from makeway.foreign import Knob, knob

Path = tuple[str, ...]
_MODES: tuple[Any, ...] = (["requeue"], ["cancel"], ["suspend", "gang"])
_OFF: tuple[Any, ...] = (["off"], ["requeue"], ["cancel"])
_POLICY: tuple[tuple[Path, tuple[Any, ...]], ...] = (
    (("policy", "preempt_mode"), _MODES),
    (("policy", "preemption", "exempt_time"), (600, 1800, 3600, 14400)),
    (("policy", "preemption", "youngest_first"), (False, True)),
    (("policy", "preemption", "strict_order"), (False, True)),
    (("policy", "preemption", "reorder_count"), (1, 4, 16)),
)
_GRACE = (0, 60, 300, 900)
_MOST_TIERS = 4


def knobs(text: str, config: Config, file: str) -> Sequence[Knob]:
    """Return what may be changed.

    :param config: what the file says.
    """
    return [*_knobs(tomlkit.parse(text), config, file)]


def _knobs(document: Any, config: Config, file: str) -> Iterator[Knob]:
    for path, values in _POLICY:
        yield _knob(document, file, path, values)
    tiers = sorted({table.priority_tier for table in config.partition})
    for at, name in enumerate(_names(document, "partition")):
        table = next((each for each in config.partition if each.name == name), None)
        if table is None:
            continue
        within = ("partition", str(at))
        if table.priority_tier < tiers[-1]:
            yield _knob(document, file, (*within, "preempt_mode"), _OFF, f"partition.{name}.preempt_mode")
            yield _knob(document, file, (*within, "grace_time"), _GRACE, f"partition.{name}.grace_time")
        if 1 < len(tiers) <= _MOST_TIERS:
            now = table.priority_tier
            others = tuple(each for each in tiers if each != now)
            yield _knob(document, file, (*within, "priority_tier"), others, f"partition.{name}.priority_tier")
    for at, name in enumerate(_names(document, "qos")):
        within = ("qos", str(at))
        yield _knob(document, file, (*within, "preempt_mode"), _OFF, f"qos.{name}.preempt_mode")
        yield _knob(document, file, (*within, "grace_time"), _GRACE, f"qos.{name}.grace_time")


def _names(document: Any, table: str) -> list[str]:
    return [str(each.get("name", "")) for each in document.get(table, ())]


def _knob(document: Any, file: str, path: Path, values: Sequence[Any], name: str = "") -> Knob:
    now = _found(document, path)
    shown = "" if now is None else _shown(now)
    listed = [_shown(each) for each in values]
    return knob(name or ".".join(path), file, shown, listed, written, path="/".join(path))


def _shown(value: Any) -> str:
    """Return a value as TOML has it."""
    return str(tomlkit.item(value).as_string())


def _found(document: Any, path: Path) -> Any:
    found = document
    for key in path:
        found = found[int(key)] if isinstance(found, AoT | Array) else found.get(key)
        if found is None:
            return None
    return found.unwrap() if hasattr(found, "unwrap") else found


def written(text: str, value: str, path: str) -> str:
    """Return a file with a value in it; an empty one takes the key out. Comments and blanks stay."""
    document: Any = tomlkit.parse(text)
    table = document
    *tables, last = path.split("/")
    for key in tables:
        if isinstance(table, AoT | Array):
            table = table[int(key)]
            continue
        if key not in table:
            table[key] = tomlkit.table()
        table = table[key]
    if value:
        table[last] = tomlkit.value(value)
    else:
        table.pop(last, None)
    return str(tomlkit.dumps(document))
