"""Read a scenario of the oracle: a cluster, jobs with their submission, and commands of people.

The format is the one of ``shared/oracle/FORMAT.md``. A scenario was played on a real Slurm whose
clocks were made to run fast; a replay that is to be held against the recording needs the same
clocks, so `load_scenario` writes them into the config (`harness_clockwork`).

What the recordings say about the clocks (157 of the oracle, 147 in tests/recordings):

sched_phase
    Looks of the main scheduler: first starts at .25 (26.11: all; 22.05: .25 or .26, later in a run
    up to .31, as each look takes a millisecond). In 22.05 the timeslicer wakes at .24 or .25, just
    before the look, hence 1/128 more there.
pass_on_completion
    A victim's nodes are given away 0.02 to 0.04 s after its kill. Where the rule builtin_raw_order
    holds (22.05 with sched/builtin and a single tier), the preemptor itself is passed over until the
    estimator of sched/builtin has run. It runs each ``bf_interval``, a second here; until then another
    job may take the nodes.
pass_on_own_end
    False. After a job that ended by itself the next one starts at the next look (48 of 49 times in
    26.11 within 0.01 s of .25). Gang resumes, by contrast, come in the instant of the end.
completing_time, batch_host_delay
    0.03 s from a kill to "requeued", or to the start of a preemptor that needs all nodes. Nodes without the batch
    script are clean at once: a look 0.01 s after the kill uses them. The other component of a heterogeneous job has
    left 0.02 to 0.03 s before its leader (three times of three, on both releases). One requeue in ten takes 0.13 s
    (9 of 93), which the recording tells: the attribute "cleaning_times" of the job.
kill_spacing
    Jobs that are killed together leave their nodes in order of submission, a few milliseconds apart
    (3 of 3), and each of them triggers a pass: whoever waits first takes the first nodes that are clean.
min_kill_delay
    7.4 s: ten jobs that ignore SIGTERM left 7.31 to 7.46 s after their kill, whatever KillWait=1
    says.
requeue_delay
    The recording's 6 s less 0.1: Slurm counts from the whole second in which the job left, so that
    it may start 6 looks after the one that killed it.
bf_phase
    The recording's, if it has phases. Else as the main scheduler; starts of backfill at .24 or .25 in 22.05, .13 to
    .25 in 26.11. The estimator of sched/builtin starts with the controller and then counts seconds by itself: 0.27 to
    0.39 s before a look (four runs of 22.05, median 0.36), if the recording does not tell.
second_phase
    The recording's, if it has phases; delays then count from whole seconds. Else, 22.05: anywhere, but for the few
    hundredths of a second between a look and the starts that clean-ups bring about: a job that started just after a
    look is as old as one that started with it.
first_tick
    The recording's. Without a recording one slice less 0.76 s, as 22.05 nearly always has.
limit_phase
    Two grace times that only the sweep could end ended at 25.29 and 25.31. With gang scheduling
    limits struck at 83.38, and twice at 143.5 and 173.5 (slices of 6 and 5 s): 23.4. All on 22.05;
    the sweep counts from the controller's start, so other slices and machines will differ.
run_time
    ``runtime`` less 0.1: median of both releases, -0.14 to -0.06 over all jobs.

Amounts that Slurm counts in whole seconds may come out one second apart from what is modelled (T2
of RELEASES.md). For ``--begin`` that is known beforehand: the controller's second turns at .25 in
26.11 and just after the look, at about .265, in 22.05.
"""

from __future__ import annotations

import math
import re
import statistics
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.config import Config, NodeTable, QosTable
from makeway.errors import ConfigError, Problem, reason_of, unknown
from makeway.hostlist import expand_hostlist
from makeway.model import JobSpec, Seconds
from makeway.settings import structure
from makeway.worlds.events import Command
from makeway_slurm.readers.conf import config_from_entries
from makeway_slurm.readers.grammar import Record, Setting, parse_conf
from makeway_slurm.readers.sbatch_args import RefusedError, parse_sbatch
from makeway_slurm.readers.values import parse_preempt_mode, parse_time
from makeway_slurm.recordings.recording import Phases, Recording, parse_recording, read_recording
from makeway_slurm.rules import version
from makeway_slurm.vendor import of_release

