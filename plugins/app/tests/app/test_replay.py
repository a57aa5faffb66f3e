"""`makeway_app.replay.replay`, called from Python."""

from __future__ import annotations

from makeway.config import Config, NodeTable, PartitionTable
from makeway.model import JobSpec
from makeway.worlds.events import Command
from makeway_app.replay import replay

CONFIG = Config(
    node=(NodeTable(name="n1"),),
    partition=(PartitionTable(name="all", default=True),),
    action=({"at": 10, "command": "suspend", "job": 1}, {"at": 15, "command": "resume", "job": 1}),
)
JOBS = (JobSpec(id="1", run_time=20.0),)


def test_the_actions_of_a_configuration_are_carried_out() -> None:
    """Five seconds of being suspended put the end off by as much."""
    assert replay(CONFIG, JOBS).ended_at == 25.0


def test_given_commands_take_their_place() -> None:
    """Who hands over commands says all that is done."""
    assert replay(CONFIG, JOBS, ()).ended_at == 20.0
    assert replay(CONFIG, JOBS, [(7.0, Command("cancel", "1"))]).ended_at == 7.0
