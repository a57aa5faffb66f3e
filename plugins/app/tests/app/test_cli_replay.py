"""What ``makeway replay`` shows and writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway import registry
from makeway.errors import PluginError

Run = Callable[..., Any]


def _figure(out: str, *words: str) -> str:
    """Return the last cell of the line that begins with `words`, however wide the columns are."""
    found = (line.split() for line in out.splitlines())
    return next(line[-1] for line in found if tuple(line[: len(words)]) == words)


def test_the_summary_names_figures_preemptions_and_waits(run: Run, with_jobs: Path) -> None:
    """Job 2 displaces job 1 at 10 s; job 1 starts again at 30 s."""
    done = run("replay", with_jobs)
    assert done.status == 0
    assert done.err == ""
    assert done.out.splitlines() == [
        "2 jobs of with-jobs.toml on 2 nodes",
        "",
        "jobs                         2",
        "mean wait                  0 s",
        "median wait                0 s",
        "max wait                   0 s",
        "mean bounded slowdown     1.15",
        "utilisation              92.3%",
        "goodput                 100.0%",
        "makespan               0:02:10",
        "preemptions                  1",
        "jobs preempted               1",
        "ended by preemption          0",
        "core-hours lost            0.0",
        "jobs unfinished              0",
        "rows unusable                0",
        "",
        "preemptor  victim  mode     preemptions",
        "high       low     requeue            1",
        "",
        "partition  started  mean wait  median wait  max wait",
        "low              1        0 s          0 s       0 s",
        "high             1        0 s          0 s       0 s",
    ]


def test_what_slurm_would_refuse_is_said(run: Run, with_jobs: Path) -> None:
    """It can be replayed, but nobody should take it for a site's configuration."""
    done = run("replay", with_jobs, "--set", "policy.preempt_mode=suspend")
    assert done.status == 0
    assert done.err == (
        f"warning: {with_jobs}: Slurm would not start like this: policy.preempt_mode: "
        "SUSPEND needs GANG, which resumes the victims: write SUSPEND,GANG\n"
    )
    compared = run("replay", with_jobs, "--compare", "policy.preempt_mode=off")
    assert "warning: --compare policy.preempt_mode=off: Slurm would not start like this" in compared.err


def test_a_job_that_can_never_run_says_why(run: Run, config: Path, tmp_path: Path) -> None:
    """In the summary that programs read, too."""
    jobs = tmp_path / "big.jsonl"
    jobs.write_text('{"id": 1, "nodes": 3, "run_time": 1}\n{"id": 2, "nodes": 1, "run_time": 1}\n')
    done = run("replay", config, jobs, "--json", "-")
    found = {key: job["reason"] for key, job in json.loads(done.out)["jobs"].items()}
    assert found["1"].startswith("PartitionNodeLimit: needs 3 nodes; partition ")
    assert found["2"] == ""


def test_a_workload_of_its_own(run: Run, config: Path, workload: Path, with_jobs: Path) -> None:
    """Jobs in a file of their own come to the same."""
    apart = run("replay", config, workload)
    assert apart.status == 0
    assert apart.out.splitlines()[1:] == run("replay", with_jobs).out.splitlines()[1:]


def test_a_workload_replaces_the_jobs_of_the_config(run: Run, with_jobs: Path, workload: Path) -> None:
    """And a note says so."""
    done = run("replay", with_jobs, workload, "--limit", 1)
    assert done.status == 0
    assert "1 job of jobs.toml" in done.out
    assert "are not used" in done.err


def test_json_has_the_shape_of_the_plan(run: Run, with_jobs: Path, tmp_path: Path) -> None:
    """What it is about, then jobs, preemptions and metrics, in this order."""
    target = tmp_path / "run.json"
    assert run("replay", with_jobs, "--json", target).status == 0
    data = json.loads(target.read_text())
    assert list(data) == ["record", "cluster", "jobs", "preemptions", "metrics"]
    assert list(data["jobs"]) == ["1", "2"]
    assert data["jobs"]["1"]["restarts"] == 1
    assert data["preemptions"] == [
        {
            "at": 10.0,
            "preemptor": "2",
            "victim": "1",
            "mode": "requeue",
            "by": "preempt/partition_prio",
            "why": "mode of partition low",
        }
    ]
    assert list(data["metrics"])[:11] == [
        *("jobs", "mean_wait", "median_wait", "max_wait", "mean_bounded_slowdown"),
        *("utilisation", "makespan", "preemptions", "jobs_preempted", "core_seconds_lost"),
        "rows_unusable",
    ]
    assert data["metrics"]["core_seconds_lost"] == 80.0


