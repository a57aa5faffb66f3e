"""The quick profile: fewer runs, the same rules, and a summary that says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from makeway.errors import ConfigError
from makeway_testing.profile import profile

CONTRACT = """
from makeway.hookspecs import hookimpl
from makeway.model import Candidates
from makeway_testing.contracts import PreemptPolicyContract


class {name}:
    @hookimpl
    def makeway_preempt_candidates(self, preemptor, active, view, now):
        {body}


class TestContract(PreemptPolicyContract):
    __test__ = True
    plugin = "preempt/{name}"
    module = {name}()
"""
TWICE = "return Candidates(jobs=(*active, *active), modes=(view.mode_of(active[0]),) * 2 * len(active))"


def run(tmp_path: Path, profile_: str | None, name: str, body: str) -> str:
    """Run the contract of a plugin; return what pytest printed."""
    path = tmp_path / "test_it.py"
    path.write_text(CONTRACT.format(name=name, body=body))
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKEWAY_")}
    if profile_ is not None:
        env["MAKEWAY_PROFILE"] = profile_
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "-k",
        "twice or displace_a_job",
    ]
    done = subprocess.run([*words, str(path)], cwd=tmp_path, env=env, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.slow
def test_it_finds_what_is_plainly_wrong(tmp_path: Path) -> None:
    """A policy that names every job twice is found in a few runs as well."""
    said = run(tmp_path, "quick", "twice", TWICE)
    assert "No candidate is named twice" in said
    assert "2 passed" not in said


@pytest.mark.slow
def test_it_says_what_it_leaves_out(tmp_path: Path) -> None:
    """A plugin that names no job fails in full, and is skipped, with the reason, where runs are few."""
    quick = run(tmp_path, "quick", "no_job", "return None")
    assert "makeway: quick profile" in quick
    assert "left out: at most 5 random runs per rule instead of 25" in quick
    assert "in the few runs of the quick profile" in quick
    full = run(tmp_path, None, "no_job", "return None")
    assert "quick profile" not in full
    assert "1 failed" in full


def test_a_profile_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytest stops before the first test, and names the ones there are."""
    said = run(tmp_path, "quik", "no_job", "return None")
    assert "MAKEWAY_PROFILE: got 'quik'; allowed: full, quick; did you mean 'quick'?" in said
    assert "Traceback" not in said
    monkeypatch.setenv("MAKEWAY_PROFILE", "quik")
    with pytest.raises(ConfigError, match="allowed: full, quick"):
        profile()
