"""Native workloads: TOML tables and JSON lines, strictly checked."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makeway.config import Config, parse_toml
from makeway.errors import ConfigError
from makeway.model import Exclusive, JobSpec, UserSignal
from makeway.readers.api import ReadOptions
from makeway_app.readers.native import ComponentTable, JobTable, workload_of_tables
from makeway_app.readers.open import open_workload


def config() -> Config:
    return parse_toml('[[node]]\nname = "n[1-4]"\n[[partition]]\nname = "all"\n', "test")


def load(tmp_path: Path, text: str, name: str = "jobs.toml") -> list[JobSpec]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return list(open_workload(path, ReadOptions(config=config())).jobs)


def problems(tmp_path: Path, text: str, name: str = "jobs.toml") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, name)
    return [str(problem) for problem in caught.value.problems]


def spec(**keys: Any) -> JobSpec:
    """Return the one job that a table gives."""
    (job,) = workload_of_tables([keys], "test").jobs
    return job


# ---------------------------------------------------------------------------------------- jobs
def test_tables_become_jobs(tmp_path: Path) -> None:
    first, second = load(
        tmp_path,
        """
        [[job]]
        submit = 20
        run_time = 60
        nodes = 2

        [[job]]
        id = "low"
        user = "ann"
        submit = 10.5
        cpus = 4
        time_limit = 3600
        """,
    )
    assert (first.id, first.user, first.submit_at, first.tasks) == ("low", "ann", 10.5, 4)
    assert (first.time_limit, first.run_time, first.min_nodes) == (3600, None, 1)
    assert (second.id, second.submit_at, second.run_time) == ("1", 20, 60)
    assert (second.min_nodes, second.max_nodes, second.user) == (2, 2, "user")
    assert (first.source, second.source) == ("jobs.toml:7", "jobs.toml:2")


def test_json_lines_become_jobs(tmp_path: Path) -> None:
    text = '{"id": 7, "nodes": 2, "partition": "all"}\n\n{"submit": 5, "gres": {"gpu": 1}}\n'
    first, second = load(tmp_path, text, "jobs.jsonl")
    assert (first.id, first.min_nodes, first.partitions) == ("7", 2, ("all",))
    assert (second.id, second.gres, second.source) == ("1", {"gpu": 1}, "jobs.jsonl:3")


def test_ids_are_numbered_around_those_given() -> None:
    tables: list[dict[str, Any]] = [{}, {"id": 1}, {}, {"id": "3"}, {}]
    assert [job.id for job in workload_of_tables(tables, "test").jobs] == ["2", "1", "4", "3", "5"]


def test_equal_submissions_keep_their_order() -> None:
    tables: list[dict[str, Any]] = [{"id": "b", "submit": 1}, {"id": "a", "submit": 1}, {"id": "c"}]
    assert [job.id for job in workload_of_tables(tables, "test").jobs] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("keys", "fields"),
    [
        pytest.param({"min_nodes": 2}, {"min_nodes": 2, "max_nodes": None}, id="least nodes"),
        pytest.param({"max_nodes": 3}, {"min_nodes": 1, "max_nodes": 3}, id="most nodes"),
        pytest.param({"partition": "a,b"}, {"partitions": ("a", "b")}, id="partitions as text"),
        pytest.param({"partition": ["a", "b"]}, {"partitions": ("a", "b")}, id="as a list"),
        pytest.param({"memory_mb": 0}, {"memory_mb_per_node": 0}, id="all memory"),
        pytest.param({"memory_mb_per_cpu": 10}, {"memory_mb_per_cpu": 10}, id="per CPU"),
        pytest.param({"exclusive": True}, {"exclusive": Exclusive.NODE}, id="whole nodes"),
        pytest.param({"exclusive": "user"}, {"exclusive": Exclusive.USER}, id="among users"),
        pytest.param({"exclusive": False}, {"exclusive": None}, id="not exclusive"),
        pytest.param({"required_nodes": "n[1-2]"}, {"required_nodes": ("n1", "n2")}, id="hosts"),
        pytest.param({"begin": 5}, {"begin_at": 5.0}, id="begin"),
        pytest.param({"command": "a | b"}, {"command": ("/bin/sh", "-c", "a | b")}, id="shell"),
        pytest.param({"command": ["a", "b"]}, {"command": ("a", "b")}, id="words"),
        pytest.param({"flags": ["PREEMPTEE"]}, {"flags": frozenset({"PREEMPTEE"})}, id="flags"),
        pytest.param(
            {"signal": {"name": "USR1", "lead": 30}},
            {"signal": UserSignal(name="USR1", lead=30.0)},
            id="signal",
        ),
        pytest.param({"licenses": {"m": 2}}, {"licenses": {"m": 2}}, id="licences"),
        pytest.param({"requeue": False, "priority": 0}, {"requeue": False, "priority": 0}, id="0"),
    ],
)
def test_keys(keys: dict[str, Any], fields: dict[str, Any]) -> None:
    job = spec(**keys)
    assert {key: getattr(job, key) for key in fields} == fields


def test_no_key_is_the_default_of_a_job() -> None:
    """What is left out is as in JobSpec."""
    assert spec() == JobSpec(id="1", source="test:job[0]")


def test_every_key_that_takes_no_other_form_reaches_the_job() -> None:
    """A key of the table that JobSpec has too may not be forgotten."""
    other_form = {"id", "exclusive", "signal", "flags", "command", "depends_on"}
    other_form |= {"required_nodes", "excluded_nodes"}
    samples = {
        "Mapping[str, str]": {"USR1": "exit"},
        "Mapping": {"x": 3},
        "bool": True,
        "float": 3.0,
        "Duration": 3.0,
        "int": 3,
        "str": "exit",
    }
    known = {one.name for one in attrs.fields(JobSpec)} - other_form
    for key in [one for one in attrs.fields(JobTable) if one.name in known]:
        sample = next(value for kind, value in samples.items() if kind in str(key.type))
        assert getattr(spec(**{key.name: sample}), key.name) == sample, key.name


def test_components_inherit_and_start_together() -> None:
    parts: list[dict[str, Any]] = [{"nodes": 1}, {"tasks": 4, "partition": "gpu"}]
    common: dict[str, Any] = {"id": 5, "user": "ann", "min_nodes": 2, "cpus": 1, "partition": "cpu"}
    first, second = workload_of_tables([common | {"component": parts}], "test").jobs
    assert (first.id, first.het_id, first.het_offset) == ("5+0", "5", 0)
    assert (first.min_nodes, first.max_nodes, first.tasks) == (1, 1, 1)
    assert (second.id, second.het_id, second.het_offset) == ("5+1", "5", 1)
    assert (second.min_nodes, second.max_nodes, second.tasks) == (2, None, 4)
    assert (first.partitions, second.partitions) == (("cpu",), ("gpu",))
    assert first.user == second.user == "ann"


def test_compressed(tmp_path: Path) -> None:
    path = tmp_path / "jobs.gz"
    path.write_bytes(gzip.compress(b"[[job]]\nnodes = 3\n"))
    (job,) = open_workload(path, ReadOptions(config=config())).jobs
    assert job.min_nodes == 3


# ------------------------------------------------------------------------------------ problems
def test_all_problems_at_once(tmp_path: Path) -> None:
    text = """
        [[job]]
        nods = 2
        run_time = "60"
        [[job]]
        id = 5
        nodes = 0
        time_limit = -1
        on_term = "exti"
        [[job]]
        id = "5"
    """
    assert problems(tmp_path, text) == [
        "job[0].nods: unknown key; did you mean 'nodes'?",
        "job[0].run_time: got '60'; allowed: a number of seconds, or a length of time such as 2h, 90min or 1-12:00:00",
        "job[1].nodes: got 0; allowed: 1 to 10000000",
        "job[1].time_limit: got -1; allowed: 0 to 100000000000",
        "job[1].on_term: got 'exti'; allowed: default, exit, ignore; did you mean 'exit'?",
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param(
            '{"on_signal": {"USR1": "exti"}}',
            "t:2.on_signal: USR1: got 'exti'; allowed: die, exit, ignore; did you mean 'exit'?",
            id="reaction",
        ),
        pytest.param(
            '{"on_signal": {"SIGUSR1": "exit"}}',
            "t:2.on_signal: got the signal 'SIGUSR1'; allowed: a name without SIG, such as USR1",
            id="signal",
        ),
        pytest.param(
            '{"on_signal": {"TERM": "exit"}}', "t:2.on_signal: TERM has a key of its own: on_term", id="TERM"
        ),
        pytest.param(
            '{"on_signal": {"KILL": "ignore"}}',
            "t:2.on_signal: KILL always ends a job; allowed: other signals, such as USR1",
            id="KILL",
        ),
        pytest.param(
            '{"on_signal": {"STOP": "ignore"}}',
            "t:2.on_signal: STOP always stops a job; allowed: other signals, such as USR1",
            id="STOP",
        ),
        pytest.param('{"nodes": true}', "t:2.nodes: got True; allowed: a whole number", id="bool"),
        pytest.param('{"nodes": 1.5}', "t:2.nodes: got 1.5; allowed: a whole number", id="half"),
        pytest.param('{"run_time": NaN}', "t:2.run_time: got nan; allowed: a number", id="NaN"),
        pytest.param('{"run_time": 1e300}', "t:2.run_time: got a number without end", id="1e300"),
        pytest.param('{"run_time": Infinity}', "t:2.run_time: got a number", id="infinite"),
        pytest.param('{"nodes": 1' + "0" * 30 + "}", "t:2.nodes: got 1" + "0" * 30, id="10**30"),
        pytest.param('{"gres": {"gpu": -1}}', "t:2.gres: 'gpu': got -1", id="negative count"),
        pytest.param('{"nodes": 1, "nodes": 2}', "t:2: not a line of JSON: key 'nodes'", id="twice"),
        pytest.param("[1]", "t:2: got '[1]'; allowed: a JSON object", id="a list"),
        pytest.param("nodes = 1", "t:2: not a line of JSON", id="TOML"),
        pytest.param("[" * 100_000, "t:2: not a line of JSON: nested too deeply", id="deep"),
        pytest.param("9" * 5000, "t:2: not a line of JSON", id="5000 digits"),
        pytest.param('{"user": "a\\u001b[2J"}', "t:2.user: got 'a\\x1b[2J'; allowed: prin", id="esc"),
        pytest.param('{"user": "\\ud800"}', "t:2.user: got '\\ud800'; allowed", id="surrogate"),
        pytest.param('{"id": " "}', "t:2.id: empty", id="empty id"),
        pytest.param('{"nodes": 1, "min_nodes": 1}', "t:2.min_nodes: nodes says that", id="both"),
        pytest.param('{"min_nodes": 3, "max_nodes": 2}', "t:2.max_nodes: got 2; allowed: 3", id="<"),
        pytest.param('{"depends_on": "8"}', "t:2.depends_on: no job '8'", id="no such job"),
        pytest.param('{"id": 7, "depends_on": "7"}', "t:2.depends_on: job '7' is this one", id="itself"),
        pytest.param(
            '{"id": 7, "depends_on": "8"}\n{"id": 8, "depends_on": "7"}',
            "t:2.depends_on: job '8' is submitted later; allowed: jobs submitted before this one",
            id="circle",
        ),
        pytest.param(
            '{"id": 7, "submit": 5}\n{"id": 8, "submit": 4, "depends_on": "7"}',
            "t:3.depends_on: job '7' is submitted later",
            id="later",
        ),
        pytest.param('{"required_nodes": "n[1-"}', "t:2.required_nodes: host list", id="host list"),
        pytest.param('{"exclusive": "usr"}', "t:2.exclusive: got 'usr'; allowed: true", id="mode"),
        pytest.param('{"signal": {"nam": "x"}}', "t:2.signal.name: missing", id="signal"),
        pytest.param('{"component": [{"nodes": 0}]}', "t:2.component[0].nodes: got 0", id="part"),
    ],
)
def test_problems(tmp_path: Path, line: str, problem: str) -> None:
    found = problems(tmp_path, "{}\n" + line + "\n", "t")
    assert found[0].startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "the file is empty", id="empty"),
        pytest.param("job = [1]", "job: allowed: tables only", id="no tables"),
        pytest.param("job = []", "job: no jobs; add a [[job]] table", id="no jobs"),
        pytest.param("[[jobs]]\nnodes = 1", "jobs: unknown key; allowed: [[job]] tables; did", id="key"),
        pytest.param("[[job]\n", "not valid TOML: ", id="no TOML"),
        pytest.param('[{"run_time": 1}]\n', "jobs.toml:1: a JSON array; allowed: JSON lines", id="array"),
        pytest.param("\n[\n  {},\n  {}\n]\n", "jobs.toml:1: a JSON array; allowed: JSON lines", id="spread"),
        pytest.param(
            '{\n "run_time": 1\n}\n', "jobs.toml:1: one JSON object over several lines", id="pretty"
        ),
        pytest.param("[]", "jobs.toml:1: a JSON array; allowed: JSON lines", id="empty array"),
        pytest.param("x = " + "[" * 50_000, "not valid TOML: nested too deeply", id="deep"),
        pytest.param(
            "[[job]]\nnodes = " + "9" * 5000, ": a number of more than 400 digits", id="5000 digits"
        ),
    ],
)
def test_no_workload_at_all(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in problems(tmp_path, text)[0]


@pytest.mark.parametrize("text", ["a&&b", "[a", "a|", "a b", "*3"])
def test_features_must_be_readable(tmp_path: Path, text: str) -> None:
    """Else the selector failed on them in the middle of the run."""
    (problem,) = problems(tmp_path, f'[[job]]\nrun_time = 1\nfeatures = "{text}"\n')
    assert problem.startswith("job[0].features: ")
    assert "allowed: such as 'a', 'a&b'" in problem


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_bytes(b"[[job]]\nuser = '\xff'\n")
    with pytest.raises(ConfigError, match=r"t\.toml:2: not UTF-8"):
        open_workload(path, ReadOptions(config=config()), "native")


def test_jobs_of_a_configuration_are_named_by_their_key() -> None:
    with pytest.raises(ConfigError, match=r"my\.toml: job\[1\]\.nods: unknown key"):
        workload_of_tables([{}, {"nods": 1}], "my.toml")


# ------------------------------------------------------------------------------------ anything
def survive(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t"
        path.write_bytes(data)
        try:
            jobs = list(open_workload(path, ReadOptions(config=config()), "native").jobs)
        except ConfigError:
            return
    assert len({job.id for job in jobs}) == len(jobs)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    survive(data)


@given(st.text(max_size=100))
def test_any_text_in_a_table(text: str) -> None:
    survive(f"[[job]]\n{text}".encode("utf-8", "replace"))


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)
KEYS = st.sampled_from(sorted({one.name for one in attrs.fields(JobTable)}))


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=4))
def test_any_values(tables: list[dict[str, Any]]) -> None:
    try:
        jobs = list(workload_of_tables(tables, "test").jobs)
    except ConfigError:
        return
    assert len(jobs) >= len(tables)


def test_a_component_may_say_all_that_a_request_is_made_of() -> None:
    of_job = {one.name for one in attrs.fields(JobTable)}
    assert {one.name for one in attrs.fields(ComponentTable)} < of_job