CANCEL_OR_REQUEUE = """
[[node]]
name = "n[1-2]"
cpus = 4
[[partition]]
name = "low"
[[partition]]
name = "high"
priority_tier = 2
[policy]
preempt = "preempt/partition_prio"
preempt_mode = ["cancel"]
[[job]]
id = 1
submit = 0
run_time = 1000
partition = "low"
nodes = 2
user = "ann"
[[job]]
id = 2
submit = 100
run_time = 50
partition = "high"
nodes = 1
[[job]]
id = 3
submit = 200
run_time = 50
partition = "low"
nodes = 1
"""


def test_a_job_that_preemption_ended_is_no_success(run: Run, tmp_path: Path) -> None:
    """Job 1 ends after 100 of its 1,000 s on 8 cores: all of it must be submitted again.

    Of 2,000 + 50 + 50 core-seconds asked for, jobs that completed have 100. Requeued, it loses its 100 s alone.
    """
    config = tmp_path / "site.toml"
    config.write_text(CANCEL_OR_REQUEUE)
    target = tmp_path / "run.json"
    done = run("replay", config, "--json", target)
    found = json.loads(target.read_text())
    figures = found["metrics"]
    assert (figures["jobs_ended_by_preemption"], figures["jobs_unfinished"]) == (1, 0)
    assert figures["core_seconds_lost"] == figures["core_seconds_to_submit_again"] == 8000.0
    assert figures["goodput"] == pytest.approx(100 / 2100, abs=1e-6)
    assert (
        found["jobs"]["1"]["core_seconds_lost"]
        == found["jobs"]["1"]["core_seconds_to_submit_again"]
        == 8000.0
    )
    assert _figure(done.out, "ended", "by", "preemption") == "1"
    assert _figure(done.out, "to", "submit", "again") == "2.2"
    requeued = run("replay", config, "--set", "policy.preempt_mode=requeue", "--json", target)
    figures = json.loads(target.read_text())["metrics"]
    assert (figures["jobs_ended_by_preemption"], figures["core_seconds_lost"]) == (0, 800.0)
    assert figures["goodput"] == 1.0
    assert "to submit again" not in requeued.out


@pytest.mark.slow
def test_runs_side_by_side_have_letters_and_say_why_one_is_worse(run: Run, tmp_path: Path) -> None:
    """Cancelled, ann's job loses 2.2 core-hours; requeued, job 1 loses 800 core-seconds, and job 3 waits 950 s."""
    config = tmp_path / "site.toml"
    config.write_text(CANCEL_OR_REQUEUE)
    done = run("replay", config, "--compare", "policy.preempt_mode=requeue")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[2:4] == ["A  as configured", "B  policy.preempt_mode=requeue"]
    assert lines[5].split() == ["A", "B"]
    assert _figure(done.out, "ended", "by", "preemption") == "0"
    at = next(at for at, line in enumerate(lines) if line.startswith("core-hours lost by"))
    assert lines[at + 1].split() == ["ann", "2.2", "0.2"]
    assert "waited longer in B: job 3 +0:15:50" in lines
    back = run(
        "replay", config, "--set", "policy.preempt_mode=requeue", "--compare", "policy.preempt_mode=cancel"
    )
    assert "lost more core-hours in B: job 1 +2.0" in back.out.splitlines()


def test_json_on_standard_output_stands_alone(run: Run, with_jobs: Path) -> None:
    """The tables go to standard error."""
    done = run("replay", with_jobs, "--json", "-")
    assert list(json.loads(done.out))[2:] == ["jobs", "preemptions", "metrics"]
    assert "preemptor" in done.err


