"""``makeway submit`` and ``makeway whom``: hand a job in, or ask what it would bring about."""

from __future__ import annotations

import os
import re
import resource
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from makeway.errors import nearest
from makeway.settings import unstructure
from makeway_app.cli.terminal import note
from makeway_local_world.commands import options, scripts, terminal
from makeway_local_world.commands.client import Absent, Daemon
from makeway_local_world.commands.output import ended, exit_status
from makeway_local_world.requests import RESOURCES, Request

_COMMAND = "makeway.command"
AGAIN = 5.0
"""Seconds for which a submission is repeated if the daemon goes away meanwhile; its key makes that safe."""
_AHEAD = re.compile(r"now(?:\+(\d+)(second|minute|hour|day|week)?s?)?")
_UNITS = {None: 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}


class _Submit(click.Command):
    """A command whose words behind ``--`` are the job's own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take off what follows ``--``."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


class Begin(options.Kind):
    """An instant: now+2hours, 18:30, 2026-11-24, 2026-11-24T18:30."""

    name = "instant"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read it as Unix time."""
        if isinstance(value, float):
            return value
        try:
            return instant(value, time.time())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def instant(text: str, now: float) -> float:
    """Return an instant as Unix time.

    :raises ValueError: it is none.
    """
    match = _AHEAD.fullmatch(text.strip().lower())
    if match:
        return now + int(match[1] or 0) * _UNITS[match[2]]
    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"):
        try:
            return time.mktime(time.strptime(text, form))
        except (ValueError, OverflowError):
            continue
    for form in ("%H:%M:%S", "%H:%M"):
        try:
            clock = time.strptime(text, form)
        except ValueError:
            continue
        today = time.localtime(now)
        at = time.mktime((*today[:3], clock.tm_hour, clock.tm_min, clock.tm_sec, 0, 0, -1))
        if at >= now:
            return at
        return time.mktime((*today[:2], today[2] + 1, clock.tm_hour, clock.tm_min, clock.tm_sec, 0, 0, -1))
    raise ValueError(f"got {text!r}; allowed: now+2hours, 18:30, 2026-11-24, 2026-11-24T18:30")


def _names(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in (value or "").split(",") if part))


def _counted(ctx: click.Context, param: click.Parameter, value: str | None) -> Mapping[str, int]:
    """Read ``gpu:2,licence:1``, as --gres and --licenses take it; a type (``gpu:a100:2``) belongs to the name."""
    found: dict[str, int] = {}
    for part in (value or "").split(","):
        if not part:
            continue
        name, _, number = part.rpartition(":")
        if not number.isdigit():
            name, number = part, "1"
        if not name:
            raise click.BadParameter(f"got {part!r}; allowed: NAME:NUMBER, as in gpu:2", ctx, param)
        found[name] = found.get(name, 0) + int(number)
    return found


