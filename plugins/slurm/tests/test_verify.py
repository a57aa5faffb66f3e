"""Verdicts: what agrees, what differs, and where."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from rich.console import Console

from makeway.errors import ConfigError, PolicyError
from makeway.hostlist import fold_hostlist
from makeway_slurm.recordings.play import play
from makeway_slurm.recordings.recording import (
    Phases,
    RecordedInterval,
    RecordedJob,
    Recording,
    parse_recording,
    read_recording,
)
from makeway_slurm.recordings.scenario import Scenario
from makeway_slurm.recordings.verify import SHORT, Play, compare, stories_of_recording, verify_one
from makeway_verify.verdicts import Aspect, Comparison, Outcome, Verdict, print_score, score

Run = Callable[..., Any]
SAMPLE = Path(__file__).parent / "data" / "oracle"
REPOSITORY = Path(__file__).parents[3]
ORACLE = Path(os.environ.get("MAKEWAY_ORACLE", REPOSITORY.parent / "shared" / "oracle"))

LIVE = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING")
Spans = list[tuple[str, float, float, str]]
needs_oracle = pytest.mark.skipif(
    not (ORACLE / "scenarios").is_dir(), reason=f"no oracle in {ORACLE}; see MAKEWAY_ORACLE"
)

LOW: Spans = [
    ("PENDING", 0.0, 0.25, ""),
    ("RUNNING", 0.25, 5.26, "n1"),
    ("COMPLETING", 5.26, 5.3, "n1"),
    ("PENDING", 5.3, 17.3, ""),
    ("RUNNING", 17.3, 27.2, "n1"),
    ("COMPLETED", 27.2, 28.0, "n1"),
]
"""A job that was requeued once."""


def recording(final: str = "COMPLETED", spans: Spans = LOW, **more: Any) -> Recording:
    """Return a recording of one job, low."""
    restart = 0
    intervals: list[dict[str, Any]] = []
    for state, start, end, nodes in spans:
        restart = 1 if state == "COMPLETING" else restart
        row = {"state": state, "start": start, "end": end, "restart": restart}
        intervals.append(row | {"nodes": nodes.split()})
    job = {"at": 0, "submitted": 0.0, "answered": 0.0, "job_id": 1, "intervals": intervals,
           "final_state": final, "restarts": restart}  # fmt: skip
    data = {"scenario": "s", "slurm_version": "22.05.8", "observed": 28.0, "jobs": {"low": job}}
    return parse_recording(data | more)


def record(spans: Spans, final: str = "COMPLETED", restarts: int = 1) -> dict[str, Any]:
    """Return a replay's record of one job, low; its id is 1."""
    intervals = [
        {"state": state, "start": start, "end": end, "nodes": nodes, "cpus": {}, "restart": at}
        for at, (state, start, end, nodes) in enumerate(spans)
    ]
    job = {"name": "low", "partition": "p", "submit": 0.0, "final_state": final,
           "restarts": restarts, "intervals": intervals}  # fmt: skip
    return {"jobs": {"1": job}, "preemptions": [], "metrics": {}}


def as_record(run: Recording) -> dict[str, Any]:
    """Return what a perfect replay of a recording would report; it stops when a job ends."""
    jobs = {str(job.job_id): _as_job(name, job) for name, job in run.jobs.items()}
    return {"jobs": jobs, "preemptions": [], "metrics": {}}


def _as_job(name: str, job: RecordedJob) -> dict[str, Any]:
    intervals = [
        {"state": each.state, "start": each.start, "end": each.end, "restart": each.restart,
         "nodes": fold_hostlist(each.nodes)}
        for each in job.intervals if each.state in LIVE
    ]  # fmt: skip
    final = "PENDING" if job.final_state == "RESV_DEL_HOLD" else job.final_state
    return {"name": name, "partition": "p", "submit": job.at, "final_state": final,
            "restarts": job.restarts, "intervals": intervals}  # fmt: skip


def aspects(comparison: Comparison) -> list[Aspect]:
    """Return what the differences are about."""
    return [each.aspect for each in comparison.differences]


