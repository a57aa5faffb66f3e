"""Tell the GPUs of a node apart where it gives whole ones and parts of them, so that each is given out once.

A GPU that a job has as a whole gives no parts, and one of which a job has a part is not given as a whole. Slurm
before 23.02 did give it (``beside_parts``; recorded: cons_gpus_shards). All parts that a job gets on a node lie on one
GPU: the first that has enough left (Slurm's documentation of ``shard`` and ``mps``), or the fullest of those
(``tightest``). Thousandths (``gpu_milli``) are asked for as one part, or as a number of whole GPUs.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway import bitmap
from makeway.model import Job, Node

GPU = "gpu"
PARTS: Mapping[str, int | None] = {"gpu_milli": 1000, "shard": None, "mps": None}
"""Counted resource that is a part of a GPU -> how many make one; None: the node's are dealt over its GPUs."""


def is_gpu(name: str) -> bool:
    """Whether a counted resource is GPUs, of whatever model, or parts of them."""
    return name in PARTS or name.partition(":")[0] == GPU


def holds_gpus(job: Job) -> bool:
    """Whether an active job holds GPUs or parts of them, which keep their memory while it is suspended."""
    held = job.allocation
    return held is not None and any(is_gpu(name) and sum(each) for name, each in held.gres.items())


Bits = int
"""Some GPUs of a node, as a bitmap."""
Slot = tuple[bool, str, int]
"""What is given of one GPU: whether the whole, the name of the parts and how many; ``FREE``: nothing."""
Slots = tuple[Slot, ...]

FREE: Slot = (False, "", 0)


@attrs.frozen
class Board:
    """The GPUs of a node that gives whole ones and parts."""

    size: int
    """How many GPUs it has."""
    types: Mapping[str, Bits]
    """``gpu:a100`` -> which GPUs are of this model. Models follow one another as the node names them."""
    parts: Mapping[str, tuple[int, ...]]
    """Name of the parts -> how many each GPU gives."""
    beside_parts: bool = False
    """Whether a GPU of which a job has a part is given as a whole, too (``whole_gpus_beside_parts``)."""
    tightest: bool = False
    """Whether parts come from the GPU that has the least left of those that have enough, and not from the first."""

    @property
    def free(self) -> Slots:
        """What is given when no job is there."""
        return (FREE,) * self.size

    def pick(self, slots: Slots, wanted: Mapping[str, int]) -> dict[str, Bits] | None:
        """Return the GPUs that a job gets, by resource; None: they are not there.

        :param wanted: how many the job gets of each resource; resources that are no GPUs are passed over.
        """
        untouched = self._for_whole(slots)
        found: dict[str, Bits] = {}
        whole: Bits = 0
        for name in (each for each in wanted if each in self.types):
            mine = _lowest(untouched & self.types[name], wanted[name])
            if mine is None:
                return None
            found[name] = mine
            whole |= mine
            untouched &= ~mine
        more = _lowest(untouched, max(0, wanted.get(GPU, 0) - whole.bit_count()))
        if more is None:
            return None
        if whole | more:
            found[GPU] = whole | more
        untouched = _free_of(slots) & ~(whole | more)
        closed = whole | more
        for name in (each for each in self.parts if wanted.get(each)):
            mine = self._pick_part(slots, closed, untouched, name, wanted[name])
            if mine is None:
                return None
            found[name] = mine
            untouched &= ~mine
            closed |= mine
        return found

    def _for_whole(self, slots: Slots) -> Bits:
        """Return the GPUs that may be given as a whole."""
        if not self.beside_parts:
            return _free_of(slots)
        return bitmap.of([at for at, slot in enumerate(slots) if not slot[0]])

    def _pick_part(self, slots: Slots, closed: Bits, untouched: Bits, name: str, count: int) -> Bits | None:
        able = [
            (each - used if self.tightest else 0, at)
            for at, (each, (whole, parts, used)) in enumerate(zip(self.parts[name], slots, strict=True))
            if not whole and not closed >> at & 1 and parts in ("", name) and used + count <= each
        ]
        if able:
            return 1 << min(able)[1]
        one = PARTS[name]
        return _lowest(untouched, count // one) if one is not None and count % one == 0 else None

    def most(self, slots: Slots, name: str, wanted: int) -> int:
        """Return how many of `wanted` the node can give one job."""
        if name not in self.parts:
            able = self._for_whole(slots)
            return min(wanted, (able & self.types.get(name, able)).bit_count())
        untouched = _free_of(slots)
        of_one = [
            each - used
            for (whole, parts, used), each in zip(slots, self.parts[name], strict=True)
            if not whole and parts in ("", name)
        ]
        found, one = min(wanted, max(of_one, default=0)), PARTS[name]
        return max(found, one * min(untouched.bit_count(), wanted // one)) if one is not None else found

    def change(self, slots: Slots, bits: Mapping[str, Bits], counts: Mapping[str, int], sign: int) -> Slots:
        """Return what is given once a job has come (`sign` 1) or gone (-1).

        :param bits: the GPUs that it has, by resource, as `pick` returns them.
        :param counts: how many it has of each resource.
        """
        changed = list(slots)
        for name, mine in bits.items():
            several = mine.bit_count() > 1
            for at in bitmap.indices(mine):
                whole, parts, used = changed[at]
                if name == GPU:
                    changed[at] = (sign > 0, parts, used)
                elif name in self.parts:
                    used += sign * (self.parts[name][at] if several else counts.get(name, 0))
                    changed[at] = (whole, name, used) if used > 0 else (whole, "", 0)
        return tuple(changed)

    def knows(self, name: str) -> bool:
        """Whether a resource is a GPU, or a part of one."""
        return name == GPU or name in self.types or name in self.parts


def board_of(node: Node, *, beside_parts: bool = False, tightest: bool = False) -> Board | None:
    """Return the GPUs of a node with models or parts of GPUs; None: its GPUs are alike, or it has none.

    :param beside_parts: see `Board`, and `tightest`.
    """
    parts = {name: node.gres[name] for name in PARTS if node.gres.get(name)}
    kinds = {name: count for name, count in node.gres.items() if name.startswith(f"{GPU}:")}
    if not parts and not kinds:
        return None
    size = node.gres.get(GPU) or sum(kinds.values()) or parts.get("gpu_milli", 0) // 1000
    if not size:
        return None
    types: dict[str, Bits] = {}
    first = 0
    for name, count in kinds.items():
        types[name] = ((1 << min(count, size - first)) - 1) << first
        first = min(size, first + count)
    dealt = {
        name: tuple(count // size + (at < count % size) for at in range(size))
        for name, count in parts.items()
    }
    return Board(size, types, dealt, beside_parts, tightest)


def _free_of(slots: Slots) -> Bits:
    """Return the GPUs of which nothing is given."""
    return bitmap.of([at for at, slot in enumerate(slots) if slot == FREE])


def _lowest(bits: Bits, count: int) -> Bits | None:
    """Return the first `count` of some GPUs; None: they are not so many."""
    listed = list(bitmap.indices(bits))
    return bitmap.of(listed[:count]) if len(listed) >= count else None
