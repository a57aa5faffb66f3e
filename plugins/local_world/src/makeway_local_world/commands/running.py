"""Run a command: do what was typed, and tell whatever goes wrong in one clear text."""

from __future__ import annotations

import os
import sys

from makeway_local_world.commands import terminal
from makeway_local_world.commands.words import Failed, Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from makeway_local_world.commands.words import Command

USAGE, INTERRUPTED = 2, 130


def main(command: Command, words: Sequence[str]) -> int:
    """Do what a command line asks for; return the exit status, with whatever went wrong told."""
    try:
        if _asks_for_help(command, words):
            from makeway_local_world.commands.look import show_help

            show_help(command)
            return 0
        status = command.run(**command.read(words)) or 0
        sys.stdout.flush()
    except Wrong as wrong:
        from makeway_local_world.commands.look import show_wrong

        show_wrong(command, str(wrong))
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # what is left is written there at the end
        return 1
    except Failed as failed:
        terminal.say_text(f"makeway: {failed}\n", err=True)
        return failed.exit_status
    except Exception as error:
        from makeway_app.cli.group import tell_failure

        return tell_failure(error)
    return status


def _asks_for_help(command: Command, words: Sequence[str]) -> bool:
    """Whether help is asked for, rather than a value of an option or a word of the job's own."""
    for at, word in enumerate(words):
        if word == "--" or (
            not command.mixed and not word.startswith("-") and not _is_value(command, words, at)
        ):
            return False
        if word in ("-h", "--help") and not _is_value(command, words, at):
            return True
    return False


def _is_value(command: Command, words: Sequence[str], at: int) -> bool:
    """Whether a word is the value of the option before it."""
    before = command.known.get(words[at - 1]) if at else None
    return before is not None and not before.flag and before.bare is None


__all__ = ["INTERRUPTED", "USAGE", "main"]