def test_the_log_is_json_lines(run: Run, with_jobs: Path, tmp_path: Path) -> None:
    """In order of time, with every preemption; alone it changes nothing in the summary."""
    target = tmp_path / "run.jsonl"
    done = run("replay", with_jobs, "--log", target)
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert [line["job"] for line in lines if line["kind"] == "preempt"] == ["1"]
    assert done.out == run("replay", with_jobs).out


def test_jobs_cut_off_by_until_are_unfinished(run: Run, with_jobs: Path, tmp_path: Path) -> None:
    """With and without the histories of single jobs."""
    for options in ([], ["--json", tmp_path / "run.json"]):
        done = run("replay", with_jobs, "--until", 15, *options)
        assert _figure(done.out, "jobs", "unfinished") == "2"


def test_squeue_at(run: Run, with_jobs: Path) -> None:
    """The columns of squeue; several instants, in order of time."""
    done = run("replay", with_jobs, "--squeue-at", 12, "--squeue-at", 5)
    assert done.out.splitlines()[:8] == [
        "squeue at 5 s",
        "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)",
        "    1       low long  ada  R 0:05     2 n[1-2]",
        "",
        "squeue at 12 s",
        "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)",
        "    2      high rush  eve  R 0:02     1 n1",
        "    1       low long  ada PD 0:00     2 (Resources)",
    ]


def test_squeue_sorts_as_squeue_does(run: Run, tmp_path: Path) -> None:
    """Its manual: by default P,t,-p: the partition's name, the state (pending first), the higher priority."""
    jobs = [
        ("r1", "b", 1, 0), ("r2", "b", 1, 0), ("p1", "b", 4, 1), ("p2", "b", 4, 1), ("x", "a", 1, 0),
    ]  # fmt: skip
    text = ['[[node]]\nname = "n1"\ncpus = 4\n[[partition]]\nname = "b"\n[[partition]]\nname = "a"']
    text += ['[policy]\nselect = "select/cons_tres"\nselect_parameters = ["CR_Core"]']
    text += ['[[qos]]\nname = "low"\npriority = 1\n[[qos]]\nname = "high"\npriority = 2']
    text += ['[scheduler]\npriority = "multifactor"\npriority_weights = { qos = 100 }']
    text += [
        f'[[job]]\nid = "{name}"\nuser = "u"\npartition = "{place}"\ntasks = {tasks}\nsubmit = {at}\nrun_time = 99\n'
        f'qos = "{"high" if name in ("p2", "r2") else "low"}"'
        for name, place, tasks, at in jobs
    ]
    path = tmp_path / "site.toml"
    path.write_text("\n".join(text))
    lines = run("replay", path, "--queue-at", 5).out.splitlines()
    assert lines[0] == "squeue at 5 s"
    assert [line.split()[0] for line in lines[2:7]] == ["x", "p2", "p1", "r2", "r1"]


@pytest.mark.parametrize("command", ["bjobs", "showq"])
def test_the_status_command_of_another_scheduler_is_refused(run: Run, with_jobs: Path, command: str) -> None:
    """No plugin here speaks as LSF or Moab does."""
    done = run("replay", with_jobs, f"--{command}-at", 5)
    assert done.status == 2
    assert f"--{command}-at: got {command}" in done.err
    assert "whose command is squeue; use --queue-at" in done.err


def test_set_changes_a_key(run: Run, with_jobs: Path) -> None:
    """A mode is a list of words."""
    done = run("replay", with_jobs, "--set", "policy.preempt_mode=cancel")
    assert _figure(done.out, "high", "low", "cancel") == "1"


def test_map_sends_jobs_elsewhere(run: Run, with_jobs: Path) -> None:
    """Before the rules of the configuration."""
    rules = 'workload.map=[{user=["ada"], to_partition="low"}]'
    done = run("replay", with_jobs, "--set", rules, "--map", "user=ada:high")
    assert _figure(done.out, "preemptions") == "0"


