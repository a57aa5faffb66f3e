"""Take YAML apart into tables that know on which line each of their keys stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from makeway.bounds import measure
from makeway.errors import ConfigError, Problem


class Table(dict[str, Any]):
    """A mapping with the line of each key."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}

    def line_of(self, key: str) -> int:
        """Return the line of a key; of one that is missing, that of the table."""
        return self.lines.get(key, self.line)


def documents(text: str, source: str, first_line: int = 0) -> Iterator[Table]:
    """Yield the documents that are tables, those of a ``kind: List`` one by one.

    :param first_line: what is added to line numbers, for text that stands within another file.
    :raises ConfigError: the text is no YAML.
    """
    try:
        nodes: list[yaml.Node | None] = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{source}:{mark.line + 1 + first_line}" if mark is not None else source
        reason = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise ConfigError(source, [Problem(where, f"not valid YAML: {reason}")]) from None
    for node in nodes:
        if node is None or (node.tag == "tag:yaml.org,2002:null" and not node.value):
            continue  # nothing, or comments alone
        measure(node, source, _inside, f"{source}:{node.start_mark.line + 1 + first_line}")
        found = _plain(node, first_line, source)
        if not isinstance(found, Table):
            place = f"{source}:{node.start_mark.line + 1 + first_line}"
            raise ConfigError(source, [Problem(place, "the document is no table")])
        yield from _unpacked(found)


def _unpacked(table: Table) -> Iterator[Table]:
    items = table.get("items")
    if str(table.get("kind", "")).endswith("List") and isinstance(items, list):
        for each in items:
            if isinstance(each, Table):
                yield from _unpacked(each)
        return
    yield table


_SCALARS = yaml.SafeLoader("")


def _inside(node: yaml.Node) -> list[yaml.Node]:
    """Return what a node is made of."""
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _plain(node: yaml.Node, more: int, source: str) -> Any:
    """Return plain values."""
    line = node.start_mark.line + 1 + more
    if isinstance(node, yaml.MappingNode):
        table = Table(line)
        for key, value in node.value:
            name = str(getattr(key, "value", ""))
            if name in table:
                place = f"{source}:{key.start_mark.line + 1 + more}"
                raise ConfigError(source, [Problem(place, f"{name} is there twice")])
            table[name] = _plain(value, more, source)
            table.lines[name] = key.start_mark.line + 1 + more
        return table
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each, more, source) for each in node.value]
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    """Return text as it is written, where it stands for no number, truth value or nothing."""
    if node.tag in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:null"):
        return _SCALARS.construct_object(node)
    if node.tag == "tag:yaml.org,2002:int":
        try:
            return int(str(node.value).replace("_", ""), 0 if not str(node.value).startswith("0") else 10)
        except ValueError:
            return str(node.value)
    return str(node.value)