DEFAULT_USER = "alice"
DEFAULT_ACCOUNT = "acct"
DEFAULT_QOS = "normal"

_EXIT_TIME = 0.05
"""From the moment a job is told to end until it has."""
_LIMIT_SWEEP = 30.0
_LIMIT_PHASE, _LIMIT_PHASE_GANG = 25.3, 23.4
_IGNORED_KILL = 7.4
_SECOND = 0.75
_TICK_LEAD = 0.76
_ESTIMATOR_LEAD = 0.36
_SLOW = 0.06
"""Least time of a clean-up that took a second look, in seconds."""

_DEFAULTS = {
    "SchedulerType": "sched/backfill",
    "SelectType": "select/cons_tres",
    "PriorityType": "priority/basic",
    "TaskPlugin": "task/none",
    "KillWait": "1",
    "MessageTimeout": "2",
}
_SCHEDULER_PARAMETERS = {
    "batch_sched_delay": "0",
    "sched_interval": "1",
    "sched_min_interval": "1",
    "bf_interval": "1",
    "bf_resolution": "1",
    "bf_continue": "",
}
_GONE = {
    "taskplugin": "task/none",
    "preempttype": "preempt/none",
    "switchtype": "switch/none",
    "jobacctgathertype": "jobacct_gather/none",
    "mcsplugin": "mcs/none",
}
"""Values that meant "nothing" and are spelled by leaving the line out since 23.11."""

_NAME = re.compile(r"<([^<>]+)>")


# ------------------------------------------------------------------------------- the file
@attrs.frozen(kw_only=True)
class JobEntry:
    """One ``job`` of the file."""

    at: Seconds
    name: str
    runtime: Seconds = 10.0
    args: tuple[str, ...] = ()
    user: str = DEFAULT_USER
    step: bool = False
    on_term: str = attrs.field(
        default="default", validator=attrs.validators.in_(("default", "exit", "ignore"))
    )


@attrs.frozen(kw_only=True)
class ActionEntry:
    """One ``action`` of the file."""

    at: Seconds
    command: tuple[str, ...]


@attrs.frozen(kw_only=True)
class NodeEntry:
    """One of the cluster's ``nodes``; the name may be a host list."""

    name: str
    cpus: int | None = None
    sockets: int = 1
    cores_per_socket: int | None = None
    threads_per_core: int = 1
    real_memory: int = 1000
    features: tuple[str, ...] = ()
    weight: int = 1


@attrs.frozen(kw_only=True)
class QosEntry:
    """One of the cluster's ``qos``."""

    name: str
    priority: int = 0
    preempt: tuple[str, ...] = ()
    preempt_mode: str | None = None
    grace_time: Seconds = 0.0
    preempt_exempt_time: str | None = None
    flags: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class AccountEntry:
    """One of the cluster's ``account``."""

    name: str


@attrs.frozen(kw_only=True)
class UserEntry:
    """One of the cluster's ``user``."""

    name: str
    accounts: tuple[str, ...] = ()
    default_account: str | None = None
    qos: tuple[str, ...] = ()
    default_qos: str | None = None


@attrs.frozen(kw_only=True)
class ClusterEntry:
    """The ``cluster`` table."""

    nodes: tuple[NodeEntry, ...]
    slurm_conf: str
    licenses: Mapping[str, int] = attrs.field(factory=dict)
    qos: tuple[QosEntry, ...] = ()
    account: tuple[AccountEntry, ...] = ()
    user: tuple[UserEntry, ...] = ()
    one_node_line: bool = False
    """True: one NodeName line for each entry of `nodes`; else one for each node."""

    @property
    def accounting(self) -> bool:
        """Whether there was an accounting database."""
        return bool(self.qos or self.account or self.user)


