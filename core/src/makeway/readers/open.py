"""Open a workload of whatever kind and send its jobs where the configuration says."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from makeway import registry
from makeway.errors import ConfigError, PluginError, Problem, nearest
from makeway.readers.api import ReadOptions, Workload, WorkloadReader
from makeway.readers.foreign import adapted_workload
from makeway.readers.lines import is_binary, read_head, shown
from makeway.readers.mapping import apply_mapping
from makeway.readers.native import NativeReader
from makeway.readers.swf import SwfReader

READERS: tuple[WorkloadReader, ...] = (NativeReader(), SwfReader())
"""The built-in readers, in the order in which they are asked."""

_SHOWN_REASONS = 5
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
    :raises ConfigError: it cannot be read, nobody claims it, or it holds no job that can be used.
    """
    file = Path(path)
    if readers is None:
        readers, _ = readers_for(file, format)
    reader = _named(format, readers) if format is not None else _detected(file, readers)
    workload = apply_mapping(reader.read(file, options), options.config)
    first = next(workload.jobs, None)
    if first is None:
        raise ConfigError(str(file), _no_job(workload))
    workload.jobs = itertools.islice(itertools.chain([first], workload.jobs), options.limit)
    return workload


def readers_for(path: Path, format: str | None) -> tuple[Sequence[WorkloadReader], list[PluginError]]:
    """Return the built-in readers, with those of all plugins where these do not do, and the plugins that failed.

    The content counts before the name, so plugins are asked unless a built-in reader knows the content.
    """
    if format is not None:
        enough = any(reader.name == format for reader in READERS)
    elif is_binary(path):
        enough = False
    else:
        head = read_head(path)
        enough = any(reader.claims(_NO_NAME, head) for reader in READERS)
    if enough:
        return READERS, []
    offered, failed = registry.offered("workloads")
    return (*READERS, *map(adapted_workload, offered)), failed


def _named(name: str, readers: Sequence[WorkloadReader]) -> WorkloadReader:
    for reader in readers:
        if reader.name == name:
            return reader
    names = sorted(reader.name for reader in readers)
    message = f"got {shown(name)}; allowed: {', '.join(names)}{nearest(name, names)}"
    raise ConfigError("--format", [Problem("", message)])


def _detected(path: Path, readers: Sequence[WorkloadReader]) -> WorkloadReader:
    if is_binary(path):
        return _detected_binary(path, readers)
    head = read_head(path)
    for name in (_NO_NAME, path):
        for reader in readers:
            if reader.claims(name, head):
                return reader
    line = next((line for line in head.splitlines() if line.strip()), "")
    message = f"the format of {shown(line.strip())} is not known; name it with --format: {_names(readers)}"
    raise ConfigError(str(path), [Problem(f"{path.name}:1", message)])


def _detected_binary(path: Path, readers: Sequence[WorkloadReader]) -> WorkloadReader:
    for reader in readers:
        claims = getattr(reader, "claims_binary", None)
        if claims is not None and claims(path):
            return reader
    package = registry.reader_of(path.name)
    hint = f"; 'pip install {package}' brings a reader for it" if package else ""
    text = f"the file is binary, not text; readers of text: {_names(readers)}{hint}"
    raise ConfigError(str(path), [Problem("", text)])


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
