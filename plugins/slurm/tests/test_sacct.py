"""Slurm's accounting: with a header, without one, and what is none."""

from __future__ import annotations

import collections
import contextlib
import gzip
import os
import statistics
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from makeway.config import Config, parse_toml
from makeway.errors import ConfigError
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions, Workload
from makeway_app.readers.open import open_workload
from makeway_slurm.readers.sacct_rows import Layout
from makeway_testing import one_node, replay_table

DATA = Path(__file__).parent / "data"
TRACES = Path(os.environ.get("MAKEWAY_WORKLOADS") or Path(__file__).parents[4] / "shared" / "workloads")
NODES = '[[node]]\nname = "n[1-100]"\ncpus = 24\nmemory_mb = 128000'
HOUR = 3600.0
DAY = 24 * HOUR


def config(text: str = NODES) -> Config:
    table = '\n[workload]\nunknown_partition = "default"\n'
    return parse_toml(text + table + '[[partition]]\nname = "all"\ndefault = true\n', "test")


def load(path: Path, text: str = NODES) -> tuple[Workload, list[JobSpec]]:
    workload = open_workload(path, ReadOptions(config=config(text)), "sacct")
    return workload, list(workload.jobs)


HEADER = "JobID|Submit|Elapsed|NNodes"


def read(tmp_path: Path, *lines: str, header: str = HEADER) -> tuple[Workload, list[JobSpec]]:
    path = tmp_path / "t.sacct"
    path.write_text("\n".join([header, *lines]) + "\n")
    return load(path)


def one(tmp_path: Path, **columns: str) -> tuple[Workload, JobSpec]:
    """Read one row: job 5 of one node, one hour, but for `columns`."""
    values = {"JobID": "5", "Submit": "2024-03-01T00:00:00", "Elapsed": "01:00:00", "NNodes": "1"}
    values |= columns
    workload, jobs = read(tmp_path, "|".join(values.values()), header="|".join(values))
    assert len(jobs) == 1
    return workload, jobs[0]


# ---------------------------------------------------------------------------------- real rows
def test_rows_of_the_dump_become_jobs() -> None:
    """Job 1004648, as it stands in the file; it was preempted after 26 minutes."""
    workload, jobs = load(DATA / "pozidriv-excerpt.sacct")
    job = next(job for job in jobs if job.id == "1004648")
    assert (job.user, job.account, job.run_time) == ("reebu", "calla", 1562.0)
    assert (job.time_limit, job.min_nodes, job.max_nodes, job.tasks) == (3 * DAY, 1, 1, 8)
    assert job.memory_mb_per_cpu == 2800
    assert job.wall_submit == 1483061205.0  # date -u -d 2016-12-30T01:26:45 +%s
    assert job.attributes["truncated"] is True
    assert (job.attributes["wait"], job.attributes["nodes"]) == (104.0, "cpn-d12-08")
    assert (len(jobs), workload.rejected_count) == (26, 0)


def test_first_submission_is_the_start() -> None:
    """The dump is ordered by the end; job 977669 was submitted first."""
    workload, jobs = load(DATA / "pozidriv-excerpt.sacct")
    assert (jobs[0].id, jobs[0].submit_at) == ("977669", 0.0)
    assert workload.start_wall == 1482356614.0  # date -u -d 2016-12-21T21:43:34 +%s
    assert [job.submit_at for job in jobs] == sorted(job.submit_at for job in jobs)


