"""End a job: all of its processes, with grace, and write down how it ended (local-world 3)."""

from __future__ import annotations

import os
import time

from makeway_local_world.keeping.lean import signal
from makeway_local_world.keeping.proc import Process
from makeway_local_world.keeping.walk import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from makeway_local_world.keeping.post import Post
    from makeway_local_world.keeping.walk import Tree

    class Keeper(Protocol):
        """The keeper of the job, as far as its end is concerned."""

        post: Post

        @property
        def request(self) -> dict[str, Any]:
            """What the daemon asked for."""

        @property
        def tree(self) -> Tree:
            """All processes of the job."""

        def say(self, **what: Any) -> None:
            """Tell the daemon, if it is there."""

        def continue_tree(self, cores: list[int] | None = None) -> None:
            """Let all of them go on."""

        telling: int
        untold: str

        def tell(self, *events: str, **environment: str) -> None: ...
        def _help(self, name: str, command: str, limit: float, then: Any, **environment: str) -> None: ...


_STUCK_AFTER = 2.0
"""Seconds of SIGKILL after which it is said that processes cannot be killed."""
_SLOWEST = 1.0
_SOON = 0.005
"""Seconds between two looks at a job whose processes end one by one."""


class Ending:
    """How one incarnation ends: by itself, by the daemon's word, or because it could not start.

    In order: SIGCONT and SIGTERM to the whole tree; grace; SIGKILL until two looks in a row find nothing; the command
    that its end asks for; the file `exit`.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self.reason: str | None = None
        """Why it is killed; None: it is not."""
        self.by = ""
        """Who asked for that: daemon, or another (empty)."""
        self.then: str | None = None
        """Why it is to be started again afterwards; None: it is not."""
        self.becomes: str | None = None
        """What it comes to, as the daemon says: PENDING if it is to wait again; None: it was not said."""
        self.failed: dict[str, Any] | None = None
        """Why it could not start."""
        self.left: list[list[object]] = []
        """Who was left when the leader had ended."""
        self.due: float | None = None
        """When `go_on` has something to do; None: nothing."""
        self.over = False
        self._phase = "none"
        self._kill_at = 0.0
        self._killing_since = 0.0
        self._pause = 0.001
        self._quiet = 0
        self._said_stuck = False
        self._helped = False
        self._on_end_status: int | None = None
        self._has_told = False

    @property
    def begun(self) -> bool:
        """Whether everything is being killed; False also while the job waits for processes that it has left."""
        return self._phase not in ("none", "waiting")

    # ------------------------------------------------------------------------------ beginning
    def begin(self, why: str, asked: dict[str, Any] | None) -> None:
        """Kill everything, because `asked` says so or the keeper itself is told to end."""
        told = asked or {}
        default = self._keeper.request.get("kill_wait", 30.0)
        grace = 0.0 if told.get("forced") else float(told.get("grace", default))
        now = time.monotonic()
        if self.reason is None:
            self.reason = why
        if asked is not None:
            self.by, self.then, self.becomes = "daemon", asked.get("then"), asked.get("becomes")
        if self._phase in ("none", "waiting"):
            self._phase = "terminating"
            self._kill_at = now + grace
            self._tell_to_end()
            self.due = now
        elif self._phase == "terminating":
            self._kill_at = min(self._kill_at, now + grace)
            self.due = now
        self._said_stuck = False  # a caller that asks again hears again

    def _tell_to_end(self) -> None:
        keeper = self._keeper
        keeper.tree.send(signal.SIGTERM)
        keeper.continue_tree()
        keeper.tree.send(signal.SIGCONT)  # also those that another has stopped

    def leader_ended(self) -> None:
        """The first process has ended; ask what remains."""
        if self._phase != "none":
            self.due = time.monotonic()
            return
        there = self._there()
        self.left = named(there)
        if there and self._keeper.request.get("leftovers") == "wait":
            self._phase = "waiting"
        else:
            self._phase = "terminating"
            grace = float(self._keeper.request.get("leftover_grace", 0.0)) if there else 0.0
            self._kill_at = time.monotonic() + grace
            if there and grace:
                self._tell_to_end()
        self.due = time.monotonic()

    def orphan_ended(self) -> None:
        """One that the job left has ended: it may have been the last, and a job waits for its place."""
        if self.due is not None:
            self.due = min(self.due, time.monotonic() + _SOON)

    # ------------------------------------------------------------------------------ going on
    def go_on(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        if self.due is None or now < self.due:
            return
        if self._phase == "waiting":
            self._wait_for(self._there(), now)
        elif self._phase == "terminating":
            there = self._there()
            if not there or now >= self._kill_at:
                self._phase, self._killing_since, self._pause = "killing", now, 0.001
                self._kill(now)
            else:
                self._wait_for(there, now, self._kill_at)
        elif self._phase == "killing":
            self._kill(now)
        elif self._phase == "helping":
            self.due = None

    def _there(self) -> list[Process]:
        return self._keeper.tree.look()

    def _wait_for(self, there: list[Process], now: float, latest: float | None = None) -> None:
        """Look again later; ends of children are seen at once."""
        if not there:
            self._phase, self._killing_since = "killing", now
            self._kill(now)
            return
        self._pause = min(self._pause * 1.5, 0.05)
        self.due = min(now + self._pause, latest if latest is not None else now + self._pause)

    def _kill(self, now: float) -> None:
        keeper = self._keeper
        found, more = keeper.tree.kill()
        self._quiet = 0 if more or keeper.post.status is None else self._quiet + 1
        if self._quiet >= 2:
            self._help()
            return
        if now - self._killing_since > _STUCK_AFTER and not self._said_stuck:
            self._said_stuck = True
            keeper.say(say="stuck", left=named(found), since=now - self._killing_since)
        self._pause = min(self._pause * 1.5, _SLOWEST)
        self.due = now if self._quiet or (more and not found) else now + self._pause

    def _help(self) -> None:
        """Nothing is left; run what the end of the job asks for, once, and tell its owner."""
        keeper = self._keeper
        command = keeper.request.get("on_end")
        only_over = keeper.request.get("on_end_only_over") and self.becomes == "PENDING"
        if not command or only_over or self._helped or self.failed is not None:
            self._tell()
            return
        self._helped, self._phase, self.due = True, "helping", None

        def then(status: int | None, output: str) -> None:
            self._on_end_status = status
            self._phase, self.due, self._quiet = "killing", time.monotonic(), 0  # it may have left something
            self._killing_since = time.monotonic()

        limit = float(keeper.request.get("on_end_limit", 60.0))
        keeper._help("on_end", command, limit, then, **self._story())

    def _story(self) -> dict[str, str]:
        """Return how the job ended, as commands are told."""
        status = self._keeper.post.status or 0
        return {
            "MAKEWAY_STATUS": str(status),
            "MAKEWAY_EXIT": f"{os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0}:"
            f"{os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0}",
            "MAKEWAY_KILLED": self.reason or "",
            "MAKEWAY_BECOMES": self.becomes or "",
        }

    def _tell(self) -> None:
        """Tell the owner of the end, once, and wait for all that still tells of something."""
        keeper = self._keeper
        if not self._has_told:
            self._has_told = True
            if self.becomes == "PENDING":
                keeper.tell("requeue", **self._story())
            elif keeper.post.status or self.failed is not None:
                keeper.tell("fail", "end", **self._story())
            else:
                keeper.tell("end", **self._story())
        if keeper.telling:
            self._phase, self.due = "helping", None
        else:
            self.over = True

    def told(self) -> None:
        """A command that tells of something has ended."""
        if self._has_told and self._phase == "helping":
            self._phase, self.due, self._quiet = "killing", time.monotonic(), 0  # it may have left something
            self._killing_since = time.monotonic()

    def write(self) -> None:
        """Write down how it ended."""
        self._keeper.post.write_end(
            failed=self.failed,
            killed=self.reason,
            ends_by=self.by,
            then=self.then,
            becomes=self.becomes,
            left=self.left,
            on_end=self._on_end_status,
            untold=self._keeper.untold,
        )