def test_compare_shows_both(run: Run, with_jobs: Path, tmp_path: Path) -> None:
    """One column each, also of keys changed together and of another file; and in the JSON."""
    other = tmp_path / "other.toml"
    other.write_text(with_jobs.read_text().replace('"requeue"', '"cancel"'))
    target = tmp_path / "run.json"
    off = "policy.preempt=preempt/none; policy.preempt_mode=off"
    done = run("replay", with_jobs, "--compare", other, "--compare", off, "--json", target)
    assert done.status == 0
    assert "preemptions 1 1 0".split() in [line.split() for line in done.out.splitlines()]
    compared = json.loads(target.read_text())["compared"]
    assert {key: each["preemptions"] for key, each in compared.items()} == {str(other): 1, off: 0}


def test_rejected_rows_are_counted_and_listed(run: Run, config: Path, tmp_path: Path) -> None:
    """The first five on the screen, all in the file."""
    tail = "4 -1 -1 4 60 -1 1 7 7 -1 -1 -1 -1 -1"
    rows = [f"{n} {n} 0 {-1 if n > 2 else 60} {tail}" for n in range(1, 10)]
    trace = tmp_path / "trace.swf"
    trace.write_text("\n".join(rows))
    target = tmp_path / "bad.txt"
    done = run("replay", config, trace, "--rejected", target)
    assert done.status == 0
    assert _figure(done.out, "rows", "unusable") == "7"
    assert "trace.swf:3: " in done.out
    assert "and 2 more; --rejected FILE has all of them" in done.out
    assert [line.split(": ")[0] for line in target.read_text().splitlines()] == [
        f"trace.swf:{line}" for line in range(3, 10)
    ]


def test_jobs_that_can_never_run_are_named(run: Run, config: Path, tmp_path: Path) -> None:
    """With their place in the workload."""
    jobs = tmp_path / "big.toml"
    jobs.write_text("[[job]]\nnodes = 3\nrun_time = 5\n")
    written = tmp_path / "run.json"
    done = run("replay", config, jobs, "--json", written)
    assert done.status == 3
    assert done.err == "makeway: done, but 1 job can never run here; --allow-unusable takes that as it is\n"
    assert "1 job that can never run here" in done.out
    assert "big.toml:1: job 1 can never run here: PartitionNodeLimit: needs 3 nodes" in done.out
    assert json.loads(written.read_text())["jobs"]["1"]["final_state"] == "FAILED"
    accepted = run("replay", config, jobs, "--allow-unusable")
    assert (accepted.status, accepted.out, accepted.err) == (0, done.out, "")


def test_who_waits_for_ever_is_named(run: Run, config: Path, tmp_path: Path) -> None:
    """With the reason; not where the replay was told to stop."""
    jobs = tmp_path / "held.toml"
    held = "".join(f"[[job]]\nid = {n}\npriority = 0\nrun_time = 5\n" for n in range(1, 8))
    jobs.write_text(held + "[[job]]\nid = 8\nrun_time = 5\n[[job]]\nid = 9\nrun_time = 5\ndepends_on = '1'\n")
    done = run("replay", config, jobs)
    assert done.status == 0
    assert _figure(done.out, "jobs", "unfinished") == "8"
    text = "8 jobs that still wait when nothing happens any more\n"
    assert f"{text}  JobHeldUser: 1, 2, 3, 4, 5 and 2 more\n  Dependency: 9\n" in done.out
    assert "still wait" not in run("replay", config, jobs, "--until", 3).out
    assert "still wait" not in run("replay", config, jobs, "--do", "1 release 1", "--limit", 1).out


