"""Structure settings strictly: every wrong key and value is told at once, with its path and what is allowed.

Nothing is taken for something else: ``"9"`` is no number, ``true`` is no number, an unknown key is an error.
"""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from makeway.errors import ConfigError, Problem, nearest
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
MOST_TOLD = 100
"""Most problems of one input that are told."""

Taker = Callable[[Any], Any]
"""Returns what is made of a plain value; raises `_Wrongs`, or whatever else is told as a sentence."""

_PLAIN: Mapping[Any, Callable[[Any, Any], Any]] = {
    **{plain: exactly(plain) for plain in (str, int, bool)},
    float: number,
    Duration: duration,
}


class _Wrongs(Exception):  # noqa: N818  # becomes lines of a message
    """What is wrong within a value: the rest of the path to each, and what to say about it."""

    def __init__(self, found: list[tuple[str, str]]) -> None:
        super().__init__()
        self.found = found


def structure(data: Mapping[str, Any], cls: type[T], source: str, path: str = "") -> T:
    """Build a `cls` out of `data`.

    :param source: name of the file or table, for messages.
    :param path: path of `data` inside it, a prefix of the paths in messages.
    :raises ConfigError: with all problems, in the order of the keys.
    """
    try:
        built: T = _taker(typing.cast("Any", cls))(data)
    except Exception as error:  # whatever a class raises that does not take its values
        problems = [Problem((path + rest).removeprefix("."), text) for rest, text in _told(error)]
        if len(problems) > MOST_TOLD:
            problems[MOST_TOLD:] = [Problem(path, "and more is wrong")]
        raise ConfigError(source, problems) from None
    return built


