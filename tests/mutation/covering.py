"""Say which tests run a line, so that a mutant meets these alone, the quickest first.

As a pytest plugin (``-p covering``) this writes what each test ran and how long it took; `Covering` reads it.
"""

from __future__ import annotations

import ast
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import coverage
import pytest

NOTED = "MAKEWAY_COVERING"
"""Environment: the file to write, without its ending."""
MODULES = "MAKEWAY_COVERING_MODULES"
"""Environment: the patterns of modules that matter, with colons between."""

_seconds: dict[str, float] = {}
_running: list[coverage.Coverage] = []


def pytest_configure() -> None:
    """Begin to trace before anything of the code under test is imported."""
    if NOTED not in os.environ:
        return
    tracer = coverage.Coverage(
        data_file=os.environ[NOTED] + ".coverage",
        include=[f"{Path.cwd()}/{pattern}" for pattern in os.environ[MODULES].split(":")],
        config_file=False,
    )
    tracer.set_option("run:relative_files", True)
    tracer.start()
    _running.append(tracer)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Book what follows on this test."""
    for tracer in _running:
        tracer.switch_context(item.nodeid)
    began = time.perf_counter()
    answer = yield
    _seconds[item.nodeid] = round(time.perf_counter() - began, 4)
    return answer


def pytest_unconfigure() -> None:
    """Write what was noted."""
    for tracer in _running:
        tracer.stop()
        tracer.save()
        Path(os.environ[NOTED] + ".json").write_text(json.dumps(_seconds))
    _running.clear()


class Covering:
    """What the tests of some paths ran."""

    def __init__(self, noted: Sequence[Path]) -> None:
        """Read what was noted; each without its ending."""
        self.seconds: dict[str, float] = {}
        self._data = []
        for each in noted:
            self.seconds |= json.loads(each.with_suffix(".json").read_text())
            data = coverage.CoverageData(str(each.with_suffix(".coverage")))
            data.read()
            self._data.append(data)

    def tests_of(self, module: Path, line: int, tree: Path) -> list[str]:
        """List the tests that run any part of the statement on this line, the quickest first.

        A line that ran only while modules were imported and tests collected may matter to any of them.
        """
        found: set[str] = set()
        for data in self._data:
            ran = data.contexts_by_lineno(str(module)) or data.contexts_by_lineno(str(tree / module))
            for number in lines_of_statement((tree / module).read_text(), line):
                found.update(ran.get(number, ()))
        if found and not found & set(self.seconds):
            found = set(self.seconds)
        return sorted(found & set(self.seconds), key=lambda test: (self.seconds[test], test))


def lines_of_statement(source: str, line: int) -> range:
    """Return the lines of the innermost statement around `line`; of one with a body: those before it."""
    around: dict[int, range] = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        lines = range(node.lineno, max(last, node.lineno) + 1)
        if line in lines:
            around[len(lines)] = lines
    return around[min(around)] if around else range(line, line + 1)
