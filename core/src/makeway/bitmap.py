"""Own the sets of nodes and of cores: Python integers used as bitmaps.

Bit *i* stands for node (or core) *i* in index order. Integers are exact, immutable and hashable,
and ``&``, ``|``, ``^`` work on 100,000 bits in about half a microsecond.
Nothing else in makeway knows that a set of nodes is an integer, save that ``&``, ``|`` and ``& ~``
are used directly.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence

NodeBits = int
"""A set of nodes; bit *i* is the node of index *i*."""
CoreBits = int
"""A set of cores of one node; bit *i* is core *i*, socket-major."""

_RUNS = re.compile("1+")
_FEW_RUNS = 16
"""Up to so many runs, arithmetic is quicker than text."""
_SMALL = 1024
"""Up to so many bits, arithmetic is quicker than text, and answers are worth remembering."""

_TOP = 2048
"""Bits of a large set that are looked at first."""


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


def has(bits: NodeBits, wanted: int) -> bool:
    """Whether there are at least `wanted` elements; of a large set the top is counted first, which often is enough."""
    spare = bits.bit_length() - _TOP
    if spare > _TOP and wanted <= _TOP and (bits >> spare).bit_count() >= wanted:
        return True
    return bits.bit_count() >= wanted


def lowest(bits: NodeBits) -> int:
    """Return the lowest index in `bits`; -1 when it is empty."""
    return (bits & -bits).bit_length() - 1


def highest(bits: NodeBits) -> int:
    """Return the highest index in `bits`; -1 when it is empty."""
    return bits.bit_length() - 1


def indices(bits: NodeBits) -> list[int]:
    """Return the indices in `bits`, ascending."""
    low = bits & -bits
    if low == bits:
        return [bits.bit_length() - 1] if bits else []
    if not bits & (bits + low):  # adding one to a run empties it: there is no other
        return list(range(low.bit_length() - 1, bits.bit_length()))
    if bits.bit_count() <= 16:
        found = []
        while bits:
            low = bits & -bits
            found.append(low.bit_length() - 1)
            bits ^= low
        return found
    digits = bin(bits)[:1:-1]
    if (bits & ~(bits << 1)).bit_count() * 8 > len(digits):
        return [at for at, digit in enumerate(digits) if digit == "1"]
    found = []
    for match in _RUNS.finditer(digits):  # long runs
        found += range(*match.span())
    return found


def index_tuple(bits: NodeBits) -> tuple[int, ...]:
    """Return the indices in `bits`, ascending; small sets are remembered."""
    return _remembered(bits) if bits.bit_length() <= _SMALL else tuple(indices(bits))


def lists(listed: Sequence[int], bits: NodeBits) -> bool:
    """Whether `listed` holds exactly the indices in `bits`, each once; small sets are remembered."""
    if bits.bit_length() <= _SMALL and _remembered(bits) == listed:
        return True
    return len(listed) == bits.bit_count() and of(listed) == bits


@functools.lru_cache(maxsize=1 << 14)
def _remembered(bits: NodeBits) -> tuple[int, ...]:
    return tuple(indices(bits))


def runs(bits: NodeBits) -> list[tuple[int, int]]:
    """Return the runs of consecutive indices as (first, one past last), ascending."""
    heads = bits & ~(bits << 1)
    if heads.bit_count() <= _FEW_RUNS:
        return _few_runs(bits, heads) if bits else []
    return [match.span() for match in _RUNS.finditer(bin(bits)[:1:-1])]


def _few_runs(bits: NodeBits, heads: NodeBits) -> list[tuple[int, int]]:
    """Return the same from the first elements of the runs; the top run, often the rest of a machine, comes apart."""
    top = bits.bit_length()
    last_but_top = bits & ~(bits >> 1) & ~(1 << (top - 1))
    stops = [last + 1 for last in indices(last_but_top)]
    return list(zip(indices(heads), [*stops, top], strict=True))


def tight_run(bits: NodeBits, wanted: int) -> tuple[int, int]:
    """Return the shortest run of at least `wanted` indices, else the longest run; the lowest among equals.

    :returns: (first, one past last).
    :raises ValueError: if `bits` is empty.
    """
    if not bits:
        raise ValueError("an empty set has no run")
    if bits.bit_length() > _SMALL:
        return _tight_run_of_many(bits, wanted)
    enough = longest = 0
    enough_at = longest_at = 0
    while bits:
        low = bits & -bits
        carried = bits + low  # adding one to a run empties it and sets the bit above it
        length = (bits & ~carried).bit_count()
        if length >= wanted:
            if not enough or length < enough:
                enough, enough_at = length, low
                if length == wanted:
                    break
        elif length > longest:
            longest, longest_at = length, low
        bits &= carried
    if enough:
        first = enough_at.bit_length() - 1
        return first, first + enough
    first = longest_at.bit_length() - 1
    return first, first + longest


def _tight_run_of_many(bits: NodeBits, wanted: int) -> tuple[int, int]:
    """Return the same for large sets: the top run, often the rest of a machine, is cut off, which takes little."""
    top = bits.bit_length()
    first = (bits ^ _ones(top)).bit_length()
    below = bits & _ones(first)
    if not below:
        return first, top
    found = tight_run(below, wanted) if first <= _SMALL else _tight_run_by_shifts(below, wanted)
    length, rest = found[1] - found[0], top - first
    if length >= wanted:
        return (first, top) if wanted <= rest < length else found
    return (first, top) if rest > length else found


@functools.lru_cache(maxsize=64)
def _ones(size: int) -> NodeBits:
    return (1 << size) - 1


def _tight_run_by_shifts(bits: NodeBits, wanted: int) -> tuple[int, int]:
    """Return the same by shifting all runs at once."""
    heads = bits & ~(bits << 1)
    if heads.bit_count() <= _FEW_RUNS:
        found = _few_runs(bits, heads)
        enough = [run for run in found if run[1] - run[0] >= wanted]
        return min(enough, key=_length) if enough else max(found, key=_length)
    begins = _begins(bits, wanted)
    if served := heads & begins:
        head, length = _shortest(served, begins, wanted)
    else:
        head, length = _longest(bits, heads)
    return head, head + length


def _length(run: tuple[int, int]) -> int:
    return run[1] - run[0]


def _begins(bits: NodeBits, length: int) -> NodeBits:
    """Return where `length` consecutive elements of `bits` begin."""
    reached = 1
    while bits and reached < length:
        step = min(reached, length - reached)
        bits &= bits >> step
        reached += step
    return bits


def _shortest(heads: NodeBits, begins: NodeBits, length: int) -> tuple[int, int]:
    """Return the head of the shortest run, and its length.

    :param heads: the first elements of runs, all of at least `length`.
    :param begins: where `length` consecutive elements begin.
    """
    while not heads & ~(longer := begins & (begins >> length)):
        begins, length = longer, 2 * length
    least, beyond = 0, length  # all runs have `length + least`, some have not `length + beyond`
    while beyond - least > 1:
        middle = (least + beyond) // 2
        if heads & ~(begins >> middle):
            beyond = middle
        else:
            least = middle
    return lowest(heads & ~(begins >> beyond)), length + least


def _longest(bits: NodeBits, heads: NodeBits) -> tuple[int, int]:
    """Return the head of the longest run of `bits`, and its length."""
    begins, length = bits, 1
    while longer := begins & (begins >> length):
        begins, length = longer, 2 * length
    most, beyond = 0, length  # a run has `length + most`, none has `length + beyond`
    while beyond - most > 1:
        middle = (most + beyond) // 2
        if begins & (begins >> middle):
            most = middle
        else:
            beyond = middle
    return lowest(heads & begins & (begins >> most)), length + most


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


def each(bits: NodeBits) -> Iterator[NodeBits]:
    """Yield the elements of `bits` as sets of one, ascending."""
    while bits:
        low = bits & -bits
        yield low
        bits ^= low
