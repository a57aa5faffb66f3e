"""``makeway run`` and ``makeway attach``: jobs in the foreground, with the terminal of the user who starts them."""

from __future__ import annotations

import os

from makeway_local_world.commands import options
from makeway_local_world.commands.client import Daemon, job_route
from makeway_local_world.commands.submit import ASKED, WORDS, asked, hand_in
from makeway_local_world.commands.words import Argument, Failed, Option, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NOT_HERE = {"array", "error", "input", "open_mode", "output"}
"""What says of a job where its streams lead, or that there are several of it."""


@command(
    "run",
    Argument("command", "COMMAND [ARGUMENT]...", many=True),
    Option("--pty", flag=True, help="Give it a terminal of its own, which can be left by Ctrl-\\."),
    *(each for each in ASKED if each is not WORDS and each.to not in _NOT_HERE),
    mixed=False,
)
def run(pty: bool, **given: Any) -> int:
    """Run COMMAND as a job in the foreground: with this terminal's input and output, and its exit status.

    Ctrl-C ends the job, or with --pty goes to what runs in it. When the job makes way for another one, that is said
    here, and it goes on afterwards. With --pty, Ctrl-\\ leaves it alone; `makeway attach` comes back to it.
    """
    from makeway_local_world.terminals import meeting
    from makeway_local_world.terminals.guest import Guest

    request = asked(run, given)
    place = meeting.new_place()
    try:
        request |= {"terminal": place, "pty": pty, "output": os.devnull, "key": os.urandom(16).hex()}
        server, answer = hand_in(request)
    except BaseException:
        meeting.leave(place)
        raise
    return Guest(server, answer["id"], place, pty=pty, attached=False).sit()


@command("attach", options.JOB_OR_LAST)
def attach(job: str | None) -> int:
    """Sit down at the terminal of a job that `makeway run --pty` started.

    What it printed last is shown again. Ctrl-\\ leaves it alone. Without JOB, your last one that has a terminal.
    """
    from makeway_local_world.terminals.guest import Guest

    server = Daemon()
    job = job or options.last_job(server, terminal=True)
    found = server.get(job_route(job, "request"))
    if not found.get("pty"):
        raise Failed(f"job {job} has no terminal; makeway run --pty gives one")
    if server.get(job_route(job)).get("ended_at") is not None:
        raise Failed(f"job {job} has ended")
    return Guest(server, job, found["terminal"], pty=True, attached=True).sit()
