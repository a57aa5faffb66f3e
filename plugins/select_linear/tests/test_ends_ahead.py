"""Count by hand how many of a hundred jobs, each on a node of its own, have to end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from makeway.levels import Levels
from makeway_select_linear.ends_ahead import EndsAhead

_ALL = (1 << 100) - 1


def _given(version: int, idle: int = 0) -> tuple[Any, Any]:
    """Return books and a view of jobs that end at 10, 20, ... on nodes 0, 1, ..., but for the first `idle` nodes."""
    running = Levels()
    running.add(_ALL & ~((1 << idle) - 1))
    jobs = [SimpleNamespace(nodes=1 << at) for at in range(idle, 100)]
    releases = [(10.0 * (at + 1), at, job) for at, job in enumerate(jobs, idle)]
    books = SimpleNamespace(version=version, running=running, counts_job=lambda job: job is not jobs[-1])
    return books, SimpleNamespace(releases=lambda: releases)


def _at(now: float) -> Any:
    """Return a view at an instant, with all rules in force."""
    return SimpleNamespace(now=now, rule=lambda name: True)


@pytest.mark.parametrize("order", [(1, 47, 48, 49, 96, 97, 99), (99, 97, 96, 49, 48, 47, 1)])
def test_as_many_end_as_nodes_are_wanted(order: tuple[int, ...]) -> None:
    """However many ends were looked at before; the last job does not count, so its node stays busy."""
    ahead = EndsAhead().of(*_given(1))
    for wanted in order:
        assert ahead.jobs_to_end(_ALL, wanted) == wanted
        assert ahead.idle[wanted] & _ALL == (1 << wanted) - 1
        assert ahead.when(wanted, _at(5.0)) == 10.0 * wanted
    assert ahead.jobs_to_end(_ALL, 100) is None
    assert ahead.jobs_to_end(_ALL & ~0xFF, 1) == 9


def test_what_was_looked_at_is_forgotten_when_jobs_leave() -> None:
    """Sixty nodes are idle then, and the end of another ten is waited for."""
    ahead = EndsAhead().of(*_given(1))
    assert ahead.jobs_to_end(_ALL, 70) == 70
    ahead.of(*_given(2, idle=60))
    assert ahead.jobs_to_end(_ALL, 60) == 0
    assert ahead.jobs_to_end(_ALL, 70) == 10
    assert ahead.when(10, _at(5.0)) == 700.0
    assert ahead.when(10, _at(700.0)) == 701.0, "a job whose time is over leaves a second from now"
