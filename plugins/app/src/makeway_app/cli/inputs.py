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
from makeway.bounds import toml_of
from makeway.config import Config, PolicyTable, parse_toml, validate
from makeway.errors import ConfigError, MakewayError, PluginError, Problem, place_of
from makeway.foreign import Accounts
from makeway.model import NOTHING
from makeway.readers.api import Loaded, ReadOptions, Workload
from makeway.readers.lines import read_head, read_text
from makeway.readers.mapping import apply_mapping
from makeway.settings import structure
from makeway.vendors import of_releases
from makeway_app.cli.terminal import note
from makeway_app.readers.commands import commands_of
from makeway_app.readers.foreign import Adapted, read_companion
from makeway_app.readers.native import workload_of_tables
from makeway_app.readers.open import open_workload, readers_for
from makeway_app.readers.templates import other_scheduler

BUILT_IN_SELECTOR = "select/whole_nodes"


# -------------------------------------------------------------------------------- configurations
def load_config(
    path: Path,
    release: str | None = None,
    nodes: Path | None = None,
    accounting: Sequence[Path] = (),
    *,
    checked: bool = True,
    warmed: bool = False,
) -> Loaded:
    """Read a configuration, native or foreign.

    :param release: release of the scheduler to be; None: as the file says.
    :param nodes: TOML file that says what a foreign file cannot; None: it says all.
    :param accounting: files that describe QOS and users.
    :param checked: whether wrong values are an error at once (always so in foreign files).
    :param warmed: whether usage at the start will be worked out, so that none has to be known.
    :raises ConfigError: with all its problems.
    """
    accounts = accounts_of(accounting) if accounting else None
    reader = reader_of(path)
    if nodes is not None and (reader is None or reader.names_all_nodes):
        raise click.UsageError(f"--nodes is not needed: {path} says itself which nodes there are")
    if reader is None:
        found = Loaded(config=_read_toml(path, checked=checked), path=path)
    else:
        asked = reader.asked(release, accounts)
        read = guarded(reader.name, lambda: asked.read(path, read_companion(nodes) if nodes else None))
        found = attrs.evolve(read, path=path, reader=reader.name)
    if accounts is not None:
        found = _with_accounting(found, accounts, checked=checked, warmed=warmed)
    return found if release is None else attrs.evolve(found, config=on(found.config, release))


def accounts_of(files: Sequence[Path]) -> Accounts:
    """Read files of accounting.

    :raises ConfigError: with all their problems, or no reader knows such files.
    """
    readers, failed = registry.offered("accounting")
    note("warning", map(str, failed))
    if not readers:
        raise ConfigError(str(files[0]), [Problem("", registry.missing("--accounting"))])
    accounts: Accounts = guarded("accounting", lambda: readers[0]([str(file) for file in files]))
    return accounts


def _with_accounting(loaded: Loaded, accounts: Accounts, *, checked: bool, warmed: bool) -> Loaded:
    """Return the configuration with the QOS and users of accounting.

    :raises ConfigError: they do not go together.
    """
    more = accounts.merged(loaded.config)
    places = {**loaded.places, **more.places}
    if checked:
        try:
            validate(more.config, str(loaded.path))
        except ConfigError as error:
            problems = [Problem(place_of(p.where, places), p.message) for p in error.problems]
            raise ConfigError(str(loaded.path), problems) from None
    warnings = (*loaded.warnings, *more.warnings, *(() if warmed else more.without_usage))
    return attrs.evolve(loaded, config=more.config, warnings=warnings, places=places)


def on(config: Config, release: str) -> Config:
    """Return `config` for a release of the scheduler that has any.

    :raises ConfigError: none that is installed has.
    """
    vendor = of_releases()
    if vendor is None:
        raise ConfigError("--release", [Problem("", registry.missing("--release"))])
    keys: dict[str, Any] = {vendor.release_key: release}
    return attrs.evolve(config, scheduler=attrs.evolve(config.scheduler, **keys))


def _read_toml(path: Path, *, checked: bool) -> Config:
    text = read_text(path)
    if checked:
        return _able_to_place(parse_toml(text, str(path)), text)
    return _able_to_place(structure(toml_of(text, str(path)), Config, str(path)), text)


def _able_to_place(config: Config, text: str) -> Config:
    """Return `config` with the built-in selector where it names none and the usual one is not installed."""
    usual = PolicyTable().select
    if "select" in toml_of(text, "config").get("policy", {}) or any(
        item.name == usual for item in registry.installed()
    ):
        return config
    hint = f"'pip install {registry.pip_name(usual)}' brings {usual}, the usual one"
    note("note", [f"policy.select is not set: {BUILT_IN_SELECTOR} finds nodes; {hint}"])
    return attrs.evolve(config, policy=attrs.evolve(config.policy, select=BUILT_IN_SELECTOR))


def reader_of(path: Path) -> Adapted | None:
    """Return the reader that knows a foreign configuration; None: it is TOML.

    :raises ConfigError: it cannot be read, no reader knows it, or more than one reader does.
    """
    head = read_head(path)
    if path.suffix == ".toml":
        return None
    offered, failed = registry.offered("configs")
    readers = [Adapted(reader) for reader in offered]
    claiming = [reader for reader in readers if _claims(reader, path, head)]
    if len(claiming) > 1:
        names = " and ".join(repr(reader.name) for reader in claiming)
        raise ConfigError(str(path), [Problem("", f"claimed by two readers: {names}")])
    note("warning", map(str, failed))
    if claiming:
        return claiming[0]
    if not _is_toml(path):
        other = other_scheduler(head)
        text = f"a configuration of {other}, which makeway does not read" if other else _unread(path, readers)
        raise ConfigError(str(path), [Problem("", text)])
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
    except (ValueError, RecursionError):
        return False
    return True


def _unread(path: Path, readers: Iterable[Adapted]) -> str:
    known = ", ".join(["TOML", *(reader.name for reader in readers)])
    package = registry.reader_of(path.name)
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
        readers, failed = readers_for(path, format)
        note("warning", map(str, failed))
        return open_workload(path, options, format, readers)
    if format is not None:
        raise ConfigError("--format", [Problem("", "no workload is given whose format it could be")])
    if not config.job:
        text = "no workload given, and the configuration has no [[job]] tables"
        raise ConfigError(str(loaded.path), [Problem("", text)])
    workload = apply_mapping(workload_of_tables(config.job, str(loaded.path)), config)
    workload.name = loaded.path.name
    workload.jobs = itertools.islice(workload.jobs, options.limit)
    return workload


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


def refusals(config: Config, policies: registry.Policies) -> Iterator[str]:
    """Yield why the scheduler would not start with a configuration that can be replayed, or is not as stated."""
    vendor = policies.leader
    if vendor is not None and vendor.check is not None:
        for finding in vendor.check(config):
            if finding.level == "error":
                yield f"{vendor.title} would not start like this: {finding.where}: {finding.message}"
            elif finding.always:
                yield f"{finding.where}: {finding.message}"


def _plugins_named(config: Config) -> Iterator[tuple[str, str]]:
    """Yield each key of the policy that names a plugin, with the name."""
    for key in registry.KINDS:
        value = registry.gang_of(config) if key == "gang" else getattr(config.policy, key)
        names = value if isinstance(value, tuple) else (value,)
        yield from ((key, name) for name in names if name is not None)
