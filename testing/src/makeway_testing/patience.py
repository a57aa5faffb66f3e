"""End runs that would never end, without checking anything."""

from __future__ import annotations

from collections.abc import Iterable

from makeway.errors import RunnerError
from makeway.model import JobSpec
from makeway_app.replay import Run
from makeway_engine.engine import Engine
from makeway_testing.invariants import InvariantChecker

MOST_STEPS = 5_000


class Patience(InvariantChecker):
    """Checks nothing, and ends a run that would never end."""

    def __call__(self, engine: Engine) -> None:
        """Count a step."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise endless(engine)

    def finish(self, run: Run, specs: Iterable[JobSpec] = ()) -> None:
        """Check nothing."""


def endless(engine: Engine) -> RunnerError:
    """Return the error for a run that takes too many steps."""
    counted = engine.recorder.metrics.preemptions
    return RunnerError(
        f"no end after {MOST_STEPS} steps: {counted} preemptions so far, at {engine.ledger.now:g} s"
    )
