"""Play in the Slurm of another Debian, in a root of its own.

    python tests/oracle/roots.py ROOT SUITE COMMAND ...

The folders of a root are made by ``mmdebstrap``, once. Each play sees it through mounts of its own, which are gone
when the play is over; it shares the machine's clock, ports and /tmp with all others. As a program it runs a command
there, in the folder in which it was called, beside this repository and this Python.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurm-client",
    "slurmdbd",
    "slurm-wlm-mysql-plugin",
    "munge",
    "mariadb-server",
    "python3",
    "gcc",
    "libc6-dev",
)
DATABASE_SUITE = "bookworm"
"""Debian whose MariaDB (10.11) every slurmdbd so far works with; those of 24.11 and 26.05 refuse 11.8."""
_INSIDE = Path("/mnt")
_ENTER = """root=$1; shift
for each in proc dev sys tmp; do mount --rbind /$each "$root/$each"; done
while [ "$1" != -- ]; do mkdir -p "$root$2"; mount --bind "$1" "$root$2"; shift 2; done
shift
exec chroot "$root" "$@"
"""


def make(root: Path, suite: str) -> None:
    """Make the root of a Debian with a Slurm, unless it is there.

    :raises RuntimeError: mmdebstrap failed.
    """
    if (root / "usr/sbin/slurmctld").exists():
        return
    options = ['--aptopt=Acquire::Check-Valid-Until "false"', "--variant=apt"]
    done = subprocess.run(
        ["mmdebstrap", *options, f"--include={','.join(PACKAGES)}", suite, str(root)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"mmdebstrap {suite} {root}: {done.stderr.strip()[-500:]}")


def within(root: Path, argv: Sequence[str], folders: Mapping[Path, Path]) -> list[str]:
    """Return the command line that runs `argv` in the root.

    :param folders: where the root shows which folders of this machine.
    """
    shutil.copy(
        "/etc/hosts", root / "etc/hosts"
    )  # without the machine's name each step stands still for 10 s
    seen = [str(path) for inside, own in folders.items() for path in (own, inside)]
    enter = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", _ENTER, "sh", str(root)]
    return [*enter, *seen, "--", *argv]


@contextlib.contextmanager
def database(root: Path, folder: Path) -> Iterator[int]:
    """Run the MariaDB of a root meanwhile; yield its port on 127.0.0.1, for ORACLE_DB_PORT.

    :param folder: where its files go, for as long as it runs.
    :raises RuntimeError: it does not start.
    """
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    folder.mkdir(parents=True)
    data = _INSIDE / "data"
    first = folder / "first.sql"
    first.write_text(
        "create user 'slurm'@'127.0.0.1' identified by 'slurm';\ngrant all on *.* to 'slurm'@'127.0.0.1';\n"
    )
    own = ["--no-defaults", "--user=root", f"--datadir={data}/db"]
    tmp = f"TMPDIR={data}"  # its temporary tables have the same names in every installation
    install = [
        "env",
        tmp,
        "mariadb-install-db",
        *own,
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
    ]
    serve = [
        *[
            "env",
            tmp,
            "mariadbd",
            *own,
            f"--socket={data}/socket",
            f"--pid-file={data}/pid",
            f"--port={port}",
        ],
        *["--bind-address=127.0.0.1", "--skip-name-resolve", f"--init-file={data}/{first.name}"],
        *["--innodb-flush-log-at-trx-commit=0", "--skip-log-bin", "--max-connections=500"],
    ]
    folders = {data: folder.resolve()}
    subprocess.run(within(root, install, folders), check=True, capture_output=True)
    server = subprocess.Popen(
        within(root, serve, folders), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, server)
        yield port
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60.0
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.1)
    raise RuntimeError(f"no MariaDB answers on 127.0.0.1:{port}")


@attrs.frozen
class Slurm:
    """A Slurm that plays scenarios: this machine's, or that of a root."""

    runner: Path
    """Program that plays one scenario."""
    root: Path | None = None
    """None: this machine's."""
    port: int | None = None
    """Of a MariaDB on 127.0.0.1; None: each play starts its own."""

    def play(self, scenario: Path, result: Path) -> str:
        """Play a scenario; return why it failed, or nothing."""
        argv = ["python3", str(self.runner), str(scenario), "-o", str(result)]
        if self.root is not None:
            paths = {
                _INSIDE / "runner": self.runner,
                _INSIDE / "scenarios": scenario,
                _INSIDE / "results": result,
            }
            inside = [str(folder / path.name) for folder, path in paths.items()]
            folders = {folder: path.parent.resolve() for folder, path in paths.items()}
            argv = within(self.root, ["python3", *inside[:2], "-o", inside[2]], folders)
        env = {**os.environ, **({"ORACLE_DB_PORT": str(self.port)} if self.port is not None else {})}
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=900, env=env)
        return (done.stderr.strip() or f"exit status {done.returncode}")[-500:] if done.returncode else ""


@contextlib.contextmanager
def slurm(runner: Path, root: Path | None, suite: str, plays: Path) -> Iterator[Slurm]:
    """Have a Slurm ready meanwhile; its root, and that of its database, are made if they are missing.

    :param plays: folder in which the database may have its files.
    """
    if root is None:
        yield Slurm(runner)
        return
    make(root, suite)
    beside = root.parent / DATABASE_SUITE
    make(beside, DATABASE_SUITE)
    with database(beside, plays / f"database-{os.getpid()}") as port:
        yield Slurm(runner, root, port)


def run(root: Path, command: Sequence[str]) -> int:
    """Run a command in the root, in this folder, with this Python; return its exit status."""
    places = (Path(__file__).resolve().parents[2], Path.cwd(), Path(sys.prefix), Path(sys.base_prefix))
    path = f"{sys.prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    argv = within(root, ["env", "-C", str(Path.cwd()), *command], {each: each for each in places})
    return subprocess.run(argv, check=False, env={**os.environ, "PATH": path}).returncode


if __name__ == "__main__":
    if len(sys.argv) < 4:
        raise SystemExit(f"usage: {sys.argv[0]} ROOT SUITE COMMAND ...")
    make(Path(sys.argv[1]), sys.argv[2])
    raise SystemExit(run(Path(sys.argv[1]), sys.argv[3:]))
