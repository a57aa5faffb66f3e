"""Bookings by hand (local-world 9): what they keep free, what makes way for them, and the calendar of a daemon."""

from __future__ import annotations

import os
import pwd
import signal
import time
from collections.abc import Mapping
from typing import Any

import pytest
from attacks import ANN, BEN

from makeway.config import Config
from makeway.errors import ConfigError
from makeway.model import JobSpec
from makeway.settings import structure
from makeway_app.replay import Run, replay

Site = Any


def machine(*bookings: Mapping[str, Any], **more: Any) -> Config:
    """Return a machine of 4 CPUs and 2 GPUs, with what is booked."""
    return structure(
        {
            "cluster": {"attributes": {"bookings": list(bookings)}},
            "node": [{"name": "here", "cpus": 4, "memory_mb": 4000, "gres": {"gpu": 2}}],
            "partition": [
                {"name": "normal", "default": True},
                {"name": "urgent", "priority_tier": 2, "preempt_mode": ["off"]},
            ],
            "policy": {
                "select": "select/cons_tres",
                "select_parameters": ["CR_Core"],
                "preempt": "preempt/partition_prio",
                "preempt_mode": ["suspend", "gang"],
                "plugins": ["limits/bookings", "preempt/gpu_requeue"],
            },
            "scheduler": {"type": "easy", **more},
        },
        Config,
        "test",
    )


ANNS = {"user": "ann", "gpus": 1, "cpus": 1, "start": 100.0, "end": 200.0}
"""One of the two GPUs."""


def gpu(id: str, user: str, at: float, run_time: float, limit: float | None, **more: Any) -> JobSpec:
    """Return a job with a GPU."""
    return JobSpec(
        id=id, user=user, submit_at=at, run_time=run_time, time_limit=limit, gres={"gpu": 1}, **more
    )


def starts(run: Run) -> dict[str, float | None]:
    """Return when each job last started."""
    found = run.summary()["jobs"]
    return {
        name: each["intervals"][-1]["start"] if each["intervals"] else None for name, each in found.items()
    }


def test_no_job_whose_limit_reaches_into_the_time_has_what_is_booked() -> None:
    """One GPU is not booked; on the other a job of 50 s is over in time, and one of 150 s waits for the end."""
    jobs = [
        gpu("other", "bob", 0, 400, 500),
        gpu("long", "bob", 10, 50, 150),
        gpu("short", "bob", 11, 50, 80),
        JobSpec(id="cpus", user="bob", submit_at=12, run_time=300, time_limit=500),
    ]
    run = replay(machine(ANNS), jobs)
    assert starts(run) == {"other": 0.0, "long": 200.0, "short": 11.0, "cpus": 12.0}
    assert starts(replay(machine(), jobs))["long"] == 10.0


def test_the_user_has_it_before_all_others_and_after_the_end_as_all_others() -> None:
    """Jobs of Ann pass one that came first and has a higher priority, which waits for the end of the booking."""
    jobs = [
        gpu("busy", "bob", 0, 300, 300),
        gpu("first", "bob", 110, 20, 150, priority=9000),
        gpu("anns", "ann", 120, 30, None),
        gpu("more", "ann", 121, 30, None),
    ]
    assert starts(replay(machine(ANNS), jobs)) == {"busy": 0.0, "anns": 120.0, "more": 150.0, "first": 200.0}


def test_nobody_takes_it_from_there() -> None:
    """An urgent job displaces the other one, whether Ann's job runs or not: then a GPU is idle, and stays so."""
    for run_time in (140, 90):
        jobs = [
            gpu("old", "bob", 0, 1000, None),
            gpu("anns", "ann", 50, run_time, None),
            gpu("urgent", "bob", 150, 10, 20, partitions=("urgent",)),
        ]
        run = replay(machine(ANNS), jobs)
        assert starts(run) == {"old": 160.0, "anns": 50.0, "urgent": 150.0}


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_job_lies_over_its_users_others_rather_than_on_what_is_booked(tasks: int) -> None:
    """One idle CPU is Ann's. Beside an old job of 3 or 2 CPUs none or one is left to Bob, who wants one more.

    So the old job is suspended from 10 to 30, and ends at 120 after its 100 s.
    """
    booked = {"user": "ann", "cpus": 1, "start": 0.0, "end": 500.0}
    jobs = [
        JobSpec(id="old", user="bob", submit_at=0, run_time=100, tasks=4 - tasks),
        JobSpec(id="urgent", user="bob", submit_at=10, run_time=20, tasks=tasks, partitions=("urgent",)),
    ]
    run = replay(machine(booked), jobs)
    assert starts(run) == {"old": 30.0, "urgent": 10.0}
    states = [
        (each["state"], each["start"], each["end"]) for each in run.summary()["jobs"]["old"]["intervals"]
    ]
    assert states == [("RUNNING", 0.0, 10.0), ("SUSPENDED", 10.0, 30.0), ("RUNNING", 30.0, 120.0)]


