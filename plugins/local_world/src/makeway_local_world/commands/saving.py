"""Submit a command that is saved with its memory when it makes way by a checkpoint, and goes on from there.

The job runs `makeway_checkpointable`, its checkpoint command asks that for a save, and its end removes what was saved.
All of that is done by the job's own processes: what is saved lies where its owner keeps state, and root never reads it.
"""

from __future__ import annotations

import os
import shlex
import sys

from makeway_checkpointable import criu, obstacles
from makeway_local_world.commands.words import Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_FLAG = "--checkpointable"


def saved(found: Mapping[str, Any], every: float | None) -> dict[str, Any]:
    """Return a request whose command is saved.

    :param every: seconds between two saves; None: it is saved when it makes way.
    :raises Wrong: it cannot be.
    """
    if "script" in found or "command" not in found:
        raise Wrong(f"{_FLAG} takes a command behind --, which may be a script: -- ./job.sh")
    if "checkpoint" in found:
        raise Wrong(f"{_FLAG} brings a checkpoint command of its own; leave --checkpoint-command out")
    why = obstacles.of_command(found["command"], {})
    if why is not None:
        raise Wrong(f"{_FLAG}: {why}")
    try:
        program = criu.find()
    except criu.CriuError as error:
        raise Wrong(f"{_FLAG}: {error}") from None
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local/state")
    place = shlex.quote(os.path.join(state, "makeway-saved", os.urandom(8).hex()))
    run = shlex.join([sys.executable, "-I", "-m", "makeway_checkpointable", "--criu", program.path])
    run += f' --dir {place}/"$MAKEWAY_JOB_ID"'
    often = "" if every is None else f" --every {max(every, 1.0):g}"
    clear = f'[ "$MAKEWAY_BECOMES" = PENDING ] || {{ rm -rf {place}/"$MAKEWAY_JOB_ID"; rmdir {place} 2>/dev/null; }}'
    on_end = found.get("on_end")
    name = os.path.basename(found["command"][0])[:60]
    return {
        "name": "".join(letter if letter.isprintable() else "?" for letter in name),
        **found,
        "script": f'#!/bin/sh\nexec {run} --here{often} -- "$@"\n',
        "checkpoint": f"{run} --save",
        "on_end": f"{clear}; :" if on_end is None else f"( {on_end}\n); ended=$?; {clear}; exit $ended",
    }


__all__ = ["saved"]
