"""Let something happen at each moment of something else, so that a race is lost for certain."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

P = TypeVar("P")
T = TypeVar("T")
_FILES = ("makeway_local_world", "shutil.py")
"""What the names of files hold whose lines count as moments."""


def at_each(prepare: Callable[[], P], work: Callable[[P], T], meanwhile: Callable[[P], Any]) -> Iterator[T]:
    """Do `work` again and again, with `meanwhile` before its first line, then its second, up to its last.

    :param prepare: done before each time; both get what it returns.
    :return: what `work` returned, each time.
    """
    wanted, last = 0, False
    while not last:
        wanted, came = wanted + 1, 0
        prepared = prepare()

        def trace(
            frame: FrameType, event: str, argument: Any, wanted: int = wanted, prepared: P = prepared
        ) -> Any:
            nonlocal came
            del argument
            if not any(each in frame.f_code.co_filename for each in _FILES):
                return None
            if event == "line":
                came += 1
                if came == wanted:
                    sys.settrace(None)
                    meanwhile(prepared)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            done = work(prepared)
        finally:
            sys.settrace(before)
        last = came < wanted
        yield done


__all__ = ["at_each"]
