"""Open a workload of whatever kind and send its jobs where the configuration says."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from makeway import registry
from makeway.errors import ConfigError, PluginError, Problem, nearest
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions, Workload, WorkloadReader
from makeway.readers.lines import is_binary, read_head, shown
from makeway.readers.mapping import apply_mapping
from makeway_app.readers.foreign import adapted_workload
from makeway_app.readers.native import NativeReader

READERS: tuple[WorkloadReader, ...] = (NativeReader(),)
"""The built-in readers; they are asked first."""

_SHOWN_REASONS = 5
_MOST_NOTES = 20
_NO_NAME = Path("workload")


def open_workload(
    path: str | os.PathLike[str],
    options: ReadOptions,
    format: str | None = None,
    readers: Sequence[WorkloadReader] | None = None,
) -> Workload:
    """Open `path`, apply ``[workload]`` of the configuration, and take what `options` allow.

    :param format: name of a reader; None: the first of `readers` that claims the content, else the
        file name.
    :param readers: None: the built-in ones, and those of installed plugins where these do not do.
    :raises ConfigError: it cannot be read, no reader claims it, or it holds no job that can be used.
    """
    file = Path(path)
    if readers is None:
        readers, _ = readers_for(file, format)
    reader = reader_for(file, format, readers)
    workload = apply_mapping(reader.read(file, options), options.config)
    first = next(workload.jobs, None)
    if first is None:
        raise ConfigError(str(file), _no_job(workload))
    workload.jobs = itertools.islice(itertools.chain([first], workload.jobs), options.limit)
    unheard = registry.unheard(options.config)
    if unheard is not None:
        workload.jobs = _told(workload, workload.jobs, unheard)
    return workload


def _told(
    workload: Workload, jobs: Iterator[JobSpec], unheard: Callable[[JobSpec], Sequence[str]]
) -> Iterator[JobSpec]:
    """Name once, with the first job, what jobs say that has no effect."""
    noted: set[str] = set()
    for spec in jobs:
        for text in unheard(spec):
            if text not in noted and len(noted) < _MOST_NOTES:
                noted.add(text)
                workload.notes.append(f"{spec.source or workload.name}: job {spec.id}: {text}")
        yield spec


def readers_for(path: Path, format: str | None) -> tuple[Sequence[WorkloadReader], list[PluginError]]:
    """Return the built-in readers, with those of plugins where these do not do, and the plugins that failed.

    The content counts before the name, so plugins are asked unless a built-in reader knows the content. Asking
    all of them takes time: the distribution of this project that usually reads such a file is asked first. Its
    readers come before the built-in ones, which would claim a foreign list of JSON objects.
    """
    binary = format is None and is_binary(path)
    head = read_head(path) if format is None and not binary else ""

    def enough(readers: Sequence[WorkloadReader]) -> bool:
        if format is not None:
            return any(reader.name == format for reader in readers)
        if binary:
            return any(_claims_binary(reader, path) for reader in readers)
        return any(reader.claims(_NO_NAME, head) for reader in readers)

    usual = _usual(path, format)
    if usual is not None:
        offered, failed = registry.offered("workloads", usual)
        own = tuple(map(adapted_workload, offered))
        if enough(own):
            return (*own, *READERS), failed
    if enough(READERS):
        return READERS, []
    offered, failed = registry.offered("workloads")
    return (*READERS, *map(adapted_workload, offered)), failed


def reader_for(path: Path, format: str | None, readers: Sequence[WorkloadReader]) -> WorkloadReader:
    """Return the one of `readers` that is called `format`, or else claims the file.

    :raises ConfigError: there is none.
    """
    return _named(format, readers) if format is not None else _detected(path, readers)


def _named(name: str, readers: Sequence[WorkloadReader]) -> WorkloadReader:
    for reader in readers:
        if reader.name == name:
            return reader
    names = sorted(reader.name for reader in readers)
    close = _brought_by(_usual(_NO_NAME, name)) or nearest(name, names)
    message = f"got {shown(name)}; allowed: {', '.join(names)}{close}"
    raise ConfigError("--format", [Problem("", message)])


def _detected(path: Path, readers: Sequence[WorkloadReader]) -> WorkloadReader:
    if is_binary(path):
        for reader in readers:
            if _claims_binary(reader, path):
                return reader
        text = f"the file is binary, not text; readers of text: {_names(readers)}"
        raise ConfigError(str(path), [Problem("", text + _brought_by(_usual(path, None)))])
    head = read_head(path)
    for name in (_NO_NAME, path):
        for reader in readers:
            if reader.claims(name, head):
                return reader
    line = next((line for line in head.splitlines() if line.strip()), "")
    message = f"the format of {shown(line.strip())} is not known; name it with --format: {_names(readers)}"
    raise ConfigError(str(path), [Problem(f"{path.name}:1", message + _brought_by(_usual(path, None)))])


def _claims_binary(reader: WorkloadReader, path: Path) -> bool:
    claims = getattr(reader, "claims_binary", None)
    return claims is not None and claims(path)


def _usual(path: Path, format: str | None) -> str | None:
    """Return the distribution of this project that reads a format, or files of that name; None: not known."""
    if format is not None:
        return registry.bringer("formats", format)
    return registry.reader_of(path.name, "workloads")


def _brought_by(package: str | None) -> str:
    """Name the distribution that reads a file, unless it is there and does not know it either."""
    if package is None or any(item.distribution == package for item in registry.installed()):
        return ""
    return f"; 'pip install {package}' brings a reader for it"


def _names(readers: Sequence[WorkloadReader]) -> str:
    return ", ".join(sorted(reader.name for reader in readers))


def _no_job(workload: Workload) -> list[Problem]:
    """Say why nothing is left."""
    reasons: dict[str, int] = {}
    for row in workload.rejected:
        reasons.setdefault(row.reason, row.line)
    summary = f"no job that can be used; rows rejected: {workload.rejected_count}"
    first = list(reasons.items())[:_SHOWN_REASONS]
    return [
        Problem("", summary),
        *(Problem(f"{workload.name}:{line}", reason) for reason, line in first),
    ]