def test_details_tell_who_was_preempted() -> None:
    workload, _ = load(DATA / "pozidriv-excerpt.sacct")
    assert list(workload.details) == ["1004648", "1004649", "1004748", "1005265", "1005321"]
    start = 1483061309.0 - 1482356614.0  # date -u -d 2016-12-30T01:28:29 +%s
    assert workload.details["1004648"] == {
        "state": "PREEMPTED",
        "start": start,
        "end": start + 1562,
        "nodes": "cpn-d12-08",
    }


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param("977669", (48000, None), id="48000Mn: per node"),
        pytest.param("1002173", (64000, None), id="62.50Gn: per node"),
        pytest.param("995612", (None, 4000), id="2147487648Mn: 4000 per CPU"),
        pytest.param("1009523", (None, 6400), id="2147490048Mn: confirmed by 500G for 80"),
    ],
)
def test_memory_of_the_dump(job: str, expected: tuple[int | None, int | None]) -> None:
    _, jobs = load(DATA / "pozidriv-excerpt.sacct")
    spec = next(spec for spec in jobs if spec.id == job)
    assert (spec.memory_mb_per_node, spec.memory_mb_per_cpu) == expected


def test_sizes_limits_and_ends_of_the_dump() -> None:
    _, jobs = load(DATA / "pozidriv-excerpt.sacct")
    by_id = {job.id: job for job in jobs}
    wide, never = by_id["995584"], by_id["990246"]
    assert (wide.min_nodes, wide.max_nodes, wide.tasks) == (4, 4, 64)
    assert wide.attributes["nodes"] == "cpn-f15-[06,08,11-12]"
    assert (never.run_time, never.time_limit, never.begin_at is None) == (0.0, None, False)
    assert never.attributes["state"] == "CANCELLED"
    assert never.attributes["never_started"] is True
    assert by_id["990220"].run_time == 3 * DAY + 23


def test_whole_dump() -> None:
    """Numbers of the traces' README, which were computed without makeway."""
    path = TRACES / "xdmod-pozidriv.sacct.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there; set MAKEWAY_WORKLOADS to the traces' directory")
    workload, jobs = load(path)
    assert (len(jobs), workload.rejected_count) == (11_704, 0)
    states = collections.Counter(job.attributes["state"] for job in jobs)
    assert states == {
        "COMPLETED": 10_134,
        "FAILED": 1_007,
        "CANCELLED": 468,
        "PREEMPTED": 86,
        "TIMEOUT": 9,
    }
    assert sum(job.run_time == 0 for job in jobs) == 1_031
    assert len({job.user for job in jobs}) == 18
    assert len({job.account for job in jobs}) == 7
    assert len({job.attributes["queue"] for job in jobs}) == 7
    assert len({job.attributes["qos"] for job in jobs}) == 8
    lost = [job for job in jobs if job.id in workload.details]
    runs = [job.run_time or 0 for job in lost]
    assert (len(lost), min(runs), max(runs), statistics.median_high(runs)) == (86, 120, 2660, 614)
    assert {job.attributes["qos"] for job in lost} == {"banana-cream"}
    assert round(sum((job.run_time or 0) * (job.tasks or 0) for job in lost) / HOUR) == 157


# --------------------------------------------------------------------------------------- rules
def test_any_columns_in_any_order(tmp_path: Path) -> None:
    header = "State|User|NCPUS|Elapsed|JobIDRaw|Submit|Comment"
    line = "COMPLETED|ann|4|00:10:00|7|2024-03-01T00:00:00|hello"
    _, (job,) = read(tmp_path, line, header=header)
    assert (job.id, job.user, job.tasks, job.min_nodes, job.run_time) == ("7", "ann", 4, 1, 600.0)


def test_trailing_separator_of_parsable_output(tmp_path: Path) -> None:
    _, jobs = read(tmp_path, "7|2024-03-01T00:00:00|00:10:00|2|", header=HEADER + "|")
    assert jobs[0].min_nodes == 2


def test_steps_are_left_out_and_counted(tmp_path: Path) -> None:
    rest = "2024-03-01T00:00:00|00:10:00|1"
    ids = ["5", "5.batch", "5.0", "5.extern", "6_3", "6_3.batch", "7+0", "7+1", "7+1.0"]
    workload, jobs = read(tmp_path, *(f"{job}|{rest}" for job in ids))
    assert [job.id for job in jobs] == ["5", "6_3", "7+0", "7+1"]
    assert workload.rejected == []
    assert workload.notes[0] == "5 job steps left out"
    assert [(job.het_id, job.het_offset) for job in jobs[2:]] == [("7", 0), ("7", 1)]


