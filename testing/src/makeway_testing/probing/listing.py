"""Look at what a plugin lists: readers of files, recordings, runners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from makeway.registry.finding import place_of
from makeway.registry.fitting import DIALECT, dialects, listed
from makeway_app.readers.foreign import adapted, adapted_workload

_METHODS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "makeway_config_readers": (("claims",), ("translate",)),
    "makeway_workload_readers": (("claims",), ("read", "translate")),
    "makeway_recordings": (("claims",), ("recorded", "verdict")),
    "makeway_runners": (),
}
"""Hook -> methods that each thing listed must have, one of each group."""
LISTING = (*_METHODS, "makeway_dialect")
_NOBODYS = ("nobodys.file", "a line that no reader knows\n")


def wrong_listings(name: str, plugin: Any, hook: str) -> Iterator[str]:
    """Yield what is wrong with the readers that a hook lists, one phrase each.

    :raises PluginError: the hook itself fails.
    """
    if hook == "makeway_dialect":
        for dialect in dialects(name, plugin):
            for like, part in ((str(hook), part) for part, hook in DIALECT.items() if hook is not None):
                yield from _wrong_readers(like, getattr(dialect, part))
        return
    yield from _wrong_readers(hook, listed(name, plugin, hook))


def _wrong_readers(hook: str, readers: Iterable[Any]) -> Iterator[str]:
    for reader in readers:
        if hook == "makeway_runners":
            continue  # experimental: names of factories, of which nothing is asked yet
        label = getattr(reader, "name", None)
        if not isinstance(label, str) or not label:
            yield f"listed {reader!r:.80}, which has no name"
            continue
        missing = [
            " or ".join(each)
            for each in _METHODS[hook]
            if not any(callable(getattr(reader, method, None)) for method in each)
        ]
        if missing:
            yield f"the reader {label!r} has no method {missing[0]}"
            continue
        yield from _wrong_claims(hook, reader, label)


def _wrong_claims(hook: str, reader: Any, label: str) -> Iterator[str]:
    """Show a reader a file that is not its own."""
    file, head = _NOBODYS
    try:
        if hook == "makeway_recordings":
            claims = reader.claims(file, head)
        elif hook == "makeway_config_readers":
            claims = adapted(reader).claims(Path(file), head)
        else:
            claims = adapted_workload(reader).claims(Path(file), head)
    except Exception as error:
        yield f"claims() of the reader {label!r} raised {type(error).__name__}: {error}{place_of(error)}"
    else:
        if claims:
            yield f"the reader {label!r} claims a file that is nobody's"
