"""Carry out what people ask for: suspend, resume, requeue, cancel, hold, release, priority, change, start, signal.

slurm-preemption 4.11 and slurm-gang-and-select 2.4.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import attrs

from makeway.errors import nearest
from makeway.model import Blocked, Job, JobSpec, JobState, SuspendedBy
from makeway.obstacle import length
from makeway.priorities import Occasion
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Command, Suspend
from makeway_engine.in_use import InUse
from makeway_engine.ledger import Ledger, put
from makeway_engine.placing import Outcome, Placer, Question
from makeway_engine.queue import Queue
from makeway_engine.transitions import Transitions

IGNORE_LIMITS, IGNORE_RESERVATIONS = "ignorepolicies", "ignorersv"
"""Words of `start`: what does not bind the person who asks."""
TIME_LIMIT = "time_limit"
"""Word of `change` for the time limit, which jobs that run can be given too."""
PARTITION = "partition"
"""Word of `change` for the partitions of a job that waits, separated by commas."""
BEGIN = "begin"
"""Word of `change` for the instant from which a job may start, in seconds of the run."""
NAME, MEMORY, GPUS, ATTRIBUTE, COMMAND = "name", "memory_mb", "gpus", "attribute", "command"
"""Words of `change` for what a job that waits is called, its memory on each node, its GPUs there, for what only the
world and its policies read (``attribute=NAME:JSON``), and for what people are shown of its command, as JSON."""
CHANGES = (ATTRIBUTE, BEGIN, COMMAND, GPUS, MEMORY, NAME, "nice", PARTITION, "qos", "site_factor")
"""What `change` changes of a job that waits."""
_LET_GO = ("priority", "release", "resume", "start")
"""Verbs that undo a hold or a stop; those of operators are undone by operators."""
_NUMBER = re.compile(r"-?[0-9]{1,10}")
_COUNT = re.compile(r"[0-9]{1,10}")
_PRIORITY = re.compile(r"[0-9]{1,10}")


class Refused(Exception):  # noqa: N818  # an answer, not a fault
    """A command that cannot be carried out; its text is the reason."""


class Commands:
    """The verbs of `scontrol` and `scancel`, refused with a reason where they make no sense."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        transitions: Transitions,
        policies: Policies,
        recorder: Recorder,
        placer: Placer,
        rewrite: Callable[[Job, JobSpec], str],
        in_use: InUse,
    ) -> None:
        """Make them.

        :param rewrite: lets a pending job without entries ask for something else; returns what is wrong with it.
        """
        self._ledger = ledger
        self._queue = queue
        self._transitions = transitions
        self._policies = policies
        self._recorder = recorder
        self._placer = placer
        self._rewrite = rewrite
        self._in_use = in_use
        self._verbs: dict[str, Callable[[Job, Command], None]] = {
            "suspend": self._suspend,
            "resume": self._resume,
            "requeue": self._requeue,
            "cancel": self._cancel,
            "checkpoint": self._checkpoint,
            "hold": self._hold,
            "release": self._release,
            "priority": self._priority,
            "change": self._change,
            "start": self._start,
            "signal": self._signal,
        }

    def carry_out(self, command: Command) -> None:
        """Do what is asked of each job that is meant, or put the refusal into the record."""
        named = self._policies.people.names(command.job_id, command.name, command.user, self._ledger)
        if not named:
            self._recorder.refused(command, "it names no job", self._ledger.now)
        for job_id in [each for name in named for each in self._tasks(name, command.name) or (name,)]:
            each = command if job_id == command.job_id else command._replace(job_id=job_id)
            try:
                self._do(each)
            except Refused as refusal:
                self._recorder.refused(each, str(refusal), self._ledger.now)

    def _tasks(self, name: str, verb: str) -> list[str]:
        """Return the tasks that a person means by the name of an array: ended ones too, where they may run again."""
        ended = self._remembered(name) if verb == "requeue" else ()
        return [
            *self._queue.throttle.tasks_of(name),
            *(job.id for job in ended if job.spec.array_id == name),
        ]

    def _remembered(self, name: str) -> list[Job]:
        remembered = self._transitions.remembered
        return remembered.named(name, self._ledger.now) if remembered is not None else []

    def _do(self, command: Command) -> None:
        verb = self._verbs.get(command.name)
        if verb is None:
            options = ", ".join(self._verbs)
            raise Refused(f"unknown command; allowed: {options}{nearest(command.name, self._verbs)}")
        job = self._ledger.jobs.get(command.job_id)
        ended = self._remembered(command.job_id) if job is None and command.name == "requeue" else []
        if ended:
            job = ended[0]
        if job is None:
            raise Refused(self._gone(command.name))
        reason = self._policies.people.refusal(command.name, job, command.user, self._ledger)
        if reason is not None:
            raise Refused(reason)
        becomes = self._transitions.becomes(job)
        if becomes is not None and not self._in_time(command.name, becomes):
            raise Refused("the job is completing")
        if job.kept and command.user is not None and command.name in _LET_GO:
            what = "has stopped" if job.suspended_by is SuspendedBy.ADMIN else "holds"
            doing = {"priority": "give it a priority"}.get(command.name, f"{command.name} it")
            raise Refused(f"an operator {what} the job; only operators may {doing}")
        verb(job, command)
        self._recorder.obeyed(command, job, self._ledger.now)
        self._transitions.changed = True

    def _gone(self, verb: str) -> str:
        remembered = self._transitions.remembered
        if verb == "requeue" and remembered is not None and remembered.age:
            return f"the job is unknown, or ended more than {length(remembered.age)} ago (min_job_age)"
        return "the job is unknown or has ended"

    def _in_time(self, verb: str, becomes: JobState) -> bool:
        """Whether a command may still change what becomes of a job that is leaving its nodes."""
        if becomes is JobState.PENDING:
            return verb == "cancel"
        return verb == "requeue" and self._transitions.remembered is not None

    def _suspend(self, job: Job, command: Command) -> None:
        if job.state is JobState.PENDING:
            raise Refused("the job is pending")
        for part in self._whole(job):
            if self._ledger.is_active(part):
                self._suspend_one(part)
                _keep(part, command)

    def _suspend_one(self, job: Job) -> None:
        put(job, priority=0)
        self._in_use.stopped.discard(job.id)
        if job.state is JobState.SUSPENDED:
            self._transitions.tell_gang("held", job)
            return
        self._transitions.suspend(job, SuspendedBy.ADMIN)
        self._transitions.tell_gang("ended", job)

    def _resume(self, job: Job, command: Command) -> None:
        if job.state is not JobState.SUSPENDED:
            raise Refused(f"the job is {job.state.value.lower()}, not suspended")
        if command.user is not None and (stays := self._in_use.stays(job)):
            raise Refused(f"{stays[0].why}; only operators may let it go on meanwhile")
        for part in self._whole(job):
            put(part, kept=False)
            if part.state is JobState.SUSPENDED:
                self.let_go_on(part)

    def _whole(self, job: Job) -> tuple[Job, ...]:
        """Return the components that a person stops or lets go on with `job`: all of them, by their leader."""
        if job.spec.het_offset:
            raise Refused("components of a heterogeneous job stop and go on together; name its leader")
        return tuple(self._ledger.components(job))

    def let_go_on(self, job: Job) -> None:
        """Continue a suspended job, as when a person asks for it."""
        stopped_by_arbiter = job.suspended_by is SuspendedBy.POLICY and not job.held
        if job.held:
            put(job, priority=self._transitions.fresh_priority(job))
        if not self._ledger.rule("resume_runs_beside"):
            if not stopped_by_arbiter:
                self._transitions.resume(job)
            self._transitions.tell_gang("started", job)
            return
        # The arbiter is asked while the job still counts as suspended, and not at all about one that it
        # stopped itself; so the job runs beside what holds its cores until its turn comes.
        told = len(self._transitions.actions)
        if not stopped_by_arbiter:
            self._transitions.tell_gang("started", job)
            if self._transitions.is_leaving(job) and self._ledger.rule("killed_at_resume_fails"):
                self._transitions.fail_instead(job)
        if job.state is not JobState.SUSPENDED:
            return
        stopped_anew = any(
            isinstance(each, Suspend) and each.job is job for each in self._transitions.actions[told:]
        )
        if stopped_anew and self._stays_stopped(job):
            self._transitions.resumed(job)  # it counts as running, and its processes are not told
        else:
            self._transitions.resume(job)

    def _stays_stopped(self, job: Job) -> bool:
        """Whether the last word that a job's processes hear at its resume is the arbiter's, which stops them.

        Recorded: resume_by_hand_stays_stopped. A recording may say that it was not: the words overtake one another.
        """
        return self._ledger.rule("resume_leaves_stopped") and not job.spec.attributes.get("goes_on_at_resume")

    def _requeue(self, job: Job, _: Command) -> None:
        if job.state is JobState.PENDING:
            raise Refused("the job is pending")
        if not job.requeueable:
            raise Refused("the job may not be requeued")
        het_id = job.spec.het_id
        parts = self._ledger.components_of(het_id) if het_id is not None else (job,)
        for part in parts:
            if self._ledger.is_active(part):
                self._transitions.requeue(part, "requeued by a person")
            elif self._transitions.becomes(part) not in (None, JobState.PENDING):
                self._transitions.requeue_leaving(part)
        for part in self._remembered(het_id or job.id):
            self._transitions.run_again(part)

    def _cancel(self, job: Job, _: Command) -> None:
        if job.spec.het_offset and job.state is JobState.PENDING:
            raise Refused(
                "a component of a heterogeneous job is not cancelled while it waits; name its leader"
            )
        for part in self._by_leader(job):
            if self._transitions.becomes(part) is JobState.PENDING:
                self._transitions.not_requeued(part)
            elif part.state is JobState.PENDING:
                self._transitions.cancel_pending(part)
            elif self._ledger.is_active(part):
                self._transitions.kill(part, JobState.CANCELLED, "cancelled by a person")

    def _checkpoint(self, job: Job, _: Command) -> None:
        if not self._ledger.is_active(job):
            raise Refused(f"the job is {job.state.value.lower()}, not active")
        self._transitions.checkpoint(job)
        self._transitions.requeue(job, "checkpointed by a person")

    def _by_leader(self, job: Job) -> tuple[Job, ...]:
        """Return what a person holds or releases with `job`: a leader all components, any other itself alone."""
        return (job,) if job.spec.het_offset else tuple(self._ledger.components(job))

    def _hold(self, job: Job, command: Command) -> None:
        for part in self._by_leader(job):
            _keep(part, command)
            self._hold_one(part)

    def _hold_one(self, job: Job) -> None:
        if job.state is JobState.PENDING:
            self._queue.reprioritise(job, 0, self._ledger.now)
        else:
            put(job, priority=0)
            self._transitions.tell_gang("held", job)

    def _release(self, job: Job, _: Command) -> None:
        renews = job.state is JobState.PENDING and self._ledger.rule("release_renews_priority")
        if not (job.held or renews):
            raise Refused("the job is not held")
        for part in self._by_leader(job):
            put(part, kept=False)
            if part.held:
                self._anew(part, Occasion.RELEASED)
            elif renews:
                fresh = functools.partial(self._transitions.priorities.renewed, part)
                self._queue.reprioritise(part, fresh, self._ledger.now)

    def _priority(self, job: Job, command: Command) -> None:
        if not _PRIORITY.fullmatch(command.value):
            raise Refused(f"got {command.value!r}; allowed: a priority from 0 to 4294967295")
        priorities = self._transitions.priorities
        if int(command.value):
            priorities.given.add(job.id)
            put(job, kept=False)
        else:
            _keep(job, command)
        self._set_priority(job, int(command.value))

    def _change(self, job: Job, command: Command) -> None:
        """Change what a job asks for.

        Its time limit; while it waits also what `CHANGES` names.
        """
        if command.value.partition("=")[0] == TIME_LIMIT:
            self._limit(job, command)
            return
        if job.state is not JobState.PENDING:
            raise Refused(f"the job is {job.state.value.lower()}, not pending")
        name, _, value = command.value.partition("=")
        if name not in CHANGES:
            words = (*CHANGES, TIME_LIMIT)
            raise Refused(
                f"got {name!r:.40}; allowed: {', '.join(words)}, such as nice=10{nearest(name, words)}"
            )
        if name == BEGIN:
            self._begin(job, value)
            return
        if name == PARTITION:
            self._ask_for(job, name, partitions=tuple(value.split(",")))
            return
        if name in (GPUS, MEMORY):
            if not _COUNT.fullmatch(value):
                raise Refused(f"{name}: got {value!r:.40}; allowed: a whole number")
            if name == MEMORY:
                self._ask_for(job, name, memory_mb_per_node=int(value), memory_mb_per_cpu=None)
            else:
                kept = {
                    each: count for each, count in job.spec.gres.items() if each.partition(":")[0] != "gpu"
                }
                self._ask_for(job, name, gres={**kept, **({"gpu": int(value)} if int(value) else {})})
            return
        if name == NAME:
            put(job, spec=attrs.evolve(job.spec, name=value))
            return
        if name == ATTRIBUTE:
            self._attribute(job, value)
            return
        if name == COMMAND:
            put(job, spec=attrs.evolve(job.spec, command=tuple(json.loads(value))))
            return
        if name == "qos":
            qos = self._ledger.cluster.qos_named(value)
            if qos is None:
                raise Refused(f"no QOS named {value!r:.40}")
            put(job, qos=qos, spec=attrs.evolve(job.spec, qos=value))
        else:
            if not _NUMBER.fullmatch(value):
                raise Refused(f"{name}: got {value!r:.40}; allowed: a whole number")
            if name == "nice":
                changed = attrs.evolve(job.spec, nice=int(value))
            else:
                more = {**job.spec.attributes, name: int(value)}
                changed = attrs.evolve(job.spec, attributes=more)
            put(job, spec=changed)
        self._queue.changed()
        if not job.held and job.id not in self._transitions.priorities.given:
            self._anew(job, Occasion.CHANGED)

    def _begin(self, job: Job, value: str) -> None:
        """Let a job become eligible at another instant."""
        now = self._ledger.now
        if not _NUMBER.fullmatch(value):
            raise Refused(f"{BEGIN}: got {value!r:.40}; allowed: whole seconds of the run")
        at = max(now, float(value))
        put(job, spec=attrs.evolve(job.spec, begin_at=at))
        self._queue.begin_at(job, at, now)

    def _attribute(self, job: Job, text: str) -> None:
        """Change what only the world and its policies read of a job."""
        name, _, value = text.partition(":")
        try:
            put(job, spec=attrs.evolve(job.spec, attributes={**job.spec.attributes, name: json.loads(value)}))
        except ValueError:
            raise Refused(f"{ATTRIBUTE}: got {text!r:.40}; allowed: NAME:JSON") from None

    def _ask_for(self, job: Job, word: str, **changes: Any) -> None:
        """Let a job wait for something else, in other partitions perhaps; its place in the queue is found anew."""
        if job.spec.het_id is not None:
            raise Refused("a component of a heterogeneous job stays as it was submitted")
        spec = attrs.evolve(job.spec, **changes)
        priority, wrong = job.priority, ""
        keeps = job.held or job.id in self._transitions.priorities.given

        def moved() -> int:
            nonlocal wrong
            wrong = self._rewrite(job, spec)
            return priority if wrong or keeps else self._transitions.fresh_priority(job, Occasion.CHANGED)

        self._queue.reprioritise(job, moved, self._ledger.now)
        if wrong:
            raise Refused(f"{word}: {wrong}")

    def _limit(self, job: Job, command: Command) -> None:
        """Give a job another time limit, in seconds of running; one that runs longer already ends at once."""
        text = command.value.partition("=")[2]
        if not _NUMBER.fullmatch(text) or int(text) < 1:
            raise Refused(f"{TIME_LIMIT}: got {text!r:.40}; allowed: whole seconds, 1 or more")
        most = job.partition.max_time
        if most is not None and int(text) > most and command.user is not None:
            raise Refused(f"{TIME_LIMIT}: partition {job.partition.name} allows {most:g} s")
        self._ledger.limit(job, float(text))
        self._queue.changed()

    def _anew(self, job: Job, occasion: Occasion) -> None:
        """Work the priority of a job out anew."""
        if job.state is JobState.PENDING:
            fresh = functools.partial(self._transitions.fresh_priority, job, occasion)
            self._queue.reprioritise(job, fresh, self._ledger.now)
        else:
            self._set_priority(job, self._transitions.fresh_priority(job, occasion))

    def _set_priority(self, job: Job, priority: int) -> None:
        if job.state is JobState.PENDING:
            self._queue.reprioritise(job, priority, self._ledger.now)
        else:
            put(job, priority=priority)
            self._transitions.tell_gang("held", job)

    def _signal(self, job: Job, command: Command) -> None:
        if not self._ledger.is_active(job):
            raise Refused(f"the job is {job.state.value.lower()}, not active")
        name = command.value.upper().removeprefix("SIG")
        if not re.fullmatch(r"[A-Z][A-Z0-9+-]{1,10}", name):
            raise Refused(f"got {command.value!r}; allowed: the name of a signal, as in USR1")
        self._transitions.signal(job, name, steps_only=False)

    def _start(self, job: Job, command: Command) -> None:
        if job.state is not JobState.PENDING:
            raise Refused(f"the job is {job.state.value.lower()}, not pending")
        if not job.partition.up:
            raise Refused(f"partition {job.partition.name} is down")
        words = [word for word in command.value.lower().split(",") if word]
        odd = [word for word in words if word not in (IGNORE_LIMITS, IGNORE_RESERVATIONS)]
        if odd:
            raise Refused(f"got {odd[0]!r}; allowed: {IGNORE_LIMITS}, {IGNORE_RESERVATIONS}")
        question = Question(
            job,
            job.partition,
            self._ledger.all_nodes,
            preempt=False,
            limits=IGNORE_LIMITS not in words,
            closes=IGNORE_RESERVATIONS not in words,
        )
        marks = job.marks
        if not question.closes:
            put(job, marks=marks | {IGNORE_RESERVATIONS})  # for selectors, which may keep places for others
        outcome = self._placer.try_start(question)
        put(job, marks=marks)
        if outcome is not Outcome.STARTED:
            found = self._placer.prober.in_full(question, preempt=False)
            detail = f": {found.detail}" if isinstance(found, Blocked) and found.detail else ""
            raise Refused(f"there is no room: {job.reason}{detail}")


def _keep(job: Job, command: Command) -> None:
    """Take note of whether it is an operator who holds or stops a job; an owner's word adds nothing to that."""
    if command.user is None:
        put(job, kept=True)
