"""Look at what a plugin's dialect lists: readers of configurations, workloads and recordings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from makeway.registry.finding import place_of
from makeway.registry.fitting import dialects
from makeway_app.readers.foreign import Adapted, adapted_workload

LISTING = "makeway_dialect"
_METHODS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "configs": (("claims",), ("translate",)),
    "workloads": (("claims",), ("read", "translate")),
    "recordings": (("claims",), ("recorded", "verdict")),
}
"""Part of a dialect -> methods that each thing listed must have, one of each group."""
_UNKNOWN = ("unknown.file", "a line that no reader knows\n")


def wrong_readers(name: str, plugin: Any) -> Iterator[str]:
    """Yield what is wrong with the readers that a plugin's dialect lists, one phrase each.

    :raises PluginError: the hook itself fails.
    """
    for dialect in dialects(name, plugin):
        for part in _METHODS:
            yield from _wrong_readers(part, getattr(dialect, part))


def _wrong_readers(part: str, readers: Iterable[Any]) -> Iterator[str]:
    for reader in readers:
        label = getattr(reader, "name", None)
        if not isinstance(label, str) or not label:
            yield f"listed {reader!r:.80}, which has no name"
            continue
        missing = [
            " or ".join(each)
            for each in _METHODS[part]
            if not any(callable(getattr(reader, method, None)) for method in each)
        ]
        if missing:
            yield f"the reader {label!r} has no method {missing[0]}"
            continue
        yield from _wrong_claims(part, reader, label)


def _wrong_claims(part: str, reader: Any, label: str) -> Iterator[str]:
    """Show a reader a file that is not its own."""
    file, head = _UNKNOWN
    try:
        if part == "recordings":
            claims = reader.claims(file, head)
        elif part == "configs":
            claims = Adapted(reader).claims(Path(file), head)
        else:
            claims = adapted_workload(reader).claims(Path(file), head)
    except Exception as error:
        yield f"claims() of the reader {label!r} raised {type(error).__name__}: {error}{place_of(error)}"
    else:
        if claims:
            yield f"the reader {label!r} claims a file of a kind that none knows"
