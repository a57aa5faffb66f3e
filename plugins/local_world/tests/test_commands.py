"""Drive a real daemon by its commands: what people type, and what they get."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import sqlite3
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Site = Any


def test_an_urgent_job_stops_a_normal_one_and_lets_it_go_on(up: Site) -> None:
    """The example of the README: the queue says for which job the victim makes way."""
    victim = up.submit(
        "-n", "2", "--", "sh", "-c", "echo begun; while [ ! -e end ]; do sleep 0.05; done; echo done"
    )
    up.until(lambda: up.state_of(victim) == "RUNNING")
    urgent = up.submit("-p", "urgent", "-n", "2", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
    shown = up.until(lambda: up.jobs()[victim] if up.state_of(victim) == "SUSPENDED" else None)
    assert shown["displaced"]["by"] == urgent
    assert f"here (suspended for {urgent})" in up.ok("queue")
    up.until(lambda: up.state_of(urgent) == "RUNNING")
    (up.directory / "go").touch()
    (up.directory / "end").touch()
    assert up.run("wait", urgent, victim).exit_code == 0
    assert up.ok("logs", victim) == "begun\ndone\n"


def test_wait_leaves_with_the_status_of_the_job(up: Site) -> None:
    """Its exit code, 128 + n for a signal, 1 for one that was cancelled before it began."""
    assert up.run("submit", "--wait", "--", "sh", "-c", "exit 7").exit_code == 7
    assert up.run("submit", "--wait", "--", "sh", "-c", "kill -9 $$").exit_code == 137
    assert up.run("submit", "--wait", "--", "true").exit_code == 0
    held = up.submit("--hold", "--", "true")
    up.ok("cancel", held)
    assert up.run("wait", held).exit_code == 1
    assert re.search(r" FAILED +7:0 ", up.ok("history"))
    assert re.search(r" FAILED +0:9 ", up.ok("history"))


def test_exit_statuses(site: Site) -> None:
    """3 no daemon, 2 usage, 1 refused with the reason, 0 done."""
    result = site.run("queue")
    assert result.exit_code == 3
    assert "makeway up" in result.stderr
    site.up()
    assert site.run("submit").exit_code == 2
    result = site.run("cancel", "77")
    assert result.exit_code == 1
    assert result.stderr == "makeway: job 77: there is no job 77\n"
    result = site.run("submit", "-n", "64", "--", "true")
    assert result.exit_code == 1
    assert "CPUs" in result.stderr or "nodes" in result.stderr
    assert site.run("submit", "-p", "urgnt", "--", "true").exit_code == 1
    assert site.run("queue").exit_code == 0


def test_the_same_key_makes_one_job_also_after_the_daemon_was_killed(site: Site) -> None:
    daemon = site.up()
    first = site.submit("--key", "k1", "--", "true")
    assert site.submit("--key", "k1", "--", "true") == first
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    site.up()
    assert site.submit("--key", "k1", "--", "true") == first
    assert site.submit("--key", "k2", "--", "true") != first


def test_a_second_daemon_is_refused_by_name(up: Site) -> None:
    """It names the process, and changes nothing."""
    second = up.up(wait=False)
    assert second.wait(60) == 1
    assert f"a daemon runs here already, process {up.processes[0].pid}" in up.log()
    assert up.run("queue").exit_code == 0


def test_down_leaves_no_socket_and_the_next_daemon_goes_on(site: Site) -> None:
    daemon = site.up()
    held = site.submit("--hold", "--", "true")
    site.ok("down")
    assert daemon.wait(60) == 0
    assert not (site.state / "socket").exists()
    site.up()
    site.until(lambda: site.jobs()[held]["reason"] == "JobHeldUser")
    site.ok("release", held)
    assert site.run("wait", held).exit_code == 0


def test_conditions_on_others(up: Site) -> None:
    """afterok is met by a good end, afternotok by a bad one; what can never be met is said."""
    good = up.submit("--hold", "--", "true")
    after = up.submit("-d", f"afterok:{good}", "--", "true")
    never = up.submit("-d", f"afternotok:{good}", "--", "true")
    up.until(lambda: up.jobs()[after]["reason"] == "Dependency")
    assert up.run("release", after).exit_code == 1
    up.ok("release", good)
    assert up.run("wait", after).exit_code == 0
    up.until(lambda: up.jobs()[never]["reason"] == "DependencyNeverSatisfied")
    result = up.run("submit", "-d", "afterok:99", "--", "true")
    assert result.exit_code == 1
    assert "there is no job 99" in result.stderr


def test_an_array_is_named_as_a_whole(up: Site) -> None:
    array = up.submit("--hold", "--array", "0-3%2", "--", "sh", "-c", "true")
    assert sorted(up.jobs()) == [f"{array}_{task}" for task in range(4)]
    up.ok("release", array)
    assert up.run("wait", array).exit_code == 0
    assert (up.directory / f"makeway-{array}_3.out").exists()


SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=hello -p urgent
#SBATCH --comment=ann
#SBATCH -o said-%x.txt
echo "$1"
#SBATCH --hold
"""


