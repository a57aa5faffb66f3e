"""``makeway completion``: what a shell reads to complete commands, ids of jobs, partitions and users."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from makeway_app.start import COMPLETION

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what lets SHELL complete commands, options, ids of jobs and names of partitions.

    For bash, put `eval "$(makeway completion bash)"` into ~/.bashrc; the same for zsh, into ~/.zshrc. For fish:
    `makeway completion fish > ~/.config/fish/completions/makeway.fish`.
    """
    made = _SHELLS[shell](context.find_root().command, {}, "makeway", COMPLETION)
    click.echo(made.source_template % made.source_vars())
