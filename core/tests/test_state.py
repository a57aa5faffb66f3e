"""States of a run: read, written, refused, and what follows from what a file leaves out."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest

from makeway.bitmap import CoreBits
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.errors import ConfigError
from makeway.model import JobSpec, JobState, PreemptMode, SuspendedBy
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.state import (
    Grace,
    Held,
    Standing,
    State,
    allocation_of,
    cores_from_text,
    cores_to_text,
    held_of,
    read_state,
    write_state,
)
from makeway.worlds.events import Adopted, Finished, Start
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine

DOCS = Path(__file__).parents[2] / "docs"
CONFIG = Config(
    node=(NodeTable(name="n[1-4]", cpus=4, sockets=1, cores_per_socket=4, memory_mb=1000),),
    partition=(PartitionTable(name="low", default=True), PartitionTable(name="high", priority_tier=2)),
    policy=PolicyTable(preempt="preempt/partition_prio", preempt_mode=("requeue",)),
    scheduler=SchedulerTable(type="easy"),
)


def engine(config: Config = CONFIG) -> Engine:
    """Return an engine without jobs."""
    return Engine(config, Recorder(build_cluster(config)), Policies(config))


def running(id: str, nodes: str = "n1", **more: Any) -> Standing:
    """Return a job that has run for 100 s."""
    spec = JobSpec(id=id, submit_at=-200.0, time_limit=more.pop("time_limit", 300.0))
    return Standing(
        spec=spec, state=JobState.RUNNING, started_at=-100.0, allocation=Held(nodes=nodes), **more
    )


# ------------------------------------------------------------------------------------- values
@pytest.mark.parametrize(("text", "cores"), [("0-3,6", 0b1001111), ("2", 0b100), ("", 0), ("0,2", 0b101)])
def test_cores_are_written_as_people_do(text: str, cores: CoreBits) -> None:
    """To and fro."""
    assert cores_from_text(text) == cores
    assert cores_to_text(cores) == text


@pytest.mark.parametrize("text", ["a", "3-1", "1-", "-1", "0-9999999"])
def test_odd_cores_are_refused(text: str) -> None:
    """With what is allowed."""
    with pytest.raises(ValueError, match="allowed: such as"):
        cores_from_text(text)


def test_a_list_of_one_stands_for_all_nodes() -> None:
    """And is written so."""
    cluster = build_cluster(CONFIG)
    held = Held(nodes="n[1-3]", cpus=(2,), cores=("0-1",), memory_mb=(10, 20, 30))
    found = allocation_of(cluster, held)
    assert (found.cpus, found.cores, found.memory_mb) == ((2, 2, 2), (3, 3, 3), (10, 20, 30))
    assert held_of(cluster, found) == held


# --------------------------------------------------------------------------------- good files
def test_what_a_file_leaves_out_follows_from_the_rest() -> None:
    """A job on nodes since an instant is enough: 100 of its 300 s are over."""
    adopted = engine()
    state = State(jobs=(running("1"), Standing(spec=JobSpec(id="2", submit_at=-50.0, min_nodes=4))))
    assert adopted.adopt(state) == []
    one, two = adopted.ledger.jobs["1"], adopted.ledger.jobs["2"]
    assert (one.end_at, one.ran_until(0.0), one.starts, one.partition.name) == (200.0, 100.0, 1, "low")
    assert (two.state, two.submit_at, two.eligible_at, two.priority) == (
        JobState.PENDING,
        -50.0,
        -50.0,
        one.priority - 1,
    )
    assert adopted.ledger.idle == 0b1110


def test_a_suspended_job_keeps_what_is_left_of_its_limit() -> None:
    """It ran from -100 to -40; 240 s are left when it goes on."""
    gang = attrs.evolve(CONFIG, policy=attrs.evolve(CONFIG.policy, preempt_mode=("suspend", "gang")))
    adopted = engine(gang)
    job = attrs.evolve(running("1"), state=JobState.SUSPENDED, suspended_at=-40.0)
    adopted.adopt(State(jobs=(job,)))
    found = adopted.ledger.jobs["1"]
    assert (found.ran, found.suspended_by) == (60.0, SuspendedBy.POLICY)
    adopted.transitions.resume(found)
    assert found.end_at == 240.0


def test_a_job_in_its_grace_time_goes_on_in_it() -> None:
    """It is requeued when the grace time is over, by the plan that it was told."""
    adopted = engine()
    grace = Grace(mode=PreemptMode.REQUEUE, grace_time=30.0)
    adopted.adopt(State(jobs=(running("1", preempt_at=-10.0, end_at=20.0, grace=grace),)))
    assert adopted.next_wake == 20.0
    actions = adopted.step(20.0, [])
    assert [(type(action).__name__, action.job.id) for action in actions] == [("Kill", "1")]
    assert adopted.ledger.jobs["1"].state is JobState.COMPLETING


def test_the_first_step_makes_a_pass() -> None:
    """What waits and has room starts."""
    adopted = engine()
    adopted.adopt(State(at=10.0, jobs=(running("1"), Standing(spec=JobSpec(id="2")))))
    assert [type(each) for each in adopted.step(10.0, [])] == [Start]


def test_events_take_single_jobs_in() -> None:
    """A job that turns up on a node counts from then on; once more it is no news."""
    made = engine()
    made.step(0.0, [])
    made.step(5.0, [Adopted(running("1", "n[1-4]")), Adopted(Standing(spec=JobSpec(id="2")))])
    assert [job.id for job in made.ledger.active] == ["1"]
    assert made.ledger.jobs["2"].state is JobState.PENDING
    made.step(6.0, [Adopted(running("1"))])
    assert made.reports.unheeded == {"Adopted: the job is known": 1}
    started = made.step(7.0, [Finished("1", JobState.COMPLETED, cleaned=True)])
    assert [action.job.id for action in started] == ["2"]


def test_the_record_tells_of_jobs_that_were_there_before() -> None:
    """With where and since when; their waits count from their submission."""
    lines: list[Any] = []
    adopted = Engine(CONFIG, Recorder(build_cluster(CONFIG), lines.append), Policies(CONFIG))
    adopted.adopt(State(jobs=(running("1"), Standing(spec=JobSpec(id="2", submit_at=-50.0)))))
    adopted.step(10.0, [])
    kinds = [(line.kind, line.job) for line in lines]
    assert kinds[:2] == [("adopted", "1"), ("adopted", "2")]
    assert lines[0].data["nodes"] == "n1"
    waits = [wait for each in adopted.recorder.metrics.waits_in.values() for wait in each]
    assert waits == [60.0]


# ---------------------------------------------------------------------------------- bad files
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("{", "not valid JSON", id="no JSON"),
        pytest.param("[]", "no state of makeway", id="a list"),
        pytest.param('{"jobs": []}', "no state of makeway", id="no version"),
        pytest.param('{"makeway_state": 2}', "got 2; allowed: 1", id="a later version"),
        pytest.param('{"makeway_state": true}', "got True; allowed: 1", id="no number"),
        pytest.param('{"makeway_state": 1, "job": []}', "unknown key; did you mean 'jobs'", id="a slip"),
        pytest.param('{"makeway_state": 1, "at": NaN}', "NaN is no number", id="NaN"),
        pytest.param(
            '{"makeway_state": 1, "jobs": [{"spec": {"id": "1"}, "state": "RUNING"}]}',
            "jobs[0].state: got 'RUNING'; allowed: .*did you mean 'RUNNING'",
            id="a state that there is not",
        ),
        pytest.param(
            '{"makeway_state": 1, "jobs": [{"spec": {"id": "1"}, "state": "RUNNING"}]}',
            "jobs[0].allocation: missing; a job that is RUNNING holds nodes",
            id="runs nowhere",
        ),
        pytest.param(
            '{"makeway_state": 1, "jobs": [{"spec": {"id": "1"}, "allocation": {"nodes": "n1"}}]}',
            "jobs[0].allocation: there is one; a job that is PENDING holds no nodes",
            id="waits on nodes",
        ),
        pytest.param(
            '{"makeway_state": 1, "jobs": [{"spec": {"id": "1"}}, {"spec": {"id": "1"}}]}',
            "jobs[1].spec.id: job '1' was there before",
            id="twice",
        ),
        pytest.param(
            '{"makeway_state": 1, "jobs": [{"spec": {"id": "1"}, "state": "COMPLETED"}]}',
            "jobs that have ended are left out",
            id="has ended",
        ),
    ],
)
def test_a_bad_file_is_refused_with_the_place(text: str, problem: str) -> None:
    """What was given, what is allowed, and the nearest match."""
    with pytest.raises(ConfigError, match=problem.replace("[", r"\[").replace("]", r"\]")) as caught:
        read_state(text, "STATE.json")
    assert str(caught.value).startswith("STATE.json: ")


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        pytest.param(
            Standing(spec=JobSpec(id="1"), partition="hi"),
            "jobs[0].partition: job 1: no partition named 'hi'; allowed: high, low; did you mean 'high'?",
            id="partition",
        ),
        pytest.param(running("1", "n9"), "jobs[0].allocation: job 1: no node named 'n9'", id="node"),
        pytest.param(
            attrs.evolve(running("1"), allocation=Held(nodes="n1", cores=("0-7",))),
            "jobs[0].allocation: job 1: cores 0-7 on n1, which has 0-3",
            id="cores",
        ),
        pytest.param(
            attrs.evolve(running("1"), allocation=Held(nodes="n[1-3]", cpus=(1, 2))),
            "jobs[0].allocation: job 1: 2 values of cpus for 3 nodes; allowed: 1 or 3",
            id="lengths",
        ),
        pytest.param(
            attrs.evolve(running("1"), state=JobState.SUSPENDED),
            "policy.gang: job 1 was suspended by a policy, and nothing here would let it go on",
            id="nothing resumes",
        ),
    ],
)
def test_what_does_not_fit_the_cluster_is_refused(job: Standing, problem: str) -> None:
    """With the job and the nearest match."""
    with pytest.raises(ConfigError) as caught:
        engine().adopt(State(jobs=(job,)), "STATE.json")
    assert problem in str(caught.value)


def test_memory_that_somebody_has_changed_is_refused() -> None:
    """With the way out: jobs alone are enough."""
    specs = (JobSpec(id="1", run_time=50.0), JobSpec(id="2", run_time=50.0, min_nodes=4))
    state = replay(CONFIG, specs, (), Options(until=10.0)).engine.save()
    memory = json.loads(json.dumps(state.memory))
    del memory["engine"]["queue"]["entries"]
    with pytest.raises(ConfigError, match=r"memory.engine: it cannot be read .*leave it out"):
        engine().adopt(attrs.evolve(state, memory=memory), "STATE.json")
    assert engine().adopt(attrs.evolve(state, memory={})) == []


def test_only_a_new_engine_adopts() -> None:
    """One with jobs of its own would mix them up."""
    old = engine()
    old.adopt(State(jobs=(running("1"),)))
    with pytest.raises(ConfigError, match="only an engine without jobs"):
        old.adopt(State())


# ------------------------------------------------------------------------------------- schema
def test_the_schema_is_current() -> None:
    """docs/state.schema.json is what the classes say; run docs/generate_state.py if this fails."""
    found = importlib.util.spec_from_file_location("generate_state", DOCS / "generate_state.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert (DOCS / "state.schema.json").read_text() == module.render()


def test_states_are_as_the_schema_says() -> None:
    """One of a run under way, with all that it hands over."""
    schema = json.loads((DOCS / "state.schema.json").read_text())
    specs = (JobSpec(id="1", run_time=50.0, gres={"gpu": 1}), JobSpec(id="2", run_time=50.0, min_nodes=4))
    text = write_state(replay(CONFIG, specs, (), Options(until=10.0)).engine.save())
    jsonschema.validate(json.loads(text), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"makeway_state": 1, "jobs": [{}]}, schema)
