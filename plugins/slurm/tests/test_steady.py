"""Recalculations that change no order are put off: nothing is decided otherwise, and what was put off is made up."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from makeway.config import Config
from makeway.model import JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_slurm.accounts.periods import recalculations
from makeway_slurm.multifactor.prioritizer import Multifactor

NAME = "priority/multifactor"
USERS = 6


def site(chance: random.Random, limits: Mapping[str, str] | None = None, **more: Any) -> Config:
    """Return 4 nodes with 4 CPUs, two accounts, and ages that are soon as high as they can be.

    :param limits: of each account; with them, a user runs at most two jobs.
    """
    accounts: list[dict[str, str]] = [
        {"Account": name, "Share": str(chance.randint(1, 4)), **(limits or {})} for name in ("a", "b")
    ]
    users = [
        {"Account": "ab"[at % 2], "User": f"u{at}", "Share": str(chance.choice((0, 1, 1, 2, 5)))}
        for at in range(USERS)
    ]
    settings = {
        "calc_period": 20.0,
        "decay_half_life": chance.choice((0.0, 600.0, 86400.0)),
        "max_age": chance.choice((300.0, 2000.0)),
        "weight_age": chance.choice((0, 40, 1000)),
        "weight_fairshare": chance.choice((0, 50, 1000)),
        "weight_job_size": chance.choice((0, 7, 700)),
        **more,
    }
    tables = {
        "cluster": {"attributes": {"associations": [*accounts, *users]}},
        "node": [{"name": "n[1-4]", "cpus": 4, "cores_per_socket": 4}],
        "partition": [
            {"name": "main", "default": True},
            {"name": "first", "priority_tier": 5, "priority_job_factor": 3},
        ],
        "qos": [{"name": "q", "attributes": {"MaxJobsPU": "2"}}],
        "policy": {
            "priority": NAME,
            "settings": {NAME: settings},
            "plugins": ["limits/slurm"] if limits is not None else [],
        },
        "scheduler": {"type": chance.choice(("builtin", "easy", "greedy")), "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def jobs(chance: random.Random, **more: Any) -> list[JobSpec]:
    """Return 40 jobs, far more than there is room for; in some runs all wait in one partition, or ask for less."""
    asked = chance.choice(((4,), (4, 4, 1)))
    where = chance.choice(((("main",),), (("main",), ("main",), ("first",)), (("main",), ("main", "first"))))
    found = []
    for at in range(40):
        user = chance.randrange(USERS)
        nodes = chance.randint(1, 4)
        found.append(
            JobSpec(
                id=str(at),
                submit_at=chance.choice((0.0, 20.0, float(chance.randint(0, 2500)), chance.uniform(0, 2500))),
                user=f"u{user}",
                account="ab"[user % 2],
                partitions=chance.choice(where),
                min_nodes=nodes,
                max_nodes=nodes,
                tasks=chance.choice(asked) * nodes,
                run_time=chance.choice((20.0, 100.0, float(chance.randint(1, 9000)))),
                time_limit=10000.0,
                nice=chance.choice((0, 0, 0, 3)),
                priority=chance.choice((None, None, None, None, None, None, None, 40)),
                **more,
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


class Seen:
    """What two runs are held against each other by."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        config: Config,
        given: list[JobSpec],
        *,
        heard: bool = True,
        settled: bool = False,
    ) -> None:
        """Run.

        :param settled: whether priorities that are put off are worked out after each step in which something happened.
        """
        self.lines: list[str] = []
        self.stood: dict[float, list[tuple[str, int]]] = {}
        """Who stood in line after a step in which something happened, each with the priority."""
        self.recalculations = 0
        self.made_up = 0
        """Steps that began with what was put off."""
        step, again, current, catch_up = (
            Engine.step,
            Multifactor.again,
            Multifactor.current,
            Engine.catch_up,
        )

        def looked_at(engine: Engine, now: float, events: Any) -> Any:
            found = step(engine, now, events)
            if events:
                if settled:
                    catch_up(engine, now)
                self.stood[now] = [(job.id, job.priority) for _, job, _ in engine.queue.entries]
            return found

        def made_up(engine: Engine, now: float) -> None:
            before, done = [job.id for _, job, _ in engine.queue.entries], self.recalculations
            catch_up(engine, now)
            self.made_up += self.recalculations > done
            assert not heard or [job.id for _, job, _ in engine.queue.entries] == before, now

        def counted(multifactor: Multifactor, *given: Any) -> Any:
            self.recalculations += 1
            return again(multifactor, *given)

        def counted_if_due(multifactor: Multifactor, *given: Any) -> Any:
            before = multifactor.worked_out_at
            found = current(multifactor, *given)
            self.recalculations += multifactor.worked_out_at > before
            return found

        with monkeypatch.context() as patched:
            patched.setattr(Engine, "step", looked_at)
            patched.setattr(Multifactor, "again", counted)
            patched.setattr(Multifactor, "current", counted_if_due)
            patched.setattr(Engine, "catch_up", made_up)
            sink = (lambda line: self.lines.append(repr(line))) if heard else None
            run = replay(config, given, (), Options(sink=sink))
        self.jobs = run.summary()["jobs"]


