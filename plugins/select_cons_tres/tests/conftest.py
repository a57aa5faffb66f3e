"""Play small scenes on a cluster of cores: submit as with sbatch, look what is where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.config import Config
from makeway.model import ClusterView, Forecast, Job, JobState, PreemptMode
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Cleaned, Command, Event, Finished, Kill, Submitted
from makeway_engine.engine import Engine
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.forecast import forecast
from makeway_select_cons_tres.selector import ConsSelector
from makeway_slurm.readers.sbatch_args import parse_sbatch
from makeway_testing.builders import Machine, Settings, build_cluster, cluster, config, node, tiers

_PARAMETERS = ("CR_Core_Memory", "CR_Core", "CR_CPU_Memory", "CR_Socket_Memory")
_SHORT = {JobState.RUNNING: "R", JobState.SUSPENDED: "S", JobState.PENDING: "PD"}


class Stage:
    """An engine without delays, stepped by hand."""

    def __init__(self, machine: Machine, settings: Settings | None = None, **more: Any) -> None:
        given = {"select": "select/cons_tres", "scheduler": "builtin", **(settings or {})}
        built = config(machine, given, **more)
        self.engine = Engine(built, Recorder(build_cluster(built)), Policies(built))

    @property
    def now(self) -> float:
        """The time on stage."""
        return self.engine.ledger.now

    def submit(self, name: str, args: str = "", partition: str | None = None, **more: Any) -> str:
        """Submit a job with options of sbatch; return where it is afterwards."""
        words = (["-p", partition] if partition else []) + args.split()
        specs = parse_sbatch(words, id=name, name=name, submit_at=self.now, **more)
        self.step([Submitted(spec) for spec in specs])
        return self.where(name)

    def step(self, events: Sequence[Event] = (), at: float | None = None) -> None:
        """Let `events` happen; what is killed is gone at once."""
        instant = self.now if at is None else at
        while True:
            actions = self.engine.step(instant, events)
            events = [Cleaned(action.job.id) for action in actions if isinstance(action, Kill)]
            if not events:
                return

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        while (wake := self.engine.next_wake) is not None and wake <= until:
            self.step((), wake)
        self.step((), until)

    def end(self, name: str) -> None:
        """Let a job end by itself."""
        self.step([Finished(name, JobState.COMPLETED, True)])

    def command(self, verb: str, name: str) -> None:
        """Let an administrator act on a job."""
        self.step([Command(verb, name)])

    def job(self, name: str) -> Job:
        """Return a live job."""
        return self.engine.ledger.jobs[name]

    def where(self, name: str) -> str:
        """Return nodes and cores as ``n1:0,4 n2:0-7``; empty while the job waits or when it has ended."""
        job = self.engine.ledger.jobs.get(name)
        allocation = job.allocation if job is not None else None
        if allocation is None:
            return ""
        nodes = self.engine.ledger.cluster.nodes
        parts = []
        for at, index in enumerate(allocation.node_indices):
            node = nodes[index]
            cores = bitmap.full(node.cores) if allocation.cores is None else allocation.cores[at]
            parts.append(f"{node.name}:{_ranges(cores)}")
        return " ".join(parts)

    def cores(self, name: str) -> str:
        """Return the cores of a job on its only node."""
        return self.where(name).partition(":")[2]

    def nodes(self, name: str) -> str:
        """Return the nodes of a job as a host list."""
        job = self.engine.ledger.jobs.get(name)
        return self.engine.recorder.node_list(job.nodes) if job is not None and job.allocation else ""

    def cpus(self, name: str) -> tuple[int, ...]:
        """Return the CPUs charged on each node."""
        allocation = self.job(name).allocation
        assert allocation is not None
        assert allocation.cpus is not None
        return allocation.cpus

    def memory(self, name: str) -> tuple[int, ...]:
        """Return the memory charged on each node."""
        allocation = self.job(name).allocation
        assert allocation is not None
        assert allocation.memory_mb is not None
        return allocation.memory_mb

    def states(self, names: str) -> str:
        """Return the states of jobs as ``R S PD``; ``-`` for those that have ended."""
        jobs = self.engine.ledger.jobs
        return " ".join(_SHORT.get(jobs[name].state, "?") if name in jobs else "-" for name in names.split())


def _ranges(cores: int) -> str:
    runs = [(first, stop - 1) for first, stop in bitmap.runs(cores)]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


@pytest.fixture(scope="session")
def stage() -> Callable[..., Stage]:
    """Build a stage: nodes, then settings as `makeway_testing.builders.config` takes them."""
    return Stage


@pytest.fixture
def drawn_site() -> Callable[..., Config]:
    """Return what draws seven nodes, some alike and some not, under EASY; with preemption or none.

    It takes a seed, and of how many CPUs nodes may be.
    """

    def draw(seed: int, sizes: Sequence[int]) -> Config:
        chance = Random(seed)
        alike = chance.random() < 0.4
        nodes = [
            node(
                f"n{at}",
                cpus=4 if alike else chance.choice(sizes),
                memory_mb=8_000,
                weight=1 if alike else chance.choice((1, 2)),
                features=("fast",) if at % 2 else (),
            )
            for at in range(7)
        ]
        preempt = chance.choice(("preempt/none", "preempt/partition_prio"))
        settings = {
            "select": "select/cons_tres",
            "select_parameters": _PARAMETERS[seed % len(_PARAMETERS)],
            "scheduler": "easy",
            "preempt": preempt,
            "preempt_mode": chance.choice(("requeue", "cancel")) if preempt != "preempt/none" else "off",
            "clockwork": "ideal",
            "partitions": tiers(low=1, hi=2),
        }
        return config(cluster(nodes), settings)

    return draw


@pytest.fixture
def each_forecast(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Hold each forecast to one that is worked out anew; a job that is put in is told of those without preemption."""
    told: list[Any] = []
    said = ConsSelector.forecast

    def checked(
        self: ConsSelector,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        found = said(self, job, nodes, view, removable)
        planning = view.rule("forecast_beside_running")
        assert found == forecast(ConsAttempt(self, job, nodes, view, planning=planning), removable)
        if not removable and found is not None:
            for tell in told:
                tell(self, job, nodes, view, found)
        return found

    monkeypatch.setattr(ConsSelector, "forecast", checked)
    return told
