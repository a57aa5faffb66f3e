"""What a record holds, that it keeps its schema, and that it is written as a stream."""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest

Run = Callable[..., Any]
ROOT = Path(__file__).parents[4]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs/record.schema.json").read_text())

SITE = """
[[node]]
name = "n[1-2]"
cpus = 4

[[partition]]
name = "all"
default = true

[[qos]]
name = "urgent"
priority = 10
preempt = ["spare", "normal"]

[[qos]]
name = "spare"

[[qos]]
name = "normal"
exempt_time = 1000

[policy]
preempt = "preempt/qos"
preempt_mode = ["requeue"]

[[job]]
id = 1
user = "ada"
group = "maths"
account = "proofs"
qos = "spare"
nodes = 1
time_limit = 500
run_time = 100

[[job]]
id = 2
user = "bob"
qos = "normal"
nodes = 1
submit = 1
run_time = 200

[[job]]
id = 3
user = "eve"
qos = "urgent"
nodes = 1
submit = 10
run_time = 20

[[job]]
id = 4
user = "eve"
qos = "spare"
nodes = 2
submit = 15
run_time = 5
"""


def closed(schema: Any) -> Any:
    """Return a schema under which every key has to be described."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made


STRICT = jsonschema.Draft202012Validator(closed(SCHEMA))
LINES = jsonschema.Draft202012Validator(closed({"$defs": SCHEMA["$defs"], "$ref": "#/$defs/line"}))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two nodes, three QOS, four jobs."""
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


@pytest.fixture
def record(run: Run, site: Path) -> dict[str, Any]:
    """The record of that site."""
    done = run("replay", site, "--json", site.with_suffix(".json"))
    assert done.status == 0, done.err
    found: dict[str, Any] = json.loads(site.with_suffix(".json").read_text())
    return found


def test_the_schema_is_one() -> None:
    """By the standard's own rules."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        pytest.param(["examples/seed/cluster.toml"], id="suspension"),
        pytest.param(["examples/kth/cluster.toml", "examples/kth/kth-sp2-1500.swf.gz"], id="requeue"),
        pytest.param(
            ["examples/kth/suspend.toml", "examples/kth/kth-sp2-1500.swf.gz", "--until", "90000"],
            id="cut short",
        ),
        pytest.param(
            ["examples/site/slurm.conf", "examples/site/june.sacct", "--allow-unusable"], id="Slurm's delays"
        ),
        pytest.param(
            [
                *("examples/kth/cluster.toml", "examples/kth/kth-sp2-1500.swf.gz", "--limit", "200"),
                *(
                    "--compare",
                    "policy.preempt=preempt/none",
                    "--do",
                    "900 hold 20",
                    "--do",
                    "900 cancel 999",
                ),
            ],
            id="compared, and commands",
        ),
    ],
)
def test_records_and_logs_keep_the_schema(run: Run, tmp_path: Path, given: list[str]) -> None:
    """Every key is described there, and each has its type."""
    files = [str(ROOT / each) if each.startswith("examples/") else each for each in given]
    done = run("replay", *files, "--json", tmp_path / "a.json", "--log", tmp_path / "a.log")
    assert done.status == 0, done.err
    STRICT.validate(json.loads((tmp_path / "a.json").read_text()))
    lines = [json.loads(line) for line in (tmp_path / "a.log").read_text().splitlines()]
    assert [lines[0]["kind"], lines[-1]["kind"]] == ["record", "metrics"]
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    for line in lines:
        LINES.validate(line)


def test_it_says_what_was_run(record: dict[str, Any]) -> None:
    """The cluster with its idle nodes, the policy, and by what it tells jobs apart."""
    assert record["cluster"]["nodes"] == [{"names": "n[1-2]", "count": 2, "cpus": 4, "memory_mb": 1}]
    assert record["cluster"]["cores"] == 8
    assert [each["name"] for each in record["cluster"]["qos"]] == ["urgent", "spare", "normal"]
    assert record["record"]["policy"]["displaces_by"] == "QOS"
    assert record["record"]["epoch"] is None


def test_it_says_who_asked_for_what(record: dict[str, Any]) -> None:
    """QOS, account, group, size and limit."""
    job = record["jobs"]["1"]
    assert {key: job[key] for key in ("user", "group", "account", "qos", "displaces_as")} == {
        "user": "ada",
        "group": "maths",
        "account": "proofs",
        "qos": "spare",
        "displaces_as": "spare",
    }
    assert job["requested"] == {"nodes": 1, "cpus": 1, "time_limit": 500.0}


def test_it_says_why_jobs_waited(record: dict[str, Any]) -> None:
    """Job 1 makes way from 10 to 30 s; job 4 waits for both nodes until job 2 ends at 201 s."""
    (wait,) = record["jobs"]["1"]["waits"]
    assert (wait["start"], wait["end"], wait["reason"]) == (10.0, 30.0, "Resources")
    waits = record["jobs"]["4"]["waits"]
    assert (waits[0]["start"], waits[-1]["end"]) == (15.0, 201.0)
    assert all(one["end"] == other["start"] for one, other in itertools.pairwise(waits))


def test_it_says_what_was_decided_and_by_which_rule(record: dict[str, Any]) -> None:
    """Job 3 may displace job 1; the exempt time of QOS normal protects job 2."""
    decision = record["jobs"]["3"]["decisions"][0]
    assert decision["outcome"] == "preempts"
    assert decision["reason"] == "Resources"
    assert decision["candidates"] == [["1", "requeue"]]
    assert decision["victims"] == [["1", "requeue"]]
    assert list(decision["protected"].values()) == [["2"]]
    assert "exempt" in next(iter(decision["protected"]))
    assert decision["by"] == "preempt/qos"


def test_the_table_of_preemptions_groups_by_qos(run: Run, site: Path) -> None:
    """Since that is what the policy looks at; partitions would say nothing here."""
    out = run("replay", site).out
    assert "preemptor (QOS)  victim (QOS)  mode     preemptions" in out
    assert "urgent           spare         requeue            1" in out


def test_the_date_of_second_0(run: Run, tmp_path: Path) -> None:
    """The log's UnixStartTime, and the first submission, from which instants are counted."""
    kth = ROOT / "examples/kth"
    target = tmp_path / "a.json"
    run("replay", kth / "cluster.toml", kth / "kth-sp2-1500.swf.gz", "--limit", "1", "--json", target)
    assert json.loads(target.read_text())["record"]["epoch"] == 843480031 + 599850


