"""Hold what was given to the arguments and options that replay, explain and sweep share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.config import Config, MappingRule
from makeway.errors import ConfigError
from makeway.model import Seconds
from makeway.readers.api import Loaded
from makeway.readers.mapping import check_mapping
from makeway_app.cli.changes import change
from makeway_app.cli.inputs import load_config, reader_of
from makeway_app.cli.loose import load_files
from makeway_app.cli.nearer import without_effect
from makeway_app.cli.request import Request
from makeway_app.cli.terminal import note
from makeway_app.readers.outages import outages_from


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
    outages: tuple[Path, ...]

    def load(self, other: Path | None = None, release: str | None = None) -> Loaded:
        """Read a configuration, as it stands.

        :param other: it stands beside CONFIG; None: it is CONFIG.
        :param release: release of the scheduler to be; None: that of ``--release``.
        :raises ConfigError: it cannot be read.
        """
        path, nodes = other or self.config, self.nodes
        if other is not None and nodes is not None:
            reader = reader_of(other)
            nodes = None if reader is None or reader.names_all_nodes else nodes
        return load_config(path, release or self.release, nodes, self.accounting, warmed=bool(self.warm_up))

    def request(self, loaded: Loaded, **more: Any) -> Request:
        """Return what a replay is asked for, without what only some commands ask for.

        :param more: that.
        :raises ConfigError, PluginError: a plugin in a loose file cannot be loaded.
        """
        return Request(
            loaded=loaded,
            workload=self.workload,
            format=self.format,
            limit=self.limit,
            until=self.until,
            plugins=load_files(self.plugin_files),
            warm_up=self.warm_up,
            **more,
        )

    def changed(self, config: Config, source: Path | None = None) -> Config:
        """Return `config` with what ``--set``, ``--map`` (whose rules come first) and ``--decision-time-limit`` change.

        Its world is the simulated one unless a change names another: the configuration of a daemon, replayed, must not
        run the jobs of a workload once more. Changes without effect are told.

        :param source: the file that it comes from; None: CONFIG.
        :raises ConfigError: a change does not fit, or a rule names what does not exist.
        """
        steps = [attrs.evolve(config, world=attrs.evolve(config.world, name="world/simulated"))]
        for text in self.changes:
            steps.append(change(steps[-1], text))
        config = steps[-1]
        where = f"{source}: " if source else ""
        if self.outages:
            lost, notes = outages_from(self.outages, config)
            config = attrs.evolve(config, outage=(*config.outage, *lost))
            note("note", notes)
        for text, before, after in zip(self.changes, steps, steps[1:], strict=False):
            vain = without_effect(before, after, "--set", text, config)
            note("warning", [f"{where}{told}" for told in vain])
        if self.decision_time_limit is not None:
            policy = attrs.evolve(config.policy, decision_time_limit=self.decision_time_limit)
            config = attrs.evolve(config, policy=policy)
        _check_map(config, str(source or self.config))
        typed = attrs.evolve(config.workload, map=tuple(self.maps))
        _check_map(attrs.evolve(config, workload=typed), "--map")
        table = attrs.evolve(typed, map=(*self.maps, *config.workload.map))
        return attrs.evolve(config, workload=table)


def _check_map(config: Config, source: str) -> None:
    try:
        check_mapping(config)
    except ConfigError as error:
        raise ConfigError(source, error.problems) from None
