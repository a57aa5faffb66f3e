"""Read scripts with ``#SBATCH`` lines: which options they give, and which are not honoured."""

from __future__ import annotations

import os
import shlex
import sys

from makeway_local_world.commands.words import Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from typing import Any

    from makeway.errors import ConfigError
    from makeway_local_world.commands.words import Command, Option

PREFIXES = ("#SBATCH", "#MAKEWAY")
LARGEST = 4 << 20
"""Bytes of the largest script; sbatch takes as much."""


class Script:
    """A script, and what its lines ask for."""

    def __init__(self, path: str, text: str, given: Sequence[tuple[str, str | None, int]]) -> None:
        self.path = path
        self.text = text
        self.given = given
        """Option as written (``--time``, ``-p``), its value if one stood there, and the line."""


def read(path: str | os.PathLike[str]) -> Script:
    """Read a script; ``-`` is standard input, which may be empty.

    :raises ConfigError: it cannot be read, or is none.
    """
    path = os.fspath(path)
    try:
        raw = contents(path)
    except IsADirectoryError:
        raise _error(
            path, "it is a directory; name a script, or a command: makeway submit -- COMMAND"
        ) from None
    except OSError as error:
        hint = (
            " (a command is submitted as: makeway submit -- COMMAND)"
            if isinstance(error, FileNotFoundError)
            else ""
        )
        raise _error(path, f"{error.strerror}{hint}") from None
    if len(raw) > LARGEST:
        raise _error(path, f"more than {LARGEST:,} bytes; allowed: {LARGEST:,}")
    if path == "-" and not raw:
        return Script("standard input", "", ())
    if not raw.startswith(b"#!"):
        what = "a program" if b"\0" in raw[:4096] else "no script: its first line does not begin with #!"
        raise _error(path, f"it is {what}; submit it as a command: makeway submit -- {path}")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise _error(path, "it is not UTF-8 text") from None
    if "\r\n" in text:
        raise _error(path, "its lines end as on DOS (CR LF); convert it, for the shell would stumble")
    return Script("standard input" if path == "-" else path, text, _options(path, text))


def contents(path: str) -> bytes:
    """Return what a file holds, or standard input.

    :raises OSError: it cannot be read.
    """
    if path == "-":
        return sys.stdin.buffer.read(LARGEST + 1)
    with open(path, "rb") as stream:
        return stream.read(LARGEST + 1)


def _error(path: str, text: str, where: str = "") -> ConfigError:
    from makeway.errors import ConfigError, Problem

    return ConfigError("standard input" if path == "-" else path, [Problem(where, text)])


def _options(path: str, text: str) -> list[tuple[str, str | None, int]]:
    """Return the options of the lines before the first command."""
    found: list[tuple[str, str | None, int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            break
        prefix = next((each for each in PREFIXES if line.startswith((f"{each} ", f"{each}\t"))), None)
        if prefix is None:
            continue
        try:
            words = shlex.split(line[len(prefix) :], comments=True)
        except ValueError as error:
            raise _error(path, str(error), f"line {number}") from None
        found += _of_words(words, number)
    return found


def _of_words(words: list[str], number: int) -> list[tuple[str, str | None, int]]:
    found: list[tuple[str, str | None, int]] = []
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word.partition("=")
            found.append((name, value if equals else None, number))
        elif word.startswith("-") and len(word) > 1:
            found.append((word[:2], word[2:].removeprefix("=") or None, number))
        elif found and found[-1][1] is None and found[-1][2] == number:
            found[-1] = (found[-1][0], word, number)
        else:
            found.append((word, None, number))
    return found


def values(script: Script, command: Command, counted: Container[str]) -> tuple[dict[str, Any], list[str]]:
    """Return what a script's lines set, and a warning for each option that is not honoured.

    :param counted: the values that lines may set.
    :raises ConfigError: a value is wrong; the text names the line.
    """
    found: dict[str, Any] = {}
    texts: dict[str, list[str]] = {}
    warnings = []
    for name, value, number in script.given:
        option = command.known.get(name)
        if option is None or option.to not in counted:
            shown = name if value is None else f"{name} {value}"
            warnings.append(f"{script.path}:{number}: {shown} is not honoured")
            continue
        try:
            found[option.to] = _value(option, name, value, texts)
        except Wrong as wrong:
            raise _error(script.path, f"{name}: {wrong}", f"line {number}") from None
    return found, warnings


def _value(option: Option, name: str, value: str | None, texts: dict[str, list[str]]) -> Any:
    if option.flag:
        if value is not None and not option.off:
            raise Wrong(f"it takes no value, got {value!r}")
        return name not in option.off
    if value is None:
        raise Wrong("a value is missing")
    if option.many:
        texts.setdefault(option.to, []).append(value)
        return option.value(tuple(texts[option.to]))
    return option.value(value)
