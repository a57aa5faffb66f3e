"""Read what MetaCentrum's traces append to the columns of SWF: nodes used (19), queue (20) and request (21)."""

from __future__ import annotations

import re

import attrs

_PPN = re.compile(r"ppn=([0-9]{1,7})(.*)")


@attrs.frozen(kw_only=True)
class Request:
    """Column 21 of MetaCentrum's traces."""

    chunks: tuple[tuple[int, int], ...]
    """Nodes and processors of each; empty: not understood."""
    properties: tuple[str, ...]
    exclusive: bool


def is_metacentrum(columns: list[str]) -> bool:
    """Whether a line has MetaCentrum's columns."""
    return len(columns) >= 21 and columns[18].startswith("{")


def request_of(columns: list[str]) -> Request | None:
    """Return what column 21 asks for; None: the line has none."""
    if not is_metacentrum(columns):
        return None
    text, _, flags = columns[20].partition("#")
    chunks: list[tuple[int, int]] = []
    properties: list[str] = []
    for part in text.split("+"):
        nodes, processors, names = _chunk(part.split(":"))
        chunks.append((nodes, processors))
        properties.extend(name for name in names if name not in properties)
    return Request(chunks=tuple(chunks), properties=tuple(properties), exclusive="excl" in flags.split("#"))


def _chunk(words: list[str]) -> tuple[int, int, list[str]]:
    """Read ``nodes:ppn=N:property...``; a node's name may stand for the number 1."""
    nodes, processors = 1, 1
    names = words[1:]
    if words[0].isascii() and words[0].isdigit() and len(words[0]) <= 7:
        nodes = int(words[0])
    else:
        names = words
    properties = []
    for name in names:
        match = _PPN.fullmatch(name)
        if match is not None:
            processors = int(match[1])
            name = match[2]
        if name:
            properties.append(name)
    return nodes, processors, properties
