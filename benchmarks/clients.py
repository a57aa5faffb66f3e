"""Measure what a command costs that people type: the whole process, from its start to its end.

``python benchmarks/clients.py [--rounds 40] [--jobs 200] [--directory DIR]``

A daemon of its own is asked, by `makeway` and by a client of ten lines that imports nothing but `json` and `socket`.
`tsp`, `nq` and `sbatch` are measured beside them where they are installed; `sbatch` needs a Slurm that runs. The first
line is what a job prints of the time at which it begins. Jobs a second are those of `true` on two slots, all handed in
at once, but by `tsp` one after another.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from local_daemon import Bench, told

_PLAIN = """
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["MAKEWAY_STATE"] + "/socket")
b = json.dumps({"command": ["true"], "cwd": os.getcwd(), "environment": dict(os.environ), "output": "/dev/null"})
s.sendall(b"POST /v1/jobs HTTP/1.0\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(b) + b.encode())
r = b"".join(iter(lambda: s.recv(65536), b""))
print(json.loads(r.partition(b"\\r\\n\\r\\n")[2])["id"])
"""


def commands() -> dict[str, list[str]]:
    """Return what is measured, by name."""
    makeway = [str(Path(sys.executable).with_name("makeway"))]
    found = {
        "a client of the standard library: submit": [sys.executable, "-c", _PLAIN],
        "makeway submit": [*makeway, "submit", "-o", "/dev/null", "--", "true"],
        "makeway queue": [*makeway, "queue"],
        "makeway why": [*makeway, "why", "1"],
        "makeway wait": [*makeway, "wait", "1"],
        "makeway logs": [*makeway, "logs", "--path", "1"],
        "makeway cancel": [*makeway, "cancel", "--user"],
    }
    if shutil.which("tsp"):
        found["tsp"] = ["tsp", "true"]
    if shutil.which("nq"):
        found["nq"] = ["nq", "true"]
    if shutil.which("sbatch") and not subprocess.run(["sinfo"], capture_output=True, check=False).returncode:
        found["sbatch"] = ["sbatch", "-o", "/dev/null", "--wrap", "true"]
    return found


def first_lines_of() -> dict[str, list[str]]:
    """Return the commands that hand in a job whose first line is waited for, by name."""
    makeway = str(Path(sys.executable).with_name("makeway"))
    found = {"makeway submit: first line": [makeway, "submit", "-o", "/dev/null", "--"]}
    if shutil.which("tsp"):
        found["tsp: first line"] = ["tsp", "-n"]
    if shutil.which("nq"):
        found["nq: first line"] = ["nq"]
    return found


def first_line(command: list[str], environ: dict[str, str], directory: Path) -> float:
    """Return the milliseconds from the start of a command to the first thing that its job does."""
    path = directory / "first"
    path.unlink(missing_ok=True)
    begun = time.time_ns()
    job = ["sh", "-c", f"date +%s%N > {path}.new; mv {path}.new {path}"]
    subprocess.run([*command, *job], env=environ, stdout=subprocess.DEVNULL, check=True)
    while not path.exists():
        time.sleep(0.001)
    return (int(path.read_text()) - begun) / 1e6


def rates(jobs: int, bench: Bench) -> dict[str, float]:
    """Return jobs of `true` a second, by name."""
    body = {
        "command": ["true"],
        "cwd": "/",
        "output": "/dev/null",
        "environment": {"PATH": os.environ["PATH"]},
    }
    begun = time.perf_counter()
    array = bench.daemon.post("/v1/jobs", {**body, "array": f"0-{jobs - 1}"})["id"]
    while not bench.daemon.get(f"/v1/jobs/{array}/wait")["ended"]:
        pass
    found = {"makeway, an array": jobs / (time.perf_counter() - begun)}
    if shutil.which("tsp"):
        subprocess.run(["tsp", "-S", "2"], check=True)
        begun = time.perf_counter()
        for _ in range(jobs):
            subprocess.run(["tsp", "-n", "true"], stdout=subprocess.DEVNULL, check=True)
        subprocess.run(["tsp", "-w"], check=False)
        found["tsp, one after another"] = jobs / (time.perf_counter() - begun)
    return found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--directory", type=Path, help="where the state shall be; else in /tmp")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=200)
    given = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    directory = Path(tempfile.mkdtemp(prefix="mw-", dir=given.directory or "/tmp"))
    bench = Bench(directory, 2)
    environ = {**os.environ, "MAKEWAY_STATE": str(directory / "s"), "NQDIR": str(directory)}
    try:
        bench.submit("true")
        took: dict[str, list[float]] = {}
        for _ in range(given.rounds):
            for name, command in commands().items():  # by turns: a busy moment of the machine hits all
                begun = time.perf_counter()
                subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
                took.setdefault(name, []).append((time.perf_counter() - begun) * 1e3)
            for name, command in first_lines_of().items():
                took.setdefault(name, []).append(first_line(command, environ, directory))
        for name, values in took.items():
            told(name, values)
        for name, rate in rates(given.jobs, bench).items():
            print(f"`true` on two slots, {name:<37} {rate:8.1f} a second")
    finally:
        bench.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
