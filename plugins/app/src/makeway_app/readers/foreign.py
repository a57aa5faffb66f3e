"""Let readers of plugins work: read files for them, and structure the tables that they hand back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.bounds import toml_of
from makeway.config import Config, validate
from makeway.errors import ConfigError, Problem, place_of
from makeway.foreign import Accounts, ForeignReader, ForeignWorkloadReader, Source
from makeway.readers.api import Loaded, ReadOptions, Workload, WorkloadReader
from makeway.readers.lines import read_text
from makeway.readers.seen import Seen
from makeway.settings import structure
from makeway_app.readers.templates import template_in

_AT_A_LINE = re.compile(r"\S+:[0-9]+: ")
"""Begins a warning about a line of a file."""


@attrs.frozen
class FileSource:
    """A file of the site; see `makeway.foreign.Source`."""

    path: Path

    @property
    def name(self) -> str:
        """File name without folders."""
        return self.path.name

    @property
    def text(self) -> str:
        """All of it."""
        return read_text(self.path)

    def beside(self, name: str) -> Source:
        """Return a file relative to this one's folder."""
        return FileSource(self.path.parent / name)


@attrs.frozen
class Adapted:
    """A plugin's reader of configurations, at work on files."""

    inner: ForeignReader

    @property
    def name(self) -> str:
        """Its short name."""
        return self.inner.name

    @property
    def names_all_nodes(self) -> bool:
        """Whether its files say themselves which nodes there are."""
        return bool(getattr(self.inner, "names_all_nodes", False))

    def asked(self, release: str | None, accounts: Accounts | None) -> Adapted:
        """Return the reader to be used for a release, beside accounting."""
        asked = getattr(self.inner, "asked", None)
        return self if asked is None else Adapted(asked(release, accounts))

    def claims(self, path: Path, head: str) -> bool:
        """Say by file name and first lines whether the file is of this kind."""
        return path.suffix != ".toml" and self.inner.claims(path.name, head)

    def read(self, path: Path, companion: Mapping[str, Any] | None = None) -> Loaded:
        """Read it.

        :param companion: tables that take the place of what the file says (``--nodes``).
        :raises ConfigError: with all problems.
        """
        source = FileSource(path)
        wrong = template_in(source.text, plain=self.names_all_nodes)
        if wrong:
            raise ConfigError(str(path), [Problem("", wrong)])
        found = self.inner.translate(source)
        if isinstance(found, Loaded):
            return found
        beside = companion or {}
        tables = {**found.tables, **beside}
        if not tables.get("node"):
            text = (
                f"{path.name} does not say which nodes there are; name a TOML file with [[node]] tables: "
                "--nodes cluster.toml"
            )
            if companion:
                text += f"; the one given has no [[node]] tables, but {', '.join(map(repr, companion))}"
            told = [Problem("", warning) for warning in found.warnings if _is_beside(warning, path)]
            raise ConfigError(str(path), [Problem("", text), *told])
        try:
            config = structure(tables, Config, str(path))
            validate(config, str(path))
        except ConfigError as error:
            problems = [
                Problem(
                    place_of(p.where, found.places) if _key(p) not in beside else f"--nodes {p.where}",
                    p.message,
                )
                for p in error.problems
            ]
            raise ConfigError(str(path), problems) from None
        return Loaded(
            config=config,
            warnings=found.warnings if beside.get("node") else (*found.guesses, *found.warnings),
            refused=found.refused,
            matters=found.matters,
            unmodelled=found.unmodelled,
            idle=found.idle,
            places=found.places,
        )


def _is_beside(warning: str, path: Path) -> bool:
    """Whether a warning is about a line of another file than `path`, which may have said more."""
    return _AT_A_LINE.match(warning) is not None and not warning.startswith(f"{path.name}:")


def _key(problem: Problem) -> str:
    """Return the table of the configuration that a problem is about."""
    return problem.where.partition(".")[0].partition("[")[0]


@attrs.frozen
class AdaptedWorkload:
    """A plugin's reader as a `makeway.readers.api.WorkloadReader`."""

    inner: ForeignWorkloadReader

    @property
    def name(self) -> str:
        """Its short name."""
        return self.inner.name

    def claims(self, path: Path, head: str) -> bool:
        """Say by file name and first lines whether the file is of this kind."""
        return self.inner.claims(path.name, head)

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Read all of it.

        :raises ConfigError: it cannot be read at all, or two jobs have one id.
        """
        found = self.inner.translate(FileSource(path))
        if options.progress is not None:
            options.progress(path.stat().st_size)
        seen = Seen()
        for spec in found.jobs:
            if spec.id in seen:
                raise ConfigError(str(path), [Problem(spec.source, f"job {spec.id!r} was there before")])
            seen.add(spec.id)
        workload = Workload(
            name=path.name,
            jobs=iter(sorted(found.jobs, key=lambda spec: spec.submit_at)),
            most_rejected=options.most_rejected,
            notes=list(found.notes),
            start_wall=found.start_wall,
        )
        for line, reason in found.rejected:
            workload.reject(line, reason)
        return workload


def adapted_workload(reader: Any) -> WorkloadReader:
    """Return a `WorkloadReader` for whatever kind of reader a plugin offers."""
    return AdaptedWorkload(reader) if hasattr(reader, "translate") else reader


def read_companion(path: Path) -> Mapping[str, Any]:
    """Read the TOML file that says what a foreign file cannot.

    :raises ConfigError: it cannot be read or is no TOML.
    """
    return toml_of(read_text(path), str(path))
