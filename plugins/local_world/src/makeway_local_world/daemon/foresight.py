"""Look ahead with a copy of the engine: it adopts what there is, and runs on in the simulated world.

It is unknown how long jobs will work; the copy takes it that each uses its whole time limit. So an instant found here
is the latest, unless something comes in between: "about", and "if ... uses its whole limit".
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import attrs

from makeway import vendors
from makeway.config import Config
from makeway.errors import MakewayError
from makeway.model import Check, Job, JobSpec, JobState, Seconds
from makeway.record import Decision, Line
from makeway.state import State
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_explain.story import Witness

MOST_STEPS = 20_000
"""Steps after which a copy stops looking."""
LONGEST = 2.0
"""Seconds of computing after which it stops looking."""
MONTH: Seconds = 31 * 86400.0
"""How far it looks ahead."""
STRIDE = 100
"""Steps after which it looks ten times more coarsely: priorities are worked out anew ten times less often.

A lab works them out every two seconds, which would be 43,200 steps to the end of a job that may run for a day.
"""
_PERIOD = "calc_period"
"""Setting of policies that work priorities out anew every so many seconds."""


@attrs.frozen(kw_only=True)
class Taken:
    """A job that makes way."""

    job: str
    how: str
    why: str
    at: Seconds


@attrs.frozen(kw_only=True)
class Foresight:
    """What will come of one job, as far as can be seen."""

    decision: Decision | None
    """The last attempt at once; None: it was not tried."""
    starts_at: Seconds | None
    """When it starts or goes on; None: not for as long as was looked."""
    checks: Sequence[Check] = ()
    """The policy's check list, if it has one."""
    takes: tuple[Taken, ...] = ()
    """What it displaces until it starts."""
    after: tuple[str, ...] = ()
    """Jobs that end, or reach their limit, right when it starts: what it waits for."""
    cut_short: bool = False
    """Whether looking was broken off before it started."""
    rejected: str = ""
    """Why it could never run here; empty: it could."""


class _Enough(MakewayError):  # noqa: N818  # no error: it has seen what it wanted
    """Breaks a run off."""


class _Further(MakewayError):  # noqa: N818  # no error: it goes on more coarsely
    """Breaks a run off where another goes on."""

    def __init__(self, state: State) -> None:
        super().__init__("it goes on more coarsely")
        self.state = state


def look(config: Config, state: State, job_id: str, new: Sequence[JobSpec] = ()) -> Foresight:
    """Run a copy on until a job has started or goes on.

    :param state: what the engine handed over.
    :param new: jobs that are submitted to the copy now.
    """
    quiet = attrs.evolve(
        config,
        policy=attrs.evolve(config.policy, decision_time_limit=0.0),
        scheduler=attrs.evolve(config.scheduler, rules=vendors.without_defects(config.scheduler.rules)),
        world=attrs.evolve(config.world, name="world/simulated", state=None, settings={}),
        job=(),
        action=(),
        outage=(),
    )
    watcher = _Watcher(job_id, any(_PERIOD in each for each in quiet.policy.settings.values()))
    witness = Witness(job_id)

    def stepped(engine: Engine) -> None:
        witness.stepped(engine)
        watcher.stepped(engine)

    def decided(engine: Engine, decision: Decision) -> None:
        witness.decided(engine, decision)
        watcher.decided(decision)

    options = Options(
        begin=state,
        until=state.at + MONTH,
        sink=watcher.heard,
        traced=lambda job: job.id == job_id,
        decided=decided,
        after_step=stepped,
    )
    cut_short, over = False, False
    while not over:
        try:
            replay(quiet, new, (), options)
            over = True
        except _Enough:
            cut_short, over = watcher.starts_at is None, True
        except _Further as further:
            quiet, new, options = _coarser(quiet), (), attrs.evolve(options, begin=further.state)
    checks = witness.checks.get(job_id)
    return Foresight(
        decision=watcher.first,
        starts_at=watcher.starts_at,
        checks=() if checks is None else checks[1],
        takes=tuple(watcher.takes),
        after=tuple(watcher.ended_now) if watcher.starts_at is not None and watcher.steps > 1 else (),
        cut_short=cut_short,
        rejected=watcher.rejected,
    )


def _coarser(config: Config) -> Config:
    """Return a configuration under which priorities are worked out anew ten times less often."""
    settings = {
        name: {**each, _PERIOD: 10.0 * each[_PERIOD]} if _PERIOD in each else each
        for name, each in config.policy.settings.items()
    }
    return attrs.evolve(config, policy=attrs.evolve(config.policy, settings=settings))


class _Watcher:
    """Takes note of what a copy does with one job."""

    def __init__(self, job_id: str, periodic: bool) -> None:
        """Begin.

        :param periodic: whether priorities are worked out anew every so many seconds.
        """
        self.job_id = job_id
        self._periodic = periodic
        self.first: Decision | None = None
        self.starts_at: Seconds | None = None
        self.takes: list[Taken] = []
        self.ended_now: list[str] = []
        self.rejected = ""
        self.steps = 0
        self._began: Seconds | None = None
        self._until = time.monotonic() + LONGEST

    def heard(self, line: Line) -> None:
        """Take note of a line of the record."""
        data = line.data
        if line.kind == "preempt" and data.get("preemptor") == self.job_id:
            why = str(data.get("why", ""))
            self.takes.append(Taken(job=line.job, how=str(data.get("mode")), why=why, at=line.at))
        elif line.kind == "rejected" and line.job == self.job_id:
            self.rejected = str(data.get("reason", ""))
        elif line.kind == "state" and line.job != self.job_id:
            state = data.get("state")
            if state in _ENDS and (not self.ended_now or line.at > self._ended_at):
                self.ended_now = []
            if state in _ENDS:
                if line.job not in self.ended_now:
                    self.ended_now.append(line.job)
                self._ended_at = line.at

    _ended_at: Seconds = 0.0

    def decided(self, decision: Decision) -> None:
        """Take note of what was decided about the job at once."""
        if self.first is None or decision.at == self.first.at:
            self.first = decision

    def stepped(self, engine: Engine) -> None:
        """Stop once the job runs, or enough has been looked at."""
        self.steps += 1
        job: Job | None = engine.ledger.jobs.get(self.job_id)
        if job is not None and job.state is JobState.RUNNING:
            self.starts_at = engine.ledger.now
            raise _Enough
        if self.rejected or self.steps > MOST_STEPS or time.monotonic() > self._until:
            raise _Enough
        if self._periodic and self.steps % STRIDE == 0:
            raise _Further(engine.save())


_ENDS = frozenset(state.value for state in JobState if state.ended) | {JobState.COMPLETING.value}