def test_lines_of_a_script_count_and_unknown_ones_are_named(up: Site) -> None:
    (up.directory / "job.sh").write_text(SCRIPT)
    result = up.run("submit", "--wait", "job.sh", "well done")
    assert result.exit_code == 0, result.output
    assert result.stderr == "warning: job.sh:3: --comment ann is not honoured\n"
    assert (up.directory / "said-hello.txt").read_text() == "well done\n"


def test_drained_machines_start_nothing_until_undrained(site: Site) -> None:
    """It survives a restart, and a survey does not undo it."""
    site.up()
    site.ok("drain", "new memory")
    job = site.submit("--", "true")
    daemon = site.processes[-1]
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    site.up()
    assert site.state_of(job) == "PENDING"
    site.ok("undrain")
    assert site.run("wait", job).exit_code == 0


def test_people_hold_top_and_signal(up: Site) -> None:
    blocker = up.submit("-n", "2", "--", "sleep", "600")
    up.until(lambda: up.state_of(blocker) == "RUNNING")
    first, second = (up.submit("-n", "2", "--", "true") for _ in range(2))
    up.until(lambda: up.jobs()[first]["priority"] > up.jobs()[second]["priority"])
    up.ok("top", second)
    up.until(lambda: up.jobs()[second]["priority"] > up.jobs()[first]["priority"])
    up.ok("hold", first)
    up.until(lambda: up.jobs()[first]["held"])
    up.ok("suspend", blocker)
    assert "suspended by a person" in up.ok("queue")
    up.ok("resume", blocker)
    up.until(lambda: up.state_of(blocker) == "RUNNING")
    up.ok("cancel", "--all", "--yes")
    up.until(lambda: not up.jobs())


def test_ids_are_never_given_twice(site: Site) -> None:
    site.up()
    first = site.submit("--", "true")
    site.ok("wait", first)
    site.ok("down")
    site.processes[-1].wait(60)
    site.up()
    assert int(site.submit("--", "true")) > int(first)


@pytest.mark.parametrize("text", ["10", "1:30", "2:00:00", "1-12"])
def test_times_are_read_as_sbatch_reads_them(text: str) -> None:
    """sbatch(1): minutes, minutes:seconds, hours:minutes:seconds, days-hours."""
    from makeway_local_world.commands.options import length

    assert length(text) == {"10": 600, "1:30": 90, "2:00:00": 7200, "1-12": 129600}[text]


def test_a_log_is_opened_without_waiting_for_a_writer(up: Site) -> None:
    """A FIFO in its place does not hang the command."""
    job = up.submit("--", "true")
    up.ok("wait", job)
    log = Path(json.loads(up.ok("logs", "--json", job))["output"])
    log.unlink()
    os.mkfifo(log)
    assert up.run("logs", job).exit_code == 0


def test_why_and_whom_look_ahead_with_a_copy(up: Site) -> None:
    """The victim of a question is named and goes on running; the latest start follows from time limits."""
    low = up.submit("-n", "2", "-t", "10", "--", "sleep", "600")
    up.until(lambda: up.state_of(low) == "RUNNING")
    told = up.ok("victims", "-p", "urgent", "-n", "2")
    assert told.splitlines()[0] == "it starts at once"
    assert f"for that job {low} (partition normal," in told
    assert "is suspended (its resources go to a job of a higher tier)" in told
    assert up.state_of(low) == "RUNNING"
    waits = up.submit("-n", "1", "--", "true")
    answer = json.loads(up.ok("why", "--json", waits))
    shown = up.jobs()[low]
    assert answer["expected_at"] == pytest.approx(shown["started_at"] + 600.0, abs=5.0)
    urgent = up.submit("-p", "urgent", "-n", "2", "-t", "5", "--", "sleep", "600")
    up.until(lambda: up.state_of(low) == "SUSPENDED")
    why = up.ok("why", low)
    assert f"it makes way for job {urgent} (partition urgent," in why
    assert f"it stays suspended: its resources go to jobs of a higher tier: job {urgent} (" in why
    assert up.run("victims", "-n", "64").stdout.startswith("it could never run here")


