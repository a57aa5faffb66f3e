"""Structure settings with every wrong key and value at once: path, value and what is allowed.

cattrs builds attrs classes out of plain tables. Here its laxness is taken away (``"9"`` is no number,
``true`` is no number, an unknown key is an error) and its nested exception groups are turned into
`makeway.errors.Problem` lines. `makeway.settings` comes here where something is wrong: cattrs takes long to import.
"""

from __future__ import annotations

import enum
import itertools
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import attrs
import cattrs
from cattrs.errors import (
    AttributeValidationNote,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)

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


def structure(data: Mapping[str, Any], cls: type[T], source: str, path: str = "") -> T:
    """Build a `cls` out of `data`.

    :param source: name of the file or table, for messages.
    :param path: path of `data` inside it, a prefix of the paths in messages.
    :raises ConfigError: with all problems, in the order of the keys.
    """
    try:
        return _CONVERTER.structure(data, cls)
    except Exception as error:  # cattrs raises groups of anything
        problems = list(itertools.islice(_problems(error, path, cls), MOST_TOLD + 1))
        if len(problems) > MOST_TOLD:
            problems[MOST_TOLD] = Problem(path, "and more is wrong")
        raise ConfigError(source, problems) from None


def unstructure(value: Any) -> Any:
    """Turn `value` into plain tables and lists, leaving out fields that have their default."""
    return _CONVERTER.unstructure(value)


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, omit_if_default=True)
    # By class, not by predicate: cattrs looks there first, where its own lax hooks are.
    for plain in (str, int, bool):
        converter.register_structure_hook(plain, exactly(plain))
    converter.register_structure_hook(float, number)
    converter.register_structure_hook(enum.Enum, member)
    converter.register_structure_hook_func(lambda wanted: wanted == Duration, duration)
    converter.register_structure_hook_func(is_enum, member)
    converter.register_structure_hook_func(is_sequence, lambda v, t: _sequence(converter, v, t))
    converter.register_structure_hook_func(is_mapping, lambda v, t: _mapping(converter, v, t))
    converter.register_structure_hook_func(is_literal, literal)
    converter.register_structure_hook_func(is_union, lambda v, t: _union(converter, v, t))
    converter.register_structure_hook_factory(attrs.has, lambda cls: _class_hook(converter, cls))
    converter.register_unstructure_hook_func(
        lambda wanted: isinstance(wanted, type) and issubclass(wanted, enum.Enum),
        lambda member: member.value,
    )
    converter.register_unstructure_hook_func(is_sequence, lambda v: [unstructure(i) for i in v])
    return converter


def _class_hook(converter: cattrs.Converter, cls: type[Any]) -> Any:
    inner = cattrs.gen.make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)

    def hook(value: Any, wanted: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Wrong(f"got {shown(value)}; allowed: a table")
        return inner(value, wanted)

    return hook


def _sequence(converter: cattrs.Converter, value: Any, wanted: Any) -> Any:
    if not isinstance(value, list | tuple):
        meant = f'; did you mean ["{value}"]?' if isinstance(value, str) else ""
        raise Wrong(f"got {shown(value)}; allowed: a list{meant}")
    inner = typing.get_args(wanted)[0]
    built, errors = [], []
    for at, item in enumerate(value):
        try:
            built.append(converter.structure(item, inner))
        except Exception as error:
            error.__notes__ = [
                *getattr(error, "__notes__", []),
                IterableValidationNote(f"at index {at}", at, inner),
            ]
            errors.append(error)
            if len(errors) > MOST_TOLD:
                break
    if errors:
        raise IterableValidationError("list", errors, wanted)
    return typing.get_origin(wanted)(built)


def _mapping(converter: cattrs.Converter, value: Any, wanted: Any) -> Any:
    if not isinstance(value, Mapping):
        raise Wrong(f"got {shown(value)}; allowed: a table")
    inner = typing.get_args(wanted)[1]
    if inner is Any:
        return dict(value)
    built, errors = {}, []
    for key, item in value.items():
        try:
            built[key] = converter.structure(item, inner)
        except Exception as error:
            error.__notes__ = [
                *getattr(error, "__notes__", []),
                AttributeValidationNote(f"key {key:.60}", f"{key:.60}", inner),
            ]
            errors.append(error)
            if len(errors) > MOST_TOLD:
                break
    if errors:
        raise IterableValidationError("table", errors, wanted)
    return built


def _union(converter: cattrs.Converter, value: Any, wanted: Any) -> Any:
    options = [option for option in typing.get_args(wanted) if option is not type(None)]
    if value is None and len(options) < len(typing.get_args(wanted)):
        return None
    if len(options) > 1:
        tabular = isinstance(value, Mapping)
        options = [o for o in options if attrs.has(o) is tabular or is_mapping(o) is tabular]
    failure: Exception | None = None
    for option in options:
        try:
            return converter.structure(value, option)
        except Exception as error:
            failure = error
    raise failure or Wrong(f"got {shown(value)}; allowed: another type")


def _problems(error: BaseException, path: str, cls: Any) -> Iterator[Problem]:
    if isinstance(error, ClassValidationError | IterableValidationError):
        inner_cls = error.cl if isinstance(error, ClassValidationError) else cls
        for inner in error.exceptions:
            yield from _problems(inner, _joined(path, inner), inner_cls)
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [field.name for field in attrs.fields(error.cl) if field.init]
        for key in sorted(error.extra_fields):
            short = key if len(key) <= 60 else f"{key[:57]}..."
            where = f"{path}.{short}" if path else short
            options = f"; allowed: {', '.join(known)}"
            yield Problem(where, f"unknown key{nearest(key, known) or options}")
    elif isinstance(error, KeyError):
        yield Problem(path, "missing")  # the note has named the key
    elif (match := _BOUND.fullmatch(_sentence(error))) is not None:
        name, relation, bound, given = match.groups()
        where = f"{path}.{name}" if path else name
        yield Problem(where, f"got {_plain(given)}; allowed: {_ALLOWED[relation].format(_plain(bound))}")
    else:
        yield Problem(path, _sentence(error))


_BOUND = re.compile(r"'(\w+)' must be (>=|>|<=|<) (\S+): (\S+)")
"""What attrs says where a number is out of bounds."""
_ALLOWED = {">=": "{} or more", ">": "more than {}", "<=": "{} or less", "<": "less than {}"}


def _plain(number: str) -> str:
    return number.removesuffix(".0")


def _sentence(error: BaseException) -> str:
    if isinstance(error, Wrong):
        return str(error)
    return str(error.args[0]) if error.args else type(error).__name__


def _joined(path: str, error: BaseException) -> str:
    for note in getattr(error, "__notes__", []):
        if isinstance(note, AttributeValidationNote):
            return f"{path}.{note.name}" if path else note.name
        if isinstance(note, IterableValidationNote):
            return f"{path}[{note.index}]"
    return path


_CONVERTER = _make_converter()
