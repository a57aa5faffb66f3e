"""Replay a small table of jobs and compare what happened with another small table.

::

    run = replay_table(
        '''
        job   partition  submit  cpus  run_time
        low   low             0     4        60
        high  hi             10     4        20
        ''',
        cluster=one_node(cpus=4),
        config=TIERS | {"preempt_mode": "suspend,gang"},
    )
    assert run.timeline == timeline('''
         0  low   start
        10  low   suspend  for high
        10  high  start
        30  high  complete
        30  low   resume
        80  low   complete
    ''')

Within one instant a timeline lists what stops or leaves before what starts, in the order of names: in which
order the engine came to do so is no part of the rule that a scenario shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway.clockwork import Clockwork
from makeway.config import Config
from makeway.hostlist import natural_key
from makeway.model import Cluster, JobSpec, JobState, PreemptMode, Seconds
from makeway.record import History, Line, Preemption, Recorder, to_json
from makeway.registry import Policies
from makeway.worlds.events import Action, Event, SendSignal
from makeway.worlds.watch import time_limit
from makeway_app.replay import Options, Run, answerable, drive, measures_of
from makeway_app.worlds.simulated import SimulatedWorld
from makeway_engine.engine import Engine
from makeway_testing import builders
from makeway_testing.builders import Machine, Settings, build_cluster
from makeway_testing.invariants import InvariantChecker

_BEGINNINGS = ("start", "resume")
_ENDS: Mapping[JobState, str] = {
    JobState.COMPLETED: "complete",
    JobState.FAILED: "fail",
    JobState.CANCELLED: "cancel",
    JobState.PREEMPTED: "preempted",
    JobState.TIMEOUT: "timeout",
    JobState.NODE_FAIL: "node_fail",
    JobState.OUT_OF_MEMORY: "out_of_memory",
}
Timeline = tuple[str, ...]
"""Lines such as ``10 low suspend for high``."""


@attrs.frozen
class Step:
    """One thing that happened to one job."""

    at: Seconds
    job: str
    word: str
    """start, resume, suspend, notice, leave, requeue, or how it ended: complete, timeout, preempted, ..."""
    because_of: str = ""

    def __str__(self) -> str:
        end = f" for {self.because_of}" if self.because_of else ""
        return f"{self.at:g} {self.job} {self.word}{end}"


@attrs.frozen(kw_only=True, eq=False)
class TableRun:
    """A replay that is over, with what tests ask of it."""

    run: Run
    specs: tuple[JobSpec, ...]
    lines: tuple[Line, ...]
    """The whole record."""
    signals: Timeline
    """What was sent to which job: ``10 low TERM``; those to the batch shell too end in ``all``."""
    checker: InvariantChecker

    @property
    def timeline(self) -> Timeline:
        """What happened, as `timeline` writes it."""
        return _listed(_steps(self.run))

    @property
    def engine(self) -> Engine:
        """The engine as the run left it."""
        return self.run.engine

    @property
    def record(self) -> str:
        """The record as it is written, one JSON line each."""
        return "".join(to_json(line) + "\n" for line in self.lines)

    @property
    def victims(self) -> tuple[str, ...]:
        """The jobs that had to make way, in order."""
        return tuple(entry.victim for entry in self.run.recorder.preemptions)

    def history(self, job: str) -> History:
        """Return what happened to `job`."""
        return self.run.recorder.histories[job]

    def state(self, job: str) -> JobState:
        """Return the state that `job` was left in."""
        history = self.history(job)
        return history.final_state or history.state

    def reason(self, job: str) -> str:
        """Return why `job` waits."""
        return self.history(job).job.reason

    def nodes(self, job: str) -> str:
        """Return where `job` ran last."""
        intervals = self.history(job).intervals
        held = [allocation for _, _, _, allocation, _ in intervals if allocation is not None]
        last = self.history(job).allocation or (held[-1] if held else None)
        return self.run.recorder.node_list(last.nodes) if last is not None else ""

    def starts(self, job: str) -> tuple[Seconds, ...]:
        """Return when `job` started, once per incarnation."""
        return tuple(s.at for s in _steps(self.run) if s.job == job and s.word == "start")

    def only(self, *jobs: str) -> Timeline:
        """Return the timeline of some jobs."""
        return _listed(step for step in _steps(self.run) if step.job in jobs)


def replay_table(
    jobs: str | Sequence[JobSpec],
    *,
    cluster: Machine | None = None,
    config: Settings | Config | None = None,
    commands: str = "",
    until: Seconds | None = None,
    plugins: Mapping[str, Any] | None = None,
    checked: bool = True,
    checker: InvariantChecker | None = None,
) -> TableRun:
    """Replay a table of jobs, with all invariants checked after every step.

    :param jobs: see `makeway_testing.builders.jobs`; or the jobs themselves.
    :param cluster: nodes; None: one node of 4 CPUs.
    :param config: flat settings (`makeway_testing.builders.config`), or a whole configuration.
    :param commands: what people and nodes do, a line each: ``10 suspend low``, ``5 drain n1``.
    :param until: stop at this instant; None: when nothing happens any more.
    :param plugins: plugins by name that need no installation.
    :param checked: False: without the invariants, where a defect is what the test is about.
    :param checker: checks the invariants; None: one that knows ``preempt/partition_prio``.
    :raises InvariantError: if what may never happen happened.
    """
    built = config if isinstance(config, Config) else builders.config(cluster, config)
    machine = build_cluster(built)
    specs = tuple(builders.jobs(jobs) if isinstance(jobs, str) else jobs)
    events = builders.commands(commands, machine)
    if checker is None:
        checker = InvariantChecker(events)
    lines: list[Line] = []
    options = Options(
        until=until, sink=lines.append, after_step=checker if checked else None, plugins=plugins or {}
    )
    with time_limit(built.policy.decision_time_limit):
        engine = _engine(built, machine, options)
        world = _Witness(specs, engine.clockwork, events)
        ended_at = drive(engine, world, options)
    run = Run(engine=engine, recorder=engine.recorder, ended_at=ended_at)
    if checked and until is None:
        checker.finish(run, specs)
    return TableRun(run=run, specs=specs, lines=tuple(lines), signals=tuple(world.signals), checker=checker)


def _engine(config: Config, cluster: Cluster, options: Options) -> Engine:
    policies = Policies(config, options.plugins)
    recorder = Recorder(cluster, options.sink, measures=measures_of(cluster, always=options.measures))
    with answerable(policies):
        return Engine(config, recorder, policies, options.clockwork)


class _Witness(SimulatedWorld):
    """A simulated world that remembers the signals sent."""

    def __init__(
        self,
        jobs: Iterable[JobSpec],
        clockwork: Clockwork,
        commands: Iterable[tuple[Seconds, Event]] = (),
    ) -> None:
        """Take over `jobs`, in order of submission."""
        super().__init__(jobs, clockwork, commands)
        self.signals: list[str] = []

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Perform `actions`."""
        for action in actions:
            if isinstance(action, SendSignal):
                to = "" if action.steps_only else " all"
                self.signals.append(f"{now:g} {action.job.id} {action.signal}{to}")
        super().perform(actions, now)


