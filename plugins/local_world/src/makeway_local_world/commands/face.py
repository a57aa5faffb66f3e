"""Commands as click has them, for the list of all commands of makeway; `words` alone reads what was typed."""

from __future__ import annotations

from typing import Any

import click

from makeway_local_world.commands.look import made
from makeway_local_world.commands.running import main
from makeway_local_world.commands.words import Command


class Face(click.Command):
    """A command whose words are taken as they are."""

    behind: Command
    _words: tuple[str, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words; completion alone has them read by click."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        self._words = tuple(args)
        return []

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        ctx.exit(main(self.behind, self._words))


def face(command: Command) -> click.Command:
    """Return a command as click has it."""
    found = made(command, Face)
    assert isinstance(found, Face)
    found.behind = command
    return found
