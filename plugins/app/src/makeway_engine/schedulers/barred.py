"""Keep those that found no room by all that decides whether they would find some now.

`FutileTries` says which need not be tried; where a queue is kept like this, it says so of one job for all that are
alike to it. `Greedy` says what a pass comes to without this, and `tests/test_deep_queues.py` holds one to the
other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import cast

from makeway.model import Job, Partition
from makeway_engine.entries import Entry
from makeway_engine.queue import Queue
from makeway_engine.schedulers.futile import FutileTries
from makeway_engine.schedulers.shapes import EquivalenceKey, Shape, Shapes, glance


class Barred(Shapes):
    """The eligible entries of a queue: by shape and by what they may displace, or apart where that is not all."""

    many = 4

    def __init__(self, queue: Queue, equivalence_key: EquivalenceKey, futile: FutileTries) -> None:
        """Be there for one run.

        :param futile: judges the jobs that are kept by shape.
        """
        super().__init__(queue, self._alike, lambda job: not futile.judges(job) or futile.kind(job) is None)
        self._futile = futile
        self._screens_by = equivalence_key
        self._place_of: dict[Shape, tuple[Hashable, int]] = {}
        """What jobs may displace, and the index of their partition, by shape; of those that may displace any."""

    def open_among(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """Return those of `shapes` whose jobs are worth a try."""
        futile, place_of = self._futile, self._place_of
        able = glance(futile.glance, shapes)
        if not futile.looks_further:
            return able
        roomy = set(able)
        blocked: dict[tuple[Hashable, int], list[Shape]] = {}
        for shape in shapes:
            place = place_of.get(shape)
            if place is not None and shape.entries and shape not in roomy:
                blocked.setdefault(place, []).append(shape)
        found = list(able)
        for place, several in blocked.items():
            first = [shape.entries[0][1] for shape in several]
            worth = set(map(id, futile.worth(first, place)))
            if worth:
                found += [shape for shape, job in zip(several, first, strict=True) if id(job) in worth]
        return found

    def speaks_for(self, entry: Entry) -> bool:
        """Whether what a try of the job comes to holds for those behind it of its shape."""
        job = entry[1]
        return self.class_of(job) is not None and self._futile.decides_alone(job)

    # ------------------------------------------------------------------------------------ the index
    def _alike(self, job: Job) -> Hashable:
        return self._screens_by(job), self._futile.kind(job)

    def _new_shape(self, partition: Partition, size: int, alike: Hashable) -> Shape:
        shape = super()._new_shape(partition, size, alike)
        if self._futile.looks_further:
            _, kind = cast("tuple[Hashable, Hashable]", alike)
            self._place_of[shape] = kind, partition.index
        return shape

    def _end_shape(self, shape: Shape) -> None:
        self._place_of.pop(shape, None)

    def _forget(self) -> None:
        super()._forget()
        self._place_of.clear()