# ------------------------------------------------------------------------------- one comparison
def test_a_replay_without_waits_agrees() -> None:
    """PENDING is filled in where the record leaves it out, COMPLETING is none of our business."""
    found = compare(recording(), record([("RUNNING", 0, 5, "n1"), ("RUNNING", 16.5, 27, "n1")]))
    assert found.differences == ()
    assert found.agrees
    assert found.largest_gap == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("spans", "final", "restarts", "expected"),
    [
        pytest.param(
            [("RUNNING", 0, 5, "n1"), ("RUNNING", 20, 30, "n1")], "COMPLETED", 1,
            ["low: boundary at 17.30 s: recorded RUNNING from 17.30, replayed from 20.00",
             "low: boundary at 27.20 s: recorded COMPLETED from 27.20, replayed from 30.00"],
            id="too late",
        ),
        pytest.param(
            [("RUNNING", 0, 5, "n1"), ("RUNNING", 17, 27, "n[2-3]")], "COMPLETED", 1,
            ["low: nodes at 17.30 s: recorded RUNNING on n1, replayed on n[2-3]"],
            id="elsewhere",
        ),
        pytest.param(
            [("RUNNING", 0, 5, "n1"), ("SUSPENDED", 5, 17, "n1"), ("RUNNING", 17, 27, "n1")],
            "COMPLETED", 0,
            ["low: restarts: recorded 1, replayed 0",
             "low: states at 5.30 s: recorded RUNNING@0.2 PENDING@5.3 RUNNING@17.3 "
             "COMPLETED@27.2, replayed RUNNING@0.0 SUSPENDED@5.0 RUNNING@17.0 COMPLETED@27.0"],
            id="suspended instead",
        ),
        pytest.param(
            [("RUNNING", 0, 5, "n1")], "PREEMPTED", 0,
            ["low: final state at 27.20 s: recorded COMPLETED, replayed PREEMPTED",
             "low: restarts: recorded 1, replayed 0",
             "low: states at 5.30 s: recorded RUNNING@0.2 PENDING@5.3 RUNNING@17.3 "
             "COMPLETED@27.2, replayed RUNNING@0.0 PREEMPTED@5.0"],
            id="killed instead",
        ),
    ],
)  # fmt: skip
def test_differences_name_job_and_instant(
    spans: Spans, final: str, restarts: int, expected: list[str]
) -> None:
    """FORMAT.md, Judging: states, then boundaries, final state and restarts, nodes apart."""
    found = compare(recording(), record(spans, final, restarts))
    assert [str(each) for each in found.differences] == expected


def test_nodes_are_a_class_of_their_own() -> None:
    """The story may be the same on other nodes."""
    found = compare(recording(), record([("RUNNING", 0, 5, "n2"), ("RUNNING", 17, 27, "n2")]))
    assert aspects(found) == [Aspect.NODES, Aspect.NODES]
    assert found.same_story
    assert not found.agrees


@pytest.mark.parametrize(
    ("start", "agrees"),
    [(15.81, True), (18.79, True), (15.79, False), (18.81, False)],
)
def test_tolerance(start: float, agrees: bool) -> None:
    """A second and a half each way, and no more."""
    spans: Spans = [("RUNNING", 0, 5, "n1"), ("RUNNING", start, 27, "n1")]
    assert compare(recording(), record(spans)).agrees is agrees


@pytest.mark.parametrize(("start", "agrees"), [(16.81, True), (17.79, True), (16.79, False), (17.81, False)])
def test_half_a_second_where_the_phases_are_known(start: float, agrees: bool) -> None:
    """A decision one look late no longer passes."""
    spans: Spans = [("RUNNING", 0, 5, "n1"), ("RUNNING", start, 27, "n1")]
    known = recording(phases={"second": 0.5, "looks": [0.25], "backfills": []})
    assert compare(known, record(spans)).agrees is agrees


def test_an_end_in_the_last_moments_of_the_observation() -> None:
    """A job last seen COMPLETING has ended as far as could be seen."""
    run = recording("COMPLETING", [*LOW[:5], ("COMPLETING", 27.2, 28.0, "n1")])
    assert compare(run, record([("RUNNING", 0, 5, "n1"), ("RUNNING", 17, 27.3, "n1")])).agrees


def test_cpus_and_reasons_are_details() -> None:
    """They differ like nodes: the story is the same."""
    spans: Spans = [("RUNNING", 0.25, 27.2, "n1"), ("COMPLETED", 27.2, 28.0, "")]
    run = recording(spans=spans)
    job = run.jobs["low"]
    first = attrs.evolve(job.intervals[0], cpu_ids={"n1": (0, 1, 4)})
    run = attrs.evolve(run, jobs={"low": attrs.evolve(job, intervals=(first, *job.intervals[1:]))})
    other = record([("RUNNING", 0, 27, "n1")], restarts=0)
    for text, agrees in (("0-1,4", True), ("0-2", False)):
        other["jobs"]["1"]["intervals"][0]["cpus"] = {"n1": text}
        found = compare(run, other)
        assert (found.agrees, found.same_story) == (agrees, True)
    assert (
        str(found.differences[0])
        == "low: CPUs at 0.25 s: recorded RUNNING on CPUs n1:0,1,4, replayed on n1:0,1,2"
    )


