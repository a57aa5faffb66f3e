"""Let other threads ask and tell the engine, one after another, between its steps.

The engine's thread is the process's main thread: time limits on plugins need its signals. A caller hands over a
function, which runs there between two steps, and gets its result as a future. What changes something feeds events,
and is answered after the step that wrote them down.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import attrs

from makeway.errors import MakewayError
from makeway.record import Line
from makeway.worlds.events import Command, Event, Submitted
from makeway_engine.engine import Engine
from makeway_live.drive import Live

T = TypeVar("T")
MOST_FAILED = 5
"""Turns that may fail one after another before the daemon gives up; jobs go on without it."""
_log = logging.getLogger("makeway")


class Unwritten(MakewayError):  # noqa: N818  # an answer, not a fault
    """What was asked for could not be written down: the disk is full, or the journal cannot be written."""

    def __init__(self, why: str, *, fed: bool) -> None:
        self.fed = fed
        """Whether the engine has heard of it, and will do it as soon as it can be written down."""
        more = "; it is done as soon as it can be written down" if fed else ""
        super().__init__(f"{why}{more}")


class Blamed(MakewayError):  # noqa: N818  # an answer, not a fault
    """A request that makes a turn of the engine fail; it alone is refused."""

    def __init__(self, error: Exception) -> None:
        what = f"{type(error).__name__}: {str(error)[:200]}"
        super().__init__(f"refused, since it makes the daemon stumble; please report it: {what}")


@attrs.define
class _Call:
    """Something to be done on the engine's thread."""

    work: Callable[[], Any]
    future: Future[Any]
    events: Sequence[Event] = ()
    """Fed before `work` is done, which then waits for the step."""

    def answer(self, result: Any) -> None:
        """Give what was asked for, unless nothing waits for it any more."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Say why it was not done, unless nothing waits for that any more."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class Desk:
    """Where the engine's thread meets all others."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.lines: list[Line] = []
        """Lines of the record that the last turn wrote."""
        self._refused: list[tuple[Command, str]] = []
        """Commands that the last turn refused, and why."""
        self.after_turn: list[Callable[[Sequence[Line]], None]] = []
        """Called on the engine's thread after each turn that wrote a step, with its lines."""
        self.failing: Callable[[str], bool] | None = None
        """Called when a step cannot be written, with the reason; says whether to try again at once."""
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._stopping = False
        self._fresh: list[Line] = []
        live.engine.recorder.tee(self._fresh.append)

    @property
    def engine(self) -> Engine:
        """The engine; another one after a reload."""
        return self.live.engine

    @property
    def step(self) -> int:
        """Number of the last step that was written down."""
        return int(getattr(self.live.journal, "step", 0))

    # ------------------------------------------------------------------- from any thread
    def ask(self, work: Callable[[], T]) -> Future[T]:
        """Have `work` done on the engine's thread, between two steps."""
        return self._put(_Call(work, Future()))

    def tell(self, events: Sequence[Event], work: Callable[[], T]) -> Future[T]:
        """Feed `events`, and have `work` done after the step that wrote them down.

        The future raises `Unwritten` if the step could not be written.
        """
        return self._put(_Call(work, Future(), tuple(events)))

    def _put(self, call: _Call) -> Future[Any]:
        self._calls.put(call)
        self.live.feed()
        return call.future

    def stop(self) -> None:
        """Have `run` return soon; called from any thread, and from handlers of signals."""
        self._stopping = True
        self.live.feed()

    # ---------------------------------------------------------------- on the engine's thread
    def run(self) -> None:
        """Turn until `stop`.

        A turn that fails since the world or a plugin did what it may not is logged, and the next one goes on: what is
        really there comes out in a survey. If it fails again and again, the error is raised.
        """
        failed = 0
        while not self._stopping:
            try:
                self.turn()
                failed = 0
            except Exception:
                failed += 1
                _log.exception("a turn failed")
                if failed >= MOST_FAILED:
                    raise

    def turn(self) -> None:
        """Do what was asked for, and let the engine go one turn on.

        A turn that fails on what was asked for is gone through again, one call after another: the one that makes
        it fail is refused, and the others are done.
        """
        told = self._do_calls()
        try:
            self._go_on(told)
        except Exception as error:
            if not told:
                raise
            _log.exception("a turn failed on what was asked for")
            if len(told) == 1:
                self._refuse(told[0], error)
                return
            for call in told:
                self._alone(call)

    def _alone(self, call: _Call) -> None:
        """Feed the events of one call again, and answer it."""
        self.live.feed(*call.events)
        try:
            self._go_on([call])
        except Exception as error:
            _log.exception("it fails on this call")
            self._refuse(call, error)

    def _refuse(self, call: _Call, error: Exception) -> None:
        """Take the jobs of a call out again, and say why."""
        jobs = [event.spec.id for event in call.events if isinstance(event, Submitted)]
        call.fail(Blamed(error))
        self.live.feed(*(Command("cancel", job_id) for job_id in jobs))

    def _go_on(self, told: Sequence[_Call]) -> None:
        """Let the engine go one turn on, and answer what it was about."""
        self.live.turn()
        if self.live.unwritten is not None:
            again = self.failing is not None and self.failing(self.live.why_unwritten)
            if again:
                self.live.turn(0.0)
        if self.live.unwritten is not None:
            for call in told:
                call.fail(Unwritten(self.live.why_unwritten, fed=True))
            return
        lines, self._fresh[:] = tuple(self._fresh), ()
        refused = self.engine.recorder.refusals
        self._refused, refused[:] = [(command, why) for _, command, why in refused], []
        self.lines = list(lines)
        if lines:
            for observer in self.after_turn:
                observer(lines)
        for call in told:
            self._answer(call)

    def _do_calls(self) -> list[_Call]:
        """Do what needs no step; feed the events of the rest, and return it."""
        told: list[_Call] = []
        while True:
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                return told
            if not call.events:
                self._answer(call)
            elif self.live.unwritten is not None:
                call.fail(Unwritten(self.live.why_unwritten, fed=False))
            else:
                self.live.feed(*call.events)
                told.append(call)

    def _answer(self, call: _Call) -> None:
        try:
            result = call.work()
        except Exception as error:
            if not isinstance(error, MakewayError):
                _log.exception("an answer could not be given")
            call.fail(error)
        else:
            call.answer(result)

    def refusal(self, commands: Sequence[Command]) -> dict[str, str]:
        """Return job -> why one of these very commands, not their equals, was refused in the last turn."""
        wanted = set(map(id, commands))
        return {command.job_id: why for command, why in self._refused if id(command) in wanted}
