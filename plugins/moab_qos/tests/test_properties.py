"""What holds for every small cluster and workload: invariants, flags, determinism, no needless victim."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from makeway.config import Config, validate
from makeway.model import Job, JobSpec, JobState
from makeway.record import Preemption, to_json
from makeway.settings import structure
from makeway_app.replay import Options, Run, replay
from makeway_engine.engine import Engine
from makeway_moab_qos import reservations
from makeway_moab_qos.reader import translate
from makeway_testing.invariants import InvariantChecker

QOS = ("high", "med", "low", "mid", "soft")
LINES = """
QOSWEIGHT 1
QUEUETIMEWEIGHT 1
QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=1000
QOSCFG[med] PRIORITY=500
QOSCFG[mid] QFLAGS=PREEMPTOR,PREEMPTEE PRIORITY=300 JOBFLAGS=RESTARTABLE
QOSCFG[low] QFLAGS=PREEMPTEE PRIORITY=100 JOBFLAGS=RESTARTABLE
QOSCFG[soft] QFLAGS=PREEMPTEE PRIORITY=50 JOBFLAGS=SUSPENDABLE
"""
CHOICES = (
    "PREEMPTPOLICY SUSPEND",
    "PREEMPTPOLICY CHECKPOINT",
    "PREEMPTPOLICY CANCEL",
    "RESERVATIONPOLICY NEVER",
    "BACKFILLPOLICY NONE",
    "BACKFILLPOLICY PREEMPT",
    "GUARANTEEDPREEMPTION TRUE",
    "JOBPREEMPTMINACTIVETIME 20",
    "NODEACCESSPOLICY SINGLEJOB",
    "NODEALLOCATIONPOLICY FIRSTAVAILABLE",
    "USERCFG[DEFAULT] MAXJOB=1,2",
    "SUSPENDRESOURCES SWAP",
    "SUSPENDRESOURCES PROC,MEM",
    "RESERVATIONPOLICY HIGHEST",
    "RESERVATIONDEPTH 3",
    "BACKFILLPOLICY BESTFIT",
    "BACKFILLDEPTH 1",
    "NODEACCESSPOLICY SINGLETASK",
    "FSPOLICY DEDICATEDPS\nFSINTERVAL 30\nFSUSERWEIGHT 20\nUSERCFG[DEFAULT] FSTARGET=40",
    "QOSCFG[med] QFLAGS=NOBF",
    "QOSCFG[mid] QFLAGS=PREEMPTOR,DEDICATED",
    "QOSCFG[high] QFLAGS=PREEMPTOR,RESERVEALWAYS",
    "BYPASSWEIGHT 10",
)


class Source:
    """A moab.cfg that is no file."""

    name = "moab.cfg"

    def __init__(self, text: str) -> None:
        self.text = text

    def beside(self, name: str) -> Source:
        """There are no others."""
        raise AssertionError(name)


@st.composite
def jobs(draw: st.DrawFn) -> list[JobSpec]:
    """Up to a dozen jobs."""
    found = []
    for at in range(draw(st.integers(1, 12))):
        run = draw(st.integers(1, 200))
        found.append(
            JobSpec(
                id=str(at),
                user=draw(st.sampled_from(("ann", "bob"))),
                qos=draw(st.sampled_from(QOS)),
                submit_at=float(draw(st.integers(0, 100))),
                run_time=float(run),
                time_limit=float(run + draw(st.integers(0, 100))),
                tasks=draw(st.integers(1, 6)),
                cpus_per_task=draw(st.integers(1, 2)),
                memory_mb_per_cpu=draw(st.sampled_from((None, 100, 500))),
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """One to three nodes, and any of the policies."""
    nodes = [
        f"NODECFG[n{at}] PROCS={draw(st.integers(2, 8))} MEMORY=4000" for at in range(draw(st.integers(1, 3)))
    ]
    more = draw(st.lists(st.sampled_from(CHOICES), unique=True, max_size=5))
    tables = dict(translate(Source("\n".join([LINES, *nodes, *more])), maui=False).tables)
    tables["scheduler"] = {**tables["scheduler"], "clockwork": {"requeue_delay": 1.0}}
    config = structure(tables, Config, "moab.cfg")
    validate(config, "moab.cfg")
    return config


def _objection(engine: Engine, entry: Preemption, victim: Job) -> str:
    """Say what forbids a preemption, as far as QoS alone tell."""
    if engine.config.policy.settings["moab/qos"].get("backfill_policy") == "PREEMPT":
        return ""
    preemptor = engine.recorder.histories[entry.preemptor or ""].job
    if preemptor.spec.qos not in ("high", "mid"):
        return f"{preemptor.spec.qos} is no preemptor"
    return "" if victim.spec.qos in ("low", "mid", "soft") else f"{victim.spec.qos} is no preemptee"


def _run(config: Config, specs: list[JobSpec], lines: list[str]) -> tuple[Run, InvariantChecker]:
    checker = InvariantChecker(allowed=_objection)
    options = Options(until=20_000.0, sink=lambda line: lines.append(to_json(line)), after_step=checker)
    return replay(config, specs, (), options), checker


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(configs(), jobs())
def test_invariants_and_determinism(config: Config, specs: list[JobSpec]) -> None:
    """Nothing that may never happen, every job accounted for, and the same record again."""
    first: list[str] = []
    run, checker = _run(config, specs, first)
    if run.recorder.metrics.ended == len(specs):
        checker.finish(run, specs)
    second: list[str] = []
    _run(config, specs, second)
    assert first == second


def _looked_for_anew(patch: pytest.MonkeyPatch) -> None:
    """Let every question be answered by looking at all active jobs."""
    patch.setattr(
        reservations, "suspended", lambda view: [j for j in view.active if j.state is JobState.SUSPENDED]
    )


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(configs(), jobs())
def test_what_is_remembered_changes_nothing(config: Config, specs: list[JobSpec]) -> None:
    """Which jobs are suspended: the same record as if nothing were remembered."""
    quick: list[str] = []
    _run(config, specs, quick)
    plain: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        _looked_for_anew(patch)
        _run(config, specs, plain)
    assert quick == plain


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=7),
    st.lists(st.integers(0, 90), min_size=7, max_size=7),
    st.data(),
)
def test_minimised_choices_have_no_needless_victim(
    play: Any, sizes: list[int], priorities: list[int], data: st.DataObject
) -> None:
    """Putting any one back makes the job not fit; without the option the cheapest prefix is taken."""
    total = sum(sizes)
    need = data.draw(st.integers(1, total))
    running = " ".join(f"v{at}(low,{size}p,prio={priorities[at]})" for at, size in enumerate(sizes))
    run = play(running, f"H(high,{need}p)", nodes=f"n1={total}", settings={"minimise": True})
    freed = {f"v{at}": size for at, size in enumerate(sizes)}
    taken = sum(freed[victim] for victim in run.displaced)
    assert taken >= need
    assert all(taken - freed[victim] < need for victim in run.displaced)