def test_a_job_whose_reservation_is_gone_waits() -> None:
    """scontrol shows that as a state."""
    held = recording("RESV_DEL_HOLD", [("RESV_DEL_HOLD", 0.0, 28.0, "")])
    assert stories_of_recording(held)["low"].final_state == "PENDING"


@pytest.mark.parametrize(
    ("recorded", "replayed", "agrees"),
    [
        ("Resources", "Priority", True),
        ("ReqNodeNotAvail,_UnavailableNodes:n1", "ReqNodeNotAvail", True),
        ("Licenses", "Resources", False),
    ],
)
def test_why_a_job_still_waits(recorded: str, replayed: str, agrees: bool) -> None:
    """Which of Resources and Priority is shown depends on which scheduler looked last."""
    run = recording("PENDING", [("PENDING", 0.0, 28.0, "")])
    job = run.jobs["low"]
    waits = attrs.evolve(job.intervals[0], reasons=([3.2, "None"], [4.2, recorded]))
    run = attrs.evolve(run, jobs={"low": attrs.evolve(job, intervals=(waits,))})
    other = record([], "PENDING", 0)
    other["jobs"]["1"]["reason"] = replayed
    found = compare(run, other)
    assert (found.agrees, found.same_story) == (agrees, True)


@pytest.mark.parametrize(
    ("mine", "other", "agrees"), [(0.62, 0.59, True), (0.62, 0.0, True), (0.75, 0.0, False)]
)
def test_a_stretch_about_as_short_as_flicker_counts_on_neither_side(
    mine: float, other: float, agrees: bool
) -> None:
    """A run of 0.62 s between two suspensions is none if the other side has none, but one of 0.75 s is one."""

    def told(run: float) -> Recording:
        spans: Spans = [
            *[("RUNNING", 0.25, 5.0, "n1"), ("SUSPENDED", 5.0, 9.0, "n1"), ("RUNNING", 9.0, 9.0 + run, "n1")],
            *[("SUSPENDED", 9.0 + run, 12.0, "n1"), ("RUNNING", 12.0, 27.0, "n1")],
        ]
        return recording(spans=[span for span in spans if span[1] < span[2]])

    assert compare(told(mine), told(other)).agrees is agrees


def test_flicker_is_overlooked() -> None:
    """An interval of half a second joins what came before it."""
    spans: Spans = [
        ("RUNNING", 0.25, 5, "n1"), ("SUSPENDED", 5, 5.5, "n1"), ("RUNNING", 5.5, 20, "n1"),
        ("COMPLETED", 20, 28, ""),
    ]  # fmt: skip
    run = recording(spans=spans)
    assert compare(run, record([("RUNNING", 0.25, 20, "n1")], restarts=0)).agrees


def test_jobs_that_one_side_lacks() -> None:
    """Both ways."""
    other = record([("RUNNING", 0, 5, "n1"), ("RUNNING", 17, 27, "n1")])
    other["jobs"]["2"] = other["jobs"]["1"] | {"name": "more"}
    del other["jobs"]["1"]
    assert [str(each) for each in compare(recording(), other).differences] == [
        "low: jobs: recorded COMPLETED, replayed nothing",
        "more: jobs: recorded nothing, replayed COMPLETED",
    ]


@pytest.mark.parametrize("final", [None, "REFUSED"])
def test_a_refused_job_may_be_absent(final: str | None) -> None:
    """Or be there as REFUSED; it may not wait for ever."""
    refused = {"at": 0, "submitted": 0, "answered": 0, "refused": "sbatch: error"}
    run = recording(jobs={"low": refused})
    empty: dict[str, Any] = {"jobs": {}}
    assert compare(run, record([], final, 0) if final else empty).agrees
    assert aspects(compare(run, record([], "PENDING", 0))) == [Aspect.FINAL_STATE]


