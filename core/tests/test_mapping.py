"""How jobs of a trace find partitions and QOS, and how a workload's format is found."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makeway.config import Config, MappingRule, WorkloadTable, parse_toml
from makeway.errors import ConfigError
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions, Workload
from makeway.readers.mapping import apply_mapping, check_mapping, machine_of, parse_map_flag
from makeway_app.readers.open import READERS, open_workload

DATA = Path(__file__).parents[2] / "plugins/app/tests/logs/data"
_OTHERS = r"(?:[a-z.-]+, )*"
_FORMATS = f"{_OTHERS}journal, {_OTHERS}native, {_OTHERS}sacct, swf"
"""All formats, with those of other distributions in between by alphabet."""
CLUSTER = """
    [[node]]
    name = "n[1-100]"
    [[partition]]
    name = "low"
    default = true
    [[partition]]
    name = "high"
    [[qos]]
    name = "normal"
    [[qos]]
    name = "urgent"
"""


def config(text: str = "") -> Config:
    return parse_toml(text + CLUSTER, "test")


def mapped(text: str, *specs: JobSpec) -> tuple[Workload, list[JobSpec]]:
    workload = apply_mapping(Workload(name="t", jobs=iter(specs)), config(text))
    return workload, list(workload.jobs)


def job(**fields: Any) -> JobSpec:
    return JobSpec(**({"id": "1", "source": "t:9"} | fields))


# ---------------------------------------------------------------------------------- as typed
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param("user=3,7:high", MappingRule(user=("3", "7"), to_partition="high"), id="users"),
        pytest.param("users=3:high", MappingRule(user=("3",), to_partition="high"), id="plural"),
        pytest.param("queue=q_2h:short", MappingRule(queue=("q_2h",), to_partition="short"), id="queue"),
        pytest.param("qos=banana*:low", MappingRule(qos=("banana*",), to_partition="low"), id="pattern"),
        pytest.param("user=*:low", MappingRule(user=("*",), to_partition="low"), id="everybody"),
        pytest.param("user=3:qos=fast", MappingRule(user=("3",), to_qos="fast"), id="to a QOS"),
        pytest.param(
            "user=3:partition=p,qos=q",
            MappingRule(user=("3",), to_partition="p", to_qos="q"),
            id="to both",
        ),
        pytest.param(
            "user=3,4, accounts=x,min-nodes=8:p",
            MappingRule(user=("3", "4"), account=("x",), min_nodes=8, to_partition="p"),
            id="several conditions",
        ),
        pytest.param("group=a,group=b:p", MappingRule(group=("a", "b"), to_partition="p"), id="key twice"),
    ],
)
def test_map_flag(text: str, rule: MappingRule) -> None:
    assert parse_map_flag(text) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "allowed: KEY=NAME", id="empty"),
        pytest.param("user=3", "allowed: KEY=NAME", id="no target"),
        pytest.param("user=3:", "allowed: KEY=NAME", id="empty target"),
        pytest.param(":high", "allowed: KEY=NAME", id="no condition"),
        pytest.param("3,7:high", "begin with one of user, group, account, queue, qos", id="no key"),
        pytest.param("usr=3:high", "allowed: user, group, .*did you mean 'user'", id="wrong key"),
        pytest.param("user=:high", "a name is missing after user=", id="no name"),
        pytest.param("user=3,,4:high", "a name is missing after user=", id="gap"),
        pytest.param("min_nodes=x:high", "min_nodes: got 'x'; allowed: one whole", id="no number"),
        pytest.param("user=3:tier=2", "allowed: PARTITION, partition=NAME", id="wrong target"),
        pytest.param("user=3:a,b", "allowed: PARTITION, partition=NAME", id="two partitions"),
    ],
)
def test_wrong_map_flag(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_map_flag(text)


@given(st.text(alphabet="user=:,3*q \x00é", max_size=20))
def test_any_map_flag(text: str) -> None:
    try:
        rule = parse_map_flag(text)
    except ValueError:
        return
    assert rule.to_partition or rule.to_qos


# ------------------------------------------------------------------------------------- rules
RULES = """
    [[workload.map]]
    user = ["a*"]
    queue = ["q1", "q2"]
    to_partition = "high"
    [[workload.map]]
    user = ["ann"]
    to_qos = "urgent"
    [[workload.map]]
    min_nodes = 10
    max_nodes = 20
    to_partition = "low"
    to_qos = "normal"
    [[workload.map]]
    account = ["*"]
    to_partition = "high"
