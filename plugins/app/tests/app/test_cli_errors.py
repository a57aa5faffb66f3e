"""What goes wrong on the command line is told in one text, with the exit status that fits."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway.errors import ConfigError, InvariantError, PluginError, PolicyError, Problem, RunnerError
from makeway_app.cli import running
from makeway_app.cli.group import status_of

Run = Callable[..., Any]
Install = Callable[..., None]


# -------------------------------------------------------------------------------- flags and files
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["repaly"], "no command named 'repaly'; allowed: ", id="command"),
        pytest.param(["repaly"], "; did you mean 'replay'?", id="nearest command"),
        pytest.param(["quue"], "; did you mean 'queue'?", id="nearest command, installed or not"),
        pytest.param(["plugin", "--check", "x"], "; did you mean 'plugins'?", id="nearest command, options"),
        pytest.param(["replay"], "Missing argument 'CONFIG'", id="no config"),
        pytest.param(["replay", "{config}", "--frmat=swf"], "--frmat", id="option"),
        pytest.param(["replay", "nope.toml"], "nope.toml: No such file", id="missing config"),
        pytest.param(["replay", "{folder}"], "not a regular file", id="folder as config"),
        pytest.param(["replay", "{empty}"], "the file is empty", id="empty config"),
        pytest.param(["replay", "{binary}"], "binary", id="binary config"),
        pytest.param(["replay", "{config}"], "no workload given", id="no workload"),
        pytest.param(["replay", "{config}", "nope.swf"], "nope.swf: No such", id="missing jobs"),
        pytest.param(["replay", "{config}", "{folder}"], "not a regular file", id="folder as jobs"),
        pytest.param(["replay", "{jobs}", "--format=swf"], "--format: no workload", id="format"),
        pytest.param(["replay", "{config}", "{trace}", "--format=swff"], "did you mean 'swf'?", id="format"),
        pytest.param(["replay", "{jobs}", "--limit=0"], "--limit", id="limit"),
        pytest.param(["replay", "{jobs}", "--until=-1"], "--until", id="until"),
        pytest.param(["replay", "{jobs}", "--until=nan"], "a number of seconds", id="no number"),
        pytest.param(["replay", "{jobs}", "--release=new"], "got 'new'", id="release"),
        pytest.param(["replay", "{jobs}", "--map=ada"], "KEY=NAME[,NAME...]:TARGET", id="map"),
        pytest.param(
            ["replay", "{jobs}", "--map=user=ada:hgh"],
            "--map: workload.map[0].to_partition: no partition named 'hgh'; allowed: high, low; "
            "did you mean 'high'?",
            id="map to nowhere",
        ),
        pytest.param(
            ["replay", "{jobs}", "--squeue-at=9", "--until=5"],
            "--squeue-at: got 9, which is after --until 5",
            id="squeue too late",
        ),
        pytest.param(
            ["replay", "{jobs}", "--compare=nope"],
            "--compare nope: neither KEY=VALUE nor a file",
            id="compare with nothing",
        ),
        pytest.param(["check", "nope.toml"], "nope.toml: No such file", id="check nothing"),
        pytest.param(["import", "{config}"], "it is TOML already", id="import TOML"),
        pytest.param(["import", "nope.conf"], "nope.conf: No such file", id="import nothing"),
        pytest.param(["explain", "{jobs}"], "Missing option '--job'", id="explain no job"),
        pytest.param(
            ["explain", "{jobs}", "--job=3"],
            "--job: no job '3' in with-jobs.toml; there are 2, 1 to 2",
            id="unknown job",
        ),
        pytest.param(["plugins", "--config=nope.toml"], "nope.toml: No such file", id="plugins"),
    ],
)
def test_what_cannot_be_done_is_refused(
    run: Run,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    config: Path,
    with_jobs: Path,
) -> None:
    """Exit status 2, a message on standard error, nothing on standard output."""
    places = {"config": config, "jobs": with_jobs, "folder": tmp_path}
    for name, content in (("empty", b""), ("binary", b"\0\1\2"), ("trace", b"; nothing\n")):
        places[name] = tmp_path / name
        places[name].write_bytes(content)
    done = run(*(argument.format(**places) for argument in arguments))
    assert done.status == 2
    assert done.out == ""
    assert message in done.err


def test_all_problems_of_a_config_are_told(run: Run, config: Path) -> None:
    """At once, in file order, with the nearest match."""
    text = config.read_text().replace("priority_tier", "priority_teir").replace("cpus", "cpsu")
    config.write_text(text)
    done = run("replay", config)
    assert done.status == 2
    assert done.err.splitlines() == [
        f"makeway: {config}: 2 problems",
        "  node[0].cpsu: unknown key; did you mean 'cpus'?",
        "  partition[1].priority_teir: unknown key; did you mean 'priority_tier'?",
    ]


def test_doubled_ids_are_told(run: Run, with_jobs: Path) -> None:
    """As all other problems with jobs."""
    with_jobs.write_text(with_jobs.read_text().replace("id = 2", "id = 1"))
    done = run("replay", with_jobs)
    assert done.status == 2
    assert "job[1].id: job '1' was there before" in done.err


def test_a_config_of_no_known_kind(run: Run, tmp_path: Path) -> None:
    """What is known is listed."""
    # A name and a text that no reader claims, whichever plugins are installed.
    path = tmp_path / "notes.odt"
    path.write_text("these are no settings\n")
    done = run("replay", path)
    assert done.status == 2
    known = done.err.partition("known: ")[2].split(";")[0].strip().split(", ")
    assert {"TOML", "slurm.conf"} <= set(known)


def test_actions_are_checked(run: Run, with_jobs: Path) -> None:
    """Before anything is replayed."""
    text = '[[action]]\nat = 5\ncommand = "cancle"\njob = 1\n[[action]]\nat = "x"\n'
    with_jobs.write_text(with_jobs.read_text() + text)
    done = run("replay", with_jobs)
    assert done.status == 2
    assert "action[0].command: got 'cancle'" in done.err
    assert "did you mean 'cancel'?" in done.err
    assert "action[1].at: got 'x'; allowed: a number" in done.err


# --------------------------------------------------------------------------------------- plugins
def test_missing_plugins_are_told_all_at_once(run: Run, with_jobs: Path) -> None:
    """Who would bring a stranger's plugin is not guessed."""
    done = run("replay", with_jobs, "--set", "policy.select=select/liner", "--set", "policy.search=a/b_c")
    assert done.status == 2
    assert "policy.select: no plugin named 'select/liner'" in done.err
    assert "did you mean 'select/linear'?" in done.err
    assert "policy.search: no plugin named 'a/b_c'" in done.err
    assert "its own documentation says which package brings it" in done.err
    assert "pip install" not in done.err