@attrs.frozen(kw_only=True)
class ScenarioFile:
    """A whole scenario file."""

    name: str
    title: str = ""
    tags: tuple[str, ...] = ()
    expect: str = ""
    needs: str | None = None
    duration: Seconds
    squeue_at: tuple[Seconds, ...] = ()
    job: tuple[JobEntry, ...] = ()
    action: tuple[ActionEntry, ...] = ()
    cluster: ClusterEntry
    debug: bool = False
    stop_when_done: bool = True


# ------------------------------------------------------------------------------- what it becomes
@attrs.frozen(kw_only=True)
class Action:
    """Something that a person did during the run."""

    at: Seconds
    words: tuple[str, ...]
    """The command line, with ids in place of ``<NAME>``."""
    commands: tuple[Command, ...] = ()
    """What the engine is told; nothing if it was only a question."""
    drained: tuple[str, ...] = ()
    """Nodes that take no new jobs from then on; their jobs stay."""
    modelled: bool = True
    """False: Slurm does something that we cannot follow."""


@attrs.frozen(kw_only=True)
class Scenario:
    """A scenario, ready to be replayed."""

    name: str
    title: str = ""
    tags: tuple[str, ...] = ()
    expect: str = ""
    needs: str | None = None
    """Lowest release that knows the settings; None: any."""
    config: Config
    jobs: tuple[JobSpec, ...]
    """In order of submission; ids as Slurm numbers them, names as in the recording."""
    actions: tuple[Action, ...] = ()
    """In order of time."""
    duration: Seconds
    """How long to watch."""
    squeue_at: tuple[Seconds, ...] = ()
    warnings: tuple[str, ...] = ()
    """What the reader of slurm.conf had to say."""
    source: str = ""

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """Commands that a replay cannot follow, as they were typed."""
        return tuple(" ".join(each.words) for each in self.actions if not each.modelled)

    def playable_on(self, release: str) -> bool:
        """Say whether `release` knows the settings."""
        return self.needs is None or version(release) >= version(self.needs)


def load_scenario(
    path: Path | str, recording: Recording | Mapping[str, Any] | Path | None = None
) -> Scenario:
    """Read a scenario file; with `recording`, on the release and clocks of that run.

    :raises ConfigError: with all problems of the first part of the file that has any.
    """
    source = str(path)
    return build_scenario(read_scenario_file(Path(path)), _as_recording(recording), source)


