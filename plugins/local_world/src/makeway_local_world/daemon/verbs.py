"""Turn what people ask for into commands for the engine, as far as they may."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection
from typing import Any

import attrs

from makeway.errors import nearest
from makeway.model import Job, JobState, SuspendedBy
from makeway.worlds.events import Command
from makeway_engine.engine import Engine
from makeway_local_world.daemon.people import Rules
from makeway_local_world.requests import AFTER, HOLD, parse_after, parse_signal, shown_of

PLAIN = ("suspend", "resume", "requeue", "cancel", "checkpoint", "hold", "release")
STATES = ("pending", "running", "suspended")
"""States by which jobs can be meant."""
VERBS = (*PLAIN, "restore", "signal", "start", "top", "update")
_NUMBER = re.compile(r"-?[0-9]{1,15}")
UPDATES = ("begin", "dependency", "gpus", "mem", "name", "nice", "partition", "priority", "qos", "time")
_WORDS = {"time": "time_limit", "mem": "memory_mb"}
"""Field of an update -> what the engine calls it, where that is something else."""
_LARGEST = {"gpus": 100_000, "mem": 2**33}
_LONGEST_NAME = 255
LONGEST_UPDATE = 4000
"""Bytes of a command that a waiting job is given; a longer one takes storage that only a submission is asked for."""


class Unknown(Exception):  # noqa: N818  # an answer, not a fault
    """A job that is not there."""


@attrs.frozen(kw_only=True)
class Order:
    """What one person asks for."""

    verb: str
    jobs: tuple[str, ...] = ()
    """Ids of jobs and of arrays."""
    user: str | None = None
    """Whose jobs are meant; None: `jobs` names them."""
    everything: bool = False
    """Whether all jobs are meant that the person may change."""
    partition: str | None = None
    """In which partition the jobs are that are meant; a job that waits for several is in each."""
    name: str | None = None
    """The name of the jobs that are meant."""
    state: str | None = None
    """The state of the jobs that are meant, in small letters."""
    value: str = ""
    """With signal its name; with start what it does not look at."""
    changes: tuple[tuple[str, str], ...] = ()
    """With update what is changed to what."""
    command: tuple[str, ...] = ()
    """With update, instead of changes: what the job runs."""

    @property
    def chooses(self) -> bool:
        """Whether it means all jobs that are like something, rather than those that it names."""
        kinds = (self.user, self.partition, self.name, self.state)
        return self.everything or any(each is not None for each in kinds)

    def means(self, job: Job) -> bool:
        """Whether a job is like what the order means."""
        partitions = (job.partition,) if job.state is not JobState.PENDING else job.partitions
        return (
            self.user in (None, job.user)
            and (self.partition is None or self.partition in (each.name for each in partitions))
            and self.name in (None, job.spec.name)
            and self.state in (None, job.state.value.lower())
        )


@attrs.define
class Outcome:
    """What became of an order."""

    done: list[str] = attrs.field(factory=list)
    refused: dict[str, str] = attrs.field(factory=dict)
    commands: list[Command] = attrs.field(factory=list)

    def forget(self, job_ids: Collection[str]) -> None:
        """Say nothing of these jobs: they were not named, and ended before the order reached them."""
        self.done = [each for each in self.done if each not in job_ids]
        self.refused = {each: why for each, why in self.refused.items() if each not in job_ids}

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"done": [each for each in self.done if each not in self.refused], "refused": self.refused}


class Verbs:
    """Judges orders on the engine's thread."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        rules: Callable[[], Rules],
        held_back: Callable[[str], str | None],
        ended: Callable[[str], str | None],
        displaced_by: Callable[[Job], str],
        instant: Callable[[float], float],
    ) -> None:
        """Make it.

        :param held_back: why a job waits for others; None: it does not.
        :param ended: the state of a job that the engine no longer has; None: it is unknown.
        :param instant: an instant of Unix time on the run's clock.
        :param displaced_by: the job that a suspended one makes way for; empty: none is known.
        """
        self._engine = engine
        self._rules = rules
        self._held_back = held_back
        self._ended = ended
        self._displaced_by = displaced_by
        self._instant = instant

    def judge(self, order: Order, uid: int, name: str) -> Outcome:
        """Return the commands that an order comes to, and what is refused.

        :raises Forbidden: the person may not do that at all.
        """
        outcome = Outcome()
        if order.verb not in VERBS:
            outcome.refused[""] = (
                f"unknown command {order.verb!r}; allowed: {', '.join(VERBS)}{nearest(order.verb, VERBS)}"
            )
            return outcome
        if order.state is not None and order.state not in STATES:
            told = (
                f"unknown state {order.state!r}; allowed: {', '.join(STATES)}{nearest(order.state, STATES)}"
            )
            outcome.refused[""] = told
            return outcome
        partitions = [each.name for each in self._engine().ledger.cluster.partitions]
        if order.partition is not None and order.partition not in partitions:
            told = f"unknown partition {order.partition!r}; allowed: {', '.join(partitions)}"
            outcome.refused[""] = f"{told}{nearest(order.partition, partitions)}"
            return outcome
        for job_id, job in self._meant(order, uid, outcome):
            why = self._refusal(order, job, uid)
            if why:
                outcome.refused[job_id] = why
                continue
            commands = self._commands(order, job, uid, name)
            if isinstance(commands, str):
                outcome.refused[job_id] = commands
                continue
            outcome.done.append(job_id)
            outcome.commands += commands
        return outcome

    def _meant(self, order: Order, uid: int, outcome: Outcome) -> list[tuple[str, Job]]:
        engine = self._engine()
        jobs = engine.ledger.jobs
        if order.chooses:
            rules = self._rules()
            return [
                (job.id, job)
                for job in sorted(jobs.values(), key=lambda each: each.index)
                if order.means(job)
                and self._fits(order.verb, job)
                and rules.may_change(uid, job.user)
                and not self._is_ending(order, job)
            ]
        found = []
        arrays: dict[str, list[str]] = {}
        if any(name not in jobs for name in order.jobs):
            for job in jobs.values():
                if job.spec.array_id is not None:
                    arrays.setdefault(job.spec.array_id, []).append(job.id)
        for name in order.jobs:
            tasks = (name,) if name in jobs else arrays.get(name, ())
            for each in tasks:
                if each in jobs:
                    found.append((each, jobs[each]))
            if not tasks:
                state = self._ended(name)
                again = f"; hand it in anew: makeway again {name}" if order.verb == "requeue" else ""
                outcome.refused[name] = (
                    f"it has ended: {state}{again}" if state else f"there is no job {name}"
                )
        return found

    def _refusal(self, order: Order, job: Job, uid: int) -> str:
        rules = self._rules()
        if not rules.may_change(uid, job.user):
            return f"it belongs to {job.user}; only {job.user} and operators may do that"
        if self._is_ending(order, job) and order.verb != "signal":
            return "it is completing"
        if order.verb == "resume" and job.state is JobState.SUSPENDED:
            by = self._displaced_by(job)
            if job.suspended_by is SuspendedBy.POLICY and not job.held:
                return f"it makes way for job {by} and goes on by itself" if by else "it goes on by itself"
        if order.verb in ("release", "restore", "start"):
            why = self._held_back(job.id)
            if why is not None and order.verb == "release" and self.is_held(job):
                return "an operator holds it" if job.kept and not rules.is_operator(uid) else ""
            if why is not None:
                return f"it waits for others: {why}; see makeway why {job.id}"
        if order.verb == "start":
            if not rules.is_operator(uid):
                return "only operators may start a job"
            if job.held:
                return "it is held; release it first"
        if order.verb == "checkpoint" and job.obstacle:
            return job.obstacle
        return ""

    def _is_ending(self, order: Order, job: Job) -> bool:
        """Whether a job is leaving, so that the order comes too late; a cancel keeps it from waiting again."""
        becomes = self._engine().transitions.becomes(job)
        return becomes is not None and (order.verb != "cancel" or becomes is not JobState.PENDING)

    def _commands(self, order: Order, job: Job, uid: int, name: str) -> list[Command] | str:
        user = None if self._rules().is_operator(uid) else name
        if order.verb in ("hold", "release") and self._held_back(job.id) is not None:
            # It is held already for as long as it waits for others: this is about what comes then.
            stays = _attribute(job, user, HOLD, order.verb == "hold")
            return [stays, Command("hold", job.id, user)] if order.verb == "hold" else [stays]
        if order.verb in PLAIN:
            return [Command(order.verb, job.id, user)]
        if order.verb == "signal":
            try:
                signal, _ = parse_signal(order.value)
            except ValueError as error:
                return str(error)
            return [Command("signal", job.id, user, signal.name)]
        if order.verb == "start":
            return [Command("start", job.id, user, order.value)]
        if order.verb == "restore":
            return self._restore(job, user)
        if order.verb == "top":
            return self._top(job, user)
        return self._update(order, job, user)

    def _fits(self, verb: str, job: Job) -> bool:
        """Whether a verb says anything to a job that it does not name; one that does so is refused with a reason."""
        held = self.is_held(job)
        active = job.state in (JobState.RUNNING, JobState.SUSPENDED)
        fits = {
            "hold": job.state is JobState.PENDING and not held,
            "release": job.state is JobState.PENDING and held,
            "top": job.state is JobState.PENDING and not job.held,
            "restore": job.state is JobState.PENDING and job.begun_with > 0,
            "start": job.state is JobState.PENDING,
            "suspend": job.state is JobState.RUNNING,
            "resume": job.state is JobState.SUSPENDED and (job.held or job.suspended_by is SuspendedBy.ADMIN),
            "requeue": active,
            "signal": active,
            "checkpoint": active and not job.obstacle,
        }
        return fits.get(verb, True)

    def is_held(self, job: Job) -> bool:
        """Whether a person holds a job; one that waits for others is held by the daemon as well."""
        waits = self._held_back(job.id) is not None
        return bool(job.spec.attributes.get(HOLD)) if waits else job.held

    def _restore(self, job: Job, user: str | None) -> list[Command] | str:
        """Let a job that was checkpointed go on as soon as it may."""
        if job.state is not JobState.PENDING:
            return f"it is {job.state.value.lower()}, not pending"
        if not job.begun_with:
            return "nothing of it is saved; makeway top puts it first"
        if not job.held:
            return self._top(job, user)
        first = max((each.priority for each in self._engine().ledger.pending), default=0) + 1
        found = [Command("release", job.id, user)]
        return found if user is not None else [*found, Command("priority", job.id, None, str(first))]

    # ------------------------------------------------------------------------------- top
    def _top(self, job: Job, user: str | None) -> list[Command] | str:
        """Put a job before all others, or, for plain users, before their own (as ``scontrol top``)."""
        if job.state is not JobState.PENDING or job.held:
            return "it is held" if job.held else f"it is {job.state.value.lower()}, not pending"
        waiting = [
            each
            for each in self._engine().ledger.pending
            if not each.held and (user is None or each.user == job.user)
        ]
        waiting.sort(key=lambda each: (-each.priority, each.index))
        if user is None:
            highest = waiting[0]
            if highest is job:
                return []
            return [Command("priority", job.id, None, str(min(highest.priority + 1, 2**32 - 1)))]
        # The places that the user has are dealt out anew, so that no other user loses one.
        places = [each.priority for each in waiting]
        order = [job, *(each for each in waiting if each is not job)]
        return [
            Command("priority", each.id, None, str(priority))
            for each, priority in zip(order, places, strict=True)
            if each.priority != priority
        ]

    # ---------------------------------------------------------------------------- update
    def _update(self, order: Order, job: Job, user: str | None) -> list[Command] | str:
        if order.command:
            return self._run_other(order, job, user)
        if not order.changes:
            return f"nothing to change; allowed: {', '.join(f'{each}=VALUE' for each in UPDATES)}"
        commands = []
        for what, value in order.changes:
            if what not in UPDATES:
                return f"unknown field {what!r}; allowed: {', '.join(UPDATES)}{nearest(what, UPDATES)}"
            why = _beyond(job, what, value) if user is not None else ""
            if why:
                return why
            if what == "priority":
                commands.append(Command("priority", job.id, None, value))
                continue
            if what == "dependency":
                found = self._depend(job, value, user)
                if isinstance(found, str):
                    return found
                commands += found
                continue
            if what == "partition":
                value = ",".join(dict.fromkeys(value.split(",")))
            if what in _LARGEST and not (
                value.isascii() and value.isdigit() and int(value) <= _LARGEST[what]
            ):
                return f"{what}: got {value[:40]!r}; allowed: 0 to {_LARGEST[what]:,}"
            if what == "name" and not 1 <= len(value.encode()) <= _LONGEST_NAME:
                return f"name: got {len(value.encode())} bytes; allowed: 1 to {_LONGEST_NAME}"
            if what == "begin":
                if not _NUMBER.fullmatch(value):
                    return f"begin: got {value[:40]!r}; allowed: whole seconds of Unix time"
                value = str(math.ceil(self._instant(float(value))))
            commands.append(Command("change", job.id, user, f"{_WORDS.get(what, what)}={value}"))
        return commands

    def _run_other(self, order: Order, job: Job, user: str | None) -> list[Command] | str:
        """Let a job that waits run another command; the tasks of an array share one."""
        size = len("\0".join(order.command).encode("utf-8", "surrogateescape"))
        if order.changes:
            return "allowed: fields or a command, not both"
        if size > LONGEST_UPDATE:
            return f"command: got {size:,} bytes; allowed: {LONGEST_UPDATE:,}"
        if job.state is not JobState.PENDING:
            return f"command: it is {job.state.value.lower()}, not pending"
        if job.begun_with:
            return "command: what is saved of it belongs to the one that it has; submit it again"
        array = job.spec.array_id
        if array is not None:
            if array not in order.jobs:
                return f"command: all tasks of an array share one; name the array: {array}"
            live = (each for each in self._engine().ledger.jobs.values() if each.spec.array_id == array)
            if any(each.state is not JobState.PENDING for each in live):
                return f"command: tasks of array {array} run already, and all share one command"
        return [Command("change", job.id, user, f"command={json.dumps(shown_of(order.command))}")]

    def _depend(self, job: Job, text: str, user: str | None) -> list[Command] | str:
        """Let a job that waits wait for others, or for none any more."""
        if job.state is not JobState.PENDING or job.starts:
            return "dependency: only a job that has not started yet may wait for others"
        try:
            afters = parse_after(text) if text else ()
        except ValueError as error:
            return f"dependency: {error}"
        own = {job.id, job.spec.array_id}
        if any(other in own for after in afters for other in after.jobs):
            return "dependency: it would wait for itself"
        waits = self._held_back(job.id) is not None
        stays = self.is_held(job)
        commands = [
            _attribute(job, user, AFTER, [str(each) for each in afters]),
            _attribute(job, user, HOLD, stays),
        ]
        if afters and not job.held:
            commands.append(Command("hold", job.id, user))
        if not afters and waits and not stays:
            commands.append(Command("release", job.id, user))
        return commands


def _attribute(job: Job, user: str | None, name: str, value: Any) -> Command:
    return Command("change", job.id, user, f"attribute={name}:{json.dumps(value)}")


def _beyond(job: Job, what: str, value: str) -> str:
    """Return why a plain user may not make a change: it would put the job before others; empty: he may."""
    number = int(value) if _NUMBER.fullmatch(value) else None
    if number is None:
        return ""  # the engine says what is wrong with it
    if what == "priority" and number > job.priority:
        return "only operators may raise a priority"
    if what == "nice" and number < job.spec.nice:
        return "only operators may lower a nice value"
    if what == "time" and job.time_limit is not None and number > job.time_limit:
        return "only operators may raise a time limit"
    return ""
