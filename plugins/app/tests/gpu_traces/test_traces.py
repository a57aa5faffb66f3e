"""Each kind of trace, with rows made up in its columns; expected values are worked out by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from makeway.config import Config, parse_toml
from makeway.errors import ConfigError
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions, Workload
from makeway_app.readers.open import open_workload, readers_for

PARTITIONS = "".join(f'[[partition]]\nname = "{name}"\n' for name in ("vc1", "vc2"))
QOS = "".join(f'[[qos]]\nname = "{name}"\n' for name in ("LS", "BE", "HP", "Spot"))


def _config(text: str) -> Config:
    return parse_toml(text, "cluster.toml")


CONFIG = _config(f'[[node]]\nname = "n1"\ncpus = 8\n{PARTITIONS}{QOS}')

PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:00:10,66.0,1,66.0,vc1
2017-10-09 07:00:00,30.5,8,244.0,vc2
2017-10-09 07:00:10,5,none,66.0,vc1
yesterday,5,1,5,vc1
2017-10-09 07:01:00,-5,1,66.0,vc1
"""
HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
11,u1,vc1,16,96,2,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:40,2020-04-01 01:00:40,3600,40
12,u2,vc2,0,4,1,FAILED,2020-04-01 00:00:05,2020-04-01 00:00:05,2020-04-01 00:00:06,1,0
13,u2,vc2,8,4,1,CANCELLED,2020-04-01 00:00:06,,,,
12,u2,vc2,0,4,1,FAILED,2020-04-01 00:00:07,2020-04-01 00:00:07,2020-04-01 00:00:08,1,0
"""
ACME = """job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
a1,u1,128,1024,16384,Pretrain,COMPLETED,2023-03-01 08:00:00+08:00,2023-03-01 08:00:09+08:00,x,60,9,61440
"""
OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-0,12000,16384,1,460,,LS,Running,100,1600,120
pod-1,3152,8192,8,1000,G2|V100M32,BE,Succeeded,400,500,400
pod-2,3152,8192,0,0,,BE,Pending,500,600,
pod-3,3152,8192,0,0,,BE,Failed,500,600,700
"""
SPOT = """job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
j1,org1,A100,12,8,4,3600,7200,HP
j2,org2,A10,4,1,1,7200,60,Spot
j3,org2,A10,4,0.5,1,7200,60,Spot
"""
PHILLY_JSON = [
    {
        "status": "Pass",
        "vc": "vc1",
        "jobid": "application_1",
        "user": "u1",
        "submitted_time": "2017-10-09 07:02:00",
        "attempts": [
            {
                "start_time": "2017-10-09 07:03:00",
                "end_time": "2017-10-09 07:04:00",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu3"]}],
            },
            {"start_time": "2017-10-09 07:05:00", "end_time": "2017-10-09 07:05:30", "detail": []},
        ],
    },
    {
        "status": "Killed",
        "vc": "vc2",
        "jobid": "application_2",
        "user": "u2",
        "submitted_time": "2017-10-09 07:00:00",
        "attempts": [],
    },
    {
        "status": "Failed",
        "vc": "vc2",
        "jobid": "application_3",
        "user": "u2",
        "submitted_time": "2017-10-09 07:00:00",
        "attempts": [
            {
                "start_time": "2017-10-09 07:00:00",
                "end_time": "2017-10-09 07:00:01",
                "detail": [{"ip": "m1", "gpus": ["gpu0"]}],
            }
        ],
    },
]


def _read(path: Path, text: str) -> tuple[Workload, list[JobSpec]]:
    path.write_text(text)
    workload = open_workload(path, ReadOptions(config=CONFIG))
    return workload, list(workload.jobs)


def _rejected(workload: Workload) -> list[tuple[int, str, bool]]:
    return [(row.line, row.reason, row.usual) for row in workload.rejected]


