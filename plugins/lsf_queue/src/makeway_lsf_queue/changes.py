"""Remember where something changed, for readers who come back at their own time."""

from __future__ import annotations

from makeway.bitmap import NodeBits

_MOST = 4_096
"""So many changes are kept: a reader that has been away for longer looks at everything."""


class Changes:
    """Hosts where anything changed, change by change; each reader knows how far it has read."""

    def __init__(self) -> None:
        """Begin with no change."""
        self.end = 0
        """How many changes there have been: up to here a reader has read who has just done so."""
        self._listed: list[NodeBits] = []
        self._first = 0
        """Number of the first one that is kept."""

    def add(self, hosts: NodeBits) -> None:
        """Note a change on some hosts."""
        if len(self._listed) >= _MOST:
            self._first = self.end
            self._listed.clear()
        self._listed.append(hosts)
        self.end += 1

    def since(self, read: int) -> NodeBits:
        """Return the hosts where anything has changed since a reader was at `read`; -1: all hosts."""
        first = self._first
        if read < first:
            return -1
        hosts: NodeBits = 0
        for each in self._listed[read - first :]:
            hosts |= each
        return hosts
