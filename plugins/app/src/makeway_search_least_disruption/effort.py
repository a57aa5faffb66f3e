"""Count the steps of a search, so that one that would take too long ends with an honest answer."""

from __future__ import annotations


class OutOfEffortError(Exception):
    """The limit struck before anything was proved; never leaves this package."""


class Effort:
    """Steps taken, and what was proved meanwhile."""

    def __init__(self, limit: int) -> None:
        self.left = limit
        self.at_least = 0
        """No choice of fewer victims than this can make room; proved."""

    def spend(self, steps: int) -> None:
        """Take `steps`.

        :raises OutOfEffortError: if they are more than are left.
        """
        self.left -= steps
        if self.left < 0:
            raise OutOfEffortError
