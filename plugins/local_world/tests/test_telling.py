"""Users are told of what happens to their jobs, by programs of their own and with their own rights."""

from __future__ import annotations

import http.server
import json
import os
import pwd
import threading
from pathlib import Path
from typing import Any

import pytest

from makeway_local_world import telling

Site = Any
SENDMAIL = """#!/bin/sh
cat >> "{folder}/mail"; echo "to: $*" >> "{folder}/mail"
"""


def _events(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_each_event_is_told_once(up: Site) -> None:
    """A victim begins, is suspended, goes on and ends; one that fails says so; one that is requeued, too."""
    log = up.directory / "told"
    body = {
        "command": ["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"],
        "cwd": str(up.directory),
        "cpus_per_task": 2,
        "tell": f'echo "$MAKEWAY_JOB_ID $MAKEWAY_EVENT $MAKEWAY_EXIT" >> {log}',
        "tell_at": ["begin", "end", "fail", "requeue", "suspend", "resume"],
        "environment": {"PATH": os.environ["PATH"]},
    }
    victim = up.ask(os.getuid(), "post", "/v1/jobs", body)["id"]
    up.until(lambda: _events(log) == [f"{victim} begin "])
    urgent = up.submit("-p", "urgent", "-n", "2", "--", "sleep", "600")
    up.until(lambda: _events(log)[1:] == [f"{victim} suspend "])
    up.ok("cancel", urgent)
    up.until(lambda: _events(log)[2:] == [f"{victim} resume "])
    (up.directory / "go").touch()
    assert up.run("wait", victim).exit_code == 0
    assert _events(log)[3:] == [f"{victim} end 0:0"]
    log.unlink()
    failing = {**body, "command": ["sh", "-c", "exit 3"], "tell_at": ["fail"]}
    failed = up.ask(os.getuid(), "post", "/v1/jobs", failing)["id"]
    assert up.run("wait", failed).exit_code == 3
    assert _events(log) == [f"{failed} fail 3:0"]
    log.unlink()
    waiting = {**body, "command": ["sleep", "600"], "tell_at": ["requeue"]}
    again = up.ask(os.getuid(), "post", "/v1/jobs", waiting)["id"]
    up.until(lambda: up.state_of(again) == "RUNNING")
    up.ok("requeue", again)
    up.until(lambda: [line.split()[:2] for line in _events(log)] == [[again, "requeue"]])


def test_mail_and_webhook(up: Site) -> None:
    """The mail program is found by the job's own PATH; a name adds no headers; a webhook gets JSON."""
    got: list[dict[str, Any]] = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # as its base class has it
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *values: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    program = up.directory / "sendmail"
    program.write_text(SENDMAIL.format(folder=up.directory))
    program.chmod(0o755)
    up.environ |= {"PATH": f"{up.directory}:{os.environ['PATH']}", "no_proxy": "*"}
    try:
        hook = f"http://127.0.0.1:{server.server_port}/"
        options = ["--mail-type", "END", "--mail-user", "ann@example.org", "--webhook", hook]
        job = up.submit(*options, "-J", "Bcc: eve@example.org", "--", "true")
        assert up.run("wait", job).exit_code == 0
    finally:
        server.shutdown()
        server.server_close()
    assert [(each["event"], each["job"], each["exit"]) for each in got] == [("end", job, "0:0")]
    sent = (up.directory / "mail").read_text()
    assert "To: ann@example.org" in sent
    assert f"job {job}" in sent
    assert not [line for line in sent.splitlines() if line.lower().startswith("bcc:")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")
def test_it_runs_with_the_rights_of_the_owner(system: Site) -> None:
    ann = pwd.getpwnam("daemon")
    home = system.directory / "home"
    home.mkdir()
    os.chown(home, ann.pw_uid, -1)
    body = {
        "command": ["true"],
        "cwd": str(home),
        "output": "log",
        "tell": "id -u >> told; id -g >> told",
        "tell_at": ["begin", "end"],
        "environment": {"PATH": "/usr/bin:/bin"},
    }
    job = str(system.ask(ann.pw_uid, "post", "/v1/jobs", body)["id"])
    system.until(lambda: system.ask(ann.pw_uid, "get", f"/v1/jobs/{job}").get("ended_at"))
    lines = sorted(set((home / "told").read_text().split()))
    assert lines == sorted({str(ann.pw_uid), str(ann.pw_gid)})
    assert (home / "told").stat().st_uid == ann.pw_uid


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mail-type", "SOON"], "allowed: BEGIN, END, FAIL, REQUEUE, SUSPEND, RESUME, ALL, NONE"),
        (["--mail-type", "END", "--mail-user", "a b"], "allowed: one address"),
        (["--webhook", "file:///etc/passwd"], "begins with http:// or https://"),
    ],
)
def test_what_cannot_be_told(site: Site, options: list[str], said: str) -> None:
    result = site.run("submit", *options, "--", "true")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_a_way_that_fails_keeps_no_other_from_being_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(telling, "show", lambda told: seen.append(str(told["text"])))
    monkeypatch.setenv("MAKEWAY_EVENT", "requeue")
    monkeypatch.setenv("MAKEWAY_JOB_ID", "7")
    monkeypatch.setattr("sys.argv", ["telling", "--webhook", "ftp://example.org", "--desktop"])
    assert telling.main() == 1
    assert "job 7 () makes way and waits again" in seen[0]
    assert "allowed: http://" in capsys.readouterr().err


def test_a_notice_that_could_not_be_given_is_shown(up: Site) -> None:
    """The job is not touched by that; `why` says what stood in the way."""
    body = {
        "command": ["true"],
        "cwd": "/",
        "output": "/dev/null",
        "tell": "echo no way there >&2; exit 1",
        "tell_at": ["end"],
        "environment": {"PATH": os.environ["PATH"]},
    }
    job = up.ask(os.getuid(), "post", "/v1/jobs", body)["id"]
    assert up.run("wait", str(job)).exit_code == 0
    assert "a notice could not be given: end: no way there\n" in up.ok("why", str(job))