def read_scenario_file(path: Path) -> ScenarioFile:
    """Read the file as it is written.

    :raises ConfigError: it cannot be read, is no TOML, or has unknown keys or wrong values.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(path), [Problem("", f"cannot read it: {error.strerror}")]) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(path), [Problem("", f"not valid TOML: {reason_of(error)}")]) from None
    return structure({"name": path.stem, **data}, ScenarioFile, str(path))


def build_scenario(file: ScenarioFile, recording: Recording | None = None, source: str = "") -> Scenario:
    """Turn a scenario file into config, jobs and commands.

    :raises ConfigError: with all problems of the first part that has any.
    """
    source = source or file.name
    _check(file, source)
    config, warnings = _config(file, recording, source)
    jobs = _jobs(file, recording, source)
    return Scenario(
        name=file.name,
        title=file.title,
        tags=file.tags,
        expect=file.expect.strip(),
        needs=file.needs,
        config=config,
        jobs=jobs,
        actions=_actions(file, jobs, source),
        duration=file.duration,
        squeue_at=file.squeue_at,
        warnings=warnings,
        source=source,
    )


def _as_recording(given: Recording | Mapping[str, Any] | Path | None) -> Recording | None:
    if given is None or isinstance(given, Recording):
        return given
    return read_recording(given) if isinstance(given, Path) else parse_recording(given)


def _check(file: ScenarioFile, source: str) -> None:
    """Check what single values cannot show."""
    problems: list[Problem] = []
    if file.needs is not None:
        _noted(problems, "needs", lambda: version(file.needs or ""))
    names = [job.name for job in file.job]
    users = {user.name for user in file.cluster.user} or {job.user for job in file.job}
    for at, job in enumerate(file.job):
        if names.index(job.name) != at:
            problems.append(Problem(f"job[{at}].name", f"job {job.name!r} is there twice"))
        if job.user not in users:
            problems.append(Problem(f"job[{at}].user", unknown("user", job.user, users)))
        for key in ("at", "runtime"):
            value = getattr(job, key)
            if value < 0 or math.isinf(value):
                problems.append(Problem(f"job[{at}].{key}", f"got {value}; allowed: 0 or more"))
    if problems:
        raise ConfigError(source, problems)


def _noted(problems: list[Problem], where: str, read: Any) -> Any:
    """Return what `read` returns; note its ValueError."""
    try:
        return read()
    except ValueError as error:
        problems.append(Problem(where, str(error)))
        return None


# ------------------------------------------------------------------------------- the config
def _config(file: ScenarioFile, recording: Recording | None, source: str) -> tuple[Config, tuple[str, ...]]:
    """Return the config of the cluster, and the warnings of the slurm.conf reader."""
    cluster = file.cluster
    release = recording.release if recording else None
    problems: list[Problem] = []
    nodes = _nodes(cluster, problems)
    qos = _qos(cluster, problems)
    if problems:
        raise ConfigError(source, problems)
    entries = _slurm_conf(cluster.slurm_conf, release, source)
    imported = config_from_entries(entries, nodes, source, release, qos=qos, licenses=cluster.licenses)
    config = imported.config
    own = config.scheduler.clockwork
    clocks = harness_clockwork(recording, config)
    merged = {**(own if isinstance(own, Mapping) else {}), **clocks}
    enforce = config.cluster.attributes.get("enforce_part_limits", "NO") != "NO"
    scheduler = attrs.evolve(
        config.scheduler, clockwork=merged, enforce_part_limits=enforce, **of_release(release)
    )
    return attrs.evolve(config, scheduler=scheduler), imported.warnings


def harness_clockwork(recording: Recording | None, config: Config) -> dict[str, float | bool]:
    """Return the clocks that a recording ran with, beyond what its slurm.conf says.

    :param recording: None: a run on 22.05 is assumed.
    :param config: what slurm.conf says.
    """
    release = recording.release if recording else "22.05"
    phase = 0.25 + (1 / 128 if version(release) < (23, 11) else 0.0)
    timeslice = _slice(config)
    clocks: dict[str, float | bool] = {
        "sched_phase": phase,
        "submit_delay": 0.0,
        "pass_on_submit": False,
        "pass_on_completion": True,
        "pass_on_own_end": False,
        "bf_phase": phase,
        "limit_sweep": _LIMIT_SWEEP,
        "limit_phase": _LIMIT_PHASE if timeslice is None else _LIMIT_PHASE_GANG,
        "min_kill_delay": _IGNORED_KILL,
        "requeue_delay": (recording.requeue_delay if recording else 6.0) - 0.1,
        "completing_time": 0.005,
        "batch_host_delay": 0.025,
        "kill_spacing": 0.0005,
        "suspend_grace_time": 0.0,
    }
    if version(release) < (23, 11):
        clocks["second_phase"] = _SECOND
    if recording is not None and recording.phases is not None:
        clocks |= _recorded_phases(recording, recording.phases)
    if config.scheduler.type == "builtin":
        clocks["bf_phase"] = _estimator_phase(recording, float(clocks["sched_phase"]))
    if recording is not None and recording.timeslice and recording.timeslice.ticks:
        clocks["first_tick"] = recording.timeslice.ticks[0]
    elif timeslice is not None:
        clocks["first_tick"] = max(0.0, timeslice - _TICK_LEAD)
    return clocks


def _recorded_phases(recording: Recording, phases: Phases) -> dict[str, float | bool]:
    """Return the clocks of a run that recorded where they stood."""
    clocks: dict[str, float | bool] = {
        "second_phase": phases.second,
        "counts_seconds": True,
        "requeue_delay": recording.requeue_delay,
    }
    if phases.looks:
        clocks["sched_phase"] = _phase(phases.looks)
    if phases.backfills:
        clocks["bf_phase"] = _phase(phases.backfills)
    return clocks


def _estimator_phase(recording: Recording | None, look: Seconds) -> Seconds:
    """Return when in each second sched/builtin estimates starts; `look`: when it looks."""
    if recording is not None and recording.phases is not None and recording.phases.estimator is not None:
        return recording.phases.estimator
    return (look - _ESTIMATOR_LEAD) % 1.0


def _phase(passes: Sequence[Seconds]) -> Seconds:
    """Return the middle one of the phases in which passes came, each second; the clock drifts by milliseconds.

    Phases around the turn of a second are no distance apart, so that they are measured from the first.
    """
    origin = passes[0]
    apart = statistics.median(_apart(each - origin) for each in passes)
    return (origin + apart) % 1.0


def _apart(seconds: Seconds) -> Seconds:
    """Return how far an instant lies behind or before the nearest full second."""
    return (seconds + 0.5) % 1.0 - 0.5


def _slice(config: Config) -> Seconds | None:
    """Return the length of a turn; None: no gang scheduling."""
    if "gang" not in config.policy.preempt_mode:
        return None
    return float(config.policy.settings.get("gang/timeslice", {}).get("timeslice", 30.0))


def _nodes(cluster: ClusterEntry, problems: list[Problem]) -> tuple[NodeTable, ...]:
    """Return one table for each NodeName line that the runner wrote."""
    tables: list[NodeTable] = []
    for at, entry in enumerate(cluster.nodes):
        names = _noted(problems, f"cluster.nodes[{at}].name", lambda entry=entry: expand_hostlist(entry.name))
        lines = [entry.name] if cluster.one_node_line else names or ()
        tables += [_node(entry, name) for name in lines]
    return tuple(tables)


def _node(entry: NodeEntry, name: str) -> NodeTable:
    threads = entry.sockets * entry.threads_per_core
    return NodeTable(
        name=name,
        cpus=entry.cpus or threads * (entry.cores_per_socket or 1),
        sockets=entry.sockets,
        cores_per_socket=entry.cores_per_socket or max(1, (entry.cpus or 1) // threads),
        threads_per_core=entry.threads_per_core,
        memory_mb=entry.real_memory,
        weight=entry.weight,
        features=entry.features,
    )


def _qos(cluster: ClusterEntry, problems: list[Problem]) -> tuple[QosTable, ...]:
    """Return the QOS; ``normal`` is always among them once there is accounting."""
    if not cluster.accounting:
        return ()
    tables = [_one_qos(at, entry, problems) for at, entry in enumerate(cluster.qos)]
    if all(entry.name != DEFAULT_QOS for entry in cluster.qos):
        tables.append(QosTable(name=DEFAULT_QOS))
    return tuple(tables)


def _one_qos(at: int, entry: QosEntry, problems: list[Problem]) -> QosTable:
    where = f"cluster.qos[{at}]"
    mode: tuple[str, ...] | None = None
    exempt: int | None = None
    if entry.preempt_mode is not None:
        text = entry.preempt_mode
        mode = _noted(problems, f"{where}.preempt_mode", lambda: _mode_words(text))
    if entry.preempt_exempt_time is not None:
        duration = entry.preempt_exempt_time
        exempt = _noted(problems, f"{where}.preempt_exempt_time", lambda: parse_time(duration))
    return QosTable(
        name=entry.name,
        priority=entry.priority,
        preempt=entry.preempt,
        preempt_mode=mode,
        grace_time=entry.grace_time,
        exempt_time=None if exempt is None else float(exempt),
        flags=entry.flags,
    )


def _mode_words(text: str) -> tuple[str, ...] | None:
    """Return a preempt mode as the config spells it; None: the QOS names no mode (CLUSTER)."""
    if text.lower() == "cluster":
        return None
    action, flags = parse_preempt_mode(text)
    return ((action,) if action else ()) + tuple(sorted(flags))


# ------------------------------------------------------------------------------- slurm.conf
def _slurm_conf(text: str, release: str | None, source: str) -> list[Setting | Record]:
    """Return the entries of slurm.conf as the runner writes it around the scenario's lines."""
    new = release is not None and version(release) >= (23, 11)
    entries = [
        entry
        for entry in parse_conf(text, f"{source}:slurm_conf").entries
        if not (new and isinstance(entry, Setting) and _is_gone(entry.key, entry.value))
    ]
    given = {entry.canonical for entry in entries if isinstance(entry, Setting)}
    added = [
        f"{key}={value}"
        for key, value in _DEFAULTS.items()
        if key.lower() not in given and not (new and _is_gone(key, value))
    ]
    head = parse_conf("\n".join([*added, _scheduler_parameters(entries)]), "oracle")
    rest = [e for e in entries if not _sets(e, "schedulerparameters")]
    return [*head.entries, *rest]


