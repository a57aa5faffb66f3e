"""Tell one job's life: where it ran, why it waited, which jobs it displaced, which displaced it, and why.

What repeats is told once, with from, to and how often: attempts that came to the same, turns of a gang, pairs that
come again and again. Numbers that change from one attempt to the next are those of the last.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from makeway.bitmap import NodeBits
from makeway.errors import place_of
from makeway.metrics import tidy
from makeway.model import NOTHING, Check, Job, JobState, Seconds, Stay, SuspendedBy, Vocabulary
from makeway.obstacle import counted
from makeway.record import Decision, History, Preemption
from makeway.worlds.events import Command
from makeway_app.replay import Run
from makeway_app.report import clock, instant, stay_told
from makeway_engine.engine import Engine
from makeway_engine.queue import NEVER
from makeway_explain.scarce import more_cpus, scarce

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_MOST_NAMES = 12
_MANY_LATER = 3
"""From so many on, jobs that came later and started first are told."""
_OFTEN, _LONGEST = 3, 4
"""What comes so often in a row is told once, be it as many different lines as this."""

T = TypeVar("T")
Entry = tuple[Seconds, Seconds, str]
"""From, to, and what was then."""


# ------------------------------------------------------------------------- during the replay
@attrs.define
class Wait:
    """A stretch of time for which a job waited for one reason."""

    start: Seconds
    end: Seconds
    reason: str
    behind: str = ""
    """Which job stands before it, and why that waits; empty: it does not wait for its turn."""


@attrs.define
class Stretch:
    """A stretch of time for which a job stayed suspended for one reason."""

    start: Seconds
    end: Seconds
    stay: Stay
    lasts: bool = False
    """Whether it still holds when the replay is over."""


@attrs.define
class Witness:
    """Watches some jobs while a replay goes on."""

    wanted: str
    """Id of a job, or of a heterogeneous job as a whole."""
    native: bool = True
    """Whether the site's file is makeway's own, whose keys are proposed then."""
    waits: dict[str, list[Wait]] = attrs.field(factory=dict)
    """Job id -> why it waited, in order of time."""
    stays: dict[str, list[Stretch]] = attrs.field(factory=dict)
    """Job id -> why it stayed suspended, in the order in which the reasons began."""
    checks: dict[str, tuple[Seconds, Sequence[Check]]] = attrs.field(factory=dict)
    """Job id -> the check lists of policies, as of the last pass that made it wait."""
    by_people: set[tuple[str, Seconds]] = attrs.field(factory=set)
    """Job id and instant of each suspension that a person asked for."""
    marks: dict[tuple[str, Seconds], frozenset[str]] = attrs.field(factory=dict)
    """Job id and instant of each suspension by a policy -> the marks of the job right after it."""
    short: dict[tuple[str, Seconds], Sequence[str]] = attrs.field(factory=dict)
    """Job id and instant of an attempt in vain -> what was short, what held it, and what to try."""
    _open: set[str] = attrs.field(factory=set)
    _held: dict[str, dict[tuple[str, tuple[str, ...]], Stretch]] = attrs.field(factory=dict)
    """Job id -> the reasons that hold now."""
    _tried: dict[str, Sequence[Check]] = attrs.field(factory=dict)
    """Jobs that were tried in this step -> the check lists of the last attempt."""

    def wants(self, job_id: str) -> bool:
        """Whether a job id is, or belongs to, the one in question."""
        return self.wanted in (job_id, job_id.partition("+")[0])

    def concerns(self, job: Job) -> bool:
        """Whether `job` is, or is part of, the job in question."""
        return self.wanted in (job.id, job.spec.het_id)

    def decided(self, engine: Engine, decision: Decision) -> None:
        """Let policies go through their check lists for a job that has just been found to wait.

        Not for one that waits for its victims to leave: it has preempted, and its list would speak of what is left.
        """
        job = engine.ledger.jobs.get(decision.job)
        waits = job is not None and decision.outcome == "waits" and not engine.making_way.awaited(job)
        if job is not None and waits and (lines := scarce(engine, job, decision, native=self.native)):
            self.short[decision.job, decision.at] = lines
        self._tried[decision.job] = engine.policies.explain(job, engine.ledger) if job and waits else ()

    def stepped(self, engine: Engine) -> None:
        """Take note of why the job waits, after a step of the engine."""
        now = engine.ledger.now
        begun = []
        for job_id in self._ids(engine):
            job = engine.ledger.jobs.get(job_id)
            waits = self.waits.setdefault(job_id, [])
            if job_id in self._open:
                waits[-1].end = now
            if job is not None and job.suspended_by is SuspendedBy.ADMIN and job.suspended_at is not None:
                self.by_people.add((job_id, tidy(job.suspended_at)))
            elif job is not None and job.suspended_at is not None and job.marks:
                self.marks.setdefault((job_id, tidy(job.suspended_at)), job.marks)
            self._note_stays(engine, job_id, job)
            if job is None or job.state is not JobState.PENDING:
                self._open.discard(job_id)
            elif job_id not in self._open or waits[-1].reason != job.reason:
                self._open.add(job_id)
                waits.append(Wait(now, now, job.reason, _ahead(engine, job)))
                begun.append(job_id)
        for job_id in sorted({*self._tried, *begun}):
            job = engine.ledger.jobs.get(job_id)
            if job is not None and job.state is JobState.PENDING:
                # One that was not tried, since it is held, say, is in no pass.
                found = (
                    self._tried[job_id]
                    if job_id in self._tried
                    else engine.policies.explain(job, engine.ledger)
                )
                if found:
                    self.checks[job_id] = (now, found)
        self._tried.clear()

    def over(self, at: Seconds) -> None:
        """Take note that the replay is over: what is suspended now stays so until then."""
        for held in self._held.values():
            for stretch in held.values():
                stretch.end, stretch.lasts = at, True

    def _note_stays(self, engine: Engine, job_id: str, job: Job | None) -> None:
        """Take note of why the job stays suspended: the reasons that began, go on and ended."""
        now = engine.ledger.now
        before = self._held.pop(job_id, {})
        for stretch in before.values():
            stretch.end = now
        if job is None or job.state is not JobState.SUSPENDED:
            return
        held = self._held[job_id] = {}
        for stay in engine.stays(job):
            key = (stay.why, stay.holders)
            if key in before:
                held[key] = before[key]
                held[key].stay = stay
            else:
                held[key] = Stretch(now, now, stay)
                self.stays.setdefault(job_id, []).append(held[key])

    def _ids(self, engine: Engine) -> list[str]:
        job = engine.ledger.jobs.get(self.wanted)
        if job is None and self.waits:
            return list(self.waits)
        if job is not None and job.spec.het_id is None:
            return [job.id]
        found = engine.ledger.jobs.values()
        return [job.id for job in found if self.concerns(job)]


# ------------------------------------------------------------------------------ after the replay
def explain(run: Run, witness: Witness, places: Mapping[str, str] = NOTHING) -> Iterator[str]:
    """Yield the story of the job in question, a paragraph at a time.

    :param places: path in the config -> line of a foreign file that says so.
    """
    witness.over(run.ended_at)
    for history in run.recorder.histories.values():
        if witness.concerns(history.job):
            yield from _story(run, history, witness, places)
            if history.job.id in witness.checks:
                at, checks = witness.checks[history.job.id]
                lines = (line for check in checks for line in _checked(check, places))
                yield _paragraph(f"check list, as of {instant(at)}", lines, "empty")


def _checked(check: Check, places: Mapping[str, str]) -> Iterator[str]:
    by = f" [{place_of(check.setting, places)}]" if check.setting else ""
    yield f"{check.code} {check.verdict:<7} {check.question} {check.found}{by}"


def _story(run: Run, history: History, witness: Witness, places: Mapping[str, str]) -> Iterator[str]:
    job_id = history.job.id
    waits = witness.waits.get(job_id, [])
    recorder = run.recorder
    yield "\n".join(_heading(run, history))
    where = _stretches(_intervals(run, history, witness))
    yield _paragraph("where it was", (line for each in where for line in _lines(each)), "nowhere")
    long = [wait for wait in waits if wait.end > wait.start]
    if not long and history.first_start is None:
        long = waits[-1:]
    stays = [
        stretch for stretch in witness.stays.get(job_id, ()) if stretch.lasts or stretch.end > stretch.start
    ]
    yield _paragraph("why it waited", _lines(_wait(run, wait) for wait in long), "it did not")
    if stays:
        yield _paragraph("why it stayed suspended", _stayed(stays, places), "it did not")
    acts = list(_acts(run, history.job))
    if acts:
        yield _paragraph("what people did to it", acts, "nothing")
    decisions = [decision for decision in recorder.decisions if decision.job == job_id]
    told = (line for group in groups(decisions) for line in _told(run, group, witness))
    yield _paragraph("what was decided about it", told, "it was never tried")
    overtook = list(_overtook(run, history))
    if overtook:
        yield _paragraph("which later jobs started before it", overtook, "none")
    taken = [each for each in recorder.preemptions if each.preemptor == job_id]
    yield _paragraph("which it displaced", _lines(_victim(run, each) for each in taken), "none")
    unable = [(at, victim, why) for at, preemptor, victim, why in recorder.failures if preemptor == job_id]
    if unable:
        yield _paragraph("which it told to make way in vain", _unable(run, unable), "none")
    lost = [each for each in recorder.preemptions if each.victim == job_id]
    yield _paragraph("which displaced it", _lines(_preemptor(run, each) for each in lost), "none")
    failed = [(at, nodes, again) for at, id_, nodes, again in recorder.node_failures if id_ == job_id]
    if failed:
        yield _paragraph("which of its nodes failed", _failed(run, failed), "none")


def _failed(run: Run, failed: Iterable[tuple[Seconds, NodeBits, bool]]) -> Iterator[str]:
    for at, nodes, again in failed:
        then = "it waits again" if again else "it ends as NODE_FAIL, since it may not be requeued"
        yield f"{instant(at)}: {run.recorder.node_list(nodes)}; {then}"


def _paragraph(title: str, lines: Iterable[str], otherwise: str) -> str:
    found = [f"  {line}" for line in lines]
    return "\n".join([title, *found]) if found else f"{title}: {otherwise}"


def _heading(run: Run, history: History) -> Iterator[str]:
    job, spec = history.job, history.job.spec
    name = f" ({spec.name})" if spec.name else ""
    partitions = ", ".join(partition.name for partition in job.partitions)
    words = _words(run)
    qos = f", {words.noun('QOS')} {job.qos.name}" if job.qos is not None else ""
    limit = "no time limit" if job.time_limit is None else f"limit {clock(job.time_limit)}"
    size = counted(job.size, words.noun("node"))
    yield (
        f"job {job.id}{name} of user {job.user}: {size}, {limit}, "
        f"{words.noun('partition')} {partitions}{qos}, submitted at {instant(spec.submit_at)}"
    )
    more = more_cpus(run.engine, job)
    if more:
        yield more
    problems = [reason for id_, _, reason in run.recorder.unrunnable if id_ == job.id]
    if problems:
        yield f"it can never run here: {problems[0]}"
        return
    yield ", ".join(_outcome(run, history))


def _words(run: Run) -> Vocabulary:
    return run.engine.policies.vocabulary()


def _outcome(run: Run, history: History) -> Iterator[str]:
    job = history.job
    if history.first_start is None:
        yield "it never started"
    else:
        yield f"first start after {clock(history.first_start - job.spec.submit_at)}"
    state = _words(run).state(history.final_state or history.state, job.suspended_by, held=job.held)
    ended = history.ended_at
    yield state if ended is None else f"{state} at {instant(ended)}"
    if job.restarts:
        yield f"started again {counted(job.restarts, 'time')}"
    if history.lost:
        yield f"{history.lost / 3600:,.2f} core-hours of work lost"


def _intervals(run: Run, history: History, witness: Witness) -> Iterator[Entry]:
    words = _words(run)
    every = run.recorder.job_dict(history, run.ended_at)["intervals"]
    shown = [
        each for each in every if each["end"] > each["start"] and each["state"] != JobState.PENDING.value
    ]
    for each, after in itertools.zip_longest(shown, shown[1:]):
        place = f" on {each['nodes']}" if "nodes" in each else ""
        person = (history.job.id, each["start"]) in witness.by_people
        state, by = JobState(each["state"]), SuspendedBy.ADMIN if person else SuspendedBy.POLICY
        marks = witness.marks.get((history.job.id, each["start"]), frozenset())
        why = words.suspension(state, by, marks)
        text = f"{words.state(state, by)}{place}" + (f", {why}" if why else "")
        goes_on = (
            after is not None and after["start"] == each["end"] and after["state"] == JobState.RUNNING.value
        )
        if state is JobState.SUSPENDED and goes_on and history.job.time_limit is not None:
            text += "; its time limit moves by as much"
        if after is None and history.ended_at is None:
            text += ", and still so as the replay ended"
        yield each["start"], each["end"], text


def _stretches(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Part where it was not for a while: each start, also after a requeue, is told by itself."""
    found: list[list[Entry]] = []
    for entry in entries:
        if found and found[-1][-1][1] == entry[0]:
            found[-1].append(entry)
        else:
            found.append([entry])
    return found


