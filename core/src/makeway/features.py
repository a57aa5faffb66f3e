"""Understand feature expressions: which nodes have what a job asks for (slurm-gang-and-select 4.1.3 no. 3, 4).

``a&b`` (also ``a,b``): nodes with both. ``a|b``: nodes with either, no preference. ``[a|b]``: one alternative for
all nodes, tried in the order written. ``a*2&b*1``: so many nodes with each.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Cluster

_TOKEN = re.compile(r"\s*([&|,()\[\]]|[A-Za-z0-9_.:=-]+(?:\*[0-9]{1,7})?)")


@attrs.frozen
class Alternatives:
    """One alternative: the nodes that have the features, and how many of which are wanted."""

    nodes: NodeBits
    counts: tuple[tuple[NodeBits, int], ...] = ()

    def among(self, nodes: NodeBits) -> NodeBits:
        """Return those of `nodes` that the job may use: all of them where it counts what has a feature."""
        return nodes if self.counts else nodes & self.nodes


def alternatives(expression: str, cluster: Cluster) -> Sequence[Alternatives]:
    """Return the alternatives of `expression`, first choice first; one with all nodes if it is empty.

    :raises ValueError: if the expression cannot be read.
    """
    if not expression:
        return _everything(len(cluster.nodes))
    return _parse(expression, cluster)


def unknown_features(expression: str, cluster: Cluster) -> Sequence[str]:
    """Return the features that `expression` names and no node has."""
    known = frozenset[str]().union(*(node.features for node in cluster.nodes))
    names = (token.partition("*")[0] for token in _tokens(expression) if token not in "&|,()[]")
    return [name for name in dict.fromkeys(names) if name not in known]


@functools.lru_cache(maxsize=1024)
def unreadable(expression: str) -> str:
    """Say why an expression cannot be read; empty: it can."""
    try:
        alternatives(expression, _NOWHERE)
    except ValueError as error:
        return str(error)
    return ""


_NOWHERE = Cluster()


@functools.lru_cache(maxsize=8)
def _everything(size: int) -> Sequence[Alternatives]:
    return (Alternatives(bitmap.full(size)),)


@functools.lru_cache(maxsize=1024)
def _with_feature(name: str, features: tuple[frozenset[str], ...]) -> NodeBits:
    return bitmap.of([index for index, has in enumerate(features) if name in has])


def _parse(expression: str, cluster: Cluster) -> Sequence[Alternatives]:
    tokens = _tokens(expression)
    if tokens[:1] == ["["] and tokens[-1:] == ["]"] and "[" not in tokens[1:]:
        choices = _split(tokens[1:-1], "|")
        if len(choices) > 1:
            return tuple(_Reader(choice, cluster, expression).read() for choice in choices)
        tokens = tokens[1:-1]
    return (_Reader(tokens, cluster, expression).read(),)


def _tokens(expression: str) -> list[str]:
    tokens, at = [], 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            if not expression[at:].strip():
                break
            rest = _short(expression[at:])
            raise ValueError(f"cannot read the features {_short(expression)!r} at {rest!r}")
        tokens.append(match.group(1))
        at = match.end()
    return tokens


def _short(text: str) -> str:
    """Return as much of an expression as a message shows."""
    return text if len(text) <= 60 else f"{text[:57]}..."


def _split(tokens: Sequence[str], mark: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


class _Reader:
    """Reads a plain expression, alternatives of conjunctions, in one pass: brackets cost no depth of calls."""

    def __init__(self, tokens: Sequence[str], cluster: Cluster, expression: str) -> None:
        self._tokens = iter(tokens)
        self._expression = _short(expression)
        self._counts: list[tuple[NodeBits, int]] = []
        self._features = tuple(node.features for node in cluster.nodes)

    def read(self) -> Alternatives:
        outer: list[_Part] = []
        part = _Part()
        while True:
            token = next(self._tokens, None)
            if token in ("(", "["):
                outer.append(part)
                part = _Part()
                continue
            part.take(self._nodes(token), counted=bool(self._counts))
            mark = next(self._tokens, None)
            while outer and mark in (")", "]"):
                closed, part = part, outer.pop()
                part.take(closed.nodes, counted=bool(self._counts))
                mark = next(self._tokens, None)
            if mark == "|":
                part.turn()
            elif mark is None or mark not in "&,":
                if outer:
                    raise ValueError(f"the features {self._expression!r} lack a closing bracket")
                if mark is not None:
                    raise ValueError(f"cannot read the features {self._expression!r} at {mark[:60]!r}")
                return Alternatives(part.nodes, tuple(self._counts))

    def _nodes(self, token: str | None) -> NodeBits:
        """Return the nodes with one feature, and take note of how many of them are wanted."""
        if token is None:
            raise ValueError(f"the features {self._expression!r} end too early")
        name, _, count = token.partition("*")
        if not re.fullmatch(r"[A-Za-z0-9_.:=-]+", name):
            raise ValueError(f"cannot read the features {self._expression!r} at {token[:60]!r}")
        nodes = _with_feature(name, self._features)
        if count:
            self._counts.append((nodes, int(count)))
        return nodes


class _Part:
    """What stands within one pair of brackets, as far as it has been read."""

    def __init__(self) -> None:
        self._either: NodeBits = 0
        self._both: NodeBits | None = None
        """The conjunction that is being read; None: it has no feature yet."""
        self._counted = False

    def take(self, nodes: NodeBits, *, counted: bool) -> None:
        """Go on with a conjunction, or begin one; where nodes are counted, each feature brings its own."""
        if self._both is None:
            self._both, self._counted = nodes, counted
        else:
            self._both = self._both | nodes if self._counted else self._both & nodes

    def turn(self) -> None:
        """Begin the next alternative."""
        self._either, self._both = self.nodes, None

    @property
    def nodes(self) -> NodeBits:
        """The nodes that the job may use."""
        return self._either | (self._both or 0)
