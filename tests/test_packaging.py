"""Install what users get, the wheels, into fresh environments, and use it from there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs
import pytest
from packaging.requirements import Requirement

import makeway
from makeway.errors import ConfigError
from makeway_app.cli.inputs import load_config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
FOLDERS = [
    ROOT / "core",
    ROOT / "plugins/app",
    ROOT / "testing",
    *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml") if path.parent.name != "app"),
]
LISTED = re.compile(r"^([a-z]+/[a-z_]+) ", re.MULTILINE)
"""A name in what ``makeway plugins`` shows."""


@attrs.frozen(kw_only=True)
class Distribution:
    """One distribution of this repository, as its pyproject.toml describes it."""

    folder: Path
    project: Mapping[str, Any]

    @property
    def name(self) -> str:
        """As in an index."""
        return str(self.project["name"])

    @property
    def packages(self) -> list[str]:
        """The import packages."""
        return sorted(path.name for path in (self.folder / "src").iterdir() if path.name != "__pycache__")

    @property
    def entry_points(self) -> Mapping[str, Mapping[str, str]]:
        """Group -> name -> object."""
        found: Mapping[str, Mapping[str, str]] = self.project.get("entry-points", {})
        return found

    def requires(self, extra: str = "") -> list[Requirement]:
        """Return what it, or an extra of it, asks for."""
        texts = self.project["optional-dependencies"][extra] if extra else self.project["dependencies"]
        return [Requirement(text) for text in texts]

    def ours(self, extra: str = "") -> set[str]:
        """Return which distributions of this repository come with it, itself among them."""
        found = {self.name}
        for requirement in [*self.requires(), *(self.requires(extra) if extra else ())]:
            if requirement.name in OF_NAME and requirement.name != self.name:
                found |= OF_NAME[requirement.name].ours()
            for more in requirement.extras if requirement.name == self.name else ():
                found |= self.ours(more)
        return found


def _described(folder: Path) -> Distribution:
    table = tomllib.loads((folder / "pyproject.toml").read_text())
    return Distribution(folder=folder, project=table["project"])


DISTRIBUTIONS = [_described(folder) for folder in FOLDERS]
CORE, APP, KIT, *PLUGINS = DISTRIBUTIONS
HOUSE = {CORE.name, APP.name}
"""What `pip install makeway` brings."""
OF_NAME = {each.name: each for each in DISTRIBUTIONS}
each_distribution = pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda each: each.name)

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

    def pip(self, *arguments: str | Path) -> str:
        """Install or uninstall; return what pip says."""
        target = self.root / "bin/python"
        return _succeed(sys.executable, "-m", "pip", "--python", target, *arguments)

    def install(self, what: str, index: Path) -> None:
        """Install a distribution with what it declares, out of a folder of wheels and from nowhere else.

        Compiled is only what is imported afterwards, which is less.
        """
        self.pip("install", "--quiet", "--no-compile", "--no-index", "--find-links", index, what)

    def ours(self) -> set[str]:
        """Return which distributions of this repository are in it."""
        (packages,) = self.root.glob("lib/python*/site-packages")
        return {each.name for each in metadata.distributions(path=[str(packages)])} & OF_NAME.keys()

    def python(self, program: str) -> str:
        """Run a program; return what it prints."""
        return _succeed(self.root / "bin/python", "-W", "error", "-c", program)

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
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build all wheels, ours and those that they need, into one folder.

    The first command is given what the README's is: the plugins must find the core, and one another, in it.
    """
    folder = tmp_path_factory.mktemp("wheels")
    # An environment to build each in would take minutes: the tests' own has what builds them.
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation")
    build = (*pip, "--find-links", folder, "--wheel-dir", folder)
    _succeed(*build, *(each.folder for each in (CORE, APP, *PLUGINS)))
    _succeed(*build, KIT.folder)
    return folder


@pytest.fixture(scope="module")
def wheels(index: Path) -> dict[str, Path]:
    """Return the wheels of this repository, by distribution."""
    found = {path.name.partition("-")[0]: path for path in index.glob("*.whl")}
    return {each.name: found[each.name.replace("-", "_")] for each in DISTRIBUTIONS}


@pytest.fixture
def empty(tmp_path: Path) -> Environment:
    """Make an environment with nothing in it."""
    environment = Environment(tmp_path / "venv")
    _succeed(sys.executable, "-m", "venv", "--without-pip", environment.root)
    return environment


