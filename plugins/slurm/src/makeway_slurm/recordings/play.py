"""Replay a scenario of the oracle, with the clocks that it was recorded under."""

from __future__ import annotations

from typing import Any

from makeway import bitmap
from makeway.config import build_cluster
from makeway.model import Allocation, Cluster, Seconds
from makeway.worlds.events import Event
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
    record = run.summary() | {"until": scenario.duration}
    for job_id, history in run.recorder.histories.items():
        for shown, (*_, allocation, _) in zip(
            record["jobs"][job_id]["intervals"], history.intervals, strict=False
        ):
            if allocation is not None and allocation.gres:
                shown["gres"] = _gres_of(allocation, cluster)
    for job_id, _, _ in run.recorder.unrunnable:
        del record["jobs"][job_id]  # Slurm refuses such a job at its submission
    return record


def _gres_of(allocation: Allocation, cluster: Cluster) -> dict[str, dict[str, int]]:
    """Return the counted resources that a job holds on each node; models count by their name."""
    return {
        cluster.nodes[index].name: {
            name: amounts[at] for name, amounts in allocation.gres.items() if ":" not in name and amounts[at]
        }
        for at, index in enumerate(allocation.node_indices)
    }


def _events(scenario: Scenario, cluster: Cluster) -> list[tuple[Seconds, Event]]:
    events: list[tuple[Seconds, Event]] = []
    for action in scenario.actions:
        events += [(action.at, command) for command in action.commands]
        if action.nodes:
            named = [node.index for node in cluster.nodes if node.name in action.nodes]
            events.append((action.at, action.become(bitmap.of(named))))
    return events
