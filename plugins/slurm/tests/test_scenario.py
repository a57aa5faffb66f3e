"""Scenarios of the oracle: what they become, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import build_clockwork
from makeway.errors import ConfigError
from makeway.worlds.events import Command, NodesDrained, NodesUp
from makeway_slurm.recordings.recording import Recording, parse_recording, read_recording
from makeway_slurm.recordings.scenario import Scenario, build_scenario, read_scenario_file

SAMPLE = Path(__file__).parent / "data" / "oracle"
REPOSITORY = Path(__file__).parents[3]
ORACLE = Path(os.environ.get("MAKEWAY_ORACLE", REPOSITORY.parent / "shared" / "oracle"))
FURTHER = REPOSITORY / "tests" / "recordings"

SMALL = """
name = "small"
duration = 30
job = [
  { at = 0, name = "low", runtime = 20, args = ["-N1", "-n8"] },
]
[cluster]
nodes = [ { name = "n[1-2]", cpus = 8, sockets = 2, cores_per_socket = 4, real_memory = 900 } ]
slurm_conf = '''
SelectTypeParameters=CR_Core
PartitionName=low Nodes=ALL Default=YES
'''
"""


def load(text: str, tmp_path: Path, recording: Recording | None = None) -> Scenario:
    """Read a scenario from text."""
    path = tmp_path / "small.toml"
    path.write_text(text)
    return build_scenario(read_scenario_file(path), recording, str(path))


def recorded(version: str = "22.05.8", **more: Any) -> Recording:
    """Return an empty recording."""
    data = {"scenario": "small", "slurm_version": version, "observed": 30.0, **more}
    return parse_recording(data)


def with_actions(*commands: str) -> str:
    """Return the small scenario with commands at 1, 2, ... s."""
    lines = [
        f"{{ at = {at}, command = {command.split()} }},".replace("'", '"')
        for at, command in enumerate(commands, start=1)
    ]
    return SMALL.replace("[cluster]", f"action = [{' '.join(lines)}]\n[cluster]")


# ------------------------------------------------------------------------------- the config
def test_small_scenario(tmp_path: Path) -> None:
    """One line for each node, the runner's defaults, one job."""
    scenario = load(SMALL, tmp_path)
    config = scenario.config
    assert [node.name for node in config.node] == ["n1", "n2"]
    assert {node.memory_mb for node in config.node} == {900}
    assert config.policy.select == "select/cons_tres"
    assert config.scheduler.type == "backfill"
    assert config.scheduler.slurm_release is None
    (job,) = scenario.jobs
    assert (job.id, job.name, job.user) == ("1", "low", "alice")
    assert job.run_time == pytest.approx(19.9)
    assert config.qos == ()
    assert job.qos is None


def test_one_node_line(tmp_path: Path) -> None:
    """Then the entry is one record."""
    text = SMALL.replace("[cluster]", "[cluster]\none_node_line = true")
    assert [node.name for node in load(text, tmp_path).config.node] == ["n[1-2]"]


def test_the_scenarios_own_lines_win(tmp_path: Path) -> None:
    """Over the defaults of the runner, SchedulerParameters one by one."""
    lines = "SchedulerType=sched/builtin\nSelectType=select/linear\n"
    lines += "SchedulerParameters=bf_resolution=60\nPartitionName"
    scenario = load(SMALL.replace("PartitionName", lines), tmp_path)
    assert scenario.config.scheduler.type == "builtin"
    assert scenario.config.policy.select == "select/linear"
    clocks = build_clockwork(scenario.config.scheduler.clockwork)
    assert (clocks.bf_resolution, clocks.bf_interval, clocks.sched_interval) == (60.0, 1.0, 1.0)


