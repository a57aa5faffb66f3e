"""``makeway sweep``: what it writes, how it goes on, and what it refuses."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from makeway_app.cli import cli
from makeway_sweep.page import number, page
from makeway_sweep.plan import Axis
from makeway_sweep.summary import COLUMNS, Row, on_front
from makeway_sweep.tables import tables

ROOT = Path(__file__).parents[4]
KTH = (ROOT / "examples/kth/cluster.toml", ROOT / "examples/kth/kth-sp2-1500.swf.gz")
MODES = ("--vary", "policy.preempt_mode=requeue,'suspend,gang'")


def run(*given: object) -> Result:
    """Run makeway."""
    return CliRunner().invoke(cli, [str(each) for each in given])


def rows_of(folder: Path) -> list[dict[str, str]]:
    """Return the table."""
    with (folder / "table.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_a_front_never_prefers_throwing_work_away() -> None:
    """Cancelling gives the shortest waits and the least lost hours, and ends 175 jobs: it is not on the front."""

    def row(number: int, wait: float, lost: float, ended: int) -> Row:
        figures = {"mean_wait": wait, "core_seconds_lost": lost, "jobs_unfinished": 0}
        metrics = {**figures, "jobs_ended_by_preemption": ended}
        return Row(number=number, values=(), identity=str(number), metrics=metrics)

    found = on_front(
        [row(1, 10.0, 5.0, 175), row(2, 20.0, 9.0, 0), row(3, 30.0, 8.0, 0), row(4, 31.0, 9.0, 0)]
    )
    assert [each.number for each in found if each.front] == [2, 3]


def sample(number: int, *values: str, wait: float = 4149.0, hours: float = 3065.3) -> Row:
    """Return a run with figures of ordinary width."""
    metrics = {each.key: 0.0 for each in COLUMNS} | {"mean_wait": wait, "core_seconds_lost": hours * 3600}
    return Row(number=number, values=values, identity=str(number), metrics=metrics)


AXES = (
    Axis(key="policy.preempt_mode", values=("requeue", "cancel")),
    Axis(key="policy.preemption.exempt_time", values=("0", "25000")),
)


def test_tables_fit_80_columns() -> None:
    """Each part of a table keeps the values that a run is known by; keys break at dots, and no figure is cut off."""
    rows = [sample(1, "requeue", "0"), sample(2, "cancel", "25000")]
    stream = io.StringIO()
    for each in tables(AXES, rows):
        Console(file=stream, width=80).print(each, crop=False)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    runs = lines[next(at for at, line in enumerate(lines) if line.startswith("2 runs")) :]
    assert (
        sum("requeue" in line for line in runs)
        == sum("cancel" in line and "25000" in line for line in runs)
        == 3
    )
    assert any(line.split()[:1] == ["preempt_mode"] for line in runs)
    assert "".join(runs).count("1:09:09") == "".join(runs).count("3,065.3") == 2


def test_runs_with_the_same_figures_are_all_seen_on_the_page() -> None:
    """The first of two at one place is the larger: a ring of it shows around the second."""
    text = page(
        AXES,
        [sample(1, "requeue", "0"), sample(2, "cancel", "0"), sample(3, "cancel", "25000", wait=9.0)],
        "t",
        (),
    )
    assert re.findall(r'<circle [^>]* r="([0-9.]+)"', text) == ["7.5", "4.5", "4.5"]
    assert "policy.<wbr>preemption.<wbr>exempt_time" in text


def test_the_page_marks_the_site_and_begins_axes_at_zero(tmp_path: Path, config: Path) -> None:
    """Titles stand at both axes, and numbers are written as people write them."""
    done = run("sweep", config, *MODES, "-o", tmp_path / "out", "--workers", 1)
    assert (
        "* is on the pareto front of mean wait against lost work; = is the site as configured" in done.output
    )
    text = (tmp_path / "out/index.html").read_text()
    assert text.count("(as configured)") == text.count('<rect class="own"') == 1
    assert re.search(r'<text class="axis"[^>]*>mean wait</text>', text)
    assert re.search(r'<text class="axis"[^>]*rotate\(-90\)[^>]*>core-hours lost</text>', text)
    assert (number(25_000.0), number(0.05), number(1e6), number(0.0)) == ("25,000", "0.05", "1,000,000", "0")
    assert re.search(r'text-anchor="end">0</text>', text)


def test_each_value_does_what_it_would_alone(tmp_path: Path, config: Path) -> None:
    """Requeued, job 1 loses 50 s on 8 cores; suspended, it loses nothing. A replay says the same."""
    done = run("sweep", config, *MODES, "-o", tmp_path / "out", "--workers", 1)
    assert done.exit_code == 0, done.output
    rows = rows_of(tmp_path / "out")
    assert [row["policy.preempt_mode"] for row in rows] == ["requeue", "'suspend,gang'"]
    assert [float(row["core_seconds_lost"]) for row in rows] == [400.0, 0.0]
    for row in rows:
        record = tmp_path / "alone.json"
        assert (
            run(
                "replay",
                config,
                "--set",
                f"policy.preempt_mode={row['policy.preempt_mode']}",
                "--json",
                record,
            ).exit_code
            == 0
        )
        alone = json.loads(record.read_text())["metrics"]
        assert {name: float(row[name]) for name in alone} == alone


def test_the_summary_says_what_each_key_does(tmp_path: Path, config: Path) -> None:
    """Means over the other keys, and a mark for each run on the pareto front."""
    done = run(
        "sweep",
        config,
        *MODES,
        "--vary",
        "scheduler.type=easy,greedy",
        "-o",
        tmp_path / "out",
        "--workers",
        1,
    )
    assert done.exit_code == 0, done.output
    assert re.search(r"requeue +2 .* 0\.1 +0\n", done.stdout)
    page = (tmp_path / "out/index.html").read_text()
    assert page.count("<circle") == 4
    assert "<bdi>scheduler.type</bdi>" in page


@pytest.mark.slow
def test_cores_do_what_one_does(tmp_path: Path, config: Path) -> None:
    """Byte for byte, results, table and page."""
    for workers in (1, 3):
        done = run("sweep", config, *MODES, "-o", tmp_path / str(workers), "--workers", workers)
        assert done.exit_code == 0, done.output
    one, three = (
        {path.name: path.read_bytes() for path in (tmp_path / each).rglob("*.*") if path.is_file()}
        for each in "13"
    )
    assert one == three


def test_what_is_done_is_not_done_again(tmp_path: Path, config: Path) -> None:
    """Of more values only the new ones are run; a result that is half there is run again."""
    out = tmp_path / "out"
    assert run("sweep", config, *MODES, "-o", out, "--workers", 1).exit_code == 0
    first, second = sorted((out / "runs").iterdir())
    second.write_text(second.read_text()[:40])
    (out / "runs" / f".{second.name}.x.part").write_text("half")
    before = first.stat().st_mtime_ns
    more = ("--vary", "policy.preempt_mode=requeue,'suspend,gang',cancel")
    done = run("sweep", config, *more, "-o", out, "--workers", 1)
    assert done.exit_code == 0, done.output
    assert "1 of 3 runs are in" in done.stderr
    assert first.stat().st_mtime_ns == before
    assert len(rows_of(out)) == 3
    assert not list(out.rglob("*.part"))
    assert "3 of 3 runs" in run("sweep", config, *more, "-o", out).stderr
    assert "runs are in" not in run("sweep", config, *more, "-o", out, "--workers", 1, "--again").stderr


@pytest.mark.slow
def test_records_are_kept_where_they_are_wanted(tmp_path: Path, config: Path) -> None:
    """One per run, for `makeway report`; a sweep without them is no reason to leave them out later."""
    out = tmp_path / "out"
    assert run("sweep", config, *MODES, "-o", out, "--workers", 1).exit_code == 0
    assert run("sweep", config, *MODES, "-o", out, "--workers", 2, "--records").exit_code == 0
    records = sorted((out / "records").iterdir())
    assert len(records) == 2
    done = run("report", *records, "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(
            ("policy.preempt_mod=requeue,off",),
            ["policy.preempt_mod: unknown key; did you mean 'preempt_mode'?"],
            id="a key",
        ),
        pytest.param(("policy.preempt_mode=requeue,kill",), ["'kill'; allowed: ", "1 of 2 combinations"], id="a value"),
        pytest.param(("policy.preempt=preempt/qso,preempt/none",), ["no plugin named 'preempt/qso'"], id="a plugin"),
        pytest.param(
            ("world.name=simulated,local",),
            ["world.name: got 'local'", "allowed: world/simulated"],
            id="a world in real time",
        ),
    ],
)  # fmt: skip
def test_wrong_keys_and_values_are_refused(
    tmp_path: Path, config: Path, given: tuple[str, ...], told: list[str]
) -> None:
    """Before anything is run or written."""
    done = run(
        "sweep", config, *(word for each in given for word in ("--vary", each)), "-o", tmp_path / "out"
    )
    assert done.exit_code == 2
    for text in told:
        assert text in done.stderr
    assert not (tmp_path / "out").exists()


def test_combinations_that_do_not_go_together_can_be_left_out(tmp_path: Path, config: Path) -> None:
    """They are named."""
    given = (
        "sweep",
        config,
        "--vary",
        "policy.preempt_mode=requeue,kill",
        "-o",
        tmp_path / "out",
        "--workers",
        1,
    )
    assert "--skip-invalid leaves such combinations out" in run(*given).stderr
    done = run(*given, "--skip-invalid")
    assert done.exit_code == 0, done.output
    assert "left out, no configuration: policy.preempt_mode=kill" in done.stderr
    assert len(rows_of(tmp_path / "out")) == 1


def test_values_that_need_one_another_go_together(tmp_path: Path, config: Path) -> None:
    """A combination is judged as a whole, not key by key."""
    both = ("--vary", "policy.preempt=preempt/none", "--vary", "policy.preempt_mode=off")
    done = run("sweep", config, *both, "-o", tmp_path / "out", "--workers", 1)
    assert done.exit_code == 0, done.output
    assert rows_of(tmp_path / "out")[0]["preemptions"] == "0"


def test_folders_that_will_not_do(tmp_path: Path, config: Path) -> None:
    """A file, somebody's folder, one that cannot be written, one in use; what is there stays."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("x")
    (tmp_path / "used").mkdir()
    held = os.open(tmp_path / "used/.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    expected = {
        "file": "cannot be written",
        "file/below": "cannot be written",
        "mine": "holds other files than those of a sweep",
        "used": "another sweep is at work in it",
    }
    for name, text in expected.items():
        done = run("sweep", config, *MODES, "-o", tmp_path / name)
        assert done.exit_code == 2, name
        assert text in done.stderr
    os.close(held)
    assert (tmp_path / "mine/thesis.txt").read_text() == "x"


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path, config: Path) -> None:
    """It is named with its reason, and tried again the next time."""
    broken = tmp_path / "broken.py"
    broken.write_text(
        "from makeway.hookspecs import hookimpl\n"
        "@hookimpl\n"
        "def makeway_preempt_candidates(preemptor, active):\n"
        "    raise ZeroDivisionError('no')\n"
    )
    given = ("sweep", config, "--plugin", f"preempt/broken={broken}", "-o", tmp_path / "out", "--workers", 2)
    done = run(*given, "--vary", "policy.preempt=preempt/partition_prio,preempt/broken")
    assert done.exit_code == 1, done.output
    assert "makeway: failed: policy.preempt=preempt/broken: plugin 'preempt/broken'" in done.stderr
    assert "Traceback" not in done.output
    assert len(rows_of(tmp_path / "out")) == 1


