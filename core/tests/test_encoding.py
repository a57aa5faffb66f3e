"""Events written down for a journal are read back as they were."""

from __future__ import annotations

import json

import pytest

from makeway.config import build_cluster, parse_toml
from makeway.model import JobSpec, JobState
from makeway.worlds import events as kinds
from makeway.worlds.encoding import event_of_plain, event_to_plain
from makeway.worlds.events import Event

CLUSTER = build_cluster(
    parse_toml(
        'node = [{ name = "n[1-2]", cpus = 4 }]\npartition = [{ name = "low", default = true }]\n', "test"
    )
)
EVENTS: tuple[Event, ...] = (
    kinds.Submitted(JobSpec(id="1", user="ann")),
    kinds.Started("1", 2, 3.0, "it has a GPU"),
    kinds.Finished("1", JobState.FAILED, False, 2),
    kinds.Cleaned("1", None, 2),
    kinds.Failed(7, "gone", True, 3),
    kinds.Performed(7),
    kinds.Noticed("1", JobState.SUSPENDED, 2, "ann"),
    kinds.Obstructed("1", "it has a terminal", 2),
    kinds.Command("hold", "1"),
    kinds.NodesDown(1),
    kinds.NodesDrained(2),
    kinds.NodesUp(3),
    kinds.Reused("7", "Slurm"),
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_read_back(event: Event) -> None:
    plain = json.loads(json.dumps(event_to_plain(event, CLUSTER)))
    assert event_of_plain(plain, CLUSTER) == event
