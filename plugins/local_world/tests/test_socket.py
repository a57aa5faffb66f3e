"""Ask the daemon directly, as other programs and as attackers do."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import resource
import socket
from pathlib import Path
from typing import Any

import pytest
from attacks import ANN, as_user

from makeway.errors import ConfigError
from makeway_local_world.commands.client import Daemon
from makeway_local_world.daemon import describing, people
from makeway_local_world.daemon.people import Rules, veil
from makeway_local_world.places import Places, make_private
from makeway_local_world.reach import PlaceError, check_owned, short

Site = Any


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        with short(self.path) as name:
            self.sock.connect(name)


def asked(
    site: Site, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, dict[str, Any]]:
    """Return status and answer of a request to the daemon's socket."""
    connection = _Connection(site.state / "socket")
    try:
        connection.request(
            method, path, body, {name.replace("_", "-"): text for name, text in headers.items()}
        )
        answer = connection.getresponse()
        raw = answer.read()
        return answer.status, json.loads(raw) if raw[:1] == b"{" else {}
    finally:
        connection.close()


def test_the_description_is_what_is_offered() -> None:
    """After a change: python -m makeway_local_world.daemon.describing."""
    path = Path(describing.__file__).with_name("openapi.json")
    assert path.read_text() == describing.text()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        pytest.param("POST", "/v1/jobs", b"{", 400, id="half an object"),
        pytest.param("POST", "/v1/jobs", b"[1]", 400, id="a list"),
        pytest.param("POST", "/v1/jobs", b"[" * 100_000, 400, id="nested without end"),
        pytest.param("POST", "/v1/jobs", b'{"command": ["true"], "uid": 0}', 400, id="uid spoofing"),
        pytest.param("POST", "/v1/jobs", b'{"command": ["true"], "user": "root"}', 400, id="user spoofing"),
        pytest.param("POST", "/v1/jobs", b'{"command": "true"}', 400, id="text for a list"),
        pytest.param("POST", "/v1/jobs", b'{"command": ["true"], "tasks": 1e400}', 400, id="infinite"),
        pytest.param(
            "POST", "/v1/jobs", b'{"command": ["true"], "cwd": "here"}', 400, id="relative directory"
        ),
        pytest.param("POST", "/v1/jobs", b'{"command": ["tr\\u0000ue"]}', 400, id="NUL"),
        pytest.param(
            "POST", "/v1/jobs", b'{"command": ["true"], "array": "0-9999999"}', 400, id="huge array"
        ),
        pytest.param("POST", "/v1/jobs", b"\xff\xfe", 400, id="no UTF-8"),
        pytest.param("POST", "/v1/commands", b'{"verb": 1}', 400, id="verb is a number"),
        pytest.param("POST", "/v1/commands", b'{"verb": "cancel", "jobs": [[]]}', 400, id="job is a list"),
        pytest.param("GET", "/v1/jobs/..%2f..%2fetc%2fpasswd", b"", 404, id="path for a job"),
        pytest.param("GET", "/v1/jobs/..%2f..%2fetc/logs", b"", 404, id="path for a log"),
        pytest.param("GET", "/v1/events?after=soon", b"", 400, id="odd sequence number"),
        pytest.param("GET", "/v1/history?since=nan", b"", 400, id="NaN"),
        pytest.param("POST", "/v1/reload", b'{"config": "node = 3"}', 400, id="wrong configuration"),
        pytest.param("DELETE", "/v1/jobs", b"", 405, id="wrong method"),
        pytest.param("GET", "/nowhere", b"", 404, id="wrong path"),
    ],
)
def test_malformed_requests_get_one_clear_answer(
    shared: Site, method: str, path: str, body: bytes, status: int
) -> None:
    found, answer = asked(shared, method, path, body)
    assert found == status, answer
    assert status < 400 or answer["error"]
    assert not shared.jobs()


def test_a_request_that_is_too_large_is_refused(shared: Site) -> None:
    """Before it is read as a whole: the daemon may close the connection while it still comes."""
    with contextlib.suppress(ConnectionError):
        status, _ = asked(shared, "POST", "/v1/jobs", b" " * (17 << 20))
        assert status == 413
    assert asked(shared, "GET", "/v1/daemon")[0] == 200


def test_odd_headers_change_nothing_about_who_asks(shared: Site) -> None:
    headers = {"X_Forwarded_User": "root", "Authorization": "Basic cm9vdDo=", "X_Remote_Uid": "0"}
    status, answer = asked(shared, "GET", "/v1/daemon", b"", **headers)
    assert status == 200
    assert answer["control"]