def test_names_are_data_on_the_page(tmp_path: Path, config: Path) -> None:
    """Whatever a value holds."""
    evil = "</script><script>alert(1)</script>"
    value = f"'{evil}'"
    text = config.read_text() + 'name = "x"\n'
    config.write_text(text)
    done = run("sweep", config, "--vary", f"job.2.name={value},ok", "-o", tmp_path / "out", "--workers", 1)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out/index.html").read_text()
    assert page.count("<script>") == 1
    assert "default-src 'none'" in page.replace("&#39;", "'")


# ------------------------------------------------------------------------------------- kill -9
def _started(*given: object) -> subprocess.Popen[Any]:
    command = [sys.executable, "-m", "makeway", *map(str, given)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


@pytest.mark.slow
def test_kill_9_loses_at_most_the_runs_under_way(tmp_path: Path) -> None:
    """The workers end with it, the folder is free at once, and what was done counts."""
    out = tmp_path / "out"
    tiers = ",".join(map(str, range(2, 26)))
    given = (
        "sweep",
        *KTH,
        "--limit",
        400,
        "--vary",
        f"partition.high.priority_tier={tiers}",
        "-o",
        out,
        "--workers",
        2,
    )
    process = _started(*given)
    try:
        until = time.monotonic() + 120
        while len(list(out.glob("runs/*.json"))) < 4 and time.monotonic() < until:
            time.sleep(0.05)
        children = subprocess.run(
            ["pgrep", "-s", str(process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        assert len(children) >= 3, "two workers and who started them"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    until = time.monotonic() + 120
    while any(Path(f"/proc/{pid}").exists() for pid in children) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("runs/*.json")}
    assert 4 <= len(before) < 24
    done = run(*given)
    assert done.exit_code == 0, done.output
    assert f"{len(before)} of 24 runs are in" in done.stderr
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("runs/*.json")}
    assert len(after) == 24
    assert {name: after[name] for name in before} == before
    assert len(rows_of(out)) == 24
