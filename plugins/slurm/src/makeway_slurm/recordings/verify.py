"""Hold replays against recordings of a real scheduler, job by job.

Judging follows ``tests/oracle/FORMAT.md``: the sequence of states first, then the boundaries
within a tolerance, then final state, restarts and nodes. COMPLETING counts as part of what came
before it, and intervals shorter than `SHORT` are mere flicker. Differences in nodes, in CPUs, and in why a job
still waits at the end are a class of their own: a scenario may leave the choice among equal nodes open.
Exit codes, `squeue` tables and what commands answered are not compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.errors import ConfigError, MakewayError, Problem
from makeway.hostlist import expand_hostlist, fold_hostlist, natural_key
from makeway.model import JobState, Seconds
from makeway.settings import structure
from makeway_slurm.recordings.recording import RecordedJob, Recording, parse_recording, read_recording
from makeway_slurm.recordings.scenario import Scenario, build_scenario, read_scenario_file
from makeway_slurm_rules.rules import version
from makeway_verify.verdicts import Aspect, Comparison, Difference, Outcome, Verdict

TOLERANCE: Seconds = 1.5
"""How far apart two boundaries may lie where the phases of the clocks were not recorded: one look of the scheduler,
or one second of Slurm's integer clock, and jitter."""
TOLERANCE_WITH_PHASES: Seconds = 0.5
"""The same where they were: jitter alone, less than a look."""
SHORT: Seconds = 0.6
"""Shortest interval that is believed: two samples of the observer."""
_ABOUT: Seconds = 0.1
"""What is longer than `SHORT` by less than this, on one side alone, is not believed either."""

REFUSED = "REFUSED"
"""Final state of a job that was not accepted."""

Play = Callable[[Scenario], Mapping[str, Any]]
"""Replays a scenario and returns the record of the run in its summary form."""

_ENDED = frozenset(state.value for state in JobState if state.ended) | {REFUSED}
_SAME = {"RESV_DEL_HOLD": "PENDING"}
"""State that a job is shown in: what it is."""
_FLICKER = frozenset(("PENDING", "RUNNING", "SUSPENDED"))
_ON_NODES = frozenset(("RUNNING", "SUSPENDED"))


# ------------------------------------------------------------------------------- what is compared
@attrs.frozen
class Span:
    """A stretch of one job's life in one state."""

    state: str
    start: Seconds
    end: Seconds
    nodes: tuple[str, ...] = ()
    """What it held while running or suspended, in index order."""
    restart: int = 0
    cpus: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    """Numbers of its CPUs on each node; empty: not known."""
    gres: Mapping[str, Mapping[str, int]] = attrs.field(factory=dict)
    """Counted resources on each node, models by their name; empty: none."""


@attrs.frozen(kw_only=True)
class Story:
    """One job's life."""

    spans: tuple[Span, ...]
    final_state: str
    restarts: int
    reason: str = ""
    """Why it waits, if it does to the end; empty: not known."""


Stories = Mapping[str, Story]


def compare(
    recording: Recording | Mapping[str, Any],
    record: Recording | Mapping[str, Any],
    *,
    tolerance: Seconds | None = None,
    short: Seconds = SHORT,
) -> Comparison:
    """Compare a recording with the record of a replay, or with another recording.

    What either shows after the other has ended counts for nothing: the record says by ``until`` when its replay did.
    Its PENDING intervals may be left out.

    :param tolerance: None: as close as the recording's clocks are known, `TOLERANCE` or `TOLERANCE_WITH_PHASES`.

    :raises ConfigError: either of them is malformed.
    """
    recorded = recording if isinstance(recording, Recording) else parse_recording(recording)
    if tolerance is None:
        tolerance = TOLERANCE if recorded.phases is None else TOLERANCE_WITH_PHASES
    if not isinstance(record, Recording) and "slurm_version" in record:
        record = parse_recording(record)
    if isinstance(record, Recording):
        other, until = stories_of_recording(record), record.observed
    else:
        other, until = stories_of_record(record), float(record.get("until", math.inf))
    return _compare(stories_of_recording(recorded), other, (recorded.observed, until), tolerance, short)


# ------------------------------------------------------------------------------- the two shapes
def stories_of_recording(recording: Recording) -> Stories:
    """Return each recorded job's life by name."""
    return {name: _recorded_story(job) for name, job in recording.jobs.items()}


