"""Take the YAML files beside a slurm.conf apart into tables that know on which line each of their keys stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from makeway.bounds import measure
from makeway.errors import ConfigError, Problem, nearest
from makeway.readers.lines import read_text
from makeway_slurm.readers.conf_parts import Setting, shown

_YES = frozenset(("true", "yes", "on", "y"))


class Table(dict[str, Any]):
    """A mapping with the line of each key; values are tables, lists, or text as it is written."""

    def __init__(self, file: str, line: int) -> None:
        """Begin with nothing.

        :param file: name for messages.
        """
        super().__init__()
        self.file, self.line = file, line
        self.lines: dict[str, int] = {}

    def setting(self, key: str) -> Setting:
        """Return a key with its value as a setting that messages can name; one that is missing stands at the table."""
        value = self.get(key, "")
        text = value if isinstance(value, str) else ""
        return Setting(key=key, value=text, file=self.file, line=self.lines.get(key, self.line))

    def text(self, key: str) -> str:
        """Return a value as text; a list of them with commas between."""
        value = self.get(key)
        if isinstance(value, list):
            return ",".join(each for each in value if isinstance(each, str))
        return value if isinstance(value, str) else ""

    def is_on(self, key: str) -> bool:
        """Whether a value is true."""
        return self.text(key).lower() in _YES

    def tables(self, key: str) -> list[Table]:
        """Return the tables that a key holds; none: it holds something else."""
        value = self.get(key)
        listed = value if isinstance(value, list) else [value]
        return [each for each in listed if isinstance(each, Table)]

    def wrong(self, allowed: Sequence[str], needed: str = "") -> Iterator[Problem]:
        """Yield what is wrong with the keys.

        :param needed: the key that has to be there; empty: none has.
        """
        for key in self:
            if key not in allowed:
                text = f"no such key; allowed: {', '.join(allowed)}{nearest(key, allowed)}"
                yield self.setting(key).problem(text)
        if needed and not self.text(needed):
            yield Problem(f"{self.file}:{self.line}", f"{needed} is missing")


def read_tables(path: Path) -> list[Table]:
    """Return the tables of a file that is a list of them.

    :raises ConfigError: it cannot be read, or is something else.
    """
    source = path.name
    try:
        nodes = list(yaml.compose_all(read_text(path), Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{source}:{mark.line + 1}" if mark is not None else source
        reason = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise ConfigError(source, [Problem(where, f"not valid YAML: {reason}")]) from None
    found: list[Table] = []
    for node in nodes:
        if isinstance(node, yaml.ScalarNode) and not node.value:
            continue  # nothing, or comments alone
        line = f"{source}:{node.start_mark.line + 1}"
        measure(node, source, _inside, line)
        listed = _plain(node, source)
        if not isinstance(listed, list) or not all(isinstance(each, Table) for each in listed):
            got = "a table" if isinstance(listed, Table) else shown(str(listed))
            raise ConfigError(source, [Problem(line, f"got {got}; expected a list of tables, '- name: ...'")])
        found += listed
    return found


def _inside(node: yaml.Node) -> list[yaml.Node]:
    """Return what a node is made of."""
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _plain(node: yaml.Node, source: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        table = Table(source, node.start_mark.line + 1)
        for key, value in node.value:
            name, line = str(getattr(key, "value", "")), key.start_mark.line + 1
            if name in table:
                raise ConfigError(source, [Problem(f"{source}:{line} {name}", "it stands there twice")])
            table[name] = _plain(value, source)
            table.lines[name] = line
        return table
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each, source) for each in node.value]
    return str(node.value)
