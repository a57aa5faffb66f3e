"""Do what README and CONTRIBUTING say, block by block, in the order in which a reader meets them.

Blocks that install nothing run here, in a copy of the tree and the present environment. ``-m nightly`` runs all of
them, in a fresh clone and a fresh environment of Python: that takes a network and some minutes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md")
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTALLS = re.compile(r"\bpip install\b|-m venv\b|\.venv/bin/activate|tests/run\.sh")

SHORTER = {
    "sh tests/run.sh --all": "sh tests/run.sh --all core/tests/test_hostlist.py",
    "python tests/mutation/run.py --sample 200 --seed 1 --session mutants.sqlite": (
        "python tests/mutation/run.py --sample 1 --seed 1 --session mutants.sqlite --only preempt_partition_prio"
        " --reach 0"
    ),
}
"""Commands that take hours -> the same with less to do."""
NEEDS = {"makeway": "makeway", "tests/mutation/run.py": "cosmic_ray", "sphinx": "furo"}
"""Word of a command -> the module that it cannot do without here."""


@attrs.frozen
class Block:
    """A block of shell commands."""

    page: str
    number: int
    text: str

    @property
    def commands(self) -> list[str]:
        """What it says, one command a line; those that take hours are shortened."""
        lines = [line for line in self.text.splitlines() if line.strip() and not line.startswith("#")]
        return [SHORTER.get(line, line) for line in lines]

    @property
    def here(self) -> list[str]:
        """Those of them that install nothing."""
        return [line for line in self.commands if not _INSTALLS.search(line)]

    def __str__(self) -> str:
        return f"{self.page} {self.number}"


def _blocks() -> list[Block]:
    return [
        Block(page, number, text)
        for page in PAGES
        for number, text in enumerate(_BLOCK.findall((ROOT / page).read_text()), 1)
    ]


def _run(lines: list[str], folder: Path, environment: dict[str, str], seconds: float) -> str:
    """Run commands in one shell, which stops at the first that fails; return what it printed.

    :raises AssertionError: one failed, or they took longer.
    """
    script = "set -e\n" + "\n".join(f"echo {shlex.quote('+ ' + line)}\n{line}" for line in lines)
    try:
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"more than {seconds:g} s; printed so far:\n{late.output!r}") from None
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


def test_the_pages_have_blocks() -> None:
    """Nothing is shortened that no page says any more, and every block says something."""
    said = {line for block in _blocks() for line in block.text.splitlines()}
    assert set(SHORTER) <= said
    assert {block.page for block in _blocks()} == set(PAGES)
    assert all(block.commands for block in _blocks())


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree, of what is committed there or could be."""
    folder = tmp_path_factory.mktemp("steps") / "makeway"
    ignored = shutil.ignore_patterns(
        ".venv", ".git", ".*_cache", ".hypothesis", "__pycache__", "_build", "dist", "nightly", "*.sqlite"
    )
    shutil.copytree(ROOT, folder, ignore=ignored, symlinks=True)
    return folder


def _missing(line: str) -> list[str]:
    words = line.split()
    return [
        module for word, module in NEEDS.items() if word in words and not importlib.util.find_spec(module)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            block, id=str(block), marks=[pytest.mark.slow] if re.search("sphinx|mutation", block.text) else []
        )
        for block in _blocks()
        if block.here
    ],
)
def test_blocks_that_install_nothing(block: Block, copy: Path) -> None:
    """In the present environment; what a block installs first is taken to be there, or the block is skipped."""
    missing = [module for line in block.here for module in _missing(line)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if any("mutation" in line for line in block.here) and not (copy / ".git").exists():
        _commit(copy)
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    with _state(environment):
        printed = _run(block.here, copy, environment, 600)
    assert all(f"+ {line}\n" in printed for line in block.here)


@contextlib.contextmanager
def _state(environment: dict[str, str]) -> Iterator[None]:
    """Give daemons that a block starts a state directory of their own, and end them."""
    with tempfile.TemporaryDirectory(prefix="mw-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        environment["MAKEWAY_STATE"] = folder
        environment.pop("MAKEWAY_SOCKET", None)
        try:
            yield
        finally:
            if Path(folder, "socket").exists():
                command = ["makeway", "down", "--kill", "--timeout", "30"]
                subprocess.run(command, env=environment, timeout=120, check=False)


def _commit(folder: Path) -> None:
    """Make the copy a repository: mutants are made of what is committed."""
    if not shutil.which("git"):
        pytest.skip("no git")
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    for command in (["init", "--quiet"], ["add", "--all"], [*author, "commit", "--quiet", "-m", "copy"]):
        subprocess.run(["git", *command], cwd=folder, check=True, timeout=60)


@pytest.mark.nightly
def test_every_block_in_a_fresh_clone(tmp_path: Path) -> None:
    """As somebody who has nothing but Python and git."""
    clone = tmp_path / "makeway"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, timeout=300)
    gone = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}
    environment = {name: value for name, value in os.environ.items() if name not in gone}
    base = Path(sys._base_executable).parent  # type: ignore[attr-defined]  # the Python that made this environment
    environment["PATH"] = f"{base}{os.pathsep}{os.environ['PATH']}"
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    lines = [line for block in _blocks() for line in block.commands]
    printed = _run(lines, clone, environment, 3600)
    assert all(f"+ {line}\n" in printed for line in lines)
