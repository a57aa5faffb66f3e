"""The pytest plugin (entry point ``pytest11``): fixtures for tests of policies, and failures that can be read.

It is loaded by every pytest beside which makeway is installed. So it imports nothing of makeway by itself, adds
no option, and does nothing in a project that uses none of it.

========================= ==========================================================================
fixture                   what it is
========================= ==========================================================================
``replay_table``          `makeway_testing.replay_table`; if the test fails, what happened is shown
``makeway_timeline``      `makeway_testing.timeline`
``makeway_cluster``       `makeway_testing.cluster`
``makeway_config``        `makeway_testing.config`
``makeway_job``           `makeway_testing.job`
``check_invariants``      `makeway_testing.check_invariants`
========================= ==========================================================================
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from makeway_testing import TableRun

_RUNS = pytest.StashKey[list[Any]]()
"""The replays of a test, as far as they came."""
_FAILURES = "makeway_testing.failures"
_CONTRACTS = "makeway_testing.contracts.base"
_PROFILE = "MAKEWAY_PROFILE"


@pytest.fixture
def replay_table(request: pytest.FixtureRequest) -> Callable[..., TableRun]:
    """Return `makeway_testing.replay_table`; if the test fails, the timelines of its replays are shown."""
    from makeway_testing import replay_table as replay

    runs: list[Any] = []
    request.node.stash[_RUNS] = runs

    @functools.wraps(replay)
    def remembered(*arguments: Any, **more: Any) -> TableRun:
        run = replay(*arguments, **more)
        runs.append(run)
        return run

    return remembered


@pytest.fixture
def makeway_timeline() -> Callable[[str], tuple[str, ...]]:
    """Return `makeway_testing.timeline`, which reads what is expected of a replay."""
    from makeway_testing import timeline

    return timeline


@pytest.fixture
def makeway_cluster() -> Callable[..., Any]:
    """Return `makeway_testing.cluster`, which describes nodes."""
    from makeway_testing import cluster

    return cluster


@pytest.fixture
def makeway_config() -> Callable[..., Any]:
    """Return `makeway_testing.config`, which builds a configuration out of flat settings."""
    from makeway_testing import config

    return config


@pytest.fixture
def makeway_job() -> Callable[..., Any]:
    """Return `makeway_testing.job`, which builds a job as a policy sees it."""
    from makeway_testing import job

    return job


@pytest.fixture
def check_invariants() -> Callable[..., Any]:
    """Return `makeway_testing.check_invariants`, which looks at one instant of an engine."""
    from makeway_testing import check_invariants as check

    return check


def pytest_configure() -> None:
    """Refuse a profile that does not exist, before any test runs."""
    if os.environ.get(_PROFILE):
        from makeway.errors import ConfigError
        from makeway_testing.profile import profile

        try:
            profile()
        except ConfigError as error:
            raise pytest.UsageError(str(error)) from None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what a profile left out, if any contract was held."""
    if not os.environ.get(_PROFILE) or _CONTRACTS not in sys.modules:
        return
    from makeway_testing.profile import profile

    asked = profile()
    if asked.leaves_out:
        terminalreporter.section(f"makeway: {asked.name} profile")
        terminalreporter.line(f"left out: {asked.leaves_out}")
        terminalreporter.line(f"before a release run without {_PROFILE}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a broken rule without the way to it, and what happened in the replays of a test that failed."""
    report = yield
    if not report.failed or call.excinfo is None:
        return report
    failures = sys.modules.get(_FAILURES)
    if failures is not None and isinstance(call.excinfo.value, failures.ContractError):
        report.longrepr = str(call.excinfo.value)
    runs: list[Any] = item.stash.get(_RUNS, [])
    for at, run in enumerate(runs, 1):
        report.sections.append((f"makeway: replay {at}", "\n".join(run.timeline)))
    return report
