"""`makeway plugins --check` sees through policies that are broken on purpose."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

_SPEC = importlib.util.spec_from_file_location(
    "broken_policies", Path(__file__).with_name("broken_policies.py")
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
BROKEN: dict[str, tuple[str, str]] = _MODULE.BROKEN


def told(source: str, tmp_path: Path, limit: str = "5") -> str:
    """Return all that the check says of a file with a policy."""
    file = tmp_path / "policy.py"
    file.write_text(source)
    arguments = [
        "plugins",
        "--check",
        "preempt/x",
        "--plugin",
        f"preempt/x={file}",
        "--decision-time-limit",
        limit,
    ]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [name for name, (_, said) in BROKEN.items() if said])
def test_it_is_seen(wrong: str, tmp_path: Path) -> None:
    """The fault is named, or that the policy was not put to the test."""
    source, said = BROKEN[wrong]
    found = told(source, tmp_path, "1" if "end" in wrong else "5")
    assert said in found
    assert "preempt/x: no fault found " not in found.replace("no fault found in what", "")


def test_most_are_seen() -> None:
    """At least fifteen of twenty."""
    assert len(BROKEN) == 20
    assert sum(bool(said) for _, said in BROKEN.values()) >= 15
