"""Modules that moved go on working under their old names, with a warning."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings

import pytest

from makeway.moved import MovedModules, new_name
from makeway.moved_names import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_old_names_are_the_new_modules(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very same module, which goes on believing in its own name."""
    monkeypatch.delitem(sys.modules, old, raising=False)
    new = MOVED[old]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        importlib.import_module(old.rpartition(".")[0])
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}; the old name goes in makeway 0.3"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(new)
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == new


def test_what_a_package_held_moved_with_it() -> None:
    """By the longest old name that fits."""
    assert new_name("makeway.testing.contracts.base") == "makeway_testing.contracts.base"
    assert new_name("makeway.testing.invariants") == "makeway_testing.invariants"
    assert new_name("makeway.testings") is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with pytest.raises(ModuleNotFoundError, match=r"makeway\.testing\.nothing"):
            importlib.import_module("makeway.testing.nothing")


@pytest.mark.parametrize(
    ("package", "name"),
    [("makeway.cli", "explain"), ("makeway.engine.schedulers", "backfill"), ("makeway.engine", "reload")],
)
def test_what_left_a_package_before_it_moved_is_found_in_it(package: str, name: str) -> None:
    """As ``from makeway.cli import explain`` asks: by the name that the package has now."""
    namespace: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        exec(f"from {package} import {name}", namespace)
    assert namespace[name] is importlib.import_module(MOVED[f"{package}.{name}"])


def test_a_missing_distribution_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to type."""
    find = importlib.util.find_spec

    def without_the_kit(name: str, package: str | None = None) -> object:
        if name == "makeway_testing":
            return None
        if name.startswith("makeway_testing."):
            raise ModuleNotFoundError("No module named 'makeway_testing'", name="makeway_testing")
        return find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_the_kit)
    for name in ("makeway.testing", "makeway.testing.contracts"):
        with pytest.raises(ModuleNotFoundError, match="pip install makeway-testing"):
            MovedModules().find_spec(name)
