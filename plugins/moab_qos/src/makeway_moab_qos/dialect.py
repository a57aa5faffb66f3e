"""Hand over the files of Moab and Maui, as the plugin ``reader/moab``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from makeway.foreign import Dialect, ForeignConfig, Knob, Source
from makeway.hookspecs import hookimpl

_TELLTALE = re.compile(
    r"^[ \t]*(PREEMPTPOLICY|QOSCFG|RMCFG|SCHEDCFG|RMPOLLINTERVAL|USERCFG|CLASSCFG|BACKFILLPOLICY)\b",
    re.IGNORECASE | re.MULTILINE,
)


@attrs.frozen(kw_only=True)
class MoabReader:
    """Reads moab.cfg and maui.cfg. See `makeway.foreign.ForeignReader`."""

    name: str = "moab.cfg"

    def claims(self, name: str, head: str) -> bool:
        """Recognise the name, or a line with a parameter that only Moab and Maui have."""
        return name in ("moab.cfg", "maui.cfg") or _TELLTALE.search(head) is not None

    def translate(self, source: Source) -> ForeignConfig:
        """Read it; a file called maui.* is for Maui."""
        from makeway_moab_qos import reader  # other files are not for it

        return reader.translate(source, maui=source.name.startswith("maui"))

    def knobs(self, source: Source) -> Sequence[Knob]:
        """Return what a search may change in it."""
        from makeway_moab_qos import tuning

        return tuning.knobs(source, maui=source.name.startswith("maui"))


@hookimpl
def makeway_dialect() -> Dialect:
    """Read moab.cfg and maui.cfg."""
    return Dialect(configs=[MoabReader()])