def test_a_refused_submission_is_told_by_its_id_and_is_no_history(up: Site) -> None:
    """Who finds the id in a log reads why there was never such a job."""
    refused = up.run("submit", "-n", "64", "--", "true")
    assert refused.exit_code == 1
    job = up.submit("--hold", "--", "true")
    before = str(int(job) - 1)
    head, reason = up.ok("why", before).splitlines()
    assert f"job {before} (true) of " in head
    assert ": refused, " in head
    assert reason.startswith("  it was never a job: ")
    assert reason.removeprefix("  it was never a job: ") in refused.stderr
    assert up.ended() == []
    assert f"job {before}: it has ended: REFUSED" in up.run("cancel", before).stderr
    assert f"job {before} was refused and never ran" in up.run("logs", before).stderr


def test_history_says_where_a_job_ran_and_when_it_was_suspended(up: Site) -> None:
    """Its core and the span between the two orders, so that the page can draw what ended before it was opened."""
    job = up.submit("-n", "1", "--", "sleep", "1")
    up.until(lambda: up.state_of(job) == "RUNNING")
    up.ok("suspend", job)
    up.ok("resume", job)
    up.ok("wait", job)
    (found,) = up.ended()
    assert found["cores"] == {"here": "0"}
    ((stopped, resumed),) = found["suspensions"]
    assert found["started_at"] <= stopped <= resumed <= found["ended_at"]
    assert resumed - stopped == pytest.approx(found["suspended"], abs=0.01)


def test_history_shows_the_cpus_that_a_job_held(up: Site) -> None:
    """An exclusive job of one task holds the whole machine."""
    alone = up.submit("--exclusive", "--", "true")
    small = up.submit("--", "true")
    for job in (alone, small):
        up.ok("wait", job)
    shown = {job["id"]: job["cpus"] for job in json.loads(up.ok("history", "--json"))["jobs"]}
    assert (shown[alone], shown[small]) == (2, 1)


def test_history_as_rows_of_sacct_is_read_by_replay(up: Site) -> None:
    """What ran here is a workload."""
    job = up.submit("-t", "5", "-J", "odd|name", "--", "true")
    up.ok("wait", job)
    rows = up.ok("history", "-P")
    assert "|odd/name|" in rows
    (up.directory / "june.sacct").write_text(rows)
    told = up.ok("replay", str(up.config), "june.sacct")
    assert told.startswith("1 job of june.sacct")
    assert re.search(r"^rows unusable +0$", told, re.MULTILINE)


def test_the_journal_answers_what_another_policy_would_have_done(up: Site) -> None:
    """With the very jobs that ran here, while the daemon goes on."""
    low = up.submit("-n", "2", "--", "sleep", "600")
    up.until(lambda: up.state_of(low) == "RUNNING")
    up.ok("wait", up.submit("-p", "urgent", "-n", "2", "--", "true"))
    up.ok("cancel", low)
    up.until(lambda: not up.jobs())
    told = up.ok(
        "replay", str(up.config), str(up.state / "journal.db"), "--compare", "policy.preempt=lsf/queue"
    )
    assert "preempt=lsf/queue" in told
    assert "2 jobs of journal.db" in told


def test_another_policy_takes_over_while_jobs_run(up: Site) -> None:
    """A configuration that does not fit changes nothing and says why."""
    low = up.submit("-n", "2", "--", "sleep", "600")
    urgent = up.submit("-p", "urgent", "-n", "2", "--", "sleep", "600")
    up.until(lambda: up.state_of(low) == "SUSPENDED")
    text = up.config.read_text()
    up.config.write_text(text.replace('"suspend", "gang"', '"requeue"'))
    result = up.run("reload")
    assert result.exit_code != 0
    assert "suspend" in result.stderr
    assert up.state_of(low) == "SUSPENDED"
    up.ok("cancel", urgent)
    up.until(lambda: up.state_of(low) == "RUNNING")
    up.ok("reload")
    again = up.submit("-p", "urgent", "-n", "2", "--", "sleep", "600")
    up.until(lambda: up.state_of(again) == "RUNNING" and up.state_of(low) == "PENDING")


