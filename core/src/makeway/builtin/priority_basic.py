"""Let jobs stand in order of submission (``priority/basic``): as they do where no policy of priorities is named."""

from __future__ import annotations

from makeway.hookspecs import hookimpl


@hookimpl
def makeway_priority() -> None:
    """Have no opinion."""
