"""Install what users get, the wheels, into a fresh environment, and use it from there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import attrs
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]

ROOT = Path(__file__).parents[1]
PROJECTS = ["core", "plugins/preempt_partition_prio", "plugins/select_linear"]
BUILT_IN = {"preempt/none", "search/least_disruption"}
POLICY_NAME = re.compile(r"\b(?:select|preempt|gang|search|order|moab|lsf)/[a-z_]+\b")

CONFIG = """
[[node]]
name = "n[1-2]"
sockets = 1
cores_per_socket = 4

[[partition]]
name = "batch"
default = true

[policy]
select = "select/linear"

[[job]]
id = "1"
nodes = 1
run_time = 60
"""


@attrs.frozen
class Environment:
    """A virtual environment without pip; the tests' own pip installs into it."""

    root: Path

    def pip(self, *arguments: str | Path) -> None:
        """Install or uninstall."""
        target = self.root / "bin/python"
        _succeed(sys.executable, "-m", "pip", "--python", target, *arguments)

    def makeway(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run the console command; whatever it answers."""
        return _run(self.root / "bin/makeway", *arguments, cwd=self.root)


def _run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    dropped = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    env |= {"COLUMNS": "250", "NO_COLOR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def _succeed(*command: str | Path) -> str:
    done = _run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the wheel of every distribution; by import package."""
    folder = tmp_path_factory.mktemp("wheels")
    sources = [ROOT / project for project in PROJECTS]
    _succeed(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, *sources)
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


@pytest.fixture
def fresh(tmp_path: Path, wheels: dict[str, Path]) -> Environment:
    """Make an environment with the core's wheel alone and what it depends on."""
    environment = Environment(tmp_path / "venv")
    _succeed(sys.executable, "-m", "venv", "--without-pip", environment.root)
    environment.pip("install", wheels["makeway"])
    return environment


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a config that names a plugin which the core does not bring."""
    path = tmp_path / "cluster.toml"
    path.write_text(CONFIG)
    return path


def _listed(environment: Environment) -> set[str]:
    done = environment.makeway("plugins")
    assert done.returncode == 0, done.stdout + done.stderr
    return set(POLICY_NAME.findall(done.stdout))


@pytest.mark.parametrize("package", ["makeway", "makeway_preempt_partition_prio", "makeway_select_linear"])
def test_wheels_hold_types_and_licence(wheels: dict[str, Path], package: str) -> None:
    """And nothing beside the package: no tests."""
    names = zipfile.ZipFile(wheels[package]).namelist()
    assert f"{package}/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {package}


def test_templates_are_in_the_wheel(wheels: dict[str, Path]) -> None:
    """Every one that ``makeway new-plugin`` fills in."""
    source = ROOT / "core/src"
    templates = {
        str(path.relative_to(source)) for path in (source / "makeway/templates").rglob("*") if path.is_file()
    }
    assert len(templates) > 30
    assert templates <= set(zipfile.ZipFile(wheels["makeway"]).namelist())


def test_plugins_come_and_go_with_their_wheels(
    fresh: Environment, wheels: dict[str, Path], config: Path
) -> None:
    """The core brings two policies; a third is usable while its wheel is installed."""
    assert _listed(fresh) == BUILT_IN
    _assert_missing(fresh, config)

    fresh.pip("install", "--no-deps", wheels["makeway_select_linear"])
    assert _listed(fresh) == BUILT_IN | {"select/linear"}
    for command in ("check", "replay"):
        done = fresh.makeway(command, config)
        assert done.returncode == 0, done.stdout + done.stderr

    fresh.pip("uninstall", "--yes", "makeway-select-linear")
    assert _listed(fresh) == BUILT_IN
    _assert_missing(fresh, config)


def _assert_missing(environment: Environment, config: Path) -> None:
    for command in ("check", "replay"):
        done = environment.makeway(command, config)
        shown = done.stdout + done.stderr
        assert done.returncode != 0, shown
        assert "select/linear" in shown
        assert "makeway-select-linear" in shown
        assert "Traceback" not in shown
