"""Serve several people as root: each job has its owner's rights, and nobody else's."""

from __future__ import annotations

import json
import os
import pwd
from typing import Any

import pytest
from attacks import ANN, BEN, as_user

Site = Any
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")


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
    job = system.ask(ANN, "post", "/v1/jobs", body)["id"]
    log = home / "out"
    system.until(lambda: log.exists() and log.read_text().count("\n") == 2, "the output")
    assert log.read_text().split() == [str(ANN), str(pwd.getpwuid(ANN).pw_gid)]
    assert log.stat().st_uid == ANN
    assert system.ask(BEN, "post", "/v1/jobs", body | {"uid": 0}).startswith("400 ")

    (seen,) = system.ask(BEN, "get", "/v1/jobs")["jobs"]
    assert (seen["id"], seen["name"], seen["command"]) == (job, "", "")
    (own,) = system.ask(ANN, "get", "/v1/jobs")["jobs"]
    assert own["name"] == "secret"
    answer = system.ask(BEN, "post", "/v1/commands", {"verb": "cancel", "jobs": [job]})
    assert answer["refused"] == {job: "it belongs to nobody; only nobody and operators may do that"}
    assert system.ask(BEN, "post", "/v1/commands", {"verb": "cancel", "all": True})["done"] == []
    assert system.ask(BEN, "get", f"/v1/jobs/{job}/logs").startswith("409 ")
    assert system.ask(BEN, "get", f"/v1/jobs/{job}/why").startswith("409 ")
    for route, what in (
        ("down", "end the daemon"),
        ("drain", "drain the machine"),
        ("reload", "change the config"),
    ):
        assert what in system.ask(BEN, "post", f"/v1/{route}")
    assert system.ask(BEN, "post", "/v1/jobs", {"command": ["true"], "priority": 9}).startswith("409 ")
    refused = system.ask(BEN, "post", "/v1/jobs", {"command": ["true"], "attributes": {"site_factor": "9"}})
    assert "attribute site_factor: allowed by world.settings.attributes: none; operators any" in refused
    assert system.state_of(job) == "RUNNING"
    assert system.ask(ANN, "post", "/v1/commands", {"verb": "cancel", "jobs": [job]})["done"] == [job]
    system.until(lambda: not system.jobs())


def test_the_state_is_nobody_elses(system: Site) -> None:
    """It holds the environments of all jobs."""
    secret = {
        "command": ["true"],
        "cwd": "/",
        "output": "/dev/null",
        "environment": {"PATH": "/bin", "TOKEN": "x"},
    }
    job = system.ask(ANN, "post", "/v1/jobs", secret)["id"]
    stored = system.state / "jobs" / job / "submission.json"
    assert stored.stat().st_mode & 0o777 == 0o600
    assert as_user(BEN, stored.read_text) == "Permission denied"
    assert "TOKEN" not in json.dumps(system.ask(0, "get", f"/v1/jobs/{job}"))
