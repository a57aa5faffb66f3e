"""Structure settings strictly: what is right is built here, what is wrong is told by `makeway.strictly`.

Most settings are right, and of a table with a hundred possible keys few are written. So keys that are written are
looked at, and nothing else. Whatever does not fit, or is of a kind not known here, goes to `makeway.strictly`, which
takes the same values and finds every wrong one.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from makeway.model.values import Duration
from makeway.plain import (
    Wrong,
    duration,
    exactly,
    is_enum,
    is_literal,
    is_mapping,
    is_sequence,
    is_union,
    literal,
    member,
    number,
    shown,
)

T = TypeVar("T")

Taker = Callable[[Any], Any]
"""Returns what is made of a plain value; raises whatever it likes if it is wrong."""

_PLAIN: Mapping[Any, Callable[[Any, Any], Any]] = {
    **{plain: exactly(plain) for plain in (str, int, bool)},
    float: number,
    Duration: duration,
}


class _UnknownKindError(Exception):
    """A type that only `makeway.strictly` may know."""


def structure(data: Mapping[str, Any], cls: type[T], source: str, path: str = "") -> T:
    """Build a `cls` out of `data`.

    :param source: name of the file or table, for messages.
    :param path: path of `data` inside it, a prefix of the paths in messages.
    :raises ConfigError: with all problems, in the order of the keys.
    """
    try:
        built: T = _taker(typing.cast("Any", cls))(data)
    except Exception:  # whatever it is, it is told below
        pass
    else:
        return built
    from makeway import strictly  # imports long, and most settings are right

    return strictly.structure(data, cls, source, path)


def unstructure(value: Any) -> Any:
    """Turn `value` into plain tables and lists, leaving out fields that have their default."""
    from makeway import strictly

    return strictly.unstructure(value)


@functools.cache
def _taker(wanted: Any) -> Taker:
    """Return what takes values of a type.

    :raises _UnknownKindError: it is not known here.
    """
    if wanted in _PLAIN:
        return functools.partial(_taken, _PLAIN[wanted], wanted)
    if is_enum(wanted) and not issubclass(wanted, str | int | float):
        return functools.partial(_taken, member, wanted)
    if is_literal(wanted):
        return functools.partial(_taken, literal, wanted)
    if is_sequence(wanted):
        return functools.partial(_sequence, typing.get_origin(wanted), _taker(typing.get_args(wanted)[0]))
    if is_mapping(wanted):
        inner = typing.get_args(wanted)[1]
        return functools.partial(_mapping, None if inner is Any else _taker(inner))
    if is_union(wanted):
        return functools.partial(_union, typing.get_args(wanted))
    if isinstance(wanted, type) and attrs.has(wanted):
        return _Table(wanted).built
    raise _UnknownKindError


def _taken(how: Callable[[Any, Any], Any], wanted: Any, value: Any) -> Any:
    return how(value, wanted)


def _sequence(kind: Callable[[Any], Any], inner: Taker, value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise Wrong(shown(value))
    return kind([inner(item) for item in value])


def _mapping(inner: Taker | None, value: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise Wrong(shown(value))
    return dict(value) if inner is None else {key: inner(item) for key, item in value.items()}


def _union(among: tuple[Any, ...], value: Any) -> Any:
    options = [option for option in among if option is not type(None)]
    if value is None and len(options) < len(among):
        return None
    if len(options) > 1:
        tabular = isinstance(value, Mapping)
        options = [o for o in options if attrs.has(o) is tabular or is_mapping(o) is tabular]
    for option in options:
        taker = _taker(option)
        try:
            return taker(value)
        except _UnknownKindError:
            raise
        except Exception:  # the next option may do
            continue
    raise Wrong(shown(value))


class _Table:
    """What builds instances of one attrs class; the type of a field is looked up when its key is first written."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls
        self._fields = {field.name: field for field in attrs.fields(cls) if field.init}
        self._takers: dict[str, tuple[str, Taker]] = {}
        """Key -> argument of the class, and what takes its values."""

    def built(self, value: Any) -> Any:
        """Return an instance made of a table."""
        if not isinstance(value, Mapping):
            raise Wrong(shown(value))
        given = {}
        for key, item in value.items():
            name, taker = self._takers.get(key) or self._found(key)
            given[name] = taker(item)
        return self._cls(**given)

    def _found(self, key: str) -> tuple[str, Taker]:
        field = self._fields[key]
        wanted = field.type
        if isinstance(wanted, str):
            owner = next(each for each in self._cls.__mro__ if key in inspect.get_annotations(each))
            wanted = eval(wanted, dict(vars(owner)), vars(sys.modules[owner.__module__]))
        found = self._takers[key] = (field.alias, _taker(wanted))
        return found
