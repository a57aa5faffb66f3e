"""Change single keys of a configuration from the command line: ``--set KEY=VALUE``.

KEY is the path in the TOML file: ``policy.preempt_mode``. One of several tables is named by its
name or place: ``partition.high.grace_time``, ``partition[0].grace_time``; ``*`` means all of them.
A part with dots in it is quoted. VALUE is as in TOML; a word needs no quotes, a list of words no
brackets (``suspend,gang``), and no value at all means the default.
"""

from __future__ import annotations

import datetime
import os
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway.config import Config, validate, without_none
from makeway.errors import ConfigError, Problem, nearest, unknown
from makeway.settings import structure, unstructure

_STEP = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|\[(\d{1,9})\]|([^.\[\]"']+))""")
_PARTS = re.compile(r"""((?:[^;"']|"[^"]*"|'[^']*')+)""")
EVERY = "*"


# ------------------------------------------------------------------------------------ interface
def change(config: Config, text: str, option: str = "--set") -> Config:
    """Return `config` with one key changed.

    :param text: ``KEY=VALUE``.
    :raises ConfigError: there is no such key, or the value does not fit.
    """
    return change_all(config, [text], option)


def change_all(config: Config, texts: Sequence[str], option: str) -> Config:
    """Return `config` with several keys changed at once, so that values may need one another.

    :param texts: each ``KEY=VALUE``.
    :raises ConfigError: there is no such key, or the values do not fit.
    """
    data = without_none(unstructure(config))
    for text in texts:
        source = f"{option} {text}"
        key, equals, value = split(text)
        if not equals:
            raise ConfigError(source, [Problem("", "allowed: KEY=VALUE, such as policy.select=...")])
        _Changer(source, value.strip()).into_class(data, Config, steps_of(key, source), "")
    source = f"{option} {'; '.join(texts)}"
    changed = structure(data, Config, source)
    validate(changed, source)
    return changed


def variant(config: Config, text: str) -> Config:
    """Return what ``--compare`` asks for, where it names no file.

    :param text: ``KEY=VALUE``, several of them with ``;`` between.
    :raises ConfigError: as `change`, or it is neither this nor a file.
    """
    if "=" not in text:
        raise ConfigError(f"--compare {text}", [Problem("", "neither KEY=VALUE nor a file")])
    return change_all(config, parts_of(text), "--compare")


def parts_of(text: str) -> list[str]:
    """Return each ``KEY=VALUE`` of several with ``;`` between."""
    return [part.strip() for part in _PARTS.findall(text) if part.strip()]


def is_file(text: str) -> bool:
    """Whether ``--compare`` was given a file instead of a key."""
    return os.path.exists(text)


# ----------------------------------------------------------------------------------- the key
def split(text: str) -> tuple[str, str, str]:
    """Split at the first ``=`` that is not quoted."""
    match = re.match(r"""((?:[^="']|"[^"]*"|'[^']*')*)(=)(.*)""", text, re.DOTALL)
    return (match[1], match[2], match[3]) if match else (text, "", "")


def steps_of(key: str, source: str) -> list[str]:
    """Return the parts of a path; places (``[0]``) keep their brackets.

    :raises ConfigError: it is no path.
    """
    steps: list[str] = []
    at = 0
    key = key.strip()
    while at < len(key):
        match = _STEP.match(key, at)
        if match is None:
            raise ConfigError(source, [Problem("", f"cannot read the key at {key[at:]!r}")])
        quoted, single, place, plain = match.groups()
        word = quoted if quoted is not None else single if single is not None else plain
        steps.append(f"[{place}]" if place is not None else str(word).strip())
        at = match.end()
        if at < len(key) and key[at] == "." and at + 1 < len(key):
            at += 1
    if not steps:
        raise ConfigError(source, [Problem("", "a key is missing before the equals sign")])
    return steps


# ------------------------------------------------------------------------------- going down
@attrs.frozen
class _Changer:
    """Puts one value where a path leads."""

    source: str
    raw: str

    def into_class(self, table: dict[str, Any], cls: Any, steps: Sequence[str], path: str) -> None:
        """Change a table that mirrors an attrs class."""
        hints = typing.get_type_hints(cls)
        name, rest = steps[0], steps[1:]
        path = f"{path}.{name}" if path else name
        if name not in hints:
            close = nearest(name, hints) or f"; allowed: {', '.join(hints)}"
            raise self._wrong(path, f"unknown key{close}")
        hint = _without_none(hints[name])
        inner = _element(hint)
        if not rest:
            self._store(table, name, hint, path)
        elif attrs.has(hint):
            self.into_class(table.setdefault(name, {}), hint, rest, path)
        elif inner is not None and (attrs.has(inner) or _is_mapping(inner)):
            self._into_list(table.get(name, []), inner, rest, path)
        elif any(_is_mapping(option) for option in _options(hint)):
            self._into_mapping(_as_table(table, name), rest, path)
        else:
            raise self._wrong(path, f"a single value; it has no key {rest[0]!r}")

    def _into_list(self, tables: list[Any], inner: Any, steps: Sequence[str], path: str) -> None:
        """Change one of several tables, or all of them."""
        if len(steps) < 2:
            raise self._wrong(path, f"which key of {steps[0]!r}? Write {path}.{steps[0]}.KEY=VALUE")
        for table in self._chosen(tables, steps[0], path):
            inside = f"{path}.{steps[0]}"
            if attrs.has(inner):
                self.into_class(table, inner, steps[1:], inside)
            else:
                self._into_mapping(table, steps[1:], inside)

    def _chosen(self, tables: list[Any], step: str, path: str) -> list[Any]:
        if step == EVERY:
            return tables
        names = [str(table.get("id", table.get("name", ""))) for table in tables]
        found = [table for table, name in zip(tables, names, strict=True) if name == step]
        place = step.strip("[]")
        if not found and place.isdigit() and int(place) < len(tables):
            found = [tables[int(place)]]
        if not found:
            named = [name for name in names if name]
            text = unknown(path, step, named) if named else f"no {path} number {place}"
            raise self._wrong(path, text)
        return found[:1]

    def _into_mapping(self, table: dict[str, Any], steps: Sequence[str], path: str) -> None:
        """Change a table whose keys are not known beforehand."""
        for step in steps[:-1]:
            path = f"{path}.{step}"
            table = table.setdefault(step, {})
            if not isinstance(table, dict):
                raise self._wrong(path, "a single value; it has no keys")
        self._store(table, steps[-1], Any, f"{path}.{steps[-1]}")

    def _store(self, table: dict[str, Any], name: str, hint: Any, path: str) -> None:
        if not self.raw:
            if name not in table and hint is Any:
                raise self._wrong(path, f"not set; nothing to take back{nearest(name, table)}")
            table.pop(name, None)
            return
        table[name] = _typed(self.raw, hint)

    def _wrong(self, path: str, message: str) -> ConfigError:
        return ConfigError(self.source, [Problem(path, message)])


def _as_table(table: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a field that may be a table; a preset's name becomes one."""
    value = table.get(name, {})
    table[name] = {"preset": value} if isinstance(value, str) else dict(value)
    found: dict[str, Any] = table[name]
    return found


# ------------------------------------------------------------------------------- the value
def _typed(raw: str, hint: Any) -> Any:
    """Read a value as TOML, or as the words that the key wants."""
    value = _toml(raw)
    if str in _options(hint) and not isinstance(value, str | Mapping):
        return raw
    if _element(hint) is str and isinstance(value, str):
        return [word.strip() for word in value.split(",") if word.strip()]
    return value


def _toml(raw: str) -> Any:
    try:
        data = tomllib.loads(f"value = {raw}")
    except (ValueError, RecursionError):
        return raw
    if len(data) > 1 or isinstance(data["value"], datetime.time):  # 02:00:00 is a length of time here
        return raw
    return data["value"]


def _options(hint: Any) -> tuple[Any, ...]:
    """Return the types that a hint allows, None left out."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(option for option in typing.get_args(hint) if option is not type(None))
    return (hint,)


def _without_none(hint: Any) -> Any:
    options = _options(hint)
    return options[0] if len(options) == 1 else hint


def _element(hint: Any) -> Any:
    """Return what a tuple is made of; None: the hint is no tuple."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else None


def _is_mapping(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)