def test_doctor_says_what_the_machine_can_do(site: Site) -> None:
    """With and without a daemon."""
    assert "no daemon runs" in site.ok("doctor")
    site.up()
    shown = {each["about"]: each for each in json.loads(site.ok("doctor", "--json"))}
    assert shown["daemon"]["level"] == "ok"
    assert {"machine", "people", "processes", "cgroups", "GPUs", "state"} <= set(shown)


@pytest.mark.slow
def test_doctor_measures_what_a_checkpoint_costs(site: Site) -> None:
    """Or says why not; nothing of it stays."""
    site.environ["XDG_STATE_HOME"] = str(site.directory / "home")
    told = {each["about"]: each for each in json.loads(site.ok("doctor", "--measure", "--json"))}
    cost = told["cost of checkpoints"]
    if cost["level"] == "ok":
        assert re.fullmatch(
            r"[0-9.]+ s a GiB to save, [0-9.]+ s to bring back; a plain write .*", cost["text"]
        )
    else:
        assert cost["text"].startswith("not measured: ")
    assert not list((site.directory / "home").glob("makeway-saved/*"))


def test_doctor_says_which_criu_it_found_or_what_to_install(site: Site) -> None:
    found = site.directory / "criu"
    site.environ["MAKEWAY_CRIU"] = str(found)
    shown = {each["about"]: each for each in json.loads(site.ok("doctor", "--json"))}
    assert shown["checkpoints"]["level"] == "note"
    assert shown["checkpoints"]["text"] == f"criu: {found} is no program"
    assert shown["checkpoints"]["help"].startswith("install criu 4.0 or newer")
    found.write_text("#!/bin/sh\necho Version: 4.1\n")
    found.chmod(0o755)
    shown = {each["about"]: each for each in json.loads(site.ok("doctor", "--json"))}
    if shown["checkpoints"]["level"] == "ok":
        assert shown["checkpoints"]["text"] == f"criu 4.1 ({found})"
    else:
        assert shown["checkpoints"]["text"].startswith("user namespaces are needed")