def test_accounting(tmp_path: Path) -> None:
    """QOS, users and accounts; jobs that name none get the user's."""
    text = SMALL.replace(
        "[cluster]",
        """[cluster]
licenses = { foo = 3 }
account = [ { name = "physics" } ]
user = [ { name = "alice", default_qos = "high" } ]
qos = [
  { name = "low", priority = 1, preempt_exempt_time = "0:15", grace_time = 9 },
  { name = "high", priority = 9, preempt = ["low"], preempt_mode = "requeue,within" },
  { name = "plain", preempt_mode = "cluster", flags = ["NoReserve"] },
]""",
    )
    scenario = load(text, tmp_path)
    low, high, plain, normal = scenario.config.qos
    assert (low.name, low.priority, low.exempt_time, low.grace_time) == ("low", 1, 15.0, 9.0)
    assert (high.preempt, high.preempt_mode) == (("low",), ("requeue", "within"))
    assert (plain.preempt_mode, plain.flags, normal.name) == (None, ("NoReserve",), "normal")
    assert scenario.config.cluster.licenses == {"foo": 3}
    assert (scenario.jobs[0].qos, scenario.jobs[0].account) == ("high", "physics")


def test_nothing_is_spelled_by_leaving_out_since_23_11(tmp_path: Path) -> None:
    """As the runner does."""
    text = SMALL.replace("PartitionName", "TaskPlugin=task/none\nPartitionName")
    scenario = load(text, tmp_path, recorded("26.11.0-0rc1"))
    assert not any("TaskPlugin" in warning for warning in scenario.warnings)


# ------------------------------------------------------------------------------- the clocks
def test_clocks_of_the_runner(tmp_path: Path) -> None:
    """Each value that the recordings tell."""
    clocks = build_clockwork(load(SMALL, tmp_path, recorded()).config.scheduler.clockwork)
    assert (clocks.sched_interval, clocks.sched_phase) == (1.0, 0.25 + 1 / 128)
    assert (clocks.bf_interval, clocks.bf_resolution) == (1.0, 1.0)
    assert (clocks.kill_wait, clocks.message_timeout, clocks.min_kill_delay) == (1.0, 2.0, 7.4)
    assert clocks.requeue_delay == pytest.approx(5.9)
    assert (clocks.limit_sweep, clocks.limit_phase) == (30.0, 25.3)
    assert clocks.suspend_grace_time == 0.0
    assert not clocks.pass_on_submit
    assert clocks.pass_on_completion
    assert not clocks.pass_on_own_end
    assert clocks.first_tick is None


def test_clocks_of_a_run_that_recorded_them(tmp_path: Path) -> None:
    """The middle of the phases, also around the turn of a second; delays count from the second then."""
    phases = {"second": 0.4, "looks": [0.25, 1.26, 1.9, 2.27, 3.26], "backfills": [0.98, 2.0, 3.02]}
    clocks = build_clockwork(load(SMALL, tmp_path, recorded(phases=phases)).config.scheduler.clockwork)
    assert (clocks.second_phase, clocks.counts_seconds, clocks.requeue_delay) == (0.4, True, 6.0)
    assert clocks.sched_phase == pytest.approx(0.26)
    assert clocks.bf_phase == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("told", "phase"),
    [
        pytest.param({"estimator": 0.97}, 0.97, id="as recorded"),
        pytest.param({}, 0.89, id="0.36 s before a look"),
    ],
)
def test_clock_of_the_estimator(told: dict[str, float], phase: float, tmp_path: Path) -> None:
    """sched/builtin estimates starts by a clock of its own; a look at .25 comes 0.36 s later (median of four runs)."""
    builtin = SMALL.replace("PartitionName", "SchedulerType=sched/builtin\nPartitionName")
    phases = {"second": 0.4, "looks": [0.25, 1.25], "backfills": [], **told}
    clocks = build_clockwork(load(builtin, tmp_path, recorded(phases=phases)).config.scheduler.clockwork)
    assert clocks.sched_phase == pytest.approx(0.25)
    assert clocks.bf_phase == pytest.approx(phase)


def test_release_of_a_candidate(tmp_path: Path) -> None:
    """26.11.0-0rc1 counts as 26.11."""
    scheduler = load(SMALL, tmp_path, recorded("26.11.0-0rc1")).config.scheduler
    assert scheduler.slurm_release == "26.11"
    assert build_clockwork(scheduler.clockwork).sched_phase == 0.25