def test_the_replay_is_cut_at_the_end_of_the_observation() -> None:
    """A job that was still running then need not run for ever."""
    spans: Spans = [("RUNNING", 0.25, 28.0, "n1")]
    run = recording("RUNNING", spans)
    assert compare(run, record([("RUNNING", 0, 40, "n1")], restarts=0)).agrees
    early = compare(run, record([("RUNNING", 0, 20, "n1")], restarts=0))
    assert aspects(early) == [Aspect.FINAL_STATE, Aspect.STATES]


@pytest.mark.parametrize(
    ("recorded", "replayed", "until", "agrees"),
    [
        pytest.param(27.5, 27.4, 28.0, True, id="what has just begun is no flicker"),
        pytest.param(27.7, None, 28.0, True, id="the replay may have begun it just after its end"),
        pytest.param(None, 27.7, 28.0, True, id="so may Slurm"),
        pytest.param(27.7, None, 40.0, False, id="a longer replay would have shown it"),
        pytest.param(27.0, None, 28.0, False, id="too long before the end"),
    ],
)
def test_what_happens_as_the_observation_ends(
    recorded: float | None, replayed: float | None, until: float, agrees: bool
) -> None:
    """A job runs for some time, is requeued, and perhaps starts again shortly before the end."""
    first: Spans = [("RUNNING", 0.25, 5.26, "n1"), ("COMPLETING", 5.26, 5.3, "n1")]

    def spans(start: float | None, end: float) -> Spans:
        if start is None:
            return [*first, ("PENDING", 5.3, end, "")]
        return [*first, ("PENDING", 5.3, start, ""), ("RUNNING", start, end, "n1")]

    run = recording("PENDING" if recorded is None else "RUNNING", spans(recorded, 28.0))
    other = as_record(recording("PENDING" if replayed is None else "RUNNING", spans(replayed, until)))
    found = compare(attrs.evolve(run, phases=Phases(second=0.3)), other | {"until": until})
    assert found.agrees is agrees


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({}, "jobs: missing"),
        ({"jobs": []}, "jobs: missing, or no table"),
        ({"jobs": {"1": 3}}, "jobs.1: no table"),
        ({"jobs": {"1": {"name": "a", "submit": 0}}}, "jobs.1.final_state: missing"),
        ({"jobs": {"1": {"name": "a", "submit": "x", "final_state": "PENDING"}}},
         "jobs.1.submit: got 'x'; allowed: a number"),
        (record([("RUNNING", 0, 1, "n[1")]), "jobs.1.intervals: host list"),
    ],
)  # fmt: skip
def test_malformed_record(broken: Mapping[str, Any], message: str) -> None:
    """ConfigError, naming the job."""
    with pytest.raises(ConfigError) as caught:
        compare(recording(), broken)
    assert message in str(caught.value)


def test_two_jobs_of_one_name() -> None:
    """A record is compared by name."""
    twice = record([])
    twice["jobs"]["2"] = twice["jobs"]["1"]
    with pytest.raises(ConfigError, match="job 'low' is there twice"):
        compare(recording(), twice)


# ------------------------------------------------------------------------------- whole scenarios
def honest(folder: Path) -> Callable[[Scenario], dict[str, Any]]:
    """Return a replay that tells exactly what was recorded in `folder`."""
    return lambda scenario: as_record(read_recording(folder / f"{scenario.name}.json"))


def test_verify_one_agrees() -> None:
    """The sample against itself."""
    recorded = SAMPLE / "results-22.05"
    scenario = SAMPLE / "scenarios" / "het_requeue.toml"
    verdict = verify_one(scenario, recorded / "het_requeue.json", honest(recorded))
    assert (verdict.name, verdict.outcome, verdict.release) == (
        "het_requeue", Outcome.AGREES, "22.05.8",
    )  # fmt: skip


def test_verify_one_differs() -> None:
    """A job held back by two seconds; job and instant are named."""
    recorded = SAMPLE / "results-22.05"

    def late(scenario: Scenario) -> dict[str, Any]:
        run = honest(recorded)(scenario)
        waiting, running = run["jobs"]["2"]["intervals"][:2]
        waiting["end"] += 2
        running["start"] += 2
        return run

    scenario = SAMPLE / "scenarios" / "pp_requeue_basic.toml"
    verdict = verify_one(scenario, recorded / "pp_requeue_basic.json", late)
    assert verdict.outcome is Outcome.DIFFERS
    (difference,) = verdict.comparison.differences
    assert str(difference) == ("hi: boundary at 5.29 s: recorded RUNNING from 5.29, replayed from 7.29")