def test_a_job_lies_over_those_of_one_who_has_booked_less_than_they_hold() -> None:
    """Ann has booked one of four CPUs from 100 on, and her job without an end in time holds all of them already."""
    booked = {"user": "ann", "cpus": 1, "start": 100.0, "end": 200.0}
    jobs = [
        JobSpec(id="anns", user="ann", tasks=4, run_time=400),
        JobSpec(id="urgent", user="bob", submit_at=10, run_time=20, time_limit=150, partitions=("urgent",)),
    ]
    assert starts(replay(machine(booked), jobs)) == {"anns": 30.0, "urgent": 10.0}


def test_a_job_lies_over_no_other_where_that_leaves_too_little_of_what_is_booked() -> None:
    """Ann has booked two of the four CPUs that her jobs hold, so that Bob may have two: his next job waits for them."""
    booked = {"user": "ann", "cpus": 2, "start": 100.0, "end": 200.0}
    urgent: dict[str, Any] = {"user": "bob", "partitions": ("urgent",), "time_limit": 150}
    jobs = [
        *(JobSpec(id=f"ann{at}", user="ann", tasks=2, run_time=400) for at in range(2)),
        JobSpec(id="first", tasks=2, submit_at=10, run_time=120, **urgent),
        JobSpec(id="next", tasks=1, submit_at=11, run_time=20, **urgent),
    ]
    found = starts(replay(machine(booked), jobs))
    assert (found["first"], found["next"]) == (10.0, 130.0)


@pytest.mark.parametrize(("used", "last"), [(1, 0.0), (4, 220.0)])
def test_a_job_does_not_lie_over_those_who_have_booked(used: int, last: float) -> None:
    """All four CPUs are Ann's until 200, who uses one of them, or all."""
    booked = {"user": "ann", "cpus": 4, "start": 0.0, "end": 200.0}
    jobs = [
        JobSpec(id="anns", user="ann", submit_at=0, run_time=300, tasks=used),
        JobSpec(id="urgent", user="bob", submit_at=10, run_time=20, partitions=("urgent",)),
    ]
    assert starts(replay(machine(booked), jobs)) == {"anns": last, "urgent": 200.0}


def test_cpus_are_booked_likewise() -> None:
    """Two of four: of two jobs with two CPUs and no limit, one waits until 200, and Ann's starts at once."""
    booked = {"user": "ann", "cpus": 2, "start": 100.0, "end": 200.0}
    jobs = [
        JobSpec(id="old", user="bob", submit_at=0, run_time=500, tasks=2),
        JobSpec(id="new", user="bob", submit_at=1, run_time=500, tasks=2),
        JobSpec(id="anns", user="ann", submit_at=2, run_time=150, tasks=2),
    ]
    assert starts(replay(machine(booked), jobs)) == {"old": 0.0, "new": 200.0, "anns": 2.0}


def test_memory_is_booked_likewise() -> None:
    """3,000 of 4,000: 2,000 do not fit beside them, 1,000 do; a job that asks for none takes none; Ann's is first."""
    booked = {"user": "ann", "memory_mb": 3000, "start": 100.0, "end": 200.0}

    def of(id: str, user: str, at: float, run_time: float, mb: int | None) -> JobSpec:
        return JobSpec(id=id, user=user, submit_at=at, run_time=run_time, memory_mb_per_node=mb)

    jobs = [
        of("large", "bob", 10, 50, 2000),
        of("small", "bob", 11, 300, 1000),
        of("none", "bob", 12, 300, None),
        of("anns", "ann", 120, 50, 3000),
    ]
    assert starts(replay(machine(booked), jobs)) == {
        "large": 200.0,
        "small": 11.0,
        "none": 12.0,
        "anns": 120.0,
    }


def test_a_wrong_table_is_named() -> None:
    with pytest.raises(ConfigError, match=r"bookings\[0\].*gpu"):
        replay(machine({"user": "ann", "gpu": 1, "start": 0.0, "end": 1.0}), [])


# ------------------------------------------------------------------------------------ a daemon
def test_the_calendar_outlives_the_daemon_and_says_what_is_wrong(up: Site) -> None:
    """It is on the disk before it is answered; each mistake is one line."""
    assert "booking 1: 1 CPU from" in up.ok(
        "reserve", "--cpus", "1", "--from", "now+1hour", "--to", "now+2hours"
    )
    job = up.submit("--time", "90", "-c", "2", "--", "sleep", "600")
    up.until(lambda: up.jobs()[job]["reason"].startswith("booked by") or up.jobs()[job]["state"] == "RUNNING")
    up.processes[-1].send_signal(signal.SIGKILL)
    up.processes[-1].wait()
    up.up()
    for words, said in (
        (("--gpus", "1", "--from", "now", "--to", "now+1hour"), "got 1 GPU; this machine has 0"),
        (("--cpus", "1", "--from", "now+2hours", "--to", "now+1hour"), "before it begins"),
        (("--cpus", "1", "--from", "2026-01-01T10:00", "--to", "now+1hour"), "which has passed"),
        (("--cpus", "2", "--from", "now+1hour", "--to", "now+2hours"), "1 can be booked then: booked by"),
        (
            ("--mem", "5G", "--from", "now", "--to", "now+1hour"),
            "got 5120 MB of memory; this machine has 4000",
        ),
        (("--cancel", "7"), "there is no booking 7"),
    ):
        result = up.run("reserve", *words)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1), words
        assert said in result.stderr
    assert up.run("reserve", "--from", "now").exit_code == 2
    assert up.ok("reserve").splitlines()[1].split()[0] == "1"
    up.ok("reserve", "--cancel", "1")
    assert len(up.ok("reserve").splitlines()) == 1