def test_attempts_that_come_to_the_same_are_one(run: Run, site: Path) -> None:
    """The first of them is told, without how many they were: schedulers differ in what they try anew."""
    short = "[[job]]\nid = {0}\nsubmit = {0}\nnodes = 1\nqos = 'normal'\ntime_limit = 1\nrun_time = 1\n"
    site.write_text(SITE + "".join(short.format(at) for at in range(140, 160, 2)))
    target = site.with_suffix(".json")
    run("replay", site, "--json", target)
    told = json.loads(target.read_text())["jobs"]["4"]["decisions"]
    kinds = [(each["outcome"], each.get("reason"), each.get("victims")) for each in told]
    assert all(one != other for one, other in itertools.pairwise(kinds))


@attrs.frozen
class Peak:
    """The most that a process took."""

    megabytes: float


def _peak(*given: object) -> Peak:
    code = (
        "import resource, sys; from makeway_app.cli import cli\n"
        "try: cli(sys.argv[1:])\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, given)], capture_output=True, text=True, check=True
    )
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return Peak(float(done.stderr.split()[-1]) / unit)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(resource, "RUSAGE_SELF"), reason="the system does not tell")
def test_memory_does_not_grow_with_the_record(tmp_path: Path) -> None:
    """Ten times the jobs, with all their histories written, take at most 8 MB more (held, they took 8.6 kB each)."""
    config = ROOT / "examples/kth/cluster.toml"
    peaks = []
    for jobs in (2_000, 20_000):
        log = tmp_path / f"{jobs}.swf"
        rows = (
            f"{n} {n * 60} -1 300 4 -1 -1 4 600 -1 1 {18 + n % 9} 1 -1 -1 -1 -1 -1\n"
            for n in range(1, jobs + 1)
        )
        log.write_text("".join(rows))
        peaks.append(_peak("replay", config, log, "--json", tmp_path / "a.json").megabytes)
    assert len(json.loads((tmp_path / "a.json").read_text())["jobs"]) == 20_000
    assert peaks[1] - peaks[0] < 8