"""


@pytest.mark.parametrize(
    ("fields", "partitions", "qos"),
    [
        pytest.param({"user": "ann", "partitions": ("q1",)}, ("high",), None, id="all conditions"),
        pytest.param({"user": "ann"}, (), "urgent", id="first that matches counts"),
        pytest.param({"user": "bob", "min_nodes": 10}, ("low",), "normal", id="by size"),
        pytest.param({"user": "bob", "min_nodes": 21}, ("high",), None, id="star fits no account"),
        pytest.param({"user": "ann", "attributes": {"queue": "q2"}}, ("high",), None, id="the trace's queue"),
    ],
)
def test_rules(fields: dict[str, Any], partitions: tuple[str, ...], qos: str | None) -> None:
    _, (spec,) = mapped(RULES, job(**fields))
    assert (spec.partitions, spec.qos) == (partitions, qos)


def test_words_of_the_trace_stay_in_the_attributes() -> None:
    text = '[[workload.map]]\nqueue = ["q1"]\nto_partition = "high"\nto_qos = "urgent"'
    _, (spec,) = mapped(text, job(partitions=("q1",), qos="gold"))
    assert spec.attributes == {"queue": "q1", "qos": "gold"}


def test_job_that_nothing_changes_is_the_same() -> None:
    spec = job(partitions=("high",), qos="urgent")
    assert mapped("", spec)[1][0] is spec


@pytest.mark.parametrize(
    ("text", "own", "partitions"),
    [
        pytest.param("", ("high",), ("high",), id="known: stays"),
        pytest.param("", (), (), id="none: the default"),
        pytest.param("", ("gone", "high"), ("high",), id="one known: that one"),
        pytest.param("", ("gone",), None, id="unknown: rejected"),
        pytest.param('unknown_partition = "default"', ("gone",), (), id="unknown: the default"),
        pytest.param('partition = "high"', ("gone",), ("high",), id="unknown: the one set"),
        pytest.param('partition = "high"', (), ("high",), id="none: the one set"),
    ],
)
def test_partitions_of_the_trace(text: str, own: tuple[str, ...], partitions: tuple[str, ...] | None) -> None:
    workload, jobs = mapped(f"[workload]\n{text}", job(partitions=own))
    assert [spec.partitions for spec in jobs] == ([] if partitions is None else [partitions])
    assert workload.rejected_count == (partitions is None)


def test_rejection_says_line_and_remedy() -> None:
    workload, _ = mapped("", job(partitions=("hihg",)))
    (rejected,) = workload.rejected
    assert rejected.line == 9
    assert "no partition named 'hihg'; allowed: high, low; did you mean 'high'?" in rejected.reason
    assert 'unknown_partition = "default"' in rejected.reason


def test_unknown_qos_is_dropped_with_one_note() -> None:
    workload, jobs = mapped("", job(qos="gold"), job(id="2", qos="gold"))
    assert [spec.qos for spec in jobs] == [None, None]
    assert jobs[0].attributes == {"qos": "gold"}
    assert workload.notes == ["QOS 'gold' does not exist here; its jobs run without (first: job 1)"]


def test_targets_are_checked_all_at_once() -> None:
    text = """
        [[workload.map]]
        to_partition = "hihg"
        [[workload.map]]
        to_partition = "urgent"
        to_qos = "x"
        [workload]
        partition = "y"
        unknown_partition = "rejct"
        cpus_per_node = 0
    """
    with pytest.raises(ConfigError) as caught:
        mapped(text)
    found = [str(problem) for problem in caught.value.problems]
    assert found[0].startswith("workload.map[0].to_partition: no partition named 'hihg'; allowed: high")
    assert found[1].endswith("it is a QOS: use to_qos, or --map ...:qos=urgent")
    assert found[2].startswith("workload.map[1].to_qos: no QOS named 'x'")
    assert found[3].startswith("workload.partition: no partition named 'y'")
    assert "allowed: reject, default; did you mean 'reject'?" in found[4]
    assert found[5] == "workload.cpus_per_node: got 0; allowed: 1 to 1000000"


def test_a_rule_must_send_its_jobs_somewhere() -> None:
    """One that does not was passed over in silence."""
    table = WorkloadTable(map=(MappingRule(user=("a",)),))
    with pytest.raises(
        ConfigError, match=r"workload\.map\[0\]: sends its jobs nowhere; add to_partition or to_qos"
    ):
        check_mapping(Config(workload=table))


def test_machine_is_known_by_its_largest_node() -> None:
    text = """
        [[node]]
        name = "a"
        sockets = 2
        cores_per_socket = 4
        threads_per_core = 2
        features = ["x"]
    """
    machine = machine_of(config(text))
    assert (machine.node_cpus, machine.cpus_per_node, machine.nodes_for(17)) == (16, 16, 2)
    assert (machine.memory_stated, machine.features) == (False, frozenset({"x"}))


# ------------------------------------------------------------------------------------ formats
@pytest.mark.parametrize(
    ("name", "format"),
    [
        pytest.param("kth-excerpt.swf", "swf", id="SWF"),
        pytest.param("wagap-excerpt.swf", "swf", id="SWF without header"),
    ],
)
def test_content_tells_the_format(tmp_path: Path, name: str, format: str) -> None:
    """Neither the name nor compression matters."""
    path = tmp_path / "workload"
    path.write_bytes(gzip.compress((DATA / name).read_bytes()))
    options = ReadOptions(config=config('[workload]\nunknown_partition = "default"'))
    by_content = [spec.run_time for spec in open_workload(path, options).jobs]
    assert by_content == [spec.run_time for spec in open_workload(path, options, format).jobs]


@pytest.mark.parametrize(
    ("text", "run_time"),
    [
        pytest.param("[[job]]\nrun_time = 5", 5, id="TOML"),
        pytest.param("# mine\njob = [{ run_time = 6 }]", 6, id="TOML, inline"),
        pytest.param('{"run_time": 7}', 7, id="JSON lines"),
    ],
)
def test_content_beats_the_name(tmp_path: Path, text: str, run_time: float) -> None:
    path = tmp_path / "wrong.swf"
    path.write_text(text)
    (spec,) = open_workload(path, ReadOptions(config=config())).jobs
    assert spec.run_time == run_time


def test_unknown_content_names_the_formats(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("\nhello world\n")
    with pytest.raises(
        ConfigError,
        match=rf"'hello world' is not known; name it with --format: {_FORMATS}",
    ):
        open_workload(path, ReadOptions(config=config()))


def test_unknown_format_names_the_formats(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=rf"got 'swff'; allowed: {_FORMATS}; did you mean 'swf'",
    ):
        open_workload(DATA / "kth-excerpt.swf", ReadOptions(config=config()), "swff")


def test_nothing_usable_says_why() -> None:
    with pytest.raises(ConfigError) as caught:
        open_workload(DATA / "wagap-excerpt.swf", ReadOptions(config=config()))
    found = [str(problem) for problem in caught.value.problems]
    assert found[0] == "no job that can be used; rows rejected: 22"
    assert found[1].startswith("wagap-excerpt.swf:1: no partition named 'q_1d'")


def test_binary_and_empty_files(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_bytes(b"\x7fELF\0\0")
    with pytest.raises(ConfigError, match="the file is binary"):
        open_workload(path, ReadOptions(config=config()))
    path.write_bytes(b"\n \n")
    with pytest.raises(ConfigError, match="the file is empty"):
        open_workload(path, ReadOptions(config=config()))


class OneJob:
    """A reader of a plugin."""

    name = "one"

    def claims(self, path: Path, head: str) -> bool:
        return head.startswith("one")

    def read(self, path: Path, options: ReadOptions) -> Workload:
        return Workload(name=path.name, jobs=self.jobs())

    def jobs(self) -> Iterator[JobSpec]:
        yield job(partitions=("high",))


def test_readers_of_plugins_are_asked_too(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_text("one\n")
    workload = open_workload(path, ReadOptions(config=config()), readers=(*READERS, OneJob()))
    assert [spec.partitions for spec in workload.jobs] == [("high",)]
