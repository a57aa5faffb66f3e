"""Watch running jobs for what would keep criu from saving them, so that it is known before one has to make way."""

from __future__ import annotations

from makeway_checkpointable import obstacles
from makeway_local_world.keeping import proc
from makeway_local_world.processes import news
from makeway_local_world.processes.holding import Holding

EVERY = 5.0
"""Seconds between two looks while jobs are there that are saved."""


class HindranceWatch:
    """Tells when a job opens a connection, a GPU or a terminal, and when it has closed it again."""

    def __init__(self, hand: Holding) -> None:
        self._hand = hand
        self._looking = False

    def begin(self) -> None:
        """Look from now on, as long as jobs are there that are saved."""
        if not self._looking and any(case.dumped for case in self._hand.cases.values()):
            self._looking = True
            self._hand.later(EVERY, self._look)

    def _look(self) -> None:
        self._looking = False
        for case in self._hand.cases.values():
            if case.dumped and case.state == "running" and not case.killed and not case.gives_way:
                pids = [each.pid for each in proc.below(case.pid)]
                why = obstacles.of_processes(pids, gpus=self._hand.site.saving.cuda.why) or ""
                if why != case.obstacle:
                    case.obstacle = why
                    self._hand.tell(news.Hindered(case.key, why))
        self.begin()
