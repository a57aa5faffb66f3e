"""One user's requests hold up nobody else's: shares, time limits, and an innocent user who is served meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attacks
import pytest
from attacks import ANN, BEN, as_user, crowd, error_of, raw, request, status_of, submission

from makeway_local_world.daemon.doorman import WHOLE_WITHIN
from makeway_local_world.daemon.fairness import PIECE, Fairness, Share, TooMany
from makeway_local_world.daemon.tally import Tally

Site = Any
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")


# ------------------------------------------------------------------------------------ allowances
class _Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def _fair(clock: _Clock, requests: float = 10.0) -> Fairness:
    return Fairness(lambda: Share(requests=requests), lambda uid: uid == 0, clock)


def test_an_allowance_grows_with_time() -> None:
    """Ten a second, twenty at once: by hand."""
    clock = _Clock()
    fair = _fair(clock)
    for _ in range(20):
        fair.ask(1)
    with pytest.raises(TooMany, match=r"10 a second of one user.*try again in 1 s"):
        fair.ask(1)
    fair.ask(2)  # somebody else's is another one
    clock.now += 0.35
    for _ in range(3):
        fair.ask(1)
    with pytest.raises(TooMany):
        fair.ask(1)


def test_bytes_count_as_requests() -> None:
    """40 pieces cost four seconds of ten a second, less the two that may come at once."""
    clock = _Clock()
    fair = _fair(clock)
    assert fair.charge(1, 40 * PIECE) == pytest.approx(2.0)
    with pytest.raises(TooMany, match="try again in 3 s"):
        fair.ask(1)
    clock.now += 2.2
    fair.ask(1)


def test_operators_are_free() -> None:
    fair = _fair(_Clock())
    for _ in range(100):
        fair.ask(0)
    assert fair.charge(0, 1 << 30) == 0.0


# ------------------------------------------------------------------------- real daemons, as root
FLOOD = 20
"""Seconds for which one user asks as fast as it can."""


@pytest.fixture(scope="module")
def served(crowded: Site) -> Iterator[Path]:
    """Return the socket of a daemon that serves all people; afterwards it still does."""
    yield crowded.directory / "r/socket"
    assert all(process.poll() is None for process in crowded.processes), crowded.log()


def innocent(path: Path) -> None:
    """Submit and look as another user; fail if that takes minutes."""

    def work() -> list[int]:
        told = [raw(path, request("POST", "/v1/jobs", submission(name="innocent")))]
        told.append(raw(path, request("GET", "/v1/daemon")))
        return [status_of(each) for each in told]

    assert as_user(BEN, work) == [201, 200]


@root_only
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(request("POST", "/v1/jobs", b"{", size=100), id="half a body"),
        pytest.param(
            request("POST", "/v1/jobs", b"{" + b" " * 200_000, size=8 << 20), id="half a large body"
        ),
        pytest.param(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Le", id="half a header"),
        pytest.param(b"", id="nothing"),
        pytest.param(request("GET", "/v1/events"), id="streams"),
    ],
)
def test_a_thousand_connections_of_one_user(served: Path, data: bytes) -> None:
    """Others are served meanwhile; the daemon has 1,024 descriptors, as systemd gives by default."""

    def many() -> list[Any]:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        held = []
        for _ in range(1000):
            made = attacks.connected(served)
            with contextlib.suppress(OSError):
                made.sendall(data)
            held.append(made)
        return held

    with crowd(ANN, many):
        innocent(served)
    innocent(served)


@root_only
def test_a_body_that_never_comes_is_given_up(served: Path) -> None:
    """After a while, not before; a byte now and then is no excuse."""

    def slow() -> list[Any]:
        began = time.monotonic()
        with attacks.connected(served) as connection:
            connection.sendall(request("POST", "/v1/jobs", b"{", size=1000))
            connection.settimeout(1.0)
            answer = b""
            while time.monotonic() - began < attacks.PATIENCE:
                try:
                    piece = connection.recv(4096)
                    answer += piece
                    if not piece:
                        break
                except TimeoutError:
                    connection.sendall(b" ")
                except ConnectionError:
                    break
            return [status_of(answer), time.monotonic() - began]

    status, took = as_user(ANN, slow)
    assert status in (0, 408)
    assert WHOLE_WITHIN <= took < attacks.PATIENCE


@root_only
def test_who_asks_too_much_is_told_so(served: Path) -> None:
    """429 with the reason, and others are served; after a while it is taken again.

    A machine too busy to answer as many as one may ask has nothing to refuse.
    """

    def flood() -> list[Any]:
        counts: dict[int, int] = {}
        told = ""
        with attacks.connected(served) as connection:
            until = time.monotonic() + FLOOD
            while 429 not in counts and time.monotonic() < until:
                connection.sendall(request("GET", "/v1/openapi.json"))
                answer = attacks._answer(connection)
                counts[status_of(answer)] = counts.get(status_of(answer), 0) + 1
                told = error_of(answer)
        time.sleep(3.0)
        return [counts, told, status_of(raw(served, request("GET", "/v1/daemon")))]

    counts, told, afterwards = as_user(ANN, flood)
    assert counts.get("429", sum(counts.values()) < FLOOD * Share().requests)
    assert "too many requests" in told or "429" not in counts
    assert afterwards == 200
    innocent(served)


@root_only
def test_one_users_computing_holds_up_nobody(served: Path) -> None:
    """Fifty questions that take long, at once."""
    body = submission(tasks=1)

    def many() -> list[Any]:
        held = []
        for _ in range(50):
            made = attacks.connected(served)
            made.sendall(request("POST", "/v1/victims", body))
            held.append(made)
        return held

    with crowd(ANN, many):
        innocent(served)


@root_only
def test_jobs_and_bytes_of_one_user(served: Path, crowded: Site) -> None:
    """Refused with the reason; an array of 1,000 tasks and 1 MB is stored once; what has ended counts no more."""

    def ask(**fields: Any) -> list[Any]:
        while True:
            answer = as_user(
                ANN, lambda: raw(served, request("POST", "/v1/jobs", submission(**fields))).decode()
            )
            if (
                status_of(answer.encode()) != 429
            ):  # else the machine is too quick for the requests of one user
                return [status_of(answer.encode()), error_of(answer.encode()), answer]
            time.sleep(0.1)

    environment = {f"K{at}": "z" * 100_000 for at in range(10)}
    status, _, answer = ask(array="0-999", environment=environment)
    assert status == 201
    job = json.loads(answer.partition("\r\n\r\n")[2])["id"]
    stored = sum(each.stat().st_size for each in (crowded.state / "jobs").rglob("submission.json"))
    assert stored < 2_000_000
    status, told, _ = ask(array="0-1999")
    assert status == 409
    assert (
        told
        == "nobody has 1,000 jobs that wait or run and submits 2,000; allowed: 2,000 of one user (user_jobs)"
    )
    statuses = [ask(environment=environment)[:2] for _ in range(10)]
    assert statuses[-1][0] == 409
    assert "(user_storage)" in statuses[-1][1]
    innocent(served)
    crowded.ok("cancel", "--user", "nobody")
    crowded.until(lambda: ask(array="0-9")[0] == 201, "room again")
    file = crowded.state / "jobs" / job / "submission.json"
    crowded.until(lambda: file.stat().st_size < 100_000, "what was run is forgotten")


def test_a_tally() -> None:
    """By hand: two jobs of an array and one alone; the bytes go with the last task."""
    tally = Tally()
    tally.enter("ann", ("12_0", "12_1"), 500)
    tally.enter("ann", ("13",), 70)
    tally.enter("ben", ("14",), 5)
    assert tally.held_by("ann") == (3, 570)
    assert not tally.ended("12_0")
    assert tally.held_by("ann") == (2, 570)
    assert tally.ended("12_1")
    assert not tally.ended("12_1")
    assert tally.ended("13")
    assert (tally.held_by("ann"), tally.held_by("ben")) == ((0, 0), (1, 5))
