"""Hold naming one job after the other to ordering the whole queue for each pass, and asking about all in it."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import Config, validate
from makeway.model import JobSpec
from makeway.record import to_json
from makeway.settings import structure
from makeway.worlds.events import Command, Event
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.schedulers.one_by_one import OneByOne
from makeway_moab_qos.reader import translate
from makeway_moab_qos.turns import Turns

Seen = list[tuple[object, ...]]

POLICIES = (
    ("PREEMPTPOLICY REQUEUE", "PREEMPTPOLICY SUSPEND", "PREEMPTPOLICY CANCEL", "PREEMPTPOLICY CHECKPOINT"),
    ("RESERVATIONPOLICY NEVER", "RESERVATIONPOLICY CURRENTHIGHEST", "RESERVATIONPOLICY HIGHEST"),
    ("", "RESERVATIONDEPTH 2", "RESERVATIONDEPTH 5"),
    ("", "", "GUARANTEEDPREEMPTION TRUE", "GUARANTEEDPREEMPTION TRUE\nJOBRETRYTIME 30"),
    ("", "", "", "BACKFILLPOLICY NONE", "BACKFILLPOLICY PREEMPT", "BACKFILLPOLICY BESTFIT"),
    ("", "", "JOBPRIOACCRUALPOLICY ALWAYS", "BACKFILLDEPTH 3", "REJECTNEGPRIOJOBS TRUE"),
    ("", "", "JOBPREEMPTMINACTIVETIME 20", "NOWAITPREEMPTION TRUE", "IGNOREPREEMPTEEPRIORITY TRUE"),
    ("", "", "", "NODEACCESSPOLICY SINGLEJOB", "NODEACCESSPOLICY SINGLEUSER"),
    ("", "", "", "ENABLESPVIOLATIONPREEMPTION TRUE", "SRCFG[own] HOSTLIST=n1 USERLIST=u1,u2"),
)
"""One of each line."""
WEIGHTS = (
    *("XFACTORWEIGHT 10", "XFMINWCLIMIT 60", "QUEUETIMEWEIGHT 5", "QUEUETIMEWEIGHT 0", "QUEUETIMECAP 2"),
    *("SERVICECAP 30", "XFACTORCAP 3", "USERWEIGHT 1", "CLASSWEIGHT 3", "PROCWEIGHT 7", "PROCWEIGHT -2"),
    *(
        "WALLTIMEWEIGHT 1",
        "TARGETQUEUETIMEWEIGHT 50",
        "TARGETXFACTORWEIGHT 20",
        "BYPASSWEIGHT 10",
        "SERVICEWEIGHT -1",
    ),
    *(
        "RESCAP 20",
        "CREDWEIGHT 2",
        "SPVIOLATIONWEIGHT 5",
        "FSPOLICY DEDICATEDPS\nFSINTERVAL 30\nFSUSERWEIGHT 9",
    ),
)
"""Some of them."""
KINDS = ("USERCFG[{}]", "GROUPCFG[{}]", "ACCOUNTCFG[{}]", "CLASSCFG[{}]", "QOSCFG[{}]")
NAMES = (
    ("DEFAULT", "u1", "u2"),
    ("DEFAULT", "g1"),
    ("DEFAULT", "a1"),
    ("DEFAULT", "batch", "long"),
    ("DEFAULT", "low"),
)
VERBS = ("cancel", "hold", "release", "priority", "requeue", "suspend", "resume", "start", "change")
QOS = """
QOSWEIGHT 1
QOSCFG[high] QFLAGS=PREEMPTOR{high} PRIORITY=60
QOSCFG[low] QFLAGS=PREEMPTEE{low} PRIORITY=10 JOBFLAGS=RESTARTABLE,SUSPENDABLE QTTARGET=100 XFTARGET=3
QOSCFG[both] QFLAGS=PREEMPTOR,PREEMPTEE PRIORITY=30 JOBFLAGS=RESTARTABLE
QOSCFG[plain] PRIORITY=20{plain}
"""


def text_of(chance: Random) -> str:
    """Return a moab.cfg."""
    lines = [
        f"NODECFG[n{at}] PROCS={chance.choice((2, 4, 8))} MEMORY=4000" for at in range(chance.randint(2, 6))
    ]
    flags = {
        "high": chance.choice(("", "", ",IGNUSER", ",RESERVEALWAYS")),
        "low": chance.choice(("", "", ",PREEMPTSPV", ",NOBF")),
        "plain": chance.choice(
            ("", " QTWEIGHT=3", " XFWEIGHT=5", " QFLAGS=NORESERVATION", " PREEMPTQTTHRESHOLD=40")
        ),
    }
    lines.append(QOS.format(**flags))
    lines += [chance.choice(each) for each in POLICIES]
    lines += chance.sample(WEIGHTS, chance.choice((0, 1, 1, 2, 3)))
    for kind, names in zip(KINDS, NAMES, strict=True):
        for name in names:
            if chance.random() < 0.45:
                limit = chance.choice(("MAXJOB", "MAXPROC", "MAXNODE"))
                soft = chance.randint(1, 12)
                most = "" if chance.random() < 0.5 else f",{soft + chance.randint(0, 8)}"
                lines.append(f"{kind.format(name)} {limit}={soft}{most}")
    if "USERWEIGHT 1" in lines:
        lines.append("USERCFG[u1] PRIORITY=15\nUSERCFG[u3] PRIORITY=-5")
    if "USERWEIGHT 9" in "".join(lines):
        lines.append("USERCFG[DEFAULT] FSTARGET=30")
    if chance.random() < 0.1:
        lines.append("USERCFG[u4] QLIST=low,plain QDEF=plain\nDEFERTIME 50")
    return "\n".join(lines)


class Source:
    """A moab.cfg that is no file."""

    name = "moab.cfg"

    def __init__(self, text: str) -> None:
        self.text = text

    def beside(self, name: str) -> Source:
        """There are no others."""
        raise AssertionError(name)


def site(seed: int) -> tuple[Config, list[JobSpec], list[tuple[float, Event]]]:
    """Draw a site, jobs, and what people do."""
    chance = Random(seed)
    maui = chance.random() < 0.15
    tables = dict(translate(Source(text_of(chance)), maui=maui).tables)
    clockwork = {"requeue_delay": chance.choice((0.0, 1.0, 7.0)), "keep_freed": chance.choice((False, True))}
    if chance.random() < 0.1:
        clockwork["sched_interval"] = 10.0
    tables["scheduler"] = {**tables["scheduler"], "clockwork": clockwork}
    tables["partition"] = [{"name": "batch", "default": True}, {"name": "long"}]
    if chance.random() < 0.3:
        tables["policy"] = {
            **tables["policy"],
            "select": "select/cons_tres",
            "select_parameters": ["CR_Core_Memory"],
        }
    if chance.random() < 0.1:
        tables["cluster"] = {**tables.get("cluster", {}), "licenses": {"pen": 2}}
    config = structure(tables, Config, "moab.cfg")
    validate(config, "moab.cfg")
    return config, _jobs(chance, licences="licenses" in tables.get("cluster", {})), _events(chance)


def _jobs(chance: Random, *, licences: bool) -> list[JobSpec]:
    count = chance.randint(20, 70)
    width = chance.choice((1, 60, 400))
    odd = chance.random() < 0.4
    found = []
    for at, instant in enumerate(sorted(chance.choice((0, chance.randrange(width))) for _ in range(count))):
        run = chance.randint(1, 150)
        more: dict[str, Any] = {}
        if odd and chance.random() < 0.1:
            more = chance.choice(
                (
                    {"begin_at": float(instant + chance.randrange(80))},
                    {"depends_on": (str(max(1, at - chance.randint(1, 5))),)},
                    {"partitions": ("batch", "long")},
                    {"attributes": {"system_priority": 5}},
                    {"attributes": {"relative_priority": -40}},
                    {"flags": frozenset({"PREEMPTEE"})},
                    {"requeue": True},
                )
            )
        if licences and chance.random() < 0.2:
            more["licenses"] = {"pen": 1}
        found.append(
            JobSpec(
                **{
                    "id": str(at + 1),
                    "user": f"u{chance.randint(1, 4)}",
                    "group": chance.choice((None, "g1", "g2")),
                    "account": chance.choice((None, "a1", "a2")),
                    "qos": chance.choice(("high", "low", "low", "both", "plain", None)),
                    "partitions": (chance.choice(("batch", "batch", "long")),),
                    "submit_at": instant + chance.choice((0.0, 0.0, 0.25)),
                    "run_time": float(run),
                    "time_limit": chance.choice((None, 200.0, float(run + chance.randint(0, 100)))),
                    "tasks": chance.choice((1, 1, 1, 2, 3, 6)),
                    "cpus_per_task": chance.choice((1, 1, 2)),
                    "memory_mb_per_cpu": chance.choice((None, None, 500)),
                    **more,
                }
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


def _events(chance: Random) -> list[tuple[float, Event]]:
    if chance.random() < 0.7:
        return []
    found: list[tuple[float, Event]] = []
    for _ in range(chance.randint(1, 6)):
        at, job = float(chance.randrange(200)), str(chance.randint(1, 20))
        name = chance.choice(VERBS)
        value = str(chance.choice((3, 50))) if name == "priority" else ""
        if name == "change":
            value = chance.choice(("time_limit=90", "partition=long", f"begin={at + 20}"))
        found.append((at, Command(name, job, None, value)))
    return sorted(found, key=lambda each: each[0])


def seen(config: Config, jobs: list[JobSpec], events: list[tuple[float, Event]]) -> Seen:
    """Return what each step leaves: of every job its state, why it waits, where it is, and its marks."""
    found: Seen = []

    def look(engine: Engine) -> None:
        for job in engine.ledger.jobs.values():
            state = (
                job.id,
                job.state,
                job.reason,
                job.nodes,
                job.preemptions,
                sorted(job.marks),
                job.asked_nodes,
            )
            found.append((engine.ledger.now, state))

    replay(config, jobs, events, Options(until=5_000.0, after_step=look, keep=False))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_the_same_steps(seed: int) -> None:
    """Whatever limits, weights and policies a site has."""
    config, jobs, events = site(seed)
    quick = seen(config, jobs, events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneByOne, "begins", lambda self, attempts: False)
        plain = seen(config, jobs, events)
    assert quick == plain


@pytest.mark.parametrize("seed", range(200, 224))
def test_the_same_records_of_jobs_that_are_alike(seed: int) -> None:
    """One job of a kind is tried in a pass, the others wait as it does."""
    config, jobs, events = site(seed)
    chance = Random(seed)
    few = [chance.choice(jobs) for _ in range(3)]
    if seed % 2:
        few[0] = attrs.evolve(few[0], min_nodes=2, tasks=max(2, few[0].tasks or 1))
    jobs = [
        attrs.evolve(
            chance.choice(few),
            id=job.id,
            submit_at=job.submit_at,
            run_time=job.run_time,
            depends_on=(),
            begin_at=None,
        )
        for job in jobs
    ]
    quick = recorded(config, jobs, events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneByOne, "begins", lambda self, attempts: False)
        plain = recorded(config, jobs, events)
    assert quick == plain


def recorded(config: Config, jobs: list[JobSpec], events: list[tuple[float, Event]]) -> tuple[list[str], str]:
    """Return the lines of the record, and the summary with what was decided about each job."""
    lines: list[str] = []
    run = replay(config, jobs, events, Options(until=5_000.0, sink=lambda line: lines.append(to_json(line))))
    histories = run.recorder.histories.values()
    return lines, repr([(each.job.id, [attrs.asdict(told) for told in each.told]) for each in histories])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 115))
def test_the_same_records(seed: int) -> None:
    """Attempts are counted as if all were tried."""
    config, jobs, events = site(seed)
    quick = recorded(config, jobs, events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneByOne, "begins", lambda self, attempts: False)
        plain = recorded(config, jobs, events)
    assert quick == plain


@pytest.mark.slow
def test_most_sites_name_jobs_one_by_one() -> None:
    """Passes in which jobs are named, and tries that are spared."""
    counts = [0, 0]
    begin = Turns.begin

    def noted(self: Turns, *, alone: bool, every_job: bool) -> bool:
        found = begin(self, alone=alone, every_job=every_job)
        counts[found] += 1
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Turns, "begin", noted)
        for seed in range(20):
            seen(*site(seed))
    assert counts[True] > 500