def test_part_of_a_heterogeneous_job_alone_is_a_job(tmp_path: Path) -> None:
    workload, job = one(tmp_path, JobID="12+1")
    assert (job.id, job.het_id) == ("12+1", None)
    assert "12" in workload.notes[0]


@pytest.mark.parametrize(
    ("columns", "seconds"),
    [
        pytest.param({"Elapsed": "2-03:04:05"}, 2 * DAY + 3 * HOUR + 245, id="D-HH:MM:SS"),
        pytest.param({"Elapsed": "03:04:05"}, 3 * HOUR + 245, id="HH:MM:SS"),
        pytest.param({"Elapsed": "04:05"}, 245, id="MM:SS"),
        pytest.param({"Elapsed": "", "ElapsedRaw": "90"}, 90, id="raw seconds"),
        pytest.param(
            {"Elapsed": "", "Start": "2024-03-01T00:00:10", "End": "2024-03-01T00:01:00"},
            50,
            id="from start to end",
        ),
    ],
)
def test_run_time(tmp_path: Path, columns: dict[str, str], seconds: float) -> None:
    assert one(tmp_path, **columns)[1].run_time == seconds


@pytest.mark.parametrize(
    ("columns", "limit"),
    [
        pytest.param({"Timelimit": "1-00:00:00"}, DAY, id="D-HH:MM:SS"),
        pytest.param({"Timelimit": "Partition_Limit"}, None, id="Partition_Limit"),
        pytest.param({"Timelimit": "UNLIMITED"}, None, id="UNLIMITED"),
        pytest.param({"TimelimitRaw": "30"}, 1800, id="raw minutes"),
        pytest.param({"Timelimit": "soon"}, None, id="no time"),
        pytest.param({"Timelimit": ""}, None, id="empty"),
    ],
)
def test_time_limit(tmp_path: Path, columns: dict[str, str], limit: float | None) -> None:
    assert one(tmp_path, **columns)[1].time_limit == limit


@pytest.mark.parametrize(
    ("columns", "per_node", "per_cpu"),
    [
        pytest.param({"ReqMem": "4000Mc"}, None, 4000, id="per CPU"),
        pytest.param({"ReqMem": "4Gn"}, 4096, None, id="per node"),
        pytest.param({"ReqMem": "0n"}, 0, None, id="0n: all memory of each node"),
        pytest.param({"ReqMem": "4G", "NNodes": "2"}, 2048, None, id="newer Slurm: the total"),
        pytest.param({"ReqTRES": "cpu=2,mem=3G,node=1"}, 3072, None, id="from TRES"),
        pytest.param({"ReqMem": "2147486448Mn"}, None, None, id="overflowed, unconfirmed"),
        pytest.param({"ReqMem": "lots"}, None, None, id="no size"),
        pytest.param({"ReqMem": "9" * 17 + "Tc"}, None, None, id="too much"),
    ],
)
def test_memory(tmp_path: Path, columns: dict[str, str], per_node: int | None, per_cpu: int | None) -> None:
    _, job = one(tmp_path, **columns)
    assert (job.memory_mb_per_node, job.memory_mb_per_cpu) == (per_node, per_cpu)


def test_ignored_memory_is_noted(tmp_path: Path) -> None:
    workload, _ = one(tmp_path, ReqMem="2147486448Mn")
    assert workload.notes == ["reqmem overflowed and is left out (first: line 2, job 5)"]


