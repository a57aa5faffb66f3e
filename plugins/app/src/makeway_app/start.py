"""Begin: find out whether all of makeway has to be imported for what was typed.

A command that only talks to a daemon is over before click and the engine would be imported.
"""

from __future__ import annotations

import importlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_QUICK = "makeway_local_world.commands.table"
"""Module that runs commands which need nothing else, if its distribution is installed."""
COMPLETION = "_MAKEWAY_COMPLETE"
"""Set by shells that want to know what may follow."""


def open_streams() -> None:
    """Have standard streams that the caller of the command closed lead nowhere (``makeway replay ... >&-``).

    Else they are None, and the next file that is opened gets their number: what a child prints would land in it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            try:
                nowhere = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
                if nowhere != number:
                    os.dup2(nowhere, number)
                    os.close(nowhere)
                os.set_inheritable(number, True)
                setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115
            except OSError:
                pass


def _leave(status: int) -> NoReturn:
    """End at once: taking an interpreter apart takes longer than the command."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = status or 1
    os._exit(status)


def main() -> None:
    """Run the command line."""
    open_streams()
    words = sys.argv[1:]
    if words and COMPLETION not in os.environ:
        try:
            status = importlib.import_module(_QUICK).run(words[0], words[1:])
        except ModuleNotFoundError as error:
            if error.name is None or not _QUICK.startswith(error.name):
                raise
        else:
            if status is not None:
                _leave(status)
    importlib.import_module("makeway_app.cli").main()
