"""Hand over journals as workloads, as the plugin ``reader/journal``."""

from __future__ import annotations

from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway_live.reader import JournalReader

DIALECT = Dialect(workloads=(JournalReader(),))


@hookimpl
def makeway_dialect() -> Dialect:
    """Hand over the reader of journals."""
    return DIALECT