@pytest.mark.parametrize(
    ("row", "status"),
    [
        pytest.param("2 5 0 -1 4 -1 -1 4 60 -1 1 7 7 -1 -1 -1 -1 -1", 0, id="run time not known"),
        pytest.param("2 5 0 9 -1 -1 -1 -1 60 -1 1 7 7 -1 -1 -1 -1 -1", 0, id="size not known"),
        pytest.param("2 5 0 0 0 -1 -1 0 60 -1 5 7 7 -1 -1 -1 -1 -1", 0, id="cancelled before it started"),
        pytest.param("2 5 0 9 0 -1 -1 0 60 -1 1 7 7 -1 -1 -1 -1 -1", 3, id="done on no processor"),
        pytest.param("2 5 0 -135 4 -1 -1 4 60 -1 1 7 7 -1 -1 -1 -1 -1", 3, id="negative run time"),
        pytest.param("1 5 0 9 4 -1 -1 4 60 -1 1 7 7 -1 -1 -1 -1 -1", 3, id="an id twice"),
        pytest.param("2 5 0 9", 3, id="columns missing"),
    ],
)
def test_what_the_format_leaves_open_is_no_fault(
    run: Run, config: Path, tmp_path: Path, row: str, status: int
) -> None:
    """SWF: -1 is "not known", status 5 is cancelled; all is counted, but only faults show in the exit status."""
    trace = tmp_path / "trace.swf"
    trace.write_text(f"1 0 0 60 4 -1 -1 4 60 -1 1 7 7 -1 -1 -1 -1 -1\n{row}\n")
    done = run("replay", config, trace)
    assert done.status == status
    assert _figure(done.out, "rows", "unusable") == "1"
    assert run("replay", config, trace, "--allow-unusable").status == 0


@pytest.mark.parametrize(
    ("row", "status"),
    [
        pytest.param("2|2025-06-01T01:00:00|00:00:00|1|PENDING", 0, id="pending"),
        pytest.param("2_[3-9]|2025-06-01T01:00:00|00:00:00|1|CANCELLED", 0, id="tasks of an array, not run"),
        pytest.param("2|2025-06-01T01:00:00|soon|1|COMPLETED", 3, id="no time"),
        pytest.param("2|yesterday|00:01:00|1|COMPLETED", 3, id="no date"),
    ],
)
def test_jobs_that_have_not_run_are_usual_in_sacct(
    run: Run, config: Path, tmp_path: Path, row: str, status: int
) -> None:
    """Who asks for June on the first of July gets pending jobs."""
    trace = tmp_path / "june.sacct"
    good = "1|2025-06-01T00:00:00|00:10:00|1|COMPLETED"
    trace.write_text(f"JobID|Submit|Elapsed|NNodes|State\n{good}\n{row}\n")
    done = run("replay", config, trace)
    assert done.status == status
    assert _figure(done.out, "rows", "unusable") == "1"


def test_faults_are_listed_before_what_is_usual(run: Run, config: Path, tmp_path: Path) -> None:
    """So that a thousand pending jobs do not hide the one broken row; the file keeps the order."""
    head = "JobID|Submit|Elapsed|NNodes|State\n1|2025-06-01T00:00:00|00:10:00|1|COMPLETED\n"
    pending = "".join(f"{n}|2025-06-01T01:00:00|00:00:00|1|PENDING\n" for n in range(2, 1202))
    trace, target = tmp_path / "june.sacct", tmp_path / "bad.txt"
    trace.write_text(f"{head}{pending}9999|x|00:00:01|1|COMPLETED\n")
    done = run("replay", config, trace, "--rejected", target)
    assert done.status == 3
    assert (
        "1,201 rows unusable (1,200 of them as usual: not run, or not known)\n  june.sacct:1203: " in done.out
    )
    assert "makeway: done, but 1 row cannot be used; " in done.err
    assert run("replay", config, trace).out.count("june.sacct:1203: submit: got 'x'") == 1
    lines = target.read_text().splitlines()
    assert (len(lines), lines[-1].split(": ")[0]) == (1201, "june.sacct:1203")


def test_a_partition_that_does_not_exist_is_a_fault(run: Run, config: Path, tmp_path: Path) -> None:
    """The mapping has a hole."""
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[[job]]\nrun_time = 1\n[[job]]\nrun_time = 1\npartition = "lwo"\n')
    done = run("replay", config, jobs)
    assert done.status == 3
    assert "jobs.toml:3: no partition named 'lwo'" in done.out
    both = run("replay", config, jobs, "--compare", "workload.unknown_partition=default")
    assert both.status == 3
    assert run("replay", config, jobs, "--set", "workload.unknown_partition=default").status == 0


def test_commands_of_people_are_carried_out(run: Run, with_jobs: Path) -> None:
    """And what is refused is told."""
    text = with_jobs.read_text()
    text += '[[action]]\nat = 5\ncommand = "cancel"\njob = 1\n'
    text += '[[action]]\nat = 6\ncommand = "suspend"\njob = 9\n'
    with_jobs.write_text(text)
    done = run("replay", with_jobs)
    assert _figure(done.out, "preemptions") == "0"
    assert "1 command refused" in done.out
    assert "6 s: suspend 9: the job is unknown or has ended" in done.out


