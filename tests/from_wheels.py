"""Install built wheels into an empty environment, and run the README's first command there, away from the repository.

    python tests/from_wheels.py DIST

DIST holds what ``python -m build --outdir DIST`` made of each distribution. ``twine check`` looks at all of it; the
wheels of this repository come from DIST alone, what they depend on from pip's index. Of the repository the command
sees only the files that it names, and it must print what the README shows.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
FIRST = re.compile(
    r"^```sh\n(?:(?!```).)*?^(makeway [^\n]*)\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
"""The README's first command with what it prints."""
LONGEST = 600.0
"""Seconds that one step may take."""


def published() -> list[str]:
    """Name the distributions as they begin in the names of their files: all but the examples."""
    settings = [
        ROOT / "core",
        ROOT / "testing",
        *(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")),
    ]
    texts = [(folder / "pyproject.toml").read_text(encoding="utf-8") for folder in settings]
    return sorted(re.search(r'^name = "(.+)"$', text, re.MULTILINE)[1].replace("-", "_") for text in texts)  # type: ignore[index]


def wheels_in(dist: Path) -> list[Path]:
    """Return the wheel of each distribution.

    :raises SystemExit: one lacks, or there are several of it.
    """
    found = []
    for name in published():
        files = sorted(dist.glob(f"{name}-*.whl"))
        if len(files) != 1:
            raise SystemExit(f"{dist}: {len(files)} wheels of {name}; wanted: 1")
        found += files
    return found


def _run(*command: object, cwd: Path = ROOT) -> str:
    dropped = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    env = {name: value for name, value in os.environ.items() if name not in dropped} | {"NO_COLOR": "1"}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=env, capture_output=True, text=True, timeout=LONGEST, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(words[:4])} ended with status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def main() -> None:
    """Check, install, run, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dist", type=Path, help="a folder with the wheels of all distributions")
    dist: Path = parser.parse_args().dist.resolve()
    wheels = wheels_in(dist)
    _run(
        sys.executable,
        "-m",
        "twine",
        "check",
        "--strict",
        *sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")]),
    )
    shown = FIRST.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown is not None
    command, output = shown[1].split(), shown[2]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        _run(sys.executable, "-m", "venv", "--without-pip", place / "venv")
        _run(sys.executable, *PIP, "--python", place / "venv/bin/python", "install", *wheels)
        _run(sys.executable, *PIP, "--python", place / "venv/bin/python", "check")
        for word in command:
            if (ROOT / word).is_file():
                (place / word).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / word, place / word)
        printed = _run(place / "venv/bin" / command[0], *command[1:], cwd=place)
    if printed != output:
        raise SystemExit(f"{' '.join(command)} printed\n{printed}\nand the README shows\n{output}")
    sys.stdout.write(
        f"{len(wheels)} wheels in an empty environment: {' '.join(command)} prints what the README shows\n"
    )


if __name__ == "__main__":
    main()