def verify_each(scenarios: Path, recorded: Path, run: Play) -> list[Verdict]:
    """Judge the scenarios of a folder, by name."""
    return [
        verify_one(path, recorded / f"{path.stem}.json", run) for path in sorted(scenarios.glob("*.toml"))
    ]


def test_a_replay_that_breaks_off_has_failed() -> None:
    """The error is the reason; it does not stop the others."""

    def broken(scenario: Scenario) -> dict[str, Any]:
        raise PolicyError("p", "h", "1", f"no idea about {scenario.name}")

    verdicts = verify_each(SAMPLE / "scenarios", SAMPLE / "results-22.05", broken)
    assert {verdict.outcome for verdict in verdicts} == {Outcome.FAILED, Outcome.SKIPPED}
    assert verdicts[0].why.startswith("PolicyError: plugin 'p'")
    assert verdicts[0].why.endswith("no idea about gang_manual_suspend_resume")


def test_verify_each(tmp_path: Path) -> None:
    """By name; skips say why."""
    shutil.copytree(SAMPLE, tmp_path / "oracle")
    recorded = tmp_path / "oracle" / "results-22.05"
    (recorded / "het_requeue.json").unlink()
    verdicts = verify_each(tmp_path / "oracle" / "scenarios", recorded, honest(recorded))
    assert [(each.name, each.outcome.value, each.why) for each in verdicts] == [
        ("gang_manual_suspend_resume", "agrees", ""),
        ("het_requeue", "skipped", "no recording in results-22.05"),
        ("minex_boundary", "skipped", "needs Slurm 23.02; the recordings are of 22.05.8"),
        ("pp_requeue_basic", "agrees", ""),
        ("qos_three_level_chain", "agrees", ""),
    ]


def test_a_recording_of_too_old_a_release_is_skipped(tmp_path: Path) -> None:
    """Should there be one."""
    data = json.loads((SAMPLE / "results-22.05" / "pp_requeue_basic.json").read_text())
    path = tmp_path / "minex_boundary.json"
    path.write_text(json.dumps(data | {"scenario": "minex_boundary"}))
    verdict = verify_one(SAMPLE / "scenarios" / "minex_boundary.toml", path, honest(tmp_path))
    assert verdict.why == "needs Slurm 23.02; the recording is of 22.05.8"


def test_commands_that_are_not_modelled_are_skipped(tmp_path: Path) -> None:
    """Naming them."""
    text = (SAMPLE / "scenarios" / "pp_requeue_basic.toml").read_text()
    action = 'action = [{ at = 1, command = ["scontrol", "update", "partitionname=low"] }]\n'
    path = tmp_path / "pp_requeue_basic.toml"
    path.write_text(action + text)
    recorded = SAMPLE / "results-22.05"
    verdict = verify_one(path, recorded / "pp_requeue_basic.json", honest(recorded))
    assert verdict.why == "not modelled: scontrol update partitionname=low"


def test_an_ended_job_that_is_requeued_runs_again(tmp_path: Path) -> None:
    """As in Slurm within MinJobAge, so that a recording without it differs; a refusal leaves the verdict as it is."""
    text = (SAMPLE / "scenarios" / "pp_requeue_basic.toml").read_text()
    path = tmp_path / "pp_requeue_basic.toml"
    recorded = SAMPLE / "results-22.05" / "pp_requeue_basic.json"
    found = {}
    for words in ("requeue", "resume"):
        path.write_text(f'action = [{{ at = 29, command = ["scontrol", "{words}", "<hi>"] }}]\n{text}')
        found[words] = verify_one(path, recorded, play)
    assert found["requeue"].outcome is Outcome.DIFFERS
    assert found["resume"].outcome is Outcome.AGREES


def test_recording_of_another_scenario() -> None:
    """A mix-up of files is an error, no difference."""
    recorded = SAMPLE / "results-22.05"
    with pytest.raises(ConfigError, match="scenario: got 'het_requeue'"):
        verify_one(
            SAMPLE / "scenarios" / "pp_requeue_basic.toml",
            recorded / "het_requeue.json",
            honest(recorded),
        )


