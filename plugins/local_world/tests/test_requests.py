"""What people send is read by one schema: types, limits of each field, and of the whole."""

from __future__ import annotations

import json
import types
import typing
from typing import Any

import attrs
import pytest

from makeway.errors import ConfigError
from makeway_local_world.daemon import bodies
from makeway_local_world.limits import LIMIT
from makeway_local_world.requests import MOST_HANDED, Request, Who, specs

PLAIN = {"command": ["true"]}
ANN = Who(user="ann", uid=1000, gid=100)
CLASSES = (
    Request,
    bodies.OrderBody,
    bodies.DrainBody,
    bodies.ReloadBody,
    bodies.PageBody,
    bodies.QueueQuery,
    bodies.WaitQuery,
    bodies.EventsQuery,
    bodies.HistoryQuery,
)


def wrong(body: bytes | dict[str, Any]) -> str:
    """Return what a submission is refused with."""
    raw = body if isinstance(body, bytes) else json.dumps({**PLAIN, **body}).encode()
    with pytest.raises((ConfigError, ValueError)) as caught:
        bodies.request_of(raw)
    return str(caught.value)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_field_has_a_limit(cls: type[Any]) -> None:
    """But those whose types allow a few values alone."""
    hints = typing.get_type_hints(cls)
    for field in attrs.fields(cls):
        hint = hints[field.name]
        options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        closed = all(
            each in (bool, type(None)) or typing.get_origin(each) is typing.Literal for each in options
        )
        assert (field.metadata[LIMIT] is None) is closed, field.name


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param({"cpus_per_task": 10**400}, "a number of 401 digits; allowed: 400", id="400 digits"),
        pytest.param({"cpus_per_task": 10**300}, "cpus_per_task: got 1000", id="300 digits"),
        pytest.param({"cpus_per_task": 0}, "cpus_per_task: got 0; allowed: 1 to 1,000,000", id="zero"),
        pytest.param({"nodes": -1}, "nodes: got -1", id="negative"),
        pytest.param({"nodes": True}, "nodes: got True; allowed: a whole number", id="true"),
        pytest.param({"nodes": 1.0}, "nodes: got 1.0; allowed: a whole number", id="a float"),
        pytest.param({"nodes": "1"}, "nodes: got '1'; allowed: a whole number", id="text"),
        pytest.param({"time_limit": 10**350}, "time_limit: the number is too large", id="beyond floats"),
        pytest.param({"time_limit": float("nan")}, "got NaN; allowed: numbers", id="NaN"),
        pytest.param({"begin": float("inf")}, "got Infinity; allowed: numbers", id="infinite"),
        pytest.param(
            {"begin": 1e15}, "begin: got 1000000000000000.0; allowed: 0 to 100,000,000,000", id="far away"
        ),
        pytest.param({"name": "\x1b]0;x\x07"}, "name: got .*; allowed: characters that can be", id="ESC"),
        pytest.param({"name": "a\u202eb"}, "name: got .*; allowed: characters that can be", id="bidi"),
        pytest.param({"name": "x" * 1_000_000}, "name: got 1,000,000 bytes; allowed: at most 255", id="1 MB"),
        pytest.param({"account": "a" * 256}, "account: got 256 bytes", id="account"),
        pytest.param({"cwd": "/\x07"}, "cwd: got .*; allowed: characters", id="BEL"),
        pytest.param({"cwd": "here"}, "cwd: got 'here'; allowed: an absolute path", id="relative"),
        pytest.param({"output": "o" * 4097}, "output: got 4,097 bytes", id="long path"),
        pytest.param({"partitions": ["p"] * 100_000}, "too many parts; allowed: 50,000", id="100,000 values"),
        pytest.param({"partitions": ["p", "p"]}, "partitions: the same value stands in it twice", id="twice"),
        pytest.param({"command": ["tr\ud800ue"]}, r"command\[0\]: got .*; allowed: text", id="lone half"),
        pytest.param({"command": ["tr\0ue"]}, "NUL byte", id="NUL"),
        pytest.param({"command": ["x" * (1 << 17)]}, r"command\[0\]: got 131,072 bytes", id="long word"),
        pytest.param({"command": []}, "command: nothing to run", id="nothing"),
        pytest.param({"script": "echo"}, "script: its first line must name the interpreter", id="no script"),
        pytest.param({"environment": {"A=B": ""}}, "environment.A=B: got 'A=B'; allowed: names", id="name"),
        pytest.param({"environment": {"": "x"}}, "environment.: got 0 bytes; allowed: 1 to", id="no name"),
        pytest.param({"environment": {"A": "\ud800"}}, "environment.A: got .*; allowed: text", id="half"),
        pytest.param(
            {"environment": {f"k{at}": "x" for at in range(100_000)}}, "too many parts", id="variables"
        ),
        pytest.param(
            {"environment": {f"k{at}": "x" * 100_000 for at in range(30)}},
            f"environment: got 3,000,.* bytes with the command; allowed: {MOST_HANDED:,}",
            id="environment of 3 MB",
        ),
        pytest.param({"limits": {"NOFILE": [1]}}, "limits.NOFILE: got 1 values; allowed: 2", id="one limit"),
        pytest.param({"limits": {"X": [1, 1]}}, "limits.X: unknown name; allowed: AS, CORE", id="no limit"),
        pytest.param({"array": "0-4000000," * 900 + "0"}, "4,000,001 tasks or more; allowed: 10,000", id="a"),
        pytest.param({"array": "0-5:0"}, "array: got '0-5:0'; allowed: indices", id="step"),
        pytest.param({"dependency": "afterok:" + ":".join(["1"] * 9000)}, "at most 1,000 jobs", id="after"),
        pytest.param({"dependency": "afterok:1," * 500_000}, "dependency: got 5,000,000 bytes", id="afters"),
        pytest.param({"dependency": "afterok:x"}, "dependency: got 'x' as a job", id="no id"),
        pytest.param({"signal": "U" * 33}, "signal: got 33 bytes", id="signal"),
        pytest.param({"features": "(" * 900}, "features: the features .* end too early", id="brackets"),
        pytest.param({"gres": {"gpu": -1}}, "gres.gpu: got -1; allowed: 0 to", id="gres"),
        pytest.param({"process_nice": -21}, "process_nice: got -21; allowed: -20 to 19", id="niceness"),
        pytest.param({"umask": 0o1000}, "umask: got 512; allowed: 0 to 511", id="umask"),
        pytest.param({"uid": 0}, "uid: unknown key", id="uid"),
        pytest.param(b"[" * 100_000, "too many parts", id="brackets of JSON"),
        pytest.param(b'{"a":' + b"[" * 20 + b"]" * 20 + b"}", "21 levels of brackets; allowed: 8", id="deep"),
        pytest.param(b"\xff\xfe", "it is no UTF-8", id="UTF-16"),
        pytest.param(b"[1]", "no JSON object", id="a list"),
        pytest.param(b'{"name":"a","name":"b"}', "names 'name' twice", id="a name twice"),
        pytest.param(b"1" * 5000, "a number of 5,000 digits", id="digits"),
    ],
)
def test_what_is_beyond_a_limit_is_refused(given: bytes | dict[str, Any], why: str) -> None:
    """With what was given, in short, and what is allowed."""
    with pytest.raises((ConfigError, ValueError), match=why) as caught:
        bodies.request_of(given if isinstance(given, bytes) else json.dumps({**PLAIN, **given}).encode())
    assert len(str(caught.value)) < 1000


