"""Build small sites in which quota alone decides, and play a few jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from makeway_testing import TableRun, cluster, replay_table

NAME = "kueue/cohort"


def _quota(amount: float, flavor: str = "default", resource: str = "cpu", **limits: float) -> dict[str, Any]:
    """Return the quota of one flavor and resource."""
    return {"flavor": flavor, "resource": resource, "nominal": amount, **limits}


def _queue(name: str, *quotas: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a queue of the cohort ``all`` that reclaims from any other, and preempts lower priorities of its own."""
    policies = {"cohort": "all", "within_queue": "LowerPriority", "reclaim": "Any"}
    return {"name": name, "quotas": list(quotas), **policies, **more}


def _site(*queues: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    """Return a configuration in which quota alone decides; each queue has a partition."""
    return {
        "select": "kueue/quota",
        "preempt": NAME,
        "preempt_mode": "requeue",
        "scheduler": "greedy",
        "partitions": {each["name"]: {} for each in queues},
        "settings": {NAME: {"queue": list(queues), **settings}},
    }


def _play(jobs: str, config: Mapping[str, Any], **more: Any) -> TableRun:
    """Replay a table of jobs on eight nodes of 64 CPUs."""
    machine = cluster(8, cpus=64)
    return replay_table(jobs, cluster=machine, config=dict(config), **more)


@pytest.fixture
def quota() -> Callable[..., dict[str, Any]]:
    """Return what makes the quota of one flavor and resource."""
    return _quota


@pytest.fixture
def queue() -> Callable[..., dict[str, Any]]:
    """Return what makes a queue."""
    return _queue


@pytest.fixture
def site() -> Callable[..., dict[str, Any]]:
    """Return what makes a configuration of queues."""
    return _site


@pytest.fixture
def play() -> Callable[..., TableRun]:
    """Return what replays jobs."""
    return _play
