"""Read scripts with ``#SBATCH`` lines: which options they give, and which are not honoured."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from makeway.errors import ConfigError, Problem

PREFIXES = ("#SBATCH", "#MAKEWAY")
LARGEST = 4 << 20
"""Bytes of the largest script; sbatch takes as much."""


@attrs.frozen(kw_only=True)
class Script:
    """A script, and what its lines ask for."""

    path: Path
    text: str
    options: tuple[tuple[str, str | None, int], ...] = ()
    """Option as written (``--time``, ``-p``), its value if one stood there, and the line."""


def read(path: Path) -> Script:
    """Read a script.

    :raises ConfigError: it cannot be read, or is none.
    """
    try:
        raw = path.read_bytes()
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
        raise _error(path, f"{len(raw):,} bytes; allowed: {LARGEST:,}")
    if not raw.startswith(b"#!"):
        what = "a program" if b"\0" in raw[:4096] else "no script: its first line does not begin with #!"
        raise _error(path, f"it is {what}; submit it as a command: makeway submit -- {path}")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise _error(path, "it is not UTF-8 text") from None
    if "\r\n" in text:
        raise _error(path, "its lines end as on DOS (CR LF); convert it, for the shell would stumble")
    return Script(path=path, text=text, options=tuple(_options(path, text)))


def _error(path: Path, text: str) -> ConfigError:
    return ConfigError(str(path), [Problem("", text)])


def _options(path: Path, text: str) -> list[tuple[str, str | None, int]]:
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
            raise ConfigError(str(path), [Problem(f"line {number}", f"{error}")]) from None
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


def values(script: Script, command: click.Command, ctx: click.Context) -> tuple[dict[str, Any], list[str]]:
    """Return what a script's lines set, by parameter, and a warning for each option that is not honoured.

    :raises ConfigError: a value is wrong; the text names the line.
    """
    known = _known(command)
    found: dict[str, Any] = {}
    warnings = []
    for name, value, number in script.options:
        param = known.get(name)
        if param is None:
            shown = name if value is None else f"{name} {value}"
            warnings.append(f"{script.path}:{number}: {shown} is not honoured")
            continue
        assert param.name is not None
        try:
            found[param.name] = _value(param, name, value, ctx, found.get(param.name))
        except click.BadParameter as error:
            raise ConfigError(
                str(script.path), [Problem(f"line {number}", f"{name}: {error.message}")]
            ) from None
    return found, warnings


def _known(command: click.Command) -> Mapping[str, click.Option]:
    return {
        name: param
        for param in command.params
        if isinstance(param, click.Option) and param.name not in ("as_json", "help")
        for name in (*param.opts, *param.secondary_opts)
    }


def _value(param: click.Option, name: str, value: str | None, ctx: click.Context, before: Any) -> Any:
    if param.is_flag:
        if value is not None and isinstance(param.flag_value, bool):
            raise click.BadParameter(f"it takes no value, got {value!r}")
        return name not in param.secondary_opts
    if value is None:
        raise click.BadParameter("a value is missing")
    if param.multiple:
        return (*(before or ()), param.type.convert(value, param, ctx))
    return param.type.convert(value, param, ctx)


__all__ = ["PREFIXES", "Script", "read", "values"]
