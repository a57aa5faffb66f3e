"""Know which live jobs are components of which heterogeneous job."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Job


class Components:
    """The heterogeneous jobs of a run, by the id of the whole."""

    def __init__(self) -> None:
        self.parts: dict[str, list[Job]] = {}
        """Empty: there is no heterogeneous job."""

    def add(self, job: Job) -> None:
        """Take in a job, if it is a component."""
        if job.spec.het_id is not None:
            parts = self.parts.setdefault(job.spec.het_id, [])
            parts.append(job)
            parts.sort(key=lambda part: part.spec.het_offset)

    def remove(self, job: Job) -> None:
        """Drop a job, if it is a component."""
        if job.spec.het_id is not None:
            parts = self.parts[job.spec.het_id]
            parts.remove(job)
            if not parts:
                del self.parts[job.spec.het_id]

    def of_id(self, het_id: str) -> Sequence[Job]:
        """Return what is left of a heterogeneous job; empty: nothing is, or there is none of this id."""
        return tuple(self.parts.get(het_id, ()))

    def of(self, job: Job) -> Sequence[Job]:
        """Return all components of a heterogeneous job, leader first; an ordinary job alone."""
        return self.parts[job.spec.het_id] if job.spec.het_id is not None else (job,)