def _span(start: Seconds, end: Seconds) -> str:
    return instant(start) if start == end else f"{instant(start)} to {instant(end)}"


def _lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield each entry with its span; what repeats is one line, with how often and how long in all."""
    for group in folded([[each] for each in entries], lambda entry: entry[2]):
        often = ""
        if len(group) > 1:
            total = sum(end - start for start, end, _ in group)
            often = f" ({counted(len(group), 'time')}{f', {clock(total)} in all' if total else ''})"
        yield f"{_span(group[0][0], group[-1][1])}{often}: {group[-1][2]}"


def _wait(run: Run, wait: Wait) -> Entry:
    behind = f", behind {wait.behind}" if wait.behind else ""
    if wait.reason == NEVER:
        behind = ", as its log has no run of it: it starts nowhere until it is withdrawn"
    return wait.start, wait.end, f"{_words(run).reason(wait.reason)}{behind}"


def _ahead(engine: Engine, job: Job) -> str:
    """Return which job a job that waits for its turn stands behind: the first in the queue that may want its nodes."""
    if job.reason != "Priority":
        return ""
    for _, other, partition in engine.queue.entries:
        if other is job:
            break
        if partition.nodes & job.partition.nodes:
            why = f", which waits for {other.reason}" if other.reason not in ("None", "Priority") else ""
            return f"job {other.id} of priority {other.priority:,}{why}"
    return ""


def _overtook(run: Run, history: History) -> Iterator[str]:
    """Yield which jobs came later and started before a job that waited: all that want its licences, or many others."""
    job, until = history.job, history.first_start
    later = [
        each
        for each in run.recorder.histories.values()
        if each.number > history.number
        and each.first_start is not None
        and (each.job.partition.nodes & job.partition.nodes)
        and (until is None or each.first_start < until)
    ]
    alike = [each for each in later if set(each.job.spec.licenses) & set(job.spec.licenses)]
    if alike:
        named = ", ".join(sorted(set(job.spec.licenses)))
        yield f"{counted(len(alike), 'job')} with licences of {named}: {_few([each.job.id for each in alike])}"
    elif len(later) >= _MANY_LATER:
        yield f"{counted(len(later), 'job')}: {_few([each.job.id for each in later])}"


def _stayed(stretches: Sequence[Stretch], places: Mapping[str, str]) -> Iterator[str]:
    yield from _lines(
        (each.start, each.end, _stay(attrs.evolve(each.stay, until=None), places))
        for each in stretches
        if not each.lasts
    )
    for each in stretches:
        if each.lasts:
            yield f"from {instant(each.start)} on: {_stay(each.stay, places)}"


def _stay(stay: Stay, places: Mapping[str, str]) -> str:
    by = f" [{place_of(stay.setting, places)}]" if stay.setting else ""
    return f"{stay_told(stay)}{by}"


def _acts(run: Run, job: Job) -> Iterator[str]:
    """Yield what people did to a job, or to the whole of which it is a component, and what they were refused."""
    names = (job.id, job.spec.het_id)
    recorder = run.recorder
    done = [(at, each, "") for at, each in recorder.commands if each.job_id in names]
    done += [each for each in recorder.refusals if each[1].job_id in names]
    for at, command, refusal in sorted(done, key=lambda each: each[0]):
        who = "a person" if command.user is None else f"user {command.user}"
        if refusal:
            value = f" {command.value}" if command.value else ""
            yield f"{instant(at)}: {who} asked for {command.name}{value}, in vain: {refusal}"
        else:
            yield f"{instant(at)}: {who} {_did(command)}"


def _did(command: Command) -> str:
    value = f": {command.value}" if command.value else ""
    if command.name == "signal":
        name = command.value.upper().removeprefix("SIG")
        return f"sent it SIG{name}" + (", which stops its processes until SIGCONT" if name == "STOP" else "")
    if command.name == "priority":
        return f"gave it priority {command.value}"
    return f"{_PAST.get(command.name, command.name)} it{value}"


_PAST = {
    "suspend": "suspended",
    "resume": "resumed",
    "requeue": "requeued",
    "cancel": "cancelled",
    "checkpoint": "checkpointed and requeued",
    "hold": "held",
    "release": "released",
    "change": "changed",
    "start": "started",
}


# --------------------------------------------------------------------------------- decisions
def groups(decisions: Iterable[Decision]) -> list[list[Decision]]:
    """Put decisions together that follow one another, or come again and again, and came to the same."""
    alike = [list(group) for _, group in itertools.groupby(decisions, _kind)]
    return folded(alike, _kind)


def folded(runs: Sequence[list[T]], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Join runs of items whose order repeats: ``a b a b a b`` becomes all that are like ``a``, then all like ``b``."""
    keys = [key(run[-1]) for run in runs]
    found: list[list[T]] = []
    at = 0
    while at < len(runs):
        period, end = 1, at + 1
        for length in range(1, _LONGEST + 1):
            last = at + length
            while last < len(runs) and keys[last] == keys[last - length]:
                last += 1
            if last - at >= _OFTEN * length:
                period, end = length, last
                break
        found += [
            [item for run in runs[at + first : end : period] for item in run] for first in range(period)
        ]
        at = end
    return found


