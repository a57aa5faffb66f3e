"""Hold files, names and settings of the repository together."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PLUGIN_DIRS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
UNTRACKED = {"__pycache__", "build", "dist"}


def _files() -> list[Path]:
    """List what is tracked or about to be; without git, whatever lies there."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        # The owner of a checkout may be another user than the one who tests it.
        command[1:1] = ["-c", f"safe.directory={ROOT}"]
        listed = subprocess.check_output(command, cwd=ROOT, text=True)
        paths = [ROOT / name for name in listed.split("\0") if name]
    else:
        paths = list(_walk(ROOT))
    return sorted(path for path in paths if path.is_file())


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            hidden = path.name.startswith(".") and path.name != ".ci"
            if not hidden and path.name not in UNTRACKED:
                yield from _walk(path)
        else:
            yield path


def _occurrences(pattern: str) -> list[str]:
    found = []
    for path in _files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        hits = (number for number, line in enumerate(text.splitlines(), 1) if re.search(pattern, line))
        found += [f"{path.relative_to(ROOT)}:{number}" for number in hits]
    return found


def _settings(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())


# The words are written in pieces, so that this file is no find of its own.
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"(?<![\w.}>-])/(wor" r"k|roo" r"t|far" r"m)\b", id="paths of one machine"),
        pytest.param(r"pypi\.or" r"g|pythonhoste" r"d|anaconda\.or" r"g|index-ur" r"l", id="registry hosts"),
        pytest.param(r"\b(TOD" r"O|FIXM" r"E)\b", id="unfinished"),
    ],
)
def test_no_file_mentions(pattern: str) -> None:
    """Lists every place as ``file:line``."""
    assert not _occurrences(pattern)


def test_no_lock_file() -> None:
    """A library is tested against what users get, not against one frozen set."""
    assert not [path for path in _files() if path.name == "uv.lock"]


def _contract_modules() -> list[Path]:
    rules = tomllib.loads((ROOT / "tests/layers.toml").read_text())
    names = next(layer["modules"] for layer in rules["layer"] if layer["name"] == "contract")
    paths = [ROOT / "core/src" / f"{name.replace('.', '/')}.py" for name in names]
    return [path for path in paths if path.is_file()]


