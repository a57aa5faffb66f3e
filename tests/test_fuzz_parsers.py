"""No file, however broken, costs more than seconds and a gigabyte, or ends in anything but an error that says why.

The samples of the repository are mutated and read; each mutant has 5 s of a processor and 1 GiB. The default run tries
a few, the nightly one 60,000 (`MAKEWAY_FUZZ_MUTANTS`, `MAKEWAY_FUZZ_SEED`).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import resource
import signal
import sqlite3
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from makeway import registry
from makeway.config import Config
from makeway.errors import MakewayError, PluginError
from makeway.hostlist import expand_hostlist
from makeway.readers.api import ReadOptions
from makeway.readers.lines import read_head
from makeway.state import read_state
from makeway_app.cli import cli
from makeway_app.cli.inputs import load_config
from makeway_app.readers.foreign import FileSource
from makeway_app.readers.open import open_workload
from makeway_slurm.readers.sacctmgr import read_accounting

ROOT = Path(__file__).parent.parent
SECONDS = 30.0
BYTES = 1 << 30
BATCH = 200
"""Mutants that one process reads: what one leaves behind must not hurt for long."""
MOST_JOBS = 20_000


class TooLong(BaseException):
    """A mutant took too long."""


# ------------------------------------------------------------------------------------ what is read
def as_config(path: Path) -> None:
    """Read a configuration, native or foreign."""
    try:
        load_config(path)
    except MakewayError as error:
        if "--nodes" not in str(error):
            raise
        nodes = path.with_name("machines.toml")
        nodes.write_text('node = [{ name = "n[1-20]", cpus = 8, memory_mb = 16000 }]')
        load_config(path, nodes=nodes)


def as_workload(path: Path) -> None:
    """Read a workload to its end."""
    workload = open_workload(path, ReadOptions(config=Config()))
    for _ in zip(range(MOST_JOBS), workload.jobs, strict=False):
        pass


def as_accounting(path: Path) -> None:
    """Read what sacctmgr printed."""
    read_accounting([str(path)])


def as_state(path: Path) -> None:
    """Read a state of a run."""
    read_state(path.read_bytes().decode(errors="replace"), str(path))


def as_hosts(path: Path) -> None:
    """Read a host list."""
    with contextlib.suppress(ValueError):
        expand_hostlist(path.read_bytes().decode(errors="replace"))


def as_script(path: Path) -> None:
    """Read the #SBATCH lines of a script."""
    import shlex

    from makeway_local_world.commands.scripts import read
    from makeway_slurm.readers.sbatch_args import parse_sbatch

    read(path)
    text = path.read_bytes().decode(errors="replace")
    words = [word for line in text.splitlines() if line.startswith("#SBATCH") for word in line.split()[1:]]
    with contextlib.suppress(ValueError):
        parse_sbatch(words, id="1")
    with contextlib.suppress(ValueError):
        parse_sbatch(shlex.split(text, comments=True), id="1")


def as_journal(path: Path) -> None:
    """Read a journal as a workload, its contents, and where it stands."""
    from makeway_live.contents import contents, lines

    as_workload(path)
    contents(path)
    lines(path, 50)


def as_recording(path: Path) -> None:
    """Read what ``makeway verify`` is given: a scenario of Slurm, or a recording of any scheduler."""
    from makeway_slurm.recordings.priority import recording as priorities
    from makeway_slurm.recordings.recording import read_recording
    from makeway_slurm.recordings.scenario import build_scenario, read_scenario_file

    if path.suffix == ".toml":
        build_scenario(read_scenario_file(path))
        return
    offered = [each for each in registry.offered("recordings")[0] if hasattr(each, "recorded")]
    known = [each for each in offered if each.claims(path.name, read_head(path))]
    if known:
        known[0].recorded(FileSource(path))
    elif priorities.looks_so(path.read_bytes().decode(errors="replace")):
        priorities.read(path)
    else:
        read_recording(path)