def test_doctor_says_whether_jobs_take_what_is_on_gpus_along(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = SimpleNamespace(NVMLError=OSError, nvmlInit=lambda: os.stat("/none"))
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr("makeway_local_world.default.count_gpus", lambda: 1)
    tool = site.directory / "cuda-checkpoint"
    site.environ["MAKEWAY_CUDA_CHECKPOINT"] = str(tool)
    shown = {each["about"]: each for each in json.loads(site.ok("doctor", "--json"))}
    assert shown["checkpoints on GPUs"]["level"] == "note"
    assert shown["checkpoints on GPUs"]["text"] == f"cuda-checkpoint: {tool} is no program"
    tool.write_text("#!/bin/sh\necho '--get-state --action lock'\n")
    tool.chmod(0o755)
    shown = {each["about"]: each for each in json.loads(site.ok("doctor", "--json"))}
    assert shown["checkpoints on GPUs"]["level"] == "ok"
    assert shown["checkpoints on GPUs"]["text"].endswith(f"by {tool}")


def test_a_limit_is_changed_while_the_job_runs_and_after_a_crash(site: Site) -> None:
    """The job ends by its new limit, which the next daemon knows."""
    daemon = site.up()
    job = site.submit("-t", "60", "--", "sleep", "600")
    site.until(lambda: site.state_of(job) == "RUNNING")
    site.ok("update", job, "time=30")
    shown = site.jobs()[job]
    assert shown["time_limit"] == 1800
    assert shown["ends_at"] - shown["started_at"] == pytest.approx(1800, abs=1.0)
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    site.up()
    site.until(lambda: site.jobs()[job]["time_limit"] == 1800)
    site.ok("update", job, "time=0:01")
    site.until(lambda: not site.jobs())
    assert " TIMEOUT " in site.ok("history")
    assert site.run("update", job, "time=5").exit_code == 1
    assert site.run("update", job, "tme=5").exit_code == 1


def test_limits_of_the_shell(up: Site) -> None:
    """A job gets the soft limits of the shell that submits it, unless it does not want them."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] - 1, before[1]))
    try:
        jobs = [
            up.submit("-o", f"{number}.out", "--propagate", names, "--wrap", "ulimit -Sn")
            for number, names in enumerate(("ALL", "core,nofile", "none"))
        ]
        odd = up.run("submit", "--propagate", "NOFIEL", "--wrap", "true")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for job in jobs:
        assert up.run("wait", job).exit_code == 0
    told = [(up.directory / f"{number}.out").read_text().strip() for number in range(3)]
    assert told[:2] == [str(before[0] - 1)] * 2
    assert told[2] != told[0]
    assert odd.exit_code == 2
    assert "got 'NOFIEL'; allowed: ALL, NONE, AS" in odd.output
    assert "did you mean 'NOFILE'?" in odd.output


def test_update_moves_a_waiting_job(up: Site) -> None:
    """Into a partition that preempts; into one that there is not, it is refused."""
    first = up.submit("-n", "2", "--", "sleep", "1000")
    up.until(lambda: up.state_of(first) == "RUNNING")
    second = up.submit("-n", "2", "--", "sleep", "1000")
    refused = up.run("update", second, "partition=urgnt")
    assert refused.exit_code == 1
    assert "did you mean 'urgent'?" in refused.output
    up.ok("update", second, "partition=urgent")
    up.until(lambda: (up.state_of(first), up.state_of(second)) == ("SUSPENDED", "RUNNING"))
    assert up.run("update", second, "partition=normal").exit_code == 1


def test_the_journal_replays_with_the_same_decisions(up: Site) -> None:
    """What starts, is suspended, goes on and ends, in this order; nothing is run again, nothing refused comes back.

    A job of a replay starts at once. So each lasts longer than what happens to it takes, how slow the machine may be.
    """
    submitted = {}
    loop = "echo ran >>{0}.runs; while [ ! -e {0} ]; do sleep 0.02; done"

    def submit(name: str, *options: str) -> str:
        began = time.monotonic()
        job: str = up.submit("-J", name, *options, "--", "sh", "-c", loop.format(name))
        submitted[job] = began
        return job

    def age(job: str) -> float:
        return time.monotonic() - submitted[job] + 0.5

    def outlasts(job: str, seconds: float) -> None:
        up.until(lambda: up.jobs()[job]["ran"] > seconds)

    def ends(name: str, job: str) -> None:
        (up.directory / name).touch()
        up.until(lambda: job not in up.jobs())

    low = submit("low", "-n", "2")
    up.until(lambda: up.state_of(low) == "RUNNING")
    small = submit("small")
    high = submit("high", "-n", "2", "-p", "urgent")
    up.until(lambda: (up.state_of(low), up.state_of(high)) == ("SUSPENDED", "RUNNING"))
    stopped_at = age(low)
    higher = submit("higher", "-p", "urgent")
    assert up.run("submit", "-p", "nowhere", "--", "true").exit_code == 1
    outlasts(high, age(high))
    ends("high", high)
    up.until(lambda: up.state_of(higher) == "RUNNING")
    ends("higher", higher)
    up.until(lambda: up.state_of(low) == "RUNNING")
    outlasts(low, stopped_at)
    ends("low", low)
    up.until(lambda: up.state_of(small) == "RUNNING")
    ends("small", small)
    up.ok("down")
    assert up.processes[-1].wait(60) == 0

    journal = up.state / "journal.db"
    with contextlib.closing(sqlite3.connect(journal)) as database:
        rows = database.execute("SELECT job, json_extract(data, '$.state') FROM lines WHERE kind = 'state'")
        lived = [row for row in rows.fetchall() if row[0] in (low, small, high, higher)]
    log = up.directory / "log.jsonl"
    up.ok("replay", str(up.config), str(journal), "--log", str(log))
    lines = [json.loads(text) for text in log.read_text().splitlines()]
    replayed = [(line["job"], line["state"]) for line in lines if line["kind"] == "state"]
    decided = ("RUNNING", "SUSPENDED", "COMPLETED")
    assert [each for each in replayed if each[1] in decided] == [each for each in lived if each[1] in decided]
    assert (low, "SUSPENDED") in replayed
    assert sorted(path.read_text() for path in up.directory.glob("*.runs")) == ["ran\n"] * 4
    told = up.ok("replay", str(up.config), str(journal), "--compare", "policy.preempt=lsf/queue")
    assert "4 jobs of journal.db" in told
    assert "policy.preempt=lsf/queue" in told
