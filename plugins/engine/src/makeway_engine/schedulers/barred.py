"""Keep those that found no room by all that decides whether they would find some now.

`FutileTries` says who need not be tried; where a queue is kept like this, it says so of one job for all that are alike
to it. `Greedy` says what a pass comes to without this, and `tests/test_deep_queues.py` holds one to the other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from makeway.model import Job
from makeway_engine.queue import Queue
from makeway_engine.schedulers.futile import FutileTries
from makeway_engine.schedulers.shapes import ScreenKey, Shape, Shapes


class Barred(Shapes):
    """The eligible entries of a queue: by shape and by whom they may displace, or apart where that is not all."""

    many = 4

    def __init__(self, queue: Queue, screen_key: ScreenKey, futile: FutileTries) -> None:
        """Be there for one run.

        :param futile: judges the jobs that are kept by shape.
        """
        super().__init__(queue, self._alike, lambda job: not futile.judges(job) or futile.kind(job) is None)
        self._futile = futile
        self._screens_by = screen_key
        self._kinds: dict[int, Hashable | None] = {}
        """Whom jobs may displace, by their place in the job table."""

    def _alike(self, job: Job) -> Hashable:
        kind = self._kinds[job.index] = self._futile.kind(job)
        return self._screens_by(job), kind

    def _forget(self) -> None:
        super()._forget()
        self._kinds.clear()

    def _drop(self, job: Job) -> None:
        super()._drop(job)
        self._kinds.pop(job.index, None)

    def open_among(self, shapes: Iterable[Shape], *, no_room: bool = False) -> list[Shape]:
        """Return those of `shapes` whose jobs are worth a try.

        :param no_room: it is known that there is no room for any of them as things stand.
        """
        kinds, futile = self._kinds, self._futile
        if no_room:
            futile.saw_room = False
            if not futile.looks_further:
                return []
            first = [
                (job, shape)
                for shape in shapes
                if shape.entries and kinds[(job := shape.entries[0][1]).index] != ()
            ]
        else:
            first = [(shape.entries[0][1], shape) for shape in shapes if shape.entries]
        if not first:
            futile.saw_room = False
            return []
        look = futile.without_room if no_room else futile.vain
        vain = look([job for job, _ in first], lambda job: kinds[job.index])
        return [shape for job, shape in first if id(job) not in vain]


__all__ = ["Barred"]