def _attributes(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Read ``due=3600``, several times."""
    found = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"got {text!r}; allowed: NAME=VALUE, as in due=3600", ctx, param)
        found[name] = value
    return found


_LIMITS = {name: getattr(resource, f"RLIMIT_{name}") for name in RESOURCES}


def _limits(ctx: click.Context, param: click.Parameter, text: str) -> dict[str, tuple[int, int]]:
    """Return the limits of this shell by name; only the soft ones, as sbatch does."""
    words = [word for word in text.upper().replace("RLIMIT_", "").split(",") if word]
    if words == ["NONE"]:
        return {}
    for word in words:
        if word != "ALL" and word not in _LIMITS:
            allowed = ", ".join(("ALL", "NONE", *_LIMITS))
            raise click.BadParameter(f"got {word!r}; allowed: {allowed}{nearest(word, _LIMITS)}")
    names = _LIMITS if "ALL" in words else words
    return {name: (resource.getrlimit(_LIMITS[name])[0], resource.RLIM_INFINITY) for name in names}


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("-J", "--job-name", "name", metavar="NAME", help="Name; else that of the program."),
    click.option(
        "-p",
        "--partition",
        "partitions",
        metavar="NAME,...",
        callback=_names,
        shell_complete=options.complete_partitions,
        help="Partitions to try; else the default one.",
    ),
    click.option("-n", "--ntasks", "tasks", type=click.IntRange(1), help="Tasks; each has its CPUs."),
    click.option("-c", "--cpus-per-task", type=click.IntRange(1), default=1, help="CPUs of each task."),
    click.option("-N", "--nodes", type=click.IntRange(1), default=1, help="Nodes; a machine is one."),
    click.option(
        "--mem", "memory", type=options.Memory(), help="Memory, as in 4G; a bare number is megabytes."
    ),
    click.option("--mem-per-cpu", "memory_per_cpu", type=options.Memory(), help="Memory for each CPU."),
    click.option("-G", "--gpus", type=click.IntRange(0), default=0, help="GPUs."),
    click.option("--gres", callback=_counted, metavar="NAME:N,...", help="Counted resources, as in gpu:2."),
    click.option("-L", "--licenses", callback=_counted, metavar="NAME:N,...", help="Licences."),
    click.option(
        "--attribute",
        "attributes",
        multiple=True,
        callback=_attributes,
        metavar="NAME=VALUE",
        help="What a policy reads, as in due=3600. Repeatable.",
    ),
    click.option(
        "-C", "--constraint", "features", default="", metavar="EXPRESSION", help="Features of the node."
    ),
    click.option("--exclusive", is_flag=True, help="Share the node with nobody."),
    click.option("-t", "--time", "time_limit", type=options.Length(), help="Time limit: 30, 2:00:00, 1-12."),
    click.option("-b", "--begin", type=Begin(), help="Not before: 18:30, now+2hours, 2026-11-24T18:30."),
    click.option(
        "-d", "--dependency", metavar="afterok:ID,...", help="after, afterany, afterok or afternotok others."
    ),
    click.option("-a", "--array", metavar="0-9%2", help="Make a task for each index; %n: so many at a time."),
    click.option("-H", "--hold", is_flag=True, help="Wait until `makeway release`."),
    click.option("-A", "--account", metavar="NAME", help="Account that is charged."),
    click.option("-q", "--qos", metavar="NAME", help="Service class."),
    click.option("--nice", type=int, default=0, help="Lowers the priority by so much."),
    click.option("--priority", type=click.IntRange(0), help="The priority itself; for operators."),
    click.option(
        "--requeue/--no-requeue", default=None, help="Whether it may start again from the beginning."
    ),
    click.option(
        "--signal",
        metavar="[B:]NAME[@SECONDS]",
        help="A signal ahead of its end; B: to its first process only.",
    ),
    click.option(
        "-D", "--chdir", "cwd", type=click.Path(path_type=Path), help="Working directory; else this one."
    ),
    click.option("-i", "--input", type=str, metavar="FILE", help="Standard input; else /dev/null."),
    click.option(
        "-o",
        "--output",
        type=str,
        metavar="PATTERN",
        help="Standard output: %j id, %A array, %a index, %x name, %u user, %I incarnation.",
    ),
    click.option("-e", "--error", type=str, metavar="PATTERN", help="Standard error; else with the output."),
    click.option(
        "--open-mode", type=click.Choice(["truncate", "append"]), default="truncate", help="For outputs."
    ),
    click.option(
        "--export", metavar="ALL|NONE|NAME,NAME=VALUE,...", default="ALL", help="Environment handed over."
    ),
    click.option(
        "--checkpoint-command", "checkpoint", metavar="COMMAND", help="Saves the state of the running job."
    ),
    click.option("--notice-command", "notice", metavar="COMMAND", help="Run before the job is stopped."),
    click.option("--on-end", metavar="COMMAND", help="Run when the job has ended."),
    click.option(
        "--propagate",
        metavar="ALL|NONE|NAME,...",
        default="ALL",
        callback=_limits,
        help="Resource limits of this shell that the job gets, as in NOFILE,CORE.",
    ),
    click.option(
        "--process-nice", type=click.IntRange(-20, 19), default=0, help="Niceness of the processes."
    ),
)


def _asked(command: Any) -> Any:
    """Add all options that say what a job is."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return click.argument("words", metavar="[SCRIPT [ARGUMENT]... | -- COMMAND [ARGUMENT]...]", nargs=-1)(
        command
    )


_SETTINGS = {"allow_interspersed_args": False}


