"""The page on testing: its examples run, and its lists of rules are those of the contracts."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from makeway_testing import contracts

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "testing.md").read_text()


def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_testing", DOCS / "generate_testing.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current() -> None:
    """``python docs/generate_testing.py`` writes it."""
    assert _generator().page(PAGE) == PAGE


def test_every_contract_is_listed() -> None:
    """By name, with its flags; and every rule has words."""
    public = {name for name in contracts.__all__ if name.endswith("Contract")}
    generator = _generator()
    assert public == set(generator.TITLES)
    assert all(rule.endswith(".") for name in public for rule in generator.rules_of(name))


def test_every_attribute_is_listed() -> None:
    """What a subclass may set stands in the tables."""
    for name in contracts.__all__:
        if not name.endswith("Contract"):
            continue
        for key in vars(getattr(contracts, name)).get("__annotations__", {}):
            assert f"`{key}`" in PAGE or key == "hook" or key.startswith("_"), f"{name}.{key}"


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    """All of them, as a reader would paste them into files of tests."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) >= 5
    for at, block in enumerate(blocks):
        (tmp_path / f"test_{at}.py").write_text(block)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "MAKEWAY_EXAMPLES": "2", "MAKEWAY_PROFILE": "quick"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
