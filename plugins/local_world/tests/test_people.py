"""Serve several people as root: each job has its owner's rights, and nobody else's."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway_local_world.commands.client import Daemon, Refused

Site = Any
ANN, BEN = 65534, 1
"""Users that every Linux has: nobody, and daemon."""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")


@pytest.fixture
def system(site: Site) -> Site:
    """Return a site whose daemon serves all people of the machine, with private queues."""
    site.directory.chmod(0o755)
    site.config.write_text(site.config.read_text() + "settings = { private = true }\n")
    site.environ["MAKEWAY_SOCKET"] = str(site.directory / "r/socket")
    site.up("--system")
    return site


def as_user(uid: int, work: Callable[[], Any]) -> Any:
    """Do something in a child with the rights of a user; return what it returns, by way of JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        told: dict[str, Any] = {}
        try:
            os.setgroups([])
            os.setgid(pwd.getpwuid(uid).pw_gid)
            os.setuid(uid)
            told["value"] = work()
        except Refused as error:
            told["refused"] = f"{error.status} {error}"
        except BaseException as error:
            told["error"] = repr(error)
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as stream:
        told = json.loads(stream.read())
    os.waitpid(child, 0)
    assert "error" not in told, told
    return told.get("refused", told.get("value"))


def of(site: Site, uid: int, method: str, *values: Any, **query: Any) -> Any:
    """Ask the daemon as a user."""
    return as_user(uid, lambda: getattr(Daemon(site.directory / "r/socket"), method)(*values, **query))


def test_jobs_have_the_rights_of_who_submitted_them(system: Site) -> None:
    """Owner of the process and of its log; groups of root are gone; what the request says of users is refused."""
    home = system.directory / "ann"
    home.mkdir()
    os.chown(home, ANN, pwd.getpwuid(ANN).pw_gid)
    body = {
        "command": ["sh", "-c", "id -u; id -G; sleep 600"],
        "cwd": str(home),
        "output": "out",
        "name": "secret",
    }
    job = of(system, ANN, "post", "/v1/jobs", body)["id"]
    log = home / "out"
    system.until(lambda: log.exists() and log.read_text().count("\n") == 2, "the output")
    assert log.read_text().split() == [str(ANN), str(pwd.getpwuid(ANN).pw_gid)]
    assert log.stat().st_uid == ANN
    assert of(system, BEN, "post", "/v1/jobs", body | {"uid": 0}).startswith("400 ")

    (seen,) = of(system, BEN, "get", "/v1/jobs")["jobs"]
    assert (seen["id"], seen["name"], seen["command"]) == (job, "", "")
    (own,) = of(system, ANN, "get", "/v1/jobs")["jobs"]
    assert own["name"] == "secret"
    answer = of(system, BEN, "post", "/v1/commands", {"verb": "cancel", "jobs": [job]})
    assert answer["refused"] == {job: "it belongs to nobody; only nobody and operators may do that"}
    assert of(system, BEN, "post", "/v1/commands", {"verb": "cancel", "all": True})["done"] == []
    assert of(system, BEN, "get", f"/v1/jobs/{job}/logs").startswith("409 ")
    assert of(system, BEN, "get", f"/v1/jobs/{job}/why").startswith("409 ")
    for route, what in (
        ("down", "end the daemon"),
        ("drain", "drain the machine"),
        ("reload", "change the config"),
    ):
        assert what in of(system, BEN, "post", f"/v1/{route}")
    assert of(system, BEN, "post", "/v1/jobs", {"command": ["true"], "priority": 9}).startswith("409 ")
    assert system.state_of(job) == "RUNNING"
    assert of(system, ANN, "post", "/v1/commands", {"verb": "cancel", "jobs": [job]})["done"] == [job]
    system.until(lambda: not system.jobs())


def test_the_state_is_nobody_elses(system: Site) -> None:
    """It holds the environments of all jobs."""
    secret = {
        "command": ["true"],
        "cwd": "/",
        "output": "/dev/null",
        "environment": {"PATH": "/bin", "TOKEN": "x"},
    }
    job = of(system, ANN, "post", "/v1/jobs", secret)["id"]
    stored = system.state / "jobs" / job / "submission.json"
    assert stored.stat().st_mode & 0o777 == 0o600

    def read() -> str:
        try:
            return Path(stored).read_text()
        except PermissionError:
            return "refused"

    assert as_user(BEN, read) == "refused"
    assert "TOKEN" not in json.dumps(of(system, 0, "get", f"/v1/jobs/{job}"))