def test_rows_of_the_philly_extract_are_sorted_and_counted(tmp_path: Path) -> None:
    """Ids are the numbers of rows; the first submission is second 0."""
    workload, jobs = _read(tmp_path / "philly.csv", PHILLY)
    assert [(job.id, job.submit_at, job.run_time, job.tasks, job.partitions) for job in jobs] == [
        ("2", 0, 30.5, 8, ("vc2",)),
        ("1", 10, 66, 1, ("vc1",)),
    ]
    assert dict(jobs[0].gres_total) == {"gpu": 8}
    assert workload.start_wall == 1507532400
    assert _rejected(workload) == [
        (5, "timestamp: got 'yesterday'; allowed: a date and time", False),
        (4, "num_gpus: got 'none'; allowed: 0 or more", False),
        (6, "duration: got '-5'; allowed: 0 or more", False),
    ]


def test_helios_has_quotas_nodes_and_waits(tmp_path: Path) -> None:
    """A job that never ran is listed, but is no fault."""
    workload, jobs = _read(tmp_path / "cluster_log.csv", HELIOS)
    first, second = jobs
    assert (first.partitions, first.min_nodes, first.tasks, dict(first.gres_total)) == (
        ("vc1",),
        2,
        96,
        {"gpu": 16},
    )
    assert first.attributes["wait"] == 40
    assert (second.submit_at, second.run_time, dict(second.gres_total)) == (5, 1, {})
    assert _rejected(workload) == [
        (4, "it never ran: CANCELLED", True),
        (5, "job '12' was there before", False),
    ]


def test_kinds_of_work_in_acme_can_be_mapped(tmp_path: Path) -> None:
    """The type is the queue of the job; it names no partition."""
    config = _config(
        f'[[node]]\nname = "n1"\n{PARTITIONS}[[workload.map]]\nqueue = ["Pre*"]\nto_partition = "vc2"'
    )
    path = tmp_path / "trace_seren.csv"
    path.write_text(ACME)
    (job,) = open_workload(path, ReadOptions(config=config)).jobs
    assert (job.partitions, job.min_nodes, job.attributes["queue"]) == (("vc2",), 128, "Pretrain")
    assert job.wall_submit == 1677628800  # 2023-03-01 00:00 UTC


def test_pods_ask_for_thousandths_of_gpus(tmp_path: Path) -> None:
    """They run from scheduling to deletion; models are features."""
    workload, jobs = _read(tmp_path / "pods.csv", OPENB)
    part, whole = jobs
    assert (part.id, part.submit_at, part.run_time, part.qos) == ("pod-0", 100, 1480, "LS")
    assert (part.cpus_per_task, part.memory_mb_per_node, dict(part.gres)) == (12, 16384, {"gpu_milli": 460})
    assert (whole.cpus_per_task, dict(whole.gres), whole.features) == (4, {"gpu_milli": 8000}, "G2|V100M32")
    assert _rejected(workload) == [
        (4, "it was never scheduled", True),
        (5, "deletion_time is before scheduled_time", False),
    ]


def test_workers_of_a_spot_job_are_a_gang(tmp_path: Path) -> None:
    """The type of a job is its QOS."""
    workload, jobs = _read(tmp_path / "job_info_df.csv", SPOT)
    first, second = jobs
    assert (first.tasks, first.cpus_per_task, dict(first.gres_total), first.qos) == (4, 12, {"gpu": 32}, "HP")
    assert (first.account, first.features, second.qos) == ("org1", "A100", "Spot")
    assert _rejected(workload) == [(4, "gpu_request: got '0.5'; allowed: whole GPUs", False)]


def test_attempts_of_a_philly_job_add_up(tmp_path: Path) -> None:
    """The first attempt says how many GPUs it had."""
    workload, jobs = _read(tmp_path / "cluster_job_log", json.dumps(PHILLY_JSON, indent=1))
    short, long = jobs
    assert (short.id, short.submit_at, short.run_time) == ("application_3", 0, 1)
    assert (long.id, long.submit_at, long.run_time, dict(long.gres_total)) == (
        "application_1",
        120,
        90,
        {"gpu": 3},
    )
    assert long.attributes["wait"] == 60
    assert [(reason, usual) for _, reason, usual in _rejected(workload)] == [("it never ran: Killed", True)]


