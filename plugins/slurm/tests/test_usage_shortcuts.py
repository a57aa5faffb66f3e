"""Usage is the same to the last bit whether recalculations, pieces and what is owed are entered one by one or not."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from makeway.config import Config
from makeway.model import ClusterView, JobSpec, Seconds
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_slurm.accounts.entry import Charge, Entry
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.limits.ending import Ending

NAME = "priority/multifactor"
USERS = 4
_TINY = 1e-6


def site(chance: random.Random) -> Config:
    """Return 4 nodes with 4 CPUs, and accounts and QOS that begin with some usage, count otherwise, or never decay."""
    accounts = [{"Account": name, "Share": str(at)} for at, name in ((1, "a"), (2, "b"))]
    users = [
        {"Account": "ab"[at % 2], "User": f"u{at}", **({"RawUsage": "5000"} if chance.random() < 0.2 else {})}
        for at in range(USERS)
    ]
    weights = {"TRESBillingWeights": chance.choice(("CPU=1.5", "CPU=0.3,Node=2", "CPU=2"))}
    limits = {"GrpTRESMins": "cpu=100000,node=100000", "GrpTRESRunMins": "cpu=3000", "MaxTRESMins": "cpu=100"}
    tables = {
        "cluster": {"attributes": {"associations": [*accounts, *users]}},
        "node": [{"name": "n[1-4]", "cpus": 4, "cores_per_socket": 4}],
        "partition": [
            {"name": "main", "default": True, "attributes": weights if chance.random() < 0.5 else {}}
        ],
        "qos": [
            {"name": "normal", "attributes": limits},
            {"name": "free", "flags": ["NoDecay"], "attributes": {"UsageFactor": "0.5", "GrpWall": "9000"}},
        ],
        "policy": {
            "priority": NAME,
            "plugins": ["limits/slurm"],
            "settings": {
                NAME: {
                    "calc_period": chance.choice((60.0, 300.0)),
                    "decay_half_life": chance.choice((0.0, 30.0, 1200.0, 86400.0)),
                    "weight_fairshare": 1000,
                }
            },
        },
        "scheduler": {"type": "easy", "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def jobs(chance: random.Random) -> list[JobSpec]:
    """Return 60 jobs of four users, some with long pauses before them."""
    found, at = [], 0.0
    for number in range(60):
        at += chance.choice((0.0, 20.0, 400.0, 9000.0)) * chance.random()
        user, nodes = chance.randrange(USERS), chance.randint(1, 4)
        found.append(
            JobSpec(
                id=str(number),
                submit_at=float(int(at)),
                user=f"u{user}",
                account="ab"[user % 2],
                qos=chance.choice(("normal", "normal", "free")),
                min_nodes=nodes,
                tasks=4 * nodes,
                run_time=float(chance.randint(1, 3000)),
                time_limit=chance.choice((600.0, 3000.0, 3600.0, 3600.0, chance.choice((90.5, 90.3, None)))),
            )
        )
    return found


def told(config: Config, given: list[JobSpec]) -> list[Any]:
    """Return what all have used, and may still use, after each step, and what became of the jobs."""
    found: list[Any] = []

    def look(engine: Engine) -> None:
        book = engine.ledger.book(UsageBook)
        entries = [*book.associations.values(), *book.qos.values()]
        used = [[entry.used(name) for name in ("raw", "cpu", "node", "wall")] for entry in entries]
        owed = [[entry.may_use(name) for name in ("cpu", "node", "billing")] for entry in entries]
        sums = (book.scale, book.decayed_sum, book.plain_sum, book.ticks, book.last, book.next_at)
        found.append((engine.ledger.now, sums, used, owed, [entry.frozen for entry in entries[:-2]]))

    run = replay(config, given, (), Options(after_step=look))
    return [*found, run.summary()["jobs"]]


def in_single_steps(book: UsageBook, now: Seconds) -> None:
    """Make recalculations one by one."""
    while book.next_at <= now + _TINY:
        if not book._charges:
            book.next_at = book._grid(now)
        at = book.next_at
        book.next_at = at + book._settings.calc_period
        book._recalculate(int(at))


def column_by_column(book: UsageBook, charge: Charge, seconds: int, grows: int, *, freezes: bool) -> None:
    """Add a piece, then what rates add, then change the rates."""
    weight = seconds * book.per_second**seconds
    for entry in charge.entries:
        if freezes and entry.index >= 0 and entry.frozen_at != book.ticks:
            entry.frozen, entry.frozen_at = entry.used(), book.ticks
        for at, rate in charge.shape.vector if seconds else ():
            entry.sums[at] += rate * weight / book.scale if entry.decays else rate * float(seconds)
        entry.settle()
        for at, rate in charge.shape.vector if grows else ():
            entry.rate[at] += rate * grows


def settle_by_columns(entry: Entry) -> None:
    """Add what rates have added, column by column."""
    common = entry.book.decayed_sum if entry.decays else entry.book.plain_sum
    for at, rate in enumerate(entry.rate):
        entry.sums[at] += rate * (common - entry.mark)
    entry.mark = common


@pytest.mark.parametrize("seed", range(12))
def test_all_usage_is_the_same(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """To the last bit, with each of these done one by one."""
    chance = random.Random(seed)
    config, given = site(chance), jobs(chance)
    quick = told(config, given)
    monkeypatch.setattr(UsageBook, "_advance_evenly", in_single_steps)
    monkeypatch.setattr(UsageBook, "_add_piece", column_by_column)
    monkeypatch.setattr(Entry, "settle", settle_by_columns)
    begin = UsageBook.__init__

    def eagerly(book: UsageBook, view: ClusterView) -> None:
        begin(book, view)
        book._whole = False

    monkeypatch.setattr(UsageBook, "__init__", eagerly)
    plain = told(config, given)
    assert len(quick) == len(plain)
    for one, other in zip(quick, plain, strict=True):
        assert one == other


def test_what_is_owed_is_entered_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of jobs that have ended before anything asks nothing is entered; of one that runs it is."""
    bring_up, entered = UsageBook.bring_up_owed, []

    def looked_at(book: UsageBook) -> None:
        entered.extend([*book._unowed])
        bring_up(book)

    monkeypatch.setattr(UsageBook, "bring_up_owed", looked_at)
    sites = map(site, map(random.Random, range(20)))
    config = next(each for each in sites if not each.partition[0].attributes)
    given = [
        JobSpec(id=str(at), submit_at=at * 1000.0, user="u0", account="a", run_time=500.0, time_limit=600.0)
        for at in range(20)
    ]
    looks: list[float] = []

    def look(engine: Engine) -> None:
        book = engine.ledger.book(UsageBook)
        book.advance(5400.5)
        looks.append(book.associations[0].may_use("cpu"))

    replay(config, given, (), Options(snapshots={5400.5: look}))
    assert entered == ["5"]
    assert len(looks) == 1
    assert 0.0 < looks[0] < 4 * 600.0


@pytest.mark.parametrize("seed", range(4))
def test_the_first_end_is_that_of_a_job_that_runs(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Up to when no job's own minutes are used up is told as if all were gone through."""
    calm, seen = Ending.calm_until, Counter[bool]()

    def checked(ending: Ending) -> Seconds:
        found = calm(ending)
        own = min((at for at, _ in ending._own.values()), default=float("inf"))
        assert found <= own
        assert ending._soonest == own
        seen[own < float("inf")] += 1
        return found

    monkeypatch.setattr(Ending, "calm_until", checked)
    chance = random.Random(seed)
    replay(site(chance), jobs(chance), (), Options())
    assert seen[True] > 10
