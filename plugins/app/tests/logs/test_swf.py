"""SWF: the archive's rules, MetaCentrum's columns, and files that are none."""

from __future__ import annotations

import collections
import gzip
import os
import statistics
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makeway.config import Config, parse_toml
from makeway.errors import ConfigError
from makeway.model import Exclusive, JobSpec
from makeway.readers.api import ReadOptions, Workload
from makeway_app.readers.open import open_workload
from makeway_logs import swf
from makeway_logs.swf import SwfReader

DATA = Path(__file__).parent / "data"
TRACES = Path(os.environ.get("MAKEWAY_WORKLOADS") or Path(__file__).parents[5] / "shared" / "workloads")
SP2 = '[[node]]\nname = "n[1-100]"'
EIGHT = SP2 + "\ncpus = 8"
TWO_CLUSTERS = """
    [workload]
    unknown_partition = "default"
    [[node]]
    name = "zewura[1-20]"
    cpus = 80
    memory_mb = 517000
    features = ["cl_zewura"]
    [[node]]
    name = "zegox[1-48]"
    cpus = 12
    memory_mb = 91000
    features = ["cl_zegox"]
"""


def trace(name: str) -> Path:
    """Return a whole trace, or skip."""
    if not (TRACES / name).exists():
        pytest.skip(f"{name} is not there; set MAKEWAY_WORKLOADS to the directory of the traces")
    return TRACES / name


def config(text: str = SP2) -> Config:
    return parse_toml(text + '\n[[partition]]\nname = "all"\ndefault = true\n', "test")


def load(path: Path, text: str = SP2) -> tuple[Workload, list[JobSpec]]:
    """Read the whole of `path`."""
    workload = open_workload(path, ReadOptions(config=config(text)), "swf")
    return workload, list(workload.jobs)


def row(**columns: object) -> str:
    """Return a data line: job 1 at 0, one processor for 10 s, but for columns c1 to c18."""
    values = dict.fromkeys((f"c{at}" for at in range(1, 19)), "-1")
    values |= {"c1": "1", "c2": "0", "c4": "10", "c8": "1", "c9": "60", "c11": "1"}
    values |= {key: str(value) for key, value in columns.items()}
    return " ".join(values.values())


def read(tmp_path: Path, *lines: str, text: str = SP2) -> tuple[Workload, list[JobSpec]]:
    path = tmp_path / "t.swf"
    path.write_text("\n".join([*lines, row(c1=999999, c2=10**9)]) + "\n")
    workload, jobs = load(path, text)
    return workload, jobs[:-1]


# ------------------------------------------------------------------------------ at a glance
ODD = [
    "-1",
    "0",
    "-5",
    "1.5",
    "1e3",
    "1e12",
    "1e20",
    "nan",
    "inf",
    "abc",
    "1_0",
    "07",
    "+7",
    "\N{SUPERSCRIPT TWO}",
]
ODD += ["10000000", "10000001", "2", "5", "16"]
COLUMN = st.tuples(st.integers(1, 18), st.sampled_from(ODD))


