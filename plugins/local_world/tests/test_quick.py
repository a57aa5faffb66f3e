"""Commands that only talk to a daemon begin at once, and read what was typed as other programs do."""

from __future__ import annotations

import io
import json
import pkgutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from makeway_local_world.commands import table
from makeway_local_world.commands.submit import submit
from makeway_local_world.commands.words import Wrong

Site = Any
OURS = {"makeway", "makeway_app", "makeway_local_world"}
LIGHT = {"makeway", "makeway.columns", "makeway.escapes", "makeway.fault", "makeway_app", "makeway_app.start"}


def _imported(code: str, arguments: Sequence[str], environ: dict[str, str]) -> set[str]:
    """Return the modules that an interpreter imports, as it tells by itself."""
    command = [sys.executable, "-X", "importtime", "-c", code, *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line[2].strip() for line in lines[1:]}


def test_what_commands_of_every_day_import(up: Site) -> None:
    """Beside the standard library nothing but themselves: no engine, no click, no rich, no attrs, no plugins."""
    job = up.submit("-o", "out", "--", "true")
    up.ok("wait", job)
    usual = _imported("pass", (), up.environ)
    for arguments in (
        ("submit", "-n", "1", "-t", "10", "-o", str(up.directory / "o"), "--", "true"),
        ("queue",),
        ("why", job),
        ("wait", job),
        ("logs", job),
        ("cancel", "--user"),
        ("history",),
    ):
        found = _imported("import makeway_app.start as s; s.main()", arguments, up.environ) - usual
        beside = {name.partition(".")[0] for name in found} - set(sys.stdlib_module_names)
        assert beside <= OURS, arguments
        core = {name for name in found if name.partition(".")[0] in ("makeway", "makeway_app")}
        assert core <= LIGHT, arguments
        heavy = {
            "asyncio",
            "dataclasses",
            "email",
            "http.client",
            "inspect",
            "ssl",
            "tomllib",
            "urllib.request",
        }
        assert not found & heavy, arguments


def test_the_table_names_what_the_entry_points_name() -> None:
    """But `up`, which reads a configuration, and needs all the rest for that."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["makeway.commands"]
    told = {name: pkgutil.resolve_name(value) for name, value in points.items()}
    del told["up"]
    assert told == {name: table.find(name) for name in table.COMMANDS}
    assert [found.name for found in told.values()] == list(told)


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["-n2", "--time=1:30", "-Jx", "--", "a", "-n", "9"], {"tasks": 2, "time_limit": 90.0, "name": "x"}),
        (["-WH", "job.sh", "-n", "9"], {"waits": True, "hold": True, "words": ("job.sh", "-n", "9")}),
        (["--no-requeue", "job.sh"], {"requeue": False}),
        (["--requeue", "job.sh"], {"requeue": True}),
        (["job.sh"], {"requeue": None, "tasks": None, "hold": False}),
        (["--nice", "-5", "job.sh"], {"nice": -5, "words": ("job.sh",)}),
        (["--attribute", "a=1", "--attribute=b=2", "x"], {"attributes": {"a": "1", "b": "2"}}),
        (["--gres", "gpu:a100:2,x", "x"], {"gres": {"gpu:a100": 2, "x": 1}}),
    ],
)
def test_words_are_read_as_sbatch_reads_them(words: list[str], read: dict[str, Any]) -> None:
    """Short options may bear their value and be joined; what stands behind the script is the script's."""
    found = submit.read(words)
    assert {name: found[name] for name in read} == read


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--tme", "5"], "No such option: --tme; did you mean '--time'?"),
        (["--time"], "Option '--time' requires an argument."),
        (["--hold=1"], "Option '--hold' does not take a value."),
        (["-n", "0", "x"], "Invalid value for '-n' / '--ntasks': got 0; allowed: from 1 on"),
        (["-n", "many", "x"], "got 'many'; allowed: a whole number"),
        (["--open-mode", "both", "x"], "got 'both'; allowed: truncate, append"),
        (["--process-nice", "40", "x"], "got 40; allowed: -20 to 19"),
    ],
)
def test_what_cannot_be_read_is_named(words: list[str], says: str) -> None:
    with pytest.raises(Wrong) as caught:
        submit.read(words)
    assert says in str(caught.value)


