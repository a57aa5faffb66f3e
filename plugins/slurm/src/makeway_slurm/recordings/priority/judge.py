"""Play a recorded scenario about priorities or limits, and compare all that was recorded.

Compared are, for each job, whether it was refused, its time limit, the seconds of its start and end, its last state,
the reason for which it waited longest; and row by row what sprio and sshare printed, to the last digit. Starts may lie
a second apart (two looks of the scheduler).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from makeway import registry
from makeway.errors import MakewayError
from makeway.model import Job, JobSpec, Seconds
from makeway.partition_bounds import BOUNDS
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.throttle import WAITS
from makeway_slurm.limits.access import GROUP
from makeway_slurm.limits.judge import Judge
from makeway_slurm.multifactor.tables import (
    SSHARE_HEADINGS,
    PriorityRow,
    multifactor_of,
    priority_rows,
    share_rows,
)
from makeway_slurm.readers.limits import NAME as LIMITING
from makeway_slurm.recordings.priority.recording import Recording, Seen, Table, read
from makeway_slurm.recordings.priority.scenario import Scenario, UnmodelledError, build
from makeway_verify.verdicts import Aspect, Comparison, Difference, Outcome, Verdict

TOLERANCE: Seconds = 1.0
_LOOK: Seconds = 0.5
_SHORT: Seconds = 2.5
"""Shortest wait whose reason is compared: reasons change from look to look."""
_HELD_STATE = "RESV_DEL_HOLD"
"""State that squeue tells of a pending job whose reservation is gone."""
_ORDER_ONLY = frozenset(
    (
        *("Priority", "None", "Resources", "BeginTime", "Dependency", "JobHeldUser", "JobHeldAdmin"),
        "BadConstraints",
    )
)
"""Reasons that are no limits; a job that no node can run is one that the replay refuses."""
_SPRIO = (
    *("job", "partition", "user", "priority", "site", "age", "assoc", "fairshare", "jobsize"),
    *("partition_prio", "qos_prio", "nice", "tres"),
)
_SHARES = ("RawShares", "NormShares", "RawUsage", "NormUsage", "EffectvUsage", "FairShare", "LevelFS")


@attrs.define
class Observed:
    """What a replay showed."""

    tables: dict[int, list[Any]] = attrs.field(factory=dict)
    """Number of a table -> its rows."""


def verdict(recording_path: Path, *, skip_missing: bool) -> Verdict:
    """Play what a recording is of, and judge.

    :raises ConfigError: the recording is malformed.
    """
    return judged(read(recording_path), str(recording_path), skip_missing=skip_missing)


def judged(recording: Recording, source: str, *, skip_missing: bool) -> Verdict:
    """Play what a recording is of, and judge.

    :param source: how messages call its file.
    :raises ConfigError: its scenario is malformed.
    """
    name = str(recording.scenario.get("name", Path(source).stem))
    try:
        scenario = build(recording, source)
    except UnmodelledError as error:
        return Verdict(
            name=name, outcome=Outcome.SKIPPED, why=f"not modelled: {error}", release=recording.release
        )
    missing = registry.missing_to_play(scenario.config)
    if missing:
        outcome = Outcome.SKIPPED if skip_missing else Outcome.FAILED
        return Verdict(name=name, outcome=outcome, why=missing, release=recording.release)
    observed = Observed()
    try:
        summary = play(scenario, recording, observed)
    except MakewayError as error:
        why = f"{type(error).__name__}: {error}"
        return Verdict(name=name, outcome=Outcome.FAILED, why=why, release=recording.release)
    gaps: list[Seconds] = []
    differences = [*_of_jobs(recording, summary, gaps), *_of_tables(recording, scenario, observed)]
    comparison = Comparison(differences=tuple(differences), gaps=tuple(gaps))
    outcome = Outcome.AGREES if comparison.agrees else Outcome.DIFFERS
    return Verdict(name=name, outcome=outcome, release=recording.release, comparison=comparison)


def play(scenario: Scenario, recording: Recording, observed: Observed) -> Mapping[str, Any]:
    """Replay a scenario; what tables would show is put into `observed`."""
    snapshots: dict[Seconds, Any] = {}
    wanted: dict[Seconds, list[tuple[int, str]]] = {}
    for at, table in enumerate(recording.tables):
        if table.what in ("sprio", "sshare"):
            wanted.setdefault(table.taken, []).append((at, table.what))
    for taken, tables in wanted.items():
        snapshots[taken] = _taker(taken, tables, observed)
    reasons = _Reasons()
    limiter = _Limiter()
    run = replay(
        scenario.config,
        map(limiter.limited, scenario.jobs),
        scenario.commands,
        Options(
            until=scenario.duration,
            snapshots=snapshots,
            started=limiter.started,
            after_step=reasons.look,
        ),
    )
    summary = dict(run.summary())
    shown = summary["jobs"]
    told = {job_id: why for job_id, _, why in run.recorder.unrunnable}
    summary["refused"] = {job_id: why for job_id, why in told.items() if not shown[job_id]["intervals"]}
    summary["reasons"], summary["lasting_reasons"] = reasons.told(scenario.duration)
    summary["until"] = scenario.duration
    summary["time_limits"] = limiter.limits
    return summary


def _taker(taken: Seconds, tables: Sequence[tuple[int, str]], observed: Observed) -> Any:
    def take(engine: Engine) -> None:
        for at, what in tables:
            rows: list[Any]
            if what == "sprio":
                rows = list(priority_rows(engine.ledger))
            else:
                rows = [
                    dict(zip(SSHARE_HEADINGS, row, strict=True)) for row in share_rows(engine.ledger, taken)
                ]
                multifactor = multifactor_of(engine.ledger)
                if multifactor is not None:
                    multifactor.show()
            observed.tables[at] = rows

    return take


@attrs.define
class _Limiter:
    """Gives jobs what limits of QOS and associations give them: a time limit, if they have none, and most nodes."""

    limits: dict[str, Seconds | None] = attrs.field(factory=dict)
    """The time limit of each job; None: unlimited."""
    engine: Engine | None = None

    def started(self, engine: Engine) -> None:
        self.engine = engine

    def limited(self, spec: JobSpec) -> JobSpec:
        if self.engine is None:
            return spec
        draft, _ = self.engine.submission.draft(spec, 0)
        # In each of several partitions another MaxTime would be shown.
        self.limits[spec.id] = draft.time_limit if len(draft.partitions) == 1 else spec.time_limit
        if LIMITING not in self.engine.config.policy.plugins:
            return spec
        limits = self.engine.ledger.book(Judge)
        caps = []
        for each in reversed(draft.partitions):
            draft.partition = each
            caps.append(limits.node_cap(cast(Job, draft)))
        if any(caps):
            spec = attrs.evolve(spec, node_cap=None if None in caps else max(filter(None, caps)))
        if spec.time_limit is None:
            limit = limits.given_time.of(cast(Job, draft))
            if limit:
                self.limits[spec.id] = limit
                spec = attrs.evolve(spec, time_limit=limit)
        return spec


@attrs.define
class _Reasons:
    """How long each job waited for what."""

    since: dict[str, tuple[Seconds, str]] = attrs.field(factory=dict)
    spent: dict[str, dict[str, Seconds]] = attrs.field(factory=dict)
    lasting: dict[str, dict[str, Seconds]] = attrs.field(factory=dict)
    """The same, without what lasted too short to be seen for sure."""

    def look(self, engine: Engine) -> None:
        now = engine.ledger.now
        pending = engine.ledger.pending
        # All tasks of an array that have not started share one record,
        # and so the reason of the first (slurm-priority-and-limits 8 no. 3).
        of_array: dict[str | None, str] = {}
        for job in pending:
            if not job.starts and job.reason != WAITS:
                of_array.setdefault(job.spec.array_id, job.reason)
        present: set[str] = set()
        for job in pending:
            present.add(job.id)
            reason = job.reason
            if job.spec.array_id is not None and (reason == WAITS or not job.starts):
                reason = of_array.get(job.spec.array_id, reason)
            before = self.since.get(job.id)
            if before is None or before[1] != reason:
                self._end(job.id, now)
                self.since[job.id] = now, reason
        for job_id in [each for each in self.since if each not in present]:
            self._end(job_id, now)

    def _end(self, job_id: str, now: Seconds) -> None:
        before = self.since.pop(job_id, None)
        if before is not None:
            since, reason = before
            for told in (self.spent, self.lasting) if now - since >= _LOOK else (self.spent,):
                spent = told.setdefault(job_id, {})
                spent[reason] = spent.get(reason, 0.0) + now - since

    def told(self, now: Seconds) -> tuple[dict[str, dict[str, Seconds]], dict[str, dict[str, Seconds]]]:
        for job_id in list(self.since):
            self._end(job_id, now)
        return self.spent, self.lasting


# --------------------------------------------------------------------------------- comparing
def _of_jobs(recording: Recording, summary: Mapping[str, Any], gaps: list[Seconds]) -> Iterator[Difference]:
    by_name = {job["name"]: (job_id, job) for job_id, job in summary["jobs"].items()}
    for name, seen in recording.jobs.items():
        if seen.refused is not None:
            tasks = f"{name}["
            job_ids = [each[0] for label, each in by_name.items() if label == name or label.startswith(tasks)]
            if any(job_id not in summary["refused"] for job_id in job_ids):
                yield Difference(Aspect.JOBS, name, None, "refused", "taken")
            continue
        found = by_name.get(name)
        if found is None or found[0] in summary["refused"]:
            if _is_folded(name, by_name):
                continue
            why = summary["refused"].get(found[0], "") if found is not None else "not there"
            yield Difference(Aspect.JOBS, name, None, "taken", f"refused {why}".strip())
            continue
        yield from _of_job(name, seen, found[0], found[1], summary, gaps)


def _is_folded(name: str, by_name: Mapping[str, Any]) -> bool:
    """Whether a record stands for several tasks of an array that had not started: ``a[2-4]``."""
    head, bracket, tasks = name.partition("[")
    return (
        bool(bracket)
        and not tasks.rstrip("]'").isdigit()
        and any(each.startswith(f"{head}[") for each in by_name)
    )


def _of_job(
    name: str,
    seen: Seen,
    job_id: str,
    job: Mapping[str, Any],
    summary: Mapping[str, Any],
    gaps: list[Seconds],
) -> Iterator[Difference]:
    limit = summary["time_limits"].get(job_id)
    if limit is not None and seen.time_limit is not None and seen.time_limit != limit:
        yield Difference(
            Aspect.STATES, name, None, f"time limit {seen.time_limit:g} s", f"time limit {limit:g} s"
        )
    recorded = [change.t for change in _starts(seen)]
    replayed = _first_of_each(job, seen_only=False)
    if len(replayed) > len(recorded):
        replayed = _first_of_each(job, seen_only=True)
    if len(recorded) != len(replayed):
        shown = [", ".join(f"{at:.1f}" for at in each) or "never" for each in (recorded, replayed)]
        yield Difference(Aspect.STATES, name, None, f"starts {shown[0]}", f"starts {shown[1]}")
        return
    started = (
        bool(seen.changes) and seen.changes[-1].state != "PENDING"
    )  # else it is the start that is planned
    exact = seen.last.get("StartTime") if started else None
    for at, (one, other) in enumerate(zip(recorded, replayed, strict=True)):
        if at == len(recorded) - 1 and isinstance(exact, int):
            one = float(exact)
            other = float(math.floor(other + 1e-6))
        gap = abs(one - other)
        gaps.append(gap)
        if gap > TOLERANCE + (0.0 if isinstance(exact, int) and at == len(recorded) - 1 else _LOOK):
            yield Difference(Aspect.BOUNDARY, name, one, f"starts at {one:.1f}", f"at {other:.1f}")
    last = seen.changes[-1].state if seen.changes else ""
    states = {"COMPLETING": "RUNNING", "CONFIGURING": "RUNNING"}
    mine, other_state = states.get(last, last), states.get(str(job["final_state"]), str(job["final_state"]))
    spent = [summary[key].get(job_id, {}) for key in ("reasons", "lasting_reasons")]
    if mine == _HELD_STATE and any(reason.endswith("_was_deleted") for reason in spent[0]):
        mine = "PENDING"
    held = mine == "PENDING" and seen.changes[-1].reason == "BadConstraints"
    if mine != other_state and not (held and other_state == "FAILED"):
        yield Difference(Aspect.FINAL_STATE, name, None, mine, other_state)
    yield from _of_reason(name, seen, spent, summary["until"])


def _starts(seen: Seen) -> Iterator[Any]:
    before = ""
    for change in seen.changes:
        if change.state == "RUNNING" and before not in ("RUNNING", "SUSPENDED", "COMPLETING"):
            yield change
        before = change.state


def _first_of_each(job: Mapping[str, Any], *, seen_only: bool) -> list[Seconds]:
    """Return when each incarnation started.

    :param seen_only: leave out those that made way before the first look, perhaps.
    """
    found: dict[int, Seconds] = {}
    until: dict[int, Seconds] = {}
    for each in job["intervals"]:
        if each["state"] in ("RUNNING", "SUSPENDED"):
            restart = int(each.get("restart", 0))
            found.setdefault(restart, float(each["start"]))
            until[restart] = math.inf if each.get("end") is None else float(each["end"])
    last = max(found, default=0)
    return [
        start
        for restart, start in found.items()
        if not seen_only or restart == last or until[restart] - start >= _LOOK
    ]


def _of_reason(
    name: str, seen: Seen, spent: Sequence[Mapping[str, Seconds]], until: Seconds
) -> Iterator[Difference]:
    """Compare limits as reasons: which of them kept the job waiting longest, up to the end of both.

    :param spent: what the replay waited for, with and without what the recording may not have seen.
    """
    recorded: dict[str, Seconds] = {}
    changes = list(seen.changes)
    for at, change in enumerate(changes):
        if change.state in ("PENDING", _HELD_STATE) and change.reason:
            end = changes[at + 1].t if at + 1 < len(changes) else max(until, change.t)
            recorded[change.reason] = recorded.get(change.reason, 0.0) + end - change.t
    if not recorded and "[" in name:
        return  # a task that waits is part of its array's record, which the first of them keeps
    mine, (other, lasting) = _limit_of(recorded), map(_limit_of, spent)
    # PartitionConfig is said of both at the submission, and for good of what no node can run (7).
    alike = mine == "PartitionConfig" and other in BOUNDS
    if mine not in (other, lasting) and not alike and not _is_as_long(mine or other, recorded, spent[0]):
        yield Difference(Aspect.REASON, name, None, mine or "no limit", other or "no limit")


_GROUPS = re.compile(r"uid \d+ not in group permitted to use this partition .*")
"""How newer releases say that a partition keeps out a user's groups."""


