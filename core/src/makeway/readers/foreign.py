"""Let readers of plugins work: read files for them, and structure the tables that they hand back."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.config import Config, validate
from makeway.errors import ConfigError, Problem, place_of
from makeway.foreign import ForeignReader, Source
from makeway.readers.api import ConfigReader, Imported
from makeway.readers.lines import read_text
from makeway.settings import structure


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
    """A plugin's reader as a `makeway.readers.api.ConfigReader`."""

    inner: ForeignReader

    @property
    def name(self) -> str:
        """Its short name."""
        return self.inner.name

    def claims(self, path: Path, head: str) -> bool:
        """Say by file name and first lines whether the file is of this kind."""
        return path.suffix != ".toml" and self.inner.claims(path.name, head)

    def read(self, path: Path, companion: Mapping[str, Any] | None = None) -> Imported:
        """Read it.

        :param companion: tables that take the place of what the file says (``--nodes``).
        :raises ConfigError: with all problems.
        """
        found = self.inner.translate(FileSource(path))
        tables = {**found.tables, **(companion or {})}
        if not tables.get("node"):
            text = (
                f"{path.name} does not say which nodes there are; name a TOML file with [[node]] tables: "
                "--nodes cluster.toml"
            )
            raise ConfigError(str(path), [Problem("", text)])
        try:
            config = structure(tables, Config, str(path))
            validate(config, str(path))
        except ConfigError as error:
            problems = [Problem(place_of(p.where, found.places), p.message) for p in error.problems]
            raise ConfigError(str(path), problems) from None
        return Imported(config=config, warnings=found.warnings, places=found.places)


def adapted(reader: Any) -> ConfigReader:
    """Return a `ConfigReader` for whatever kind of reader a plugin offers."""
    return Adapted(reader) if hasattr(reader, "translate") else reader


def read_companion(path: Path) -> Mapping[str, Any]:
    """Read the TOML file that says what a foreign file cannot.

    :raises ConfigError: it cannot be read or is no TOML.
    """
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(str(path), [Problem("", f"not valid TOML: {error}")]) from None
