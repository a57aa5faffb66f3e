"""Hold every import to `layers.toml`: arrows point down, plugins know only the contract."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).parents[1]
RULES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("layers.toml").read_text())
LAYERS: list[str] = [layer["name"] for layer in RULES["layer"]]
PLUGINS = "plugins"
WORLDS = "worlds of others"
LIBRARIES: dict[str, Any] = {library["name"]: library for library in RULES["library"]}
KINDS = {PLUGINS: RULES["plugins"], WORLDS: RULES["worlds"], **LIBRARIES}
"""Plugins by kind; each with the highest layer that they may import."""
SOURCES = [
    ROOT / "core/src",
    *sorted(ROOT.glob("plugins/*/src")),
    ROOT / "testing/src",
    *sorted(ROOT.glob("examples/plugins/*/src")),
]


def _module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module_name(path, source): path for source in SOURCES for path in sorted(source.rglob("*.py"))}


@attrs.frozen
class Import:
    """One import statement's module."""

    target: str
    line: int
    annotations_only: bool


def layer_of(module: str) -> str | None:
    """Name the layer or library of `module`: the longest entry counts; None: not listed."""
    tables = [(layer["name"], layer["modules"]) for layer in RULES["layer"]]
    tables += [(name, library["modules"]) for name, library in LIBRARIES.items()]
    tables += [(name, RULES[table]["modules"]) for name, table in ((PLUGINS, "plugins"), (WORLDS, "worlds"))]
    entries = [(len(entry), name, entry) for name, listed in tables for entry in listed]
    matching = [(length, name) for length, name, entry in entries if is_in(module, entry)]
    if not matching and not is_in(module, "makeway.*"):
        return PLUGINS
    return max(matching)[1] if matching else None


def is_in(module: str, entry: str) -> bool:
    """Whether an entry of layers.toml means a module; ``a.*`` means a package and all in it."""
    if entry.endswith(".*"):
        return f"{module}.".startswith(entry[:-1])
    return module == entry


def is_pure(layer: str) -> bool:
    """Say whether modules of `layer` have neither clock nor I/O nor chance."""
    tables = KINDS | {table["name"]: table for table in RULES["layer"]}
    return bool(tables[layer].get("pure"))