def test_the_last_job_is_known_after_a_booking(up: Site) -> None:
    """The engine that heeds it counts jobs anew, and `why` means the one that was submitted last all the same."""
    for _ in range(3):
        up.ok("submit", "--wait", "-o", "/dev/null", "--", "true")
    up.ok("reserve", "--cpus", "1", "--from", "now+1hour", "--to", "now+2hours")
    job = up.submit("--", "true")
    assert up.ok("why").startswith(f"job {job} ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")
def test_users_have_limits_and_jobs_make_way(system: Site) -> None:
    """A user has three bookings, and cancels no other's; a job without a limit makes way once the time has come."""
    user = pwd.getpwuid(ANN).pw_name

    def book(uid: int, after: float, hours: float = 1.0, cpus: int = 1) -> Any:
        start = time.time() + after * 3600
        body = {"cpus": cpus, "start": start, "end": start + hours * 3600}
        return system.ask(uid, "post", "/v1/bookings", body)

    for number in (1, 2, 3):
        assert book(ANN, number)["id"] == number
    assert "user_bookings allows 3" in str(book(ANN, 4))
    assert "booking_limit allows 12" in str(book(BEN, 4, hours=13))
    assert f"belongs to {user}" in str(system.ask(BEN, "post", "/v1/bookings/1/cancel"))
    job = system.submit("-c", "2", "--", "sleep", "600")
    told = f"it waits: booked by {user} from "
    system.until(lambda: told in system.ok("why", job), told)
    for number in (1, 2, 3):
        system.ask(ANN, "post", f"/v1/bookings/{number}/cancel")
    system.until(lambda: system.state_of(job) == "RUNNING", "a start once nothing is booked")
    book(ANN, 0)
    body = {"command": ["/bin/sleep", "600"], "cwd": "/", "environment": {"PATH": "/bin"}, "key": "anns"}
    anns = system.ask(ANN, "post", "/v1/jobs", body)["id"]
    system.until(lambda: system.state_of(anns) == "RUNNING", "a start in the booking")
    found = system.jobs()[job]
    assert (found["state"], found["displaced"]["by"], found["displaced"]["how"]) == (
        "PENDING",
        anns,
        "requeue",
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")
def test_memory_is_given_back_by_who_makes_way(site: Site) -> None:
    """A suspended job would keep it, so it is requeued, though a CPU is free; the limit of memory is of one user's."""
    site.directory.chmod(0o755)
    settings = "settings = { booking_memory_mb = 3000 }\n"
    site.config.write_text(site.config.read_text().replace('"CR_Core"', '"CR_Core_Memory"') + settings)
    site.environ["MAKEWAY_SOCKET"] = str(site.directory / "r/socket")
    site.up("--system")
    old = site.submit("--mem", "3000", "--", "sleep", "600")
    site.until(lambda: site.state_of(old) == "RUNNING")
    now = time.time()
    body = {"memory_mb": 3001, "start": now, "end": now + 3600}
    assert "booking_memory_mb allows 3000" in str(site.ask(ANN, "post", "/v1/bookings", body))
    assert site.ask(ANN, "post", "/v1/bookings", {**body, "memory_mb": 2000})["memory_mb"] == 2000
    assert site.ok("reserve").splitlines()[1].split()[2:5] == ["0", "1", "2000M"]
    job = {"command": ["/bin/sleep", "600"], "cwd": "/", "environment": {"PATH": "/bin"}, "memory_mb": 2000}
    anns = site.ask(ANN, "post", "/v1/jobs", {**job, "key": "anns"})["id"]
    site.until(lambda: site.state_of(anns) == "RUNNING", "a start in the booking")
    assert site.jobs()[old]["displaced"]["how"] == "requeue"


def test_what_is_not_used_falls_back(site: Site) -> None:
    site.config.write_text(site.config.read_text() + "settings = { booking_unused = 0.5 }\n")
    site.up()
    site.ok("reserve", "--cpus", "2", "--from", "now", "--to", "now+1hour")
    site.until(lambda: len(site.ok("reserve").splitlines()) == 1)
