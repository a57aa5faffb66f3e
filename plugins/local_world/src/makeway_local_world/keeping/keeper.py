"""Hold one incarnation of a job: its parent for life, and the only one who may signal it without a race.

A keeper is forked from the nursery with the lock of the incarnation. Its child writes `started` before it becomes the
job. The keeper takes on the owner's rights and waits at its `Post` until something happens; then it does what the
daemon asks over a socket, and writes `exit` once nothing of the job is left. Then it ends, and so frees the lock. It
needs no daemon in between.

Its owner may kill or stop it, and so harm jobs of that owner alone: the daemon does by itself what a keeper does not do
in time.
"""

from __future__ import annotations

import os
import time

from makeway_local_world.keeping import helpers, proc, words
from makeway_local_world.keeping.ahead import Notice
from makeway_local_world.keeping.ending import Ending
from makeway_local_world.keeping.helpers import Helper
from makeway_local_world.keeping.lean import signal, suppress
from makeway_local_world.keeping.walk import Tree, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from makeway_local_world.keeping.lean import socket
    from makeway_local_world.keeping.post import Post


TELL_LIMIT = 60.0
"""Seconds after which a command that tells the owner of something is killed."""

_LONGEST_UNTOLD = 200
"""Characters that are kept of why a notice could not be given."""


