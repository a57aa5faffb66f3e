"""The rules of protect/calendar: which jobs are safe, when, until when, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from makeway.errors import ConfigError
from makeway.model import JobSpec
from makeway_protect_calendar.hours import open_until, window_of
from makeway_testing import TableRun, one_node, replay_table, tiers

NAME = "protect/calendar"
OFFICE = {"name": "office", "users": ["eva"], "hours": ["Mon-Fri 08:00-12:00"]}


def run(
    *,
    asked_at: float = 0.0,
    victim: dict[str, Any] | None = None,
    wall: float | None = None,
    until: float | None = None,
    **settings: Any,
) -> TableRun:
    """Replay one victim, started at 0, and one preemptor, submitted at `asked_at`; both want the whole node.

    :param wall: the beginning of the replay as Unix time, in the workload; None: it has none.
    """
    specs = [
        JobSpec(
            **{
                "id": "v",
                "user": "eva",
                "account": "physics",
                "partitions": ("low",),
                "run_time": 1e6,
                "wall_submit": wall,
                **(victim or {}),
            }
        ),
        JobSpec(
            id="p",
            partitions=("high",),
            submit_at=asked_at,
            run_time=10.0,
            wall_submit=None if wall is None else wall + asked_at,
        ),
    ]
    config = {
        "preempt": "preempt/partition_prio",
        "preempt_mode": "requeue",
        "partitions": tiers(low=1, high=2),
        "protect": NAME,
        "settings": {NAME: settings},
    }
    return replay_table(specs, cluster=one_node(cpus=4), config=config, until=until or asked_at + 1e5)


# ------------------------------------------------------------------------------------ the windows
@pytest.mark.parametrize(
    ("hours", "local", "end"),
    [
        # 2026-03-02 is a Monday.
        ("08:00-18:00", "2026-03-02T07:59:59", None),
        ("08:00-18:00", "2026-03-02T08:00:00", "2026-03-02T18:00:00"),
        ("08:00-18:00", "2026-03-02T17:59:59", "2026-03-02T18:00:00"),
        ("08:00-18:00", "2026-03-02T18:00:00", None),
        ("Mon-Fri 08:00-18:00", "2026-03-06T09:00:00", "2026-03-06T18:00:00"),
        ("Mon-Fri 08:00-18:00", "2026-03-07T09:00:00", None),
        ("Fri-Mon 08:00-18:00", "2026-03-08T09:00:00", "2026-03-08T18:00:00"),
        ("Fri-Mon 08:00-18:00", "2026-03-03T09:00:00", None),
        ("Sat,Sun 00:00-24:00", "2026-03-07T23:59:00", "2026-03-08T00:00:00"),
        ("Fri 22:00-06:00", "2026-03-06T23:00:00", "2026-03-07T06:00:00"),
        ("Fri 22:00-06:00", "2026-03-07T05:59:00", "2026-03-07T06:00:00"),
        ("Fri 22:00-06:00", "2026-03-06T05:00:00", None),
        ("Sun 22:00-06:00", "2026-03-02T05:00:00", "2026-03-02T06:00:00"),
    ],
)
def test_windows(hours: str, local: str, end: str | None) -> None:
    """Begin belongs to a window, end does not; one over midnight counts for the day on which it begins."""
    moment = datetime.fromisoformat(local).replace(tzinfo=UTC)
    found = open_until([hours], moment)
    assert found == (None if end is None else datetime.fromisoformat(end).replace(tzinfo=UTC))


def test_of_several_windows_the_last_end_counts() -> None:
    """They may overlap."""
    moment = datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert open_until(["08:00-10:00", "Mon 09:00-11:00"], moment) == datetime(2026, 3, 2, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Mun 08:00-09:00", "no day 'Mun'; allowed: Mon, Tue, Wed, Thu, Fri, Sat, Sun; did you mean"),
        ("8-18", "allowed: [DAYS ]HH:MM-HH:MM"),
        ("08:00-25:00", "no such time as 25:00; allowed: 00:00 to 24:00"),
        ("08:60-09:00", "no such time as 08:60"),
        ("08:00-08:00", "no time at all; a whole day is 00:00-24:00"),
        ("24:00-08:00", "no time at all"),
        ("Mon- 08:00-09:00", "no day ''"),
        ("", "allowed: [DAYS ]HH:MM-HH:MM"),
    ],
)
def test_wrong_windows(text: str, said: str) -> None:
    """Each says what is allowed."""
    with pytest.raises(ValueError, match="got") as caught:
        window_of(text)
    assert said in str(caught.value)


# ------------------------------------------------------------------------------------- the clock
BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 3, 2, 7, 30, tzinfo=BERLIN).timestamp()


@pytest.mark.parametrize(
    ("asked_at", "start"),
    [(0, 0), (1799, 1799), (1800, 16200), (16199, 16200), (16200, 16200)],
    ids=["07:30", "a second before 08:00", "08:00", "a second before 12:00", "12:00"],
)
def test_hours_of_the_site(asked_at: float, start: float) -> None:
    """The replay begins at 07:30; from 08:00 to 12:00 the victim is safe, and then the preemptor is tried again."""
    table = run(asked_at=asked_at, wall=MONDAY, time_zone="Europe/Berlin", rule=[OFFICE])
    assert table.starts("p") == (start,)


def test_the_time_zone_counts() -> None:
    """07:30 in Berlin is 06:30 UTC in winter: an hour later the window is still shut."""
    table = run(asked_at=1800, wall=MONDAY, time_zone="UTC", rule=[OFFICE])
    assert table.starts("p") == (1800,)


def test_the_clock_is_put_forward() -> None:
    """On 2026-03-29 Berlin goes from 02:00 to 03:00: 01:00 to 04:00 lasts two hours."""
    begin = datetime(2026, 3, 29, 1, 0, tzinfo=BERLIN).timestamp()
    rule = {"name": "night", "users": ["eva"], "hours": ["Sun 01:00-04:00"]}
    table = run(asked_at=60, wall=begin, time_zone="Europe/Berlin", rule=[rule])
    assert table.starts("p") == (2 * 3600,)


def test_start_stands_in_for_the_workload() -> None:
    """Without a zone of its own it is local time at the site."""
    table = run(asked_at=1800, start="2026-03-02T07:30:00", time_zone="Europe/Berlin", rule=[OFFICE])
    assert table.starts("p") == (16200,)


def test_the_workload_comes_before_start() -> None:
    """Where jobs say when they were submitted, `start` is not looked at."""
    table = run(
        asked_at=1800, wall=MONDAY, start="2026-03-08T00:00", time_zone="Europe/Berlin", rule=[OFFICE]
    )
    assert table.starts("p") == (16200,)


def test_no_clock_is_an_error() -> None:
    """It says what to do, and which rule needs it."""
    with pytest.raises(
        ConfigError, match=r"rule .office.: its hours cannot be told.*start = .*without_clock"
    ):
        run(asked_at=5, rule=[OFFICE])


@pytest.mark.parametrize(("choice", "start"), [("closed", (5.0,)), ("open", ())])
def test_no_clock_by_choice(choice: str, start: tuple[float, ...]) -> None:
    """Hours are never, or always, open."""
    assert run(asked_at=5, rule=[OFFICE], without_clock=choice).starts("p") == start


def test_rules_without_hours_need_no_clock() -> None:
    """They hold at all hours."""
    assert run(asked_at=5, rule=[{"name": "safe", "users": ["eva"]}]).starts("p") == ()


# ------------------------------------------------------------------------------------ what is safe
@pytest.mark.parametrize(
    ("who", "safe"),
    [
        ({"users": ["eva"]}, True),
        ({"users": ["adam", "e*"]}, True),
        ({"users": ["adam"]}, False),
        ({"accounts": ["physics"]}, True),
        ({"accounts": ["physics"], "users": ["adam"]}, False),
        ({"jobs": ["v"]}, True),
        ({"jobs": ["post*"]}, True),
        ({"jobs": ["p"]}, False),
        ({"users": ["*"]}, True),
    ],
)
def test_who_is_safe(who: dict[str, Any], safe: bool) -> None:
    """All lists given have to fit; in each, any one word."""
    table = run(asked_at=5, victim={"name": "postprocess"}, rule=[{"name": "r", **who}])
    assert table.starts("p") == (() if safe else (5.0,))


# --------------------------------------------------------------------------------- the last minutes
@pytest.mark.parametrize(
    ("asked_at", "start"),
    [(399, 399), (400, 1000), (999, 1000)],
    ids=["10 min and a second left", "10 min left", "a second left"],
)
def test_the_last_minutes_are_safe(asked_at: float, start: float) -> None:
    """The limit is 1000 s; at it the victim ends, and the preemptor starts."""
    table = run(asked_at=asked_at, victim={"time_limit": 1000.0}, last_minutes=10)
    assert table.starts("p") == (start,)


def test_who_has_no_limit_has_no_last_minutes() -> None:
    """It is not known when it ends."""
    assert run(asked_at=400, last_minutes=10).starts("p") == (400,)


# ----------------------------------------------------------------------------------------- settings
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"time_zone": "Europe/Berlni"}, "no time zone named 'Europe/Berlni'; allowed: names such as"),
        ({"time_zone": "Europe/Berlni"}, "did you mean 'Europe/Berlin'?"),
        ({"time_zone": "../etc"}, "no time zone named '../etc'"),
        ({"start": "yesterday"}, "start: got 'yesterday'; allowed: a date and time"),
        ({"start": 7}, "start: got 7; allowed: a date and time"),
        ({"last_minutes": -1}, "last_minutes: got -1; allowed: 0 or more"),
        ({"without_clock": "opne"}, "got 'opne'; allowed: error, closed, open; did you mean 'open'?"),
        ({"rule": [{"name": "r"}]}, "rule[0]: rule 'r': it names no job; add accounts, users or jobs"),
        ({"rule": [{"users": ["eva"]}]}, "rule[0].name: missing"),
        ({"rule": [{"name": "", "users": ["eva"]}]}, "rule[0]: name: it is shown to people"),
        ({"rule": [{**OFFICE, "hours": ["Mon 8-12"]}]}, "rule[0]: hours[0]: got 'Mon 8-12'"),
        (
            {"rule": [{**OFFICE, "hours": "Mon 08:00-12:00"}]},
            "rule[0].hours: got 'Mon 08:00-12:00'; allowed: a list",
        ),
        ({"rule": [{**OFFICE, "user": ["eva"]}]}, "rule[0].user: unknown key; did you mean 'users'?"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    """With the path and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        run(**settings)
    assert f'policy.settings."{NAME}"' in str(caught.value)
    assert said in str(caught.value)
