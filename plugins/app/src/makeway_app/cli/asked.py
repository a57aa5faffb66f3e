"""Hold what was given to the arguments and options that replay, explain and sweep share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from makeway.config import Config, MappingRule
from makeway.model import Seconds
from makeway_app.cli.inputs import Loaded, load_config, reader_of
from makeway_app.cli.request import changed


@attrs.frozen(kw_only=True)
class Asked:
    """The values of `makeway_app.cli.options.workload_options`, by the names of the parameters."""

    config: Path
    workload: Path | None
    maps: tuple[MappingRule, ...]
    format: str | None
    limit: int | None
    """How many jobs to take; None: all."""
    changes: tuple[str, ...]
    """``KEY=VALUE`` of each ``--set``."""
    until: Seconds | None
    decision_time_limit: Seconds | None
    plugin_files: Mapping[str, Path]
    release: str | None
    nodes: Path | None
    accounting: tuple[Path, ...]
    actions: tuple[str, ...]
    warm_up: tuple[Path, ...]

    def load(self, other: Path | None = None) -> Loaded:
        """Read a configuration, as it stands.

        :param other: it stands beside CONFIG; None: it is CONFIG.
        :raises ConfigError: it cannot be read.
        """
        path, nodes = other or self.config, self.nodes
        if other is not None and nodes is not None:
            reader = reader_of(other)
            nodes = None if reader is None or reader.names_all_nodes else nodes
        return load_config(path, self.release, nodes, self.accounting, warmed=bool(self.warm_up))

    def changed(self, config: Config, source: Path | None = None) -> Config:
        """Return `config` with what ``--set``, ``--map`` and ``--decision-time-limit`` change.

        :param source: the file that it comes from; None: CONFIG.
        :raises ConfigError: a change does not fit, or a rule names what does not exist.
        """
        return changed(config, self.changes, self.maps, source or self.config, self.decision_time_limit)