@pytest.mark.parametrize(
    ("tres", "per_node", "total"),
    [
        pytest.param("gres/gpu=4,node=2", {"gpu": 2}, {}, id="divides: per node"),
        pytest.param("gres/gpu=3,node=2", {}, {"gpu": 3}, id="does not: over the job"),
        pytest.param("gres/gpu=2,gres/gpu:a100=2,node=1", {"gpu": 2, "gpu:a100": 2}, {}, id="the same two"),
        pytest.param("gres/gpu:a100=2,node=1", {"gpu": 2, "gpu:a100": 2}, {}, id="typed alone"),
        pytest.param(
            "gres/gpu:a100=2,gres/gpu:v100=1,node=1",
            {"gpu": 3, "gpu:a100": 2, "gpu:v100": 1},
            {},
            id="two types",
        ),
        pytest.param(
            "gres/gpu=4,gres/gpu:a100=1,node=2", {"gpu": 2}, {"gpu:a100": 1}, id="one of four typed"
        ),
        pytest.param("gres/gpuutil=50,gres/gpumem=2G,node=1", {}, {}, id="measurements: none"),
    ],
)
def test_gres(tmp_path: Path, tres: str, per_node: dict[str, int], total: dict[str, int]) -> None:
    _, job = one(tmp_path, ReqTRES=tres)
    assert (dict(job.gres), dict(job.gres_total)) == (per_node, total)


def test_typed_gpus_are_given_once(tmp_path: Path) -> None:
    """A node of four GPUs of one type: two jobs that ask for a type, or for any, get two each, a third one waits."""
    _, typed = one(tmp_path, ReqTRES="cpu=1,gres/gpu=2,gres/gpu:a100=2,node=1")
    _, untyped = one(tmp_path, ReqTRES="cpu=1,gres/gpu=2,node=1")
    specs = [
        JobSpec(id=name, submit_at=at, run_time=10, gres=spec.gres, gres_total=spec.gres_total)
        for at, (name, spec) in enumerate((("a", typed), ("b", untyped), ("c", untyped)))
    ]
    site = {"select": "select/cons_tres", "select_parameters": "CR_Core"}
    run = replay_table(specs, cluster=one_node(cpus=8, gres={"gpu": 4, "gpu:a100": 4}), config=site)
    assert [run.starts(name) for name in "abc"] == [(0,), (1,), (10,)]


def test_licences(tmp_path: Path) -> None:
    assert one(tmp_path, Licenses="matlab:2,ansys@db")[1].licenses == {"matlab": 2, "ansys@db": 1}
    assert one(tmp_path, AllocTRES="cpu=1,license/abaqus=3")[1].licenses == {"abaqus": 3}


def test_request_counts_rather_than_what_was_given(tmp_path: Path) -> None:
    """An exclusive job is given whole nodes."""
    _, job = one(tmp_path, NCPUS="24", ReqCPUS="3", ReqTRES="cpu=3,node=1")
    assert job.tasks == 3


def test_job_too_large_for_the_nodes_here_may_spread(tmp_path: Path) -> None:
    _, job = one(tmp_path, NCPUS="48")
    assert (job.min_nodes, job.max_nodes, job.tasks) == (1, None, 48)


def test_eligible_later_than_submitted(tmp_path: Path) -> None:
    _, job = one(tmp_path, Eligible="2024-03-01T00:05:00")
    assert job.begin_at == 300.0


