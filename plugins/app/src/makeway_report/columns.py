"""Pack columns of whole numbers and words tightly; ``static/data.js`` unpacks them.

A column is coded as differences where neighbours are alike, its numbers spread over as few bytes as the largest
needs, and all first bytes stored before all second ones: so zlib finds what is alike.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

_TYPES = ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))
_LEVEL = 6
"""Level 9 takes almost three times as long for one per cent."""


class Words:
    """Numbers words in order of their first use."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, word: str) -> int:
        """Return the number of `word`."""
        found = self._places.get(word)
        if found is None:
            found = self._places[word] = len(self.listed)
            self.listed.append(word)
        return found


class Packer:
    """Collects columns and tables of words, and packs them into one text."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._index: dict[str, list[Any]] = {}
        self._size = 0

    def numbers(self, name: str, values: Sequence[int], *, delta: bool = False) -> None:
        """Add a column of whole numbers.

        :param delta: store differences between neighbours.
        """
        coded: Iterable[int] = values
        if delta:
            coded = _differences(values)
        whole = array("Q", [value << 1 if value >= 0 else (-value << 1) - 1 for value in coded])
        width, code = next((w, c) for w, c in _TYPES if not whole or max(whole) < 1 << 8 * w)
        narrow = array(code, whole)
        if sys.byteorder == "big":
            narrow.byteswap()
        data = narrow.tobytes()
        self._add(b"".join(data[plane::width] for plane in range(width)))
        self._index[name] = [self._size - len(data), len(whole), width, int(delta)]

    def words(self, name: str, values: Sequence[str]) -> None:
        """Add a table of words."""
        data = json.dumps(list(values), ensure_ascii=False, separators=(",", ":")).encode()
        self._add(data)
        self._index[name] = [self._size - len(data), len(data)]

    def _add(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)

    def packed(self) -> tuple[dict[str, list[Any]], str]:
        """Return where each column lies, and all of them, compressed, as base64."""
        return self._index, base64.b64encode(zlib.compress(b"".join(self._parts), _LEVEL)).decode()


def _differences(values: Sequence[int]) -> Iterable[int]:
    before = 0
    for value in values:
        yield value - before
        before = value
