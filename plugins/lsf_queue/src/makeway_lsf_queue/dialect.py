"""Hand over LSF's files, as the plugin ``reader/lsf``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from makeway.foreign import Dialect, ForeignConfig, Knob, Source
from makeway.hookspecs import hookimpl

if TYPE_CHECKING:
    from makeway_lsf_queue.windows import Clock

_QUEUE = re.compile(r"^\s*begin\s+queue\b", re.IGNORECASE | re.MULTILINE)


@attrs.define(kw_only=True)
class LsbQueuesReader:
    """Reads lsb.queues. See `makeway.foreign.ForeignReader`."""

    name: str = "lsb.queues"
    clock: Clock | None = None
    """When ``#if time(...)`` is asked; None: midnight between Saturday and Sunday."""

    def claims(self, name: str, head: str) -> bool:
        """Recognise the name, or a Queue section."""
        return name == "lsb.queues" or _QUEUE.search(head) is not None

    def translate(self, source: Source) -> ForeignConfig:
        """Read it, and the files beside it."""
        from makeway_lsf_queue.reader import files  # other files are not for it

        return files.translate(source, self.clock)

    def knobs(self, source: Source) -> Sequence[Knob]:
        """Return what a search may change in it, and in lsb.params beside it."""
        from makeway_lsf_queue.reader import files

        return files.knobs(source, self.clock)


@hookimpl
def makeway_dialect() -> Dialect:
    """Read lsb.queues, and what lies beside it."""
    return Dialect(configs=[LsbQueuesReader()])
