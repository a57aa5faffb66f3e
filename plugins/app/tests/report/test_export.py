"""``makeway export``: each format is opened by what it is for, or held to the rules of the format."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from makeway.config import parse_toml
from makeway.readers.api import ReadOptions
from makeway_app.cli import cli
from makeway_report.record_file import RecordFile, read_record
from makeway_slurm.readers.sacct import SacctReader

ROOT = Path(__file__).parents[4]
KTH = ROOT / "examples/kth"


def run(*given: object) -> Result:
    """Run makeway."""
    return CliRunner().invoke(cli, [str(each) for each in given])


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Replay jobs that are requeued, and jobs that are suspended."""
    folder = tmp_path_factory.mktemp("records")
    made = {}
    for name, config in (("requeue", "cluster.toml"), ("suspend", "suspend.toml")):
        made[name] = folder / f"{name}.json"
        given = ("replay", KTH / config, KTH / "kth-sp2-1500.swf.gz", "--limit", 400, "--json", made[name])
        assert run(*given).exit_code == 0
    return made


def exported(path: Path, kind: str, to: Path) -> RecordFile:
    """Export a record; return it."""
    done = run("export", path, "--to", kind, "-o", to)
    assert done.exit_code == 0, done.output
    return read_record(path)


# ------------------------------------------------------------------------------------------ sacct
@pytest.mark.slow
@pytest.mark.parametrize("policy", ["requeue", "suspend"])
def test_sacct_rows_are_read_by_makeway(tmp_path: Path, records: dict[str, Path], policy: str) -> None:
    """Ids, people, sizes, instants and run times come back; those of the trace itself where nothing was lost."""
    record = exported(records[policy], "sacct", tmp_path / "x.sacct")
    config = parse_toml((KTH / "cluster.toml").read_text(), "cluster.toml")
    workload = SacctReader().read(tmp_path / "x.sacct", ReadOptions(config=config))
    specs = {spec.id: spec for spec in workload.jobs}
    assert not workload.rejected_count
    assert workload.start_wall == record.heading["epoch"]
    jobs = dict(record.jobs())
    assert specs.keys() == jobs.keys()
    for job_id, job in jobs.items():
        spec, last = specs[job_id], job["intervals"][-1]
        runs = [e for e in job["intervals"] if e["state"] == "RUNNING" and e["restart"] == last["restart"]]
        assert spec.submit_at == job["submit"]
        assert spec.run_time == sum(each["end"] - each["start"] for each in runs)
        assert (spec.user, spec.min_nodes, spec.cpus) == (job["user"], *job["requested"].values())[:3]
        assert spec.partitions == (job["partition"],)


def test_sacct_without_dates_and_with_foreign_ids(tmp_path: Path, kit: Any) -> None:
    """It says what it did about them; a separator in a name stays within its cell."""
    path = tmp_path / "run.json"
    held = [kit.interval("RUNNING", 5, 65, "n1", {"n1": "0-3"})]
    jobs = {"a": kit.job(intervals=held, user="x|y"), "b": kit.job(final_state="PENDING", submit=1.0)}
    path.write_text(json.dumps(kit.record(jobs)))
    done = run("export", path, "--to", "sacct", "-o", "-")
    assert "second 0 is 2000-01-01T00:00:00" in done.stderr
    assert "ids that Slurm does not know" in done.stderr
    first, second = csv.DictReader(done.stdout.splitlines(), delimiter="|")
    assert (first["JobID"], first["JobName"], first["User"]) == ("1", "a", "x/y")
    assert (first["Start"], first["End"], first["Elapsed"]) == (
        "2000-01-01T00:00:05",
        "2000-01-01T00:01:05",
        "00:01:00",
    )
    assert (second["State"], second["Start"], second["NodeList"]) == ("PENDING", "Unknown", "None assigned")