@pytest.mark.parametrize(
    ("timeslice", "tick"),
    [
        pytest.param({"seconds": 6, "ticks": [5.13, 11.13]}, 5.13, id="as recorded"),
        pytest.param({"seconds": 6, "ticks": []}, 5.24, id="over before the first"),
        pytest.param(None, 5.24, id="without a recording's"),
    ],
)
def test_first_tick(tmp_path: Path, timeslice: dict[str, Any] | None, tick: float) -> None:
    """The recording's, else where 22.05 nearly always has it."""
    text = SMALL.replace(
        "PartitionName=low", "PreemptMode=GANG\nSchedulerTimeSlice=6\nPartitionName=low"
    ).replace("Default=YES", "Default=YES OverSubscribe=FORCE:2")
    scheduler = load(text, tmp_path, recorded(timeslice=timeslice)).config.scheduler
    clocks = build_clockwork(scheduler.clockwork)
    assert clocks.first_tick == pytest.approx(tick)
    assert clocks.limit_phase == 23.4


@pytest.mark.parametrize(
    ("release", "begin"),
    [("22.05.8", 2.265), ("26.11.0-0rc1", 2.25)],
)
def test_begin_is_counted_in_the_controllers_seconds(tmp_path: Path, release: str, begin: float) -> None:
    """Recorded: --begin=now+3 at 0 s starts at 3.26 on 22.05 and at 2.25 on 26.11."""
    text = SMALL.replace('"-N1",', '"-N1", "--begin=now+3",')
    assert load(text, tmp_path, recorded(release)).jobs[0].begin_at == pytest.approx(begin)


def test_begin_counts_from_the_recorded_submission(tmp_path: Path) -> None:
    """The second turns at 0.003 s, and sbatch was called at 0.009 s: three seconds on is 3.003 s."""
    text = SMALL.replace('"-N1",', '"-N1", "--begin=now+3",')
    name = load(text, tmp_path).jobs[0].name
    job = {"at": 0.0, "submitted": 0.009, "answered": 0.016}
    phases = {"second": 0.003, "looks": [0.25], "backfills": []}
    read = load(text, tmp_path, recorded(jobs={name: job}, phases=phases))
    assert read.jobs[0].begin_at == pytest.approx(3.003)


# ------------------------------------------------------------------------------- jobs and actions
def test_jobs_are_numbered_as_submitted(tmp_path: Path) -> None:
    """Each component takes a number, as in Slurm."""
    jobs = """job = [
  { at = 5, name = "late", args = [] },
  { at = 0, name = "het", args = ["-N1", ":", "-N1"], step = true, on_term = "ignore" },
  { at = 0, name = "next", args = ["-H"], user = "bob" },"""
    scenario = load(SMALL.replace("job = [", jobs), tmp_path)
    assert [(job.id, job.name) for job in scenario.jobs] == [
        ("1+0", "het+0"), ("1+1", "het+1"), ("3", "next"), ("4", "low"), ("5", "late"),
    ]  # fmt: skip
    leader, other = scenario.jobs[:2]
    assert (leader.het_id, leader.het_offset, leader.steps, leader.on_term) == ("1", 0, True, "ignore")
    # Script and step run on the nodes of the leader alone.
    assert (other.het_id, other.het_offset, other.steps, other.on_term) == ("1", 1, False, "default")
    assert scenario.jobs[2].priority == 0
    assert scenario.jobs[4].run_time == pytest.approx(9.9)


def test_actions(tmp_path: Path) -> None:
    """Names become ids; questions tell the engine nothing."""
    scenario = load(
        with_actions(
            "scontrol suspend <low>",
            "scontrol update jobid=<low> priority=7",
            "scancel <low>,<low>",
            "scontrol -o show job <low>",
            "sinfo -h",
            "scontrol update nodename=n[1-2] state=drain reason=test",
            "scontrol update NodeName=n1 State=RESUME",
        ),
        tmp_path,
    )
    commands = [action.commands for action in scenario.actions]
    assert commands == [
        (Command("suspend", "1"),),
        (Command("priority", "1", value="7"),),
        (Command("cancel", "1"), Command("cancel", "1")),
        (), (), (), (),
    ]  # fmt: skip
    assert [(each.nodes, each.become) for each in scenario.actions[5:]] == [
        (("n1", "n2"), NodesDrained),
        (("n1",), NodesUp),
    ]
    assert scenario.unmodelled == ()


