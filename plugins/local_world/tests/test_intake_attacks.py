"""Attack a system's daemon as a second user, by raw bytes and at random; it answers, and serves others meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attacks
import pytest
from attacks import ANN, BEN, as_user, error_of, raw, request, status_of, submission
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

Site = Any
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")
GOOD = {200, 201, 202, 303}
REFUSED = {400, 401, 403, 404, 405, 408, 409, 411, 413, 414, 415, 417, 429, 431, 501, 505}
"""What a wrong request may be answered with; 500 and 507 are defects."""
AT_ONCE = 24
"""Requests on their way at once when they are drawn."""


@pytest.fixture(scope="module")
def served(crowded: Site) -> Iterator[Path]:
    """Return the socket of a daemon that serves all people; afterwards it still does."""
    yield crowded.directory / "r/socket"
    assert all(process.poll() is None for process in crowded.processes), crowded.log()
    log = crowded.log()
    assert "internal error" not in log, log[-5000:]
    assert "Traceback" not in log, log[-5000:]


def get(route: str, headers: bytes = b"") -> bytes:
    """Return a request that only looks."""
    return request("GET", route, headers=headers)


def post(body: bytes, route: str = "/v1/jobs", headers: bytes = b"") -> bytes:
    """Return a request that changes something."""
    return request("POST", route, body, headers=headers)


def chunked(body: bytes, *, end: bytes = b"0\r\n\r\n") -> bytes:
    """Return a submission in pieces."""
    pieces = b"".join(
        b"%x\r\n%s\r\n" % (len(body[at : at + 7]), body[at : at + 7]) for at in range(0, len(body), 7)
    )
    return request("POST", "/v1/jobs", headers=b"Transfer-Encoding: chunked\r\n") + pieces + end


RAW: dict[str, bytes | Callable[[], bytes]] = {
    "chunked and right": chunked(submission()),
    "chunked without a size": chunked(b"{}", end=b"zz\r\n\r\n"),
    "a chunk of a huge size": request("POST", "/v1/jobs", headers=b"Transfer-Encoding: chunked\r\n")
    + b"ffffffffffffffff\r\n{}",
    "chunks and a length": request("POST", "/v1/jobs", b"{}", headers=b"Transfer-Encoding: chunked\r\n"),
    "two lengths": request("POST", "/v1/jobs", b"{}", headers=b"Content-Length: 3\r\n"),
    "a negative length": request("POST", "/v1/jobs", b"{}", size=-1),
    "a length of 400 digits": b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: "
    + b"9" * 400
    + b"\r\n\r\n",
    "a length beyond all": request("POST", "/v1/jobs", b"{}", size=1 << 40),
    "pipelined": get("/v1/daemon") * 2000,
    "pipelined submissions": post(submission()) * 50,
    "a thousand headers": get("/v1/daemon", b"X-A: b\r\n" * 1000),
    "a header of 1 MB": get("/v1/daemon", b"X-A: " + b"b" * 1_000_000 + b"\r\n"),
    "a header without a colon": get("/v1/daemon", b"nonsense\r\n"),
    "a header with NUL": get("/v1/daemon", b"X-A: a\0b\r\n"),
    "a folded header": get("/v1/daemon", b"X-A: a\r\n b\r\n"),
    "a URL of 1 MB": get("/v1/jobs/" + "1" * 1_000_000),
    "a query of 1 MB": get("/v1/jobs?user=" + "a" * 1_000_000),
    "a thousand names in a query": get("/v1/jobs?" + "&".join(f"a{at}=1" for at in range(700))),
    "a name twice in a query": get("/v1/jobs?user=a&user=b"),
    "percent and nothing": get("/v1/jobs/%"),
    "percent and no UTF-8": get("/v1/jobs/%ff%fe"),
    "NUL in a path": get("/v1/jobs/1%00"),
    "a token that is no ASCII": get("/?token=%C3%A9"),
    "another scheme": get("http://elsewhere/v1/daemon"),
    "no path": b"GET  HTTP/1.1\r\nHost: x\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,
    "HTTP/9": b"GET /v1/daemon HTTP/9.9\r\nHost: x\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an upgrade": get("/v1/daemon", b"Connection: Upgrade\r\nUpgrade: websocket\r\n"),
    "CONNECT": b"CONNECT example:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    "TRACE": request("TRACE", "/v1/daemon"),
    "an unknown method": request("BREW", "/v1/jobs"),
    "a body that is gzip": post(b"\x1f\x8b" + b"\0" * 50, headers=b"Content-Encoding: gzip\r\n"),
    "an unknown charset": post(submission(), headers=b"Content-Type: application/json; charset=rot13\r\n"),
    "UTF-16": post(submission().decode().encode("utf-16")),
    "forms": post(b"--x\r\n\r\n--x--", headers=b"Content-Type: multipart/form-data; boundary=x\r\n"),
    "expectations": post(submission(), headers=b"Expect: the-unexpected\r\n"),
    "a range": get("/v1/openapi.json", b"Range: bytes=0-1,5-999999999999999999\r\n"),
    "an odd event id": get("/v1/events?follow=0", b"Last-Event-ID: \xff\r\n"),
    "an event id of 400 digits": get("/v1/events?follow=0", b"Last-Event-ID: " + b"9" * 400 + b"\r\n"),
    "an event id below zero": get("/v1/events?follow=0&after=-5"),
    "odd cookies": get("/v1/daemon", b'Cookie: a="\\377"; =; ;;\r\n'),
    "8 MB of brackets": lambda: post(b"[" * (8 << 20)),
    "8 MB of lists": lambda: post(b"[" + b"[]," * 2_700_000 + b"0]"),
    "8 MB of escapes": lambda: post(b'{"name":"' + b"\\n" * 4_000_000 + b'"}'),
    "9 MB": lambda: post(b" " * (9 << 20)),
    "50,000 unknown keys": lambda: post(json.dumps({f"k{at}": 1 for at in range(15_000)}).encode()),
    "a dependency on itself": post(submission(dependency="afterok:99999999")),
    "10^6 dependencies": lambda: post(submission(dependency="afterok:" + ":".join(["1"] * 1_000_000))),
    "a million partitions": lambda: post(submission(partitions=["normal"] * 1_000_000)),
    "40 partitions": post(submission(partitions=[f"p{at}" for at in range(40)])),
    "a begin in the year 5138": post(submission(begin=1e11)),
    "an array with steps": post(submission(array="0-100:7%3")),
    "an array of 10^6": post(submission(array="0-999999")),
    "an array, and dependencies": post(
        submission(array="0-1999", dependency="after:" + ":".join(["1"] * 900))
    ),
    "more CPUs than there are": post(submission(cpus_per_task=1_000_000, tasks=1_000_000)),
    "gres of odd names": post(submission(gres={"\u2067gpu": 1})),
    "a limit of a licence": post(submission(licenses={"a" * 255: 10**9})),
    "a deep constraint": post(submission(features="(" * 999)),
    "a long constraint": post(submission(features="a" + "&a" * 499)),
    "a signal": post(submission(signal="\u0660@\u0661")),
    "an order to nobody": post(b'{"verb": "cancel", "jobs": ["\\ud800"]}', "/v1/commands"),
    "10,000 orders": lambda: post(
        json.dumps({"verb": "hold", "jobs": ["1"] * 10_000}).encode(), "/v1/commands"
    ),
    "a change of odd digits": post(
        '{"verb": "update", "jobs": ["1"], "changes": {"priority": "\u00b2", "nice": "--5"}}'.encode(),
        "/v1/commands",
    ),
    "a reload by anybody": post(b'{"config": "node = 3"}', "/v1/reload"),
    "a drain by anybody": post(json.dumps({"reason": "\x1b"}).encode(), "/v1/drain"),
    "a port that is no number": post(b'{"port": true}', "/v1/web"),
}


@pytest.mark.parametrize("name", RAW)
def test_raw_requests(served: Path, name: str) -> None:
    """Each is answered, or the connection is closed; nothing is a fault of the daemon's."""
    data = RAW[name]

    def attack() -> list[Any]:
        time.sleep(0.1)
        answer = raw(served, data() if callable(data) else data, half=True)
        return [status_of(answer), error_of(answer)]

    status, told = as_user(ANN, attack)
    assert status in GOOD | REFUSED | {0}, (status, told)
    assert status < 400 or told or status in (400, 405, 417, 501), "a refusal says why"
    assert len(told) < 50_000
    assert status_of(as_user(BEN, lambda: raw(served, get("/v1/daemon")).decode()).encode()) == 200


