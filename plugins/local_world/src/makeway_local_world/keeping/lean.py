"""What keepers use of Python's library, without the modules that wrap it.

A keeper shares its memory with the nursery until it writes to it, and Python writes to whatever it counts references
to. So each module that is imported costs private memory in every keeper. The wrappers of ``signal``, ``socket`` and
``json`` pull in ``enum``, ``re`` and ``selectors``; what is below them is written in C, and enough for a keeper.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any
else:
    import _signal as signal
    import _socket as socket

_BLANK = " \t\n\r"


def _wrapped() -> tuple[Callable[[str], Any], Callable[[Any], str]]:
    """Return how JSON is read and written by the library itself, for a Python that has nothing below it."""
    import json

    return json.loads, lambda value: json.dumps(value, separators=(",", ":"))


def _bare() -> tuple[Callable[[str], Any], Callable[[Any], str]]:
    """Return how JSON is read and written by what the library itself calls.

    :raises ImportError: this Python has no such thing.
    """
    import _json

    class How:
        strict = True
        object_hook = object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = float

    def refuse(value: object) -> object:
        raise TypeError(f"{type(value).__name__} is none of JSON's")

    scan = _json.make_scanner(How)  # type: ignore[arg-type]  # any object with these names does
    write = _json.make_encoder(
        None, refuse, _json.encode_basestring_ascii, None, ":", ",", False, False, True
    )

    def loads(text: str) -> Any:
        text = text.strip(_BLANK)
        try:
            value, end = scan(text, 0)
        except StopIteration as error:
            raise ValueError(f"no value at character {error.value}") from None
        except SystemError:  # how the scanner says so where the library's own error is not imported
            raise ValueError("it is cut off, or no JSON") from None
        if end != len(text):
            raise ValueError(f"more than one value at character {end}")
        return value

    def dumps(value: Any) -> str:
        return "".join(write(value, 0))

    return loads, dumps


try:
    _loads, _dumps = _bare()
except (ImportError, AttributeError, TypeError):  # PyPy, or a Python that has changed what is below
    _loads, _dumps = _wrapped()


def read_json(data: bytes) -> Any:
    """Read one JSON value in UTF-8.

    :raises ValueError: it is none, or more than one.
    """
    return _loads(data.decode("utf-8", "surrogatepass"))


def write_json(value: Any) -> bytes:
    """Return a value as JSON in ASCII, without blanks.

    :raises TypeError: JSON has nothing for it.
    """
    return _dumps(value).encode("ascii")


def receive_descriptors(door: socket.socket, length: int, most: int) -> tuple[bytes, list[int]]:
    """Return the next packet of up to `length` bytes with its descriptors; the job's programs do not get them.

    :raises OSError: the line is broken.
    """
    size = most * 4  # an int each
    data, notes, _, _ = door.recvmsg(length, socket.CMSG_LEN(size), socket.MSG_CMSG_CLOEXEC)
    found: list[int] = []
    for level, kind, told in notes:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found += memoryview(told)[: len(told) - len(told) % 4].cast("i").tolist()
    return data, found


class _Suppressing:
    """What `suppress` returns."""

    def __init__(self, errors: tuple[type[BaseException], ...]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool:
        return kind is not None and issubclass(kind, self._errors)


def suppress(*errors: type[BaseException]) -> _Suppressing:
    """Go on after the block if one of these is raised in it, as ``contextlib.suppress`` does."""
    return _Suppressing(errors)


__all__ = ["read_json", "receive_descriptors", "signal", "socket", "suppress", "write_json"]