@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        pytest.param("import nothing_at_all", 2, "ModuleNotFoundError", id="cannot be imported"),
        pytest.param("raise SystemExit(3)", 2, "SystemExit: 3", id="ends the program"),
        pytest.param(
            "from makeway.hookspecs import hookimpl\n@hookimpl\ndef makeway_preempt_candidate(): ...\n",
            2,
            "did you mean 'makeway_preempt_candidates'?",
            id="mistyped hook",
        ),
        pytest.param(
            "from makeway.hookspecs import hookimpl\n"
            "@hookimpl\ndef makeway_preempt_candidates(preemptor): return 1 / 0\n",
            1,
            "plugin 'preempt/odd' of makeway-odd 1.0, hook makeway_preempt_candidates for job 2: raised ZeroDiv",
            id="raises",
        ),
        pytest.param(
            "from makeway.hookspecs import hookimpl\n"
            "@hookimpl\ndef makeway_preempt_candidates(preemptor): return 7\n",
            1,
            "returned 7; allowed: Candidates",
            id="answers nonsense",
        ),
    ],
)
def test_a_bad_plugin_is_blamed(
    run: Run, install: Install, with_jobs: Path, source: str, status: int, message: str
) -> None:
    """By name, without a traceback."""
    install("makeway-odd", {"preempt/odd": "makeway_odd"}, {"makeway_odd": source})
    done = run("replay", with_jobs, "--set", "policy.preempt=preempt/odd")
    assert done.status == status
    assert "preempt/odd" in done.err
    assert message in done.err


def test_a_name_offered_twice_is_refused(run: Run, install: Install, with_jobs: Path) -> None:
    """Naming both distributions."""
    for name in ("makeway-one", "makeway-two"):
        install(name, {"preempt/same": "makeway_same"}, {"makeway_same": ""})
    done = run("replay", with_jobs, "--set", "policy.preempt=preempt/same")
    assert done.status == 2
    assert "makeway-one 1.0, makeway-two 1.0" in done.err


def test_wrong_settings_of_a_plugin_name_the_file(run: Run, with_jobs: Path) -> None:
    """With path and nearest match."""
    text = '[policy.settings."gang/timeslice"]\ntimeslise = 3\n'
    with_jobs.write_text(with_jobs.read_text().replace('["requeue"]', f'["suspend", "gang"]\n{text}'))
    done = run("replay", with_jobs)
    assert done.status == 2
    assert (
        f"{with_jobs}: policy.settings.\"gang/timeslice\".timeslise: unknown key; did you mean 'timeslice'?"
    ) in done.err


