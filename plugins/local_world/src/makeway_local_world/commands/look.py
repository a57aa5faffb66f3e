"""What click knows better: how help and errors look, and what completion has to know.

Only `words` reads what was typed.
"""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from makeway.escapes import printable_lines
from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.words import Argument, Command, Option

_SETTINGS = {"help_option_names": ["-h", "--help"]}


def made(command: Command, kind: type[click.Command] = click.Command) -> click.Command:
    """Return a command as click has it, which does nothing yet."""
    return kind(
        command.name,
        help=command.run.__doc__,
        params=[*map(_argument, command.arguments), *map(_option, command.options)],
        context_settings={**_SETTINGS, "ignore_unknown_options": True},
    )


def _context(command: Command) -> click.Context:
    above = click.Context(click.Group("makeway"), info_name="makeway", **_SETTINGS)  # type: ignore[arg-type]
    return click.Context(made(command), parent=above, info_name=command.name, **_SETTINGS)  # type: ignore[arg-type]


def show_help(command: Command) -> None:
    """Print the help of a command."""
    terminal.say_text(_context(command).get_help() + "\n")


def show_wrong(command: Command, text: str) -> None:
    """Print what is wrong with a command line."""
    click.UsageError(printable_lines(text), ctx=_context(command)).show()


def _option(option: Option) -> click.Parameter:
    names = [*option.names, option.to]
    if option.off:
        names[len(option.names) - 1] += f"/{option.off[-1]}"
    if option.flag:
        return click.Option(names, is_flag=True, default=option.default, help=option.help)
    more: dict[str, Any] = {} if option.bare is None else {"is_flag": False, "flag_value": option.bare}
    if option.choices:
        more["type"] = click.Choice(option.choices)
    return click.Option(
        names,
        metavar=option.metavar,
        multiple=option.many,
        default=option.default if option.shown else None,
        show_default=option.shown,
        help=option.help,
        shell_complete=_completing(option.offers) if option.offers else None,
        **more,
    )


def _argument(argument: Argument) -> click.Parameter:
    return click.Argument(
        [argument.to],
        metavar=argument.metavar,
        nargs=-1 if argument.many else 1,
        required=argument.required,
        shell_complete=_completing(argument.offers) if argument.offers else None,
    )


def _completing(what: str) -> Any:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        if what == "files":
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(word, help=text) for word, text in options.offered(what, incomplete)]

    return complete