def _kind(decision: Decision) -> tuple[object, ...]:
    """Return what two decisions have in common if they came to the same; numbers do not count."""
    protected = {_NUMBER.sub("#", rule) for rule in decision.protected.values()}
    return (
        decision.outcome,
        decision.partition,
        decision.reason,
        _NUMBER.sub("#", decision.detail),
        decision.victims,
        decision.placement,
        bool(decision.candidates),
        bool(decision.vacated),
        tuple(sorted(protected)),
    )


def _told(run: Run, group: Sequence[Decision], witness: Witness) -> Iterator[str]:
    last = group[-1]
    known = (witness.short.get((each.job, each.at)) for each in reversed(group))
    short = next((lines for lines in known if lines), ()) if last.outcome != "starts" else ()
    times = f" ({counted(len(group), 'attempt')})" if len(group) > 1 else ""
    when = _span(group[0].at, last.at)
    yield f"{when}{times}: {_verdict(run, last)}"
    for line in short:
        yield f"  {line}"
    if last.candidates:
        named = zip(last.candidates, last.costs, strict=True)
        names = [f"{job} ({mode}{f', loses {clock(cost)}' if cost else ''})" for (job, mode), cost in named]
        yield f"  could displace, in this order: {_few(names)}"
    if last.vacated:
        yield f"  could use what these hold, which are suspended: {_few(last.vacated)}"
    by_rule: dict[str, list[str]] = {}
    for job, rule in last.protected.items():
        by_rule.setdefault(rule, []).append(job)
    for rule, jobs in by_rule.items():
        yield f"  protected: {_few(jobs)}: {rule}"
    if last.victims:
        method = f" ({last.method})" if last.method else ""
        names = [f"{job} ({mode})" for job, mode in last.victims]
        yield f"  takes{method}: {_few(names)}"


