"""``makeway mcp``: the daemon's queue as tools of an assistant (Model Context Protocol), over standard streams.

It has the rights of the user who starts it: it asks the daemon over its socket, as every command does.
"""

from __future__ import annotations

from makeway_local_world.commands.client import Daemon
from makeway_local_world.commands.words import Failed, Option, command


@command(
    "mcp",
    Option("--control", flag=True, help="Let the assistant submit and change jobs; else it may only look."),
)
def mcp(control: bool) -> None:
    """Let an assistant look at the queue, as an MCP server on standard input and output.

    Give your assistant `makeway mcp` as the command of a server. It needs mcp: pip install 'makeway-local-world[mcp]'.
    """
    server = Daemon()
    try:
        from makeway_local_world.assistant import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise Failed("an assistant needs mcp: pip install 'makeway-local-world[mcp]'") from None
    serve(server, control=control)