def test_a_wrong_command_line_and_help(site: Site) -> None:
    """As all of makeway's commands tell them: status 2 with the usage, and every option in the help."""
    result = site.run("queue", "--wtach")
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: makeway queue [OPTIONS]\n")
    assert "did you mean '--watch'?" in result.stderr
    shown = site.ok("submit", "-h")
    for option in submit.options:
        assert option.names[-1] in shown
    assert site.run("cancel", "1", "--all").exit_code == 2
    assert site.run("hold").exit_code == 2


def test_many_commands_at_once(up: Site) -> None:
    """Each line is a task of one array, whatever characters it holds; blank lines and remarks are none."""
    lines = up.directory / "lines"
    lines.write_text(
        "echo 'a  b' > one\n\n# not this\nfalse || echo \"$SLURM_ARRAY_TASK_ID\" > two; exit 3\n\\echo $'\n"
    )
    array = up.submit("--from-file", "lines")
    assert up.run("wait", array).exit_code == 3
    states = {row["id"]: (row["state"], row["exit_code"]) for row in up.ended()}
    assert states[f"{array}_1"] == ("COMPLETED", 0)
    assert states[f"{array}_2"] == ("FAILED", 3)
    assert len(states) == 3
    assert (up.directory / "one").read_text() == "a  b\n"
    assert (up.directory / "two").read_text() == "2\n"
    result = up.run("submit", "--wait", "--from-file", "-", "-a", "%1", input="true\ntrue\n")
    assert (result.exit_code, result.stdout.endswith("(2 tasks)\n")) == (0, True)
    for arguments, says in (
        (("--from-file", "nowhere"), "nowhere: No such file or directory"),
        (("--from-file", "lines", "-a", "0-3"), "got '0-3' with --from-file; allowed: %N"),
        (("--from-file", "lines", "--", "true"), "one of them"),
    ):
        result = up.run("submit", *arguments)
        assert result.exit_code == 2
        assert says in result.stderr
    assert up.run("submit", "--from-file", "-", input="\n#\n").exit_code == 2


def test_a_script_comes_by_standard_input(up: Site) -> None:
    """As sbatch takes one; its lines count."""
    result = up.run("submit", "--wait", input="#!/bin/sh\n#SBATCH -o said -J by-pipe\necho well\n")
    assert result.exit_code == 0, result.output
    assert (up.directory / "said").read_text() == "well\n"
    assert [row["name"] for row in up.ended()] == ["by-pipe"]
    result = up.run("submit", input="echo no first line\n")
    assert result.exit_code == 2
    assert "standard input: it is no script" in result.stderr


def test_output_that_is_closed(up: Site) -> None:
    """Nobody reads: the command ends without a traceback."""
    up.submit("--hold", "-o", "/dev/null", "-a", "1-2000", "--", "true")
    code = "import makeway_app.start as s; s.main()"
    with open(Path("/dev/null"), "rb") as nothing:
        first = subprocess.Popen(
            [sys.executable, "-c", code, "queue", "--json"],
            env=up.environ,
            stdin=nothing,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert first.stdout is not None
        first.stdout.close()
        _, told = first.communicate(timeout=300)
    assert told == b""
    assert first.returncode == 1


def test_answers_are_json(up: Site) -> None:
    """One object, whatever the command."""
    answer = json.loads(up.ok("submit", "--json", "--hold", "--", "true"))
    assert answer["jobs"] == [answer["id"]]
    assert io.StringIO(up.ok("queue", "--json")).readline() == "{\n"
