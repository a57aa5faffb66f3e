"""Understand feature expressions: which nodes have what a job asks for (spec slurm-gang-and-select 4.1.3 no. 3, 4).

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

_TOKEN = re.compile(r"\s*([&|,()\[\]]|[A-Za-z0-9_.:=-]+(?:\*\d+)?)")


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
    names = (re.sub(r"\*\d+$", "", token) for token in _tokens(expression) if token not in "&|,()[]")
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
            raise ValueError(f"cannot read the features {expression!r} at {expression[at:]!r}")
        tokens.append(match.group(1))
        at = match.end()
    return tokens


def _split(tokens: Sequence[str], mark: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


class _Reader:
    """Reads a plain expression by descent: alternatives of conjunctions."""

    def __init__(self, tokens: Sequence[str], cluster: Cluster, expression: str) -> None:
        self._tokens = list(tokens)
        self._cluster = cluster
        self._expression = expression
        self._counts: list[tuple[NodeBits, int]] = []
        self._features = tuple(node.features for node in cluster.nodes)

    def read(self) -> Alternatives:
        nodes = self._either()
        if self._tokens:
            raise ValueError(f"cannot read the features {self._expression!r} at {self._tokens[0]!r}")
        return Alternatives(nodes, tuple(self._counts))

    def _either(self) -> NodeBits:
        nodes = self._both()
        while self._tokens[:1] == ["|"]:
            self._tokens.pop(0)
            nodes |= self._both()
        return nodes

    def _both(self) -> NodeBits:
        nodes = self._one()
        counted = bool(self._counts)
        while self._tokens[:1] in (["&"], [","]):
            self._tokens.pop(0)
            more = self._one()
            nodes = nodes | more if counted else nodes & more
        return nodes

    def _one(self) -> NodeBits:
        if not self._tokens:
            raise ValueError(f"the features {self._expression!r} end too early")
        token = self._tokens.pop(0)
        if token in ("(", "["):
            nodes = self._either()
            if not self._tokens or self._tokens.pop(0) not in (")", "]"):
                raise ValueError(f"the features {self._expression!r} lack a closing bracket")
            return nodes
        name, _, count = token.partition("*")
        if not re.fullmatch(r"[A-Za-z0-9_.:=-]+", name):
            raise ValueError(f"cannot read the features {self._expression!r} at {token!r}")
        nodes = _with_feature(name, self._features)
        if count:
            self._counts.append((nodes, int(count)))
        return nodes