# ------------------------------------------------------------------------------------- surprises
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError("x", []), 2),
        (PluginError("x"), 2),
        (PolicyError("x", "y", None, "z"), 1),
        (RunnerError("x"), 1),
        (InvariantError("x"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_statuses(error: Any, status: int) -> None:
    """2: it cannot be done as asked; 1: the run failed."""
    assert status_of(error) == status


def _raising(error: BaseException) -> Callable[..., Any]:
    def raise_it(*_: Any, **__: Any) -> Any:
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        pytest.param(KeyError("x"), 1, "internal error, please report it: KeyError: 'x'", id="defect"),
        pytest.param(OSError(28, "No space left", "f"), 1, "makeway: f: No space left", id="disk"),
        pytest.param(MemoryError(), 1, "out of memory", id="memory"),
        pytest.param(RunnerError("time ran backwards"), 1, "time ran backwards", id="on purpose"),
        pytest.param(KeyboardInterrupt(), 130, "", id="interrupted"),
    ],
)
def test_nothing_ends_with_a_traceback(
    run: Run,
    with_jobs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    message: str,
) -> None:
    """And what was stored before is still there."""
    target = tmp_path / "run.json"
    target.write_text("precious")
    before = sorted(path.name for path in tmp_path.iterdir())
    monkeypatch.setattr(running, "run_replay", _raising(error))
    done = run("replay", with_jobs, "--json", target)
    assert done.status == status
    assert message in done.err
    assert done.out == ""
    assert target.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_debugging_shows_the_traceback(with_jobs: Path) -> None:
    """To whoever asks for it."""
    done = _makeway("replay", with_jobs, "--json", "/", MAKEWAY_DEBUG="1")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


# ------------------------------------------------------------------------------- real processes
def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "makeway", *map(str, arguments)]


