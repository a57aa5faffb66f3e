"""Measure what a command costs that people type: the whole process, from its start to its end.

``python benchmarks/clients.py [--rounds 40] [--directory DIR]``

A daemon of its own is asked, by `makeway` and by a client of ten lines that imports nothing but `json` and `socket`.
`tsp` and `sbatch` are measured beside them where they are installed; `sbatch` needs a Slurm that runs.
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
    if shutil.which("sbatch") and not subprocess.run(["sinfo"], capture_output=True, check=False).returncode:
        found["sbatch"] = ["sbatch", "-o", "/dev/null", "--wrap", "true"]
    return found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--directory", type=Path, help="where the state shall be; else in /tmp")
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    directory = Path(tempfile.mkdtemp(prefix="mw-", dir=given.directory or "/tmp"))
    bench = Bench(directory, 2)
    environ = {**os.environ, "MAKEWAY_STATE": str(directory / "s")}
    try:
        bench.submit("true")
        took: dict[str, list[float]] = {}
        for _ in range(given.rounds):
            for name, command in commands().items():  # by turns: a busy moment of the machine hits all
                begun = time.perf_counter()
                subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
                took.setdefault(name, []).append((time.perf_counter() - begun) * 1e3)
        for name, values in took.items():
            told(name, values)
    finally:
        bench.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
