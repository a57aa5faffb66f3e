"""Many jobs at once, one's last job, and the place of a job that made way."""

from __future__ import annotations

import os
from typing import Any

import pytest
from attacks import ANN, BEN

from makeway_local_world.commands.queue import table
from makeway_local_world.commands.stats import by_user

Site = Any
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")


def test_jobs_are_meant_by_what_they_are_like(up: Site) -> None:
    """By partition, name and state, together or alone; what is named is not described as well."""
    blocker = up.submit("-n", "2", "-J", "blocker", "-p", "urgent", "--", "sleep", "600")
    up.until(lambda: up.state_of(blocker) == "RUNNING")
    normal = up.submit("-J", "a", "--", "true")
    urgent = up.submit("-J", "a", "-p", "urgent", "--", "true")
    either = up.submit("-J", "b", "-p", "normal,urgent", "--", "true")

    def held() -> set[str]:
        return {job["id"] for job in up.jobs().values() if job["held"]}

    up.ok("hold", "-p", "normal")
    assert held() == {normal, either}
    up.ok("release", "--user")
    assert held() == set()
    up.ok("hold", "-p", "urgent", "-J", "a", "--state", "pending")
    assert held() == {urgent}
    up.ok("suspend", "--state", "RUNNING")
    up.until(lambda: up.state_of(blocker) == "SUSPENDED")
    up.ok("resume", "-J", "blocker")
    up.ok("cancel", "-t", "pending")
    up.until(lambda: set(up.jobs()) == {blocker})
    result = up.run("hold", "--state", "runing")
    assert result.exit_code == 1
    assert "allowed: pending, running, suspended; did you mean 'running'?" in result.stderr
    for arguments in (("hold",), ("hold", blocker, "-p", "normal"), ("cancel", "--all", "-J", "a")):
        assert up.run(*arguments).exit_code == 2
    up.ok("cancel", "-p", "urgent")


@as_root
def test_nobody_means_jobs_of_others(system: Site) -> None:
    """Whatever a user says of the jobs that are meant, others' are left alone, and nothing is said of them."""
    body = {"command": ["sleep", "600"], "cwd": "/", "output": "/dev/null", "hold": True, "name": "same"}
    theirs = system.ask(ANN, "post", "/v1/jobs", body)["id"]
    for which in ({"partition": "normal"}, {"name": "same"}, {"state": "pending"}, {"user": "nobody"}):
        own = system.ask(BEN, "post", "/v1/jobs", body)["id"]
        answer = system.ask(BEN, "post", "/v1/commands", {"verb": "cancel", **which})
        assert answer == {"done": [] if "user" in which else [own], "refused": {}}
        assert system.jobs()[theirs]["held"]
    assert system.ask(ANN, "get", "/v1/last") == {"id": theirs}
    assert system.ask(BEN, "get", "/v1/last") == {"id": own}
    assert system.ask(0, "get", "/v1/last") == {"id": None}
    for wrong in ({"partition": 7}, {"name": "x" * 300}, {"state": "x" * 100}):
        assert system.ask(BEN, "post", "/v1/commands", {"verb": "cancel", **wrong}).startswith("400 ")


def test_without_an_id_the_last_job_is_meant(up: Site) -> None:
    """Also the last array, and also after its end."""
    result = up.run("why")
    assert result.exit_code == 1
    assert result.stderr == "makeway: you have submitted no job yet; name one\n"
    up.submit("--hold", "--", "true")
    last = up.submit("-o", "out", "--", "sh", "-c", "echo said; exit 4")
    assert up.run("wait").exit_code == 4
    assert up.ok("logs") == "said\n"
    assert up.ok("why").startswith(f"job {last} ")
    array = up.submit("-a", "0-1", "--hold", "--", "true")
    assert up.ok("why").startswith(f"array {array}")


def _job(name: str, task: int | None, **more: Any) -> dict[str, Any]:
    array = name if task is not None else None
    shown: dict[str, Any] = {
        "id": name if task is None else f"{name}_{task}",
        "array": array,
        "task": task,
        "name": "x",
    }
    shown |= {
        "partition": "normal",
        "user": "ann",
        "state": "PENDING",
        "word": "PENDING",
        "ran": 0.0,
        "cpus": 1,
    }
    shown |= {"gres": {}, "node_count": 1, "nodes": "", "reason": "Resources", "suspended_by": None}
    return shown | more


def test_an_array_that_waits_is_one_line() -> None:
    """As squeue(1) shows it; tasks that run, or wait for something else, have lines of their own."""
    running = {"state": "RUNNING", "word": "RUNNING", "nodes": "here", "reason": "None"}
    jobs = [_job("17", 0, **running), *(_job("17", task) for task in range(1, 2000))]
    jobs += [_job("17", 2000, reason="JobHeldUser"), _job("17", 2002), _job("18", None)]
    told = table({"at": 0.0, "jobs": jobs})
    assert [line.split()[0] for line in told] == ["JOBID", "17_0", "17_[1-1999,2002]", "17_[2000]", "18"]
    assert len(table({"at": 0.0, "jobs": jobs}, tasks=True)) == 1 + len(jobs)


