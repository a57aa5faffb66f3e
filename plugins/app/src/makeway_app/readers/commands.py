"""Read what people do during a run: the ``[[action]]`` tables of a configuration."""

from __future__ import annotations

import attrs

from makeway.config import Config, build_cluster
from makeway.errors import ConfigError, Problem, nearest
from makeway.model import Duration, Seconds
from makeway.readers.api import Workload
from makeway.settings import structure
from makeway.worlds.events import Command, Event
from makeway_app.readers.outages import outages_of

COMMANDS = (
    *("suspend", "resume", "requeue", "cancel", "checkpoint", "hold", "release", "start"),
    *("priority", "change", "signal"),
)


@attrs.frozen(kw_only=True)
class ActionTable:
    """``[[action]]``: what a person does during the run."""

    at: Duration
    command: str
    """suspend, resume, requeue, cancel, checkpoint, hold, release, start, priority, or signal."""
    job: str | int
    user: str | None = None
    """Who asks; None: an administrator."""
    value: str | int = ""
    """The new priority; the signal; ``nice=5``, ``qos=high``, ``site_factor=250``; with start what to ignore."""


def commands_of(config: Config, source: str) -> list[tuple[Seconds, Event]]:
    """Return the commands of a configuration, each with its instant.

    :raises ConfigError: with all problems.
    """
    problems: list[Problem] = []
    commands: list[tuple[Seconds, Event]] = []
    for at, data in enumerate(config.action):
        try:
            table = structure(data, ActionTable, source, f"action[{at}]")
        except ConfigError as error:
            problems += error.problems
            continue
        if table.command not in COMMANDS:
            close = nearest(table.command, COMMANDS)
            text = f"got {table.command!r}; allowed: {', '.join(COMMANDS)}{close}"
            problems.append(Problem(f"action[{at}].command", text))
        elif table.at < 0:
            problems.append(Problem(f"action[{at}].at", f"got {table.at}; allowed: 0 or more"))
        command = Command(table.command, str(table.job), table.user, str(table.value))
        commands.append((table.at, command))
    if problems:
        raise ConfigError(source, problems)
    return commands


def commands_with(config: Config, source: str, workload: Workload) -> list[tuple[Seconds, Event]]:
    """Return the commands and outages of a configuration, and those of the workload's own run, in order of time.

    :param source: name of the configuration, for messages.
    :raises ConfigError: with all problems.
    """
    commands = [*commands_of(config, source), *outages_of(config, source, workload.start_wall)]
    if workload.commands is not None:
        commands += workload.commands(build_cluster(config))
    return sorted(commands, key=lambda each: each[0])