def test_all_that_is_wrong_is_told() -> None:
    told = wrong({"nodes": 0, "name": "\n", "signal": "X", "array": "x"})
    assert [line.split(":")[0].strip() for line in told.splitlines()[1:]] == [
        "name",
        "nodes",
        "signal",
        "array",
    ]


def test_thousands_of_wrong_values_are_told_in_short() -> None:
    told = wrong({"command": [1] * 40_000})
    assert told.startswith("submission: 101 problems")
    assert len(wrong({f"k{at}": 1 for at in range(10_000)})) < 100_000


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"command": ["printf", "a\n\x1b[0m"]}, id="control characters in words"),
        pytest.param({"script": "#!/bin/sh\n" + "x" * 4_000_000}, id="a script of 4 MB"),
        pytest.param({"environment": {"PS1": "\x1b[1m", "ODD": "\udcff"}}, id="bytes that are no text"),
        pytest.param({"name": "Prüfung 試験"}, id="other alphabets"),
        pytest.param({"array": "0-9999%2"}, id="10,000 tasks"),
        pytest.param({"dependency": "afterok:12_3,afterany:14:15"}, id="conditions"),
        pytest.param({"limits": {"NOFILE": [1024, -1]}}, id="limits"),
    ],
)
def test_what_people_need_is_taken(given: dict[str, Any]) -> None:
    bodies.request_of(json.dumps({**PLAIN, **given}).encode())  # raises nothing


def test_attributes_are_for_policies() -> None:
    """Numbers are numbers, as in a TOML file; what the daemon keeps there is its own."""
    given = {"due": "3600", "part": "-0.5", "big": "true", "site": "1e9", "empty": ""}
    (spec,) = specs(Request(command=("true",), key="k", attributes=given), ANN, "1", 0.0, 0.0)
    key = spec.attributes["key"]
    assert spec.attributes == {"due": 3600, "part": -0.5, "big": True, "site": "1e9", "empty": "", "key": key}
    assert "attributes.after: the daemon's own" in wrong({"attributes": {"after": "x"}})
    assert "attributes.a b: got 'a b'; allowed: a name" in wrong({"attributes": {"a b": "x"}})
    assert "attributes" in wrong({"attributes": {f"a{at}": "" for at in range(65)}})


def test_a_name_that_comes_from_the_command_can_be_printed() -> None:
    """So can nobody write to the terminal of who looks at the queue."""
    (spec,) = specs(Request(command=("/tmp/\x1b]0;PWNED\x07x",)), ANN, "1", 0.0, 0.0)
    assert spec.name == "?]0;PWNED?x"


def test_a_command_is_stored_once() -> None:
    """Each task bears what people are shown of it, and no more."""
    request = Request(command=("a" * 400, "b" * 400, "c"), array="0-9")
    for spec in specs(request, ANN, "1", 0.0, 0.0):
        assert spec.command == ("a" * 400, "b" * 99)


@pytest.mark.parametrize(
    ("pairs", "cls", "why"),
    [
        ([("longest", "inf")], bodies.WaitQuery, "longest: got 'inf'; allowed: a number"),
        ([("after", "soon")], bodies.EventsQuery, "after: got 'soon'; allowed: a whole number"),
        ([("after", "9" * 30)], bodies.EventsQuery, "after: got '999"),
        ([("limit", "\u00b2")], bodies.HistoryQuery, "limit: got"),
        ([("limit", "0")], bodies.HistoryQuery, "limit: got 0; allowed: 1 to"),
        ([("user", "\udcff")], bodies.QueueQuery, "user: got .*; allowed: text that UTF-8 has"),
        ([("user", "a"), ("user", "b")], bodies.QueueQuery, "user: it stands there twice"),
        ([("users", "a")], bodies.QueueQuery, "users: unknown key; did you mean 'user'"),
    ],
)
def test_queries(pairs: list[tuple[str, str]], cls: type[Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        bodies.query_of(pairs, cls)
