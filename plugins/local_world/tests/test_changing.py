"""What a waiting job asks for is changed, under the very policy that the daemon makes for a machine with GPUs."""

from __future__ import annotations

from makeway.config import build_cluster
from makeway.model import JobSpec, JobState
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Command, Finished, Submitted
from makeway_engine.engine import Engine
from makeway_local_world import default


def test_memory_and_gpus_of_a_waiting_job() -> None:
    """It is given what it asks for now; what the machine does not have is refused, and nothing changes."""
    machine = default.Machine(name="x", cpus=4, memory_mb=8000, gpus=2)
    config = default.configuration(machine, world="world/simulated")
    engine = Engine(config, Recorder(build_cluster(config), lambda line: None), Policies(config))
    jobs = engine.ledger.jobs
    engine.step(0.0, [Submitted(JobSpec(id="b", tasks=4)), Submitted(JobSpec(id="a", tasks=1))])
    changes = ("gpus=2", "memory_mb=500", "name=other", "attribute=due:5")
    engine.step(1.0, [Command("change", "a", None, text) for text in changes])
    wrong = ("gpus=3", "gpus=-1", "memory_mb=1e3", "memory_mb=9999999", "attribute=due:5x")
    engine.step(2.0, [Command("change", "a", None, text) for text in wrong])
    refused = [why.partition(":")[0] for _, _, why in engine.recorder.refusals]
    assert refused == ["gpus", "gpus", "memory_mb", "memory_mb", "attribute"]
    spec = jobs["a"].spec
    assert (dict(spec.gres), spec.memory_mb_per_node, spec.name) == ({"gpu": 2}, 500, "other")
    assert spec.attributes["due"] == 5
    engine.step(3.0, [Finished("b", JobState.COMPLETED, cleaned=True, incarnation=1)])
    allocation = jobs["a"].allocation
    assert allocation is not None
    assert sum(allocation.gres["gpu"]) == 2
    engine.step(4.0, [Command("change", "a", None, "gpus=0")])
    assert engine.recorder.refusals[-1][2] == "the job is running, not pending"