def test_gpus_have_a_column_where_jobs_want_any() -> None:
    """How many a job has or wants, and which it has."""
    two = [{"index": 0, "uuid": "GPU-a"}, {"index": 3, "uuid": "GPU-b"}]
    has = _job("1", None, gres={"gpu": 2}, gpus=two, state="RUNNING", word="RUNNING")
    head, *rows = table({"at": 0.0, "jobs": [has, _job("2", None, gres={"gpu:a100": 1}), _job("3", None)]})
    at = head.index("GPUS")
    assert [row[at : at + 8].strip() for row in rows] == ["2 (0,3)", "1", ""]
    assert "GPUS" not in table({"at": 0.0, "jobs": [_job("3", None)]})[0]


def test_a_job_that_made_way_keeps_its_place(site: Site) -> None:
    """It goes before those that came later; without the key it stands behind them, as in Slurm since 24.05.5."""
    text = site.config.read_text().replace('"suspend", "gang"', '"requeue"')
    kept = "rules = { requeue_keeps_priority = true }\n"
    site.config.write_text(text.replace("[scheduler]\n", f"[scheduler]\n{kept}"))
    site.up()
    victim = site.submit("-n", "2", "--", "sleep", "600")
    site.until(lambda: site.state_of(victim) == "RUNNING")
    later = site.submit("-n", "2", "--", "true")
    urgent = site.submit("-p", "urgent", "-n", "2", "--", "sleep", "600")
    site.until(lambda: site.state_of(urgent) == "RUNNING" and site.state_of(victim) == "PENDING")
    assert "before it in the queue" not in site.ok("why", victim)
    assert f"before it in the queue: job {victim}" in site.ok("why", later)


def test_what_a_waiting_job_asks_for_is_changed(site: Site) -> None:
    """Name, memory, begin, and what it waits for; the next daemon knows it all."""
    daemon = site.up()
    blocker = site.submit("-n", "2", "--", "sleep", "600")
    site.until(lambda: site.state_of(blocker) == "RUNNING")
    job = site.submit("--", "true")
    site.ok("update", job, "name=other", "mem=1G")
    shown = site.jobs()[job]
    assert (shown["name"], shown["memory_mb"]) == ("other", 1024)
    site.ok("update", job, f"dependency=afternotok:{blocker}")
    assert site.jobs()[job]["reason"] == "Dependency"
    daemon.kill()
    daemon.wait()
    site.up()
    shown = site.until(lambda: site.jobs()[job] if site.jobs()[job]["reason"] == "Dependency" else None)
    assert (shown["name"], shown["memory_mb"], shown["after"]) == ("other", 1024, [f"afternotok:{blocker}"])
    for change, says in (
        ("dependency=afterok:99", "there is no job 99"),
        (f"dependency=afterok:{job}", "it would wait for itself"),
        ("dependency=soon:1", "got 'soon:1'; allowed"),
        ("mem=9999G", "memory_mb: "),
        ("gpus=1", "gpus: "),
        ("name=", "allowed: 1 to 255"),
        ("nmae=x", "did you mean 'name'?"),
    ):
        result = site.run("update", job, change)
        assert result.exit_code == 1, change
        assert says in result.stderr, result.stderr
    site.ok("update", job, "dependency=")
    assert not site.jobs()[job]["held"]
    site.ok("update", job, "begin=now+1hour")
    site.ok("cancel", blocker)
    site.until(lambda: set(site.jobs()) == {job})
    assert site.jobs()[job]["reason"] == "BeginTime"
    site.ok("update", job, "begin=now")
    assert site.run("wait", job).exit_code == 0
    assert site.run("update", job, "name=late").exit_code == 1


@as_root
def test_nobody_changes_jobs_of_others(system: Site) -> None:
    """Each field of an update is for owners and operators."""
    body = {"command": ["true"], "cwd": "/", "output": "/dev/null", "hold": True}
    theirs = system.ask(ANN, "post", "/v1/jobs", body)["id"]
    before = system.jobs()[theirs]
    for field, value in {"name": "x", "mem": "1", "gpus": "0", "begin": "1", "dependency": ""}.items():
        order = {"verb": "update", "jobs": [theirs], "changes": {field: value}}
        answer = system.ask(BEN, "post", "/v1/commands", order)
        assert answer["done"] == []
        assert "only nobody and operators may do that" in answer["refused"][theirs]
    assert system.jobs()[theirs] == before | {"priority": 0}


def test_what_users_come_to() -> None:
    """Counted by hand: 2 CPUs for half an hour, and one with 4 GPUs for a quarter; one never started."""
    job = {"user": "ann", "state": "COMPLETED", "ran": 1800.0, "cpus": 2, "gres": {}, "node_count": 1}
    job |= {"lost": 900.0, "suspended": 60.0, "requeues": 1, "submitted_at": 100.0, "started_at": 130.0}
    large = job | {"user": "ben", "ran": 900.0, "cpus": 8, "gres": {"gpu:a100": 4}, "requeues": 0}
    never = job | {
        "state": "CANCELLED",
        "ran": 0.0,
        "started_at": None,
        "lost": 0.0,
        "suspended": 0.0,
        "requeues": 0,
    }
    found = by_user([job, large, never])
    assert list(found) == ["ben", "ann"]
    assert found["ann"] == {
        "jobs": 2,
        "bad": 1,
        "cpu_hours": 1.0,
        "lost": 0.5,
        "gpu_hours": 0.0,
        "stopped": 60.0,
        "requeues": 1,
        "wait": 30.0,
    }
    assert (found["ben"]["cpu_hours"], found["ben"]["gpu_hours"]) == (2.0, 1.0)