def _verdict(run: Run, last: Decision) -> str:
    words = _words(run)
    where = f"in {words.noun('partition')} {last.partition}"
    if last.outcome == "starts":
        why = f": {words.phrase(last.detail)}" if last.detail else ""
        return f"starts on {last.placement} {where}{why}"
    why = words.why(last.reason, last.detail)
    if last.outcome == "preempts":
        return f"preempts for {last.placement} {where}; without that {why}"
    return f"waits {where}, {why}"


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


# ------------------------------------------------------------------------------- preemptions
def _victim(run: Run, entry: Preemption) -> Entry:
    return entry.at, entry.at, f"{_named(run, entry.victim)} by {_how(entry)}"


def _unable(run: Run, entries: Iterable[tuple[Seconds, str, str]]) -> Iterator[str]:
    """Tell what could not make way, and why; what came again and again is told once."""
    times: dict[tuple[str, str], list[Seconds]] = {}
    for at, victim, why in entries:
        times.setdefault((victim, why), []).append(at)
    for (victim, why), instants in times.items():
        again = f" ({counted(len(instants), 'time')})" if len(instants) > 1 else ""
        yield f"{_span(instants[0], instants[-1])}{again}: {_named(run, victim)}: {why}"


def _preemptor(run: Run, entry: Preemption) -> Entry:
    preemptor = "no job in particular," if entry.preemptor is None else _named(run, entry.preemptor)
    return entry.at, entry.at, f"{preemptor} by {_how(entry)}"


def _how(entry: Preemption) -> str:
    return ", ".join(part for part in (entry.mode.value, entry.why) if part) + f" [{entry.by}]"


def _named(run: Run, job_id: str) -> str:
    history = run.recorder.histories.get(job_id)
    if history is None:
        return f"job {job_id}"
    return f"job {job_id} ({_words(run).noun('partition')} {history.job.partition.name})"