@given(st.lists(st.lists(COLUMN, max_size=2), min_size=1, max_size=6))
def test_a_glance_finds_what_a_close_look_does(changes: list[list[tuple[int, str]]]) -> None:
    """The same jobs, and the same reasons against rows; numbers are drawn from good and bad ones."""
    lines = [
        row(**{"c1": at, "c2": 10 * at, **{f"c{column}": word for column, word in some}})
        for at, some in enumerate(changes, 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.swf"
        path.write_text("\n".join([*lines, row(c1=999999, c2=10**9)]) + "\n")
        quick, quick_jobs = load(path, EIGHT)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(swf._Glance, "at", lambda *_: None)
            close, close_jobs = load(path, EIGHT)
    assert quick_jobs == close_jobs
    assert (quick.rejected, quick.notes, quick.start_wall) == (close.rejected, close.notes, close.start_wall)


def test_a_wait_that_is_no_number(tmp_path: Path) -> None:
    """A superscript is a digit, but no number."""
    _, (job,) = read(tmp_path, row(c3="\N{SUPERSCRIPT TWO}"))
    assert job.attributes == {"status": "1"}


# ------------------------------------------------------------------------------- real excerpts
def test_kth_rows_become_jobs() -> None:
    """Job 15, as it stands in the file; times from its submission on."""
    workload, jobs = load(DATA / "kth-excerpt.swf")
    first, second = jobs[:2]
    assert (first.id, first.user, first.group, first.run_time) == ("15", "12", "12", 3477.0)
    assert (first.time_limit, first.min_nodes, first.max_nodes) == (53940.0, 4, 4)
    assert (first.tasks, first.partitions, first.submit_at) == (None, (), 0.0)
    assert first.attributes == {"wait": 192180.0, "status": "1"}
    assert first.source == "kth-excerpt.swf:25"
    assert (second.id, second.submit_at, second.min_nodes) == ("16", 600022 - 599850, 25)
    assert len(jobs) == 39
    assert workload.start_wall == first.wall_submit == 843480031 + 599850


def test_kth_row_without_size_is_listed() -> None:
    workload, _ = load(DATA / "kth-excerpt.swf")
    assert workload.rejected_count == 1
    assert workload.rejected[0].line == 64
    assert workload.rejected[0].reason == "no size (columns 8 and 5: -1, -1)"


def test_header() -> None:
    """Continued lines belong to the key before."""
    header = load(DATA / "kth-excerpt.swf")[0].header
    assert (header["MaxNodes"], header["MaxProcs"], header["MaxRecords"]) == ("100", "100", "28476")
    assert header["UnixStartTime"] == "843480031"
    assert header["Information"].splitlines()[1].startswith("http://www.cs.huji.ac.il/")


def test_metacentrum_request_gives_nodes_and_tasks() -> None:
    _, jobs = load(DATA / "wagap-excerpt.swf", TWO_CLUSTERS)
    by_id = {job.id: job for job in jobs}
    whole, many = by_id["0"], by_id["6"]
    assert (whole.min_nodes, whole.max_nodes, whole.tasks, whole.tasks_per_node) == (1, 1, 64, 64)
    assert (whole.exclusive, whole.features) == (Exclusive.NODE, "cl_zewura")
    assert whole.memory_mb_per_node == 65536
    assert (many.min_nodes, many.max_nodes, many.tasks, many.tasks_per_node) == (8, 8, 64, 8)
    assert (many.exclusive, many.memory_mb_per_node) == (None, 8192)
    assert whole.attributes["queue"] == "q_1d"
    assert whole.wall_submit == 1356996147.0
    assert many.submit_at == 1357016559 - 1356996147


def test_metacentrum_mixed_chunks_and_named_nodes() -> None:
    """``1:ppn=1+3:ppn=2`` are four nodes with seven processors."""
    _, jobs = load(DATA / "wagap-excerpt.swf", TWO_CLUSTERS)
    by_id = {job.id: job for job in jobs}
    mixed, named = by_id["17616"], by_id["3509"]
    assert (mixed.min_nodes, mixed.max_nodes, mixed.tasks) == (4, 4, 7)
    assert mixed.tasks_per_node is None
    assert mixed.memory_mb_per_cpu == -(-400 * 4 // 7)
    assert (named.min_nodes, named.tasks_per_node) == (1, 12)
    assert named.attributes["properties"] == ("zewura15.cerit-sc.cz",)


def test_metacentrum_queue_is_the_partition_where_it_exists() -> None:
    text = TWO_CLUSTERS + '[[partition]]\nname = "backfill"\n'
    _, jobs = load(DATA / "wagap-excerpt.swf", text)
    assert [job.id for job in jobs if job.partitions == ("backfill",)] == ["187", "188"]


def test_metacentrum_on_one_processor_nodes() -> None:
    """Where a node has one CPU, processors are nodes whatever the request says."""
    text = SP2 + '\n[workload]\nunknown_partition = "default"'
    _, jobs = load(DATA / "wagap-excerpt.swf", text)
    assert (jobs[0].min_nodes, jobs[0].max_nodes, jobs[0].tasks) == (64, 64, None)


# -------------------------------------------------------------------------------- whole traces
def test_whole_kth() -> None:
    """Numbers of the traces' README, which were computed without makeway."""
    workload, jobs = load(trace("KTH-SP2-1996-2.1-cln.swf.gz"))
    assert len(jobs) == 28_475
    assert [(r.line, r.reason) for r in workload.rejected] == [(27323, "no size (columns 8 and 5: -1, -1)")]
    assert workload.notes == []
    assert len({job.user for job in jobs}) == 214
    assert statistics.median(job.run_time or 0 for job in jobs) == 847
    assert sum((job.run_time or 0) > (job.time_limit or 0) for job in jobs) == 475
    assert jobs[-1].submit_at / 86400 == pytest.approx(332.9, abs=0.05)
    work = sum((job.run_time or 0) * job.min_nodes for job in jobs)
    assert work / 100 / jobs[-1].submit_at == pytest.approx(0.70, abs=0.005)
    assert sum(job.run_time == 0 for job in jobs) == 8


def test_whole_metacentrum() -> None:
    workload, jobs = load(trace("metacentrum-wagap-2013.swf.gz"), TWO_CLUSTERS)
    queues = collections.Counter(job.attributes["queue"] for job in jobs)
    assert len(jobs) == 17_898
    assert [row.line for row in workload.rejected] == [4186, 4200]
    assert queues["q_1d"] == 5301
    assert queues["q_2h"] == 4392
    assert (queues["backfill"], queues["priority_long"]) == (104, 4)
    assert max(job.tasks or 0 for job in jobs) == 256
    assert sum(job.exclusive is Exclusive.NODE for job in jobs) == 231


def test_example_is_the_beginning_of_kth() -> None:
    example = Path(__file__).parents[4] / "examples" / "kth" / "kth-sp2-1500.swf.gz"
    _, jobs = load(example)
    assert len(jobs) == 1500
    assert jobs[0].id == "15"


# --------------------------------------------------------------------------------------- rules
@pytest.mark.parametrize(
    ("columns", "nodes"),
    [
        pytest.param({"c8": 3, "c5": 9}, 3, id="column 8 counts"),
        pytest.param({"c8": -1, "c5": 9}, 9, id="column 8 unknown: column 5"),
        pytest.param({"c8": 0, "c5": 9}, 9, id="column 8 zero: column 5"),
    ],
)
def test_size(tmp_path: Path, columns: dict[str, int], nodes: int) -> None:
    _, (job,) = read(tmp_path, row(**columns))
    assert job.min_nodes == job.max_nodes == nodes


@pytest.mark.parametrize(
    ("columns", "limit"),
    [
        pytest.param({"c4": 10, "c9": 60}, 60, id="column 9 counts"),
        pytest.param({"c4": 10, "c9": -1}, 10, id="unknown: the run time"),
        pytest.param({"c4": 0, "c9": 60}, 60, id="a job of no length stays"),
    ],
)
def test_estimate(tmp_path: Path, columns: dict[str, int], limit: float) -> None:
    _, (job,) = read(tmp_path, row(**columns))
    assert job.time_limit == limit


BIG_NODES = '[[node]]\nname = "n[1-4]"\ncpus = 8\nmemory_mb = 1000'


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        pytest.param(BIG_NODES, 20, (3, None, 20), id="as few nodes as hold it"),
        pytest.param(BIG_NODES + "\n[workload]\ncpus_per_node = 1", 20, (20, 20, None), id="one"),
        pytest.param(BIG_NODES + "\n[workload]\ncpus_per_node = 4", 20, (5, None, 20), id="four"),
        pytest.param(SP2 + "\n[workload]\ncpus_per_node = 4", 20, (5, 5, None), id="scaled down"),
    ],
)
def test_processors_become_nodes(
    tmp_path: Path, text: str, size: int, expected: tuple[int, int | None, int | None]
) -> None:
    _, (job,) = read(tmp_path, row(c8=size), text=text)
    assert (job.min_nodes, job.max_nodes, job.tasks) == expected


def test_memory_is_kb_per_processor(tmp_path: Path) -> None:
    _, (job,) = read(tmp_path, row(c10=2049), text=BIG_NODES)
    assert (job.memory_mb_per_cpu, job.memory_mb_per_node) == (3, None)


def test_memory_unit_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "t.swf"
    path.write_text(row(c8=2, c10=2**20 * 6))
    reader = SwfReader(memory_unit="bytes_per_node")
    (job,) = reader.read(path, ReadOptions(config=config(BIG_NODES))).jobs
    assert job.memory_mb_per_cpu == 3


def test_memory_is_left_out_where_nodes_do_not_say_theirs(tmp_path: Path) -> None:
    _, (job,) = read(tmp_path, row(c10=2048))
    assert job.memory_mb_per_cpu is None


def test_queue_number_is_a_partition_only_if_one_is_called_so(tmp_path: Path) -> None:
    text = SP2 + '\n[[partition]]\nname = "7"'
    _, jobs = read(tmp_path, row(c15=7), row(c1=2, c15=8), text=text)
    assert [job.partitions for job in jobs] == [("7",), ()]
    assert [job.attributes["queue"] for job in jobs] == ["7", "8"]


def test_preceding_job_is_kept_but_not_waited_for(tmp_path: Path) -> None:
    _, jobs = read(tmp_path, row(), row(c1=2, c17=1))
    assert jobs[1].attributes["preceding_job"] == "1"
    assert jobs[1].depends_on == ()


def test_lines_on_parts_of_a_job_are_left_out(tmp_path: Path) -> None:
    workload, jobs = read(tmp_path, row(), row(c11=2), row(c11=3))
    assert [job.id for job in jobs] == ["1"]
    assert workload.rejected == []
    assert "first: line 2, status 2" in workload.notes[0]


def test_rows_out_of_order_are_sorted(tmp_path: Path) -> None:
    workload, jobs = read(tmp_path, row(c2=50), row(c1=2, c2=30), row(c1=3, c2=50))
    assert [(job.id, job.submit_at) for job in jobs] == [("2", 0), ("1", 20), ("3", 20)]
    assert "2 lines moved" in workload.notes[0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(row(c4=-1), "run time is -1; allowed: 0 or more", id="never ran"),
        pytest.param(row(c8=0, c5=0), "no size (columns 8 and 5: 0, 0)", id="no size"),
        pytest.param("1 2 3", "3 columns; allowed: 18 or more", id="too few columns"),
        pytest.param(row(c4="NaN"), "run time (column 4): got 'NaN'", id="NaN"),
        pytest.param(row(c4="inf"), "run time (column 4): got 'inf'", id="infinite"),
        pytest.param(row(c9="1e300"), "requested time (column 9): got '1e300'", id="1e300"),
        pytest.param(row(c8=10**30), "requested processors (column 8): got '1000", id="10**30"),
        pytest.param(row(c8=10**9), "processors: got 1000000000", id="too many processors"),
        pytest.param(row(c8="9" * 5000), "requested processors (column 8)", id="5000 digits"),
        pytest.param(row(c8="1_0"), "requested processors (column 8): got '1_0'", id="1_0"),
        pytest.param(row(c8="1.5"), "processors: got 1.5", id="half a processor"),
        pytest.param(row(c2=-5), "submit time is -5; allowed: 0 or more", id="before the start"),
        pytest.param(row(c1="x"), "job number: got 'x'", id="no number"),
        pytest.param(row(c10="\x1b[2J"), "requested memory (column 10)", id="control characters"),
    ],
)
def test_bad_rows_are_counted(tmp_path: Path, line: str, reason: str) -> None:
    workload, jobs = read(tmp_path, row(c1=7), line)
    assert [job.id for job in jobs] == ["7"]
    assert workload.rejected_count == 1
    assert workload.rejected[0].line == 2
    assert workload.rejected[0].reason.startswith(reason)
    assert workload.rejected[0].reason.isprintable()


