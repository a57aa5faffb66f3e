"""Run commands beside a job, as its owner and with a time limit: checkpoints, notices, what its end asks for."""

from __future__ import annotations

import os
import time

from makeway_local_world.keeping import child
from makeway_local_world.keeping.proc import look
from makeway_local_world.keeping.walk import Tree, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_MOST_OUTPUT = 2000
"""Bytes of a command's output that are kept, the last ones."""


_LOOKS = 100
"""Looks at a command that took too long; what is left then counts as the job's."""


class Helper:
    """One command that runs, and what is to be done when it has ended."""

    def __init__(
        self, name: str, pid: int, output: int, limit: float, then: Callable[[int | None, str], None]
    ) -> None:
        self.name = name
        self.pid = pid
        self._output = output
        self.deadline = time.monotonic() + limit
        self._then = then

    def ended(self, status: int | None) -> None:
        """Tell the caller: the wait status, None if it took too long, and the last of what it wrote."""
        size = os.fstat(self._output).st_size
        text = os.pread(self._output, _MOST_OUTPUT, max(0, size - _MOST_OUTPUT))
        os.close(self._output)
        self._then(status, text.decode("utf-8", "replace").strip())

    def kill(self) -> None:
        """Kill it, with all that it started and that still belongs to it."""
        tree, me = Tree(self.pid), look(self.pid)
        for _ in range(_LOOKS):
            if not tree.kill()[1]:
                break
            time.sleep(0.001)
        if me is not None:
            send(me, 9)


def run(
    name: str,
    command: str,
    request: Mapping[str, Any],
    environment: Mapping[str, str],
    limit: float,
    then: Callable[[int | None, str], None],
) -> Helper:
    """Start a command line for the shell in the job's directory; it is frozen with none of the job.

    :raises OSError: nothing can be forked; the owner may have no more processes.
    """
    output = os.memfd_create("output", os.MFD_CLOEXEC)
    try:
        pid = os.fork()
    except OSError:
        os.close(output)
        raise
    if pid == 0:
        mine = {
            **request,
            "argv": ["/bin/sh", "-c", command],
            "script": None,
            "stopped": False,
            "input": None,
            "die_with_keeper": True,
            "environment": {**request["environment"], **environment},
        }
        child.helper(mine, output)
    return Helper(name, pid, output, limit, then)
