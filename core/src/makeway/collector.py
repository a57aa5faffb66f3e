"""Keep the cycle collector away from what will not be garbage, where the interpreter can.

CPython can set objects aside (`gc.freeze`); PyPy has no such call, and its collector needs none.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


def freeze() -> None:
    """Set all objects aside that the collector would walk through, if that can be done."""
    if hasattr(gc, "freeze"):
        gc.freeze()


def unfreeze() -> None:
    """Give objects that were set aside back to the collector, counted as old."""
    if hasattr(gc, "unfreeze"):
        gc.unfreeze()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Let no collection happen inside; what was made there counts as old afterwards."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        freeze()
        unfreeze()
        gc.enable()