def test_second_of_two_equal_ids_is_rejected(tmp_path: Path) -> None:
    workload, jobs = read(tmp_path, row(c8=1), row(c2=5, c8=2))
    assert [job.min_nodes for job in jobs] == [1]
    assert [(r.line, r.reason) for r in workload.rejected] == [(2, "job '1' was there before")]


def test_only_so_many_jobs(tmp_path: Path) -> None:
    path = DATA / "kth-excerpt.swf"
    workload = open_workload(path, ReadOptions(config=config(), limit=3))
    assert [job.id for job in workload.jobs] == ["15", "16", "17"]


def test_progress_counts_bytes_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "t.swf.gz"
    lines = "\n".join(row(c1=at) for at in range(1, 5001))
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))
    told: list[int] = []
    list(open_workload(path, ReadOptions(config=config(), progress=told.append)).jobs)
    assert told == sorted(told)
    assert len(told) > 1
    assert told[-1] == path.stat().st_size


# --------------------------------------------------------------------------- what is no trace
def test_truncated_gzip_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "t.swf.gz"
    packed = gzip.compress((DATA / "kth-excerpt.swf").read_bytes(), mtime=0)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ConfigError, match=r"t\.swf\.gz:\d+: the compressed data is damaged or breaks"):
        load(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "no jobs, only a header", id="empty"),
        pytest.param(b"; MaxNodes: 1\n;\n", "no jobs, only a header", id="header only"),
        pytest.param(b"\x1f\x8b", "damaged or breaks off", id="two bytes of gzip"),
        pytest.param(b"\xff\xfe;\0 \0", "no job that can be used", id="UTF-16"),
        pytest.param(b"1 " * 600_000, "a line of more than", id="a line without end"),
    ],
)
def test_no_trace_at_all(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "t.swf"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=message):
        load(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "t.swf")
    with pytest.raises(ConfigError, match="not a regular file"):
        load(tmp_path)


def survive(data: bytes) -> None:
    """Read `data`: either one error, or jobs in order and without doubles."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t.swf"
        path.write_bytes(data)
        try:
            _, jobs = load(path)
        except ConfigError:
            return
    submits = [job.submit_at for job in jobs]
    assert submits == sorted(submits)
    assert len({job.id for job in jobs}) == len(jobs)
    assert all(job.min_nodes >= 1 and (job.run_time or 0) >= 0 for job in jobs)


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    survive(data)


@given(st.binary(max_size=60))
def test_any_damage_to_gzip(data: bytes) -> None:
    packed = bytearray(gzip.compress((DATA / "kth-excerpt.swf").read_bytes(), mtime=0))
    packed[20 : 20 + len(data)] = data
    survive(bytes(packed))


WORDS = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "-1",
        "5",
        "100",
        "1e300",
        "nan",
        "-0",
        "1.5",
        "x",
        ";",
        "{1}",
        "2:ppn=1",
        "é",
        "1_0",
    ]
)


@given(st.lists(st.lists(WORDS, min_size=16, max_size=22), min_size=1, max_size=12))
def test_any_columns(rows: list[list[str]]) -> None:
    survive("\n".join(" ".join(columns) for columns in rows).encode())
