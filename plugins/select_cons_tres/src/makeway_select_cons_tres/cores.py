"""Choose the cores of a node (slurm-gang-and-select 4.3.8)."""

from __future__ import annotations

import attrs

from makeway.bitmap import CoreBits, each, first_n
from makeway_select_cons_tres.cpus import (
    Shape,
    free_by_socket,
    looks_at_sockets,
    most_cpus,
    threads_for,
    usable_cpus,
)
from makeway_select_cons_tres.parameters import Unit
from makeway_select_cons_tres.request import NodeNeed

_MOST_KNOWN = 100_000


@attrs.frozen
class Taste:
    """What the choice depends on beside the node; alike for many jobs."""

    need: NodeNeed
    block: bool
    """Cores are taken socket by socket."""
    most: int | None
    """Most CPUs wanted on a node; None: there is no such limit."""
    trims: bool
    """Whether jobs with tasks per node, or with CPUs for the sake of memory, get consecutive cores."""
    for_memory: int = 0
    """CPUs per node that a limit of memory per CPU asks for, beyond those of the tasks; 0: none."""


class Picker:
    """Chooses cores for one taste, and remembers what it chose."""

    def __init__(self, taste: Taste, shapes: list[Shape], shape_at: list[int]) -> None:
        self._taste = taste
        self._shapes = shapes
        self._shape_at = shape_at
        self._known: dict[tuple[int, CoreBits, int], tuple[int, CoreBits] | None] = {}
        need = taste.need
        self._by_number = not (taste.block or need.cpus_per_task > 1 or looks_at_sockets(need))
        """Whether it is a matter of numbers which cores count, and one of each socket is taken in turn."""
        self._by_cpu = need.unit is Unit.CPU

    def pick(self, node: int, free: CoreBits, cpus: int) -> tuple[int, CoreBits] | None:
        """Return the CPUs charged and the cores for `cpus` CPUs of a node; None if there are too few."""
        key = (self._shape_at[node], free, cpus)
        try:
            return self._known[key]
        except KeyError:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            answer = self._known[key] = self._pick(self._shapes[key[0]], free, cpus)
            return answer

    def _pick(self, shape: Shape, free: CoreBits, cpus: int) -> tuple[int, CoreBits] | None:
        return (self.by_number if self._by_number else self.in_full)(shape, free, cpus)

    def by_number(self, shape: Shape, free: CoreBits, cpus: int) -> tuple[int, CoreBits] | None:
        """Return the same as `in_full` where no socket has to have anything, in one go."""
        taste = self._taste
        threads, count = threads_for(shape, taste.need), free.bit_count()
        wanted = -(-cpus // threads)
        if taste.trims:
            room = count * threads
            if cpus == taste.for_memory:
                room = cpus
            elif taste.most is not None and taste.most < room:
                room = taste.most
            kept = -(-room // threads)
            if kept < count:
                free, count = first_n(free, kept), kept
        if count < wanted:
            return None
        if count > wanted:
            free = free & -free if wanted == 1 else _in_turn(shape.by_socket(free), wanted, None)
        return (cpus if self._by_cpu else wanted * shape.threads), free

    def in_full(self, shape: Shape, free: CoreBits, cpus: int) -> tuple[int, CoreBits] | None:
        """Choose step by step, whatever the taste."""
        taste, need = self._taste, self._taste.need
        if taste.trims:
            free = cut(shape, free, self._room(shape, free, cpus), need)
        cores = pick_cores(shape, free, cpus, need, block=taste.block)
        return None if cores is None else (charged_cpus(shape, cores, cpus, need), cores)

    def _room(self, shape: Shape, free: CoreBits, cpus: int) -> int:
        """Return the CPUs that the first cores have to provide (step 1)."""
        if cpus == self._taste.for_memory:
            return cpus
        room = usable_cpus(shape, free, self._taste.need)
        return room if self._taste.most is None else min(room, self._taste.most)


def pick_cores(shape: Shape, free: CoreBits, cpus: int, need: NodeNeed, *, block: bool) -> CoreBits | None:
    """Return the cores out of `free` for `cpus` CPUs; None if there are too few."""
    sockets = free_by_socket(shape, free, need)
    threads = threads_for(shape, need)
    wanted = -(-cpus // threads)
    most = None
    if need.tasks_per_socket is not None:
        most = -(-need.tasks_per_socket * need.cpus_per_task // threads)
    if block:
        taken = _block(sockets, wanted, most)
    elif need.cpus_per_task > 1:
        taken = _by_task(sockets, wanted, -(-need.cpus_per_task // threads))
    else:
        taken = _in_turn(sockets, wanted, most)
    if taken.bit_count() < wanted:
        return None
    return _full_sockets(shape, taken) if need.unit is Unit.SOCKET else taken


def charged_cpus(shape: Shape, cores: CoreBits, cpus: int, need: NodeNeed) -> int:
    """Return the CPUs charged for `cores`: those asked for with CR_CPU, else all of the cores."""
    return cpus if need.unit is Unit.CPU else cores.bit_count() * shape.threads


def cut(shape: Shape, free: CoreBits, cpus: int, need: NodeNeed) -> CoreBits:
    """Return the first cores by index that provide `cpus` CPUs, if there are more (step 1)."""
    if most_cpus(shape, free, need) <= cpus:
        return free
    if not looks_at_sockets(need):
        return first_n(free, -(-cpus // threads_for(shape, need)))
    kept = 0
    counted = 0
    for sockets in free_by_socket(shape, free, need):
        counted |= sockets
    for core in each(counted):
        kept |= core
        if most_cpus(shape, kept, need) >= cpus:
            break
    return kept


def thinned(shape: Shape, free: CoreBits, cpus: int, need: NodeNeed) -> CoreBits:
    """Return the cores that provide `cpus` CPUs beside counted resources, if there are more.

    One core after the other is left out: the last one of the socket that has most, of several the first (recorded:
    cons_gpus_per_task).
    """
    sockets = shape.by_socket(free)
    wanted = -(-cpus // threads_for(shape, need))
    for _ in range(free.bit_count() - wanted):
        sizes = [cores.bit_count() for cores in sockets]
        at = sizes.index(max(sizes))
        sockets[at] ^= 1 << (sockets[at].bit_length() - 1)
    return sum(sockets)


def _block(sockets: list[CoreBits], wanted: int, most: int | None) -> CoreBits:
    """Take the tightest socket that suffices, or the one with most; and so on (step 3, block)."""
    left = [first_n(cores, most) if most is not None else cores for cores in sockets]
    taken = 0
    while wanted > 0:
        best = -1
        size = 0
        for at, cores in enumerate(left):
            count = cores.bit_count()
            if not count:
                continue
            tighter = count >= wanted and (size < wanted or count < size)
            if best < 0 or tighter or size < count < wanted:
                best, size = at, count
        if best < 0:
            return taken
        part = first_n(left[best], wanted)
        taken |= part
        wanted -= part.bit_count()
        left[best] = 0
    return taken


def _in_turn(sockets: list[CoreBits], wanted: int, most: int | None) -> CoreBits:
    """Take one core of each socket in turn, the lowest that is free (step 3, cyclic)."""
    left = [first_n(cores, most) if most is not None else cores for cores in sockets if cores]
    taken = 0
    while wanted > 0:
        before = wanted
        for at, cores in enumerate(left):
            if cores and wanted > 0:
                core = cores & -cores
                left[at] ^= core
                taken |= core
                wanted -= 1
        if wanted == before:
            return taken
    return taken


def _by_task(sockets: list[CoreBits], wanted: int, per_task: int) -> CoreBits:
    """Take the cores of each task from the first socket that has enough; where none has, one of each in turn."""
    left = list(sockets)
    taken = 0
    while wanted > 0:
        size = min(per_task, wanted)
        at = next((at for at, cores in enumerate(left) if cores.bit_count() >= size), -1)
        if at >= 0:
            part = first_n(left[at], size)
            left[at] ^= part
        else:
            part = _in_turn(left, size, None)
            left = [cores & ~part for cores in left]
        if not part:
            return taken
        taken |= part
        wanted -= part.bit_count()
    return taken


def _full_sockets(shape: Shape, cores: CoreBits) -> CoreBits:
    filled = 0
    for socket in shape.by_socket(shape.full):
        if socket & cores:
            filled |= socket
    return filled