@click.command(cls=_Submit, context_settings=_SETTINGS)
@_asked
@click.option(
    "-W", "--wait", "waits", is_flag=True, help="Wait until it has ended; leave with its exit status."
)
@click.option("--parsable", is_flag=True, help="Print the id alone.")
@click.option("--wrap", metavar="COMMAND", help="Run this line by /bin/sh.")
@click.option("--key", metavar="TEXT", help="The same key makes no second job; for programs that repeat.")
@options.json_option
@click.pass_context
def submit(
    ctx: click.Context, /, waits: bool, parsable: bool, key: str | None, as_json: bool, **given: Any
) -> None:
    """Hand in a job: a SCRIPT, whose #SBATCH lines count, or a COMMAND behind `--`.

    Options on the command line come before those of the script. Options of sbatch that makeway does not honour are
    named in a warning.
    """
    request = _request(ctx, given, key or uuid.uuid4().hex)
    server, answer = _hand_in(request)
    waits = waits or bool(ctx.meta.get("makeway.wait"))
    if as_json and not waits:
        terminal.put(answer)
    elif parsable:
        terminal.say(answer["id"])
    elif not as_json:
        tasks = len(answer["jobs"])
        terminal.say(
            f"submitted job {answer['id']}"
            + (f" ({tasks} tasks)" if answer["jobs"] != [answer["id"]] else "")
        )
    if waits:
        sys.stdout.flush()
        found = ended(server, answer["id"])
        if as_json:
            terminal.put({**answer, "ended": found})
        raise click.exceptions.Exit(max(map(exit_status, found)))


def _hand_in(request: Request) -> tuple[Daemon, dict[str, Any]]:
    """Submit a request; repeat it if the daemon goes away before it answers."""
    body = unstructure(request)
    until = time.monotonic() + AGAIN
    server = Daemon()
    while True:
        try:
            return server, server.post("/v1/jobs", body)
        except Absent:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@click.command(cls=_Submit, context_settings=_SETTINGS)
@_asked
@options.json_option
@click.pass_context
def whom(ctx: click.Context, /, as_json: bool, **given: Any) -> None:
    """Say whom a job would displace now, when it would start, and why; nothing is submitted.

    It takes the options of `makeway submit`; a script or a command is not needed.
    """
    request = _request(ctx, {**given, "wrap": None}, "", runs=False)
    answer = Daemon().post("/v1/whom", unstructure(request))
    if as_json:
        terminal.put(answer)
        return
    terminal.say(*answer["told"])


def _request(ctx: click.Context, given: dict[str, Any], key: str, *, runs: bool = True) -> Request:
    """Return what the command line, and the script, ask for."""
    command: tuple[str, ...] = ctx.meta.get(_COMMAND, ())
    words: Sequence[str] = given.pop("words")
    wrap = given.pop("wrap")
    text = None
    if sum(map(bool, (command, words, wrap))) > 1:
        raise click.UsageError("name a script, or a command behind --, or --wrap; one of them")
    if wrap:
        text = f"#!/bin/sh\n{wrap}\n"
        given["name"] = given["name"] or "wrap"
    elif words:
        script = scripts.read(Path(words[0]))
        text, command = script.text, tuple(words[1:])
        _take_over(ctx, given, script)
        given["name"] = given["name"] or script.path.name
    elif not command and runs:
        raise click.UsageError("name a script, or a command behind --: makeway submit -- COMMAND")
    memory, per_cpu = given.pop("memory"), given.pop("memory_per_cpu")
    cwd = Path.cwd() / (given.pop("cwd") or ".")
    umask = os.umask(0o077)
    os.umask(umask)
    return Request(
        key=key,
        command=command,
        script=text,
        memory_mb=memory,
        memory_mb_per_cpu=per_cpu,
        cwd=os.path.normpath(cwd),
        environment=environment(given.pop("export"), os.environ),
        limits=given.pop("propagate"),
        umask=umask,
        name=given.pop("name") or "",
        **given,
    )


def _take_over(ctx: click.Context, given: dict[str, Any], script: scripts.Script) -> None:
    """Let the lines of a script set what the command line did not."""
    found, warnings = scripts.values(script, ctx.command, ctx)
    note("warning", warnings)
    for name, value in found.items():
        if name == "waits":
            ctx.meta["makeway.wait"] = value
        elif name in given and ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            param = next(each for each in ctx.command.params if each.name == name)
            given[name] = value if param.callback is None else param.callback(ctx, param, value)


def environment(export: str, ours: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment is handed over, as ``sbatch --export`` says."""
    kept = {
        name: value
        for name, value in ours.items()
        if not name.startswith(("MAKEWAY_JOB", "SLURM_", "SBATCH_"))
    }
    found: dict[str, str] = {}
    for part in export.split(","):
        name, equals, value = part.partition("=")
        if part.upper() == "ALL":
            found.update(kept)
        elif part.upper() == "NONE" or not name:
            continue
        elif equals:
            found[name] = value
        elif name in ours:
            found[name] = ours[name]
    return found


__all__ = ["environment", "instant", "submit", "whom"]