class Keeper:
    """One job's parent."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.request = request = post.request()
        self.helpers: dict[int, Helper] = {}
        self.tree = Tree(os.getpid(), lambda: self.helpers, self._collect_orphan)
        self.frozen_by_daemon = bool(post.mandate.get("cgroup"))
        """Whether the daemon stops the job, by the freezer of its cgroup; else its keeper does."""
        self.leader = post.leader
        self.state = "starting" if post.since is None else "running"
        """starting, running, stopped, ending."""
        self.ending = Ending(self)
        self._anew = ""
        """Why the job did not go on from what was saved before, but began anew; empty: it did."""
        self._ahead = Notice(request.get("ahead"))
        if post.since is not None:
            self._ahead.runs(post.since)
        self.after: list[tuple[float, Any]] = []
        """What is due: instant on the monotonic clock, and what is called then."""
        self._stopped_by_others = False
        self.telling = 0
        """How many commands run that tell the owner of something."""
        self.untold = ""
        """Why the owner was not told of something, the last time that happened; empty: it did not."""
        if post.status is not None:
            self.ending.leader_ended()

    # ------------------------------------------------------------------------------- living
    def live(self) -> None:
        """Hold the job to its end."""
        while not self.ending.over:
            self._turn()
        self.ending.write()

    def _turn(self) -> None:
        """Wait for what happens next, and do it."""
        post = self.post
        for handle, _ in post.poll().poll(self._patience()):
            if handle == post.wake:
                with suppress(BlockingIOError):
                    os.read(post.wake, 4096)
            elif post.failure is not None and handle == post.failure.fileno():
                self._hear_child(post.failure)
            elif post.report is not None and handle == post.report.fileno():
                self._hear_report(post.report)
            elif handle in post.lines:
                self._hear(post.lines[handle])
            else:
                state = "ending" if self.ending.begun else self.state
                post.accept(state, self.ending.by, self.ending.then)
        self._collect()
        if post.told_to_end:
            post.told_to_end = False
            self.ending.begin("SIGTERM to its keeper", None)
        self._do_what_is_due()
        self.ending.go_on()

    def _patience(self) -> float | None:
        """Return the longest wait in milliseconds; None: nothing is due."""
        dues = [at for at, _ in self.after]
        dues += [helper.deadline for helper in self.helpers.values()]
        dues += [due for due in (self.ending.due, self._ahead.due) if due is not None]
        if not dues:
            return None
        left = (min(dues) - time.monotonic()) * 1000
        return left + 0.2 if left > 0.0 else 0.0

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        ready = [what for at, what in self.after if at <= now]
        self.after = [each for each in self.after if each[0] > now]
        for what in ready:
            what()
        ahead = self._ahead.take(now)
        if ahead is not None and not self.ending.begun:
            self._send(int(ahead["signal"]), leader_only=bool(ahead["leader_only"]))
        for pid, helper in list(self.helpers.items()):
            if helper.deadline <= now:
                helper.kill()
                del self.helpers[pid]  # what is left of it counts as the job's
                helper.ended(None)

    # ------------------------------------------------------------------------------ children
    def _hear_child(self, line: socket.socket) -> None:
        """The job begins, or says why it cannot."""
        try:
            data = line.recv(4096)
        except BlockingIOError:
            return
        self.post.hear_no_more()
        if not data:
            self._runs()
            return
        step, number, what = data.decode("utf-8", "surrogateescape").split("\0", 2)
        self.ending.failed = {"step": step, "number": int(number), "what": what}

    def _runs(self) -> None:
        if self.state == "starting":
            self.state = "stopped" if self.request.get("stopped") else "running"
            if self.state == "running":
                self._ahead.runs(time.monotonic())
                self.tell("begin")
            self.post.runs(self.state)

    def _collect(self) -> None:
        """Collect children that have ended: the leader, helpers, orphans."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
                if pid == self.leader:
                    self._stopped_or_continued()
            elif pid == self.leader:
                if self.post.failure is not None:
                    self._hear_child(self.post.failure)
                self.post.leader_ended(status, usage)
                self.ending.leader_ended()
            elif pid in self.helpers:
                self.helpers.pop(pid).ended(status)
            else:
                self.ending.orphan_ended()

    def _collect_orphan(self, ended: proc.Process) -> None:
        """Collect one that the job has left, and no other: a walk need not look at it again and again."""
        if ended.pid != self.leader and ended.pid not in self.helpers:
            with suppress(ChildProcessError):
                os.waitpid(ended.pid, os.WNOHANG)

    def _stopped_or_continued(self) -> None:
        """The leader was stopped or continued: at its start as asked for, by the daemon's word, or by another."""
        found = proc.look(self.leader)
        if found is None or self.ending.reason is not None:
            return
        if self.state == "starting":
            if self.request.get("stopped") and found.state in proc.STOPPED:
                self.tree.stopped_by_us.add((found.pid, found.started))
                self._runs()
        elif self.state == "running" and found.state == "T" and not self._stopped_by_others:
            self._stopped_by_others = True
            self._ahead.stands(time.monotonic())
            self.say(say="noticed", state="stopped")
        elif self.state == "running" and found.state not in "TtZX" and self._stopped_by_others:
            self._stopped_by_others = False
            self._ahead.runs(time.monotonic())
            self.say(say="noticed", state="running")
        elif self.state == "stopped" and not self.frozen_by_daemon and found.state not in "TtZX":
            self.state = "running"
            self._ahead.runs(time.monotonic())
            self.say(say="noticed", state="running")

    def _hear_report(self, line: socket.socket) -> None:
        """The job says that it is safe as it stands, saved or brought back; or that it began anew, and why.

        That is written down for the daemon, which may be gone, as this keeper may when it matters.
        """
        try:
            data = words.receive(line)
        except BlockingIOError:
            return
        if not data:
            self.post.hear_no_reports()
            return
        try:
            told = words.unpack(data)
        except words.WordError:
            return
        ago = told.get("ago")
        since = max(0.0, ago) if isinstance(ago, float) else 0.0
        ran: float | None = max(0.0, self._ahead.ran(time.monotonic()) - since)
        if told.get("say") == "anew":
            self._anew, ran = str(told.get("why"))[: words.LONGEST_REASON], None
        written = words.pack(ran=ran, anew=self._anew) + b"\n"
        with suppress(OSError):
            os.pwrite(self.post.saved, written.ljust(words.SAVED_SIZE, b"\0"), 0)
        self.say(say="saved")

    # -------------------------------------------------------------------------------- lines
    def say(self, **what: Any) -> None:
        """Tell the daemon, if there is one; a full or broken line is given up."""
        self.post.say(**what)

    def _hear(self, line: socket.socket) -> None:
        try:
            data = words.receive(line)
        except BlockingIOError:
            return
        if not data:
            self.post.hang_up(line.fileno())
            return
        try:
            asked = words.unpack(data)
        except words.WordError as error:
            words.send(line, words.pack(say="unknown", why=str(error)))
            return
        do = _VERBS.get(asked.get("do", ""))
        if do is None:
            words.send(
                line, words.pack(say="unknown", id=asked.get("id"), why=f"no such verb: {asked.get('do')}")
            )
            return
        do(self, asked)

    # -------------------------------------------------------------------------------- verbs
    def _stop(self, asked: dict[str, Any]) -> None:
        """Give notice, and stop everything after the delay."""
        if self.ending.begun:
            self.say(say="stopped", id=asked["id"], ok=False, ended=True, left=[])
            return
        if self.state == "stopped":
            self.say(say="stopped", id=asked["id"], ok=True, left=[], took=0.0)
            return
        notice, delay = self.request.get("notice"), float(asked.get("delay", 0.0))
        number = int(asked.get("signal") or signal.SIGTSTP)
        if notice and not asked.get("signal"):

            def then(status: int | None, output: str) -> None:
                self._stop_now(asked)

            self._help("notice", notice, delay or 1.0, then)
            return
        if number not in (signal.SIGSTOP, signal.SIGTSTP):
            self.tree.send(number)
        elif number == signal.SIGTSTP and delay > 0:
            self.tree.send(signal.SIGTSTP, catching_only=True)
        if delay > 0:
            self.after.append((time.monotonic() + delay, lambda: self._stop_now(asked)))
        else:
            self._stop_now(asked)

    def _stop_now(self, asked: dict[str, Any]) -> None:
        if self.ending.begun:
            self.say(say="stopped", id=asked["id"], ok=False, ended=True, left=[])
            return
        began, limit = time.monotonic(), float(asked.get("limit", 2.0))
        left = [] if self.frozen_by_daemon else named(self.tree.stop(limit))
        if left:
            self.tree.go_on(0.5)
        if not left:
            self.state = "stopped"
            self._ahead.stands(began)
            self.tell("suspend")
        took = time.monotonic() - began
        self.say(say="stopped", id=asked["id"], ok=not left, left=left, took=took)

    def _continue(self, asked: dict[str, Any]) -> None:
        self.continue_tree(asked.get("cores"))
        self.say(say="continued", id=asked["id"], ok=True, ended=self.ending.begun)

    def continue_tree(self, cores: list[int] | None = None) -> None:
        """Let everything go on that was stopped by the daemon's word."""
        if cores:
            self._bind(cores)
        if self.tree.stopped_by_us:
            self.tree.go_on(1.0)
        if self._stopped_by_others:
            self.tree.send(signal.SIGCONT)
            self._stopped_by_others = False
        if self.state == "stopped":
            self.state = "running"
            if not self.ending.begun:
                self.tell("resume")
        self._ahead.runs(time.monotonic())

    def _bind(self, cores: list[int]) -> None:
        """Bind every thread of the job to cores."""
        for each in self.tree.look():
            with suppress(OSError):
                for thread in os.listdir(f"/proc/{each.pid}/task"):
                    with suppress(OSError):
                        os.sched_setaffinity(int(thread), cores)

    def _kill(self, asked: dict[str, Any]) -> None:
        self.ending.begin(str(asked.get("why", "")), asked)

    def _signal(self, asked: dict[str, Any]) -> None:
        sent = self._send(int(asked["signal"]), leader_only=bool(asked.get("leader_only")))
        self.say(say="signalled", id=asked["id"], sent=sent)

    def _send(self, number: int, *, leader_only: bool) -> int:
        """Send a signal to the tree, or to its first process; return to how many."""
        if not leader_only:
            return self.tree.send(number)
        if self.post.status is not None:
            return 0
        os.kill(self.leader, number)  # it is ours, and not collected yet: no other has its number
        return 1

    def _warn(self, asked: dict[str, Any]) -> None:
        self._ahead.move(asked.get("ahead"), time.monotonic())
        self.say(say="will warn", id=asked["id"])

    def _checkpoint(self, asked: dict[str, Any]) -> None:
        command = self.request.get("checkpoint")
        if not command or self.ending.begun:
            why = "it has no checkpoint command" if not command else "it has ended"
            self.say(say="checkpointed", id=asked["id"], ok=False, why=why)
            return

        def then(status: int | None, output: str) -> None:
            why = "it took too long" if status is None else f"exit status {os.waitstatus_to_exitcode(status)}"
            ran = self._ahead.ran(time.monotonic())
            self.say(say="checkpointed", id=asked["id"], ok=status == 0, why=why, output=output, ran=ran)

        self._help("checkpoint", command, float(asked["limit"]), then)

    def _look(self, asked: dict[str, Any]) -> None:
        """Say how the job really stands: who stopped or continued it behind our back."""
        there = self.tree.look()
        stopped = bool(there) and all(each.state in proc.STOPPED for each in there)
        leader = next((each for each in there if each.pid == self.leader), None)
        self.say(
            say="looked",
            id=asked["id"],
            state=self.state,
            stopped=stopped,
            leader=leader.state if leader is not None else None,
            resident=sum(each.resident for each in there),
            processes=len(there),
        )

    def tell(self, *events: str, **environment: str) -> None:
        """Run what the owner is told by, if it wants to hear of one of these; the job does not wait for it."""
        command, wanted = self.request.get("tell"), self.request.get("tell_at", ())
        heard = [event for event in events if event in wanted]
        if not command or not heard:
            return
        self.telling += 1

        def then(status: int | None, output: str) -> None:
            self.telling -= 1
            if status != 0:
                why = output[-_LONGEST_UNTOLD:] or "the command that tells of it failed"
                self.untold = f"{heard[0]}: {why if status is not None else 'it took too long'}"
            self.ending.told()

        told = {"MAKEWAY_EVENT": heard[0], "MAKEWAY_AT": f"{time.time():.3f}", **environment}
        self._help("tell", command, TELL_LIMIT, then, **told)

    def _help(self, name: str, command: str, limit: float, then: Any, **environment: str) -> None:
        mine = {"MAKEWAY_LEADER": str(self.leader), "MAKEWAY_KEEPER": str(os.getpid()), **environment}
        try:
            helper = helpers.run(name, command, self.request, mine, limit, then)
        except OSError as error:
            then(127 << 8, f"it cannot be started: {error.strerror}")
        else:
            self.helpers[helper.pid] = helper


_VERBS = {
    "stop": Keeper._stop,
    "continue": Keeper._continue,
    "kill": Keeper._kill,
    "signal": Keeper._signal,
    "warn": Keeper._warn,
    "checkpoint": Keeper._checkpoint,
    "look": Keeper._look,
}