# ---------------------------------------------------------------------------------------- timelines
def timeline(text: str) -> Timeline:
    """Read a timeline as people write it: instant, job, word, and ``for`` which other."""
    steps = []
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        at, job, word, *rest = words
        if rest and (len(rest) != 2 or rest[0] != "for"):
            raise ValueError(f"got {line.strip()!r}; allowed: instant, job, word, and 'for' a job")
        steps.append(Step(float(at), job, word, rest[1] if rest else ""))
    return _listed(steps)


def _listed(steps: Iterable[Step]) -> Timeline:
    """Order by instant; within one, jobs by what they do first, and each job's steps as they came."""
    groups: dict[tuple[Seconds, str], list[Step]] = {}
    for step in steps:
        groups.setdefault((round(step.at, 6), step.job), []).append(step)
    ordered = sorted(groups.values(), key=_place)
    return tuple(str(step) for group in ordered for step in group)


def _place(group: Sequence[Step]) -> tuple[Seconds, bool, Any]:
    """1. instant, 2. what stops before what starts, 3. names."""
    first = group[0]
    return round(first.at, 6), first.word in _BEGINNINGS, natural_key(first.job)


def _steps(run: Run) -> list[Step]:
    """Turn the intervals of a run into steps."""
    steps: list[Step] = []
    for job_id, history in run.recorder.histories.items():
        mine = [entry for entry in run.recorder.preemptions if entry.victim == job_id]
        steps += _steps_of(job_id, history, mine)
    return steps


def _steps_of(job: str, history: History, preemptions: list[Preemption]) -> Iterator[Step]:
    told = {entry.at: entry for entry in preemptions}
    """By instant: a job makes way once at a time."""
    used = set()
    for at, before, state, until in _moves(history):
        word = _word(before, state)
        if not word or (word == "leave" and until == at):
            continue
        entry = told.get(at)
        if entry is not None and word not in _BEGINNINGS and at not in used:
            used.add(at)
            yield Step(at, job, word, entry.preemptor or "")
        else:
            yield Step(at, job, word)
    for at, entry in told.items():
        if at not in used and entry.mode is not PreemptMode.SUSPEND:
            yield Step(at, job, "notice", entry.preemptor or "")


def _moves(history: History) -> Iterator[tuple[Seconds, JobState, JobState, Seconds | None]]:
    """Yield each change of state: instant, from, to, and when the new state ended (None: it lasts)."""
    spans: list[tuple[JobState, Seconds, Seconds | None]] = [
        (state, start, end) for state, start, end, _, _ in history.intervals
    ]
    spans.append((history.state, history.since, None))
    before = JobState.PENDING
    for state, start, end in spans:
        if state is JobState.RUNNING and before in (JobState.RUNNING, JobState.COMPLETING):
            # It was requeued and started again at once: the record has no wait of no length.
            yield start, before, JobState.PENDING, start
            before = JobState.PENDING
        yield start, before, state, end
        before = state


def _word(before: JobState, state: JobState) -> str:
    if state is JobState.RUNNING:
        return "resume" if before is JobState.SUSPENDED else "start"
    if state is JobState.SUSPENDED:
        return "suspend"
    if state is JobState.COMPLETING:
        return "leave"
    if state is JobState.PENDING:
        return "requeue" if before is not JobState.PENDING else ""
    return _ENDS[state]