def test_without_the_kit_invariants_cannot_be_checked() -> None:
    """Which the command says, with what brings it."""
    with pytest.raises(
        PluginError, match=r"--check-invariants needs .*'pip install makeway-testing' brings one"
    ):
        registry.tool("not there", "--check-invariants")


def test_invariants_are_checked(run: Run, with_jobs: Path) -> None:
    """And the number of steps is told."""
    done = run("replay", with_jobs, "--check-invariants")
    assert done.status == 0
    assert "the invariants held after all of " in done.err


def test_a_foreign_config_is_taken_as_it_is(run: Run, tmp_path: Path, workload: Path) -> None:
    """What its reader has to say goes to standard error."""
    path = tmp_path / "slurm.conf"
    path.write_text(
        "ClusterName=x\nSlurmctldHost=h\nSelectType=select/linear\n"
        "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
        "NodeName=n[1-2] CPUs=4\nPartitionName=low Nodes=ALL Default=YES\n"
        "PartitionName=high Nodes=ALL PriorityTier=2\nJobSubmitPlugins=lua\nAccountingStorageEnforce=limits\n"
    )
    done = run("replay", path, workload)
    assert done.status == 0
    assert _figure(done.out, "high", "low", "requeue") == "1"
    assert done.err == (
        "warning: 1 parameter of slurm.conf that may matter is not modelled; makeway check lists them\n"
    )
    assert done.out.splitlines()[-2:] == [
        "what decides at this site and not in a replay",
        "  Slurm enforces limits of associations and QOS (AccountingStorageEnforce=limits): they come "
        "from `sacctmgr -P show qos` and `sacctmgr -P show assoc tree`, then --accounting",
    ]


def test_the_release_is_a_key_like_others(run: Run, with_jobs: Path) -> None:
    """--release is short for scheduler.slurm_release."""
    short = run("replay", with_jobs, "--release", "22.05")
    long = run("replay", with_jobs, "--set", "scheduler.slurm_release=22.05")
    assert short.status == long.status == 0
    assert short.out == long.out


def test_keys_without_effect_are_named(run: Run, with_jobs: Path) -> None:
    """By a replay too; the defaults are not."""
    key = "scheduler.clockwork.suspend_grace_time"
    done = run("replay", with_jobs, "--set", 'scheduler.clockwork={preset="slurm", suspend_grace_time=9}')
    assert done.status == 0
    assert (
        f"warning: {with_jobs}: {key}: 9 s between SIGTSTP and SIGSTOP change nothing in a replay" in done.err
    )
    for clockwork in ("slurm", "ideal"):
        assert key not in run("replay", with_jobs, "--set", f"scheduler.clockwork={clockwork}").err


@pytest.mark.parametrize(
    ("release", "said"),
    [
        (
            "19.05",
            "Slurm 19.05 is older than what is known here (recordings are of 22.05 to 26.11): the rules of",
        ),
        (
            "99.05",
            "Slurm 99.05 is newer than what is known here (recordings are of 22.05 to 26.11): the rules of",
        ),
        ("23.10", "there is no Slurm 23.10: the rules of 23.02 count; did you mean '23.1"),
        ("24.05.5", ""),
        ("23.11", ""),
        ("26.11.0-0rc1", ""),
    ],
)
def test_a_release_that_nothing_is_known_of_is_named(
    run: Run, with_jobs: Path, release: str, said: str
) -> None:
    """However it is stated, and also by check; the nearest rules count."""
    done = run("replay", with_jobs, "--release", release)
    assert done.status == 0
    assert said in done.err
    assert bool(done.err) == bool(said)
    assert run("replay", with_jobs, "--set", f"scheduler.slurm_release={release}").err == done.err
    compared = run("replay", with_jobs, "--compare", f"scheduler.slurm_release={release}").err
    assert said in compared
    checked = run("check", with_jobs, "--release", release).out
    assert ("warning: scheduler.slurm_release: " in checked) == bool(said)
    assert said in checked


