"""Make a scenario that shows something as small as it can be while it still shows it.

Hypothesis shrinks the choices by which a scenario was drawn, which leaves much in it that plays no part. Here it is
taken apart as people would: without this job, without that key, on fewer nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway.config import Config
from makeway.dependencies import dependency
from makeway.hostlist import expand_hostlist
from makeway.model import JobSpec
from makeway_testing import builders
from makeway_testing.builders import Machine
from makeway_testing.strategies import Scenario

_KEPT = ("id", "submit_at", "partitions", "run_time", "source")
_FIELDS = tuple(field for field in attrs.fields(JobSpec) if field.name not in _KEPT)


def smallest(scenario: Scenario, shows: Callable[[Scenario], bool], trials: int = 400) -> Scenario:
    """Return a smaller scenario that still `shows` what `scenario` does; itself if none is found.

    Method: take the first smaller one that still shows it, go on from there; end when none does.
    """
    going = True
    while going:
        going = False
        for other in smaller(scenario):
            trials -= 1
            if trials < 0:
                return scenario
            if shows(other):
                scenario, going = other, True
                break
    return scenario


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Yield what is a little smaller, the largest steps first."""
    yield from _fewer_jobs(scenario)
    lines = scenario.commands.splitlines()
    for at in range(len(lines)):
        yield attrs.evolve(scenario, commands="\n".join(lines[:at] + lines[at + 1 :]))
    if not isinstance(scenario.settings, Config):
        for settings in _less_said(scenario.settings, _partitions_of(scenario.specs)):
            yield attrs.evolve(scenario, settings=settings)
        for machine in _fewer_nodes(scenario.machine):
            yield attrs.evolve(scenario, machine=machine)
    for at, spec in enumerate(scenario.specs):
        for simpler in _simpler(spec):
            specs = (*scenario.specs[:at], simpler, *scenario.specs[at + 1 :])
            if all(one.submit_at <= other.submit_at for one, other in itertools.pairwise(specs)):
                yield attrs.evolve(scenario, specs=specs)


def _fewer_jobs(scenario: Scenario) -> Iterator[Scenario]:
    specs = scenario.specs
    count = len(specs)
    if count > 4:
        half = count // 2
        for kept in (specs[:half], specs[half:]):
            yield _with(scenario, kept)
    for at in range(count if count > 1 else 0):
        yield _with(scenario, specs[:at] + specs[at + 1 :])


def _with(scenario: Scenario, specs: Sequence[JobSpec]) -> Scenario:
    """Return the scenario with these jobs, and without what is about others."""
    known = {spec.id for spec in specs}
    kept = tuple(
        attrs.evolve(spec, depends_on=tuple(one for one in spec.depends_on if dependency(one).job in known))
        for spec in specs
    )
    gone = {spec.id for spec in scenario.specs} - known
    lines = [line for line in scenario.commands.splitlines() if not gone & set(line.split())]
    return attrs.evolve(scenario, specs=kept, commands="\n".join(lines))


def _partitions_of(specs: Sequence[JobSpec]) -> set[str]:
    return {name for spec in specs for name in spec.partitions}


def _less_said(settings: Mapping[str, Any], used: set[str]) -> Iterator[dict[str, Any]]:
    """Yield settings with one key less; the tables of partitions that jobs name stay."""
    for key, value in settings.items():
        rest = {name: each for name, each in settings.items() if name != key}
        if key != "partitions":
            yield rest
        if isinstance(value, Mapping):
            for inner in _less_said(value, used):
                if key != "partitions" or used <= inner.keys():
                    yield {**settings, key: inner}
        elif isinstance(value, str) and "," in value:
            yield {**settings, key: value.partition(",")[0]}


def _fewer_nodes(machine: Machine) -> Iterator[Machine]:
    tables = list(machine)
    for at in range(len(tables) if len(tables) > 1 else 0):
        yield tuple(tables[:at] + tables[at + 1 :])
    size = sum(len(expand_hostlist(table.name)) for table in tables)
    for fewer in (1, size // 2, size - 1):
        if 0 < fewer < size:
            yield builders.cluster(fewer, cpus=tables[0].cpus)
    if any(table.memory_mb != 1 or table.weight != 1 for table in tables):
        yield tuple(attrs.evolve(table, memory_mb=1, weight=1) for table in tables)
    if any((table.cpus or 1) > 1 for table in tables):
        yield tuple(attrs.evolve(table, cpus=1) for table in tables)


def _simpler(spec: JobSpec) -> Iterator[JobSpec]:
    for field in _FIELDS:
        if getattr(spec, field.name) != field.default:
            default: Any = field.default
            yield attrs.evolve(spec, **{field.name: default})
    if len(spec.partitions) > 1:
        yield from (attrs.evolve(spec, partitions=(name,)) for name in spec.partitions)
    if spec.min_nodes > 2:
        yield attrs.evolve(spec, min_nodes=spec.min_nodes - 1)
    for run_time in (10.0, 20.0):
        if spec.run_time is not None and spec.run_time > run_time:
            yield attrs.evolve(spec, run_time=run_time)
    for submit_at in (0.0, 5.0, 10.0):
        if spec.submit_at > submit_at:
            yield attrs.evolve(spec, submit_at=submit_at)
