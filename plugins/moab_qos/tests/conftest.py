"""Play scenarios: a few lines of moab.cfg, a few jobs in a short notation, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from makeway.config import Config, validate
from makeway.foreign import ForeignConfig
from makeway.model import Check, JobSpec, JobState, Seconds
from makeway.record import Decision, Line
from makeway.settings import structure
from makeway.worlds.events import Event
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_moab_qos.reader import translate
from makeway_testing.invariants import InvariantChecker
from makeway_testing.scenario import TableRun

COMMON = """
CREDWEIGHT      1
SERVICEWEIGHT   1
QUEUETIMEWEIGHT 1
QOSWEIGHT       1
PREEMPTPOLICY   REQUEUE
NODEALLOCATIONPOLICY FIRSTAVAILABLE
JOBPRIOACCRUALPOLICY ALWAYS
RMCFG[base]     TYPE=PBS
QOSCFG[high]    QFLAGS=PREEMPTOR PRIORITY=1000
QOSCFG[med]     PRIORITY=500
QOSCFG[low]     QFLAGS=PREEMPTEE PRIORITY=100 JOBFLAGS=RESTARTABLE
"""
"""The common setting of the scenarios; ALWAYS lets a test say how long a job has queued."""
T = 100_000.0
"""The instant at which waiting jobs come on the scene."""
RAN = 3600.0
LEFT = 36_000.0

_JOB = re.compile(r"(\w+)\(([^)]*)\)")


@attrs.frozen
class Text:
    """A file that is no file; `others` are those that it includes."""

    text: str
    name: str = "moab.cfg"
    others: Mapping[str, str] = {}

    def beside(self, name: str) -> Text:
        """Return an included file."""
        return Text(self.others[name], name, self.others)


def read(text: str, *, maui: bool = False, **others: str) -> ForeignConfig:
    """Read a moab.cfg."""
    named = {key.replace("_", "."): value for key, value in others.items()}
    return translate(Text(text, "maui.cfg" if maui else "moab.cfg", named), maui=maui)


def settings_of(text: str, *, maui: bool = False) -> Mapping[str, Any]:
    """Return the settings that a moab.cfg amounts to, as written in TOML."""
    found: Mapping[str, Any] = read(text, maui=maui).tables["policy"]["settings"]["moab/qos"]
    return found


def config_of(text: str, *, maui: bool = False, tables: Mapping[str, Any] | None = None) -> Config:
    """Return the configuration that a moab.cfg amounts to."""
    config = structure({**read(text, maui=maui).tables, **(tables or {})}, Config, "moab.cfg")
    validate(config, "moab.cfg")
    return config


def jobs_of(text: str, *, running: bool, ran: Seconds = RAN) -> list[JobSpec]:
    """Read ``L(low,4p,q10)``: QoS, processors, minutes queued; further words are ``key=value``."""
    return [_job(name, inside, running=running, ran=ran) for name, inside in _JOB.findall(text)]


def _job(name: str, inside: str, *, running: bool, ran: Seconds) -> JobSpec:
    words = [word.strip() for word in inside.split(",")]
    extra = dict(word.split("=", 1) for word in words if "=" in word)
    plain = [word for word in words if "=" not in word]
    qos = plain[0] if plain and plain[0] != "-" else None
    procs = next((int(word[:-1]) for word in plain if re.fullmatch(r"\d+p", word)), 1)
    minutes = next((float(word[1:]) for word in plain if re.fullmatch(r"q[\d.]+", word)), 0.0)
    ran = float(extra.pop("ran", ran))
    starts = T - ran if running else T + float(extra.pop("at", 0.0))
    length = float(extra.pop("length", ran + LEFT))
    values: dict[str, Any] = {
        "id": name,
        "name": name,
        "user": extra.pop("user", f"u_{name}"),
        "account": extra.pop("account", None),
        "partitions": (extra.pop("class"),) if "class" in extra else (),
        "qos": qos,
        "tasks": procs,
        "submit_at": starts - minutes * 60.0,
        "begin_at": starts,
        "run_time": float(extra.pop("run", length)),
        "time_limit": float(extra.pop("limit", length)),
        "flags": frozenset(extra.pop("flags", "").split("+")) - {""},
        "features": extra.pop("features", ""),
        "batch": extra.pop("batch", "yes") == "yes",
        "on_term": extra.pop("on_term", "default"),
    }
    if "most" in extra:
        values["max_nodes"] = int(extra.pop("most"))
    if "wall" in extra:
        values["wall_submit"] = float(extra.pop("wall"))
    if "mem" in extra:
        values["memory_mb_per_node"] = int(extra.pop("mem"))
    if "node" in extra:
        values["required_nodes"] = (extra.pop("node"),)
    extra.pop("prio", None)
    if "sysprio" in extra:
        values["attributes"] = {"system_priority": int(extra.pop("sysprio"))}
    if "minimum" in extra:
        values["attributes"] = {"min_preempt_time": float(extra.pop("minimum"))}
    assert not extra, f"what is {extra}?"
    return JobSpec(**values)


@attrs.frozen
class Outcome:
    """What came of a scenario."""

    table: TableRun
    checks: Mapping[str, Sequence[Check]]
    """Job -> its check list right after the passes at `T`."""

    @property
    def decisions(self) -> Sequence[Decision]:
        """The attempts of the job that was traced."""
        return self.table.run.recorder.decisions

    @property
    def victims(self) -> list[tuple[str, str]]:
        """Which jobs made way, and how, in order."""
        return [(each.victim, each.mode.value) for each in self.table.run.recorder.preemptions]

    @property
    def displaced(self) -> set[str]:
        """Which jobs made way."""
        return {victim for victim, _ in self.victims}

    def started(self, job: str) -> Seconds | None:
        """Return when a job first started, counted from `T`; None: never."""
        first = self.table.history(job).first_start
        return None if first is None else first - T

    def state(self, job: str) -> JobState:
        """Return the state that a job was left in."""
        return self.table.state(job)

    def code(self, job: str, code: str) -> Check:
        """Return one line of a job's check list."""
        return next(check for check in self.checks[job] if check.code == code)

    def moves(self, job: str) -> list[str]:
        """Return what happened to a job from `T` on, as ``seconds word``."""
        lines = (line.split() for line in self.table.only(job))
        return [f"{float(at) - T:g} {' '.join(rest)}" for at, _, *rest in lines if float(at) >= T]

    def refusals(self) -> list[str]:
        """Return why commands were refused."""
        return [reason for _, _, reason in self.table.run.recorder.refusals]