def imports_of(source: str, module: str) -> Iterator[Import]:
    """Find every import of `source`, in functions and under TYPE_CHECKING too."""
    tree = ast.parse(source)
    guarded = {id(inner) for node in ast.walk(tree) if _guards_types(node) for inner in _body(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}, line {node.lineno}: relative import"
            base = node.module or ""
            names = [_deepest(base, alias.name) for alias in node.names]
        else:
            continue
        for name in dict.fromkeys(names):
            yield Import(name, node.lineno, id(node) in guarded)


def _guards_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _body(node: ast.AST) -> Iterator[ast.AST]:
    assert isinstance(node, ast.If)
    for statement in node.body:
        yield from ast.walk(statement)


def _deepest(base: str, name: str) -> str:
    return f"{base}.{name}" if f"{base}.{name}" in MODULES else base


def _unit(module: str) -> str:
    """Name the plugin that `module` is part of: a built-in module, or the whole package."""
    parts = module.split(".")
    return ".".join(parts[:3]) if parts[0] == "makeway" else parts[0]


def faults(module: str, source: str) -> list[str]:
    """List what `module` may not import, one sentence each."""
    layer = layer_of(module)
    if layer is None:
        return [f"{module} belongs to no layer; add it to tests/layers.toml"]
    found = (_fault(module, layer, wanted) for wanted in imports_of(source, module))
    return [fault for fault in found if fault]


def _fault(module: str, layer: str, wanted: Import) -> str | None:
    top = wanted.target.partition(".")[0]
    where = f"{module}, line {wanted.line}"
    if is_pure(layer) and top in RULES["pure"]["banned"]:
        return f"{where}: {top} is not for {layer} (no clock, no I/O, no chance)"
    if top != "makeway" and not top.startswith("makeway_"):
        return None
    if wanted.annotations_only and any(is_in(module, entry) for entry in RULES["annotations"]["modules"]):
        return None
    target = layer_of(wanted.target)
    if target is None:
        return f"{where}: {wanted.target} belongs to no layer"
    same = _unit(module) == _unit(wanted.target)
    if target in LIBRARIES:
        return None if same and not _climbs(layer, target) else _uninvited(module, wanted, target, where)
    if target in KINDS:
        own = same and layer == target
        return None if own else f"{where}: {wanted.target} is a plugin, which nothing imports"
    highest = _highest(layer)
    if LAYERS.index(target) < LAYERS.index(highest):
        return f"{where}: {wanted.target} ({target}) lies above {highest}"
    return None


def _highest(layer: str) -> str:
    """Name the highest layer of the core that `layer` sees."""
    return str(KINDS[layer]["layer"]) if layer in KINDS else layer


def _climbs(layer: str, target: str) -> bool:
    """Say whether a part of a library imports one that sees more than itself."""
    return LAYERS.index(_highest(target)) < LAYERS.index(_highest(layer))


def _uninvited(module: str, wanted: Import, target: str, where: str) -> str | None:
    if _unit(module) == _unit(wanted.target):
        return f"{where}: {wanted.target} ({target}) lies above {_highest(layer_of(module) or PLUGINS)}"
    if _unit(module) in LIBRARIES[target]["users"]:
        return None
    return f"{where}: {wanted.target} is of {_unit(wanted.target)}, which is not for {_unit(module)}"


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    """Fails with every import that points up, sideways to a plugin, or at clock, I/O and chance."""
    assert not faults(module, MODULES[module].read_text())


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        pytest.param("makeway_engine.core", "import makeway_app.cli", "lies above", id="engine: no cli"),
        pytest.param("makeway.model", "from makeway import record", "lies above", id="contract: no engine"),
        pytest.param("makeway.model", "def f():\n    import time", "no clock", id="in functions too"),
        pytest.param("makeway_engine.core", "import os.path", "no clock", id="os.path is os"),
        pytest.param("makeway_x", "from makeway_engine import core", "lies above", id="plugin: no engine"),
        pytest.param("makeway_x", "import random", "no clock", id="plugin: no chance"),
        pytest.param("makeway_x", "import makeway_y", "is a plugin", id="plugin: no sibling"),
        pytest.param("makeway_x", "import makeway.config", "lies above", id="plugin: no config"),
        pytest.param("makeway_app.cli", "import makeway_y", "is a plugin", id="core: no plugin"),
        pytest.param("makeway_app.cli", "import makeway_local_world", "is a plugin", id="core: no world"),
        pytest.param("makeway_x", "import makeway.worlds.events", "lies above", id="plugin: no events"),
        pytest.param("makeway_x", "import makeway_local_world", "is a plugin", id="plugin: no world"),
        pytest.param(
            "makeway_app.cli.x", "import makeway_slurm.check", "not for", id="core: nothing of Slurm's"
        ),
        pytest.param("makeway_lsf_queue", "import makeway_slurm", "not for", id="LSF: nothing of Slurm's"),
        pytest.param("makeway_x", "import makeway_testing", "not for", id="plugin: no kit for tests"),
        pytest.param(
            "makeway_slurm_rules.memory",
            "import makeway_slurm.check",
            "not for",
            id="shared by policies: nothing that reads files",
        ),
        pytest.param("makeway_app.cli", "import makeway.builtin.a", "is a plugin", id="core: no built-in"),
        pytest.param(
            "makeway.builtin.a",
            "import makeway.builtin.b",
            "is a plugin",
            id="built-ins: no sibling",
        ),
        pytest.param(
            "makeway.model",
            "if TYPE_CHECKING:\n    from makeway.record import Line",
            "lies above",
            id="annotations count",
        ),
        pytest.param("makeway.nobody_listed_this", "", "no layer", id="every module is listed"),
    ],
)
def test_wrong_imports_are_found(module: str, source: str, fault: str) -> None:
    """The checker itself sees what it is there for."""
    assert [fault in line for line in faults(module, source)] == [True]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        pytest.param("makeway_app.cli", "import os\nimport makeway_engine", id="people: all below"),
        pytest.param("makeway_x", "import makeway_x.part\nimport makeway.model", id="plugin: its own"),
        pytest.param(
            "makeway_select_linear.request", "import makeway_slurm_rules.memory", id="Slurm's policies"
        ),
        pytest.param("makeway_slurm.check", "import makeway_slurm_rules.memory", id="library: its own"),
        pytest.param(
            "makeway_local_world.a",
            "import time, subprocess\nimport makeway.worlds.api, makeway_engine.engine\nimport makeway_local_world.b",
            id="world: clock, I/O, the engine, its own",
        ),
        pytest.param(
            "makeway.hookspecs",
            "if TYPE_CHECKING:\n    from makeway.record import Line",
            id="hookspecs: annotations",
        ),
    ],
)
def test_right_imports_pass(module: str, source: str) -> None:
    """The checker leaves alone what the layers allow."""
    assert not faults(module, source)


ABOVE = ("makeway_app.*", "makeway_engine.*")


@pytest.mark.slow
def test_the_contract_knows_neither_engine_nor_command() -> None:
    """Of the distributions that every replay needs, each imports only those below it."""
    core = [name for name in MODULES if is_in(name, "makeway.*")]
    engine = [name for name in MODULES if is_in(name, "makeway_engine.*")]
    assert len(core) > len(engine) > 0
    for listed, above in ((core, ABOVE), (engine, ABOVE[:1])):
        climbing = [
            f"{name}, line {wanted.line}"
            for name in listed
            for wanted in imports_of(MODULES[name].read_text(), name)
            if any(is_in(wanted.target, entry) for entry in above)
        ]
        assert climbing == []


def test_only_the_registry_builds_a_plugin_manager() -> None:
    """Nothing else can call a hook past the checks of `makeway.registry`."""
    users = [name for name, path in MODULES.items() if "PluginManager" in path.read_text()]
    assert all(is_in(name, "makeway.registry.*") for name in users)
