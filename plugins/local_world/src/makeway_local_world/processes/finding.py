"""Find what an earlier daemon left, and say what became of incarnations that are over."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any

from makeway.model import JobState
from makeway_local_world.keeping import proc, words
from makeway_local_world.processes import leftovers, news
from makeway_local_world.processes.case import Case
from makeway_local_world.processes.ends import End, end_of, end_of_plain
from makeway_local_world.processes.holding import Holding
from makeway_local_world.processes.news import News
from makeway_local_world.processes.rundir import Fate, Found, Key, RunDirectory, all_keys

MOST_TRIES = 3
"""Nurseries that may die over one start."""
LOOK_AGAIN = 0.005
"""Seconds until a lock is looked at again whose keeper is about to end."""
_KILL_LIMIT = 2.0
_GREETING = 2.0
"""Seconds in which all keepers are to say how their jobs stand."""
_log = logging.getLogger("makeway")


class Finding:
    """Looks at directories of incarnations for a hand."""

    def __init__(self, hand: Holding) -> None:
        self._hand = hand

    def find(self) -> list[tuple[Found, Case | None]]:
        """Look at all incarnations of the state directory, and take over those that live; before `begin`.

        All keepers are called before the first answer is waited for.
        """
        looks = []
        for key in all_keys(self._hand.site.directory):
            place = RunDirectory(self._hand.site.directory, key)
            try:
                look = place.look()
            except words.WordError as error:
                _log.error("%s: %s; it is left alone", place.path, error)
                self._hand.unreadable.add(key)
                continue
            looks.append((look, self._call(place, look) if look.fate is Fate.ALIVE else None))
        found: list[tuple[Found, Case | None]] = []
        deadline = time.monotonic() + _GREETING
        for look, case in looks:
            if case is None:
                found.append((look, None))
                continue
            self._greet(case, deadline)
            if case.line is None and (again := case.place.look()).fate is not Fate.ALIVE:
                self._hand.let_go(case)  # it has ended meanwhile
                found.append((again, None))
            else:
                found.append((look, case))
        return found

    def adopt(self, place: RunDirectory, look: Found) -> None:
        """Take over a keeper of an earlier daemon."""
        self._greet(self._call(place, look), time.monotonic() + _GREETING)

    def _call(self, place: RunDirectory, look: Found) -> Case:
        case = Case(key=look.key, place=place, line=place.call(), tries=MOST_TRIES)
        self._hand.cases[look.key] = case
        if look.started is not None:
            case.learn()
            case.state = "running"
        return case

    def _greet(self, case: Case, deadline: float) -> None:
        """Hear what a keeper says first; one that its owner has stopped is not waited for beyond the deadline."""
        if case.line is not None:
            with contextlib.suppress(OSError, words.WordError):
                case.line.settimeout(max(0.001, deadline - time.monotonic()))
                case.learn()
                self.greeted(case, words.unpack(case.line.recv(words.LONGEST)))
            case.line.setblocking(False)
        self._hand.watch(case)
        if case.line is None:
            again = self._hand.gone if case.handle < 0 else self._hand.call_again
            self._hand.later(LOOK_AGAIN, lambda: again(case))

    def greeted(self, case: Case, hello: dict[str, Any]) -> None:
        """Take note of how a job stands; where it has a cgroup, the kernel knows whether it is stopped."""
        case.state = {"starting": "running"}.get(str(hello["state"]), str(hello["state"]))
        if case.cgroup is not None and case.state in ("running", "stopped"):
            case.state = "stopped" if case.cgroup.frozen() else "running"
        self.saves(case.key, case.place)
        case.killed = hello.get("ends_by") == "daemon"
        case.gives_way = str(hello.get("then") or "")

    def saves(self, key: Key, place: RunDirectory) -> None:
        """Tell what is saved of a job, as its keeper has written down."""
        found = place.saved()
        if found.anew:
            why = f"it began anew, for what was saved of it cannot be used: {found.anew}"
            self._hand.tell(news.BegunAnew(key, why))
        if found.ran is not None:
            self._hand.tell(news.Saved(key, found.ran))

    def lose(self, look: Found, forced: str = "") -> tuple[str, str]:
        """Clean up after a keeper that has died; return why it did, and the rule that follows.

        :param forced: why the daemon killed it; empty: another did.
        """
        started = look.started or {}
        if started.get("boot") != proc.boot_id():
            return "the machine went down", self._hand.site.settings.reboot
        left = leftovers.kill(started, self._hand.site.daemon, started.get("uid"), _KILL_LIMIT)
        text = forced or "its keeper was killed"
        if left:
            text += f"; {', '.join(f'{each.name} ({each.pid})' for each in left)} cannot be killed"
        return text, self._hand.site.settings.keeper_lost

    def what_became_of(self, look: Found) -> News:
        """Return what the exit file of an incarnation means."""
        key, told = look.key, look.exit
        assert told is not None
        end = end_of_plain(told)
        if told.get("then"):
            return news.Lost(key, told["then"], "requeue")
        if end.failed:
            return news.Lost(key, end.failed, "requeue")
        if end.killed is not None and told.get("ends_by") != "daemon":
            return news.Lost(key, end.killed, self._hand.site.settings.keeper_lost)
        why = self._retried(key, look.started or {}, end)
        return news.Lost(key, why, "requeue") if why else news.Over(key, end)

    def _retried(self, key: Key, started: dict[str, Any], end: End) -> str:
        """Say why a job that has failed by itself waits again; empty: it does not, or did so often enough."""
        most, codes = int(started.get("retries", 0)), started.get("requeue_exit", [])

        def counts(end: End) -> bool:
            fits = not codes or (128 + end.signal if end.signal else end.code) in codes
            return end.killed is None and end.state is not JobState.COMPLETED and fits

        if not most or not counts(end):
            return ""
        job_id, incarnation = key
        before = (end_of(self._hand.site.directory, job_id, each) for each in range(1, incarnation))
        number = 1 + sum(1 for each in before if each is not None and not each.failed and counts(each))
        return f"{end.why or 'it failed'}; retry {number} of {most}" if number <= most else ""
