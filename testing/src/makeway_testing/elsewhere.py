"""Play scenarios in this process for another one: a pickle comes in on standard input, the records go out.

``python -m makeway_testing.elsewhere``; used by the contracts, which start it with other hash seeds.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import pickle
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from makeway import registry
from makeway.errors import MakewayError
from makeway_testing.patience import Patience


def packed(value: Any) -> bytes:
    """Pickle `value`, modules too."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(value)
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType):
            return importlib.import_module, (obj.__name__,)
        return NotImplemented


@registry.one_look()
def records(
    plugin: str, module: str, file: str, companions: Mapping[str, Any], scenarios: Sequence[Any]
) -> list[str]:
    """Return the record of each scenario, or what went wrong with it.

    :param module: where the plugin is, if it is not installed; empty: it is found by its entry point.
    :param file: its file, for one that was loaded by path; empty: it has none.
    """
    found = _imported(module, file) if module else registry.load(plugin)
    plugins = {**companions, plugin: found}
    return [_record(scenario, plugins) for scenario in scenarios]


def _imported(module: str, file: str) -> ModuleType:
    """Import a module by its name, or from its file if it cannot be found by name."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not file or error.name != module.partition(".")[0]:
            raise
    spec = importlib.util.spec_from_file_location(module, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {file}")
    found = importlib.util.module_from_spec(spec)
    sys.modules[module] = found
    spec.loader.exec_module(found)
    return found


def _record(scenario: Any, plugins: Mapping[str, Any]) -> str:
    try:
        record: str = scenario.replay(plugins=plugins, checker=Patience()).record
    except MakewayError as error:
        return f"{type(error).__name__}: {error}"
    return record


if __name__ == "__main__":
    sys.stdout.buffer.write(pickle.dumps(records(*pickle.loads(sys.stdin.buffer.read()))))
