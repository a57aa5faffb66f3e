"""Say how much each field of what people send may hold, and find what is beyond that.

A field of an attrs class names its limit: ``name: str = limited("", Text(255))``. So one class says the types, the
defaults and the limits of a request; `problems` lists what is wrong with an instance, and openapi.json is made of it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway.errors import Problem, nearest
from makeway.plain import shown

LIMIT, ABOUT = "limit", "about"
"""Keys of a field's metadata: its limit, and what it means to programs."""
_MOST_TOLD = 20
"""Problems of one field that are told."""


class Limit(ABC):
    """How much a value may hold."""

    @abstractmethod
    def wrong(self, value: Any) -> Iterable[tuple[str, str]]:
        """Return what is wrong with a value: where in it, and what is given and allowed."""

    def schema(self) -> dict[str, Any]:
        """Return what JSON schema says of it."""
        return {}


@attrs.frozen
class Number(Limit):
    """A number between two bounds."""

    least: float
    most: float

    def wrong(self, value: Any) -> Iterator[tuple[str, str]]:
        """See `Limit`."""
        if not self.least <= value <= self.most:
            yield "", f"got {shown(value)}; allowed: {_plain(self.least)} to {_plain(self.most)}"

    def schema(self) -> dict[str, Any]:
        """See `Limit`."""
        return {"minimum": self.least, "maximum": self.most}


def _plain(bound: float) -> str:
    return f"{int(bound):,}"


@attrs.frozen
class Text(Limit):
    """Text of so many bytes in UTF-8, which can be printed."""

    most: int
    least: int = 0
    shape: str = ""
    """Regular expression that the whole text matches; empty: any."""
    described: str = ""
    """The shape in words."""

    def wrong(self, value: str) -> Iterable[tuple[str, str]]:
        """See `Limit`."""
        why = self.unfit(value)
        return (("", why),) if why else ()

    def unfit(self, value: str) -> str:
        """Say what is wrong with a text; empty: nothing is. Each variable of a submission comes through here."""
        try:
            size = len(self.encoded(value))
        except UnicodeEncodeError:
            return f"got {shown(value)}; allowed: text that UTF-8 has"
        if not self.least <= size <= self.most:
            least = f"{self.least:,} to " if self.least else "at most "
            return f"got {size:,} bytes; allowed: {least}{self.most:,}"
        why = self.unclean(value)
        if not why and self.shape and not re.fullmatch(self.shape, value):
            return f"got {shown(value)}; allowed: {self.described}"
        return why

    def encoded(self, value: str) -> bytes:
        """Return the bytes of a text."""
        return value.encode()

    def unclean(self, value: str) -> str:
        """Say which characters may not be there; empty: none is."""
        return "" if value.isprintable() else f"got {shown(value)}; allowed: characters that can be printed"

    def schema(self) -> dict[str, Any]:
        """See `Limit`."""
        found: dict[str, Any] = {"maxLength": self.most}
        return found | ({"pattern": f"^{self.shape}$"} if self.shape else {})


@attrs.frozen
class Program(Text):
    """Text that programs are handed, with line ends and the like in it, but no NUL."""

    def unclean(self, value: str) -> str:
        """See `Text`."""
        return "a text with a NUL byte cannot be handed to a program" if "\0" in value else ""


@attrs.frozen
class Bytes(Program):
    """As `Program`, and it may hold bytes that are no UTF-8, as Python hands them over (surrogateescape)."""

    def encoded(self, value: str) -> bytes:
        """See `Text`."""
        return value.encode("utf-8", "surrogateescape")


@attrs.frozen
class Items(Limit):
    """A list of so many values."""

    most: int
    each: Limit
    distinct: bool = False
    least: int = 0

    def wrong(self, value: Sequence[Any]) -> Iterator[tuple[str, str]]:
        """See `Limit`."""
        if not self.least <= len(value) <= self.most:
            least = f"{self.least:,} to " if self.least else "at most "
            least = "" if self.least == self.most else least
            yield "", f"got {len(value):,} values; allowed: {least}{self.most:,}"
            return
        for at, item in enumerate(value):
            for where, why in self.each.wrong(item):
                yield f"[{at}]{where}", why
        if self.distinct and len(set(value)) < len(value):
            yield "", "the same value stands in it twice"

    def schema(self) -> dict[str, Any]:
        """See `Limit`."""
        found: dict[str, Any] = {"maxItems": self.most, "items": self.each.schema()}
        return found | ({"uniqueItems": True} if self.distinct else {})


@attrs.frozen
class Table(Limit):
    """So many names, each with a value."""

    most: int
    key: Text
    value: Limit
    known: tuple[str, ...] = ()
    """The names that may stand in it; empty: any."""

    def wrong(self, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """See `Limit`."""
        if len(value) > self.most:
            yield "", f"got {len(value):,} names; allowed: at most {self.most:,}"
            return
        for key, item in value.items():
            unfit = self.key.unfit(key)
            if unfit:
                yield f".{key[:40]}", unfit
            elif self.known and key not in self.known:
                options = ", ".join(self.known)
                yield f".{key[:40]}", f"unknown name; allowed: {options}{nearest(key, self.known)}"
            else:
                for where, why in self.value.wrong(item):
                    yield f".{key[:40]}{where}", why

    def schema(self) -> dict[str, Any]:
        """See `Limit`."""
        return {"maxProperties": self.most, "additionalProperties": self.value.schema()}


def limited(default: Any, limit: Limit | None, about: str = "") -> Any:
    """Return a field of an attrs class with its default and its limit.

    :param default: a type makes the default anew each time.
    :param limit: None: its type allows a few values alone.
    :param about: what it means to programs that send it.
    """
    told = {LIMIT: limit, ABOUT: about}
    if isinstance(default, type):
        return attrs.field(factory=default, metadata=told)
    return attrs.field(default=default, metadata=told)


def problems(value: Any) -> list[Problem]:
    """List what is beyond the limits of an instance's fields, in their order."""
    found: list[Problem] = []
    for field in attrs.fields(type(value)):
        limit, given = field.metadata[LIMIT], getattr(value, field.name)
        if limit is None or given is None:
            continue
        for at, (where, why) in enumerate(limit.wrong(given)):
            if at == _MOST_TOLD:
                found.append(Problem(field.name, "and more of this kind"))
                break
            found.append(Problem(f"{field.name}{where}", why))
    return found


__all__ = [
    "ABOUT",
    "LIMIT",
    "Bytes",
    "Items",
    "Limit",
    "Number",
    "Program",
    "Table",
    "Text",
    "limited",
    "problems",
]