def test_silent_connections_do_not_shut_others_out(shared: Site) -> None:
    """A thousand of them, if this process may open as many: the oldest are closed, and commands are answered."""
    silent: list[socket.socket] = []
    path = str(shared.state / "socket")
    try:
        for _ in range(min(1000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 300)):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            silent.append(connection)
            connection.settimeout(30)
            shared.until(lambda: connection.connect_ex(path) in (0, errno.EISCONN), "a connection")  # noqa: B023
        assert asked(shared, "GET", "/v1/daemon")[0] == 200
    finally:
        for connection in silent:
            connection.close()
    assert asked(shared, "GET", "/v1/daemon")[0] == 200


def test_half_a_request_does_not_hold_up_others(shared: Site) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(shared.state / "socket"))
        connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Len")
        assert asked(shared, "GET", "/v1/daemon")[0] == 200


def test_the_stream_goes_on_from_a_sequence_number(up: Site) -> None:
    """Whoever was cut off gets each step once, in order, with the number that the journal gave it."""
    job = up.submit("--", "true")
    up.ok("wait", job)
    server = Daemon(up.state / "socket")
    whole = list(server.events(0, follow=False))
    assert [line["state"] for each in whole for line in each["data"]["lines"] if line["kind"] == "state"] == [
        "PENDING",
        "RUNNING",
        "COMPLETED",
    ]
    numbers = [each["id"] for each in whole]
    assert numbers == sorted(set(numbers))
    assert list(server.events(numbers[0], follow=False)) == whole[1:]


# --------------------------------------------------------------------------------------- people
def test_who_may_do_what(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owner, root and operators everything; private queues hide names and commands."""
    names = {0: "root", 1: "ann", 2: "ben", 3: "op"}
    monkeypatch.setattr(people, "name_of", lambda uid: names[uid])
    monkeypatch.setattr(people, "_is_member", lambda name, uid, group: (name, group) == ("ben", "staff"))
    rules = Rules(system=True, operators=("op",), private=True, owner=0)
    assert rules.may_change(1, "ann")
    assert not rules.may_change(2, "ann")
    assert rules.may_change(3, "ann")
    assert rules.may_change(0, "ann")
    assert Rules(system=True, operators=("@staff",), owner=0).may_change(2, "ann")
    job = {"id": "1", "user": "ann", "name": "secret", "command": "train --key=x", "cpus": 4}
    assert veil(rules, 2, [job]) == [{"id": "1", "user": "ann", "name": "", "command": "", "cpus": 4}]
    assert veil(rules, 1, [job]) == [job]
    own = Rules(system=False, owner=1)
    assert own.may_connect(1)
    assert own.may_connect(0)
    assert not own.may_connect(2)


def test_operators_have_to_exist() -> None:
    with pytest.raises(ConfigError, match="no group named 'nobody-has-this'"):
        Rules(system=True, operators=("@nobody-has-this",)).check_operators("cluster.toml")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_gets_no_answer_from_a_daemon_of_ones_own(up: Site) -> None:
    """Even if the directories let him in: the kernel says who asks."""
    for path in (up.directory, up.state):
        path.chmod(0o755)
    (up.state / "socket").chmod(0o666)
    status, answer = as_user(ANN, lambda: asked(up, "POST", "/v1/jobs", b'{"command": ["true"]}'))
    assert (status, answer["error"]) == (403, "this daemon serves its own user only")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_foreign_socket_is_not_trusted(tmp_path: Path) -> None:
    """Somebody made the directory first, as anybody can in /tmp."""
    theirs = tmp_path / "makeway-0"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 65534, 65534)
    with pytest.raises(PlaceError, match="it belongs to user 65534"):
        make_private(theirs)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(PlaceError, match="links are not followed"):
        make_private(link)
    mine = tmp_path / "mine"
    mine.mkdir()
    mine.chmod(0o777)
    with pytest.raises(PlaceError, match="others may write to it"):
        check_owned(mine)


def test_paths_longer_than_a_socket_may_have_are_reached(tmp_path: Path) -> None:
    """107 bytes is the longest path of a socket."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with short(deep / "socket") as name:
            listener.bind(name)
        listener.listen()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, short(deep / "socket") as name:
            client.connect(name)


@pytest.mark.parametrize(
    ("environ", "state", "socket_path"),
    [
        pytest.param(
            {"HOME": "/h"}, "/h/.local/state/makeway", "/h/.local/state/makeway/socket", id="no login session"
        ),
        pytest.param(
            {"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/7"},
            "/h/.local/state/makeway",
            "/run/user/7/makeway/socket",
            id="login session",
        ),
        pytest.param({"HOME": "/h", "MAKEWAY_STATE": "/s"}, "/s", "/s/socket", id="named state"),
    ],
)
def test_where_a_daemon_lives(environ: dict[str, str], state: str, socket_path: str) -> None:
    """6.1."""
    places = Places.find(environ=environ)
    assert (str(places.state), str(places.socket)) == (state, socket_path)