def test_several_partitions_and_a_name_with_the_separator(tmp_path: Path) -> None:
    path = tmp_path / "t.sacct"
    path.write_text(
        "JobID|Partition|JobName|Submit|Elapsed|NNodes\n5|a,b|x|y|z|2024-03-01T00:00:00|01:00:00|1\n"
    )
    text = NODES + '\n[[partition]]\nname = "b"\n[[partition]]\nname = "a"'
    _, (job,) = load(path, text)
    assert (job.partitions, job.name) == (("a", "b"), "x|y|z")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("x|2024-03-01T00:00:00|00:10:00|1", "job id: got 'x'", id="no id"),
        pytest.param("|2024-03-01T00:00:00|00:10:00|1", "job id: got ''", id="empty id"),
        pytest.param("8_[1-5]|2024-03-01T00:00:00|00:00:00|1", "'8_[1-5]' stands for", id="array"),
        pytest.param("8|Unknown|00:10:00|1", "no submit time", id="unknown submit"),
        pytest.param("8|yesterday|00:10:00|1", "submit: got 'yesterday'", id="no time"),
        pytest.param("8|0001-01-01T00:00:00|00:10:00|1", "submit: got '0001", id="year 1"),
        pytest.param("8|2024-03-01T00:00:00|long|1", "elapsed: got 'long'", id="no elapsed"),
        pytest.param("8|2024-03-01T00:00:00|NaN|1", "elapsed: got 'NaN'", id="NaN"),
        pytest.param("8|2024-03-01T00:00:00|-1:00:00|1", "elapsed: got '-1", id="negative"),
        pytest.param("8|2024-03-01T00:00:00|999999999-00:00:00|1", "elapsed", id="too long"),
        pytest.param("8|2024-03-01T00:00:00||1", "no run time", id="nothing on the run"),
        pytest.param("8|2024-03-01T00:00:00", "2 fields; allowed: 4", id="too few"),
        pytest.param("8|2024-03-01T00:00:00|00:10:00|1|x", "5 fields; allowed: 4", id="too many"),
        pytest.param(
            "7|2024-03-01T00:00:00|00:10:00|1", "job '7' was there before: line 2 has the same", id="double"
        ),
    ],
)
def test_bad_rows_are_counted(tmp_path: Path, line: str, reason: str) -> None:
    workload, jobs = read(tmp_path, "7|2024-03-01T00:00:00|00:10:00|1", line)
    assert [job.id for job in jobs] == ["7"]
    assert workload.rejected_count == 1
    assert workload.rejected[0].line == 3
    assert workload.rejected[0].reason.startswith(reason)


def test_pending_job_is_rejected(tmp_path: Path) -> None:
    workload, _ = read(
        tmp_path,
        "7|2024-03-01T00:00:00|00:10:00|1|COMPLETED",
        "8|2024-03-01T00:00:00|00:00:00|1|PENDING",
        header=HEADER + "|State",
    )
    assert workload.rejected[0].reason == "state PENDING: how long it runs is not known"


def test_bytes_that_are_not_utf8_do_not_lose_a_row(tmp_path: Path) -> None:
    path = tmp_path / "t.sacct"
    header = b"JobID|Submit|Elapsed|NNodes|JobName\n"
    path.write_bytes(header + b"5|2024-03-01T00:00:00|01:00:00|1|caf\xe9\x1b[2J\n")
    _, (job,) = load(path)
    assert job.name == "caf\ufffd\ufffd[2J"


def test_a_misspelt_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="no column gives a submit time; allowed: submit; nearest: 'sumbit'"
    ):
        read(tmp_path, "5|1|1|1", header="JobID|Sumbit|Elapsed|NNodes")


def test_missing_columns_are_all_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, "5|ann", header="JobID|User|State")
    assert [problem.message for problem in caught.value.problems] == [
        "no column gives a submit time; allowed: submit",
        "no column gives a run time; allowed: elapsed, elapsedraw, end",
        "no column gives a size; allowed: nnodes, ncpus, alloccpus, reqcpus, reqnodes, reqtres, alloctres",
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(HEADER.encode(), "only a header", id="header only"),
        pytest.param(b"hello\n", "got 'hello'; allowed: the output of 'sacct -P'", id="no sacct"),
        pytest.param(gzip.compress(HEADER.encode())[:-12], "breaks off", id="truncated gzip"),
        pytest.param(b"JobID|JobID|Submit|Elapsed|NNodes\n", "there twice", id="column twice"),
    ],
)
def test_no_accounting_at_all(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "t.sacct"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=message):
        load(path)


