"""What ``makeway new-plugin`` writes works at once: installed, tested, typed, linted, replayed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from makeway_testing.new_plugin import KINDS

pytestmark = pytest.mark.slow

EXAMPLES = "3"
"""Random runs per rule: that the rules hold is tested as plugins' authors test it, that they run is tested here."""


class Project:
    """A distribution that was written, installed into a folder of its own."""

    def __init__(self, kind: str, folder: Path, types: Path) -> None:
        self.kind = kind
        self.folder = folder
        self._site = folder / "site"
        self._types = types
        self.root = folder / f"makeway-{kind}-mine"

    def run(self, *command: str | Path, cwd: Path | None = None) -> str:
        """Run a command with the plugin on the path; return what it says."""
        path = os.pathsep.join([str(self._site), *(os.environ.get("PYTHONPATH", ""),)]).strip(os.pathsep)
        env = {
            **os.environ,
            "PYTHONPATH": path,
            "MAKEWAY_EXAMPLES": EXAMPLES,
            "MAKEWAY_PROFILE": "quick",
            "MYPY_CACHE_DIR": str(self._types),
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }
        done = subprocess.run(
            [str(word) for word in command],
            cwd=cwd or self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self) -> list[str]:
        """Write and install it; return the commands that the user is told."""
        said = self.run(sys.executable, "-m", "makeway", "new-plugin", "mine", "--kind", self.kind)
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
        self.run(*pip, "--target", self._site, self.root)
        return [line.strip() for line in said.partition("next:\n")[2].splitlines()]


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where mypy keeps what it knows of the core and the kit, which are the same for all kinds."""
    return tmp_path_factory.mktemp("types")


@pytest.mark.parametrize("kind", KINDS)
def test_it_works_at_once(kind: str, tmp_path: Path, types: Path) -> None:
    """Its tests pass, its example replays, and it is clean in the eyes of mypy and ruff."""
    project = Project(kind, tmp_path, types)
    install, test, replay = project.install()
    assert install == f"python -m pip install -e './makeway-{kind}-mine[test]'"
    words = test.removeprefix("python ").split()
    assert "passed" in project.run(sys.executable, *words, "-p", "no:cacheprovider", "--hypothesis-seed=0")
    said = project.run(sys.executable, "-m", *replay.split())
    assert re.search(r"^jobs unfinished +0$", said, re.MULTILINE)
    assert f"{kind}/mine" in project.run(sys.executable, "-m", "makeway", "plugins")
    project.run(sys.executable, "-m", "mypy", cwd=project.root)
    project.run(sys.executable, "-m", "ruff", "check", cwd=project.root)
    project.run(sys.executable, "-m", "ruff", "format", "--check", cwd=project.root)