def _recorded_story(job: RecordedJob) -> Story:
    spans = (
        Span(
            _SAME.get(each.state, each.state),
            each.start,
            each.end,
            _sorted_nodes(each.nodes),
            each.restart,
            each.cpu_ids,
            {node: counts for node, text in each.gres.items() if (counts := _counts(text))},
        )
        for each in job.intervals
    )
    final = job.final_state or REFUSED
    final = _SAME.get(final, final)
    told = job.intervals[-1].reasons if job.intervals and final == "PENDING" else ()
    reason = str(told[-1][1]) if told else ""
    return Story(spans=tuple(spans), final_state=final, restarts=job.restarts, reason=reason)


_GRES = re.compile(r"(?:^|,)([a-z_]+)(?::[A-Za-z][^:,(]*)?:([0-9]+)", re.IGNORECASE)


def _counts(text: str) -> dict[str, int]:
    """Read ``gpu:a:2(IDX:0-1),gpu:b:0(IDX:)`` as two of ``gpu``."""
    counts: dict[str, int] = {}
    for name, count in _GRES.findall(text):
        if int(count):
            counts[name] = counts.get(name, 0) + int(count)
    return counts


@attrs.frozen(kw_only=True)
class _ReplayedInterval:
    state: str
    start: Seconds
    end: Seconds
    nodes: str = ""
    cpus: Mapping[str, str] = attrs.field(factory=dict)
    gres: Mapping[str, Mapping[str, int]] = attrs.field(factory=dict)
    restart: int = 0


@attrs.frozen(kw_only=True)
class _ReplayedJob:
    name: str
    submit: Seconds
    final_state: str
    restarts: int = 0
    reason: str = ""
    intervals: tuple[_ReplayedInterval, ...] = ()


def stories_of_record(record: Mapping[str, Any]) -> Stories:
    """Return each replayed job's life by the name that it was submitted with.

    :raises ConfigError: the record is not in the summary form.
    """
    jobs = record.get("jobs")
    if not isinstance(jobs, Mapping):
        raise ConfigError("record", [Problem("jobs", "missing, or no table")])
    stories: dict[str, Story] = {}
    for job_id, data in jobs.items():
        job = _replayed_job(data, f"jobs.{job_id}")
        if job.name in stories:
            problem = Problem(f"jobs.{job_id}.name", f"job {job.name!r} is there twice")
            raise ConfigError("record", [problem])
        stories[job.name] = _replayed_story(job, f"jobs.{job_id}")
    return stories


def _replayed_job(data: Any, where: str) -> _ReplayedJob:
    """Read what matters of one job; a record may say more."""
    known = [field.name for field in attrs.fields(_ReplayedJob)]
    if not isinstance(data, Mapping):
        raise ConfigError("record", [Problem(where, "no table")])
    return structure({k: data[k] for k in known if k in data}, _ReplayedJob, "record", where)


def _replayed_story(job: _ReplayedJob, where: str) -> Story:
    spans: list[Span] = []
    clock, restart = job.submit, 0
    for each in job.intervals:
        restart = max(restart, each.restart)
        if each.start > clock:
            spans.append(Span("PENDING", clock, each.start, (), restart))
        cpus = {node: _numbers(text, where) for node, text in each.cpus.items()}
        gres = {node: dict(counts) for node, counts in each.gres.items() if counts}
        nodes = _names(each.nodes, where)
        spans.append(Span(each.state, each.start, each.end, nodes, restart, cpus, gres))
        clock = each.end
    if job.final_state in _ENDED and (not spans or spans[-1].state != job.final_state):
        spans.append(Span(job.final_state, clock, clock, (), job.restarts))
    reason = job.reason if job.final_state == "PENDING" else ""
    return Story(spans=tuple(spans), final_state=job.final_state, restarts=job.restarts, reason=reason)


def _numbers(text: str, where: str) -> tuple[int, ...]:
    """Read ``0-3,5``."""
    try:
        return tuple(int(number) for number in expand_hostlist(f"[{text}]")) if text else ()
    except ValueError as error:
        raise ConfigError("record", [Problem(f"{where}.intervals", str(error))]) from None


def _names(text: str, where: str) -> tuple[str, ...]:
    try:
        return _sorted_nodes(expand_hostlist(text))
    except ValueError as error:
        raise ConfigError("record", [Problem(f"{where}.intervals", str(error))]) from None


def _sorted_nodes(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural_key))


