"""Open what people hand over: configurations of any kind, workloads, commands of people."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from makeway import registry
from makeway.cli.terminal import note
from makeway.config import Config, parse_toml, validate
from makeway.errors import ConfigError, MakewayError, PluginError, Problem, place_of, reason_of
from makeway.foreign import LeftOut
from makeway.model import NOTHING
from makeway.readers.accounting import NO_ACCOUNTING, Accounting, merged
from makeway.readers.api import ConfigReader, Imported, ReadOptions, Workload, WorkloadReader
from makeway.readers.commands import commands_of
from makeway.readers.foreign import Adapted, adapted, adapted_workload, read_companion
from makeway.readers.lines import read_head, read_text
from makeway.readers.mapping import apply_mapping
from makeway.readers.native import workload_of_tables
from makeway.readers.open import READERS, open_workload
from makeway.settings import structure
from makeway_slurm.check import combinations
from makeway_slurm.readers.conf import SlurmConfReader
from makeway_slurm.readers.sacctmgr import read_accounting

_BROUGHT_BY = {"moab.cfg": "makeway-moab-qos", "maui.cfg": "makeway-moab-qos"}
_BROUGHT_BY |= {"lsb.queues": "makeway-lsf-queue"}
"""Foreign files by name, and the distribution whose reader knows them."""


@attrs.frozen(kw_only=True)
class Loaded:
    """A configuration and where it is from."""

    config: Config
    path: Path
    reader: str | None = None
    """Who read a foreign file; None: it is TOML."""
    warnings: tuple[str, ...] = ()
    """What the reader of a foreign file had to say."""
    refused: tuple[str, ...] = ()
    """See `makeway.foreign.ForeignConfig`; so are the next three."""
    matters: tuple[str, ...] = ()
    unmodelled: tuple[LeftOut, ...] = ()
    idle: tuple[LeftOut, ...] = ()
    places: Mapping[str, str] = NOTHING
    """Path in the config -> where the foreign file says so."""


# -------------------------------------------------------------------------------- configurations
def load_config(
    path: Path,
    release: str | None = None,
    nodes: Path | None = None,
    accounting: Sequence[Path] = (),
    *,
    checked: bool = True,
) -> Loaded:
    """Read a configuration, native or foreign.

    :param release: release of Slurm to be; None: as the file says.
    :param nodes: TOML file that says what a foreign file cannot; None: it says all.
    :param accounting: files of sacctmgr, which describe QOS and users.
    :param checked: whether wrong values are an error at once (always so in foreign files).
    :raises ConfigError: with all its problems.
    """
    described = read_accounting(accounting) if accounting else NO_ACCOUNTING
    reader = reader_of(path, release, described)
    if nodes is not None and not isinstance(reader, Adapted):
        raise click.UsageError(f"--nodes is not needed: {path} says itself which nodes there are")
    if reader is None:
        config = _read_toml(path, checked=checked)
        found = Loaded(config=config, path=path)
    else:
        imported = guarded(reader.name, lambda: _read_foreign(reader, path, nodes))
        found = Loaded(
            config=imported.config,
            path=path,
            reader=reader.name,
            warnings=tuple(imported.warnings),
            refused=imported.refused,
            matters=imported.matters,
            unmodelled=imported.unmodelled,
            idle=imported.idle,
            places=imported.places,
        )
    if accounting:
        found = _with_accounting(found, described, checked=checked)
    return found if release is None else attrs.evolve(found, config=on(found.config, release))


def _with_accounting(loaded: Loaded, accounting: Accounting, *, checked: bool) -> Loaded:
    """Return the configuration with the QOS and users of accounting.

    :raises ConfigError: they do not go together.
    """
    more = merged(loaded.config, accounting)
    places = {**loaded.places, **more.places}
    if checked:
        try:
            validate(more.config, str(loaded.path))
        except ConfigError as error:
            problems = [Problem(place_of(p.where, places), p.message) for p in error.problems]
            raise ConfigError(str(loaded.path), problems) from None
    warnings = (*loaded.warnings, *more.warnings)
    return attrs.evolve(loaded, config=more.config, warnings=warnings, places=places)


def _read_foreign(reader: ConfigReader, path: Path, nodes: Path | None) -> Imported:
    if nodes is None or not isinstance(reader, Adapted):
        return reader.read(path)
    return reader.read(path, read_companion(nodes))


def on(config: Config, release: str) -> Config:
    """Return `config` for a release of Slurm."""
    return attrs.evolve(config, scheduler=attrs.evolve(config.scheduler, slurm_release=release))


def _read_toml(path: Path, *, checked: bool) -> Config:
    text = read_text(path)
    if checked:
        return parse_toml(text, str(path))
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(str(path), [Problem("", f"not valid TOML: {reason_of(error)}")]) from None
    return structure(data, Config, str(path))


def reader_of(
    path: Path, release: str | None = None, accounting: Accounting = NO_ACCOUNTING
) -> ConfigReader | None:
    """Return the reader that knows a foreign configuration; None: it is TOML.

    :param accounting: what goes with a slurm.conf.
    :raises ConfigError: it cannot be read, nobody knows it, or more than one reader does.
    """
    head = read_head(path)
    if path.suffix == ".toml":
        return None
    offered, failed = registry.offered("makeway_config_readers")
    slurm = SlurmConfReader(release=release, qos=accounting.qos, places=accounting.places)
    readers: list[ConfigReader] = [slurm, *map(adapted, offered)]
    claiming = [reader for reader in readers if _claims(reader, path, head)]
    if len(claiming) > 1:
        names = " and ".join(repr(reader.name) for reader in claiming)
        raise ConfigError(str(path), [Problem("", f"claimed by two readers: {names}")])
    note("warning", map(str, failed))
    if claiming:
        return claiming[0]
    if not _is_toml(path):
        raise ConfigError(str(path), [Problem("", _nobody(path, readers))])
    return None


def _claims(reader: Any, path: Path, head: str) -> bool:
    name = str(getattr(reader, "name", reader))
    return bool(guarded(name, lambda: reader.claims(path, head)))


def guarded(name: str, call: Any) -> Any:
    """Run a method of a reader that a plugin may have brought.

    :raises PluginError: for whatever it raises that is no MakewayError.
    """
    try:
        return call()
    except (MakewayError, OSError):
        raise
    except Exception as error:
        text = f"the reader {name!r} raised {type(error).__name__}: {error}"
        raise PluginError(text) from error


def _is_toml(path: Path) -> bool:
    try:
        tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return True


def _nobody(path: Path, readers: Iterable[ConfigReader]) -> str:
    known = ", ".join(["TOML", *(reader.name for reader in readers)])
    package = _BROUGHT_BY.get(path.name)
    hint = f"; 'pip install {package}' brings a reader for it" if package else ""
    return f"not a configuration of a known kind; known: {known}{hint}"


# ------------------------------------------------------------------------------------- workloads
def open_jobs(loaded: Loaded, path: Path | None, options: ReadOptions, format: str | None = None) -> Workload:
    """Open the workload, or the jobs in the configuration itself.

    :param path: None: the jobs are in the configuration.
    :raises ConfigError: there are none, or they cannot be read.
    """
    config = options.config
    if path is not None:
        if config.job:
            note("note", [f"the [[job]] tables of {loaded.path} are not used beside {path}"])
        return open_workload(path, options, format, _workload_readers(path, format))
    if format is not None:
        raise ConfigError("--format", [Problem("", "no workload is given whose format it could be")])
    if not config.job:
        text = "no workload given, and the configuration has no [[job]] tables"
        raise ConfigError(str(loaded.path), [Problem("", text)])
    workload = apply_mapping(workload_of_tables(config.job, str(loaded.path)), config)
    workload.name = loaded.path.name
    workload.jobs = itertools.islice(workload.jobs, options.limit)
    return workload


def _workload_readers(path: Path, format: str | None) -> Sequence[WorkloadReader]:
    """Return the built-in readers, and those of all plugins where these do not do."""
    if format is not None:
        enough = any(reader.name == format for reader in READERS)
    else:
        head = read_head(path)
        enough = any(reader.claims(path, head) for reader in READERS)
    if enough:
        return READERS
    offered, failed = registry.offered("makeway_workload_readers")
    note("warning", map(str, failed))
    return (*READERS, *map(adapted_workload, offered))


# -------------------------------------------------------------------------------------- commands
def with_actions(config: Config, texts: Sequence[str]) -> Config:
    """Add what ``--do`` asks for: ``AT COMMAND JOB [by USER]``.

    :raises ConfigError: one cannot be read.
    """
    found = [_action(text) for text in texts]
    return attrs.evolve(config, action=(*config.action, *found)) if found else config


def _action(text: str) -> dict[str, Any]:
    match = _DO.fullmatch(text.strip())
    if match is None:
        allowed = "AT COMMAND JOB [by USER], such as '60 suspend 485 by ann'"
        raise ConfigError(f"--do {text!r}", [Problem("", f"allowed: {allowed}")])
    command, _, value = match["command"].partition("=")
    action: dict[str, Any] = {"at": float(match["at"]), "command": command, "job": match["job"]}
    if match["user"]:
        action["user"] = match["user"]
    if value:
        action["value"] = value
    commands_of(Config(action=(action,)), f"--do {text!r}")
    return action


_DO = re.compile(r"(?P<at>\d+(?:\.\d+)?)\s+(?P<command>\S+)\s+(?P<job>.+?)(?:\s+by\s+(?P<user>\S+))?")


# --------------------------------------------------------------------------------------- plugins
def check_plugins(
    config: Config,
    source: str,
    extra: Mapping[str, Any] | None = None,
    places: Mapping[str, str] = NOTHING,
) -> registry.Policies:
    """Load the plugins that `config` names, and structure their settings.

    :param extra: plugins by name that need no installation.
    :param places: path in the config -> where a foreign file says so.
    :raises PluginError: one does not fit the contract.
    :raises ConfigError: one is missing or cannot be imported, or settings are wrong.
    """
    problems: list[Problem] = []
    given = extra or {}
    for key, name in dict.fromkeys(_plugins_named(config)):
        if name in given:
            continue
        try:
            registry.load(name)
        except PluginError as error:
            problems.append(Problem(f"policy.{key}", str(error)))
    if problems:
        raise ConfigError(source, problems)
    try:
        return registry.Policies(config, given)
    except ConfigError as error:
        found = [Problem(place_of(problem.where, places), problem.message) for problem in error.problems]
        raise ConfigError(source, found) from None


def is_slurms(policies: registry.Policies) -> bool:
    """Whether Slurm's rules for configurations hold: no policy of another scheduler has rules of its own."""
    return not any(set(policies.hooks_of(name)) >= _OWN_CHECKS for name in policies.names)


_NOT_AS_STATED = ("scheduler.slurm_release", "scheduler.clockwork.suspend_grace_time")
"""Keys whose warnings concern every replay: it is not what they say."""
_OWN_CHECKS = {"makeway_check", "makeway_preempt_candidates"}
"""Hooks of a policy that is checked by itself, not by Slurm's rules."""


def refusals(config: Config, policies: registry.Policies) -> Iterator[str]:
    """Yield why Slurm would not start with a configuration that can be replayed all the same, or is not as stated."""
    if is_slurms(policies):
        for finding in combinations(config):
            if finding.level == "error":
                yield f"Slurm would not start like this: {finding.where}: {finding.message}"
            elif finding.where in _NOT_AS_STATED:
                yield f"{finding.where}: {finding.message}"


def _plugins_named(config: Config) -> Iterator[tuple[str, str]]:
    """Yield each key of the policy that names a plugin, with the name."""
    for key in registry.KINDS:
        value = registry.gang_of(config) if key == "gang" else getattr(config.policy, key)
        names = value if isinstance(value, tuple) else (value,)
        yield from ((key, name) for name in names if name is not None)
