"""Settings of all tests: Hypothesis never fails a test for being slow, as machines are shared and noisy.

A test looks at the installed distributions once, as a command does: a look takes 10 ms where a hundred are installed,
and the suite makes ten thousands of them. What takes many minutes runs only where ``-m`` asks for it. By day random
draws are few, and the same each time; ``MAKEWAY_PROFILE=full``, as every night, makes all of them, others each time.
"""

import contextlib
import gc
import os
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from makeway.entry_points import one_look

BY_DAY = "MAKEWAY_PROFILE" not in os.environ
CONTRACT, EXAMPLES, SEEDS = 10, 40, 2
"""By day: random runs per rule of a plugin's contract, examples of a property, and one seed of so many."""

settings.register_profile(
    "patient",
    settings.get_profile("default"),
    max_examples=EXAMPLES if BY_DAY else settings.get_profile("default").max_examples,
    derandomize=BY_DAY,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")

LONG = ("nightly", "fuzz_slurm")
"""Markers of tests that are left out unless ``-m`` names them."""


def pytest_configure() -> None:
    """Say nothing of how far a replay is: on a busy machine a short one would, after ten seconds."""
    with contextlib.suppress(ImportError):  # the distributions below it are tested without it, too
        from makeway_app.cli import meter

        meter._SOON = 3600.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the long tests that were not asked for; by day, draw less."""
    if BY_DAY:
        _draw_less([item for item in items if isinstance(item, pytest.Function)])
    left_out = [name for name in LONG if name not in config.getoption("markexpr")]
    for item in items:
        for name in left_out:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=f"only with -m {name}"))


def _draw_less(items: list[pytest.Function]) -> None:
    for contract in {item.cls for item in items if hasattr(item.cls, "examples")}:
        contract.examples = min(contract.examples, CONTRACT)
    seeds: Counter[tuple[object, ...]] = Counter()
    for item in items:
        given = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        if isinstance(given.pop("seed", None), int):
            drawn = (item.path, item.cls, item.originalname, *map(repr, given.values()))
            seeds[drawn] += 1
            if seeds[drawn] % SEEDS == 0:
                item.add_marker(pytest.mark.skip(reason="only with MAKEWAY_PROFILE=full"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Let what is installed be looked at once in a test, save in one that installs something itself."""
    with contextlib.nullcontext() if item.get_closest_marker("looks_anew") else one_look():
        return (yield)


def pytest_runtest_teardown() -> None:
    """Unfreeze what a daemon or a command froze: Hypothesis asks the collector who refers to its random numbers."""
    if hasattr(gc, "unfreeze"):
        gc.unfreeze()
