"""Replay a scenario of the oracle, with the clocks that it was recorded under."""

from __future__ import annotations

from typing import Any

from makeway import bitmap
from makeway.config import build_cluster
from makeway.model import Cluster, Seconds
from makeway.worlds.events import Event, NodesDrained
from makeway_app.replay import Options, replay
from makeway_slurm.recordings.scenario import Scenario


def play(scenario: Scenario) -> dict[str, Any]:
    """Return the record of a replay of `scenario`, in the design's shape."""
    cluster = build_cluster(scenario.config)
    run = replay(
        scenario.config,
        scenario.jobs,
        _events(scenario, cluster),
        Options(until=scenario.duration),
        cluster,
    )
    record = run.summary()
    for job_id, _, _ in run.recorder.unrunnable:
        del record["jobs"][job_id]  # Slurm refuses such a job at its submission
    return record


def _events(scenario: Scenario, cluster: Cluster) -> list[tuple[Seconds, Event]]:
    events: list[tuple[Seconds, Event]] = []
    for action in scenario.actions:
        events += [(action.at, command) for command in action.commands]
        if action.drained:
            drained = [node.index for node in cluster.nodes if node.name in action.drained]
            events.append((action.at, NodesDrained(bitmap.of(drained))))
    return events
