"""Expressions of features are read in one pass, however deep and long they are."""

from __future__ import annotations

import pytest

from makeway import bitmap
from makeway.config import build_cluster
from makeway.features import alternatives, unreadable
from makeway_testing import builders

CLUSTER = build_cluster(
    builders.config(
        (
            builders.node("n0", features=("a",)),
            builders.node("n1", features=("a", "b")),
            builders.node("n2", features=("c",)),
        ),
        {"partitions": {"p": {}}},
    )
)


@pytest.mark.parametrize(
    ("expression", "nodes"),
    [
        ("a", [0, 1]),
        ("a&b", [1]),
        ("a,b", [1]),
        ("b|c", [1, 2]),
        ("a&b|c", [1, 2]),
        ("a&(b|c)", [1]),
        ("(a|c)&(b|c)", [1, 2]),
        ("((((c))))", [2]),
    ],
)
def test_nodes(expression: str, nodes: list[int]) -> None:
    """By hand, as the documentation of `--constraint` reads: and binds closer than or."""
    (found,) = alternatives(expression, CLUSTER)
    assert list(bitmap.indices(found.nodes)) == nodes


def test_nodes_are_counted() -> None:
    (found,) = alternatives("a*2&c*1", CLUSTER)
    assert [(list(bitmap.indices(nodes)), count) for nodes, count in found.counts] == [([0, 1], 2), ([2], 1)]
    assert list(bitmap.indices(found.nodes)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        pytest.param("(" * 100_000, "end too early", id="opened only"),
        pytest.param("(" * 100_000 + "a", "lack a closing bracket", id="never closed"),
        pytest.param("a" + ")" * 100_000, "cannot read", id="closed only"),
        pytest.param("a" + "&a" * 100_000 + "!", "cannot read", id="a long conjunction"),
        pytest.param("a*" + "9" * 5_000, "cannot read", id="a number of 5,000 digits"),
        pytest.param(" " * 100_000 + "!", "cannot read", id="blanks"),
        pytest.param("a b", "cannot read", id="two words"),
        pytest.param("a&&b", "cannot read", id="two marks"),
        pytest.param("()", "cannot read", id="nothing in brackets"),
    ],
)
def test_what_cannot_be_read_is_said_in_short(expression: str, why: str) -> None:
    told = unreadable(expression)
    assert why in told
    assert len(told) < 300


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("(" * 100_000 + "a" + ")" * 100_000, id="deep"),
        pytest.param("a" + "|a" * 100_000, id="wide"),
        pytest.param("(a|" * 50_000 + "b" + ")" * 50_000, id="both"),
    ],
)
def test_depth_and_length_end_nothing(expression: str) -> None:
    """Depth costs no calls: such expressions ended the daemon by RecursionError."""
    (found,) = alternatives(expression, CLUSTER)
    assert found.nodes
