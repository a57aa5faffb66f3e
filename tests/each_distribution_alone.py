"""Run each distribution's tests alone: in an environment with nothing but what it, and its tests, ask for.

    python tests/each_distribution_alone.py [FOLDER...] [-- ARGUMENTS OF PYTEST]

Wheels of all distributions of this repository are built first; an environment takes those out of them that the
distribution depends on, and those that the group ``test`` of its ``pyproject.toml`` names. So a test that leans on a
plugin that is not declared fails here, although it passes where everything is installed. Needs pip's index, or
``PIP_FIND_LINKS`` with what comes from others.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
LONGEST = 3600.0
"""Seconds that one step may take."""


def folders() -> list[Path]:
    """Return the distributions that have tests."""
    found = [path.parent for path in sorted(ROOT.glob("**/pyproject.toml"))]
    return [folder for folder in found if (folder / "tests").is_dir() and _is_ours(folder)]


def _is_ours(folder: Path) -> bool:
    place = folder.relative_to(ROOT).parts
    return len(place) > 0 and place[0] in ("core", "testing", "plugins", "examples")


def wanted_by(folder: Path) -> list[str]:
    """Return what the tests of a distribution need beside it."""
    table = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    group: list[str] = table.get("dependency-groups", {}).get("test", ["makeway-testing"])
    return group


def wheels(into: Path) -> None:
    """Build a wheel of each distribution."""
    for settings in sorted(ROOT.glob("**/pyproject.toml")):
        if _is_ours(settings.parent):
            _run(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", into, settings.parent)


def alone(folder: Path, index: Path, scratch: Path, arguments: list[str]) -> str:
    """Make an environment for one distribution, and run its tests in it.

    :returns: what went wrong; empty: they pass.
    """
    place = scratch / folder.name
    venv.create(place, with_pip=True, symlinks=True)
    python = place / "bin/python"
    name = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    try:
        _run(python, *PIP, "install", "--find-links", index, name, *wanted_by(folder))
        _run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder / "tests", *arguments)
    except subprocess.CalledProcessError as error:
        return f"{' '.join(map(str, error.cmd[1:4]))} ended with status {error.returncode}"
    except subprocess.TimeoutExpired:
        return f"a step took longer than {LONGEST:,.0f} s"
    return ""


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True, timeout=LONGEST)


def main() -> int:
    """Try all distributions, or those named."""
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    own, more = given[:at], given[at + 1 :]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="*", type=Path, help="such as plugins/slurm; all unless named")
    named = [(ROOT / folder).resolve() for folder in parser.parse_args(own).folder]
    chosen = folders()
    strangers = [str(folder) for folder in named if folder not in chosen]
    if strangers:
        allowed = ", ".join(str(folder.relative_to(ROOT)) for folder in chosen)
        parser.error(f"got {strangers[0]}; allowed: {allowed}")
    with tempfile.TemporaryDirectory() as scratch:
        index = Path(scratch) / "wheels"
        wheels(index)
        failed = []
        for folder in named or chosen:
            began = time.monotonic()
            why = alone(folder, index, Path(scratch), more)
            told = why or "passes"
            sys.stdout.write(f"{folder.relative_to(ROOT)}: {told} ({time.monotonic() - began:.0f} s)\n")
            sys.stdout.flush()
            failed += [folder] if why else []
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