def test_print_score(tmp_path: Path) -> None:
    """A line for each scenario, differences below it, the score last."""
    recorded = SAMPLE / "results-22.05"

    def moved(scenario: Scenario) -> dict[str, Any]:
        run = honest(recorded)(scenario)
        if scenario.name == "het_requeue":
            run["jobs"]["1"]["intervals"][1]["nodes"] = "n[2-3]"
        return run

    verdicts = verify_each(SAMPLE / "scenarios", recorded, moved)
    console = Console(file=io.StringIO(), width=60)
    print_score(verdicts, console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "gang_manual_suspend_resume  agrees       largest distance 0.00 s"
    assert lines[1].startswith("het_requeue                 other nodes")
    assert lines[2] == "    het+0: nodes at 0.25 s: recorded RUNNING on n1, replayed on n[2-3]"
    assert lines[3].endswith("skipped      needs Slurm 23.02; the recordings are of 22.05.8")
    assert lines[-1] == score(verdicts)
    assert score(verdicts).startswith("3 of 4 agree; 1 other nodes; 1 skipped; boundaries: median")


def test_score_of_nothing() -> None:
    """No scenario, no figures."""
    assert score([]) == "0 of 0 agree"


# ------------------------------------------------------------------------------- the oracle
def folders() -> list[Any]:
    """Return the folders of recordings there are."""
    found = [SAMPLE / "results-22.05", *sorted(ORACLE.glob("results-*"))]
    found += sorted((REPOSITORY / "tests" / "recordings").glob("results-*"))
    return [pytest.param(path, id=f"{path.parent.name}-{path.name}") for path in found]


@pytest.mark.parametrize("folder", folders())
def test_every_recording_agrees_with_itself(folder: Path) -> None:
    """As a recording, and as the record of a perfect replay."""
    for path in sorted(folder.glob("*.json")):
        run = read_recording(path)
        assert compare(run, run).agrees, path.stem
        assert compare(run, as_record(run)).differences == (), path.stem


@pytest.mark.parametrize("folder", folders())
def test_every_recording_differs_once_a_start_is_moved(folder: Path) -> None:
    """The job and the instant are named."""
    for path in sorted(folder.glob("*.json")):
        run = read_recording(path)
        long = [
            (name, each.start)
            for name, job in run.jobs.items()
            for before, each in zip((None, *job.intervals), job.intervals, strict=False)
            if each.state == "RUNNING" and each.end - each.start > 2.5 and not _is_doubtful(before)
        ]
        for name, start in long[:3]:
            moved = _with_late_start(run, name, start)
            (found,) = compare(run, moved).differences
            assert (found.aspect, found.job, found.at) == (Aspect.BOUNDARY, name, start), path.stem


def _is_doubtful(before: RecordedInterval | None) -> bool:
    """Whether a job was seen suspended for less than two samples: it may have run all the time."""
    return before is not None and before.state == "SUSPENDED" and before.end - before.start < SHORT


def _with_late_start(run: Recording, name: str, start: float) -> Recording:
    job = run.jobs[name]
    intervals = tuple(
        attrs.evolve(each, start=start + 1.6) if each.start == start else each for each in job.intervals
    )
    return attrs.evolve(run, jobs={**run.jobs, name: attrs.evolve(job, intervals=intervals)})


@needs_oracle
def test_the_two_releases_differ_where_releases_md_says() -> None:
    """The tables of shared/oracle/RELEASES.md; D1 to D6 and the newer scenarios."""
    old, new = ORACLE / "results-22.05", ORACLE / "results-26.11"
    found = {
        path.stem: compare(read_recording(path), read_recording(new / path.name))
        for path in sorted(old.glob("*.json"))
        if (new / path.name).exists()
    }
    differ = {name for name, each in found.items() if not each.same_story}
    assert differ == {
        "exempt_suspend_shared", "feature_alternatives", "gang_cpu_pairs_task_none",
        "grace_exit_natural", "grace_flag_survives", "mix_requeue_nodes_a", "off_partition_gang",
        "qos_three_level_chain", "requeue_loses_place", "seed_gang_cr_cpu_memory",
    }  # fmt: skip
    details = {
        name: {difference.aspect for difference in each.differences}
        for name, each in found.items()
        if each.same_story and not each.agrees
    }
    assert details == {
        "het_requeue": {Aspect.NODES},
        "one_node_first_fit": {Aspect.NODES},
        "seed_gang_cr_core_memory": {Aspect.CPUS},  # recorded on CPUs 0,4 and on 0,1 of the same nodes
    }


def test_verify_recordings_of_a_real_slurm(run: Run) -> None:
    """Skips what was not recorded; what is played needs plugins."""
    done = run("verify", SAMPLE / "scenarios", "--recorded", SAMPLE / "results-22.05", "--only", "minex*")
    assert done.status == 0
    assert "needs Slurm 23.02" in done.out