def _makeway(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(*arguments),
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_file_beside_that_was_not_read_is_named(run: Run, tmp_path: Path) -> None:
    """Its rows may be what is missed."""
    pytest.importorskip("makeway_lsf_queue")
    (tmp_path / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = normal\nEnd Queue\n")
    (tmp_path / "lsb.hosts").write_text("Begin Host\nHOST_NAME MXJ MIG\nh1 16\nEnd Host\n")
    done = run("check", tmp_path / "lsb.queues")
    assert done.status == 1
    assert "lsb.queues does not say which nodes there are" in done.out
    assert "lsb.hosts:3: got 2 columns, allowed: 3; the row is ignored" in done.out


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(closed: str, with_jobs: Path, tmp_path: Path) -> None:
    """As cron and daemons start commands; the files that are written hold what they should."""
    record = tmp_path / "record.json"
    command = shlex.join([str(each) for each in _command("replay", with_jobs, "--json", record)])
    done = subprocess.run(f"{command} {closed}", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(record.read_text())["metrics"]["jobs"]


def test_the_module_is_the_command() -> None:
    """``python -m makeway`` answers under its name."""
    done = _makeway("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("makeway ")


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(with_jobs: Path) -> None:
    """Whoever reads may stop reading."""
    many = [f"--squeue-at={n / 100}" for n in range(3000)]
    process = subprocess.Popen(
        _command("replay", with_jobs, *many),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait()


def _hear_all() -> None:
    """Undo what shells and nohup do to commands in the background: their children ignore SIGINT, or SIGHUP."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _broken_off(config: Path, tmp_path: Path, number: signal.Signals) -> tuple[int, str, str]:
    """Send a signal to a replay that has begun to write its log; return its status and what it printed."""
    trace = tmp_path / "long.swf"
    tail = "0 50 4 -1 -1 4 60 -1 1 7 7 -1 -1 -1 -1 -1"
    trace.write_text("\n".join(f"{n} {n} {tail}" for n in range(1, 200_000)))
    process = subprocess.Popen(
        _command("replay", config, trace, "--log", tmp_path / "run.jsonl"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_all,
    )
    while not any(part.stat().st_size for part in tmp_path.glob(".run.jsonl.*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    # On a busy machine it says meanwhile how far it is.
    said = [line for line in err.splitlines(keepends=True) if not line.startswith("replaying: at ")]
    return process.returncode, out, "".join(said)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_being_told_to_end_is_quiet(
    config: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """Exit status 128 and the signal, and no half of a file."""
    assert _broken_off(config, tmp_path, number) == (status, "", "")
    assert not list(tmp_path.glob("*run.jsonl*"))


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_written_and_says_where_it_stopped(config: Path, tmp_path: Path) -> None:
    """The log under a name of its own, whole lines up to the last instant; the file of an earlier run stays."""
    before = tmp_path / "run.jsonl"
    before.write_text("earlier\n")
    status, out, err = _broken_off(config, tmp_path, signal.SIGINT)
    assert (status, out) == (130, "")
    assert before.read_text() == "earlier\n"
    first, second, third = err.splitlines()
    assert first == "makeway: interrupted"
    assert re.fullmatch(r"  replaying: stopped at second [\d,]+.*, ([\d,]+ of )?[\d,]+ jobs? ended", second)
    assert third == f"  {before}.partial has what happened up to then"
    lines = [json.loads(line) for line in Path(f"{before}.partial").read_text().splitlines()]
    assert (lines[0]["kind"], lines[-1]["kind"]) == ("record", "metrics")
    assert sorted(each.name for each in tmp_path.glob("*run.jsonl*")) == ["run.jsonl", "run.jsonl.partial"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_takes_no_table_away(config: Path, tmp_path: Path) -> None:
    """The page cannot be written: its name is told, the tables and the record are there."""
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text('{"id": 1, "nodes": 1, "run_time": 1}\n')
    record = tmp_path / "run.json"
    done = subprocess.run(
        _command("replay", config, jobs, "--report", "/dev/full", "--log", "/dev/full", "--json", record),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "mean wait" in done.stdout
    assert done.stderr.splitlines() == ["makeway: /dev/full: No space left on device"] * 2
    assert json.loads(record.read_text())["metrics"]["jobs"] == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["plugins"], ["replay", "--help"]], ids=" ".join
)
def test_a_full_disk_is_one_line(arguments: list[str]) -> None:
    """Also where only a text is printed; it says that it is the output."""
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            _command(*arguments), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (process.returncode, process.stderr) == (1, "makeway: standard output: No space left on device\n")


@pytest.mark.parametrize(
    "key",
    [
        *(
            "cluster.licenses.a",
            "cluster.max_mem_per_cpu",
            "node.0.gres.gpu",
            "node.0.memory_mb",
            "node.0.load",
        ),
        *("partition.low.max_time", "partition.low.default_time", "partition.low.min_nodes"),
        *("partition.low.max_nodes", "partition.low.grace_time", "partition.low.max_cpus_per_node"),
        *("scheduler.max_requeues", "scheduler.over_time_limit", "policy.preemption.exempt_time"),
        *("policy.preemption.reorder_count", "policy.preemption.min_exempt_priority"),
    ],
)
def test_negative_numbers_are_refused(run: Run, with_jobs: Path, key: str) -> None:
    """Wherever they make no sense; some were taken as they came."""
    done = run("replay", with_jobs, "--set", f"{key}=-1")
    assert done.status == 2
    assert "got -1" in done.err
    assert "allowed: 0 or more" in done.err


@pytest.mark.parametrize("name", ["", " ", "a\\u001b[31m"])
def test_partitions_have_names(run: Run, with_jobs: Path, name: str) -> None:
    """That can be shown."""
    with_jobs.write_text(with_jobs.read_text().replace('name = "high"', f'name = "{name}"'))
    done = run("check", with_jobs)
    assert done.status == 1
    assert "error: partition[1].name: got " in done.out
    assert "allowed: printable characters" in done.out


def test_a_limit_beyond_all_numbers_is_refused(run: Run, config: Path, workload: Path) -> None:
    """Not an internal error."""
    done = run("replay", config, workload, "--limit", 10**20)
    assert done.status == 2
    assert "is not in the range" in done.err


def test_a_name_where_there_is_none(run: Run, config: Path, workload: Path) -> None:
    """'allowed: none' read as if none were a name."""
    done = run("replay", config, workload, "--map", "user=a:qos=none")
    assert done.status == 2
    assert "no QOS named 'none'; there is none of any name" in done.err


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("w.jsonl:3.id", "in/w.jsonl:3.id: wrong"),
        ("in/w.jsonl:3 Key", "in/w.jsonl:3 Key: wrong"),
        ("w.jsonl", "in/w.jsonl: wrong"),
        ("w.jsonl2:3", "in/w.jsonl: w.jsonl2:3: wrong"),
        ("job[0].id", "in/w.jsonl: job[0].id: wrong"),
        ("", "in/w.jsonl: wrong"),
    ],
)
def test_one_problem_names_its_file_once(where: str, text: str) -> None:
    """With the way there, and the line."""
    assert str(ConfigError("in/w.jsonl", [Problem(where, "wrong")])) == text
