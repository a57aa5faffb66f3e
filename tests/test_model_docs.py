"""docs/model.md is what the contract says, and says all of it."""

from __future__ import annotations

import enum
import importlib.util
import re
import types
from pathlib import Path
from typing import Any

import pytest

from makeway import config, history
from makeway.worlds import api as worlds

PAGE = Path(__file__).parents[1] / "docs" / "model.md"


@pytest.fixture(scope="module")
def generator() -> types.ModuleType:
    """Import the script that writes the page."""
    found = importlib.util.spec_from_file_location("generate_model", PAGE.with_name("generate_model.py"))
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_page_is_current(generator: types.ModuleType) -> None:
    """Run docs/generate_model.py if this fails."""
    assert PAGE.read_text(encoding="utf-8") == generator.render()


def test_every_field_has_a_meaning_and_says_what_none_means(generator: types.ModuleType) -> None:
    """In the source, so that editors show it too."""
    silent = []
    for name, cls in generator.classes().items():
        for label, kind, text in generator.fields(
            getattr(generator.model, generator.SHARED.get(name, name), cls)
        ):
            if not text or ("None" in kind and "None" not in text):
                silent.append(f"{name}.{label}")
    assert silent == []


@pytest.mark.slow
def test_every_value_that_a_hook_leads_to_is_on_the_page(generator: types.ModuleType) -> None:
    """Whatever a signature names, and whatever the fields and methods of that name, and so on.

    Config, worlds and records are told on pages of their own, to which this one leads.
    """
    elsewhere = ("makeway.config.", "makeway.worlds.", "makeway.history")
    hooks = {name: spec for name, spec in vars(generator.hookspecs).items() if name.startswith("makeway_")}
    named = {
        (hook, word)
        for hook, spec in hooks.items()
        for word in _names(str(generator.inspect.signature(spec)))
    }
    classes: dict[str, type[Any]] = {}
    while named:
        further = set()
        for _, word in named:
            cls = _class(generator, word)
            if cls is None or word in classes or cls.__module__.startswith(elsewhere):
                continue
            classes[word] = cls
            own = getattr(generator.model, generator.SHARED.get(word, word), cls)
            members = () if issubclass(cls, enum.Enum) else (*generator.fields(own), *generator.methods(cls))
            further |= {(word, each) for label, kind, _ in members for each in _names(f"{label} {kind}")}
        named = further
    assert len(classes) > 60
    assert set(classes) - set(generator.classes()) == set()


def _names(text: str) -> set[str]:
    return set(re.findall(r"[A-Z]\w+", text))


def _class(generator: types.ModuleType, name: str) -> type[Any] | None:
    """Return the class of the contract that is called so; None: it is none."""
    for module in (*generator.MODULES, config, history, worlds):
        found = getattr(module, name, None)
        if isinstance(found, type) and found.__module__.startswith("makeway."):
            return found
    return None
