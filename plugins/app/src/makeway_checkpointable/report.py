"""Tell who started this that the program is safe as it stands, or that it had to begin anew.

``MAKEWAY_REPORT`` numbers an open socket that takes packets of JSON; the program itself gets neither.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket

VARIABLE = "MAKEWAY_REPORT"


class Report:
    """Takes the socket from the environment; without one, nothing is told."""

    def __init__(self) -> None:
        number = os.environ.pop(VARIABLE, "")
        self._socket: socket.socket | None = None
        with contextlib.suppress(OSError, ValueError, OverflowError):
            self._socket = socket.socket(fileno=int(number))
            self._socket.set_inheritable(False)

    def saved(self, ago: float = 0.0) -> None:
        """What the program has done is saved, up to some seconds ago; or it was brought back."""
        self._say(say="saved", ago=ago)

    def anew(self, why: str) -> None:
        """What was saved cannot be used: the program begins anew."""
        self._say(say="anew", why=why)

    def _say(self, **words: str | float) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # neither side waits for the other
                self._socket.send(
                    json.dumps({"v": 1, **words}).encode(), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
                )
