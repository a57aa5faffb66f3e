"""Own the sets of nodes and of cores: Python integers used as bitmaps.

Bit *i* stands for node (or core) *i* in index order. Integers are exact, immutable and hashable,
and ``&``, ``|``, ``^`` work on 100,000 bits in about half a microsecond.
Nothing else in makeway knows that a set of nodes is an integer, save that ``&``, ``|`` and ``& ~``
are used directly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

NodeBits = int
"""A set of nodes; bit *i* is the node of index *i*."""
CoreBits = int
"""A set of cores of one node; bit *i* is core *i*, socket-major."""

_RUNS = re.compile("1+")


def full(size: int) -> NodeBits:
    """Return the set of the first `size` elements."""
    return (1 << size) - 1


def single(index: int) -> NodeBits:
    """Return the set that holds `index` alone."""
    return 1 << index


def of(indices: Iterable[int]) -> NodeBits:
    """Return the set of `indices`; fast for long lists too."""
    listed = indices if isinstance(indices, list | tuple) else list(indices)
    if len(listed) < 64:
        bits = 0
        for index in listed:
            bits |= 1 << index
        return bits
    buffer = bytearray((max(listed) >> 3) + 1)
    for index in listed:
        buffer[index >> 3] |= 1 << (index & 7)
    return int.from_bytes(buffer, "little")


def count(bits: NodeBits) -> int:
    """Return how many elements `bits` has."""
    return bits.bit_count()


def lowest(bits: NodeBits) -> int:
    """Return the lowest index in `bits`; -1 when it is empty."""
    return (bits & -bits).bit_length() - 1


def highest(bits: NodeBits) -> int:
    """Return the highest index in `bits`; -1 when it is empty."""
    return bits.bit_length() - 1


def indices(bits: NodeBits) -> list[int]:
    """Return the indices in `bits`, ascending."""
    if bits.bit_count() <= 16:
        found = []
        while bits:
            low = bits & -bits
            found.append(low.bit_length() - 1)
            bits ^= low
        return found
    return [at for at, digit in enumerate(bin(bits)[:1:-1]) if digit == "1"]


def runs(bits: NodeBits) -> list[tuple[int, int]]:
    """Return the runs of consecutive indices as (first, one past last), ascending."""
    return [match.span() for match in _RUNS.finditer(bin(bits)[:1:-1])] if bits else []


def tight_run(bits: NodeBits, wanted: int) -> tuple[int, int]:
    """Return the shortest run of at least `wanted` indices, else the longest run; the lowest among equals.

    :returns: (first, one past last).
    :raises ValueError: if `bits` is empty.
    """
    digits = "0" + bin(bits)[:1:-1] + "0"
    lengths = [len(run) for run in digits.split("0") if run]
    enough = [length for length in lengths if length >= wanted]
    length = min(enough) if enough else max(lengths)
    first = digits.index("0" + "1" * length + "0")
    return first, first + length


def span(first: int, stop: int) -> NodeBits:
    """Return the set of the indices from `first` up to, not including, `stop`."""
    return ((1 << (stop - first)) - 1) << first if stop > first else 0


def first_n(bits: NodeBits, wanted: int) -> NodeBits:
    """Return the `wanted` lowest elements of `bits` (all of them when there are fewer)."""
    if bits.bit_count() <= wanted:
        return bits
    if wanted <= 8:
        taken = 0
        for _ in range(wanted):
            low = bits & -bits
            taken |= low
            bits ^= low
        return taken
    # The prefix length whose population is `wanted`, by bisection on the width.
    low_width, high_width = wanted, bits.bit_length()
    while low_width < high_width:
        middle = (low_width + high_width) // 2
        if (bits & ((1 << middle) - 1)).bit_count() < wanted:
            low_width = middle + 1
        else:
            high_width = middle
    return bits & ((1 << low_width) - 1)


def last_n(bits: NodeBits, wanted: int) -> NodeBits:
    """Return the `wanted` highest elements of `bits` (all of them when there are fewer)."""
    spare = bits.bit_count() - wanted
    return bits if spare <= 0 else bits & ~first_n(bits, spare)


def each(bits: NodeBits) -> Iterator[NodeBits]:
    """Yield the elements of `bits` as sets of one, ascending."""
    while bits:
        low = bits & -bits
        yield low
        bits ^= low
