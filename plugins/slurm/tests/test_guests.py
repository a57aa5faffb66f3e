"""Users who are not listed get associations of their own from a table for anybody."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import Config, build_cluster
from makeway.model import JobSpec
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.settings import structure
from makeway.state import read_state, write_state
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_slurm.accounts.tree import GUESTS, Association, build
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.multifactor.tables import share_rows

TABLES = [
    {"Account": "lab"},
    {"Account": "lab", "User": "*", "GrpTRES": "cpu=3"},
    {"Account": "lab", "User": "ada", "Share": "5"},
]
NAME = "priority/multifactor"


def site(associations: list[dict[str, str]]) -> Config:
    """Return a node of 4 CPUs, where usage does not decay, and is worked out each 10 s."""
    tables: dict[str, Any] = {
        "cluster": {"attributes": {"associations": associations}},
        "node": [{"name": "n", "cpus": 4, "memory_mb": 1000}],
        "partition": [{"name": "main", "default": True}],
        "policy": {
            "select": "select/cons_tres",
            "select_parameters": ["CR_CPU"],
            "priority": NAME,
            "plugins": ["limits/slurm"],
            "settings": {NAME: {"weight_fairshare": 1000, "calc_period": 10.0, "decay_half_life": 0.0}},
        },
        "scheduler": {"type": "builtin", "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def test_each_unlisted_user_has_one() -> None:
    """The same one for all of the user's jobs; those who are listed keep theirs, and another account has none."""
    grown = build(TABLES)
    bob, eve = grown.of("bob", None, "main"), grown.of("eve", "LAB", "main")
    assert bob is not None
    assert eve is not None
    assert (bob.name, eve.name, bob is eve) == ("bob in lab", "eve in lab", False)
    assert grown.of("bob", "lab", "other") is bob
    assert (bob.shares, dict(bob.limits.grp_tres)) == (1, {"cpu": 3})
    ada = grown.of("ada", None, "main")
    assert ada is not None
    assert (ada.shares, ada.guest) == (5, False)
    assert grown.of("bob", "physics", "main") is None


def test_there_is_an_end_of_them() -> None:
    """So many users at once no machine has; who comes then has no share."""
    grown = build(TABLES)
    given = [grown.of(f"u{at}", None, "") for at in range(GUESTS + 1)]
    assert None not in given[:-1]
    assert given[-1] is None


def test_none_is_given_without_such_a_table() -> None:
    """A user that no table lists has none, as in Slurm."""
    assert build(TABLES[:1]).of("bob", None, "main") is None


def test_who_has_used_less_comes_first() -> None:
    """Bob's first job holds 3 CPUs to 20 s: that is all that a user may have. Eve's comes before his next one."""
    alike: dict[str, Any] = {"tasks": 3, "time_limit": 60.0}
    jobs = (
        JobSpec(id="1", user="bob", run_time=20, **alike),
        JobSpec(id="2", user="bob", submit_at=1, run_time=10, **alike),
        JobSpec(id="3", user="eve", submit_at=2, run_time=10, **alike),
    )
    run = replay(site(TABLES), jobs).summary()["jobs"]
    assert {name: job["intervals"][-1]["start"] for name, job in run.items()} == {"1": 0, "3": 20, "2": 30}


def test_usage_is_handed_over_by_name() -> None:
    """Another engine gives associations away in another order; everybody keeps what was used."""
    config = site(TABLES)
    jobs = (
        JobSpec(id="1", user="bob", tasks=2, run_time=10),
        JobSpec(id="2", user="eve", tasks=1, submit_at=1, run_time=100),
    )
    first = replay(config, jobs, (), Options(until=40.0)).engine
    state = read_state(write_state(first.save()), "test")
    second = Engine(config, Recorder(build_cluster(config)), Policies(config))
    second.adopt(state)
    book = second.ledger.book(UsageBook)
    assert book.tree is not None
    eve, bob = book.tree.of("eve", None, "main"), book.tree.of("bob", None, "main")
    book.advance(40.0)
    assert [_used(book, each) for each in (bob, eve)] == pytest.approx([20.0, 39.0])
    users = [row[1].strip() for row in share_rows(second.ledger, 40.0)]
    assert sorted(filter(None, users)) == ["ada", "bob", "eve", "root"]


def _used(book: UsageBook, node: Association | None) -> float:
    return book.associations[node.index].used() if node is not None else 0.0
