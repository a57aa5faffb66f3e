"""Read what Maui 3.3.1 itself did with small scenarios, and compare a replay with it.

A recording is JSON: configuration, jobs, and who was preempted and started in which pass. The scenario is
written as a maui.cfg, so that the reader, the grammar included, is part of what is compared. A pass is one
poll of the resource manager; jobs appear at the minute ``at``, submitted 30 s before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway.bounds import json_of
from makeway.errors import ConfigError, Problem
from makeway.foreign import Dialect, Judgement, Played, RecordedScenario, Source
from makeway.hookspecs import hookimpl
from makeway.model import JobSpec, Seconds
from makeway_moab_qos.reader import translate
from makeway_moab_qos.recorded_commands import KEYS, commands_of

RELEASE = "Maui 3.3.1"
UNDEFINED_FROM = 28
"""Jobs on one node from which Maui writes past its own table (moab 17)."""
_COMMON: Mapping[str, str] = {
    "CREDWEIGHT": "1",
    "SERVICEWEIGHT": "1",
    "QOSWEIGHT": "1",
    "USERWEIGHT": "1",
    "QUEUETIMEWEIGHT": "0",
    "PREEMPTPOLICY": "REQUEUE",
    "BACKFILLPOLICY": "NONE",
    "NODEACCESSPOLICY": "SHARED",
    "NODEALLOCATIONPOLICY": "FIRSTAVAILABLE",
    "DEFERTIME": "0",
    "RMPOLLINTERVAL": "00:01:00",
}
"""What a recording's own lines replace or remove."""
_MEMORY = 4096
_LONG = 36000
_KNOWN = frozenset(
    (*("name", "about", "spec", "nodes", "qos", "config", "extra", "jobs", "passes", "outcome"), *KEYS)
)
_JOB_KEYS = frozenset(
    (
        *("id", "tasks", "ppt", "qos", "at", "exact", "uprio", "hosts", "flags", "dur", "limit", "mem"),
        *("account", "user", "class", "group", "nodes", "sysprio"),
    )
)
_NUMBERS = frozenset(("tasks", "ppt", "nodes", "mem", "sysprio", "uprio", "at", "dur", "limit"))
_COUNTS = frozenset(("tasks", "ppt", "nodes"))
_MOST = 1e9
"""Numbers of a recording are smaller."""


@attrs.frozen
class MauiRecordings:
    """See `makeway.foreign.RecordingReader`."""

    name: str = "Maui recordings"

    def claims(self, name: str, head: str) -> bool:
        """Recognise JSON with passes and an outcome."""
        return name.endswith(".json") and '"passes"' in head and '"outcome"' in head

    def recorded(self, source: Source) -> RecordedScenario:
        """Read one.

        :raises ConfigError: it is not in the format of the recordings.
        """
        data = json_of(source.text, source.name)
        problems = list(_problems(data))
        if problems:
            raise ConfigError(source.name, problems)
        return Recorded.of(data)


def _problems(data: Any) -> Iterator[Problem]:
    if not isinstance(data, dict):
        yield Problem("", "the outermost value is no table")
        return
    shapes = {"name": str, "nodes": dict, "qos": dict, "config": dict, "jobs": list, "passes": int}
    for key, shape in {**shapes, "outcome": dict}.items():
        if not isinstance(data.get(key), shape):
            yield Problem(key, f"missing, or no {shape.__name__}")
    for at, job in enumerate(_rows(data, "jobs")):
        if not isinstance(job, dict) or not {"id", "tasks", "at"} <= job.keys():
            yield Problem(f"jobs[{at}]", "allowed: a table with id, tasks and at")
            continue
        for key, value in job.items():
            if key in _NUMBERS and not (_is_number(value) and (value >= 1 or key not in _COUNTS)):
                least = "at least 1" if key in _COUNTS else "a number"
                yield Problem(f"jobs[{at}].{key}", f"got {value!r:.40}; allowed: {least}")
            elif key == "hosts" and not _are_texts(value):
                yield Problem(f"jobs[{at}].{key}", f"got {value!r:.40}; allowed: a list of names")
            elif key in _JOB_KEYS - _NUMBERS - {"hosts"} and not isinstance(value, str | int | None):
                yield Problem(f"jobs[{at}].{key}", f"got {value!r:.40}; allowed: text")
    if not _are_texts(data.get("extra", [])):
        yield Problem("extra", "allowed: a list of lines")
    depth = data["config"].get("RESDEPTH") if isinstance(data.get("config"), dict) else None
    if depth and not str(depth).isdecimal():
        yield Problem("config.RESDEPTH", f"got {depth!r:.40}; allowed: a whole number")
    outcome = data.get("outcome")
    if isinstance(outcome, dict):
        for what, words in (("preempted", ("job", "action")), ("started", ("job",)), ("completed", ("job",))):
            for at, each in enumerate(_rows(outcome, what)):
                told = isinstance(each, dict) and all(isinstance(each.get(word), str) for word in words)
                if not told or not _is_number(each.get("pass")):
                    shown = " and ".join(("pass", *words))
                    yield Problem(f"outcome.{what}[{at}]", f"allowed: a table with {shown}")
        traced = outcome.get("trace_by_pass") or {}
        if not isinstance(traced, dict) or not all(
            at.isdecimal() and isinstance(lines, list) for at, lines in traced.items()
        ):
            yield Problem("outcome.trace_by_pass", "allowed: lists of lines by pass")


