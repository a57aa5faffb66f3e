"""Which module has which command: those of them that only talk to a daemon begin without the rest of makeway."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from makeway_local_world.commands.words import Command

COMMANDS = {
    "again": "submit:again",
    "attach": "foreground:attach",
    "cancel": "verbs:cancel",
    "checkpoint": "verbs:checkpoint",
    "doctor": "site:doctor",
    "down": "down:down",
    "drain": "verbs:drain",
    "history": "history:history",
    "hold": "verbs:hold",
    "logs": "output:logs",
    "mcp": "assistant:mcp",
    "monitor": "monitor:monitor",
    "queue": "queue:queue",
    "reload": "site:reload_",
    "release": "verbs:release",
    "requeue": "verbs:requeue",
    "resume": "verbs:resume",
    "reserve": "reserve:reserve",
    "restore": "verbs:restore",
    "run": "foreground:run",
    "start": "verbs:start",
    "stats": "stats:stats",
    "submit": "submit:submit",
    "suspend": "verbs:suspend",
    "top": "verbs:top",
    "undrain": "verbs:undrain",
    "update": "verbs:update",
    "wait": "output:wait",
    "web": "site:web",
    "victims": "submit:victims",
    "why": "why:why",
}
"""As the entry points of this distribution name them; reading those takes longer than a whole command."""


def find(name: str) -> Command | None:
    """Return a command; None: it is not among them."""
    if name not in COMMANDS:
        return None
    module, _, attribute = COMMANDS[name].partition(":")
    found: Command = getattr(importlib.import_module(f"makeway_local_world.commands.{module}"), attribute)
    return found


def run(name: str, words: Sequence[str]) -> int | None:
    """Run a command; return its exit status, or None if it is not among these."""
    found = find(name)
    if found is None:
        return None
    from makeway_local_world.commands.running import main

    return main(found, words)
