"""The directive ``help-of-commands``: a section for each command of makeway, with what its ``--help`` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from makeway_app.cli import cli

WIDTH = 100


def help_of(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """Yield name and help of a command and of those below it."""
    with click.Context(
        command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    ) as context:
        yield context.command_path, command.get_help(context)
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                found = command.get_command(context, each)
                if found is not None and not found.hidden:
                    yield from help_of(found, each, context)


class HelpOfCommands(SphinxDirective):
    """One section each, in the order of ``makeway --help``."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        sections: list[nodes.Node] = []
        for path, text in help_of(cli, "makeway"):
            section = nodes.section(
                "", nodes.title("", "", nodes.literal("", path)), ids=[path.replace(" ", "-")]
            )
            section += nodes.literal_block(text, text, language="none")
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("help-of-commands", HelpOfCommands)
    return {"parallel_read_safe": True}