def both(
    monkeypatch: pytest.MonkeyPatch,
    config: Config,
    given: list[JobSpec],
    *,
    heard: bool = True,
    settled: bool = False,
) -> tuple[Seen, Seen]:
    """Run as it is, and with every recalculation at its time.

    :param heard: whether somebody listens to what jobs wait for.
    :param settled: whether the first run works out all priorities after each step in which something happened.
    """
    patient = Seen(monkeypatch, config, given, heard=heard, settled=settled)
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "be_patient", lambda engine, **_: None)
        return patient, Seen(patched, config, given, heard=heard)


@pytest.mark.parametrize("seed", range(8, 24))
def test_nothing_is_decided_otherwise(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Records, the line, and each priority in it are the same, to the last byte."""
    chance = random.Random(seed)
    patient, punctual = both(monkeypatch, site(chance), jobs(chance))
    assert patient.lines == punctual.lines
    assert patient.stood == punctual.stood
    assert patient.recalculations <= 2 * punctual.recalculations


@pytest.mark.parametrize("limits", [None, {"GrpTRES": "cpu=12"}, {"GrpTRESMins": "cpu=9000"}])
@pytest.mark.parametrize("seed", range(24, 40))
def test_nor_where_nobody_listens(
    monkeypatch: pytest.MonkeyPatch, seed: int, limits: Mapping[str, str] | None
) -> None:
    """Priorities are worked out where an order decides something, and passes that can start nobody are left out."""
    chance = random.Random(seed)
    config = site(chance, limits)
    patient, punctual = both(monkeypatch, config, jobs(chance, qos="q"), heard=False)
    assert patient.jobs == punctual.jobs


@pytest.mark.parametrize("seed", range(24, 36))
def test_what_is_put_off_is_worked_out_as_it_would_have_been(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whenever somebody looks, the line is the same, and each priority in it."""
    chance = random.Random(seed)
    given = jobs(chance, qos="q")
    patient, punctual = both(monkeypatch, site(chance), given, heard=False, settled=True)
    assert patient.jobs == punctual.jobs
    assert patient.stood == punctual.stood


def test_a_full_cluster_is_recalculated_when_something_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four users wait whose ranks change again and again, for ends at 20, 40 and 60 periods: few look at them."""
    config = site(random.Random(1), weight_age=1000, weight_fairshare=1000, decay_half_life=600.0)
    given = [
        JobSpec(
            id=str(at),
            user=f"u{at % 4}",
            account="ab"[at % 2],
            min_nodes=1 + 3 * (at > 3),
            max_nodes=1 + 3 * (at > 3),
            tasks=4 + 12 * (at > 3),
            run_time=400.0 * (1 + at),
            time_limit=20000.0,
        )
        for at in range(8)
    ]
    patient, punctual = both(monkeypatch, config, given, heard=False)
    assert patient.jobs == punctual.jobs
    assert punctual.recalculations > 300
    assert patient.recalculations < 50


@pytest.mark.parametrize("flag", ["INCR_ONLY", "ACCRUE_ALWAYS", "CALCULATE_RUNNING", "NO_FAIR_TREE"])
def test_flags_under_which_nothing_is_put_off(monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    """What happens at each recalculation matters there: all are made at their time."""
    chance = random.Random(flag)
    patient, punctual = both(monkeypatch, site(chance, flags=[flag]), jobs(chance))
    assert (patient.lines, patient.stood) == (punctual.lines, punctual.stood)
    assert patient.recalculations == punctual.recalculations


def test_a_calm_queue_is_seldom_recalculated(monkeypatch: pytest.MonkeyPatch) -> None:
    """One job runs for 1,000 periods while another waits: few recalculations tell as much."""
    config = site(random.Random(1), weight_age=1000, weight_fairshare=1000, decay_half_life=86400.0)
    whole: dict[str, Any] = {"min_nodes": 4, "max_nodes": 4, "tasks": 16, "account": "a", "user": "u0"}
    given = [JobSpec(id=name, run_time=20000.0, time_limit=20000.0, **whole) for name in ("one", "other")]
    patient, punctual = both(monkeypatch, config, given)
    assert patient.lines == punctual.lines
    assert punctual.recalculations >= 1000
    assert patient.recalculations < 20


@pytest.mark.parametrize("half_life", [0.0, 3000.0, 86400.0, 7 * 86400.0])
@pytest.mark.parametrize("grown", [100.0, 7000.0, 250000.0])
def test_recalculations_are_counted_until_usage_has_grown(half_life: float, grown: float) -> None:
    """Added up one by one, in seconds of today's worth: so many do not reach it, and three more do (or 1,000 pass)."""
    per_second = 1.0 - 0.693 / half_life if half_life else 1.0
    count = recalculations(grown, 60.0, per_second)
    sums, scale, total = [0.0], 1.0, 0.0
    for _ in range(count + 3):
        scale *= per_second**60
        total += 60.0 * per_second**60 / scale
        sums.append(total)
    assert sums[count] < grown
    assert sums[count + 3] > grown or count >= 999
    assert count or grown < 180.0
