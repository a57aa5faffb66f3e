"""Turn the jobs of a scenario into jobs as ``sbatch`` would submit them, with what their recording tells of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from makeway.dependencies import dependency, of_job
from makeway.errors import ConfigError, Problem
from makeway.model import JobSpec, Seconds
from makeway_slurm.readers.sbatch_args import parse_sbatch
from makeway_slurm.readers.sbatch_gpus import RefusedError
from makeway_slurm.recordings.clocks import IGNORED_KILL
from makeway_slurm.recordings.entries import (
    DEFAULT_ACCOUNT,
    DEFAULT_QOS,
    ClusterEntry,
    JobEntry,
    ScenarioFile,
    UserEntry,
    noted,
)
from makeway_slurm.recordings.recording import RecordedJob, Recording
from makeway_slurm_rules.rules import version

_EXIT_TIME = 0.05
"""From the moment a job is told to end until it has."""
_SLOW = 0.06
"""Least time of a clean-up that took a second look, in seconds."""
_SEEN = 0.3
"""A state is seen by the next sample, so many seconds later at most."""
_AT_ONCE = 0.05
"""Orders to a job that are so close, in seconds, belong together."""
_PATIENCE = 2.0
"""A job that has run this much longer than its work takes, in seconds, does no work."""
_LICENCES_OF_LEADERS = (24, 11)
"""sbatch refuses licences of components other than the leader in this release; 22.05 took them."""
_USUAL = 0.3
"""Processes that ignore SIGTERM may go this much earlier or later than usual."""


def jobs_of(file: ScenarioFile, recording: Recording | None, source: str) -> tuple[JobSpec, ...]:
    """Return the jobs in order of submission, numbered as Slurm does."""
    problems: list[Problem] = []
    jobs: list[JobSpec] = []
    number = 1
    for at, entry in sorted(enumerate(file.job), key=lambda pair: pair[1].at):
        specs = noted(
            problems,
            f"job[{at}].args",
            lambda entry=entry, number=number: _specs(file, entry, number, recording),
        )
        number += 1 if specs is None else len(specs)
        jobs += () if specs is None or _names_itself(specs) else specs
    if problems:
        raise ConfigError(source, problems)
    return tuple(_by_component(jobs))


def _names_itself(specs: Sequence[JobSpec]) -> bool:
    """Whether a job waits for itself, which Slurm refuses after it has given it a number."""
    return any(dependency(each).job == spec.id for spec in specs for each in spec.depends_on)


def _by_component(jobs: Sequence[JobSpec]) -> Iterator[JobSpec]:
    """Name the components of heterogeneous jobs that others depend on: each has a number of its own in Slurm."""
    own = {
        str(int(job.het_id) + job.het_offset): job.id
        for job in jobs
        if job.het_id is not None and job.het_offset
    }
    for job in jobs:
        named = tuple(
            of_job(each, own.get(dependency(each).job, dependency(each).job)) for each in job.depends_on
        )
        yield job if named == job.depends_on else attrs.evolve(job, depends_on=named)


def _specs(file: ScenarioFile, entry: JobEntry, number: int, recording: Recording | None) -> list[JobSpec]:
    """Return the job, or the components, that one entry submits; none if sbatch refuses it."""
    trim = recording.runtime_trim - _EXIT_TIME if recording else 0.1
    account, qos = _association(file.cluster, entry.user)
    try:
        specs = parse_sbatch(
            entry.args,
            id=str(number),
            user=entry.user,
            group=entry.user,
            account=account,
            qos=qos,
            submit_at=_answered(entry, recording),
            run_time=max(0.0, entry.runtime - trim),
            steps=entry.step,
            on_term=entry.on_term,
            source=file.name,
        )
    except RefusedError:
        return []
    by_component = any(spec.licenses for spec in specs if spec.het_offset)
    if by_component and recording is not None and version(recording.release) >= _LICENCES_OF_LEADERS:
        return []
    specs = [_dies_of_its_signal(spec) for spec in specs]
    return [_named(_without_processes(spec) if spec.het_offset else spec, entry, recording) for spec in specs]


def _answered(entry: JobEntry, recording: Recording | None) -> Seconds:
    """Return when Slurm had the job; as planned, where the clocks were not recorded."""
    if recording is None or recording.phases is None:
        return entry.at
    known = recording.jobs.get(entry.name) or recording.jobs.get(f"{entry.name}+0")
    return entry.at if known is None else known.answered


def _dies_of_its_signal(spec: JobSpec) -> JobSpec:
    """Return a job whose program does nothing about the signal that it asks for, and so dies of it."""
    return spec if spec.signal is None else attrs.evolve(spec, on_signal={spec.signal.name: "die"})


def _without_processes(component: JobSpec) -> JobSpec:
    """Return a component that is not the leader: script and step run on the nodes of the leader alone.

    So nothing there ignores a signal, and its nodes are clean at once (recorded: het_requeued_step).
    """
    return attrs.evolve(component, steps=False, on_term="default")


def _named(spec: JobSpec, entry: JobEntry, recording: Recording | None) -> JobSpec:
    """Give a job the name of the recording, and a begin time on the controller's clock."""
    name = entry.name if spec.het_id is None else f"{entry.name}+{spec.het_offset}"
    if spec.array_id is not None:
        name = f"{entry.name}_{spec.array_task}"
    begin = spec.begin_at
    if begin is not None:
        turn = 0.265 if recording is None or version(recording.release) < (23, 11) else 0.25
        if recording is not None and recording.phases is not None:
            turn = recording.phases.second
        asked = entry.at
        if recording is not None and entry.name in recording.jobs:
            asked = recording.jobs[entry.name].submitted  # close to a turn of the second its hundredths count
        begin += math.floor(asked - turn) + turn - spec.submit_at
    attributes = dict(spec.attributes)
    if recording is not None and recording.phases is not None and (known := cleaning_times(recording, name)):
        attributes["cleaning_times"] = known
    if recording is not None and went_on_at_resume(recording, name):
        attributes["goes_on_at_resume"] = True
    if recording is not None and entry.step and step_never_came(recording, name, entry.runtime):
        spec = attrs.evolve(spec, run_time=None)
    return attrs.evolve(
        spec,
        name=name,
        begin_at=begin,
        source=f"{spec.source}:{name}",
        attributes=attributes or spec.attributes,
    )