@pytest.mark.parametrize(
    ("file", "text", "format"),
    [
        ("philly.csv", PHILLY, "philly"),
        ("anything.csv", PHILLY, "philly"),
        ("cluster_log.csv", HELIOS, "helios"),
        ("x.csv", ACME, "acme"),
        ("x.csv", OPENB, "openb"),
        ("x.csv", SPOT, "alibaba-spot"),
        ("cluster_job_log", json.dumps(PHILLY_JSON), "philly-json"),
    ],
)
def test_the_header_tells_the_format(tmp_path: Path, file: str, text: str, format: str) -> None:
    """One reader knows each, whatever the name; a list of JSON objects also needs its usual name."""
    path = tmp_path / file
    path.write_text(text)
    readers, failed = readers_for(path, None)
    claiming = [reader.name for reader in readers if reader.claims(Path("workload"), text)]
    assert claiming[0] == format
    assert failed == []


def test_own_jobs_under_the_name_of_a_trace_stay_own_jobs(tmp_path: Path) -> None:
    """The content counts before the name."""
    path = tmp_path / "cluster_job_log"
    path.write_text('{"id": 1, "nodes": 1, "run_time": 5}\n')
    (job,) = open_workload(path, ReadOptions(config=CONFIG)).jobs
    assert (job.id, job.run_time) == ("1", 5)


def test_a_compressed_file_does(tmp_path: Path) -> None:
    """The rows are the same."""
    path = tmp_path / "philly.csv.gz"
    path.write_bytes(gzip.compress(PHILLY.encode()))
    assert [job.id for job in open_workload(path, ReadOptions(config=CONFIG)).jobs] == ["2", "1"]


@pytest.mark.parametrize(
    ("format", "text", "said"),
    [
        ("philly", "a,b\n1,2\n", "bad:1: the header has no column 'cluster'"),
        ("philly-json", '[{"jobid": 1}, {"jobid"', "bad:1: not valid JSON"),
        ("philly-json", "[1]", "allowed: a list of jobs, each an object"),
        ("philly", PHILLY.splitlines()[0], "no job that can be used"),
    ],
)
def test_a_file_that_is_none_is_one_error(tmp_path: Path, format: str, text: str, said: str) -> None:
    """It names the place."""
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(ConfigError, match="bad") as caught:
        list(open_workload(path, ReadOptions(config=CONFIG), format).jobs)
    assert said in str(caught.value)


def test_a_short_row_is_rejected_alone(tmp_path: Path) -> None:
    """What a row lacks is empty."""
    workload, jobs = _read(
        tmp_path / "p.csv",
        PHILLY.splitlines()[0] + "\n2017-10-09 07:00:10,5\n2017-10-09 07:00:11,5,1,5,vc1\n",
    )
    assert [job.id for job in jobs] == ["2"]
    assert (2, "num_gpus: got ''; allowed: 0 or more", False) in _rejected(workload)


def test_a_field_without_end_is_rejected_alone(tmp_path: Path) -> None:
    """Longer than Python's csv reads, 131,072 characters: that row has no fields, and the others count."""
    head = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type"
    rows = ["a,o,m,1,1,1,5,10,HP", '"' + "x" * 200_000 + '",o,m,1,1,1,6,10,HP', "b,o,m,1,1,1,7,10,HP"]
    workload, jobs = _read(tmp_path / "spot.csv", "\n".join([head, *rows, ""]))
    assert [job.id for job in jobs] == ["a", "b"]
    assert _rejected(workload) == [(3, "submit_time: got ''; allowed: 0 or more", False)]
