"""Replay candidates by the machinery of sweeps, side by side."""

from __future__ import annotations

import contextlib
import io
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway import registry
from makeway.config import Config
from makeway.errors import ConfigError, MakewayError, PluginError, Problem
from makeway.model import JobSpec, Seconds
from makeway_app.cli.asked import Asked
from makeway_app.cli.inputs import check_plugins, with_actions
from makeway_app.cli.loose import load_files
from makeway_app.cli.request import in_world
from makeway_app.cli.running import warmed_up
from makeway_sweep.plan import Variant
from makeway_sweep.work import Outcome, Shared, Task, on_cores, on_dask
from makeway_tune.files import Chosen, Site

Wanted = tuple[Chosen, str]
"""A candidate, and the name of the workload that it is to replay."""


@attrs.define(eq=False)
class Runner:
    """Replays candidates, and keeps what came of them."""

    asked: Asked
    site: Site
    leader: str
    """``policy.preempt`` of the configuration as it stands, whose words are the site's."""
    workers: int
    dask: str | None = None
    workloads: dict[str, Shared] = attrs.field(factory=dict)
    refused: dict[Chosen, str] = attrs.field(factory=dict)
    """Candidates that the site's reader refuses, with the reason."""
    kept: dict[Wanted, Outcome] = attrs.field(factory=dict)
    configs: dict[Chosen, Config] = attrs.field(factory=dict)
    slow: set[Chosen] = attrs.field(factory=set)
    """Candidates that were given up since a replay took too long."""

    def add(self, name: str, jobs: Sequence[JobSpec], epoch: float | None) -> None:
        """Hand over a workload."""
        self.workloads[name] = Shared(name=name, jobs=tuple(jobs), epoch=epoch, unusable=0)

    def forget(self, name: str) -> None:
        """Forget a workload, and what came of it."""
        self.workloads.pop(name, None)
        self.kept = {wanted: each for wanted, each in self.kept.items() if wanted[1] != name}

    def config(self, chosen: Chosen) -> Config | None:
        """Return a candidate as its reader has it; None: it is refused.

        :raises MakewayError: the site as configured is.
        """
        if chosen not in self.configs and chosen not in self.refused:
            try:
                self.configs[chosen] = self._read(chosen)
            except (ConfigError, PluginError) as error:
                if not chosen:
                    raise
                problems = getattr(error, "problems", ())
                self.refused[chosen] = str(problems[0].message if problems else error)
        return self.configs.get(chosen)

    def _read(self, chosen: Chosen) -> Config:
        # What there is to say of the site was said of it as configured.
        with (
            self.site.placed(chosen) as (path, accounting),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            loaded = attrs.evolve(self.asked, accounting=accounting).load(path)
            config = with_actions(in_world(self.asked.changed(loaded.config), None), self.asked.actions)
            config, _ = registry.translated(config, self.leader)
            check_plugins(config, str(path), load_files(self.asked.plugin_files))
            start = next(iter(self.workloads.values())).epoch if self.workloads else None
            config, _ = warmed_up(config, self.asked.warm_up, start)
        return config

    def outcomes(
        self,
        wanted: Iterable[Wanted],
        *,
        longest: Seconds = math.inf,
        until: float = math.inf,
        advance: Callable[[int], None] = lambda number: None,
    ) -> dict[Wanted, Outcome]:
        """Replay what was not replayed before; those that are refused or given up are left out.

        :param longest: what a replay may take.
        :param until: by `time.monotonic`; what runs then is given up.
        :param advance: told of each replay that is over.
        :raises MakewayError: a replay of the site as configured failed.
        """
        listed = [each for each in dict.fromkeys(wanted) if self.config(each[0]) is not None]
        missing = [each for each in listed if each not in self.kept]
        jobs = []
        for at, (chosen, workload) in enumerate(missing):
            config = self.configs[chosen]
            variant = Variant(values=(), config=config, own=not chosen, identity=str(at))
            jobs.append((variant, workload, workload))
        if jobs:
            task = Task(
                until=self.asked.until,
                files=self.asked.plugin_files,
                by_job=True,
                longest=longest,
                by=until,
            )
            found: Any
            if self.dask is not None:
                found = on_dask(jobs, self.workloads, task, self.dask)
            else:
                found = on_cores(jobs, self.workloads, task, self.workers)
            with contextlib.closing(found) as outcomes:
                for outcome in outcomes:
                    self._keep(missing[int(outcome.identity)], outcome, over=time.monotonic() >= until)
                    advance(1)
        return {each: self.kept[each] for each in listed if each in self.kept}

    def _keep(self, wanted: Wanted, outcome: Outcome, *, over: bool) -> None:
        if outcome.by_job is not None:
            self.kept[wanted] = outcome
        elif outcome.given_up:
            self.slow |= set() if over else {wanted[0]}
        elif not wanted[0]:
            raise MakewayError(f"the replay of the site as configured failed: {outcome.error}")
        else:
            self.refused[wanted[0]] = outcome.error
            self.configs.pop(wanted[0], None)


def no_warm_start(config: Config, path: Path) -> None:
    """Refuse a configuration that begins with the jobs that ran.

    :raises ConfigError: it does.
    """
    if config.workload.warm:
        text = "workload.warm: got true; allowed: false, for candidates begin with an empty machine"
        raise ConfigError(str(path), [Problem("", text)])