# ------------------------------------------------------------------------------------- at random
_NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(10**30), 10**30),
    st.sampled_from([2**31, 2**63, 2**64, 10**300, -1, 0]),
    st.floats(),
    st.booleans(),
)
_TEXTS = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(codec=None), max_size=8),
    st.sampled_from(
        ["", "\0", "\x1b[2J", "\udcff", "\ud800", "a" * 300, "x" * 5000, "0-9%2", "normal", "urgent"]
    ),
    st.from_regex(r"[ab&|,()\[\]*0-9]{1,40}", fullmatch=True),
    st.from_regex(r"[0-9]{1,4}(-[0-9]{1,4})?(:[0-9])?(%[0-9])?(,[0-9]{1,3}){0,3}", fullmatch=True),
    st.from_regex(r"(after|afterok|afternotok|afterany)(:[0-9_]{1,5}){1,4}", fullmatch=True),
    st.from_regex(r"(B:)?(USR1|TERM|[0-9]{1,3})(@[0-9]{1,6})?", fullmatch=True),
)
_VALUES = st.recursive(
    st.one_of(st.none(), _NUMBERS, _TEXTS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=12,
)
_FIELDS = (
    "key name partitions qos account nodes tasks cpus_per_task memory_mb memory_mb_per_cpu gpus gres licenses "
    "attributes features exclusive time_limit begin hold nice priority requeue signal dependency array command script "
    "cwd environment input output error open_mode umask limits process_nice notice checkpoint on_end verb jobs user "
    "all value changes reason config source control port uid"
).split()
_BODIES = st.dictionaries(st.one_of(st.sampled_from(_FIELDS), _TEXTS), _VALUES, max_size=5)
_ROUTES = st.sampled_from(
    ["/v1/jobs", "/v1/jobs", "/v1/jobs", "/v1/commands", "/v1/victims", "/v1/drain", "/v1/web"]
)
_LOOKS = st.sampled_from(
    [
        "/v1/jobs",
        "/v1/jobs/{}",
        "/v1/jobs/{}/logs",
        "/v1/jobs/{}/why",
        "/v1/history",
        "/v1/events",
        "/{}",
        "/v1/daemon",
    ]
)
_QUERIES = st.dictionaries(
    st.sampled_from(["user", "since", "until", "limit", "after", "follow", "longest", "token", "x"]),
    _TEXTS,
    max_size=3,
)


def _right(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body that would be taken, but for what is in it; jobs of it never start."""
    return {"command": ["true"], "cwd": "/tmp", "output": "/dev/null", **body, "hold": True}


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a request: mostly a right one with something odd in it."""
    from urllib.parse import quote

    def quoted(text: str) -> str:
        return quote(text.encode("utf-8", "surrogatepass"), safe="")

    if draw(st.integers(0, 9)) < 3:
        route = draw(_LOOKS).format(quoted(draw(_TEXTS)))
        query = {"follow": "0", **draw(_QUERIES)} if route == "/v1/events" else draw(_QUERIES)
        if query.get("longest") or "/wait" in route:
            query["longest"] = "0"
        if route == "/v1/events":
            query["follow"] = "0"
        return get(
            route
            + ("?" + "&".join(f"{name}={quoted(text)}" for name, text in query.items()) if query else "")
        )
    route = draw(_ROUTES)
    body = draw(_BODIES)
    if route in ("/v1/jobs", "/v1/victims") and draw(st.integers(0, 3)):
        body = _right({name: value for name, value in body.items() if name in _FIELDS[:38]})
    data = json.dumps(body).encode()
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=6)) + data[at + draw(st.integers(0, 3)) :]
    found = post(data, route)
    if draw(st.integers(0, 19)) == 0:
        at = draw(st.integers(0, len(found)))
        found = found[:at] + draw(st.binary(max_size=4)) + found[at:]
    return found


