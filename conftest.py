"""Settings of all tests: Hypothesis never fails a test for being slow, as machines are shared and noisy.

A test looks at the installed distributions once, as a command does: a look takes 10 ms where a hundred are installed,
and the suite makes ten thousands of them. What takes many minutes runs only where ``-m`` asks for it. By day random
draws are few, and the same each time; ``MAKEWAY_PROFILE=full``, as every night, makes all of them, others each time.
``--quick``, as ``sh tests/run.sh`` has it, leaves out what is marked slow and most cases of a function, and says so.
"""

import contextlib
import gc
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from makeway.entry_points import one_look

BY_DAY = os.environ.get("MAKEWAY_PROFILE") != "full"
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

CASES = 16
"""With ``--quick`` one case of so many runs, and at least one of each function."""
QUICK_EXAMPLES = 10
_LEFT_OUT = pytest.StashKey[dict[str, int]]()
"""How many tests ``--quick`` leaves out, by why, and how many there are."""

LONG = ("nightly", "fuzz_slurm")
"""Markers of tests that are left out unless ``-m`` names them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--quick``."""
    parser.addoption(
        "--quick", action="store_true", help=f"no slow tests, one case in {CASES}, few random draws"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say nothing of how far a replay is: on a busy machine a short one would, after ten seconds."""
    if config.getoption("quick"):
        os.environ["MAKEWAY_PROFILE"] = "quick"
        settings.register_profile("quick", settings.get_profile("patient"), max_examples=QUICK_EXAMPLES)
        settings.load_profile("quick")
    with contextlib.suppress(ImportError):  # the distributions below it are tested without it, too
        from makeway_app.cli import meter

        meter._SOON = 3600.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the long tests that were not asked for; by day, draw less."""
    if config.getoption("quick"):
        _keep_few(config, items)
    if BY_DAY:
        _draw_less([item for item in items if isinstance(item, pytest.Function)])
    if hasattr(config, "workerinput"):
        # Those files first that take longest: the last one to end should be a short one.
        first = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in first)
    left_out = [name for name in LONG if name not in config.getoption("markexpr")]
    for item in items:
        for name in left_out:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=f"only with -m {name}"))


def _keep_few(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked slow, and most cases of a function; its name alone says which, so nobody chooses.

    The plugins that a rule of a contract is held against are cases of that rule.
    """
    quick = [item for item in items if not item.get_closest_marker("slow")]
    functions: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in quick:
        function = item.function if isinstance(item, pytest.Function) else item
        functions[f"{function.__module__}.{getattr(function, '__qualname__', item.name)}"].append(item)
    kept: set[pytest.Item] = set()
    for name, cases in functions.items():
        first = zlib.crc32(name.encode()) % min(CASES, len(cases))
        kept |= set(cases[first::CASES])
    config.stash[_LEFT_OUT] = {
        "all": len(items),
        "slow": len(items) - len(quick),
        "cases": len(quick) - len(kept),
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the numbers to the process that reports, where several share the tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(_LEFT_OUT, None)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take them from there: each process has looked at all tests."""
    if found := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[_LEFT_OUT] = found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what ``--quick`` left out."""
    if left := config.stash.get(_LEFT_OUT, None):
        terminalreporter.write_line(
            f"--quick: ran {left['all'] - left['slow'] - left['cases']:,} of {left['all']:,} tests; left out "
            f"{left['slow']:,} that are slow, and {left['cases']:,} further cases of functions that ran. "
            "Random draws were few. sh tests/run.sh --all runs everything."
        )


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