@pytest.fixture
def fresh(empty: Environment, index: Path) -> Environment:
    """Make an environment with the command alone and what it depends on."""
    empty.install("makeway", index)
    return empty


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a config that names a plugin which the core does not bring."""
    path = tmp_path / "cluster.toml"
    path.write_text(CONFIG)
    return path


def _listed(environment: Environment) -> set[str]:
    done = environment.makeway("plugins")
    assert done.returncode == 0, done.stdout + done.stderr
    return set(LISTED.findall(done.stdout))


def _names(*distributions: str) -> set[str]:
    """Return the plugins that distributions offer."""
    return {name for each in distributions for name in OF_NAME[each].entry_points.get("makeway", ())}


# ---------------------------------------------------------------------------------- what is declared
def test_extras() -> None:
    """``all`` is every plugin, ``dev`` what tests of a plugin need; some bring nothing of this project."""
    assert APP.ours("all") == {*HOUSE, *(plugin.name for plugin in PLUGINS)}
    assert APP.ours("dev") == KIT.ours() | OF_NAME["makeway-slurm"].ours() | {"makeway-select-linear"}
    assert APP.ours("tune") == {*HOUSE, "makeway-tune"}
    for extra in ("figures", "parquet", "sweep"):
        assert APP.ours(extra) == HOUSE


SITES = {"kueue": "kueue.yaml", "lsf": "lsb.queues", "moab": "moab.cfg", "slurm": "slurm.conf"}
"""Extra -> the file of a site that it is for."""


@pytest.mark.parametrize("extra", SITES)
def test_an_extra_brings_what_its_sites_name(extra: str) -> None:
    """Whatever plugins and scheduler the sites of tests and examples amount to, explain, and pages."""
    found = _names(*APP.ours(extra))
    files = [each for top in ("examples", "tests/sites") for each in (ROOT / top).rglob(SITES[extra])]
    assert len(files) > 5
    read = 0
    for file in files:
        nodes = [each for each in file.parent.glob("*.toml") if each.read_text().startswith("[[node]]")]
        try:
            config = load_config(file, nodes=nodes[0] if nodes else None).config
        except ConfigError:  # a site that shows what is refused
            continue
        read += 1
        policy = config.policy
        named = {policy.select, policy.preempt, policy.priority, policy.search, *policy.plugins} - {None, ""}
        strange = {name for name in named if name not in found}
        assert not strange, (file, strange)
    assert read > 3


@pytest.mark.parametrize(("extra", "world"), [("live", "makeway-slurm"), ("local", "makeway-local-world")])
def test_an_extra_for_a_world_brings_the_policies_of_slurm(extra: str, world: str) -> None:
    assert APP.ours(extra) >= APP.ours("slurm") | {world}


BELOW = {"makeway", "makeway-core", "makeway-slurm-rules"}
"""What plugins may build on."""


def test_floors() -> None:
    """The core asks for none of the others, and no plugin for one that is no library."""
    assert CORE.ours() == {CORE.name}
    assert APP.ours() == HOUSE
    for plugin in PLUGINS:
        assert plugin.ours() <= BELOW | {plugin.name}


@each_distribution
def test_one_version(distribution: Distribution) -> None:
    """All distributions have one version until 1.0, and ask for each other in it."""
    assert metadata.version(distribution.name) == makeway.__version__
    extras = distribution.project.get("optional-dependencies", {})
    for requirement in [
        *distribution.requires(),
        *(each for name in extras for each in distribution.requires(name)),
    ]:
        if requirement.name in OF_NAME and not requirement.extras:
            assert requirement.specifier == Requirement("makeway>=0.1,<0.2").specifier


# ---------------------------------------------------------------------------------------- the wheels
@each_distribution
def test_wheels_hold_types_and_licence(wheels: dict[str, Path], distribution: Distribution) -> None:
    """And nothing beside the package: no tests."""
    names = zipfile.ZipFile(wheels[distribution.name]).namelist()
    assert {f"{package}/py.typed" for package in distribution.packages} <= {*names}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    tops = {name.partition("/")[0].partition("-")[0] for name in names}
    assert tops == {*distribution.packages, distribution.name.replace("-", "_")}


@each_distribution
def test_wheels_hold_all_files(wheels: dict[str, Path], distribution: Distribution) -> None:
    """Templates, tables, scripts of pages: whatever lies beside the modules."""
    source = distribution.folder / "src"
    files = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files
    assert files <= set(zipfile.ZipFile(wheels[distribution.name]).namelist())


# ------------------------------------------------------------------------------------- each one alone
EVERY_MODULE = """
import importlib, pkgutil
from importlib import metadata
packages = [importlib.import_module(name) for name in {packages!r}]
extras = [each for each in metadata.requires({name!r}) or () if "extra ==" in each]
for module in (m for p in packages for m in pkgutil.walk_packages(p.__path__, p.__name__ + ".")):
    if not module.name.endswith(".__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if not any(each.startswith(str(error.name)) for each in extras):
                raise
for point in metadata.distribution({name!r}).entry_points:
    point.load()
"""


@each_distribution
def test_alone(empty: Environment, index: Path, distribution: Distribution) -> None:
    """Every module can be imported with no more than what the distribution declares, but for what an extra brings."""
    empty.install(distribution.name, index)
    assert empty.ours() == distribution.ours()
    empty.python(EVERY_MODULE.format(packages=distribution.packages, name=distribution.name))
    listed = empty.python(
        "from makeway import registry\nprint(*(each.name for each in registry.installed()))"
    )
    assert set(listed.split()) == _names(*distribution.ours())


@pytest.mark.parametrize("extra", ["all", "dev"])
def test_installed_extras(empty: Environment, index: Path, extra: str) -> None:
    """An index with all wheels gives what an extra names."""
    empty.install(f"makeway[{extra}]", index)
    assert empty.ours() == APP.ours(extra)
    assert _listed(empty) == _names(*APP.ours(extra))


def test_author_writes_a_plugin(empty: Environment, index: Path) -> None:
    """``makeway[dev]`` is enough for ``makeway new-plugin``."""
    empty.install("makeway[dev]", index)
    done = empty.makeway("new-plugin", "youngest", "--kind", "preempt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (empty.root / "makeway-preempt-youngest/pyproject.toml").is_file()


def test_the_contract_alone_says_who_brings_the_command(empty: Environment, index: Path) -> None:
    """There is none in it, but ``python -m makeway`` is found."""
    empty.install("makeway-core", index)
    done = _run(empty.root / "bin/python", "-m", "makeway", "plugins")
    assert done.returncode == 1
    assert done.stderr == (
        "makeway: the distribution makeway brings the command, and it is not installed: pip install makeway\n"
    )


# ------------------------------------------------------------------------------ the command by itself
def test_core_alone_replays(fresh: Environment, config: Path) -> None:
    """A TOML cluster without preemption needs no plugin."""
    config.write_text(CONFIG.replace("select/linear", "select/whole_nodes"))
    done = fresh.makeway("replay", config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "jobs unfinished" in done.stdout


def test_core_alone_names_who_reads(fresh: Environment, tmp_path: Path) -> None:
    """A file of another scheduler is answered by the extra that brings its reader and its policies."""
    for name, brings in (
        ("slurm.conf", "makeway[slurm]"),
        ("moab.cfg", "makeway[moab]"),
        ("lsb.queues", "makeway[lsf]"),
    ):
        (tmp_path / name).write_text("ClusterName=x\n")
        done = fresh.makeway("replay", tmp_path / name)
        assert done.returncode == 2, done.stdout + done.stderr
        assert f"pip install {brings}" in done.stderr
        assert "Traceback" not in done.stderr


def test_core_alone_names_who_brings(fresh: Environment, tmp_path: Path) -> None:
    """A plugin or a command of this repository that is not installed, too."""
    asked: list[list[str]] = []
    wanted: list[tuple[int, str]] = []
    for plugin in PLUGINS:
        for name in sorted(_names(plugin.name)):
            config = tmp_path / f"{len(asked)}.toml"
            config.write_text(CONFIG.replace("[policy]", f"[policy]\nplugins = [{name!r}]"))
            asked.append(["check", str(config)])
            wanted.append((1, f"'pip install {plugin.name}' brings it"))
    for brings in (KIT, *PLUGINS):
        for command in brings.entry_points.get("makeway.commands", ()):
            asked.append([command])
            wanted.append((2, f"pip install {brings.name}"))
    found = json.loads(fresh.python(IN_ONE_PROCESS.format(asked=asked)))
    for (status, words), (ended, output) in zip(wanted, found, strict=True):
        assert ended == status, output
        assert words in output


IN_ONE_PROCESS = """
import json
from click.testing import CliRunner
from makeway_app.cli import cli
done = [CliRunner().invoke(cli, words, prog_name="makeway") for words in {asked!r}]
print(json.dumps([(each.exit_code, each.output) for each in done]))
"""
"""Answer many commands, where each process for one would load everything anew."""


def test_plugins_come_and_go_with_their_wheels(fresh: Environment, index: Path, config: Path) -> None:
    """A plugin is usable while its wheel is installed."""
    assert _listed(fresh) == _names(*HOUSE)
    _assert_missing(fresh, config)

    fresh.install("makeway-select-linear", index)
    assert _listed(fresh) == _names(*HOUSE, "makeway-select-linear")
    for command in ("check", "replay"):
        done = fresh.makeway(command, config)
        assert done.returncode == 0, done.stdout + done.stderr

    fresh.pip("uninstall", "--yes", "makeway-select-linear")
    assert _listed(fresh) == _names(*HOUSE)
    _assert_missing(fresh, config)


def _assert_missing(environment: Environment, config: Path) -> None:
    for command in ("check", "replay"):
        done = environment.makeway(command, config)
        shown = done.stdout + done.stderr
        assert done.returncode != 0, shown
        assert "select/linear" in shown
        assert "makeway-select-linear" in shown
        assert "Traceback" not in shown
