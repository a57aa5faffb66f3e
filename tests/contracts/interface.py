"""Write down what the contract offers, for the frozen list of a version: ``python tests/contracts/interface.py``."""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import tomllib
import types
from pathlib import Path
from typing import Any

import attrs
import pluggy

from makeway import hookspecs
from makeway.moved_names import NAMES

ROOT = Path(__file__).parents[2]
PROMISED = (
    *("bitmap", "errors", "features", "foreign", "hookspecs", "hostlist", "levels", "model"),
    *("preemption", "settings"),
)
"""Modules of the contract that plugin authors import."""


def hooks(module: Any = hookspecs) -> dict[str, Any]:
    """Return hook -> its arguments, and whether the first answer wins; experimental ones are left out."""
    manager = pluggy.PluginManager("makeway")
    manager.add_hookspecs(module)
    return {
        name: {"arguments": list(caller.spec.argnames), "first": bool(caller.spec.opts["firstresult"])}
        for name, caller in sorted(vars(manager.hook).items())
        if caller.spec and not (inspect.getdoc(caller.spec.function) or "").startswith("EXPERIMENTAL")
    }


def names() -> dict[str, Any]:
    """Return module -> what it defines: classes with fields and members, functions with parameters."""
    layers = tomllib.loads((ROOT / "tests/layers.toml").read_text())["layer"]
    contract = next(layer["modules"] for layer in layers if layer["name"] == "contract")
    assert {f"makeway.{name}" for name in PROMISED} <= {name.removesuffix(".*") for name in contract}
    return {name: _forwarding(f"makeway.{name}") for name in PROMISED}


def _forwarding(name: str) -> dict[str, Any]:
    """Return what a module defines, and what it hands out that moved to another one."""
    found = _module(importlib.import_module(name))
    if name in NAMES:
        found |= _module(importlib.import_module(NAMES[name]))
    return found


def _module(module: types.ModuleType) -> dict[str, Any]:
    own = {
        name: value
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and not name.startswith("makeway_")
    }
    found: dict[str, Any] = {}
    for name, value in own.items():
        # A package hands out what its modules define.
        if not f"{getattr(value, '__module__', None)}.".startswith(f"{module.__name__}."):
            continue
        if isinstance(value, type):
            found[name] = _class(value)
        elif inspect.isfunction(value):
            found[name] = {"parameters": list(inspect.signature(value).parameters)}
    return found


def _class(cls: type) -> dict[str, Any]:
    if issubclass(cls, enum.Enum):
        return {"members": [member.name for member in cls]}
    if attrs.has(cls):
        fields = [f for f in attrs.fields(cls) if f.init]
        return {
            "fields": [f.name for f in fields],
            "required": [f.name for f in fields if f.default is attrs.NOTHING],
        }
    public = sorted(name for name in vars(cls) if not name.startswith("_"))
    return {"methods": public}


if __name__ == "__main__":
    listed = {"hooks": hooks(), "names": names()}
    target = Path(__file__).with_name(f"v{hookspecs.CONTRACT_VERSION.replace('.', '_')}.json")
    target.write_text(json.dumps(listed, indent=1) + "\n")
