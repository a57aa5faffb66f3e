"""The alarm that keeps plugins to the time limit: what it breaks off, what it leaves alone, what it leaves behind."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from makeway.errors import ConfigError, PolicyError
from makeway.hookspecs import hookimpl
from makeway.model import Job, QueueOrder
from makeway.worlds.watch import time_limit
from makeway_testing import replay_table

NAME = "x/slow"
JOBS = """
    job  nodes  run_time
    a    1           10
    b    1           10
"""


def played(order: Callable[..., Any], limit: float) -> Any:
    """Replay with a plugin that orders the queue."""
    slow = type("Slow", (QueueOrder,), {"sort": lambda self, pending, view: order(pending)})
    plugin = type("Plugin", (), {"makeway_queue": staticmethod(hookimpl(slow))})
    config = {"plugins": [NAME], "decision_time_limit": limit}
    return replay_table(JOBS, config=config, plugins={NAME: plugin})


def endless(pending: Sequence[Job]) -> None:
    """Never answer."""
    while True:
        len(pending)


def stubborn(pending: Sequence[Job]) -> None:
    """Never answer, and go on after any error."""
    while True:
        try:
            for job in pending:
                str(job.id)
        except BaseException:
            continue


@pytest.mark.parametrize("order", [endless, stubborn])
def test_it_breaks_off_an_endless_loop(order: Callable[..., Any]) -> None:
    """Not before the limit, and soon after it."""
    started = time.monotonic()
    with pytest.raises(PolicyError, match=r"hook makeway_queue: .*did not end within 0\.1 s"):
        played(order, 0.1)
    assert 0.1 <= time.monotonic() - started < 300
    assert sys.gettrace() is None or "watch" not in repr(sys.gettrace())


def test_it_leaves_alone_what_ends_in_time() -> None:
    """Each call by itself, however long they all take."""

    def slowly(pending: Sequence[Job]) -> None:
        until = time.monotonic() + 0.06
        while time.monotonic() < until:
            pass

    run = played(slowly, 5.0)
    assert run.starts("b") == (10.0,)


def test_it_leaves_alone_what_is_no_plugin() -> None:
    """Who calls makeway may take his time."""
    with time_limit(0.05):
        time.sleep(0.2)


def test_it_puts_everything_back() -> None:
    """Handler and timer as they were before; after an error too."""
    rung: list[int] = []

    def mine(number: int, _: Any) -> None:
        rung.append(number)

    before = signal.signal(signal.SIGALRM, mine)
    try:
        with contextlib.suppress(ZeroDivisionError), time_limit(0.5):
            assert signal.getsignal(signal.SIGALRM) is not mine
            raise ZeroDivisionError
        assert signal.getsignal(signal.SIGALRM) is mine
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    finally:
        signal.signal(signal.SIGALRM, before)
    assert rung == []


def test_it_is_off_at_zero() -> None:
    """Nothing is touched."""
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(0.0):
        assert signal.getsignal(signal.SIGALRM) is before
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


def test_it_says_where_it_cannot_be() -> None:
    """Alarms ring in the main thread only: no limit that nothing would keep."""
    caught: list[BaseException] = []

    def elsewhere() -> None:
        try:
            with time_limit(1.0):
                pass
        except ConfigError as error:
            caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert [str(error) for error in caught] == [
        "config: policy.decision_time_limit: it needs the alarm of a POSIX system, in the main thread; "
        "leave it at 0 here"
    ]