def cleaning_times(recording: Recording, name: str) -> tuple[Seconds | None, ...]:
    """Return how long a job took to leave its nodes after each start; None: as long as any other.

    A node looks whether the processes are gone after 0.025 s and then 0.1 s later; which it is, is a matter of luck.
    Processes that ignore SIGTERM are gone after 7.2 to 7.5 s (25 of 28 times) or after 5.3 s; the cause is not known.
    """
    own = [event for event in recording.events if event["job"] == name]
    if any(event["kind"] == "clean" for event in recording.events):
        return _told_by_log(own, recording.jobs.get(name))
    told: list[Seconds] = []
    known: list[Seconds | None] = []
    for event in own:
        if event["kind"] == "preempt_requeue":
            told = [event["t"]]
        elif event["kind"] == "requeued":
            known.append(_unusual(event["t"] - told.pop() if told else 0.0))
        elif event["kind"] == "preempt_kill":
            took = _completing_from(recording, name, event["t"])
            known.append(_unusual(took) if took > recording.sample_period else None)
    return tuple(known) if any(known) else ()


def _told_by_log(events: Sequence[Any], job: RecordedJob | None) -> tuple[Seconds | None, ...]:
    """Return the clean-ups of recordings that list them.

    An end that the log does not tell of, as by scancel, is like any other, unless the job was seen to leave.
    """
    known: list[Seconds | None] = []
    left: Seconds | None = None
    for event in events:
        if event["kind"] in ("end", "preempt_kill", "preempt_requeue", "node_fail"):
            left = event["t"] if left is None else left
        elif event["kind"] == "clean":
            begun = left if left is not None or job is None else _seen_leaving(job, event["t"])
            known.append(None if begun is None else event["t"] - begun)
            left = None
    return tuple(known)


def _seen_leaving(job: RecordedJob, clean: Seconds) -> Seconds | None:
    """Return since when the job was seen to leave the nodes that were clean at `clean`; None: it was not seen."""
    starts = (
        each.start
        for each in job.intervals
        if each.state == "COMPLETING" and each.start < clean <= each.end + _SEEN
    )
    return next(starts, None)


def went_on_at_resume(recording: Recording, name: str) -> bool:
    """Whether a job that gang let go on and stopped again as a person resumed it ended all the same.

    As a rule the order to stop is the last that its processes hear (rule resume_leaves_stopped), but the orders are
    sent side by side: in one run of twelve the other way round.
    """
    own = [(event["kind"], event["t"]) for event in recording.events if event["job"] == name]
    for at, (kind, when) in enumerate(own):
        if kind == "hand_resume" and any(each == "suspend" and when - t < _AT_ONCE for each, t in own[:at]):
            later = next((each for each, _ in own[at + 1 :] if each != "resume"), None)
            return later == "end" and recording.jobs[name].final_state == "COMPLETED"
    return False


def step_never_came(recording: Recording, name: str, runtime: Seconds) -> bool:
    """Whether the step of a job that began stopped did not come before the observation was over.

    As a rule the script is stopped before it asks for its step. In one site of eleven it asked before, was refused
    since the job is suspended, and asks again a minute later; until then the job runs without work.
    """
    known = recording.jobs.get(name)
    if known is None or len(known.intervals) < 2 or known.final_state != "RUNNING" or known.restarts:
        return False
    ran = sum(each.end - each.start for each in known.intervals if each.state == "RUNNING")
    return known.intervals[1].state == "SUSPENDED" and ran > runtime + _PATIENCE


def _unusual(took: Seconds) -> Seconds | None:
    """Return how long a clean-up took if that is not what every other takes."""
    return took if took > _SLOW and abs(took - IGNORED_KILL) > _USUAL else None


def _completing_from(recording: Recording, name: str, begin: Seconds) -> Seconds:
    """Return how long the job was seen to leave its nodes from `begin` on, by samples; 0: not seen."""
    for each in recording.jobs[name].intervals:
        if each.state == "COMPLETING" and abs(each.start - begin) < _SLOW:
            return each.end - each.start
    return 0.0


def _association(cluster: ClusterEntry, user: str) -> tuple[str | None, str | None]:
    """Return account and QOS of a user's jobs that name none; None: there is no accounting."""
    if not cluster.accounting:
        return None, None
    accounts = [account.name for account in cluster.account] or [DEFAULT_ACCOUNT]
    entry = next((each for each in cluster.user if each.name == user), UserEntry(name=user))
    account = entry.default_account or (entry.accounts or accounts)[0]
    return account, entry.default_qos or DEFAULT_QOS