def _is_gone(key: str, value: str) -> bool:
    return _GONE.get(key.lower()) == value.strip().lower()


def _sets(entry: Setting | Record, key: str) -> bool:
    return isinstance(entry, Setting) and entry.canonical == key


def _scheduler_parameters(entries: Iterable[Setting | Record]) -> str:
    """Merge the scenario's SchedulerParameters into the runner's."""
    merged = dict(_SCHEDULER_PARAMETERS)
    for entry in entries:
        if isinstance(entry, Setting) and entry.canonical == "schedulerparameters":
            for word in entry.value.split(","):
                name, _, value = word.strip().partition("=")
                merged[name] = value
    words = [f"{name}={value}" if value else name for name, value in merged.items()]
    return f"SchedulerParameters={','.join(words)}"


# ------------------------------------------------------------------------------- the jobs
def _jobs(file: ScenarioFile, recording: Recording | None, source: str) -> tuple[JobSpec, ...]:
    """Return the jobs in order of submission, numbered as Slurm does."""
    problems: list[Problem] = []
    jobs: list[JobSpec] = []
    number = 1
    for at, entry in sorted(enumerate(file.job), key=lambda pair: pair[1].at):
        specs = _noted(
            problems,
            f"job[{at}].args",
            lambda entry=entry, number=number: _specs(file, entry, number, recording),
        )
        jobs += specs or ()
        number += 1 if specs is None else len(specs)
    if problems:
        raise ConfigError(source, problems)
    return tuple(_by_component(jobs))