def _rows(table: Mapping[str, Any], key: str) -> list[Any]:
    found = table.get(key)
    return found if isinstance(found, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


@attrs.frozen
class _Text:
    """The maui.cfg that a recording amounts to. See `makeway.foreign.Source`."""

    text: str
    name: str = "maui.cfg"

    def beside(self, name: str) -> Source:
        """Refuse: a recording is one file."""
        raise ConfigError(self.name, [Problem("", f"includes {name}; a recording is one file")])


@attrs.frozen(kw_only=True)
class Recorded:
    """One recording. See `makeway.foreign.RecordedScenario`."""

    data: Mapping[str, Any]
    tables: Mapping[str, Any]
    interval: Seconds
    jobs: Sequence[JobSpec]
    commands: Sequence[Mapping[str, Any]] = ()
    release: str = RELEASE
    unmodelled: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Recorded:
        """Translate a recording."""
        tables = dict(translate(_Text(maui_cfg(data)), maui=True).tables)
        # Loading a trace wipes the deferral of a job whose QoS was refused (moab 17).
        tables["policy"]["settings"]["moab/qos"]["choices"] = {"defer_refused_qos": False}
        interval = tables["scheduler"]["clockwork"]["sched_interval"]
        ids = [str(job["id"]) for job in data["jobs"]]
        commands, unmodelled = commands_of(data, ids, interval)
        for key in sorted(data.keys() - _KNOWN):
            # Commands under a name of their own are commands all the same.
            found, unread = commands_of({KEYS[0]: data[key]}, ids, interval)
            commands += found if not unread else []
            unmodelled += [key] if unread or not found else []
        commands.sort(key=lambda table: float(table["at"]))
        unmodelled += [f"nodes.{name}" for name, procs in data["nodes"].items() if type(procs) is not int]
        for job in data["jobs"]:
            unmodelled += [f"jobs.{key}" for key in job if key not in _JOB_KEYS]
        return cls(
            data=data,
            tables=tables,
            interval=interval,
            jobs=_jobs(data),
            commands=commands,
            unmodelled=tuple(dict.fromkeys(unmodelled)),
        )

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.data["name"])

    @property
    def until(self) -> Seconds:
        """The last pass."""
        return float(self.data["passes"]) * self.interval

    # --------------------------------------------------------------------------- judgement
    def judge(self, played: Played) -> Judgement:
        """Compare who was preempted, how, and who started, pass by pass."""
        outcome = self.data["outcome"]
        by_hand = _done_by_hand(outcome) if self.commands else {}
        recorded = {**by_hand, **_preempted(outcome), **_started(outcome), **_completed(outcome)}
        replayed = self._replayed(played.summary)
        if played.most_jobs_on_a_node > self._listed_per_node():
            shown = {job for _, job, what in recorded if what == "starts"}
            replayed = {key: word for key, word in replayed.items() if key[2] != "starts" or key[1] in shown}
        keys = sorted(recorded.keys() | replayed.keys())
        differences = tuple(
            (
                job,
                at * self.interval,
                recorded.get((at, job, what), "nothing"),
                replayed.get((at, job, what), "nothing"),
            )
            for at, job, what in keys
            if recorded.get((at, job, what)) != replayed.get((at, job, what))
        )
        return Judgement(differences=differences, not_imitated=self._why_no_measure(played))

    def _listed_per_node(self) -> int:
        """Return how many jobs on a node Maui keeps in view: the start of any further one is not in its log."""
        return int(self.data["config"].get("RESDEPTH") or 24)

    def _replayed(self, summary: Mapping[str, Any]) -> dict[_Event, str]:
        found: dict[_Event, str] = {}
        for job_id, job in summary["jobs"].items():
            before = ""
            for each in job["intervals"]:
                if each["state"] == "RUNNING":
                    word = "resumed" if before == "SUSPENDED" else "started"
                    found[(self._pass(each["start"]), job_id, "starts")] = word
                before = each["state"]
            if job["final_state"] == "COMPLETED":
                found[(self._pass(job["intervals"][-1]["end"]), job_id, "ends")] = "completed"
        if self.commands:
            found.update(self._by_hand(summary))
        for each in summary["preemptions"]:
            found[(self._pass(each["at"]), each["victim"], "preempted")] = each["mode"]
        for each in summary.get("failed_preemptions", ()):
            found[(self._pass(each["at"]), each["victim"], "preempted")] = _FAILED
        return found

    def _by_hand(self, summary: Mapping[str, Any]) -> dict[_Event, str]:
        """Return who was made to leave by people, as far as states tell."""
        words = {"SUSPENDED": "suspend", "PENDING": "requeue"}
        found = {}
        for job_id, job in summary["jobs"].items():
            before = ""
            for each in job["intervals"]:
                if before == "RUNNING" and each["state"] in words:
                    found[(self._pass(each["start"]), job_id, "preempted")] = words[each["state"]]
                if each["state"] != "COMPLETING":
                    before = each["state"]
            if job["final_state"] == "CANCELLED" and before == "RUNNING":
                found[(self._pass(job["intervals"][-1]["end"]), job_id, "preempted")] = "cancel"
        return found

    def _pass(self, at: Seconds) -> int:
        """Return the pass in which something was noticed: the first that is not before it."""
        return int(-(-(at - 1e-6) // self.interval))

    def _why_no_measure(self, played: Played) -> str:
        if played.most_jobs_on_a_node >= UNDEFINED_FROM:
            return f"{played.most_jobs_on_a_node} jobs on a node: from {UNDEFINED_FROM} on Maui's own table overflows"
        crowded = oversubscribed(self.data)
        return f"the recording oversubscribes: {crowded}" if crowded else ""


_Event = tuple[int, str, str]
"""Pass, job, and what kind of thing happened."""
_FAILED = "none (failed)"


def _preempted(outcome: Mapping[str, Any]) -> dict[_Event, str]:
    return {
        (int(e["pass"]), e["job"], "preempted"): _method(e["action"]) for e in outcome.get("preempted", ())
    }


_DONE = re.compile(r"sim (requeue|suspend|checkpoint|cancel) (\S+)")


def _done_by_hand(outcome: Mapping[str, Any]) -> dict[_Event, str]:
    """Return what the simulated resource manager was told, where people gave commands."""
    found: dict[_Event, str] = {}
    for at, lines in (outcome.get("trace_by_pass") or {}).items():
        for line in lines:
            match = _DONE.fullmatch(str(line))
            if match is not None:
                found[(int(at), match.group(2), "preempted")] = match.group(1)
    return found


def _method(action: str) -> str:
    """Return the method of an entry; whatever failed came to nothing."""
    return _FAILED if "fail" in action else action


def _started(outcome: Mapping[str, Any]) -> dict[_Event, str]:
    found = {}
    for each in outcome.get("started", ()):
        word = "resumed" if each.get("resumed") else "started"
        found[(int(each["pass"]), each["job"], "starts")] = word
    return found


def _completed(outcome: Mapping[str, Any]) -> dict[_Event, str]:
    return {(int(e["pass"]), e["job"], "ends"): "completed" for e in outcome.get("completed", ())}


def oversubscribed(data: Mapping[str, Any]) -> str:
    """Say where the recorded jobs held more processors than there are; empty: nowhere.

    Looked at are the whole machine, and each node by the jobs that are bound to it.
    """
    outcome = data["outcome"]
    events = sorted(
        [(int(e["pass"]), 0, e["job"]) for e in outcome.get("completed", ())]
        + [(int(e["pass"]), 1, e["job"]) for e in outcome.get("preempted", ()) if "fail" not in e["action"]]
        + [(int(e["pass"]), 2, e["job"]) for e in outcome.get("started", ())]
    )
    shares = {job["id"]: _shares(job) for job in data["jobs"]}
    nodes = {name: int(processors) for name, processors in data["nodes"].items()}
    places = {"": sum(nodes.values()), **nodes}
    running: set[str] = set()
    for at, kind, job in events:
        running = running | {job} if kind == 2 else running - {job}
        for place, processors in places.items():
            held = sum(shares.get(each, {}).get(place, 0) for each in running)
            if held > processors:
                where = f" of {place}" if place else ""
                return f"{held} of {processors} processors{where} in pass {at}"
    return ""


def _shares(job: Mapping[str, Any]) -> dict[str, int]:
    """Return the processors of a job, in all (empty name) and on the nodes that it is bound to."""
    tasks, each = int(job["tasks"]), int(job.get("ppt", 1))
    hosts = list(job.get("hosts", ()))
    found = {"": tasks * each}
    if len(set(hosts)) == 1:
        found[hosts[0]] = tasks * each
    elif len(hosts) == tasks:
        for name in hosts:
            found[name] = found.get(name, 0) + each
    return found


# ----------------------------------------------------------------------------------- translation
def maui_cfg(data: Mapping[str, Any]) -> str:
    """Return the maui.cfg of a recording: the common setting, its changes, its additional lines."""
    lines = {**_COMMON, **data["config"]}
    text = [f"{key} {value}" for key, value in lines.items() if value is not None]
    text += [f"NODECFG[{name}] PROCS={procs} MEMORY={_MEMORY}" for name, procs in data["nodes"].items()]
    text += [f"QOSCFG[{name}] {line}" for name, line in data["qos"].items()]
    everything = ",".join(data["qos"])
    for job in data["jobs"]:
        text.append(f"USERCFG[{_user(job)}] QLIST={everything} PRIORITY={job.get('uprio', 0)}")
    return "\n".join([*text, *data.get("extra", ())]) + "\n"


def _user(job: Mapping[str, Any]) -> str:
    return str(job.get("user", f"u_{job['id']}"))


def _jobs(data: Mapping[str, Any]) -> tuple[JobSpec, ...]:
    jobs = [_job(each, list(data["nodes"])) for each in data["jobs"]]
    return tuple(sorted(jobs, key=lambda job: job.submit_at))


def _job(job: Mapping[str, Any], nodes: Sequence[str]) -> JobSpec:
    given = str(job.get("flags", "RESTARTABLE"))
    hosts = tuple(dict.fromkeys(job.get("hosts", ())))
    return JobSpec(
        id=str(job["id"]),
        name=str(job["id"]),
        user=_user(job),
        account=job.get("account"),
        group=job.get("group"),
        partitions=(str(job["class"]),) if "class" in job else (),
        qos=job.get("qos"),
        submit_at=float(job["at"]) * 60.0 - (0.0 if job.get("exact") else 30.0),
        run_time=float(job.get("dur", _LONG)),
        time_limit=float(job.get("limit", _LONG)),
        tasks=int(job["tasks"]),
        min_nodes=int(job.get("nodes", 1)),
        cpus_per_task=int(job.get("ppt", 1)),
        memory_mb_per_cpu=int(job["mem"]) // int(job.get("ppt", 1)) if "mem" in job else None,
        required_nodes=hosts,
        excluded_nodes=tuple(name for name in nodes if hosts and name not in hosts),
        flags=frozenset(flag for flag in given.split(",") if flag != "0"),
        attributes={"system_priority": int(job["sysprio"])} if "sysprio" in job else {},
    )


@hookimpl
def makeway_dialect() -> Dialect:
    """Hand over recordings of Maui, as the plugin ``recordings/maui``."""
    return Dialect(recordings=[MauiRecordings()])