def test_a_command_about_a_refused_job_comes_to_nothing(tmp_path: Path) -> None:
    """As when sbatch gave it no number."""
    text = with_actions("scontrol suspend <low>").replace('"-n8"]', '"-n8", "--dependency=afterany:1"]', 1)
    scenario = load(text, tmp_path)
    assert "low" not in [job.name for job in scenario.jobs]
    assert [action.commands for action in scenario.actions] == [()]


def test_a_heterogeneous_job_is_meant_as_a_whole(tmp_path: Path) -> None:
    """Commands name its leader."""
    text = with_actions("scancel <low>").replace('"-n8"]', '"-n8", ":", "-n8"]')
    assert load(text, tmp_path).actions[0].commands == (Command("cancel", "1+0"),)


def test_what_cannot_be_followed_is_marked(tmp_path: Path) -> None:
    """It is kept, so that a verdict can say why there is none."""
    command = "scontrol update partitionname=low oversubscribe=force:2"
    assert load(with_actions(command), tmp_path).unmodelled == (command,)


# ------------------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("duration", "durration", "durration: unknown key; did you mean 'duration'?"),
        ("runtime", "run_time", "job[0].run_time: unknown key; did you mean 'runtime'?"),
        ("real_memory", "realmemory", "cluster.nodes[0].realmemory: unknown key"),
        ("duration = 30", 'duration = "30"', "duration: got '30'; allowed: a number"),
        ('name = "low"', "name = 3", "job[0].name: got 3; allowed: text"),
        ("at = 0", "at = -1", "job[0].at: got -1.0; allowed: 0 or more"),
        ("-n8", "-Y8", "job[0].args: unknown option"),
        ("n[1-2]", "n[2-1]", "cluster.nodes[0].name: host list"),
        ("name = \"low\",", "name = \"low\", on_term = 'die',", "job[0]"),
        ("duration", "needs = 'soon'\nduration", "needs: got 'soon'; allowed: numbers such as"),
        ("Nodes=ALL", "Nodes=ALL Prio=2", "PartitionName=low"),
        ("[cluster]", "[cluster", "not valid TOML"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Unknown keys and wrong values, with where, what and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        load(SMALL.replace(old, new, 1), tmp_path)
    if message == "PartitionName=low":
        assert "Prio" in str(caught.value)
    else:
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("scancel <lo>", "no job named 'lo'; allowed: low; did you mean 'low'?"),
        ("scontrol suspnd <low>", "did you mean 'suspend'?"),
        ("rm -rf", "no command named 'rm'"),
    ],
)
def test_refused_actions(tmp_path: Path, command: str, message: str) -> None:
    """A slip of the pen never becomes "nothing happened"."""
    with pytest.raises(ConfigError) as caught:
        load(with_actions(command), tmp_path)
    assert "action[0].command: " in str(caught.value)
    assert message in str(caught.value)


def test_twice_the_same_name(tmp_path: Path) -> None:
    """Results are kept by name."""
    text = SMALL.replace("job = [", 'job = [ { at = 1, name = "low" },')
    with pytest.raises(ConfigError, match=r"job\[1\].name: job 'low' is there twice"):
        load(text, tmp_path)


def test_unknown_user(tmp_path: Path) -> None:
    """Once users are listed, others are refused, as by Slurm."""
    text = SMALL.replace("[cluster]", '[cluster]\nuser = [ { name = "alicia" } ]')
    with pytest.raises(ConfigError, match=r"no user named 'alice'.*did you mean 'alicia'"):
        load(text, tmp_path)


def test_missing_file(tmp_path: Path) -> None:
    """One line, no traceback."""
    with pytest.raises(ConfigError, match="No such file"):
        read_scenario_file(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "no table"),
        ('{"scenario": "s", "slurm_version": "22.05.8"}', "observed: missing"),
        ('{"scenario": "s", "slurm_version": "22.05.8", "observed": 1, "format": 2}', "format"),
        ('{"scenario": "s", "slurm_version": "22.05.8", "observed": 1, "jbs": {}}', "jobs"),
    ],
)
def test_malformed_recording(tmp_path: Path, text: str, message: str) -> None:
    """ConfigError, naming the key."""
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_recording(path)