# ------------------------------------------------------------------------------- comparing
def _compare(
    recorded: Stories,
    replayed: Stories,
    ends: tuple[Seconds, Seconds],
    tolerance: Seconds,
    short: Seconds,
) -> Comparison:
    """Compare all jobs.

    :param ends: when each of the two stopped to look.
    """
    observed, until = ends
    differences: list[Difference] = []
    gaps: list[Seconds] = []
    extra = [name for name in replayed if name not in recorded]
    for name in [*recorded, *extra]:
        pair = recorded.get(name), replayed.get(name)
        missing = _missing(name, *pair)
        if missing is not None:
            differences += missing
            continue
        mine, other = _told([story for story in pair if story is not None], short)
        mine, other = _cut(mine, other, until, tolerance), _cut(other, mine, observed, tolerance)
        differences += _outcomes(name, mine, other)
        differences += _spans(name, mine.spans, other.spans, tolerance, gaps)
    return Comparison(differences=tuple(differences), gaps=tuple(gaps))


def _missing(name: str, mine: Story | None, other: Story | None) -> list[Difference] | None:
    """Report a job that only one side knows; None: there is more to compare.

    A job that was refused may be absent from the other side.
    """
    states = [story.final_state if story else REFUSED for story in (mine, other)]
    if states == [REFUSED, REFUSED]:
        return []
    if mine is not None and other is not None:
        return None
    shown = ["nothing" if story is None else story.final_state for story in (mine, other)]
    return [Difference(Aspect.JOBS, name, None, *shown)]


def tell(story: Story, short: Seconds = SHORT) -> Story:
    """Tidy up a life: no COMPLETING, no flicker, equals joined.

    Nor a first wait: the boundary at its end says all, and it may be too short to be seen. What has just begun at the
    end is no flicker: it may last.
    """
    told: list[Span] = []
    last = len(story.spans) - 1
    for at, span in enumerate(story.spans):
        before = told[-1] if told else None
        flicker = _is_flicker(span, 0.0 if at == last else short)
        if before is not None and (flicker or _continues(before, span)):
            told[-1] = attrs.evolve(
                before, end=span.end, cpus=before.cpus or span.cpus, gres=before.gres or span.gres
            )
        elif not flicker:
            told.append(span if span.state in _ON_NODES else attrs.evolve(span, nodes=()))
    if told and told[0].state == "PENDING":
        del told[0]
    final = story.final_state
    if final == "COMPLETING" and told:
        final = told[-1].state  # the observation ended before its end was seen
    return attrs.evolve(story, spans=tuple(told), final_state=final)


def _told(pair: Sequence[Story], short: Seconds) -> list[Story]:
    """Tidy up both lives; a stretch that is just too short on one side counts on neither."""
    told = [tell(story, short) for story in pair]
    stricter = [tell(story, short + _ABOUT) for story in pair]
    return stricter if _differ(*told) and not _differ(*stricter) else told


def _differ(mine: Story, other: Story) -> bool:
    """Whether the states differ."""
    return [span.state for span in mine.spans] != [span.state for span in other.spans]


def _is_flicker(span: Span, short: Seconds) -> bool:
    if span.state == "COMPLETING":
        return True
    return span.state in _FLICKER and span.end - span.start < short


def _continues(before: Span, span: Span) -> bool:
    nodes = span.nodes if span.state in _ON_NODES else ()
    return (before.state, before.nodes, before.restart) == (span.state, nodes, span.restart)


def _cut(story: Story, model: Story, observed: Seconds, tolerance: Seconds) -> Story:
    """Leave out what `model` could not show because the observation ended first, or nearly so."""
    if model.final_state in _ENDED:
        return story
    spans = list(story.spans)
    while len(spans) > len(model.spans) and spans[-1].start > observed - tolerance:
        del spans[-1]
    if len(spans) == len(story.spans):
        return story
    last = spans[-1] if spans else None
    return Story(
        spans=tuple(spans),
        final_state=last.state if last else "PENDING",
        restarts=last.restart if last else 0,
    )


def _outcomes(name: str, mine: Story, other: Story) -> Iterator[Difference]:
    if mine.final_state != other.final_state:
        at = mine.spans[-1].start if mine.spans else None
        states = mine.final_state, other.final_state
        yield Difference(Aspect.FINAL_STATE, name, at, *states)
    if mine.restarts != other.restarts:
        counts = str(mine.restarts), str(other.restarts)
        yield Difference(Aspect.RESTARTS, name, None, *counts)
    if mine.reason and other.reason and _kind_of(mine.reason) != _kind_of(other.reason):
        yield Difference(Aspect.REASON, name, None, mine.reason, other.reason)


def _kind_of(reason: str) -> str:
    """Return a reason without the nodes behind it; which of the first two is shown depends on who looked last.

    A reservation that is over is deleted by a sweep up to 30 s later.
    """
    word = reason.partition(",")[0]
    if word.startswith("Reservation"):
        return "Reservation"
    return "Resources" if word == "Priority" else word


