"""Do what the world is told, and hear what becomes of it: one thread that owns all lines to keepers.

It never waits for a job: it asks keepers and goes on. What it learns goes to the world as
`makeway_local_world.processes.news`.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import os
import queue
import selectors
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from makeway.model import JobState
from makeway.worlds.events import Action, Checkpoint, Kill, Resume, SendSignal, Start, Suspend
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.processes import news
from makeway_local_world.processes.case import Case
from makeway_local_world.processes.ends import end_of_plain, failure_text
from makeway_local_world.processes.finding import LOOK_AGAIN, MOST_TRIES, Finding
from makeway_local_world.processes.hindering import HindranceWatch
from makeway_local_world.processes.memory import MemoryWatch
from makeway_local_world.processes.news import News
from makeway_local_world.processes.nursing import Nursery
from makeway_local_world.processes.orders import Orders
from makeway_local_world.processes.rundir import Fate, Found, Key, RunDirectory, keep_ends
from makeway_local_world.processes.site import Site
from makeway_local_world.processes.verbs import Verbs

_SWEEP = 0.1
"""Seconds for which what is to be taken away waits for more of it."""
_PATIENCE = 1
"""How often a stopped job may be continued by its user before it goes back to the queue."""
_log = logging.getLogger("makeway")


class Hand:
    """Holds on to the keepers of this state directory."""

    def __init__(self, site: Site, tell: Callable[[News], None]) -> None:
        """Begin without any; `finding` looks for those that are there, `begin` starts the thread.

        :param tell: called from the thread with each piece of news.
        """
        self.site = site
        self.tell = tell
        self.cases: dict[Key, Case] = {}
        self.unreadable: set[Key] = set()
        """Incarnations whose state is unknown: their files are of another version, or damaged."""
        self.nursery = Nursery()
        self.orders = Orders(self._begin, self._refuse)
        self.batch: list[Action] = []
        """The actions that were ordered together with the one that is begun."""
        self.finding = Finding(self)
        self.verbs = Verbs(self)
        self._memory = MemoryWatch(self, self.verbs)
        self._hindrances = HindranceWatch(self)
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._live, name="makeway-hand", daemon=True)
        self._over = False
        self._sweeper = ThreadPoolExecutor(1, "makeway-sweep")
        self.ends: dict[Key, dict[str, Any]] = {}
        """How incarnations ended that are not forgotten yet."""
        self._to_sweep: list[Key] = []
        """Incarnations of which the rest is to be taken away soon."""
        self._swept: dict[Key, Future[None]] = {}
        """Incarnations of which the rest is being taken away."""

    # ------------------------------------------------------------------------------- asked
    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def order(self, actions: list[Action]) -> None:
        """Have actions performed; returns at once."""

        def take() -> None:
            self.batch = actions
            for action in actions:
                self.orders.add(action)

        self.do(take)

    def do(self, what: Callable[[], None]) -> None:
        """Have something called by the thread."""
        self._inbox.put(what)
        with contextlib.suppress(BlockingIOError):
            os.write(self._woken, b"x")

    def settled(self, limit: float) -> bool:
        """Wait until everything ordered so far is done and told, at most `limit` seconds of the computer's clock."""
        deadline = time.monotonic() + limit
        while True:
            answer = threading.Event()
            found: list[bool] = []

            def look(found: list[bool] = found, answer: threading.Event = answer) -> None:
                found.append(not len(self.orders))
                answer.set()

            self.do(look)
            if not answer.wait(max(0.0, deadline - time.monotonic())):
                return False
            if found[0]:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)

    def look_around(self) -> None:
        """Ask all keepers how their jobs really stand; what differs becomes news."""
        for case in list(self.cases.values()):
            if case.state in ("running", "stopped") and self.orders.under_way(case.key[0]) is None:
                case.ask("look", id=0)

    def close(self) -> None:
        """End the thread; jobs go on, held by their keepers."""
        if not self._thread.is_alive():
            return

        def end() -> None:
            self._sweep_now()
            self._over = True

        self.do(end)
        self._thread.join(10.0)
        self._sweeper.shutdown()
        for case in self.cases.values():
            case.close()
        self.nursery.close()
        self._selector.close()
        os.close(self._wake)
        os.close(self._woken)

    # ----------------------------------------------------------------------------- the thread
    def _live(self) -> None:
        while not self._over:
            patience = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None
            for key, _ in self._selector.select(patience):
                self._guarded(key.data or self._drain)
            while True:
                try:
                    what = self._inbox.get_nowait()
                except queue.Empty:
                    break
                self._guarded(what)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                self._guarded(heapq.heappop(self._timers)[2])

    @staticmethod
    def _guarded(what: Callable[[], None]) -> None:
        """Call something; an error is written down, and the others go on."""
        try:
            what()
        except Exception:
            _log.exception("the local world goes on after an error of its own")

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 65536)

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Have something called after so many seconds."""
        self._order += 1
        heapq.heappush(self._timers, (time.monotonic() + seconds, self._order, what))

    # ------------------------------------------------------------------------------- starting
    def _begin(self, action: Action) -> None:
        """Perform an action; its outcome comes by the line, or at once."""
        key = action.job.id, action.incarnation
        case = self.cases.get(key)
        if isinstance(action, Start):
            self._begin_start(action, key, case)
        elif case is None:
            self._begin_without(action, key)
        elif isinstance(action, Kill):
            self.verbs.kill(case, action)
        elif isinstance(action, Suspend):
            self.verbs.suspend(case, action)
        elif isinstance(action, Resume):
            self.verbs.go_on(case, action)
        elif isinstance(action, SendSignal):
            self.verbs.signal(case, action)
        elif isinstance(action, Checkpoint):
            self.verbs.checkpoint(case, action)

    def _begin_without(self, action: Action, key: Key) -> None:
        """The incarnation has ended, which the engine will hear or has heard."""
        if isinstance(action, Checkpoint):
            self.refused(key, action, "it has ended")
            return
        if isinstance(action, Kill):
            self.tell(news.Over(key, None))
        self.orders.settle(action.serial, ok=True)

    def _refuse(self, action: Action, why: str) -> None:
        key = action.job.id, action.incarnation
        if isinstance(action, Kill):
            self.tell(news.Over(key, None))
        self.tell(news.Refused(key, action, why))

    def refused(self, key: Key, action: Action, why: str, *, retry: bool = True) -> None:
        """Say that an action was not performed."""
        self.tell(news.Refused(key, action, why, retry))
        self.orders.settle(action.serial, ok=False)

    def done(self, key: Key, action: Action) -> None:
        """Say that an action was performed."""
        self.tell(news.Done(key, action.serial))
        self.orders.settle(action.serial, ok=True)

    def _begin_start(self, action: Start, key: Key, case: Case | None) -> None:
        place = RunDirectory(self.site.directory, key)
        if key in self._to_sweep:
            self._sweep_now()
        if key in self._swept:  # it was refused before
            self._swept[key].result()
        if key in self.unreadable:
            self.refused(key, action, f"{place.path} cannot be read", retry=False)
            return
        if case is not None or (look := place.look()).fate in (Fate.ENDED, Fate.LOST):
            self.orders.settle(action.serial, ok=True)  # it was performed before: once is enough
            return
        if look.fate is Fate.ALIVE:
            self.finding.adopt(place, look)
            self.orders.settle(action.serial, ok=True)
            return
        case = self.cases[key] = Case(key=key, place=place, start=action)
        self._launch(case)

    def _launch(self, case: Case) -> None:
        """Have a keeper forked."""
        action = case.start
        assert action is not None
        case.tries += 1
        try:
            mandate, request, case.gpus = self.site.request(action, self.cases.values())
            directory = case.place.make()
            self.site.note_held(action)
            try:
                lock = case.place.take_lock(directory)
                if lock is None:  # the last one who tried is about to give up
                    self.later(LOOK_AGAIN, lambda: self.gone(case))
                    return
                try:
                    case.line = self.nursery.start(lock, mandate, request, directory)
                finally:
                    os.close(lock)
            finally:
                os.close(directory)
        except LookupError as error:
            self.let_go(case)
            case.place.close()
            retry = not isinstance(error, KeyError)
            self.refused(case.key, action, str(error.args[0]) if error.args else str(error), retry=retry)
            return
        except OSError as error:
            self.let_go(case)
            case.place.close()
            self.refused(case.key, action, f"no keeper can be started: {error.strerror or error}")
            return
        case.line.setblocking(False)
        self.watch(case)
        self.verbs.watch_start(case)

    def watch(self, case: Case) -> None:
        self._memory.begin()
        self._hindrances.begin()
        if case.line is not None:
            self._selector.register(case.line, selectors.EVENT_READ, lambda: self._hear(case))
        if case.handle >= 0:
            self._selector.register(case.handle, selectors.EVENT_READ, lambda: self.gone(case))

    def _unwatch_line(self, case: Case) -> None:
        if case.line is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(case.line)
            case.line.close()
            case.line = None

    def let_go(self, case: Case) -> None:
        """Let go of an incarnation that is over."""
        self._unwatch_line(case)
        if case.handle >= 0:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(case.handle)
        case.close()
        self.cases.pop(case.key, None)

    # ------------------------------------------------------------------------------- hearing
    def _hear(self, case: Case) -> None:
        said = case.hear()
        for told in said or ():
            self._heed(case, told)
        if said is None:
            self._unwatch_line(case)
            if case.handle < 0:
                self.gone(case)
            else:
                self.later(0.5, lambda: self.call_again(case))

    def call_again(self, case: Case) -> None:
        """Call a keeper that has hung up and lives: what it was asked has no answer."""
        if case.key not in self.cases or case.line is not None or case.keeper_has_ended():
            return
        case.line = case.place.call()
        if case.line is None:
            self.later(0.5, lambda: self.call_again(case))
            return
        case.line.setblocking(False)
        self._selector.register(case.line, selectors.EVENT_READ, lambda: self._hear(case))
        for serial in list(case.asked):
            action = case.asked.pop(serial)
            if isinstance(action, Kill):
                self.verbs.kill(case, action)
            else:
                self.refused(case.key, action, "the line to its keeper broke")

    def _heed(self, case: Case, told: dict[str, Any]) -> None:
        """Take note of one word of a keeper."""
        say = told.get("say")
        if say == "started":
            case.learn()
            if case.handle >= 0:
                with contextlib.suppress(KeyError):  # it is watched already
                    self._selector.register(case.handle, selectors.EVENT_READ, lambda: self.gone(case))
        elif say == "runs":
            case.state = told["state"]
            self._hindrances.begin()
            if case.start is not None:
                self._began(case, case.start)
        elif say == "failed":
            case.failure = told
        elif say == "hello":
            self.finding.greeted(case, told)
        elif say == "noticed":
            self._notice(case, told["state"])
        elif say == "saved":
            self.finding.saves(case.key, case.place)
        elif say == "stuck":
            self.verbs.stuck(case, told)
        else:
            self.verbs.answered(case, told)

    def _began(self, case: Case, action: Start) -> None:
        case.start = None
        self.tell(news.Began(case.key, self.site.clock.now(), case.obstacle))
        self.orders.settle(action.serial, ok=True)

    def _notice(self, case: Case, state: str) -> None:
        """Another than the daemon stopped or continued the job.

        One that was stopped by a signal keeps its CPUs, as in Slurm: only the daemon suspends.
        """
        by_itself, case.stopped_by_others = case.stopped_by_others, state == "stopped"
        if case.stopped_by_others or by_itself:
            return
        case.continued_by_others += 1
        case.state = "running"
        if case.continued_by_others > _PATIENCE and case.requeueable and not case.killed:
            self.verbs.send_back(case, "its user continued it again while others run in its place")
            return
        self.tell(news.Seen(case.key, JobState.RUNNING, "a signal of somebody else's"))

    # -------------------------------------------------------------------------------- ending
    def gone(self, case: Case) -> None:
        """The keeper has ended, or will never be there: the files say what became of the job."""
        if case.key not in self.cases:
            return
        while (said := case.hear()) is not None and said:
            for told in said:
                self._heed(case, told)
        if case.dumped:
            self.finding.saves(case.key, case.place)
        look = case.place.look()
        if look.fate is Fate.ALIVE:
            if case.line is None and case.handle >= 0 and not case.keeper_has_ended():
                return  # the handle will say so
            self.later(LOOK_AGAIN, lambda: self.gone(case))
            return
        if (
            case.cgroup is not None and not case.cgroup.empty()
        ):  # the owner had no right to kill it, or no time
            case.cgroup.kill()
            self.later(LOOK_AGAIN, lambda: self.gone(case))
            return
        if look.fate is Fate.NEVER:
            self._never_started(case)
        elif look.fate is Fate.ENDED and look.exit is not None:
            self._ended(case, look, look.exit)
        else:
            self._lost(case, look)

    def _never_started(self, case: Case) -> None:
        if case.start is None:
            self.let_go(case)
            case.place.close()
            self.tell(news.Lost(case.key, "its keeper never began", self.site.settings.keeper_lost))
            self._settle_rest(case)
        elif case.failure is None and case.tries < MOST_TRIES:
            self._unwatch_line(case)
            self._launch(case)
        else:
            self._start_failed(case, failure_text(case.failure) if case.failure else "its nursery was killed")

    def _start_failed(self, case: Case, why: str) -> None:
        action = case.start
        assert action is not None
        self.let_go(case)
        case.place.close()
        self.refused(case.key, action, why)

    def _ended(self, case: Case, look: Found, told: dict[str, Any]) -> None:
        end = end_of_plain(told)
        if case.start is not None and end.failed:
            self._start_failed(case, end.failed)
            return
        if case.start is not None:  # it began, and ended before it was heard of
            self._began(case, case.start)
        self.let_go(case)
        self.ends[case.key] = told
        self.tell(self.finding.what_became_of(look))
        self._settle_rest(case)

    def _lost(self, case: Case, look: Found) -> None:
        why, rule = self.finding.lose(look, case.forced)
        if case.start is not None:  # it may have begun, so that this incarnation is never started again
            self._began(case, case.start)
        self.let_go(case)
        self.tell(news.Lost(case.key, why, rule))
        self._settle_rest(case)

    def _settle_rest(self, case: Case) -> None:
        """Settle what was asked of an incarnation that is over: it stands still, and it is gone."""
        action = self.orders.under_way(case.key[0])
        if action is None or action.incarnation != case.key[1]:
            return
        if isinstance(action, Checkpoint):
            self.refused(case.key, action, "it has ended")
        else:
            self.orders.settle(action.serial, ok=True)

    def sweep(self, keys: list[Key]) -> None:
        """Have `forget` done while starts go on, which do not wait for the disk."""
        if not self._to_sweep:
            self.later(_SWEEP, self._sweep_now)
        self._to_sweep += keys

    def _sweep_now(self) -> None:
        keys, self._to_sweep = self._to_sweep, []
        self._swept = {key: future for key, future in self._swept.items() if not future.done()}
        future = self._sweeper.submit(self._guarded, lambda: self.forget(keys))
        self._swept |= dict.fromkeys(keys, future)

    def forget(self, keys: list[Key]) -> None:
        """Take away what is left of incarnations whose end is in the journal."""
        told = {key: self.ends.pop(key, None) for key in keys}
        keep_ends(self.site.directory, {key: end for key, end in told.items() if end is not None})
        for key in keys:
            path = self.site.cgroups.path_of(*key)
            if path is not None:
                Cgroup(path).remove()
            RunDirectory(self.site.directory, key).close()
