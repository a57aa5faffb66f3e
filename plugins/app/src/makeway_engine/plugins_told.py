"""Tell plugins of jobs that they did not see come, each by what one of its name remembered."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from makeway.errors import ConfigError, MakewayError, Problem
from makeway.model import (
    ClusterView,
    Gang,
    GangOrder,
    Job,
    JobState,
    Selector,
    SuspendedBy,
)
from makeway.registry import guarded
from makeway.state import State
from makeway_engine.ledger import Ledger
from makeway_engine.parts import Parts
from makeway_engine.standing import or_else

_SUSPENDED = JobState.SUSPENDED


@contextlib.contextmanager
def reading(source: str, where: str) -> Iterator[None]:
    """Say of memory that cannot be read that it cannot."""
    try:
        yield
    except MakewayError:
        raise
    except Exception as error:  # whatever comes of a file that a person has changed
        text = (
            f"it cannot be read ({type(error).__name__}: {error}); leave it out to begin from the jobs alone"
        )
        raise ConfigError(source, [Problem(where, text)]) from error


class PluginsTold:
    """Gives plugins what others of their names handed over, or tells them of the jobs."""

    def __init__(self, engine: Parts, state: State, source: str, *, same: bool) -> None:
        """Be ready to tell them.

        :param same: whether configuration and cluster are those under which the state came about.
        """
        self._engine = engine
        self._ledger = engine.ledger
        self._state = state
        self._source = source
        self._same = same

    def tell(self, active: Sequence[Job], leaving: Sequence[Job]) -> Sequence[GangOrder]:
        """Tell all of them; return what the arbiter orders."""
        memory, policies = self._state.memory, self._engine.policies
        with reading(self._source, "memory.policies"):
            policies.restore(memory.get("policies") or {}, self._ledger)
        selector = memory.get("selector") if self._same else None
        self._tell_selector(active, _of_plugin(selector, policies.who("makeway_selector")))
        self._tell_prioritizer(_of_plugin(memory.get("priorities"), policies.who("makeway_priority")))
        if self._engine.gang is None:
            return ()
        seen = [[job for job in jobs if job.spec.het_id is None] for jobs in (active, leaving)]
        return self._tell_gang(seen[0], seen[1], _of_plugin(memory.get("gang"), policies.who("makeway_gang")))

    def _tell_prioritizer(self, memory: Mapping[str, Any] | None) -> None:
        restore = getattr(self._engine.transitions.priorities.prioritizer, "restore", None)
        if memory is not None and restore is not None:
            with reading(self._source, "memory.priorities"):
                restore(memory, self._ledger)

    def _tell_selector(self, active: Sequence[Job], memory: Mapping[str, Any] | None) -> None:
        selector, ledger = self._engine.selector, self._ledger
        restore = getattr(selector, "restore", None)
        if restore is None:
            restore = functools.partial(told_of_starts, selector)
        call = functools.partial(restore, active, memory, ledger)
        if memory is not None:
            with reading(self._source, "memory.selector"):
                call()
        else:
            guarded(self._engine.policies, "makeway_selector", None, call)

    def _tell_gang(
        self, active: Sequence[Job], leaving: Sequence[Job], memory: Mapping[str, Any] | None
    ) -> Sequence[GangOrder]:
        gang, ledger = self._engine.gang, self._ledger
        assert gang is not None
        restore = getattr(gang, "restore", None)
        if restore is None:
            restore = functools.partial(told_of_starts_of_gang, gang)
        call = functools.partial(restore, active, leaving, memory, ledger)
        if memory is None:
            return guarded(self._engine.policies, "makeway_gang", None, call) or ()
        with reading(self._source, "memory.gang"):
            return call() or ()


def told_of_starts(selector: Selector, active: Sequence[Job], memory: object, view: ClusterView) -> None:
    """Tell a selector that knows nothing of adoption what has happened, in order."""
    del memory, view
    for job in active:
        selector.placed(job)
    for job in sorted(active, key=lambda job: job.suspended_at or 0.0):
        if job.state is _SUSPENDED:
            selector.suspended(job)


def told_of_starts_of_gang(
    gang: Gang, active: Sequence[Job], leaving: Sequence[Job], memory: object, ledger: Ledger
) -> list[GangOrder]:
    """Tell an arbiter that knows nothing of adoption of the starts, in order, each at its instant.

    First of those that are leaving their nodes, whose end it has not heard of yet, and of those that run: so they take
    their places before those that wait for one. It does not hear of jobs that a person suspended: it was told that
    they had ended.
    """
    del memory
    orders: list[GangOrder] = []
    now = ledger.now
    for job in sorted((*leaving, *active), key=lambda job: job.state is _SUSPENDED):
        if job.suspended_by is not SuspendedBy.ADMIN:
            ledger.now = or_else(job.started_at, now)
            orders += gang.started(job, ledger)
    ledger.now = now
    return orders


def _of_plugin(told: Any, plugin: str) -> Mapping[str, Any] | None:
    """Return what a plugin of this name handed over; None: it was another, or none."""
    if not isinstance(told, Mapping) or told.get("plugin") != plugin:
        return None
    memory = told.get("memory")
    return memory if isinstance(memory, Mapping) and memory else None
