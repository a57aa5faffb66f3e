"""Turn a scenario about priorities and limits into config, jobs and commands.

The clocks are those of the recording: looks of the main scheduler every second, recalculations at the instants that
the controller's log shows, jobs submitted when they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway.config import Config, NodeTable
from makeway.errors import ConfigError, Problem
from makeway.hostlist import expand_hostlist
from makeway.model import JobSpec, Seconds
from makeway.worlds.events import Command
from makeway_slurm.readers.conf import config_from_entries
from makeway_slurm.readers.conf_parts import Record, Setting
from makeway_slurm.readers.grammar import parse_conf
from makeway_slurm.readers.limits import NAME as LIMITING
from makeway_slurm.readers.priority import NAME
from makeway_slurm.readers.sbatch_args import parse_sbatch
from makeway_slurm.recordings.clocks import IGNORED_KILL
from makeway_slurm.recordings.priority.database import Database
from makeway_slurm.recordings.priority.exits import COMPLETING, cleaning_times, exit_times
from makeway_slurm.recordings.priority.looks import clocks_of
from makeway_slurm.recordings.priority.recording import Recording
from makeway_slurm.recordings.priority.wall_clock import minute_phase
from makeway_slurm.recordings.reserving import is_about, with_reservations
from makeway_slurm.recordings.site import scheduler_as_played

DEFAULT_USER = "alice"

_DEFAULTS = {
    "SelectType": "select/cons_tres",
    "PriorityType": "priority/basic",
    "KillWait": "1",
    "MessageTimeout": "2",
    "AccountingStorageType": "accounting_storage/slurmdbd",
}
_PARAMETERS = "batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_resolution=1"
_MARK = re.compile(r"<([^<>]+)>")
_LATER = re.compile(r"[+-]\d+")
_ACTION_DELAY = 0.05
_REQUEUE_DELAY = 6.0
_SWEEP: Seconds = 30.0
"""From one look at the limits of running jobs to the next."""
_USUAL_SWEEP: Seconds = 25.7
"""One such look, where the recording shows none: 25.6 and 25.9 s were seen."""


class UnmodelledError(Exception):
    """The scenario does something that cannot be followed; its text says what."""


@attrs.frozen(kw_only=True)
class Scenario:
    """One scenario, ready to be played."""

    name: str
    config: Config
    jobs: tuple[JobSpec, ...]
    commands: tuple[tuple[Seconds, Command], ...]
    duration: Seconds


def build(recording: Recording, source: str) -> Scenario:
    """Turn a recording's scenario into what is played.

    :raises ConfigError: it is malformed.
    :raises UnmodelledError: something in it cannot be followed.
    """
    scenario = recording.scenario
    cluster = scenario["cluster"]
    database = Database()
    try:
        for command in cluster.get("sacctmgr", ()):
            database.run(command.replace("<CLUSTER>", "cluster"))
    except (ValueError, KeyError) as error:
        raise ConfigError(source, [Problem("cluster.sacctmgr", str(error))]) from None
    config = _config(recording, database, source)
    ids: dict[str, str] = {}
    jobs = _jobs(recording, database, ids, source)
    told = [action for action in recording.actions if not is_about(action["command"])]
    commands = [each for action in told for each in _commands(action, ids)]
    return Scenario(
        name=str(scenario["name"]),
        config=config,
        jobs=tuple(jobs),
        commands=tuple(sorted(commands, key=lambda each: each[0])),
        duration=float(scenario["duration"]),
    )


def _config(recording: Recording, database: Database, source: str) -> Config:
    cluster = recording.scenario["cluster"]
    entries = parse_conf(cluster["slurm_conf"], f"{source}:slurm_conf").entries
    given = {entry.canonical for entry in entries if isinstance(entry, Setting)}
    head = [f"{key}={value}" for key, value in _DEFAULTS.items() if key.lower() not in given]
    head.append(f"SchedulerParameters={_joined(entries)}")
    rest = [e for e in entries if not (isinstance(e, Setting) and e.canonical == "schedulerparameters")]
    built = config_from_entries(
        [*parse_conf("\n".join(head), "oracle").entries, *rest, *_switches(cluster, source)],
        _nodes(cluster["nodes"]),
        source,
        recording.release,
        qos=database.qos_tables(),
        licenses=cluster.get("licenses", {}),
    ).config
    scheduler = scheduler_as_played(built, _clocks(recording), recording.release)
    attributes = {
        **built.cluster.attributes,
        "associations": database.associations(),
        "groups": {name: list(members) for name, members in cluster.get("groups", {}).items()},
    }
    policy = built.policy
    if LIMITING in policy.plugins:
        enforced = _enforced(entries)
        at_the_door = {key: key in enforced for key in ("associations", "qos")}
        limits = {**policy.settings.get(LIMITING, {}), **at_the_door}
        policy = attrs.evolve(policy, settings={**policy.settings, LIMITING: limits})
    if policy.priority is not None:
        own_settings = {**policy.settings.get(NAME, {}), "calc_phase": _phase_of(recording.decays)}
        policy = attrs.evolve(policy, settings={**policy.settings, NAME: own_settings})
    built = attrs.evolve(
        built, cluster=attrs.evolve(built.cluster, attributes=attributes), scheduler=scheduler, policy=policy
    )
    arguments = [job.get("args", ()) for job in recording.scenario.get("job", ())]
    return with_reservations(built, recording.actions, arguments, 0.0)


def _switches(cluster: Mapping[str, Any], source: str) -> Sequence[Setting | Record]:
    return parse_conf(cluster["topology"], f"{source}:topology").entries if cluster.get("topology") else ()


def _enforced(entries: Iterable[Setting | Record]) -> frozenset[str]:
    """Return the words of AccountingStorageEnforce; ``limits`` and ``safe`` imply ``associations``."""
    given = [e.value for e in entries if isinstance(e, Setting) and e.canonical == "accountingstorageenforce"]
    words = frozenset(word.strip().lower() for value in given for word in value.split(","))
    return words | {"associations"} if words & {"limits", "safe"} else words


def _joined(entries: Iterable[Setting | Record]) -> str:
    own = [e.value for e in entries if isinstance(e, Setting) and e.canonical == "schedulerparameters"]
    return ",".join([_PARAMETERS, *own])


def _phase_of(decays: Sequence[Seconds]) -> Seconds:
    return decays[0] % 60.0 if decays else 56.0


def _clocks(recording: Recording) -> dict[str, float | bool]:
    main, backfill = clocks_of(recording)
    return {
        "sched_phase": main.phase,
        "sched_interval": main.interval,
        "bf_phase": backfill.phase,
        "bf_interval": backfill.interval,
        "submit_delay": 0.0,
        "pass_on_submit": False,
        "pass_on_own_end": False,
        "pass_on_completion": True,
        "limit_phase": _sweep(recording),
        "min_kill_delay": IGNORED_KILL,
        "requeue_delay": _REQUEUE_DELAY,
        "completing_time": COMPLETING,
        "suspend_grace_time": 0.0,
        "second_phase": 0.0,
        "counts_seconds": True,
        "minute_phase": minute_phase(recording),
        "bf_window": 86400.0,
    }


def _sweep(recording: Recording) -> Seconds:
    """Return an instant at which limits were looked at: jobs that were ended for a limit show it.

    The last piece of their usage is charged in that instant; without such an event the second of the end is known.
    """
    charged = [float(event["t"]) for event in recording.events if event.get("what") == "usage"]
    for seen in recording.jobs.values():
        for change in seen.changes:
            if change.state == "TIMEOUT":
                found = [at for at in charged if change.t - 1.0 <= at <= change.t]
                if found:
                    return found[-1] % _SWEEP
                ended = seen.last.get("EndTime")
                if isinstance(ended, int) and change.t - 2.0 <= ended <= change.t:
                    return min(ended + 0.5, change.t) % _SWEEP
    return _USUAL_SWEEP


def _nodes(entries: Iterable[Mapping[str, Any]]) -> list[NodeTable]:
    found = []
    for entry in entries:
        cpus = int(entry.get("cpus", 1))
        for name in expand_hostlist(str(entry["name"])):
            found.append(
                NodeTable(
                    name=name, cpus=cpus, cores_per_socket=cpus, memory_mb=int(entry.get("real_memory", 1000))
                )
            )
    return found


# ------------------------------------------------------------------------------------- jobs
def _jobs(recording: Recording, database: Database, ids: dict[str, str], source: str) -> list[JobSpec]:
    found: list[JobSpec] = []
    exits, usual = exit_times(recording)
    cleaning = cleaning_times(recording)
    entries = sorted(enumerate(recording.scenario.get("job", ())), key=lambda pair: (pair[1]["at"], pair[0]))
    for number, (_, entry) in enumerate(entries, 1):
        name = str(entry["name"])
        ids[name] = str(number)
        for spec in _specs(recording, database, entry, number, ids, source):
            label = spec.name or ""
            late = exits.get(label, usual)
            lasting = attrs.evolve(spec, run_time=(spec.run_time or 0.0) + late)
            found.append(_leaving(lasting, cleaning.get(label)))
    return found


def _specs(
    recording: Recording,
    database: Database,
    entry: Mapping[str, Any],
    number: int,
    ids: Mapping[str, str],
    source: str,
) -> list[JobSpec]:
    name, at = str(entry["name"]), float(entry["at"])
    submitted = recording.submitted(name, at)
    user = str(entry.get("user", DEFAULT_USER))
    args = [_fixed(str(word), ids, at) for word in entry.get("args", ())]
    try:
        specs = parse_sbatch(
            args,
            id=str(number),
            user=user,
            group=user,
            account=database.home(user),
            submit_at=submitted,
            run_time=float(entry.get("runtime", 10.0)),
            source=source,
        )
    except ValueError as error:
        raise ConfigError(source, [Problem(f"job {name}", str(error))]) from None
    groups = [
        group for group, members in recording.scenario["cluster"].get("groups", {}).items() if user in members
    ]
    found = []
    for spec in specs:
        label = name if spec.array_id is None else f"{name}[{spec.array_task}]"
        qos = spec.qos or database.default_qos(user, spec.account)
        begin = None if spec.begin_at is None else round(spec.begin_at - submitted + at)
        found.append(
            attrs.evolve(
                spec,
                name=label,
                qos=qos,
                begin_at=begin,
                on_term=str(entry.get("on_term", "default")),
                attributes={**spec.attributes, "groups": groups, "array_size": len(specs)},
            )
        )
    return found


def _leaving(spec: JobSpec, times: Sequence[Seconds | None] | None) -> JobSpec:
    """Let a job leave its nodes as slowly as it did."""
    return (
        spec if times is None else attrs.evolve(spec, attributes={**spec.attributes, "cleaning_times": times})
    )


def _fixed(word: str, ids: Mapping[str, str], at: Seconds) -> str:
    """Put ids and instants in the place of ``<NAME>`` and ``<+40>``."""

    def one(match: re.Match[str]) -> str:
        if _LATER.fullmatch(match[1]):
            return f"now+{int(match[1]) - int(at)}"
        return ids.get(match[1], match[0])

    return _MARK.sub(one, word)


# ---------------------------------------------------------------------------------- actions
_VERBS = ("suspend", "resume", "hold", "release", "requeue")
_FIELDS = {"priority": "priority", "nice": "nice", "qos": "qos", "sitefactor": "site_factor"}


def _commands(action: Mapping[str, Any], ids: Mapping[str, str]) -> list[tuple[Seconds, Command]]:
    """Translate one action.

    :raises UnmodelledError: it is not known how.
    """
    at = float(action.get("done", float(action["at"]) + _ACTION_DELAY))
    words = [_MARK.sub(lambda match: ids.get(match[1], match[0]), str(word)) for word in action["command"]]
    if words[0] == "scancel":
        return [(at, Command("cancel", words[-1]))]
    verb = words[1].lower() if words[0] == "scontrol" and len(words) > 2 else ""
    if verb in _VERBS:
        return [(at, Command(verb, words[2]))]
    if verb == "update" and words[2].lower() == "job":
        return [(at, _update(words[3], words[4:]))]
    raise UnmodelledError(" ".join(map(str, action["command"])))


def _update(job: str, words: Sequence[str]) -> Command:
    name, _, value = words[0].partition("=")
    field = _FIELDS.get(name.lower())
    if field is None or len(words) > 1:
        raise UnmodelledError(f"scontrol update job {' '.join(words)}")
    if field == "priority":
        return Command("priority", job, value=value)
    return Command("change", job, value=f"{field}={value}")
