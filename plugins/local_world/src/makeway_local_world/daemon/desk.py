"""Let other threads ask and tell the engine, one after another, between its steps.

The engine's thread is the process's main thread: time limits on plugins need its signals. Whoever asks hands over a
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
from makeway.worlds.events import Event
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


@attrs.define
class _Call:
    """Something to be done on the engine's thread."""

    work: Callable[[], Any]
    future: Future[Any]
    events: Sequence[Event] = ()
    """Fed before `work` is done, which then waits for the step."""


class Desk:
    """Where the engine's thread meets all others."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.lines: list[Line] = []
        """Lines of the record that the last turn wrote."""
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
        """Do what was asked for, and let the engine go one turn on."""
        told = self._do_calls()
        self.live.turn()
        if self.live.unwritten is not None:
            again = self.failing is not None and self.failing(self.live.why_unwritten)
            if again:
                self.live.turn(0.0)
        if self.live.unwritten is not None:
            for call in told:
                call.future.set_exception(Unwritten(self.live.why_unwritten, fed=True))
            return
        lines, self._fresh[:] = tuple(self._fresh), ()
        if lines:
            self.lines = list(lines)
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
                call.future.set_exception(Unwritten(self.live.why_unwritten, fed=False))
            else:
                self.live.feed(*call.events)
                told.append(call)

    def _answer(self, call: _Call) -> None:
        try:
            result = call.work()
        except Exception as error:
            if not isinstance(error, MakewayError):
                _log.exception("an answer could not be given")
            call.future.set_exception(error)
        else:
            call.future.set_result(result)

    def refusal(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Return job -> why the command about it was refused in the last turn."""
        wanted = set(job_ids)
        return {
            line.job: str(line.data.get("reason", ""))
            for line in self.lines
            if line.kind == "refused" and line.job in wanted
        }


__all__ = ["Desk", "Unwritten"]
