"""``makeway replay --gantt``: pictures in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from makeway_app.cli import cli
from makeway_report.record_file import read_record
from makeway_report.terminal import picture

ROOT = Path(__file__).parents[4]


def run(*given: object) -> Result:
    """Run makeway."""
    return CliRunner().invoke(cli, [str(each) for each in given])


def test_six_jobs_over_nodes() -> None:
    """Jobs 485 to 487 are suspended under 490, then go on; n15 and n16 are never disturbed (seed page)."""
    done = run("replay", ROOT / "examples/seed/cluster.toml", "--gantt")
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.startswith("n1")}
    for node, job in (("n12", "485"), ("n13", "486"), ("n14", "487")):
        before, over, after = rows[node].split("#")[0], rows[node].count("#"), rows[node].split("#")[-1]
        assert job in before
        assert job in after
        assert "490" in rows[node]
        assert over > 0
    assert "#" not in rows["n15"] + rows["n16"]


def test_lost_and_suspended_time_is_marked(tmp_path: Path, kit: Any) -> None:
    """A start that a requeue threw away, and a job that is stopped with none over it; a column is 1 s."""
    cpus = {"n1": "0-3"}
    lost = [kit.interval("RUNNING", 0, 40, "n1", cpus), kit.interval("RUNNING", 60, 100, "n1", cpus, 1)]
    stopped = [
        kit.interval("RUNNING", 0, 50, "n2", {"n2": "0-3"}),
        kit.interval("SUSPENDED", 50, 100, "n2", {}),
    ]
    jobs = {
        "a": kit.job(intervals=lost, restarts=1, core_seconds_lost=160.0),
        "b": kit.job(intervals=stopped, final_state="SUSPENDED"),
    }
    path = tmp_path / "run.json"
    path.write_text(json.dumps(kit.record(jobs)))
    lines = picture(read_record(path), "", 109).plain.splitlines()
    rows = {line[:9].strip(): line[9:] for line in lines if line.startswith("n")}
    assert (
        rows["n1"].replace("a", "x", 1)
        == ("x" * 40 + " " * 20 + "=" * 40).replace("=", "a", 0)[:60] + rows["n1"][60:]
    )
    assert (rows["n1"][:40].count("x"), rows["n1"][:40].count("a")) == (39, 1)
    assert rows["n1"][40:60] == " " * 20
    assert rows["n1"][60:].count("=") == 39
    assert rows["n2"][:50].count("=") == 49
    assert rows["n2"][50:].count("-") == 49
    cores = next(line for line in lines if line.startswith("cores"))[9:]
    # 8 of 16 cores until 40 s, then 4, only a after 60 s
    assert (cores[5], cores[45], cores[55], cores[80]) == ("▄", "▂", " ", "▂")


def test_many_jobs_are_sparklines() -> None:
    """It says why, and what draws them."""
    kth = ROOT / "examples/kth"
    done = run("replay", kth / "cluster.toml", kth / "kth-sp2-1500.swf.gz", "--limit", 250, "--gantt")
    assert done.exit_code == 0, done.output
    assert "250 jobs on 100 nodes: jobs over nodes are drawn up to 200 and 40" in done.stdout
    assert "n001" not in done.stdout
    assert "█" in done.stdout
