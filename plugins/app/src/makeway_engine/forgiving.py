"""Let a run go on after a policy has raised: the error is blamed and written down, the job waits.

Replays end with the first error, so that authors see it. Live, jobs go on and end whatever a policy does. After
``world.failures.policy_errors`` errors in a row of one plugin no job is displaced any more until the configuration
is reloaded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from makeway.errors import MakewayError, OutOfTime, PolicyError
from makeway.model import Job
from makeway.record import Recorder
from makeway.registry import Policies
from makeway_engine.ledger import Ledger

T = TypeVar("T")
POLICY_ERROR = "PolicyError"
"""Reason of a job that waits since a policy raised when it was tried."""
_log = logging.getLogger("makeway")


class Forgiveness:
    """Catches what plugins raise, counts it, and says when it was too much."""

    def __init__(self, policies: Policies, recorder: Recorder, ledger: Ledger, most: int) -> None:
        """Be ready to forgive up to `most` errors in a row of one plugin; 0: any number."""
        self._policies = policies
        self._recorder = recorder
        self._ledger = ledger
        self._most = most
        self.on = False
        """Whether anything is forgiven; else the first error ends the run."""
        self.in_a_row: dict[str, int] = {}
        """Errors by plugin since it last answered."""
        self.guards: list[Callable[[], None]] = []
        """Called when forgiving begins, by those that do without until then."""
        self.given_up: PolicyError | None = None
        """The error that was one too many; None: there was none."""

    def begin(self) -> None:
        """Forgive from now on."""
        self.on = True
        for guard in self.guards:
            guard()

    def run(self, call: Callable[[], T], otherwise: T, job: Job | None = None) -> T:
        """Return what `call` returns; `otherwise`, if a plugin raised in it.

        :param job: the one that it was about.
        """
        try:
            return call()
        except (Exception, SystemExit, OutOfTime) as error:
            self._excuse(error, job)
            return otherwise

    def _excuse(self, error: BaseException, job: Job | None) -> None:
        """Write down what a plugin raised; raise again what is no plugin's fault."""
        blamed = error if isinstance(error, PolicyError) else None
        if blamed is None and not isinstance(error, MakewayError):
            blamed = self._policies.blamed(error)
        if blamed is None:
            raise error
        count = self.in_a_row[blamed.plugin] = self.in_a_row.get(blamed.plugin, 0) + 1
        about = blamed.job or (job.id if job is not None else "")
        self._recorder.note(
            "policy_error", about, self._ledger.now, plugin=blamed.plugin, hook=blamed.hook, why=str(blamed)
        )
        _log.error("%s", blamed)
        if self._most and count >= self._most and self.given_up is None:
            self._give_up(blamed, count)

    def _give_up(self, blamed: PolicyError, count: int) -> None:
        self.given_up = blamed
        self._recorder.note(
            "preemption_off",
            "",
            self._ledger.now,
            plugin=blamed.plugin,
            errors=count,
            rule="world.failures.policy_errors",
        )
        _log.error("after %d errors in a row no job is displaced any more until the next reload", count)

    def answered(self) -> None:
        """Take note that an attempt went through: the row of errors is broken."""
        self.in_a_row.clear()


class ForgivenSelector:
    """A selector whose notes of what was placed and given back never end a run that forgives."""

    def __init__(self, selector: Any, forgiveness: Forgiveness) -> None:
        self._selector = selector
        self._forgiveness = forgiveness
        # As long as nothing is forgiven its own methods are called, without a step between.
        self.placed: Callable[[Job], None] = selector.placed
        self.released: Callable[[Job], None] = selector.released
        self.suspended: Callable[[Job], None] = selector.suspended
        self.resumed: Callable[[Job], None] = selector.resumed
        if forgiveness.on:
            self._guard()
        else:
            forgiveness.guards.append(self._guard)

    def _guard(self) -> None:
        self.placed, self.released = self._forgiven(self.placed), self._forgiven(self.released)
        self.suspended, self.resumed = self._forgiven(self.suspended), self._forgiven(self.resumed)

    def _forgiven(self, call: Callable[[Job], None]) -> Callable[[Job], None]:
        return lambda job: self._forgiveness.run(lambda: call(job), None, job)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)
