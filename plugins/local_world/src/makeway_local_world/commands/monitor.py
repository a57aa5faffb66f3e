"""``makeway monitor``: the machine and its queue on the whole terminal."""

from __future__ import annotations

import sys

from makeway_local_world.commands.client import Daemon
from makeway_local_world.commands.words import Failed, Option, Wrong, command, seconds


@command(
    "monitor",
    Option(
        "--every",
        reads=seconds,
        default=2.0,
        shown=True,
        metavar="SECONDS",
        help="Look again so often while nothing happens.",
    ),
)
def monitor(every: float) -> None:
    """Show the machine and its queue on the whole terminal, with keys that change jobs.

    It shows cores and GPUs with the jobs that have them, which made way for which, and of the chosen job why it waits
    and what it printed. It needs textual: pip install 'makeway-local-world[monitor]'.
    """
    if not 0.1 <= every <= 3600:
        raise Wrong(f"Invalid value for '--every': got {every:g}; allowed: 0.1 to 3600")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failed("the screen needs a terminal; `makeway queue` and `makeway why` print the same")
    server = Daemon()
    try:
        from makeway_local_world.screen import Monitor
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "textual":
            raise
        raise Failed("the screen needs textual: pip install 'makeway-local-world[monitor]'") from None
    Monitor(server, every).run()