def _by_component(jobs: Sequence[JobSpec]) -> Iterator[JobSpec]:
    """Name the components of heterogeneous jobs that others depend on: each has a number of its own in Slurm."""
    own = {
        str(int(job.het_id) + job.het_offset): job.id
        for job in jobs
        if job.het_id is not None and job.het_offset
    }
    for job in jobs:
        named = tuple(own.get(each, each) for each in job.depends_on)
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
            submit_at=entry.at,
            run_time=max(0.0, entry.runtime - trim),
            steps=entry.step,
            on_term=entry.on_term,
            source=file.name,
        )
    except RefusedError:
        return []
    return [_named(spec, entry, recording) for spec in specs]


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
        begin += math.floor(entry.at - turn) + turn - entry.at
    attributes = dict(spec.attributes)
    if recording is not None and recording.phases is not None and (known := cleaning_times(recording, name)):
        attributes["cleaning_times"] = known
    return attrs.evolve(
        spec,
        name=name,
        begin_at=begin,
        source=f"{spec.source}:{name}",
        attributes=attributes or spec.attributes,
    )


def cleaning_times(recording: Recording, name: str) -> tuple[Seconds | None, ...]:
    """Return how long a preempted job took to leave its nodes, for each start that took unusually long, else None.

    A node looks whether the processes are gone after 0.025 s and then 0.1 s later; which it is, is a matter of luck.
    """
    told: list[Seconds] = []
    known: list[Seconds | None] = []
    for event in recording.events:
        if event["job"] != name:
            continue
        if event["kind"] == "preempt_requeue":
            told = [event["t"]]
        elif event["kind"] == "requeued":
            took = event["t"] - told.pop() if told else 0.0
            known.append(took if _SLOW < took < _IGNORED_KILL / 2 else None)
    return tuple(known) if any(known) else ()


