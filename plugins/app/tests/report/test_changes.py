"""Two runs job by job: whose waiting changed, and the first decision that differs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from makeway_app.cli import cli
from makeway_report.changes import compare, difference
from makeway_report.interval import change
from makeway_report.record_file import read_record

ROOT = Path(__file__).parents[4]


def run(*given: object) -> Result:
    """Run makeway."""
    return CliRunner().invoke(cli, [str(each) for each in given])


def waiting(start: float, end: float, restart: int = 0) -> dict[str, Any]:
    """Return an interval in the queue."""
    return {"state": "PENDING", "start": start, "end": end, "restart": restart}


def decision(at: float, outcome: str, **more: Any) -> dict[str, Any]:
    """Return a decision as records have it."""
    return {"at": at, "outcome": outcome, "partition": "low", **more}


@pytest.fixture
def two(tmp_path: Path, kit: Any) -> tuple[Path, Path]:
    """Records in which a waits 10 s more, b 3 s less, c the same, and d and e are in one each."""
    jobs: list[dict[str, Any]] = [
        {"a": [waiting(0, 5)], "b": [waiting(0, 4)], "c": [waiting(0, 1)], "d": []},
        # in another order, and with a requeue of a that counts as waiting too
        {"c": [waiting(0, 1)], "b": [waiting(0, 1)], "a": [waiting(0, 5), waiting(9, 19, 1)], "e": []},
    ]
    paths = tmp_path / "one.json", tmp_path / "two.json"
    for path, found in zip(paths, jobs, strict=True):
        path.write_text(
            json.dumps(kit.record({name: kit.job(intervals=each) for name, each in found.items()}))
        )
    return paths


def test_whose_waiting_changed(two: tuple[Path, Path]) -> None:
    """All are counted, the largest changes named, requeues included."""
    first, second = map(read_record, two)
    found = compare(first, second, most=1)
    assert (found.longer, found.shorter, found.same, found.alone) == (1, 1, 1, 2)
    assert [(each.job, each.before, each.after) for each in found.most] == [("a", 5.0, 15.0)]
    both = compare(first, second)
    assert [each.job for each in both.most] == ["a", "b"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            {
                "decisions": [
                    decision(0, "waits", reason="Priority"),
                    decision(9, "starts", placement="idle nodes"),
                ]
            },
            {
                "decisions": [
                    decision(0, "waits", reason="Priority"),
                    decision(20, "waits", reason="Resources"),
                ]
            },
            (9.0, "9 s: starts", "20 s: waits: Resources"),
            id="the first decision that differs",
        ),
        pytest.param(
            {"decisions": [decision(3, "preempts", reason="Resources", victims=[["7", "requeue"]])]},
            {"decisions": [decision(3, "preempts", reason="Resources", victims=[["8", "requeue"]])]},
            (3.0, "takes: 7 (requeue)", "takes: 8 (requeue)"),
            id="other victims",
        ),
        pytest.param(
            {"decisions": [decision(0, "waits", reason="Priority")]},
            {"decisions": []},
            (0.0, "0 s: waits: Priority", "nothing more was decided"),
            id="one has no decision",
        ),
        pytest.param(
            {"waits": [{"start": 0, "end": 4, "reason": "Priority"}]},
            {"waits": [{"start": 0, "end": 9, "reason": "Priority"}]},
            (0.0, "waits 4 s: Priority", "waits 9 s: Priority"),
            id="else reasons for waiting",
        ),
        pytest.param(
            {"intervals": [waiting(0, 4)]},
            {"intervals": []},
            (0.0, "0 s: pending", "it is over"),
            id="else states",
        ),
    ],
)
def test_why_it_changed(
    kit: Any, before: dict[str, Any], after: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """From when, and what happened in either run."""
    at, one, other = difference(kit.job(**before), kit.job(**after))
    assert at == expected[0]
    assert expected[1] in one
    assert expected[2] in other


def test_the_command_shows_and_writes_it(tmp_path: Path, two: tuple[Path, Path]) -> None:
    """As a table, and as JSON."""
    done = run("compare", *two, "--json", tmp_path / "c.json")
    assert done.exit_code == 0, done.output
    assert (
        "wait longer under two than under one: 1, shorter: 1, the same: 1, 2 in one run only" in done.stdout
    )
    assert "+10 s" in done.stdout
    (found,) = json.loads((tmp_path / "c.json").read_text())
    assert [each["job"] for each in found["most"]] == ["a", "b"]
    assert run("compare", two[0], tmp_path / "none.json").exit_code == 2
    assert run("compare", two[0], two[1], "--json", two[1]).exit_code == 2


@pytest.mark.slow
def test_a_replay_tells_it_at_once() -> None:
    """Job 490 of the six displaces three; without preemption it waits for the last of them, 320 s (seed page)."""
    seed = ROOT / "examples/seed/cluster.toml"
    off = "policy.preempt=preempt/none; policy.preempt_mode=off"
    done = run("replay", seed, "--compare", off, "--by-job")
    assert done.exit_code == 0, done.output
    assert "490: " not in done.stdout
    lines = done.stdout.splitlines()
    at = lines.index("the first decision that differs")
    assert lines[at + 1] == "490"
    assert "preempts" in lines[at + 2]
    assert "waits" in lines[at + 3]
    assert run("replay", seed, "--by-job").exit_code == 2


def test_a_change_is_drawn_on_one_scale_about_zero() -> None:
    """From -10 to 30 on a scale to 40 either way: zero lies in the middle, and 2 of 100 are left free on each side."""
    text = change(lambda value: f"{value:g} s", 10.0, -10.0, 30.0, 40.0, differs=False)
    assert 'class="between noise"' in text
    assert "<span>\N{MINUS SIGN}10 s</span> to <span>+30 s</span>, noise</span>" in text
    places = [float(each) for each in re.findall(r'(?:x1|<rect x)="([\d.]+)"', text)]
    assert places == [50.0, 38.0, 62.0]
    assert 'width="48.0"' in text  # 40 of 80 is half of 96
    assert 'class="between less"' in change(str, -2.0, -3.0, 1.0, differs=True)
    assert 'class="between more"' in change(str, 2.0, 1.0, 3.0, differs=True)


def test_differences_are_judged_by_the_days_of_submission(tmp_path: Path, kit: Any) -> None:
    """Each of 14 days has a job that waits 60 s less and loses 2 core-hours; in one record of two it is hit once."""
    paths = []
    for name, wait, lost in (("one", 90.0, 0.0), ("two", 30.0, 7200.0)):
        jobs = {}
        for day in range(14):
            at = 86400.0 * day
            pending = waiting(at, at + wait)
            running = {**pending, "state": "RUNNING", "start": at + wait, "end": at + 1000, "nodes": "n1"}
            told = {"submit": at, "core_seconds_lost": lost, "intervals": [pending, running]}
            jobs[str(day)] = {**kit.job(), **told}
        record = kit.record(jobs)
        record["preemptions"] = [{"victim": str(day), "at": 0.0} for day in range(14) if lost]
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(record))
    judged = compare(read_record(paths[0]), read_record(paths[1])).judged
    figures = {key: (each.value, each.low, each.high, each.unit) for key, each in judged.items()}
    assert figures == {
        "mean_wait": (-60.0, -60.0, -60.0, "day"),
        "core_seconds_lost": (14 * 7200.0, 14 * 7200.0, 14 * 7200.0, "day"),
        "preemptions": (14.0, 14.0, 14.0, "day"),
    }
