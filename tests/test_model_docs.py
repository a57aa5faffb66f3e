"""docs/model.md is what the contract says, and says all of it."""

from __future__ import annotations

import importlib.util
import re
import types
from pathlib import Path

import pytest

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


def test_every_value_of_a_hook_is_on_the_page(generator: types.ModuleType) -> None:
    """Whatever of makeway.model a hook's signature names."""
    listed = set(generator.classes())
    named = {
        word
        for hook, spec in vars(generator.hookspecs).items()
        if hook.startswith("makeway_")
        for word in re.findall(r"[A-Z]\w+", str(generator.inspect.signature(spec)))
        if getattr(getattr(generator.model, word, None), "__module__", "").startswith("makeway.model.")
    }
    assert named - listed == set()
