"""Import modules that moved to another distribution by their old names, for two minor releases.

`makeway` puts the finder first on the import path: a package that moved would else be searched for its modules
under the old name, and hold each of them twice.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

from makeway.moved_names import MOVED, NAMES

_GOES = "the old name goes in makeway 0.3"


def new_name(old: str) -> str | None:
    """Return the present name of a module; None: it did not move."""
    head, tail = old, ""
    while head:
        if head in MOVED:
            return MOVED[head] + tail
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return None


class MovedModules:
    """Find modules by the names that they had; a meta path finder and loader.

    It has no base class: ``importlib.abc`` would cost every start a sixth of its time.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is found that moved; None: it did not."""
        new = new_name(name) if name.startswith("makeway") else None
        if new is None:
            return None
        try:
            there = importlib.util.find_spec(new)
        except ModuleNotFoundError as error:
            if error.name is None or not new.startswith(error.name):
                raise
            there = None
        if there is None:
            package = new.partition(".")[0]
            if importlib.util.find_spec(package) is not None:
                return None
            distribution = package.replace("_", "-")
            text = f"{name} is now {new}, which {distribution} brings: pip install {distribution}"
            raise ModuleNotFoundError(text, name=name)
        return ModuleSpec(name, cast("Any", self), is_package=there.submodule_search_locations is not None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module under its present name, with a warning."""
        new = new_name(spec.name)
        assert new is not None
        module = importlib.import_module(new)
        spec.loader_state = module.__spec__
        text = f"{spec.name} is now {new}; {_GOES}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is, save that the import made it believe in its old name."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def attribute(module: str, name: str) -> Any:
    """Return what `module` no longer has under `name`, from where it is now, with a warning.

    :raises AttributeError: it never had such a thing, or the distribution is not installed.
    """
    new = NAMES[module]
    lost = f"module {module!r} has no attribute {name!r}"
    if name.startswith("__"):
        raise AttributeError(lost)
    try:
        found = getattr(importlib.import_module(new), name)
    except ModuleNotFoundError:
        distribution = new.partition(".")[0].replace("_", "-")
        raise AttributeError(f"{lost}; it may be in {new}, which {distribution} brings") from None
    except AttributeError:
        raise AttributeError(lost) from None
    warnings.warn(f"{module}.{name} is now {new}.{name}; {_GOES}", DeprecationWarning, stacklevel=3)
    return found


def install() -> None:
    """Put the finder first on the import path, once."""
    if not any(isinstance(each, MovedModules) for each in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
