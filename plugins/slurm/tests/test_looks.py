"""Clocks and delays of a recording, found in the controller's log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from makeway_slurm.recordings.priority.exits import cleaning_times, exit_times
from makeway_slurm.recordings.priority.looks import clocks_of, main_and_backfill
from makeway_slurm.recordings.priority.recording import Recording, Seen, Table
from makeway_slurm.recordings.priority.wall_clock import minute_phase


def events(what: str, *instants: float, job: str = "j") -> list[dict[str, Any]]:
    """Return one event at each instant."""
    return [{"t": at, "what": what, "job": job} for at in instants]


@pytest.mark.parametrize("lag", [0.0, 0.0006, 0.003, 0.006])
def test_each_scheduler_has_its_own_clock(lag: float) -> None:
    """Looks of the main scheduler at 0.6, of backfill at 0.2; both fall behind, and what victims let in is aside."""
    looks = (1, 4, 17, 60, 100, 140)
    main = [0.6 + look * (1.0 + lag) for look in looks]
    backfill = [0.2 + look for look in looks]
    told = [*events("started", *main, 30.97), *events("started_by_backfill", *backfill)]
    own, other = main_and_backfill(told)
    assert own.interval == pytest.approx(1.0 + lag, abs=1e-4)
    assert own.phase == pytest.approx(0.6, abs=0.01)
    assert other.interval == pytest.approx(1.0, abs=1e-4)
    assert other.phase == pytest.approx(0.2, abs=0.01)


def test_what_one_scheduler_did_tells_of_the_other() -> None:
    """Backfill, and the estimator of sched/builtin, wakes about 0.36 s before the main scheduler."""
    main, backfill = main_and_backfill(events("started", 0.5, 1.5, 40.5))
    assert [main.phase, backfill.phase] == pytest.approx([0.5, 0.14])
    main, backfill = main_and_backfill(events("started_by_backfill", 0.8, 40.8))
    assert [main.phase, backfill.phase] == pytest.approx([0.16, 0.8])


def test_one_act_is_reached_from_beside_the_other_clock() -> None:
    """Backfill at 0.6, so that the main scheduler began near 0.96; 60 looks later it stood at 61.19."""
    main, _ = main_and_backfill([*events("started_by_backfill", 0.6), *events("started", 61.19)])
    assert main.phase == pytest.approx(0.96, abs=0.01)
    assert main.interval == pytest.approx(1.0 + 0.23 / 60, abs=2e-4)


def recording(told: list[dict[str, Any]], *jobs: Mapping[str, Any]) -> Recording:
    """Return what was recorded of some jobs."""
    return Recording(
        slurm_version="22.05.8", scenario={"job": jobs}, observed_seconds=100.0, jobs={}, events=tuple(told)
    )


def test_jobs_end_when_they_were_charged() -> None:
    """That of bob ran 0.08 s longer than it slept, that of alice 0.02 s, whatever others are charged."""
    told = [
        *events("started", 1.0, job="of_bob"),
        *events("started_by_backfill", 1.0, job="of_alice"),
        {"t": 11.02, "what": "usage", "who": "a/alice/(null)"},
        {"t": 11.08, "what": "usage", "who": "a/bob/(null)"},
    ]
    jobs = [{"name": f"of_{user}", "user": user, "runtime": 10} for user in ("bob", "alice", "carol")]
    found, usual = exit_times(recording(told, *jobs))
    assert found == {"of_bob": pytest.approx(0.08, abs=0.003), "of_alice": pytest.approx(0.02, abs=0.003)}
    assert usual == pytest.approx(0.05, abs=0.003)
    assert exit_times(recording([], *jobs)) == ({}, 0.06)


def test_tasks_end_when_they_were_charged() -> None:
    """The log names the array only: the first to start is task 2, as its start says."""
    told = [
        *events("started", 1.0, 12.0, job="array[2]"),
        {"t": 11.02, "what": "usage", "who": "a/bob/(null)"},
        {"t": 22.08, "what": "usage", "who": "a/bob/(null)"},
    ]
    given = recording(told, {"name": "array", "user": "bob", "runtime": 10})
    began = {"array[1]": 12, "array[2]": 1}
    given = attrs.evolve(given, jobs={name: Seen(last={"StartTime": at}) for name, at in began.items()})
    found, _ = exit_times(given)
    assert found == {
        "array[2]": pytest.approx(0.02, abs=0.01),
        "array[1]": pytest.approx(0.08, abs=0.01),
    }


def test_clocks_and_ends_that_the_recording_tells() -> None:
    """Looks are 1.002 s apart; a task ran twice, and the last run counts; one that never ended has no end."""
    told = [
        {"t": 1.004, "what": "begun", "job": "array[2]"},
        {"t": 2.5, "what": "begun", "job": "long"},
        {"t": 11.064, "what": "ended", "job": "array[2]"},
        {"t": 20.0, "what": "begun", "job": "array[2]"},
        {"t": 30.03, "what": "ended", "job": "array[2]"},
    ]
    jobs = [{"name": "array", "runtime": 10}, {"name": "long", "runtime": 500}]
    given = attrs.evolve(recording(told, *jobs), looks={"main": (0.2, 50.3), "backfill": (3.7, 103.7)})
    ends, others = exit_times(given)
    assert ends == pytest.approx({"array[2]": 0.03})
    assert others == pytest.approx(0.03)
    main, backfill = clocks_of(given)
    assert [main.phase, main.interval] == pytest.approx([0.2, 1.002])
    assert [backfill.phase, backfill.interval] == pytest.approx([0.7, 1.0])


def on_node(what: str, at: float, job: str) -> dict[str, Any]:
    """Return an event of a job on the only node."""
    return {"t": at, "what": what, "job": job, "nodes": "n1"}


def test_a_job_has_left_its_nodes_where_another_starts_at_a_look() -> None:
    """Charged at 11.01, 0.02 s before its nodes are clean; but the look was at 11.0, and a job started."""
    told = [
        on_node("started", 1.0, "first"),
        {"t": 11.01, "what": "usage", "who": "a/bob/(null)"},
        on_node("started", 11.01, "next"),
    ]
    jobs = [{"name": name, "user": "bob", "runtime": 10} for name in ("first", "next")]
    found, _ = exit_times(recording(told, *jobs))
    (looked_at, _) = main_and_backfill(told)
    assert 1.0 + 10.0 + found["first"] + 0.02 < looked_at.last(11.01) == pytest.approx(11.006, abs=0.01)


def test_a_victim_has_no_end_of_its_own() -> None:
    """It was killed just before it would have ended: what started on its node says nothing about that end."""
    told = [
        on_node("started", 1.0, "victim"),
        {"t": 11.0, "what": "preempted", "job": "victim"},
        on_node("started", 11.0, "next"),
    ]
    jobs = [{"name": name, "user": "bob", "runtime": 10} for name in ("victim", "next")]
    assert "victim" not in exit_times(recording(told, *jobs))[0]


def test_victims_leave_before_a_job_starts_there() -> None:
    """Told to go at 5 and at 20: a job started 0.3 s later, and then none for long."""
    told = [*events("preempted", 5.0, 20.0, job="victim"), *events("started", 5.3, 22.0, job="other")]
    (first, second) = cleaning_times(recording(told))["victim"]
    assert first == pytest.approx(0.29)
    assert second is None


@pytest.mark.parametrize(
    ("stated", "row", "phase"),
    [
        pytest.param(17.0, {}, 17.0, id="it says so"),
        pytest.param(None, {}, 49.0, id="11:00:59 is second 10"),
        pytest.param(None, {"ST": "PD"}, 0.0, id="a start that is planned says nothing"),
        pytest.param(None, {"START_TIME": "N/A"}, 0.0, id="no start"),
    ],
)
def test_where_the_wall_clock_stood(stated: float | None, row: dict[str, str], phase: float) -> None:
    """As a recording says, or as squeue shows a start that is known in seconds."""
    shown = {"NAME": "j", "ST": "R", "START_TIME": "2026-11-22T11:00:59", **row}
    recording = Recording(
        slurm_version="22.05.8",
        scenario={},
        observed_seconds=20.0,
        jobs={"j": Seen(last={"StartTime": 10})},
        tables=(
            Table(at=12.0, what="sprio", taken=12.1),
            Table(at=15.0, what="squeue", taken=15.1, rows=(shown,)),
        ),
        minute_phase=stated,
    )
    assert minute_phase(recording) == phase