def as_record(path: Path) -> None:
    """Read the record of a replay: as a page, as tables, against itself."""
    there = str(path)
    for words in (
        ["report", there, "-o", f"{there}.html"],
        ["export", there, "--to", "csv", "-o", f"{there}.tables"],
        ["compare", there, there],
    ):
        told = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert "internal error" not in told.output, told.output


Reader = Callable[[Path], None]
SAMPLES: dict[Reader, tuple[str, ...]] = {
    as_config: (
        "examples/**/*.toml",
        "examples/*/*.cfg",
        "examples/*/*.yaml",
        "examples/lsf/lsb.queues",
        "examples/*/slurm.conf",
        "plugins/slurm/tests/data/slurm/*.conf",
        "plugins/*/tests/data/**/moab.cfg",
        "plugins/app/tests/gpu_traces/data/**/*.csv",
        "tests/sites/*/sched_config",
    ),
    as_workload: (
        "examples/**/*.sacct",
        "examples/**/*jobs*.toml",
        "plugins/*/tests/data/**/*.sacct",
        "plugins/*/tests/data/**/*.swf",
        "plugins/app/tests/gpu_traces/data/**/*.csv",
    ),
    as_accounting: ("plugins/slurm/tests/data/**/*assoc*", "plugins/slurm/tests/data/**/*qos*.txt"),
    as_recording: (
        "tests/recordings/scenarios/cons_rows_*.toml",
        "tests/recordings/results-*/gang_*.json",
        "tests/priority/array_*.json",
        "plugins/kueue_cohort/tests/recordings/fair_00*.json",
        "plugins/moab_qos/tests/recordings/c*.json",
    ),
}
TEXTS: tuple[tuple[Reader, str], ...] = (
    (as_hosts, "n[01-03,7],login,r[1-2]n[1-4]x,a-b.c"),
    (
        as_state,
        '{"makeway_state": 1, "at": 5.0, "jobs": [{"spec": {"id": "1", "run_time": 5}, "priority": 3}]}',
    ),
    (
        as_accounting,
        "Name|Priority|GraceTime|Preempt|PreemptMode|PreemptExemptTime\n"
        "low|0|00:01:00||requeue|\nhigh|9||low|cluster|01:00\n",
    ),
    (
        as_accounting,
        "ReservationName=maint StartTime=2024-06-01T00:00:00 EndTime=2024-06-01T04:00:00 Nodes=n[1-4] Flags=MAINT\n",
    ),
    (
        as_accounting,
        "ClusterName=c Account=physics UserName=ann(1000) Partition= ID=3 "
        "UsageRaw/Norm/Efctv=3600.0/0.1/0.1 ParentAccount=root(1) GrpWall=N(60.0) GrpTRESMins=cpu=600(30),mem=N(10)\n",
    ),
    (
        as_script,
        "#!/bin/sh\n#SBATCH -n 4 --mem=4G\n#SBATCH --time=1-02:03:04 --array=0-99%4\n#SBATCH -w n[1-4]\ntrue\n",
    ),
    (
        as_workload,
        "06/01/2024 01:00:10;E;12.pbs;user=ann group=staff queue=workq ctime=1717200000 qtime=1717200000 "
        "etime=1717200000 start=1717200010 exec_host=n1/0*4+n2/0*4 Resource_List.ncpus=8 Resource_List.mem=8gb "
        'Resource_List.walltime=02:00:00 account="ocean wave" end=1717203610 Exit_status=0\n',
    ),
    (
        as_workload,
        '"JOB_FINISH" "10.1" 1717200630 101 1000 33816578 4 1717200000 0 0 1717200030 "ann" "night" '
        '"select[type==any]" "" "" "login" "/home/ann" "" "" "" "1.101" 1 "n1" 2 "n1" "n2" 64 60.0 "sim" "a b" 0.5 '
        + "-1 " * 18
        + '"" "climate" 0 4 "" "" 0 2048 4096 "" "" -1 "" 8 "" 0\n',
    ),
    (
        as_workload,
        '{"jobs": [{"job_id": 7, "user": "ann", "partition": "p", "time": {"submission": 1717200000, '
        '"start": 1717200010, "end": 1717200110, "elapsed": 100, "limit": {"number": 60, "set": true}}, '
        '"state": {"current": ["COMPLETED"]}, '
        '"required": {"CPUs": 4, "memory_per_cpu": {"number": 100, "set": true}}, "tres": {"requested": []}}]}',
    ),
)