def unstructure(value: Any) -> Any:
    """Turn `value` into plain tables and lists, leaving out fields that have their default."""
    kind = type(value)
    if kind is str or kind is int or kind is float or value is None:
        return value
    if attrs.has(kind):
        return {
            name: unstructure(held)
            for name, default, is_factory in _defaults(kind)
            if (held := getattr(value, name)) != (default() if is_factory else default)
        }
    if isinstance(value, Mapping):
        return {key: unstructure(item) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [unstructure(item) for item in value]
    return value.value if isinstance(value, enum.Enum) else value


@functools.cache
def _defaults(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Return each field with its default, or with what makes it, and whether that is so."""
    fields = [(field.name, field.default) for field in attrs.fields(kind) if field.init]
    return tuple((name, getattr(made, "factory", made), hasattr(made, "factory")) for name, made in fields)


@functools.cache
def _taker(wanted: Any) -> Taker:
    """Return what takes values of a type."""
    plain = _PLAIN.get(wanted)
    if plain is not None or is_enum(wanted) or is_literal(wanted):
        return functools.partial(_single, plain or (member if is_enum(wanted) else literal), wanted)
    if is_sequence(wanted):
        return functools.partial(_sequence, typing.get_origin(wanted), _taker(typing.get_args(wanted)[0]))
    if is_mapping(wanted):
        return functools.partial(_mapping, _taker(typing.get_args(wanted)[1]))
    if is_union(wanted):
        return functools.partial(_union, typing.get_args(wanted))
    if wanted is Any:
        return functools.partial(_single, lambda value, _: value, wanted)
    if not attrs.has(wanted):
        raise TypeError(f"settings have no values of {wanted}")
    return _Table(wanted).built


def _single(how: Callable[[Any, Any], Any], wanted: Any, value: Any) -> Any:
    return how(value, wanted)


def _sequence(kind: Callable[[Any], Any], inner: Taker, value: Any) -> Any:
    if not isinstance(value, list | tuple):
        meant = f'; did you mean ["{value}"]?' if isinstance(value, str) else ""
        raise Wrong(f"got {shown(value)}; allowed: a list{meant}")
    return kind(_each(((f"[{at}]", item) for at, item in enumerate(value)), inner))


def _mapping(inner: Taker, value: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise Wrong(f"got {shown(value)}; allowed: a table")
    items = _each(((f".{key:.60}", item) for key, item in value.items()), inner)
    return dict(zip(value, items, strict=True))


def _each(items: Iterator[tuple[str, Any]], inner: Taker) -> list[Any]:
    """Return what is made of items, given with the part of the path that leads to each."""
    built: list[Any] = []
    wrong: list[tuple[str, str]] = []
    for step, item in items:
        try:
            built.append(inner(item))
        except Exception as error:
            wrong += ((step + rest, text) for rest, text in _told(error))
            if len(wrong) > MOST_TOLD:
                break
    if wrong:
        raise _Wrongs(wrong)
    return built


def _union(among: tuple[Any, ...], value: Any) -> Any:
    options = [option for option in among if option is not type(None)]
    if value is None and len(options) < len(among):
        return None
    if len(options) > 1:
        tabular = isinstance(value, Mapping)
        options = [o for o in options if attrs.has(o) is tabular or is_mapping(o) is tabular]
    failure: Exception | None = None
    for option in options:
        try:
            return _taker(option)(value)
        except Exception as error:  # the next option may do
            failure = error
    raise failure or Wrong(f"got {shown(value)}; allowed: another type")


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
            raise Wrong(f"got {shown(value)}; allowed: a table")
        given = {}
        wrong: dict[str, list[tuple[str, str]]] = {}
        for key, item in value.items():
            if key in self._fields:
                name, taker = self._takers.get(key) or self._found(key)
                try:
                    given[name] = taker(item)
                except Exception as error:
                    wrong[key] = [(f".{key}{rest}", text) for rest, text in _told(error)]
        if wrong or len(given) < len(value) or not self._required <= given.keys():
            raise _Wrongs(list(self._in_order(value, wrong)))
        return self._cls(**given)

    @functools.cached_property
    def _required(self) -> frozenset[str]:
        return frozenset(field.alias for field in self._fields.values() if field.default is attrs.NOTHING)

    def _in_order(
        self, value: Mapping[str, Any], wrong: Mapping[str, list[tuple[str, str]]]
    ) -> Iterator[tuple[str, str]]:
        """Yield what is wrong in the order of the fields, unknown keys last."""
        for key, field in self._fields.items():
            yield from wrong.get(key, ())
            if key not in value and field.default is attrs.NOTHING:
                yield f".{key}", "missing"
        for key in sorted(key for key in value if key not in self._fields):
            close = nearest(key, self._fields) or f"; allowed: {', '.join(self._fields)}"
            yield "." + (key if len(key) <= 60 else f"{key[:57]}..."), f"unknown key{close}"

    def _found(self, key: str) -> tuple[str, Taker]:
        field = self._fields[key]
        wanted = field.type
        if isinstance(wanted, str):
            owner = next(each for each in self._cls.__mro__ if key in inspect.get_annotations(each))
            wanted = eval(
                wanted, dict(vars(owner)), getattr(sys.modules.get(owner.__module__), "__dict__", {})
            )
        found = self._takers[key] = (field.alias, _taker(wanted))
        return found


_BOUND = re.compile(r"'(\w+)' must be (>=|>|<=|<) (\S+): (\S+)")
"""What attrs says where a number is out of bounds."""
_ALLOWED = {">=": "{} or more", ">": "more than {}", "<=": "{} or less", "<": "less than {}"}


def _told(error: Exception) -> Iterator[tuple[str, str]]:
    """Yield what an error says is wrong, as `_Wrongs` has it."""
    if isinstance(error, _Wrongs):
        yield from itertools.islice(error.found, MOST_TOLD + 1)
        return
    text = str(error.args[0]) if error.args else type(error).__name__
    if match := _BOUND.fullmatch(text):
        name, relation, bound, given = match.groups()
        allowed = _ALLOWED[relation].format(bound.removesuffix(".0"))
        yield f".{name}", f"got {given.removesuffix('.0')}; allowed: {allowed}"
    else:
        yield "", text
