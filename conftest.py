"""Settings of all tests: Hypothesis never fails a test for being slow, as machines are shared and noisy.

A test looks at the installed distributions once, as a command does: a look takes 10 ms where a hundred are installed,
and the suite makes ten thousands of them. What takes many minutes runs only where ``-m`` asks for it.
"""

import contextlib
import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from makeway.entry_points import one_look

if not os.environ.get(
    "CI"
):  # there Hypothesis takes its own profile, which is patient too and draws the same cases
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


DAILY = 10
"""Random runs per rule of a plugin's contract by day; the nightly run, which names a profile, makes all of them."""
LONG = ("nightly", "fuzz_slurm")
"""Markers of tests that are left out unless ``-m`` names them."""


def pytest_configure() -> None:
    """Say nothing of how far a replay is: on a busy machine a short one would, after ten seconds."""
    with contextlib.suppress(ImportError):  # the distributions below it are tested without it, too
        from makeway_app.cli import meter

        meter._SOON = 3600.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the long tests that were not asked for, and hold contracts against few random runs."""
    if "MAKEWAY_PROFILE" not in os.environ:
        for each in {item.cls for item in items if isinstance(item, pytest.Function) and item.cls}:
            if hasattr(each, "examples"):
                each.examples = min(each.examples, DAILY)
    left_out = [name for name in LONG if name not in config.getoption("markexpr")]
    for item in items:
        for name in left_out:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=f"only with -m {name}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Let what is installed be looked at once in a test, save in one that installs something itself."""
    with contextlib.nullcontext() if item.get_closest_marker("looks_anew") else one_look():
        return (yield)


def pytest_runtest_teardown() -> None:
    """Unfreeze what a daemon or a command froze: Hypothesis asks the collector who refers to its random numbers."""
    if hasattr(gc, "unfreeze"):
        gc.unfreeze()