def _association(cluster: ClusterEntry, user: str) -> tuple[str | None, str | None]:
    """Return account and QOS of a user's jobs that name none; None: there is no accounting."""
    if not cluster.accounting:
        return None, None
    accounts = [account.name for account in cluster.account] or [DEFAULT_ACCOUNT]
    entry = next((each for each in cluster.user if each.name == user), UserEntry(name=user))
    account = entry.default_account or (entry.accounts or accounts)[0]
    return account, entry.default_qos or DEFAULT_QOS


# ------------------------------------------------------------------------------- the actions
def _actions(file: ScenarioFile, jobs: Sequence[JobSpec], source: str) -> tuple[Action, ...]:
    """Translate the commands, in order of time."""
    problems: list[Problem] = []
    ids = dict(_ids_by_name(jobs))
    actions: list[Action] = []
    for at, entry in sorted(enumerate(file.action), key=lambda pair: pair[1].at):
        where = f"action[{at}].command"
        action = _noted(problems, where, lambda entry=entry: _action(entry, ids))
        actions += [action] if action else []
    if problems:
        raise ConfigError(source, problems)
    return tuple(actions)


def _ids_by_name(jobs: Iterable[JobSpec]) -> Iterator[tuple[str, str]]:
    """Yield each job's name and id; a heterogeneous job also as a whole, by its leader's id."""
    for job in jobs:
        yield job.name, job.id
        if job.het_id is not None and job.het_offset == 0:
            yield job.name.removesuffix("+0"), job.id


def _action(entry: ActionEntry, ids: Mapping[str, str]) -> Action:
    """Translate one command.

    :raises ValueError: it names an unknown job, or is no command of Slurm's that we know.
    """
    words = tuple(_NAME.sub(lambda match: _id_of(match[1], ids), word) for word in entry.command)
    program = words[0] if words else ""
    rest = [word for word in words[1:] if not word.startswith("-")]
    if program in _QUESTIONS or (program == "sbatch" and "--test-only" in words):
        return Action(at=entry.at, words=words)
    if program == "scancel":
        return Action(at=entry.at, words=words, commands=_for_each("cancel", rest))
    if program != "scontrol" or not rest:
        raise ValueError(unknown("command", program, ("scontrol", "scancel", *_QUESTIONS)))
    return _control(entry.at, words, rest[0].lower(), rest[1:])


_QUESTIONS = ("squeue", "sinfo", "sacct", "sprio", "sdiag")
_VERBS = ("suspend", "resume", "hold", "release", "requeue")


def _control(at: Seconds, words: tuple[str, ...], verb: str, objects: Sequence[str]) -> Action:
    """Translate a command of scontrol."""
    if verb == "show":
        return Action(at=at, words=words)
    if verb == "update":
        return _update(at, words, objects)
    if verb not in _VERBS:
        raise ValueError(unknown("scontrol command", verb, (*_VERBS, "show", "update")))
    return Action(at=at, words=words, commands=_for_each(verb, objects))


def _id_of(name: str, ids: Mapping[str, str]) -> str:
    if name not in ids:
        raise ValueError(unknown("job", name, ids))
    return ids[name]


def _for_each(verb: str, words: Iterable[str], value: str = "") -> tuple[Command, ...]:
    """Return one command for each job of lists such as ``1,2``."""
    return tuple(Command(verb, job_id, value=value) for word in words for job_id in word.split(",") if job_id)


def _update(at: Seconds, words: tuple[str, ...], objects: Sequence[str]) -> Action:
    """Translate ``scontrol update``: a job's priority, or a node taken out of service."""
    given = {key.lower(): value for key, _, value in (word.partition("=") for word in objects)}
    given.pop("reason", None)
    if set(given) == {"jobid", "priority"}:
        commands = _for_each("priority", [given["jobid"]], given["priority"])
        return Action(at=at, words=words, commands=commands)
    if set(given) == {"nodename", "state"} and given["state"].lower() == "drain":
        return Action(at=at, words=words, drained=tuple(expand_hostlist(given["nodename"])))
    return Action(at=at, words=words, modelled=False)
