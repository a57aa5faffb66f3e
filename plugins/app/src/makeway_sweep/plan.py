"""Work out which configurations a sweep replays, and by what each run is known."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs

from makeway import registry
from makeway.config import Config
from makeway.errors import ConfigError, Problem
from makeway.model import Seconds
from makeway.settings import unstructure
from makeway_app.cli.changes import change_all, split

_VALUE = re.compile(r"""((?:[^,"'\[\]{}]|"[^"]*"|'[^']*'|\[[^\]]*\]|\{[^}]*\})*)(,|\Z)""")
MOST_RUNS = 100_000
_SHOWN = 10
DEFAULT = "(default)"
"""What an empty value is called."""


@attrs.frozen
class Axis:
    """A key and the values that it takes."""

    key: str
    values: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Variant:
    """One combination of values."""

    values: tuple[str, ...]
    """One of each axis."""
    config: Config
    own: bool = False
    """Whether it is the configuration itself, with nothing changed."""
    identity: str = ""
    """Digest of all that decides what comes of the run."""


# ----------------------------------------------------------------------------------- the axes
def axes_of(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Read ``--vary KEY=A,B,C``; a value with commas in it is quoted or in brackets.

    :raises ConfigError: one cannot be read, or a key or a value is given twice.
    """
    axes: dict[str, Axis] = {}
    for text in texts:
        axis = _axis(text)
        if axis.key in axes:
            raise _wrong(text, f"{axis.key} is varied twice; give all its values at once")
        axes[axis.key] = axis
    return tuple(axes.values())


def _axis(text: str) -> Axis:
    key, equals, listed = split(text)
    key = key.strip()
    if not equals or not key:
        raise _wrong(text, "allowed: KEY=A,B,C, such as policy.preempt_mode=requeue,suspend")
    values, at = [], 0
    while True:
        match = _VALUE.match(listed, at)
        if match is None:
            raise _wrong(text, f"cannot read the values at {listed[at:]!r}; is a quote or bracket open?")
        values.append(match[1].strip())
        at = match.end()
        if not match[2]:
            break
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise _wrong(text, f"the value {twice or DEFAULT!r} is given twice")
    return Axis(key, tuple(values))


def _wrong(text: str, message: str) -> ConfigError:
    return ConfigError(f"--vary {text}", [Problem("", message)])


# ------------------------------------------------------------------------------- the variants
@attrs.frozen
class Planned:
    """The product of all axes."""

    variants: tuple[Variant, ...]
    invalid: Mapping[tuple[str, ...], ConfigError]
    """Combinations that are no configuration, with what is wrong."""


def product(config: Config, axes: Sequence[Axis]) -> Planned:
    """Return every combination of values, in the order of the command line.

    :raises ConfigError: there are too many.
    """
    total = 1
    for axis in axes:
        total *= len(axis.values)
    if total > MOST_RUNS:
        raise ConfigError("--vary", [Problem("", f"{total:,} combinations; allowed: at most {MOST_RUNS:,}")])
    variants: list[Variant] = []
    invalid: dict[tuple[str, ...], ConfigError] = {}
    for values in itertools.product(*(axis.values for axis in axes)):
        texts = [f"{axis.key}={value}" for axis, value in zip(axes, values, strict=True)]
        try:
            changed = change_all(config, texts, "--vary")
            own = unstructure(changed) == unstructure(config)
            changed, _ = registry.translated(changed, config.policy.preempt)
            variants.append(Variant(values=values, config=changed, own=own))
        except ConfigError as error:
            invalid[values] = error
    return Planned(tuple(variants), invalid)


def told(axes: Sequence[Axis], values: Sequence[str]) -> str:
    """Return the combination as text."""
    return "; ".join(f"{axis.key}={value}" for axis, value in zip(axes, values, strict=True))


def refusal(axes: Sequence[Axis], invalid: Mapping[tuple[str, ...], ConfigError], total: int) -> ConfigError:
    """Return one error about all combinations that are no configuration; alike ones are told once."""
    found: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for values, error in invalid.items():
        for problem in error.problems:
            found.setdefault((problem.where, problem.message), []).append(values)
    problems = []
    for (where, message), whose in list(found.items())[:_SHOWN]:
        # A key that does not exist is one thing that is wrong, not one per combination.
        some = f" (in {len(whose):,} of {total:,} combinations, first {told(axes, whose[0])})"
        problems.append(Problem(where, message + (some if len(whose) < total else "")))
    if len(found) > _SHOWN:
        problems.append(Problem("", f"and {len(found) - _SHOWN:,} more"))
    if len(invalid) < total:
        problems.append(Problem("", "--skip-invalid leaves such combinations out"))
    return ConfigError("--vary", problems)


# ------------------------------------------------------------------------------- identities
def identified(
    variants: Iterable[Variant],
    workload: str,
    files: Mapping[str, Path],
    until: Seconds | None,
    limit: int | None,
) -> list[Variant]:
    """Return the variants with their identities.

    :param workload: digest of its content and of how it is read.
    :param files: plugins in loose files, by name.
    """
    rest = {
        "workload": workload,
        "until": until,
        "limit": limit,
        "files": {name: digest_of(path) for name, path in sorted(files.items())},
        "makeway": metadata.version("makeway"),
    }
    return [
        attrs.evolve(
            each, identity=_digest({**rest, **_plugins(each.config), "config": unstructure(each.config)})
        )
        for each in variants
    ]


def _plugins(config: Config) -> dict[str, Any]:
    """Return name and version of what the configuration asks for."""
    found = {}
    for name in registry.names_in(config):
        item = registry.offers(name)
        found[name] = str(item) if item is not None else ""
    return {"plugins": found}


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def digest_of(path: Path | None, *more: object) -> str:
    """Return a digest of a file's content.

    :raises ConfigError: it cannot be read.
    """
    made = hashlib.sha256(repr(more).encode())
    if path is not None:
        try:
            with path.open("rb") as stream:
                while piece := stream.read(1 << 20):
                    made.update(piece)
        except OSError as error:
            raise ConfigError(str(path), [Problem("", f"cannot be read: {error.strerror}")]) from None
    return made.hexdigest()[:24]


def reading_key(config: Config, *, alike: bool) -> str:
    """Return what two configurations share if they read a workload alike.

    :param alike: whether the reader looks at no more than this; of strangers' readers that is not known.
    """
    data = unstructure(config)
    if alike:
        data = {name: data.get(name) for name in ("workload", "node", "job")}
        data["partition"] = [(table.name, table.default) for table in config.partition]
        data["qos"] = [table.name for table in config.qos]
    return _digest(data)
