"""A job goes ahead where it delays nobody who has a promise."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pytest

from makeway.errors import PluginError
from makeway.registry import missing_to_play, naming, scheduler_of
from makeway_backfill import Backfill
from makeway_testing import cluster, config, replay_table

SITE = {"scheduler": "backfill", "select": "select/whole_nodes"}
JOBS = """
    job    submit  nodes  run_time  time_limit
    first       0      1       100         100
    wide        1      2       100         100
    short       2      1        50          50
    long        3      1       200         200
    alike       4      2        10          10
"""


def test_short_jobs_fill_what_is_promised_later() -> None:
    """`wide` waits for `first`; `short` is over before, `long` would not be, nor may `alike` go before `wide`."""
    run = replay_table(JOBS, cluster=cluster(2), config=SITE)
    starts = {job: run.starts(job) for job in ("first", "wide", "short", "long", "alike")}
    assert starts == {"first": (0.0,), "wide": (100.0,), "short": (2.0,), "long": (200.0,), "alike": (400.0,)}


def test_the_core_asks_for_it_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed, whoever wants it reads what to install."""
    assert scheduler_of("backfill") is Backfill
    assert scheduler_of("easy") is None

    def nothing(**_: Any) -> tuple[metadata.EntryPoint, ...]:
        return ()

    naming._backfill.cache_clear()
    monkeypatch.setattr(metadata, "entry_points", nothing)
    with pytest.raises(PluginError, match=r"scheduler\.type = \"backfill\" .*pip install makeway-backfill"):
        scheduler_of("backfill")
    assert "pip install makeway-backfill" in missing_to_play(config(cluster(2), SITE))
