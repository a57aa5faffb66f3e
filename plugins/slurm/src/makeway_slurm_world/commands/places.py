"""Where the state of a makeway that drives a Slurm is, and who has it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import click

from makeway.errors import MakewayError

state_option = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The state directory; else ~/.local/state/makeway-slurm.",
)
_LOCK = "drive.lock"


class TakenError(MakewayError):
    """Another makeway has the state directory."""


def directory(given: Path | None) -> Path:
    """Return the state directory, and make it if it is not there.

    :raises OSError: it cannot be made.
    """
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    found = given or base / "makeway-slurm"
    found.mkdir(parents=True, exist_ok=True, mode=0o700)
    return found


class Lock:
    """Holds a state directory for as long as the process lives, or until `release`."""

    def __init__(self, state: Path) -> None:
        """Take it.

        :raises TakenError: another process has it.
        """
        self._descriptor = os.open(state / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise TakenError(f"{state}: process {who} drives from here; end it first") from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Give it back."""
        os.close(self._descriptor)
