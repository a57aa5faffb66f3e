"""Hold what was given to the arguments and options that replay, explain and sweep share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from makeway.config import Config, MappingRule
from makeway.model import Seconds
from makeway_app.cli.inputs import Loaded, load_config
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

    def load(self) -> Loaded:
        """Read the configuration, as it stands.

        :raises ConfigError: it cannot be read.
        """
        return load_config(self.config, self.release, self.nodes, self.accounting, warmed=bool(self.warm_up))

    def changed(self, config: Config, source: Path | None = None) -> Config:
        """Return `config` with what ``--set``, ``--map`` and ``--decision-time-limit`` change.

        :param source: the file that it comes from; None: CONFIG.
        :raises ConfigError: a change does not fit, or a rule names what does not exist.
        """
        return changed(config, self.changes, self.maps, source or self.config, self.decision_time_limit)