def _is_as_long(why: str, *spent: Mapping[str, Seconds]) -> bool:
    """Whether a job waited about as long for a limit in both, on either side of what counts."""
    times = [sum(time for each, time in one.items() if each.replace("_", " ") == why) for one in spent]
    return min(times) > 0.0 and max(times) - min(times) <= TOLERANCE and max(times) < 2 * _SHORT


def _limit_of(spent: Mapping[str, Seconds]) -> str:
    limits = {
        _GROUPS.sub(GROUP, why.replace("_", " ")): time  # longer ones are printed with underscores
        for why, time in spent.items()
        if why not in _ORDER_ONLY and time >= _SHORT - _LOOK
    }
    return max(limits, key=lambda why: limits[why]) if limits else ""


def _of_tables(recording: Recording, scenario: Scenario, observed: Observed) -> Iterator[Difference]:
    names = {spec.id: spec.name for spec in scenario.jobs}
    ends = {name: seen.last.get("EndTime") for name, seen in recording.jobs.items()}
    tasks = {str(seen.job_id): name for name, seen in recording.jobs.items() if "[" in name}
    for at, table in enumerate(recording.tables):
        if at not in observed.tables:
            continue
        if table.what == "sprio":
            gone = {name for name, end in ends.items() if isinstance(end, int) and end < table.taken}
            gone |= {name.partition("[")[0] for name in gone}
            yield from _of_priorities(table, observed.tables[at], names, tasks, gone)
        else:
            yield from _of_shares(table, observed.tables[at])


