"""Say what went wrong in one clear text, and choose the exit status.

===  =======================================================================
  0  done
  1  the run failed, or a check or a comparison found something
  2  it cannot be done as asked: flags, files, configuration, missing plugins
  3  done, but rows or jobs of the workload could not be used
130  interrupted
143  told to end (SIGTERM); 129 if the terminal is gone (SIGHUP)
===  =======================================================================

Every start of ``makeway`` imports this module: what only an error needs is imported by then.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from makeway import catalogue, collector
from makeway.entry_points import one_look
from makeway.escapes import printable_lines
from makeway_app.cli import brought

if TYPE_CHECKING:
    from makeway.errors import MakewayError

FAILED, REFUSED, UNUSABLE, INTERRUPTED = 1, 2, 3, 130
DEBUG = "MAKEWAY_DEBUG"
TRACE = "MAKEWAY_TRACE_HOOKS"


_OTHERS = "Other commands"
"""Section of the help with the commands that other projects bring."""
_WHOLE = 1_000
"""Characters of a summary in the help: enough for a whole sentence."""
_STDOUT = "standard output: "
_WHILE_IT_RUNS = "makeway_app.while_it_runs"
"""Key of a context: what is left when its command is done. None of the own commands runs for days."""
_WRITING = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT)
"""Errors of a stream without a name: files that are written name themselves."""


def switched_on(variable: str) -> bool:
    """Whether an environment variable asks for something; unset, empty and 0 do not."""
    return os.environ.get(variable, "") not in ("", "0")


def status_of(error: MakewayError) -> int:
    """Return the exit status of an error that was raised on purpose."""
    from makeway.errors import ConfigError, PluginError

    return REFUSED if isinstance(error, ConfigError | PluginError) else FAILED


class Told(KeyboardInterrupt):
    """The process was told to end; what is half done is cleared away as after an interrupt."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__()


def obey_signals() -> None:
    """Let SIGTERM and SIGHUP end a command as an interrupt does, unless its caller has them ignored."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _told_to_end)


def _told_to_end(number: int, _: object) -> None:
    raise Told(number)


class Helpful(click.Group):
    """A group of commands that names the nearest one where a name is misspelt."""

    def known_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands that may have been meant."""
        return self.list_commands(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first of `args` names."""
        name = args[0]
        is_option = not name[:1].isalnum()
        if not ctx.resilient_parsing and not is_option and self.get_command(ctx, name) is None:
            from makeway.errors import unknown

            ctx.fail(unknown("command", name, self.known_commands(ctx)))
        return super().resolve_command(ctx, args)


class Guarded(Helpful):
    """A group of commands none of which ends with a traceback, and none of which is imported until it is called.

    :param own: name of each command of the group -> ``module:object``.
    """

    def __init__(self, *args: Any, own: Mapping[str, str] = types.MappingProxyType({}), **extra: Any) -> None:
        super().__init__(*args, **extra)
        self._own = own

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the arguments of the group itself, which may print its help or version."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError:
            raise
        except OSError as error:
            click.echo(f"makeway: {_told(error)[0]}", err=True)
            _leave_output(error)
            raise click.exceptions.Exit(FAILED) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, those that other distributions bring after the own ones."""
        own = list(self._own)
        return [*own, *(name for name in brought.names(brought.COMMANDS) if name not in own)]

    def known_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, those of this project that are not installed among them: they say what to install."""
        return sorted({*self.list_commands(ctx), *catalogue.commands()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command and import it, whether it is an own one or another distribution brings it."""
        if cmd_name in self._own:
            module, _, name = self._own[cmd_name].partition(":")
            if _WHILE_IT_RUNS in ctx.meta:
                ctx.meta[_WHILE_IT_RUNS].enter_context(one_look())
            with collector.paused():  # modules are no garbage
                own: click.Command = getattr(importlib.import_module(module), name)
            return own
        if brought.package_of(brought.COMMANDS, cmd_name) or cmd_name in brought.names(brought.COMMANDS):
            from makeway.errors import PluginError

            try:
                return brought.command(cmd_name)
            except PluginError as error:
                click.echo(f"makeway: {error}", err=True)
                ctx.exit(REFUSED)
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section; only those that are not known are imported to say what they do."""
        known = self.list_commands(ctx)
        sections = {
            heading: [name for name in names if name in known]
            for heading, names in catalogue.sections().items()
        }
        listed = {name for names in sections.values() for name in names}
        sections[_OTHERS] = [name for name in known if name not in listed]
        rows = {heading: list(self._said(ctx, names)) for heading, names in sections.items()}
        widest = max((len(name) for each in rows.values() for name, _ in each), default=0)
        for heading, each in rows.items():
            if each:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(widest), text) for name, text in each])

    def _said(self, ctx: click.Context, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        for name in names:
            known = catalogue.summary(name)
            command = click.Command(name, help=known) if known else self.get_command(ctx, name)
            if command is not None and not command.hidden:
                yield name, command.get_short_help_str(_WHOLE)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what it raises into a text and an exit status, and warnings into a line each."""
        try:
            with warnings.catch_warnings(), contextlib.ExitStack() as stack:
                warnings.showwarning = _warned
                ctx.meta[_WHILE_IT_RUNS] = stack
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, click.ClickException, BrokenPipeError):
            raise
        except Told as told:
            ctx.exit(128 + told.number)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except Exception as error:
            ctx.exit(tell_failure(error))


def tell_failure(error: Exception) -> int:
    """Say what went wrong in one text; return the exit status."""
    if switched_on(DEBUG):
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    text, status = _told(error)
    click.echo(f"makeway: {printable_lines(text)}", err=True)
    _leave_output(error)
    return status


def _warned(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"warning: {message}", err=True)


def _leave_output(error: Exception) -> None:
    """Where the output cannot be written, let nothing write what is left of it at the end and fail once more."""
    if isinstance(error, OSError) and not error.filename and error.errno in _WRITING:
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _told(error: Exception) -> tuple[str, int]:
    from makeway.errors import MakewayError

    if isinstance(error, MakewayError):
        return str(error), status_of(error)
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else _STDOUT if error.errno in _WRITING else ""
        return f"{place}{error.strerror}", FAILED
    if isinstance(error, MemoryError):
        return "out of memory", FAILED
    kind = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"internal error, please report it: {kind} ({DEBUG}=1 shows where)", FAILED
