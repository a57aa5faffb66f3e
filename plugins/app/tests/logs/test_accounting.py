"""Accounting of PBS and LSF as workloads; the shapes are those of the Big Book of PBS and of IBM's reference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway.config import parse_toml
from makeway.readers.api import ReadOptions
from makeway_logs.lsf import LsbAcctReader

Run = Callable[..., Any]
CONFIG = """
[[node]]
name = "n[1-2]"
cpus = 8
memory_mb = 16000
[[partition]]
name = "workq"
[[partition]]
name = "night"
[policy]
select = "select/cons_tres"
"""
JUNE = 1_717_200_000
_ENDED = (
    f'06/01/2024 01:00:10;E;12.pbs;user=ann group=staff account="ocean wave" project=_pbs_project_default '
    f"jobname=sim queue=workq ctime={JUNE} qtime={JUNE} etime={JUNE} start={JUNE + 10} "
    "exec_host=n1/0*4+n2/0*4 exec_vnode=(n1:ncpus=4)+(n2:ncpus=4) Resource_List.mem=8gb Resource_List.ncpus=8 "
    "Resource_List.nodect=2 Resource_List.select=2:ncpus=4:mem=4gb Resource_List.walltime=02:00:00 session=4 "
    f"end={JUNE + 3610} Exit_status=0 resources_used.walltime=00:50:00 run_count=1"
)
_RERUN = (
    f"06/01/2024 00:10:00;R;13[2].pbs;user=eve queue=night ctime={JUNE + 60} qtime={JUNE + 60} "
    f"start={JUNE + 100} end={JUNE + 600}"
)
_TASK = (
    f"06/01/2024 01:00:00;E;13[2].pbs;user=eve group=staff queue=night jobname=arr ctime={JUNE + 60} "
    f"qtime={JUNE + 60} etime={JUNE + 60} start={JUNE + 700} exec_host=n1/0+n1/1 Resource_List.nodes=1:ppn=2 "
    f"Resource_List.walltime=3600 end={JUNE + 1300} Exit_status=271 run_count=2"
)
PBS = f"""\
06/01/2024 00:00:00;Q;12.pbs;queue=workq
06/01/2024 00:00:10;S;12.pbs;user=ann queue=workq
{_ENDED}
{_RERUN}
{_TASK}
06/01/2024 02:00:00;Q;14.pbs;queue=workq
06/01/2024 02:00:00;D;14.pbs;requestor=ann@login
06/01/2024 02:00:00;Q;15.pbs;queue=workq
06/01/2024 02:00:00;L;license;floating license hour:0 day:0 month:0 max:0
06/01/2024 02:00:00;E;16.pbs;user=ann queue=workq
"""
USAGE = " ".join(["0.5", *["-1"] * 18])


def finish(job: int, start: int, end: int, **more: Any) -> str:
    """Return a JOB_FINISH, 4 slots on two hosts."""
    given = {
        "submit": JUNE,
        "begin": 0,
        "status": 64,
        "index": 0,
        "hosts": '2 "n1" "n2"',
        "queue": "night",
        **more,
    }
    return (
        f'"JOB_FINISH" "10.1" {end} {job} 1000 33816578 4 {given["submit"]} {given["begin"]} 0 {start} "ann" '
        f'"{given["queue"]}" "select[type==any]" "" "" "login" "/home/ann" "" "" "" "1.{job}" 1 "n1" '
        f'{given["hosts"]} {given["status"]} 60.0 "sim" "echo ""a b"" > c" {USAGE} "" "climate" 0 4 "" "" '
        f'{given["index"]} 2048 4096 "" "" -1 "" 8 "" 0\n'
    )


LSF = (
    finish(101, JUNE + 30, JUNE + 630)
    + '"EVENT_ADRSV_FINISH" "10.1" 1717200700 1 1000 "ann"\n'
    + finish(102, JUNE + 100, JUNE + 160, index=7, status=32, begin=JUNE + 90, hosts='1 "4*n1"')
    + finish(103, 0, JUNE + 500, status=32)
    + finish(101, JUNE + 30, JUNE + 630)
    + '"JOB_FINISH" "10.1" 1717200700 104\n'
)


def replayed(run: Run, tmp_path: Path, name: str, text: str) -> tuple[Any, dict[str, Any]]:
    """Replay a log; return what was printed, and the record."""
    config, log, out = tmp_path / "site.toml", tmp_path / name, tmp_path / "out.json"
    config.write_text(CONFIG)
    log.write_text(text)
    done = run("replay", config, log, "--allow-unusable", "--against-log", "--json", out)
    assert done.status == 0, done.err
    return done, json.loads(out.read_text())


def test_pbs_accounting(run: Run, tmp_path: Path) -> None:
    """Job 12 ran 50 minutes, for it was suspended meanwhile; task 2 of job 13 was rerun once."""
    done, found = replayed(run, tmp_path, "20240601", PBS)
    assert list(found["jobs"]) == ["12", "13[2]"]
    first, second = found["jobs"].values()
    assert (first["user"], first["group"], first["account"], first["partition"]) == (
        "ann",
        "staff",
        "ocean wave",
        "workq",
    )
    asked = {"nodes": 2, "cpus": 8, "time_limit": 7200.0, "memory_mb_per_node": 4096}
    assert first["requested"] == asked
    assert (
        sum(each["end"] - each["start"] for each in first["intervals"] if each["state"] == "RUNNING")
        == 3000.0
    )
    assert (second["submit"], second["partition"], second["requested"]["cpus"]) == (60.0, "night", 2)
    assert second["requested"]["time_limit"] == 3600.0
    counts = found["against_log"]["counts"]["by_user"]["eve"]
    assert counts["requeues"] == {"recorded": 1, "replayed": 0}
    assert counts["core_seconds_lost"]["recorded"] == 2 * 500.0
    assert found["record"]["epoch"] == JUNE
    for text in (
        "20240601:6: it was deleted before it started, and the log does not say what it asked for",
        "20240601:8: it had not ended when the log did: how long it runs is not known",
        "20240601:10: no submit time: neither qtime nor ctime",
    ):
        assert text in done.out


def test_lsb_acct(run: Run, tmp_path: Path) -> None:
    """Three jobs: one that is done, a task of an array, and one that never started."""
    done, found = replayed(run, tmp_path, "lsb.acct", LSF)
    assert list(found["jobs"]) == ["101", "102[7]", "103"]
    first = found["jobs"]["101"]
    assert (first["user"], first["account"], first["partition"], first["name"]) == (
        "ann",
        "climate",
        "night",
        "sim",
    )
    assert first["requested"]["cpus"] == 4
    assert (
        sum(each["end"] - each["start"] for each in first["intervals"] if each["state"] == "RUNNING") == 600.0
    )
    begun = next(each for each in found["jobs"]["102[7]"]["intervals"] if each["state"] == "RUNNING")
    assert (begun["start"], begun["end"]) == (90.0, 150.0)
    assert not any(each["state"] == "RUNNING" for each in found["jobs"]["103"]["intervals"])
    assert "lsb.acct:5: job '101' was there before, in line 1" in done.out
    assert "lsb.acct:6: 4 fields; allowed: more than 22, as JOB_FINISH has" in done.out
    assert "1 event other than JOB_FINISH left out" in done.err


@pytest.mark.parametrize(
    ("asked", "max_nodes", "tile", "memory_mb", "more"),
    [
        pytest.param("select[type==any]", None, None, None, False, id="hosts of any type"),
        pytest.param("span[hosts=1] rusage[mem=500]", 1, None, 500, False, id="one host and megabytes"),
        pytest.param("select[big] span[hosts=1]", 1, None, None, True, id="big hosts"),
        pytest.param("rusage[lic=1,mem=2GB] span[ptile=1]", None, 1, 2048, True, id="a licence, one a host"),
        pytest.param("order[-slots]", None, None, None, True, id="an order"),
    ],
)
@pytest.mark.parametrize("policy", ["lsf/queue", "preempt/none"])
def test_what_an_lsf_job_required(
    tmp_path: Path,
    policy: str,
    asked: str,
    max_nodes: int | None,
    tile: int | None,
    memory_mb: int | None,
    more: bool,
) -> None:
    """RES_REQ says how many hosts it takes and how much memory; only LSF's policy knows the rest."""
    path = tmp_path / "lsb.acct"
    path.write_text(finish(101, JUNE + 30, JUNE + 630).replace("select[type==any]", asked))
    options = ReadOptions(config=parse_toml(f'{CONFIG}preempt = "{policy}"\n', "site.toml"))
    workload = LsbAcctReader().read(path, options)
    (job,) = workload.jobs
    found = job.max_nodes, job.tasks_per_node, job.memory_mb_per_node
    assert found == (max_nodes, tile, memory_mb)
    assert job.attributes["res_req"] == asked
    told = [note for note in workload.notes if "RES_REQ" in note]
    assert len(told) == (more and policy != "lsf/queue")
    assert all(asked in note and "lsb.acct:1: job 101" in note for note in told)


@pytest.mark.parametrize(("name", "text"), [("june.log", PBS), ("old.log", LSF)])
def test_the_content_tells_the_format(run: Run, tmp_path: Path, name: str, text: str) -> None:
    """Whatever the file is called."""
    assert replayed(run, tmp_path, name, text)[1]["jobs"]
