"""Write down what must outlive a crash, before it is done (slurm-live 4.2).

Everything else is read from Slurm. The file is replaced as a whole and synced, so that it is either the old or the
new one; the hand-back needs nothing but this file and Slurm.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import attrs

from makeway.errors import JournalError
from makeway.settings import structure, unstructure

NAME = "slurm.json"
VERSION = 1


@attrs.frozen(kw_only=True)
class Request:
    """What a job asked for before a start changed it."""

    required: str = ""
    """ReqNodeList, a host list; empty: none."""
    count: str
    """NumNodes, as ``1-4``."""
    excluded: str | None = None
    """ExcNodeList, a host list; None: it was not changed, as it is for leaders of heterogeneous jobs alone."""


@attrs.frozen(kw_only=True)
class Open:
    """A start that was asked for, or is about to be."""

    incarnation: int
    serial: int
    nodes: str


@attrs.frozen(kw_only=True)
class Pages:
    """What stands in the notebook."""

    version: int = VERSION
    lease: str = ""
    """Name of the reservation; empty: none is held."""
    nodes: str = ""
    starts: dict[str, Open] = attrs.field(factory=dict)
    """Job -> the start that is under way."""
    requests: dict[str, Request] = attrs.field(factory=dict)
    """Job whose request was changed -> what it was."""
    suspended: tuple[str, ...] = ()
    """Jobs that were stopped for others: only an operator resumes them."""
    held: tuple[str, ...] = ()
    """Jobs that Slurm holds because they were requeued when stopped."""


class Notebook:
    """The notebook of one state directory."""

    def __init__(self, directory: Path) -> None:
        """Open it, or begin one.

        :raises JournalError: it cannot be read.
        """
        self.path = directory / NAME
        self.pages = Pages()
        if self.path.exists():
            try:
                data = json.loads(self.path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise JournalError(f"{self.path}: it cannot be read: {error}") from None
            self.pages = structure(data, Pages, str(self.path))
            if self.pages.version != VERSION:
                raise JournalError(f"{self.path}: version {self.pages.version}; allowed: {VERSION}")

    def _write(self, pages: Pages) -> None:
        """Replace the file; when it returns, the new one survives a crash.

        :raises JournalError: it cannot be written; the old one counts.
        """
        if pages == self.pages:
            return
        draft = self.path.with_suffix(".new")
        try:
            with open(draft, "w", encoding="utf-8") as stream:
                json.dump({"version": VERSION, **unstructure(pages)}, stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(draft, self.path)
            descriptor = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}") from None
        self.pages = pages

    # ----------------------------------------------------------------------------------- lease
    def lease(self, name: str, nodes: str) -> None:
        """A lease is about to be taken, or was given up (empty)."""
        self._write(attrs.evolve(self.pages, lease=name, nodes=nodes))

    # ---------------------------------------------------------------------------------- starts
    def start(self, opened: Mapping[str, Open], requests: Mapping[str, Request]) -> None:
        """A start is about to be asked for; the first request of a job is the one that it is given back.

        :param opened: by job; the components of a heterogeneous job start together.
        :param requests: by job.
        """
        self._write(
            attrs.evolve(
                self.pages,
                starts={**self.pages.starts, **opened},
                requests={**requests, **self.pages.requests},
            )
        )

    def started(self, job: str) -> None:
        """A start was made, or is given up."""
        if job in self.pages.starts:
            rest = {key: each for key, each in self.pages.starts.items() if key != job}
            self._write(attrs.evolve(self.pages, starts=rest))

    def restored(self, job: str) -> None:
        """A job has its own request back, or has ended."""
        if job in self.pages.requests or job in self.pages.starts:
            self._write(
                attrs.evolve(
                    self.pages,
                    starts={key: each for key, each in self.pages.starts.items() if key != job},
                    requests={key: each for key, each in self.pages.requests.items() if key != job},
                )
            )

    # -------------------------------------------------------------------------------- suspended
    def suspend(self, *jobs: str) -> None:
        """Jobs are about to be stopped: one, or the components of a heterogeneous one."""
        self._write(attrs.evolve(self.pages, suspended=tuple(dict.fromkeys((*self.pages.suspended, *jobs)))))

    def resumed(self, *jobs: str) -> None:
        """Jobs go on, or have ended."""
        self._write(attrs.evolve(self.pages, suspended=_without(self.pages.suspended, *jobs)))

    def hold(self, job: str) -> None:
        """A stopped job is about to be requeued, and will be held by that."""
        self._write(attrs.evolve(self.pages, held=_with(self.pages.held, job)))

    def released(self, job: str) -> None:
        """It waits like all others."""
        self._write(attrs.evolve(self.pages, held=_without(self.pages.held, job)))

    def forget(self, job: str) -> None:
        """A job has ended."""
        pages = self.pages
        if job in pages.suspended or job in pages.held or job in pages.requests or job in pages.starts:
            self._write(
                attrs.evolve(
                    pages,
                    starts={key: each for key, each in pages.starts.items() if key != job},
                    requests={key: each for key, each in pages.requests.items() if key != job},
                    suspended=_without(pages.suspended, job),
                    held=_without(pages.held, job),
                )
            )


def _with(jobs: tuple[str, ...], job: str) -> tuple[str, ...]:
    return jobs if job in jobs else (*jobs, job)


def _without(jobs: tuple[str, ...], *gone: str) -> tuple[str, ...]:
    return tuple(each for each in jobs if each not in gone)