def _spans(
    name: str,
    mine: Sequence[Span],
    other: Sequence[Span],
    tolerance: Seconds,
    gaps: list[Seconds],
) -> Iterator[Difference]:
    """Compare two sequences; distances of boundaries go to `gaps`."""
    if [span.state for span in mine] != [span.state for span in other]:
        yield _other_states(name, mine, other)
        return
    for left, right in zip(mine, other, strict=True):
        gap = abs(left.start - right.start)
        gaps.append(gap)
        if gap > tolerance:
            shown = (f"{left.state} from {left.start:.2f}", f"from {right.start:.2f}")
            yield Difference(Aspect.BOUNDARY, name, left.start, *shown)
        if left.nodes != right.nodes:
            lists = (f"{left.state} on {_folded(left.nodes)}", f"on {_folded(right.nodes)}")
            yield Difference(Aspect.NODES, name, left.start, *lists)
        elif left.cpus and right.cpus and dict(left.cpus) != dict(right.cpus):
            shown = (f"{left.state} on CPUs {_listed(left.cpus)}", f"on {_listed(right.cpus)}")
            yield Difference(Aspect.CPUS, name, left.start, *shown)
        elif left.cpus and right.cpus and dict(left.gres) != dict(right.gres):
            yield Difference(Aspect.GRES, name, left.start, f"{left.state} with {left.gres}", f"{right.gres}")


def _other_states(name: str, mine: Sequence[Span], other: Sequence[Span]) -> Difference:
    """Say where two sequences of states part."""
    pairs = zip(mine, other, strict=False)
    same = next((at for at, (a, b) in enumerate(pairs) if a.state != b.state), None)
    at = min(len(mine), len(other)) if same is None else same
    instant = next((spans[at].start for spans in (mine, other) if at < len(spans)), None)
    shown = [" ".join(_outline(span) for span in spans) or "PENDING" for spans in (mine, other)]
    return Difference(Aspect.STATES, name, instant, *shown)


def _outline(span: Span) -> str:
    return f"{span.state}@{span.start:.1f}"


def _listed(cpus: Mapping[str, Sequence[int]]) -> str:
    return " ".join(f"{node}:{','.join(map(str, numbers))}" for node, numbers in sorted(cpus.items()))


def _folded(names: Sequence[str]) -> str:
    return fold_hostlist(names) or "no nodes"


# ------------------------------------------------------------------------------- verdicts
def verify_one(scenario_path: Path, recording_path: Path, play: Play) -> Verdict:
    """Replay one scenario and judge it.

    :raises ConfigError: the scenario or the recording is malformed.
    """
    file = read_scenario_file(scenario_path)
    if not recording_path.exists():
        return _skipped(file.name, _why_none(file.needs, recording_path.parent))
    recording = read_recording(recording_path)
    if recording.scenario != file.name:
        problem = Problem("scenario", f"got {recording.scenario!r}; expected {file.name!r}")
        raise ConfigError(str(recording_path), [problem])
    scenario = build_scenario(file, recording, str(scenario_path))
    if not scenario.playable_on(recording.release):
        why = f"needs Slurm {file.needs}; the recording is of {recording.slurm_version}"
        return _skipped(file.name, why)
    if scenario.unmodelled:
        return _skipped(file.name, f"not modelled: {', '.join(scenario.unmodelled)}")
    return _judge(scenario, recording, play)


def _judge(scenario: Scenario, recording: Recording, play: Play) -> Verdict:
    try:
        record = play(scenario)
    except MakewayError as error:
        why = f"{type(error).__name__}: {error}"
        return Verdict(name=scenario.name, outcome=Outcome.FAILED, why=why, release=recording.release)
    comparison = compare(recording, record)
    if comparison.agrees:
        outcome = Outcome.AGREES
    else:
        outcome = Outcome.OTHER_NODES if comparison.same_story else Outcome.DIFFERS
    return Verdict(name=scenario.name, outcome=outcome, release=recording.release, comparison=comparison)


def _skipped(name: str, why: str) -> Verdict:
    return Verdict(name=name, outcome=Outcome.SKIPPED, why=why)


def _why_none(needs: str | None, recorded: Path) -> str:
    """Say why there is no recording; a folder's release is known from any of its recordings."""
    missing = f"no recording in {recorded.name}"
    other = next(iter(sorted(recorded.glob("*.json"))), None)
    if needs is None or other is None:
        return missing
    release = read_recording(other).release
    if version(release) >= version(needs):
        return missing
    return f"needs Slurm {needs}; the recordings are of {release}"