def _undocumented(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        if not ast.get_docstring(node):
            yield f"{prefix}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(node.body, f"{prefix}{node.name}.")


@pytest.mark.parametrize("path", _contract_modules(), ids=lambda path: path.stem)
def test_the_contract_is_documented(path: Path) -> None:
    """Every public module, class, function and method that plugin authors meet says what it is."""
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    assert not list(_undocumented(tree.body, ""))


@pytest.mark.parametrize("folder", PLUGIN_DIRS, ids=lambda folder: folder.name)
def test_one_name_per_plugin(folder: Path) -> None:
    """The directory, the distribution, the package and the tools' settings spell it alike."""
    project = _settings(folder)["project"]
    package = f"makeway_{folder.name}"
    packages = {path.name for path in (folder / "src").iterdir() if path.name.startswith("makeway_")}
    # `pip install makeway` brings the command.
    assert project["name"] == ("makeway" if folder.name == "app" else package.replace("_", "-"))
    modules = [module for group in project.get("entry-points", {}).values() for module in group.values()]
    assert package in {re.split("[.:]", module)[0] for module in modules} <= packages
    assert all((folder / "src" / each / "py.typed").is_file() for each in packages)
    assert (folder / "README.md").is_file()
    mypy_path = _settings(ROOT)["tool"]["mypy"]["mypy_path"]
    assert f"$MYPY_CONFIG_FILE_DIR/plugins/{folder.name}/src" in mypy_path


DISTRIBUTIONS = [*PLUGIN_DIRS, ROOT / "testing"]
HOLDER = {
    path.name: str(_settings(folder)["project"]["name"])
    for folder in DISTRIBUTIONS
    for path in (folder / "src").iterdir()
}
"""Import package -> the distribution that holds it."""


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_distributions_need_what_they_import_and_what_the_layers_grant(folder: Path) -> None:
    """Below them the highest floor that they import, beside them the libraries granted to them."""
    project = _settings(folder)["project"]
    rules = tomllib.loads((ROOT / "tests/layers.toml").read_text())
    granted = {
        HOLDER[library["modules"][0].partition(".")[0]]
        for library in rules["library"]
        if any(HOLDER.get(user) == project["name"] for user in library["users"])
    }
    ours = [name for name in project["dependencies"] if re.match(r"makeway\b", name)]
    wanted = {_floor(folder), *granted} - {project["name"]}
    assert sorted(ours) == sorted(f"{name}>=0.1,<0.2" for name in wanted)


def _floor(folder: Path) -> str:
    """Name what a distribution builds on: the command and the engine, or the contract alone."""
    texts = [path.read_text(encoding="utf-8") for path in (folder / "src").rglob("*.py")]
    imported = {
        found
        for text in texts
        for found in re.findall(r"^ *(?:from|import) (makeway\w*)", text, re.MULTILINE)
    }
    builds_on = {HOLDER.get(package) for package in imported}
    return "makeway" if "makeway" in builds_on and folder.name != "app" else "makeway-core"


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_distributions_say_the_same_of_the_project(folder: Path) -> None:
    """The version stands in one file; addresses, licence and Pythons are those of the core."""
    core, own = _settings(ROOT / "core"), _settings(folder)
    for settings, place in ((core, ROOT / "core"), (own, folder)):
        version = settings["tool"]["hatch"]["version"]
        assert (place / version["path"]).resolve() == ROOT / "core/src/makeway/__init__.py"
        assert settings["project"]["dynamic"] == ["version"]
    assert own["project"]["license"].startswith(core["project"]["license"])
    for key in ("requires-python", "urls"):
        assert own["project"][key] == core["project"][key]
    pythons = [each for each in core["project"]["classifiers"] if "Python :: 3" in each or "Status" in each]
    assert set(pythons) <= set(own["project"]["classifiers"])


VENDORS = {
    "plugins/moab_qos/src/makeway_moab_qos": ("order", "recordings", "status", "vocabulary"),
    "plugins/lsf_queue/src/makeway_lsf_queue": ("status", "vocabulary"),
    "examples/plugins/openpbs/src/makeway_openpbs_sched": ("order",),
}
"""Plugins that imitate another scheduler, and what each has beside what all have."""
FLOOR_PLAN = ("actions", "check", "explain", "limits", "reader", "resume", "settings", "victims")
RETIRED = ("arbiter", "candidates", "checklist", "diagnose", "lint", "lints", "methods", "readers")


@pytest.mark.parametrize("folder", VENDORS)
def test_vendors_share_a_floor_plan(folder: str) -> None:
    """The same name for the same thing, so that who knows one finds it in another."""
    found = {path.stem for path in (ROOT / folder).iterdir()}
    missing = {*FLOOR_PLAN, *VENDORS[folder]} - found
    assert not missing
    assert not found.intersection(RETIRED)


def test_every_distribution_carries_the_licence() -> None:
    """Each project holds a copy: a link out of the project breaks its sdist."""
    licence = (ROOT / "LICENSE").read_text()
    for folder in [ROOT / "core", *DISTRIBUTIONS]:
        assert (folder / "LICENSE").read_text() == licence


def test_ci_runs_the_tests_as_the_readme_says() -> None:
    """What newcomers are told to type is what is tested."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if "tests/run.sh" in line]
    assert commands == ["sh tests/run.sh --all"]
    steps = [line.strip() for line in (ROOT / ".ci/run").read_text().splitlines()]
    assert any(step == commands[0] or step.startswith(f"{commands[0]} 2>&1 |") for step in steps)