def _of_priorities(
    table: Table,
    rows: Sequence[PriorityRow],
    names: Mapping[str, str],
    tasks: Mapping[str, str],
    gone: Collection[str],
) -> Iterator[Difference]:
    """Compare rows of sprio; tasks of an array share a row, but for those that have got records of their own.

    :param tasks: number of a record -> the task that it was about in the end.
    :param gone: jobs that had ended: with CALCULATE_RUNNING Slurm goes on showing them, makeway does not.
    """
    recorded = {}
    for row in table.rows:
        full = _columns(row)
        recorded[tasks.get(full["job"], full["job"].partition("[")[0]), full["partition"]] = full
    replayed = {}
    for each in rows:
        cells = dict(zip(_SPRIO, each.cells(), strict=True))
        name = names.get(each.job, each.job)
        own = (name, each.partition)
        replayed[own if own in recorded else (name.partition("[")[0], each.partition)] = cells
    for key in dict.fromkeys([*recorded, *replayed]):
        mine, other = recorded.get(key), replayed.get(key)
        job = " in ".join(key)
        if other is None and key[0] in gone:
            continue
        if mine is None or other is None:
            shown = [str(each["priority"]) if each else "no row" for each in (mine, other)]
            yield Difference(Aspect.STATES, job, table.taken, f"sprio {shown[0]}", shown[1])
            continue
        for column in _SPRIO[3:]:
            if mine.get(column, "") != other[column]:
                yield Difference(
                    Aspect.STATES, job, table.taken, f"sprio {column} {mine.get(column, '')}", other[column]
                )


def _columns(row: Mapping[str, str]) -> Mapping[str, str]:
    """Return a row of sprio by its columns.

    22.05 prints no account and no QOS for the format that asks for them, so that there all values after the user
    stand two names too early, and the last two names are missing.
    """
    whole = all(column in row for column in _SPRIO)
    return row if whole else dict(zip(_SPRIO, row.values(), strict=False))


def _of_shares(table: Table, rows: Sequence[Mapping[str, str]]) -> Iterator[Difference]:
    replayed = {_who(row): row for row in rows}
    for row in table.rows:
        other = replayed.get(_who(row))
        who = "/".join(filter(None, _who(row)))
        if other is None:
            yield Difference(Aspect.STATES, who, table.taken, "sshare row", "none")
            continue
        for column in _SHARES:
            if column == "FairShare" and not row.get(column):
                continue  # 26.05 prints none with the classic algorithm
            if column in row and row[column] != other[column]:
                yield Difference(
                    Aspect.STATES, who, table.taken, f"sshare {column} {row[column]}", other[column]
                )


def _who(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["Account"].strip(), row["User"], row.get("Partition", "")