# ----------------------------------------------------------------------------------------- tables
def test_csv_and_parquet_hold_the_same(tmp_path: Path, records: dict[str, Path]) -> None:
    """All jobs, intervals, preemptions and decisions of the record; pyarrow reads the one, Python's csv the other."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    record = exported(records["requeue"], "csv", tmp_path / "c")
    exported(records["requeue"], "parquet", tmp_path / "p")
    jobs = dict(record.jobs())
    wanted = {
        "jobs": len(jobs),
        "intervals": sum(len(job["intervals"]) for job in jobs.values()),
        "waits": sum(len(job["waits"]) for job in jobs.values()),
        "preemptions": record.rest["metrics"]["preemptions"],
        "decisions": sum(len(job["decisions"]) for job in jobs.values()),
    }
    for name, number in wanted.items():
        columns = parquet.read_table(tmp_path / f"p/{name}.parquet").to_pydict()
        with (tmp_path / f"c/{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == number
        assert {
            key: ["" if value is None else str(value) for value in column] for key, column in columns.items()
        } == {key: [row[key] for row in rows] for key in columns}
    table = parquet.read_table(tmp_path / "p/jobs.parquet").to_pydict()
    assert sum(table["core_seconds_lost"]) == pytest.approx(record.rest["metrics"]["core_seconds_lost"])
    waits = [wait for wait in table["wait"] if wait is not None]
    assert sum(waits) / len(waits) == pytest.approx(record.rest["metrics"]["mean_wait"])


def test_parquet_says_what_to_install(
    tmp_path: Path, records: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where pyarrow is missing."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("export", records["requeue"], "--to", "parquet", "-o", tmp_path / "p")
    assert done.exit_code == 2
    assert "pip install 'makeway[parquet]'" in done.stderr


# --------------------------------------------------------------------------------------- perfetto
@pytest.mark.parametrize("policy", ["requeue", "suspend"])
def test_the_trace_keeps_the_rules_of_its_format(
    tmp_path: Path, records: dict[str, Path], policy: str
) -> None:
    """Slices of one track do not overlap, each arrow begins and ends within a slice, every track has a name."""
    record = exported(records[policy], "perfetto", tmp_path / "t.json.gz")
    with gzip.open(tmp_path / "t.json.gz", "rt") as stream:
        events = json.load(stream)["traceEvents"]
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    named = set()
    for event in events:
        assert event["ph"] in "MXCsf"
        assert all(isinstance(event[name], int) and event[name] >= 0 for name in ("pid", "tid", "ts"))
        if event["ph"] == "X":
            assert event["dur"] >= 0
            tracks.setdefault((event["pid"], event["tid"]), []).append(
                (event["ts"], event["ts"] + event["dur"])
            )
        if event["ph"] == "M" and event["name"] == "thread_name":
            named.add((event["pid"], event["tid"]))
    assert set(tracks) <= named
    for slices in tracks.values():
        slices.sort()
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(slices))
    ends = Counter(_arrow_ends(events, tracks))
    number = record.rest["metrics"]["preemptions"]
    assert number > 0
    assert ends == {(at, phase): 1 for at in range(number) for phase in "sf"}


def _arrow_ends(
    events: list[dict[str, Any]], tracks: dict[tuple[int, int], list[tuple[int, int]]]
) -> Iterator[tuple[int, str]]:
    for event in events:
        if event["ph"] in "sf":
            inside = tracks[event["pid"], event["tid"]]
            assert any(start <= event["ts"] <= end for start, end in inside)
            assert event["ph"] == "s" or event["bp"] == "e"
            yield event["id"], event["ph"]


def test_the_trace_holds_all_running_time(tmp_path: Path, records: dict[str, Path]) -> None:
    """In microseconds."""
    record = exported(records["requeue"], "perfetto", tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    drawn = sum(event["dur"] for event in events if event.get("cat") == "running")
    ran = sum(
        e["end"] - e["start"] for _, job in record.jobs() for e in job["intervals"] if e["state"] == "RUNNING"
    )
    assert drawn == round(ran * 1e6)


# ----------------------------------------------------------------------------------------- evalys
_READ = """
import json, sys
from evalys.jobset import JobSet
found = JobSet.from_csv(sys.argv[1])
frame = found.df
print(json.dumps({
    "rows": len(frame),
    "done": int(frame.success.sum()),
    "core_seconds": float((frame.execution_time * frame.proc_alloc).sum()),
    "most": float(found.utilisation.load.max()),
    "procs": found.MaxProcs,
}))
"""


@pytest.mark.slow
def test_evalys_reads_what_is_for_it(tmp_path: Path, records: dict[str, Path]) -> None:
    """In an environment of its own, for it needs older packages: rows, core-seconds, and never more cores than are."""
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    installed = subprocess.run(
        [*pip, "--no-compile", "evalys==4.0.7", "setuptools<81"], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        pytest.skip(f"evalys cannot be installed: {installed.stderr.strip()[-200:]}")
    record = exported(records["requeue"], "evalys", tmp_path / "x.csv")
    done = subprocess.run(
        [python, "-c", _READ, tmp_path / "x.csv"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    jobs = dict(record.jobs())
    assert read["rows"] == sum(
        len({e["restart"] for e in job["intervals"] if "nodes" in e}) for job in jobs.values()
    )
    assert read["done"] == sum(job["final_state"] == "COMPLETED" for job in jobs.values())
    metrics = record.rest["metrics"]
    assert read["core_seconds"] == pytest.approx(metrics["utilisation"] * metrics["makespan"] * 100, rel=1e-3)
    assert 0 < read["most"] <= 100
    assert read["procs"] <= 100


# ----------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(("--to", "perfeto", "-o", "x"), "'perfeto' is not one of", id="a format"),
        pytest.param(("--to", "csv", "-o", "-"), "allowed: a folder", id="tables to standard output"),
        pytest.param(("--to", "csv", "-o", "file"), "cannot be written", id="a file as a folder"),
        pytest.param(("--to", "parquet", "-o", "file/x"), "cannot be written", id="a folder in a file"),
        pytest.param(("--to", "sacct", "-o", "no/such/x"), "cannot be written", id="no such folder"),
        pytest.param(("--to", "perfetto", "-o", "no/such/x.gz"), "cannot be written", id="no such folder, compressed"),
        pytest.param(("--to", "sacct", "-o", "run.json"), "is the input", id="the record itself"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told(
    tmp_path: Path,
    records: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...],
    told: str,
) -> None:
    """In one line, and nothing is lost."""
    monkeypatch.chdir(tmp_path)
    content = records["requeue"].read_text()
    Path("run.json").write_text(content)
    Path("file").write_text("x")
    done = run("export", "run.json", *given)
    assert done.exit_code == 2
    assert told in done.stderr
    assert Path("run.json").read_text() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "run.json"]
