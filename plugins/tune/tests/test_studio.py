"""``makeway studio``: who gets in, and what it answers."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest


@attrs.define
class Studio:
    """A server with its port, and the cookie of a browser."""

    url: str
    cookie: str = ""

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(urlsplit(self.url).port or 0)

    def asked(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Return status, headers and body of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = {name.replace("_", "-"): text for name, text in headers.items()}
            connection.request(method, path, None if body is None else json.dumps(body), given)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def own(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Ask as our own page does."""
        origin = f"http://127.0.0.1:{self.port}"
        status, _, text = self.asked(method, path, body, Cookie=self.cookie, Origin=origin)
        return status, json.loads(text)

    def until(self, done: Any) -> dict[str, Any]:
        """Return the state once something holds."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            _, state = self.own("GET", "/v1/state")
            if done(state):
                found: dict[str, Any] = state
                return found
            time.sleep(0.1)
        raise AssertionError(f"not within 300 s: {state}")


@pytest.fixture
def studio(conf: Path, log: Path) -> Iterator[Studio]:
    """A studio of the site that is known by hand."""
    command = [sys.executable, "-m", "makeway", "studio", str(conf), str(log), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Studio(process.stdout.readline().strip())
        finally:
            process.terminate()


def test_the_studio(studio: Studio) -> None:
    """Only the browser with the token gets in, others' pages change nothing, and what is asked for is done."""
    path = f"/?{urlsplit(studio.url).query}"
    assert studio.asked("GET", "/v1/state")[0] == 401
    assert studio.asked("GET", path, Host="evil.example")[0] == 403
    status, headers, _ = studio.asked("GET", path)
    assert status == 303
    assert {"HttpOnly", "SameSite=Strict"} <= set(headers["Set-Cookie"].split("; "))
    studio.cookie = headers["Set-Cookie"].partition(";")[0]
    assert studio.asked("GET", path)[0] == 401, "the token works once"
    own, runs = f"http://127.0.0.1:{studio.port}", "/v1/runs"
    for wrong in (
        {"Cookie": "makeway=guess"},
        {"Cookie": studio.cookie, "Origin": "http://evil.example"},
        {"Cookie": studio.cookie, "Origin": own, "Host": "evil.example"},
        {"Cookie": studio.cookie, "Origin": own, "Sec_Fetch_Site": "cross-site"},
        {"Cookie": studio.cookie},
    ):
        assert studio.asked("POST", runs, {}, **wrong)[0] in (401, 403), wrong
    status, headers, text = studio.asked("GET", "/", Cookie=studio.cookie)
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "<h1>makeway studio</h1>" in text

    assert studio.own("POST", runs, {"Prempt": "x"})[0] == 400
    status, found = studio.own("POST", runs, {"PartitionName=batch PreemptMode": "SOMETIMES"})
    assert (status, found["error"].partition(";")[0]) == (
        400,
        "PartitionName=batch PreemptMode: got 'SOMETIMES'",
    )
    assert studio.own("POST", runs, {"PartitionName=batch PreemptMode": "OFF"}) == (200, {"name": "B"})
    assert studio.own("POST", runs, {"PartitionName=batch PreemptMode": "OFF"}) == (200, {"name": "B"})
    assert studio.own("POST", "/v1/stories", {"run": "B", "job": "999"})[0] == 400
    assert studio.own("POST", "/v1/stories", {"run": "B", "job": "2"}) == (200, {"name": "B-1"})
    state = studio.until(
        lambda now: all(each["state"] == "done" for each in (*now["runs"], *now["stories"].values()))
    )
    today, off = state["runs"]
    lost = [
        next(one["value"] for one in each["figures"] if one["figure"] == "core-hours lost a day")
        for each in (today, off)
    ]
    # 40 minutes on 4 CPUs twelve times a day, and nothing where batch jobs are not touched.
    assert lost == [pytest.approx(32.0, rel=0.05), 0.0]
    assert "+PartitionName=batch" in off["diff"]
    assert "first start after" in state["stories"]["B-1"]["text"]
    status, headers, text = studio.asked("GET", "/runs/B", Cookie=studio.cookie)
    assert (status, "<title>" in text) == (200, True)
    assert studio.asked("GET", "/runs/../slurm.conf", Cookie=studio.cookie)[0] == 404
