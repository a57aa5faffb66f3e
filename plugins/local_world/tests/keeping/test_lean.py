"""A keeper stays small: it imports little, and what it uses instead reads and writes the same."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from makeway_local_world import keeping
from makeway_local_world.keeping import files, lean, linux, words

WRAPPERS = {
    *("collections", "contextlib", "dataclasses", "enum", "functools", "json", "logging", "random", "re"),
    *("selectors", "signal", "site", "socket", "subprocess", "threading", "typing"),
}
VALUES: list[Any] = [
    {},
    [],
    {"v": 1, "say": "runs", "leader": 12, "state": "running", "left": [[1, "sh", "Z"]], "then": None},
    {
        "environment": {"A": 'q"\\\n\t\x00', "Ä": "\udcff ö €  \U0001f600"},
        "deep": [[[{"a": [1.5, -0.0, 1e300]}]]],
    },
    [True, False, None, 0, -1, 2**80, 0.1, "", " x "],
]


def modules_after(statement: str) -> set[str]:
    """Return what a bare interpreter has loaded once it has carried out a statement."""
    place = str(Path(keeping.__file__).parents[2])
    code = f"import sys; sys.path.append(sys.argv[1]); {statement}\nprint(*sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, place],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return set(ran.stdout.split())


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="another Python has other wrappers")
def test_a_nursery_imports_no_wrappers() -> None:
    """Each module is memory that every keeper pays for once it counts references there.

    From Python 3.13 on ctypes itself imports threading.
    """
    found = modules_after("import makeway_local_world.keeping.nursery")
    assert "makeway_local_world.keeping.keeper" in found
    found -= modules_after("import ctypes")
    assert not found & WRAPPERS


@pytest.mark.parametrize("make", [lean._bare, lean._wrapped])
@pytest.mark.parametrize("value", VALUES)
def test_json_is_that_of_the_library(make: Any, value: Any) -> None:
    if make is lean._bare and sys.implementation.name != "cpython":
        pytest.skip("another Python has nothing below json")
    loads, dumps = make()
    text = dumps(value)
    assert text == json.dumps(value, separators=(",", ":"))
    assert loads(f" {text}\n") == value == loads(json.dumps(value, indent=1))


@pytest.mark.parametrize(
    "text", ["", " ", "{", '{"a":}', "{} {}", "[1,]", "nul", '"a', "x", '{"a":1,}', "\x00"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    """Also where nothing has imported what the library raises, as in a keeper."""
    modules_after(
        "from makeway_local_world.keeping import words\n"
        f"try: words.unpack({text.encode()!r})\n"
        "except words.WordError: pass\n"
        "else: raise AssertionError\n"
        "import sys"
    )
    for loads, _ in (lean._wrapped(), (lambda said: lean.read_json(said.encode()), None)):
        with pytest.raises(ValueError, match=r"."):
            loads(text)
    with pytest.raises(words.WordError, match="damaged"):
        words.unpack(text.encode())


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(words.WordError, match="damaged"):
        words.unpack(b'{"v":1,"a":"\xff"}')


def test_what_json_has_nothing_for_is_refused() -> None:
    with pytest.raises(TypeError):
        lean.write_json({"a": object()})


def test_descriptors_arrive_closed_for_programs() -> None:
    """What came is the same file; the program that is executed does not get it."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with mine, its:
        here, there = os.pipe()
        socket.send_fds(mine, [b"start"], [here, there])
        data, found = lean.receive_descriptors(its, 16, 4)
        assert data == b"start"
        assert len(found) == 2
        assert not any(map(os.get_inheritable, found))
        os.write(found[1], b"x")
        assert os.read(here, 9) == b"x"
        for each in (here, there, *found):
            os.close(each)
        mine.close()
        assert lean.receive_descriptors(its, 16, 4) == (b"", [])


def test_errors_are_suppressed_as_named() -> None:
    with lean.suppress(OSError, KeyError):
        raise FileNotFoundError
    with pytest.raises(ValueError, match="mine"), lean.suppress(OSError):
        raise ValueError("mine")


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 300_000])
def test_files_are_read_whole(tmp_path: Path, size: int) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    found = files.read_file(str(tmp_path / "file"))
    assert found == (tmp_path / "file").read_bytes()
    assert len(found) == size


def test_the_kernel_says_what_it_refuses() -> None:
    """A signal that there is none of is an invalid argument."""
    with pytest.raises(OSError, match="Invalid argument") as raised:
        linux.die_with_parent(100_000)
    assert raised.value.errno == errno.EINVAL


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_the_word_that_every_keeper_says(state: str) -> None:
    assert words.runs(12, state) == words.pack(say="runs", leader=12, state=state)


@pytest.mark.parametrize(("ends_by", "then"), [("", None), ("daemon", 'it gives "way"\n')])
def test_what_a_keeper_says_to_whoever_calls(ends_by: str, then: str | None) -> None:
    """It is what the file says, and how the job stands."""
    started = {"job": 'a"{b}', "incarnation": 3, "gpus": ["GPU-1"], "cgroup": None}
    said = words.hello(words.pack(**started), 12, "ending", ends_by, then)
    expected = {"say": "hello", "leader": 12, "state": "ending", "ends_by": ends_by, "then": then, **started}
    assert said == words.pack(**expected)