def survive(data: bytes) -> None:
    """Read `data`: either one error, or jobs in order and without doubles."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t.sacct"
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


FIELDS = [
    *("JobID", "Submit", "Elapsed", "NNodes", "ReqTRES", "ReqMem", "Timelimit", "Licenses"),
    *("State", "NCPUS", "Start", "Eligible", "End", "NodeList", "JobName", "Partition"),
]
VALUES = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [
            *("1", "2", "3_1", "4+0", "4+1", "", "Unknown", "2024-01-01T00:00:00", "00:00:01"),
            *("1-00:00:00", "mem=1G,cpu=2", "gres/gpu=1", "9999999999", "1e300", "NaN", "-1"),
            *("PREEMPTED", "PENDING", "2147486448Mn", "1" * 40, "9999-12-31T23:59:59", "a:1"),
            *("2024-01-01T00:00:00+01:00", "1700000000", "UNLIMITED", "RUNNING"),
        ]
    ),
)
ROWS = st.fixed_dictionaries(dict.fromkeys(FIELDS, VALUES))


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_any_values(rows: list[dict[str, str]]) -> None:
    lines = ["|".join(FIELDS), *("|".join(row.values()) for row in rows)]
    survive("\n".join(lines).encode("utf-8", "replace"))


# --------------------------------------------------------------------------- telling it from others
def test_content_tells_the_format(tmp_path: Path) -> None:
    """Neither the name nor compression nor a missing header matters."""
    path = tmp_path / "workload"
    path.write_bytes(gzip.compress((DATA / "pozidriv-excerpt.sacct").read_bytes()))
    by_content = [spec.run_time for spec in open_workload(path, ReadOptions(config=config())).jobs]
    assert by_content == [spec.run_time for spec in load(path)[1]]


def test_content_beats_the_name(tmp_path: Path) -> None:
    """A file of `sacct -P` may be called like a trace of another kind."""
    path = tmp_path / "wrong.swf"
    path.write_text("User|JobID|Submit|Elapsed|NNodes\na|5|2024-01-01|00:08|1")
    (spec,) = open_workload(path, ReadOptions(config=config())).jobs
    assert spec.run_time == 8


# -------------------------------------------------------------------- text that holds separators
DOCUMENTED = (
    "JobID|User|Account|Partition|QOS|Submit|Eligible|Start|End|Elapsed|Timelimit|NNodes|NCPUS|ReqMem|State"
)
DAY_ONE = "2024-03-01T"


def documented(job: int, *, user: str = "ann", state: str = "COMPLETED") -> str:
    """Return a row of the documented columns: a job of one hour on two nodes."""
    times = "|".join(
        f"{DAY_ONE}{hour}" for hour in (f"00:00:{job:02}", f"00:00:{job:02}", "01:00:00", "02:00:00")
    )
    return f"{job}|{user}|acc|all|normal|{times}|01:00:00|02:00:00|2|8|4G|{state}"


TYPED = [
    pytest.param('sbatch --wrap="zcat a | sort | uniq"', id="pipes"),
    pytest.param('sbatch --wrap="a || b"', id="two pipes in a row"),
    pytest.param("squeue -o %i|JobID|%u", id="a word like a heading"),
    pytest.param('sbatch --wrap="line one\nline two"', id="a line end"),
    pytest.param("sbatch <<EOF\n#!/bin/sh\n\necho 7|wc\nEOF", id="a script, with an empty line and a pipe"),
    pytest.param('sbatch --wrap="\n17|bob\n"', id="a line that begins like a row"),
    pytest.param("|", id="a pipe alone"),
    pytest.param("", id="nothing"),
]


@pytest.mark.parametrize("text", TYPED)
@pytest.mark.parametrize("place", ["in front", "in the middle", "at the end", "beside a job name"])
def test_rows_are_recovered_where_the_columns_allow_it(tmp_path: Path, text: str, place: str) -> None:
    """The columns around SubmitLine say where its text begins and ends; the rows beside it are whole."""
    heads, rows = DOCUMENTED.split("|"), [documented(job).split("|") for job in (1, 2, 3)]
    at = {"in front": 1, "in the middle": 9, "at the end": len(heads), "beside a job name": len(heads)}[place]
    heads[at:at] = ["SubmitLine"] + (["JobName"] if place == "beside a job name" else [])
    for row, typed in zip(rows, ("sbatch a.sh", text, "sbatch b.sh"), strict=True):
        row[at:at] = [typed] + (["name"] if place == "beside a job name" else [])
    workload, jobs = read(tmp_path, *("|".join(row) for row in rows), header="|".join(heads))
    assert workload.rejected_count == 0
    assert [(job.id, job.user, job.run_time, job.time_limit, job.min_nodes) for job in jobs] == [
        (str(job), "ann", 3600.0, 7200.0, 2) for job in (1, 2, 3)
    ]


def test_a_row_that_fits_in_several_ways_is_rejected_with_advice(tmp_path: Path) -> None:
    """Account could be any of three words; the other rows are used."""
    header = "JobID|Submit|Elapsed|NNodes|Comment|Account|SubmitLine"
    rows = [f"{job}|{DAY_ONE}00:00:0{job}|01:00:00|1|a|b|c" for job in (1, 3)]
    odd = f"2|{DAY_ONE}00:00:02|01:00:00|1|one|two|three|four"
    workload, jobs = read(tmp_path, rows[0], odd, rows[1], header=header)
    assert [job.id for job in jobs] == ["1", "3"]
    (row,) = workload.rejected
    assert (row.line, row.job) == (3, "")
    assert "8 fields instead of 7, which fit the columns in no single way" in row.reason
    assert "SubmitLine may hold '|' or a line end, so leave it out of sacct -o" in row.reason


def test_a_row_that_breaks_off_takes_no_other_with_it(tmp_path: Path) -> None:
    """It is rejected by itself; so is a line behind the last row that belongs to none."""
    header = f"{DOCUMENTED}|SubmitLine|Group"
    whole = [f"{documented(job)}|sbatch x|staff" for job in (1, 3)]
    workload, jobs = read(tmp_path, whole[0], documented(2)[:40], whole[1], "slurm: error", header=header)
    assert [job.id for job in jobs] == ["1", "3"]
    assert [row.line for row in workload.rejected] == [3, 5]
    assert not any("put together" in note for note in workload.notes)


def test_rows_that_were_put_together_are_counted(tmp_path: Path) -> None:
    """Nothing happens in silence."""
    header = f"{DOCUMENTED}|SubmitLine"
    rows = [f"{documented(job)}|sbatch --wrap='a\nb'" for job in (1, 2)]
    workload, _ = read(tmp_path, *rows, header=header)
    assert workload.notes[0] == "2 rows that spread over several lines put together"


@given(st.lists(st.text(alphabet='ab1| \n:-"', max_size=25), min_size=1, max_size=4))
def test_no_text_makes_a_row_another_job(texts: list[str]) -> None:
    """Whatever users type in SubmitLine, a job that is read is as recorded.

    Left out is a line of text that looks like the beginning of a row, as ``1 |a|``: it is taken for one that broke off.
    """
    layout = Layout((*DOCUMENTED.lower().split("|"), "submitline", "group"))
    assume(not any(layout.begins(line) for text in texts for line in f"{text}|ann".split("\n")[1:]))
    rows = [f"{documented(job)}|{text}|ann" for job, text in enumerate(texts, start=1)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.sacct"
        path.write_text("\n".join([f"{DOCUMENTED}|SubmitLine|Group", *rows]) + "\n")
        with contextlib.suppress(ConfigError):
            for job in load(path)[1]:
                assert (job.user, job.run_time, job.min_nodes, job.group) == ("ann", 3600.0, 2, "ann")