# ------------------------------------------------------------------------------- all there are
def scenarios_of(folder: Path) -> list[Any]:
    """Return the scenario files of a folder, or one skipped row that says why there are none."""
    paths = sorted((folder / "scenarios").glob("*.toml"))
    if not paths:
        skip = pytest.mark.skip(reason=f"no oracle in {folder}; see MAKEWAY_ORACLE")
        return [pytest.param(folder, id="none", marks=skip)]
    return [pytest.param(path, id=f"{folder.name}-{path.stem}") for path in paths]


@pytest.mark.parametrize("path", [*scenarios_of(SAMPLE), *scenarios_of(ORACLE), *scenarios_of(FURTHER)])
def test_every_scenario_loads(path: Path) -> None:
    """With and without each of its recordings; names and numbers are those of the recording."""
    assert build_scenario(read_scenario_file(path)).jobs
    for found in sorted(path.parents[1].glob(f"results-*/{path.stem}.json")):
        recording = read_recording(found)
        scenario = build_scenario(read_scenario_file(path), recording)
        numbers = {job.name: int(job.het_id or job.id) + job.het_offset for job in scenario.jobs}
        refused = {name for name, job in recording.jobs.items() if job.refused is not None}
        # A heterogeneous job that was refused has no components.
        told = {base if (base := name.rpartition("+")[0]) in refused else name for name in numbers}
        assert told <= recording.jobs.keys() <= told | refused  # options may tell that sbatch refuses a job
        others = any(action.words[0] == "sbatch" for action in scenario.actions)
        if not others and all(job.refused is None for job in recording.jobs.values()):
            assert numbers == {name: job.job_id for name, job in recording.jobs.items()}
        build_clockwork(scenario.config.scheduler.clockwork)


def test_scenarios_are_values(tmp_path: Path) -> None:
    """Read twice, they are equal."""
    first, second = load(SMALL, tmp_path), load(SMALL, tmp_path)
    assert first == second
    assert attrs.evolve(first, name="other") != second


def test_a_slow_clean_up_is_as_recorded(tmp_path: Path) -> None:
    """A second look (0.13 s) is noted for its start; 0.03 s is as modelled; requeues by hand have none."""
    events = [
        {"t": 2.0, "kind": "requeued", "job": "low"},
        {"t": 5.26, "kind": "preempt_requeue", "job": "low"},
        {"t": 5.39, "kind": "requeued", "job": "low"},
        {"t": 15.26, "kind": "preempt_requeue", "job": "low"},
        {"t": 15.29, "kind": "requeued", "job": "low"},
    ]
    phases = {"second": 0.4, "looks": [0.25], "backfills": []}
    (job,) = load(SMALL, tmp_path, recorded(phases=phases, events=events)).jobs
    assert job.attributes["cleaning_times"] == (None, pytest.approx(0.13), None)
    (job,) = load(SMALL, tmp_path, recorded(phases=phases, events=events[3:])).jobs
    assert "cleaning_times" not in job.attributes


def test_clean_ups_that_the_log_tells_are_as_recorded(tmp_path: Path) -> None:
    """Each start's, of kills and of ends alike; one whose beginning is not told is as modelled."""
    told = [
        *[(5.26, "preempt_requeue"), (5.44, "clean"), (5.441, "requeued")],
        *[(9.0, "clean"), (12.0, "end"), (12.004, "clean")],
    ]
    events = [{"t": at, "kind": kind, "job": "low"} for at, kind in told]
    phases = {"second": 0.4, "looks": [0.25], "backfills": []}
    (job,) = load(SMALL, tmp_path, recorded(phases=phases, events=events)).jobs
    assert job.attributes["cleaning_times"] == (pytest.approx(0.18), None, pytest.approx(0.004))


def test_a_clean_up_that_somebody_saw_begin_is_as_recorded(tmp_path: Path) -> None:
    """The log does not tell when scancel hit; a job that ignores it was seen to leave from 6.6 s on."""
    told = {"nodes": ["n1"], "restart": 0}
    intervals = [
        {"state": "RUNNING", "start": 0.25, "end": 6.6, **told},
        {"state": "COMPLETING", "start": 6.6, "end": 12.9, **told},
        {"state": "CANCELLED", "start": 12.9, "end": 30.0, **told},
    ]
    recording = recorded(
        phases={"second": 0.4, "looks": [0.25], "backfills": []},
        events=[{"t": 12.95, "kind": "clean", "job": "low"}],
        jobs={"low": {"at": 0.0, "submitted": 0.0, "answered": 0.0, "intervals": intervals}},
    )
    (job,) = load(SMALL, tmp_path, recording).jobs
    assert job.attributes["cleaning_times"] == (pytest.approx(6.35),)


