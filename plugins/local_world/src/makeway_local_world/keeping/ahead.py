"""Warn a job ahead of its time limit, by the time that it has run: suspensions do not count."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Notice:
    """One signal, due once the job has run for so long."""

    def __init__(self, asked: Mapping[str, Any] | None) -> None:
        """Begin with the job not running.

        :param asked: ``signal``, ``after`` (seconds of running) and ``leader_only``; None: there is no warning.
        """
        self.asked = asked
        self._left = float(asked["after"]) if asked is not None else None
        self._ran = 0.0
        """Seconds of running up to the last stand."""
        self._since: float | None = None

    @property
    def due(self) -> float | None:
        """When it is to be sent if the job keeps running; None: not as things stand."""
        return None if self._left is None or self._since is None else self._since + self._left

    def runs(self, now: float) -> None:
        """The job runs from `now` on."""
        if self._since is None:
            self._since = now

    def stands(self, now: float) -> None:
        """The job stands still from `now` on."""
        if self._since is not None:
            self._ran += now - self._since
            if self._left is not None:
                self._left -= now - self._since
        self._since = None

    def ran(self, now: float) -> float:
        """Return for how long the job has run."""
        return self._ran + (now - self._since if self._since is not None else 0.0)

    def move(self, asked: Mapping[str, Any] | None, now: float) -> None:
        """Take another notice, since the time limit was changed; one that was sent is not sent again at once."""
        sent = self.asked is not None and self._left is None
        self.asked, self._left = asked, None
        if asked is None:
            return
        if not sent or float(asked["after"]) > self.ran(now):
            self._left = float(asked["after"]) - self._ran

    def take(self, now: float) -> Mapping[str, Any] | None:
        """Return what is to be sent, once it is due; None: nothing is."""
        due = self.due
        if due is None or now < due:
            return None
        self._left = None
        return self.asked
