"""Say what a world has to offer, and what it is given.

::

    events   ->  Engine.step(now, events) -> actions        no clock, no I/O, deterministic
    World        perform(actions)  begins them, never blocks for long
                 wait(until)       what happened; may come early, late, with nothing
                 survey()          what is really there: jobs, where, since when, in which state; nodes

A world is a plugin: its entry point is called ``world/NAME``, and its hook `makeway_world` returns what builds it.
Nothing in a policy knows which world it is in. docs/worlds.md has a complete one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.model import Allocation, Cluster, JobSpec, JobState, Seconds
from makeway.record import Line
from makeway.worlds.clock import Clock, LiveClock
from makeway.worlds.events import Action, Event

Moment = tuple[Seconds, Sequence[Event]]
"""An instant on the run's clock, and what has happened by then."""


# ------------------------------------------------------------------------------------- given
@attrs.frozen(kw_only=True, eq=False)
class State:
    """What a run hands to its world."""

    directory: Path
    """The state directory, which exists. A world keeps there what must outlive it, under names of its own."""
    clock: Clock = attrs.field(factory=LiveClock)
    """The run's clock, whose 0 is the start of the run, also after a restart. A world has no other clock, so that
    tests can stop it."""
    clockwork: Clockwork = attrs.field(factory=Clockwork)
    """The delays of the scheduler: kill wait, grace from SIGTSTP to SIGSTOP, and so on."""


# -------------------------------------------------------------------------------------- shown
@attrs.frozen(kw_only=True)
class Seen:
    """One job as its world sees it."""

    job_id: str
    state: JobState
    """RUNNING, SUSPENDED, COMPLETING, PENDING, or the end that it came to (COMPLETED, FAILED, CANCELLED).

    COMPLETING: it ended or was killed, and its nodes are not free yet; with one of the ends they are. PENDING: its
    start was asked for and still waits, or a queue of the world's own holds it. With an action under way, the state
    that the action leads to."""
    incarnation: int = 0
    """Which start it stems from; 0: it is not one of ours, or unknown."""
    ends_as: JobState | None = None
    """COMPLETING only: the end that it came to by itself; None: it was killed, or that is unknown."""
    nodes: NodeBits = 0
    """Where it is; 0: unknown, or it holds none."""
    allocation: Allocation | None = None
    """What it holds, for jobs that the engine does not know."""
    started_at: Seconds | None = None
    """On the run's clock; None: unknown."""
    ran: Seconds | None = None
    """Running time so far, without suspensions; None: unknown."""
    spec: JobSpec | None = None
    """What was submitted, for jobs that the engine does not know; None: it must be one that it knows."""


@attrs.frozen(kw_only=True)
class Survey:
    """What is really there."""

    at: Seconds
    """When the look was over, on the run's clock."""
    jobs: Mapping[str, Seen] = attrs.field(factory=dict)
    """By id. A job that ended stays listed at least until its end was reported; forgetting it is a lost event only if
    `complete` is not set."""
    nodes_down: NodeBits = 0
    nodes_drained: NodeBits = 0
    complete: bool = True
    """Whether a job that is not listed is certainly not there; False: part of the world could not be looked at."""
    never_started: frozenset[tuple[str, int]] = frozenset()
    """Job and incarnation of starts that were asked for and will certainly never happen."""


# ------------------------------------------------------------------------------------ offered
class World(Protocol):
    """Performs actions and reports events.

    All methods are called from one thread. `perform` is called right after the decision, and `wait` next.
    A world may offer more, which the live loop uses where it is there:

    - ``wake()``: make a `wait` that is under way return soon; called from other threads.
    - ``close()``: the run is over. Jobs go on unless the world's settings say otherwise.
    """

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Begin `actions`, in order; never block for long, never raise for what a node or a job does.

        What cannot be done is reported as `makeway.worlds.events.Failed` by a later `wait`. Nothing that follows from
        the actions is reported before `wait`.

        :param now: the instant of the decision.
        """

    def wait(self, until: Seconds | None) -> Moment | None:
        """Wait for what happens next, until `until` if nothing does.

        It may return early without any event, and late, as real clocks do. The instant never goes back.

        :param until: None: the engine has nothing planned. An instant that has passed: return at once.
        :returns: the time and what has happened by then; None: nothing will ever happen again (only worlds that
            know the future say so).
        """

    def survey(self) -> Survey:
        """Look at what is really there; called at the start, after a restart, after sleeps, and now and then."""


WorldFactory = Callable[[Cluster, Any, State], World]
"""Builds a world: cluster, settings (of the class that the plugin's `makeway_settings` names, else None), state."""


# ------------------------------------------------------------------------------------ journal
@attrs.frozen(kw_only=True, eq=False)
class Step:
    """One step of the engine, as it is written down before anything of it is performed."""

    now: Seconds
    wall: float
    """The same instant as Unix time."""
    events: Sequence[Event]
    actions: Sequence[Action]
    lines: Sequence[Line]
    """Lines of the record that arose in it."""
    uptime: tuple[str, float] = ("", 0.0)
    """The same instant by the clock of the machine's boot (`makeway.worlds.clock.uptime`), which no one sets."""


class Journal(Protocol):
    """Writes steps down, each whole or not at all."""

    def write(self, step: Step) -> None:
        """Write a step; when it returns, the step survives a crash.

        :raises JournalError: it could not be written. Nothing of the step may be performed then.
        """