def test_jobs_are_handed_in_when_slurm_had_them(tmp_path: Path) -> None:
    """At the recorded answer; without recorded clocks as planned. A begin time counts from the submission."""
    text = SMALL.replace('"-n8"', '"-n8", "--begin=now+3"')
    jobs = {"low": {"at": 0.0, "submitted": 0.01, "answered": 0.025, "final_state": "COMPLETED"}}
    phases = {"second": 0.4, "looks": [0.25], "backfills": []}
    (job,) = load(text, tmp_path, recorded(phases=phases, jobs=jobs)).jobs
    assert job.submit_at == 0.025
    assert job.begin_at == pytest.approx(2.4)  # the second of the submission began at -0.6
    (job,) = load(text, tmp_path, recorded(jobs=jobs)).jobs
    assert job.submit_at == 0.0


@pytest.mark.parametrize(("last", "goes_on"), [("end", True), ("suspend", None)])
def test_a_job_that_went_on_at_its_resume_is_as_recorded(
    tmp_path: Path, last: str, goes_on: bool | None
) -> None:
    """Gang let it go on and stopped it in the moment of the resume, and it ended all the same."""
    told = [(5.0, "hand_suspend"), (9.5, "resume"), (9.5, "suspend"), (9.5, "hand_resume"), (12.0, last)]
    recording = recorded(
        phases={"second": 0.4, "looks": [0.25], "backfills": []},
        events=[{"t": at, "kind": kind, "job": "low"} for at, kind in told],
        jobs={"low": {"at": 0.0, "submitted": 0.0, "answered": 0.1, "final_state": "COMPLETED"}},
    )
    (job,) = load(SMALL, tmp_path, recording).jobs
    assert job.attributes.get("goes_on_at_resume") is goes_on


@pytest.mark.parametrize(
    ("slices", "ticks", "sweep"),
    [(None, [], 25.249), (7, [6.24], 22.249), (25, [24.24], 4.249), (6, [5.24], 23.4), (7, [], 23.4)],
)
def test_the_sweep_comes_just_before_a_look(
    tmp_path: Path, slices: int | None, ticks: list[float], sweep: float
) -> None:
    """In a second that follows from the start of the controller, as far as that is known."""
    text, timeslice = SMALL, None
    if slices is not None:
        gang = f"PreemptMode=GANG\nSchedulerTimeSlice={slices}\nPartitionName=low"
        text = SMALL.replace("PartitionName=low", gang).replace(
            "Default=YES", "Default=YES OverSubscribe=FORCE:2"
        )
        timeslice = {"seconds": slices, "ticks": ticks}
    phases = {"second": 0.4, "looks": [0.25, 1.25], "backfills": []}
    scenario = load(text, tmp_path, recorded(phases=phases, timeslice=timeslice))
    assert build_clockwork(scenario.config.scheduler.clockwork).limit_phase == pytest.approx(sweep)


@pytest.mark.parametrize(
    ("step", "end", "work"), [(True, 29.0, None), (False, 29.0, 19.9), (True, 22.0, 19.9)]
)
def test_a_step_that_never_came_is_as_recorded(
    tmp_path: Path, step: bool, end: float, work: float | None
) -> None:
    """The job runs for much longer than its work takes, and does not end."""
    text = SMALL.replace("runtime = 20,", f"runtime = 20, step = {str(step).lower()},")
    waits = [("PENDING", 0.0, 1.0), ("SUSPENDED", 1.0, 3.0), ("RUNNING", 3.0, end)]
    low = {
        "at": 0.0,
        "submitted": 0.0,
        "answered": 0.1,
        "final_state": "RUNNING",
        "intervals": [{"state": state, "start": since, "end": until} for state, since, until in waits],
    }
    (job,) = load(text, tmp_path, recorded(jobs={"low": low})).jobs
    assert job.run_time == pytest.approx(work)
