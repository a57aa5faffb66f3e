"""Install the plugins of examples/plugins from their folders, as strangers would, and use them from there."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.registry import pip_name

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path.parent for path in ROOT.glob("examples/plugins/*/pyproject.toml"))
SIBLINGS = [
    "core",
    "plugins/app",
    "testing",
    "plugins/slurm",
    "plugins/slurm_rules",
    "plugins/select_linear",
    "plugins/select_cons_tres",
    "plugins/preempt_partition_prio",
]
"""What the examples run on; a stranger has them from the registry."""
_SHOWN = re.compile(r"^```sh\n(makeway [^\n]*)\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _rule_of_layers() -> Callable[[str, str], bool]:
    """Return how tests/test_import_contract.py reads an entry of tests/layers.toml."""
    found = importlib.util.spec_from_file_location(
        "layers", Path(__file__).with_name("test_import_contract.py")
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    rule: Callable[[str, str], bool] = module.is_in
    return rule


def _name(folder: Path) -> str:
    return folder.name


def _settings(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())


# ------------------------------------------------------------------------------------- the folders
def test_all_are_found() -> None:
    """A folder without a project would go untested."""
    assert [folder.name for folder in FOLDERS] == [
        "las",
        "least_work_lost",
        "openpbs",
        "site_calendar",
        "spot",
    ]


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_a_folder_is_a_whole_distribution(folder: Path) -> None:
    """Named so that the error about a missing plugin names it; typed, licensed, known to the tools here."""
    project = _settings(folder)["project"]
    points = project["entry-points"]["makeway"]
    assert project["name"] == pip_name(next(iter(points)))
    package = project["name"].replace("-", "_")
    assert {re.split("[.:]", module)[0] for module in points.values()} == {package}
    assert (folder / "src" / package / "py.typed").is_file()
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert project["dependencies"][0] == "makeway-core>=0.1,<0.2"
    mypy_path = _settings(ROOT)["tool"]["mypy"]["mypy_path"]
    assert f"$MYPY_CONFIG_FILE_DIR/examples/plugins/{folder.name}/src" in mypy_path


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_the_page_of_a_plugin(folder: Path) -> None:
    """Rule, keys, one scenario with its output, limits; and the list of plugins leads to it."""
    text = (folder / "README.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert {"Rule", "Keys and defaults", "Scenario", "Limits"} <= set(headings)
    assert _SHOWN.search(text)
    assert f"({folder.name}/README.md)" in (folder.parent / "README.md").read_text()


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{a.name}" for a in node.names if a.name.startswith("_"))


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_tests_need_no_more_than_the_contract_and_the_kit(folder: Path) -> None:
    """The packages themselves are held to the contract by tests/test_import_contract.py."""
    layers = tomllib.loads((ROOT / "tests/layers.toml").read_text())["layer"]
    contract = next(layer["modules"] for layer in layers if layer["name"] == "contract")
    is_in = _rule_of_layers()
    for path in sorted((folder / "tests").rglob("*.py")):
        ours = {name for name in _imports(path) if name.split(".")[0] == "makeway"}
        strange = {name for name in ours if not any(is_in(name, each) for each in contract)}
        assert not strange, f"{path.name} imports {sorted(strange)}"


# ----------------------------------------------------------------------------------- installed
@attrs.frozen
class Environment:
    """A virtual environment; the tests' own pip installs into it."""

    root: Path

    def run(self, *words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; whatever it answers."""
        dropped = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
        env = {name: value for name, value in os.environ.items() if name not in dropped}
        # The contracts' rules are held against few random runs here, against all of them every night.
        env |= {"COLUMNS": "250", "NO_COLOR": "1", "MAKEWAY_PROFILE": env.get("MAKEWAY_PROFILE", "quick")}
        program, *rest = words
        return subprocess.run(
            [str(self.root / "bin" / str(program)), *map(str, rest)],
            cwd=cwd or self.root,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Build all of them from their folders and install them into one fresh environment."""
    folder = tmp_path_factory.mktemp("strangers")
    root, wheels = folder / "venv", folder / "wheels"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    # Two dozen environments to build in would take minutes: the tests' own has what builds them.
    _pip(
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "--wheel-dir",
        wheels,
        *(ROOT / s for s in SIBLINGS),
        *FOLDERS,
    )
    _pip(
        "--python",
        root / "bin/python",
        "install",
        "--no-compile",
        *sorted(wheels.glob("*.whl")),
        "pytest",
        "hypothesis",
    )
    return Environment(root)


def _pip(*words: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


slow = pytest.mark.slow


@pytest.mark.parametrize("folder", [pytest.param(folder, marks=slow) for folder in FOLDERS], ids=_name)
def test_its_own_tests_pass_from_its_folder(environment: Environment, folder: Path, tmp_path: Path) -> None:
    """Against what was installed; at least one test runs."""
    cache = f"cache_dir={tmp_path}"
    done = environment.run(
        "python", "-m", "pytest", "-q", "-o", cache, "-W", "error", "--hypothesis-seed=0", "tests", cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b[1-9]\d* passed", done.stdout)


@slow
def test_sites_of_openpbs_are_answered(environment: Environment, tmp_path: Path) -> None:
    """Elsewhere they are skipped: the plugin is not installed where the other tests run."""
    cache = f"cache_dir={tmp_path}"
    done = environment.run(
        "python", "-m", "pytest", "-q", "-o", cache, ROOT / "tests/test_sites.py", "-k", "openpbs", cwd=ROOT
    )
    assert re.search(r"^[1-9]\d* passed, \d+ deselected", done.stdout, re.MULTILINE), (
        done.stdout + done.stderr
    )


@pytest.mark.parametrize("folder", [pytest.param(folder, marks=slow) for folder in FOLDERS], ids=_name)
def test_it_is_found_and_replays(environment: Environment, folder: Path, tmp_path: Path) -> None:
    """`makeway plugins` lists all its names; the scenario of its page replays, and prints what the page shows."""
    listed = environment.run("makeway", "plugins").stdout
    for name in _settings(folder)["project"]["entry-points"]["makeway"]:
        assert re.search(rf"^{re.escape(name)}\s", listed, re.MULTILINE)
    text = (folder / "README.md").read_text()
    (tmp_path / "scenario.toml").write_text(_TOML.findall(text)[-1])
    replayed = environment.run("makeway", "replay", "scenario.toml", cwd=tmp_path)
    assert replayed.returncode == 0, replayed.stderr
    assert re.search(r"^preemptions +[1-9]", replayed.stdout, re.MULTILINE)
    for command, output in _SHOWN.findall(text):
        done = environment.run(*shlex.split(command), cwd=tmp_path)
        assert (done.stdout, done.returncode) == (output, 0), done.stderr


@pytest.mark.parametrize("folder", [pytest.param(folder, marks=slow) for folder in FOLDERS], ids=_name)
def test_a_wrong_key_of_its_settings_is_refused(
    environment: Environment, folder: Path, tmp_path: Path
) -> None:
    """With status 2, path and no traceback."""
    name = next(iter(_settings(folder)["project"]["entry-points"]["makeway"]))
    text = _TOML.findall((folder / "README.md").read_text())[-1]
    config = tomllib.loads(text)
    assert name in config["policy"]["settings"]
    heading = f'[policy.settings."{name}"]\n'
    (tmp_path / "wrong.toml").write_text(text.replace(heading, f"{heading}nonsense = 1\n"))
    done = environment.run("makeway", "replay", "wrong.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert f'policy.settings."{name}".nonsense: unknown key' in done.stderr
    assert "Traceback" not in done.stderr
