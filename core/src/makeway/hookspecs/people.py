"""Specify the hook about commands that people give."""

from __future__ import annotations

from makeway.hookspecs.marks import hookspec
from makeway.model import Commands


@hookspec
def makeway_commands() -> Commands | None:
    """Say which jobs people mean by a command, and what they may not do: a `makeway.model.Commands`.

    Called once, when the first command of a run is given.

    :returns: its two functions, either of which may be left out. None: people name jobs by their ids, and nothing is
        refused. States that make a command meaningless are refused by the engine itself.
    :raises: whatever is raised, by the functions too, ends the run as PolicyError.

    All plugins are asked; the first that knows which jobs an expression means counts, and so does the first
    refusal.

    A list with commas; and owners may do anything but resume::

        def names(expression, command, user, view):
            return expression.split(",") if "," in expression else None

        def refuses(command, job, user, view):
            if command == "resume" and user == job.user:
                return "a user may not resume his own job"

        @hookimpl
        def makeway_commands():
            return Commands(names=names, refuses=refuses)

    .. versionadded:: 0.1
    """