Play = Callable[..., Outcome]


def play(
    running: str = "",
    waiting: str = "",
    more: str = "",
    *,
    nodes: str = "n1=4",
    clock: Mapping[str, float] | None = None,
    settings: Mapping[str, Any] | None = None,
    site: Mapping[str, Any] | None = None,
    commands: Sequence[tuple[Seconds, Event]] = (),
    until: Seconds = 1.0,
    maui: bool = False,
    checked: bool = True,
    traced: str = "",
) -> Outcome:
    """Play a scenario until `until` seconds after `T`.

    :param more: lines of moab.cfg beside the common setting.
    :param nodes: ``n1=4`` is node n1 with 4 processors; ``n1=4/a/8192`` has feature a and 8192 MB.
    :param clock: values of the clockwork.
    :param site: further keys of ``[policy.settings."moab/qos"]``.
    :param traced: the job whose attempts are kept as decisions.
    :param settings: choices of ``[policy.settings."moab/qos".choices]``.
    """
    text = "\n".join([COMMON, *_nodes(nodes), *_priorities(running + waiting), more])
    tables = dict(read(text, maui=maui).tables)
    if clock:
        tables["scheduler"] = {**tables["scheduler"], "clockwork": dict(clock)}
    if settings:
        tables["policy"]["settings"]["moab/qos"]["choices"] = dict(settings)
    tables["policy"]["settings"]["moab/qos"].update(site or {})
    config = structure(tables, Config, "moab.cfg")
    validate(config, "moab.cfg")
    jobs = jobs_of(running, running=True) + jobs_of(waiting, running=False)
    events = [(T + at, event) for at, event in commands]
    ids = [job.id for job in jobs_of(waiting, running=False)]
    checks: dict[str, Sequence[Check]] = {}

    def look(engine: Engine) -> None:
        if engine.ledger.now >= T:
            for job_id in ids:
                job = engine.ledger.jobs.get(job_id)
                if job is not None and job.state is JobState.PENDING:
                    checks[job_id] = engine.policies.explain(job, engine.ledger)

    checker = InvariantChecker(events)

    def stepped(engine: Engine) -> None:
        look(engine)
        if checked:
            checker(engine)

    specs = tuple(sorted(jobs, key=lambda job: job.submit_at))
    lines: list[Line] = []
    options = Options(until=T + until, sink=lines.append, after_step=stepped)
    if traced:
        options = attrs.evolve(options, traced=lambda job: job.id == traced)
    run = replay(config, specs, events, options)
    return Outcome(TableRun(run=run, specs=specs, lines=tuple(lines), signals=(), checker=checker), checks)


def _priorities(text: str) -> list[str]:
    """Return lines that give jobs marked ``prio=`` exactly that priority, queue time apart."""
    found = [
        (name, match.group(1))
        for name, inside in _JOB.findall(text)
        if (match := re.search(r"prio=(-?\d+)", inside))
    ]
    lines = [f"USERCFG[u_{name}] PRIORITY={prio}" for name, prio in found]
    return ["USERWEIGHT 1", "QOSCFG[low] PRIORITY=0", *lines] if found else []


def _nodes(text: str) -> list[str]:
    lines = []
    for word in text.split():
        name, _, rest = word.partition("=")
        procs, *more = rest.split("/")
        line = f"NODECFG[{name}] PROCS={procs}"
        if more and more[0]:
            line += f" FEATURES={more[0]}"
        if len(more) > 1:
            line += f" MEMORY={more[1]}"
        lines.append(line)
    return lines


@pytest.fixture(name="play")
def _play() -> Play:
    return play


@pytest.fixture(name="settings_of")
def _settings_of() -> Callable[..., Mapping[str, Any]]:
    return settings_of


@pytest.fixture(name="read")
def _read() -> Callable[..., ForeignConfig]:
    return read


@pytest.fixture(name="config_of")
def _config_of() -> Callable[..., Config]:
    return config_of