@functools.cache
def samples() -> list[tuple[Reader, str, bytes]]:
    """Return what is mutated: reader, name of the file, bytes."""
    found = [
        (reader, path.name, path.read_bytes()[: 64 << 10])
        for reader, patterns in SAMPLES.items()
        for pattern in patterns
        for path in sorted(ROOT.glob(pattern))
        if path.is_file() and path.stat().st_size < 1 << 20
    ]
    found += [(reader, "sample", text.encode()) for reader, text in TEXTS]
    found.append((as_journal, "journal.db", journal()))
    found.append((as_record, "record.json", record()))
    assert len({reader for reader, _, _ in found}) >= 9
    return found


def record() -> bytes:
    """Return the record of a small replay."""
    site = ROOT / "examples/site"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        words = [
            "replay",
            str(site / "slurm.conf"),
            str(site / "june.sacct"),
            "--limit",
            "12",
            "--json",
            str(path),
        ]
        told = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert told.exit_code == 0, told.output
        return path.read_bytes()


def journal() -> bytes:
    """Return a journal with a job, a step and a line."""
    from makeway_live.journal_file import connect

    spec = json.dumps({"id": "1", "run_time": 5.0, "partitions": ["normal"]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        database = connect(path, write=True)
        database.execute("INSERT INTO steps VALUES (1, 0.0, 1e9, '[]')")
        database.execute("INSERT INTO jobs VALUES ('1', 1, ?, NULL, 'COMPLETED', 0, 5, 5, 0)", (spec,))
        database.execute("INSERT INTO lines VALUES (1, 1, 0, 'state', '1', '{\"state\": \"RUNNING\"}')")
        held = json.dumps({"event": "Command", "name": "hold", "job_id": "1"})
        database.execute("INSERT INTO commands VALUES (1, 1, ?)", (held,))
        database.execute("INSERT INTO configs VALUES (1, 0, 'node = []')")
        with contextlib.suppress(sqlite3.Error):
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        database.close()
        return path.read_bytes()


# --------------------------------------------------------------------------------------- mutants
NASTY = (
    b"[" * 3000,
    b"{" * 3000,
    b"(" * 3000,
    b"a." * 50_000,
    b"9" * 5000,
    b"n[0-999999999]",
    b"n[1-2]" * 500,
    b",".join(b"n[%d-%d]" % (at, at) for at in range(20_000)),
    b"\0",
    b"\xff\xfe",
    b"\x1b]0;x\x07",
    b"-1",
    b"1e999",
    b"nan",
    b"10**400",
    b'"' * 100,
    b"\\" * 1000,
    b"include x\n" * 50,
    b"&a [*a]",
    b"*a",
    b"<<: *a",
    b"[*a,*a,*a,*a,*a,*a,*a,*a]",
    b"UNLIMITED",
    b"99999999999999999999-00:00:00",
    b"|" * 5000,
    b"=" * 500,
    b",," * 500,
    b"\r",
    b"\t" * 1000,
    b"%n" * 200,
    "\u2028\ud83d\ude00".encode("utf-8", "surrogatepass"),
    b"a&" * 20_000,
    b"!" * 5000,
    b"#" * 10,
    b"\n[[job]]\n" * 200,
)


def mutant(rng: random.Random, pool: Sequence[bytes], data: bytes) -> bytes:
    """Return one broken version of a sample."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        kind = rng.randrange(8)
        if kind == 0:
            data = data[:at]
        elif kind == 1 and data:
            place = rng.randrange(len(data))
            data = data[:place] + bytes((data[place] ^ (1 << rng.randrange(8)),)) + data[place + 1 :]
        elif kind == 2:
            data = data[:at] + data[min(to, at + rng.randrange(1, 64)) :]
        elif kind == 3:
            data = data[:at] + data[at : at + 200] * rng.choice((2, 5, 40)) + data[at:]
        elif kind == 4:
            other = rng.choice(pool)
            start = rng.randrange(len(other) + 1)
            data = data[:at] + other[start : start + rng.randrange(400)] + data[at:]
        elif kind == 5:
            data = data[:at] + rng.choice(NASTY) + data[at:]
        elif kind == 6:
            words = data.split()
            if words:
                data = data.replace(rng.choice(words), rng.choice((rng.choice(words), rng.choice(NASTY))), 1)
        else:
            lines = data.splitlines(keepends=True)
            rng.shuffle(lines)
            data = b"".join(lines)
        data = data[: 1 << 20]
    return data


def verdict(reader: Reader, path: Path) -> str:
    """Read a file; say what is wrong with how it went, or nothing."""

    def late(number: int, frame: Any) -> None:
        raise TooLong("".join(traceback.format_stack(frame)[-3:]))

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        reader(path)
    except PluginError as error:
        return f"the reader failed: {error}"
    except (MakewayError, click.ClickException):
        return ""
    except OSError as error:
        return "" if isinstance(error, FileNotFoundError | IsADirectoryError) else f"{error!r}"
    except TooLong as late_:
        return f"more than {SECONDS:g} s\n{late_}"
    except BaseException as error:
        return "".join(traceback.format_exception(error)[-4:])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def batch(seed: int, count: int) -> list[tuple[str, str, str]]:
    """Try `count` mutants in a process with a limit; return what went wrong: sample, mutant, how."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with contextlib.suppress(BaseException):
            os.write(writing, json.dumps(list(tried(seed, count))).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    if not text:
        return [("?", f"seed {seed}", f"the process ended with status {status}")]
    return [(sample, kept, how) for sample, kept, how in json.loads(text)]


def tried(seed: int, count: int) -> Iterator[tuple[str, str, str]]:
    """Yield what went wrong."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, size + BYTES))
    rng = random.Random(seed)
    known = samples()
    pool = [data for _, _, data in known]
    with tempfile.TemporaryDirectory() as folder:
        for at in range(count):
            reader, name, data = rng.choice(known)
            path = Path(folder) / name
            path.write_bytes(mutant(rng, pool, data))
            how = verdict(reader, path)
            if how:
                kept = Path(tempfile.gettempdir()) / f"makeway-mutant-{seed}-{at}-{name}"
                kept.write_bytes(path.read_bytes())
                yield f"{reader.__name__} {name}", str(kept), how


def run(mutants: int, seed: int) -> None:
    """Try mutants, and fail with the first that went wrong."""
    samples()  # made once, for all the processes
    for at in range(0, mutants, BATCH):
        found = batch(seed * 1_000_000 + at, min(BATCH, mutants - at))
        assert not found, "\n\n".join(f"{sample}, kept as {kept}: {how}" for sample, kept, how in found[:5])


def test_the_samples_themselves_are_read() -> None:
    """Else their mutants would show nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for reader, name, data in samples():
            path = Path(folder) / name
            path.write_bytes(data)
            how = verdict(reader, path)
            assert not how, f"{name}: {how}"


@pytest.mark.slow
def test_some_mutants_do_no_harm() -> None:
    """A share of the nightly run."""
    run(int(os.environ.get("MAKEWAY_FUZZ_MUTANTS", "200")), int(os.environ.get("MAKEWAY_FUZZ_SEED", "1")))


@pytest.mark.nightly
def test_many_mutants_do_no_harm() -> None:
    """60,000."""
    run(int(os.environ.get("MAKEWAY_FUZZ_MUTANTS", "60000")), int(os.environ.get("MAKEWAY_FUZZ_SEED", "2")))
