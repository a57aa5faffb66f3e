"""Follow a limit while the search removes candidates: when it lets the preemptor through, and thanks to which."""

from __future__ import annotations

from makeway.model import Blocked, ClusterView, Job, PreemptMode


class Lifting:
    """The limit that keeps a job out, as more and more others have made way.

    The limit says which would help, and by how much (`Blocked.frees`), so that it is asked again only once enough
    has been given back. One that does not know is left to judge the choice in the end.
    """

    def __init__(self, job: Job, view: ClusterView, limit: Blocked | None) -> None:
        self._job = job
        self._view = view
        self._limit = known(limit)
        self._without: list[tuple[Job, PreemptMode]] = []
        self._gained = 0.0

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Take note that `job` would make way."""
        if self._limit is None:
            return
        self._without.append((job, mode))
        frees = self._limit.frees
        self._gained += sum(frees.get(part.id, 0.0) for part in self._view.components(job))

    def lifted(self) -> bool:
        """Whether the limit would let the job through by now; once it does it is not asked again."""
        while self._limit is not None:
            if self._gained < self._limit.wanted - self._limit.available:
                return False
            limit = known(self._view.kept_out(self._job, self._without))
            if limit is not None and limit.frees == self._limit.frees and limit == self._limit:
                return False  # it stands as it stood: whatever was given back does not count
            self._limit, self._gained = limit, 0.0
        return True


def known(limit: Blocked | None) -> Blocked | None:
    """Return a limit of which it is known what would help; None: there is none such."""
    return limit if limit is not None and limit.frees else None