def _drawn(many: int, first: int) -> list[bytes]:
    """Draw so many random requests; the user that sends them may not read the modules of an environment of root's."""
    found: list[bytes] = []

    @seed(first)
    @settings(
        max_examples=many,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(requests())
    def one(data: bytes) -> None:
        found.append(data)

    one()
    return found


def _sent(served: Path, drawn: list[bytes]) -> dict[str, Any]:
    """Send requests as one user, some at once; return what was wrong with the answers, and how many had a status.

    A request that breaks off is waited for by the daemon for a while; one after the other, 100,000 would take hours.
    """

    def answer_to(data: bytes) -> bytes:
        until = time.monotonic() + attacks.PATIENCE
        while True:
            answer = raw(served, data, half=True)
            if status_of(answer) != 429 or time.monotonic() > until:
                return answer
            time.sleep(1.0)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(answer_to, drawn))
    wrong = [
        f"{status_of(answer)}: {answer[-300:]!r} to {data[:600]!r}"
        for data, answer in zip(drawn, answers, strict=True)
        if status_of(answer) not in GOOD | REFUSED | {0}
    ]
    return {"counts": Counter(map(status_of, answers)), "wrong": wrong[:10]}


def _watched(served: Path, many: int, first: int) -> dict[str, Any]:
    """Fuzz as one user; another one is served afterwards."""
    drawn = _drawn(many, first)
    found: dict[str, Any] = as_user(ANN, lambda: _sent(served, drawn))
    innocent = as_user(BEN, lambda: raw(served, post(submission(name="innocent"))).decode()).encode()
    assert status_of(innocent) == 201, innocent
    return found


def test_random_requests(served: Path) -> None:
    """Some hundreds, another set each day; the nightly run makes 100,000."""
    found = _watched(served, 300, int(time.time() // 86400))
    assert not found["wrong"], "\n".join(found["wrong"])
    assert found["counts"].get("201", 0) > 10, found
    assert found["counts"].get("400", 0) > 50, found


@pytest.mark.nightly
def test_100_000_random_requests(crowded: Site, served: Path) -> None:
    """In batches; what waits is cancelled between them, and the innocent are served beside each."""
    first = int(os.environ.get("NIGHTLY_SEED") or random.randrange(10**6))
    for batch in range(100):
        found = _watched(served, int(os.environ.get("MAKEWAY_ATTACKS", "100000")) // 100, first * 100 + batch)
        assert not found["wrong"], (first * 100 + batch, "\n".join(found["wrong"]))
        for user in ("nobody", "daemon"):
            with contextlib.suppress(AssertionError):
                crowded.ok("cancel", "--user", user)