@pytest.mark.parametrize(
    ("release", "hint"),
    [("99", ""), ("22", ""), ("2205", "; did you mean '22.05'?"), ("22.5x", "; did you mean '22.05'?")],
)
def test_what_is_no_release_is_refused(run: Run, with_jobs: Path, release: str, hint: str) -> None:
    """Before anything is run, with the nearest match."""
    message = f"got '{release}'; allowed: a Slurm release, '22.05' to '26.11'{hint}"
    for arguments in (["--release", release], ["--set", f'scheduler.slurm_release="{release}"']):
        done = run("replay", with_jobs, *arguments)
        assert done.status == 2
        assert message in " ".join(done.err.split())
    with_jobs.write_text(f'scheduler.slurm_release = "{release}"\n{with_jobs.read_text()}')
    assert f"scheduler.slurm_release: {message}" in run("check", with_jobs).out


def test_hooks_are_traced(
    run: Run, with_jobs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every call, if the environment asks for it."""
    run("replay", with_jobs)
    assert "makeway_preempt_candidates" not in caplog.text
    monkeypatch.setenv("MAKEWAY_TRACE_HOOKS", "1")
    run("replay", with_jobs)
    assert "makeway_preempt_candidates" in caplog.text


def test_people_act_from_the_command_line(run: Run, with_jobs: Path, tmp_path: Path) -> None:
    """What is asked is done; what is refused is said, with the reason, in the summary and in --json."""
    path = tmp_path / "out.json"
    done = run(
        *("replay", with_jobs, "--do", "3 hold 1", "--do", "5 cancel 1 by ann", "--do", "6 resume 2"),
        *("--json", path),
    )
    assert done.status == 0
    assert "1 command refused\n  6 s: resume 2: the job is unknown or has ended" in done.out
    document = json.loads(path.read_text())
    assert document["jobs"]["1"]["final_state"] == "CANCELLED"
    (refused,) = document["refused_commands"]
    assert (refused["at"], refused["command"], refused["job"]) == (6.0, "resume", "2")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("soon cancel 1", "allowed: AT COMMAND JOB [by USER]"),
        ("5 cancel", "allowed: AT COMMAND JOB [by USER]"),
        ("5 cancle 1", "did you mean 'cancel'?"),
    ],
)
def test_a_command_that_cannot_be_read_is_refused(run: Run, with_jobs: Path, text: str, word: str) -> None:
    """Before anything runs."""
    done = run("replay", with_jobs, "--do", text)
    assert done.status == 2
    assert word in done.err


def test_what_checkpoints_cost_is_in_the_summary() -> None:
    """How many, and the core-hours of writing, reading and saving."""
    from makeway.metrics import Metrics
    from makeway_app.report import _figures_of

    figures = Metrics(
        checkpoints=2,
        core_seconds_checkpointing=3600.0,
        core_seconds_restarting=7200.0,
        core_seconds_saved=36000.0,
    ).as_dict(1)
    shown = dict(_figures_of(figures))
    assert shown["checkpoints"] == "2"
    assert shown["core-hours writing them"] == "1.0"
    assert shown["core-hours reading them"] == "2.0"
    assert shown["core-hours that they saved"] == "10.0"


def test_what_the_workload_does_not_say_of_ends_is_told_once(run: Run, config: Path, tmp_path: Path) -> None:
    """Job 1 counts as COMPLETED, and a note says so; of job 2 the workload says that it fails."""
    jobs = tmp_path / "after.jsonl"
    jobs.write_text(
        '{"id": 1, "run_time": 10}\n{"id": 2, "run_time": 10, "attributes": {"ends_as": "FAILED"}}\n'
        '{"id": 3, "run_time": 1, "depends_on": ["afterok:1", "afternotok:2"]}\n'
        '{"id": 4, "run_time": 1, "depends_on": "afterok:1"}\n'
    )
    done = run("replay", config, jobs)
    assert done.status == 0
    told = "others wait for how 1 job ended (1), which the workload does not say (attributes.ends_as)"
    assert done.err.count(told) == 1
