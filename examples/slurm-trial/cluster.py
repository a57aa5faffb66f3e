#!/usr/bin/env python3
"""Start and stop a small Slurm cluster on this machine, to try makeway on: a controller and emulated nodes.

    python3 cluster.py start DIR [--nodes 4] [--cpus 4]      prints the line that makes commands find it
    python3 cluster.py stop DIR
    python3 cluster.py kill DIR NAME                         kill -9 one daemon: slurmctld, n1, n2 ...
    python3 cluster.py again DIR NAME                        start it again

All of it lies in DIR and is gone after `stop`. Needs root and Debian's packages slurmctld, slurmd and slurm-client;
their services need not run, and are left alone. There is no munge and no database: anybody on this machine could
pretend to be anybody, so stop it when you are done.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

CONF = """\
ClusterName=trial
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort={port}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/%n.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
MinJobAge=300
SlurmctldTimeout=600
SlurmdTimeout=600
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
PriorityType=priority/basic
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
{nodes}
PartitionName=low Nodes=ALL PriorityTier=1 Default=YES MaxTime=UNLIMITED
PartitionName=high Nodes=ALL PriorityTier=10 MaxTime=UNLIMITED
"""
NODE = "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=4000 State=UNKNOWN"
FIRST_PORT, LAST_PORT = 21000, 29000
READY = 60.0


class Cluster:
    """A throw-away cluster in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.conf = self.directory / "slurm.conf"
        self.env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SLURM", "SBATCH", "SQUEUE", "SCANCEL", "SALLOC"))
        }
        self.env |= {"SLURM_CONF": str(self.conf), "LC_ALL": "C"}
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, nodes: int = 4, cpus: int = 4, extra: str = "") -> None:
        """Write the configuration and start all daemons; return once all nodes are idle.

        :param extra: further lines of slurm.conf; they win over those above, being later, except for records.
        """
        for each in ("log", "state", "spool", "out"):
            (self.directory / each).mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o755)
        (self.directory / "out").chmod(0o1777)
        port = free_ports(nodes + 1)
        lines = [NODE.format(name=f"n{k}", port=port + k, cpus=cpus) for k in range(1, nodes + 1)]
        text = CONF.format(dir=self.directory, port=port, nodes="\n".join(lines))
        self.conf.write_text(_merged(text, extra))
        # Slurm 22.05 wants to know the version of cgroups, also where it uses none.
        (self.directory / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self.begin("slurmctld")
        for k in range(1, nodes + 1):
            self.begin(f"n{k}")
        self.wait_until_idle(nodes)

    def begin(self, name: str) -> None:
        """Start one daemon: ``slurmctld`` or a node."""
        options = ["slurmctld", "-D"] if name == "slurmctld" else ["slurmd", "-D", "-N", name]
        with open(self.directory / "log" / f"{name}.out", "ab") as out:
            process = subprocess.Popen(
                options,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.env,
                cwd=self.directory,
                start_new_session=True,
            )
        self._children[process.pid] = process  # a program that goes on is to know when it has ended
        (self.directory / f"{name}.started").write_text(str(process.pid))

    def end(self, name: str, number: int = signal.SIGTERM) -> None:
        """End one daemon and wait until it is gone."""
        file = self.directory / f"{name}.started"
        if not file.exists():
            return
        pid = int(file.read_text())
        until = time.monotonic() + 10.0
        while _is_ours(pid, self.conf):
            _kill(pid, number if time.monotonic() < until else signal.SIGKILL)
            time.sleep(0.05)
        child = self._children.pop(pid, None)
        if child is not None:
            child.wait()
        file.unlink()

    def stop(self) -> None:
        """End all daemons and jobs, and remove the directory."""
        names = [each.name.removesuffix(".started") for each in self.directory.glob("*.started")]
        for name in sorted(names, key=lambda name: name != "slurmctld"):
            self.end(name)
        for pid in _all_of(self.conf):
            _kill(pid, signal.SIGKILL)
        for _ in range(20):  # job steps may still write their last files
            shutil.rmtree(self.directory, ignore_errors=True)
            if not self.directory.exists():
                return
            time.sleep(0.1)

    def run(self, *words: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm's against this cluster."""
        return subprocess.run(
            words,
            env=self.env,
            cwd=self.directory / "out",
            text=True,
            capture_output=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def wait_until_idle(self, nodes: int) -> None:
        """Wait until all nodes are idle.

        :raises RuntimeError: it took more than a minute.
        """
        until = time.monotonic() + READY
        states: list[str] = []
        while time.monotonic() < until:
            found = self.run("sinfo", "-h", "-N", "-o", "%N %t")
            states = sorted(set(found.stdout.splitlines()))
            if len(states) == nodes and all(line.endswith(" idle") for line in states):
                return
            time.sleep(0.1)
        raise RuntimeError(f"the cluster did not come up: {states}; see {self.directory / 'log'}")


def free_ports(count: int) -> int:
    """Return the first of `count` free ports in a row; different callers begin at different places."""
    span = LAST_PORT - FIRST_PORT
    first = FIRST_PORT + (os.getpid() * 97) % span
    for step in range(0, span, count):
        base = FIRST_PORT + (first - FIRST_PORT + step) % (span - count)
        if all(_is_free(base + k) for k in range(count)):
            return base
    raise RuntimeError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _merged(text: str, extra: str) -> str:
    """Let settings of `extra` replace those of the text; Slurm refuses some that are there twice."""
    keys = {line.partition("=")[0].strip().lower() for line in extra.splitlines() if "=" in line}
    keys -= {"nodename", "partitionname"}
    kept = [line for line in text.splitlines() if line.partition("=")[0].strip().lower() not in keys]
    return "\n".join([*kept, *extra.splitlines(), ""])


def _is_ours(pid: int, conf: Path) -> bool:
    """Whether a process still runs and belongs to this cluster: numbers of processes come back."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return f"SLURM_CONF={conf}".encode() in environ and state != "Z"


def _all_of(conf: Path) -> list[int]:
    """Return the daemons and jobs of this cluster; not this process, nor those that it runs in."""
    mine = {os.getpid(), os.getppid()}
    pids = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    daemons = (b"slurmstepd", b"slurmd", b"slurmctld", b"slurm_script")
    found = []
    for pid in pids:
        if pid not in mine and _is_ours(pid, conf):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                environ = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            if b"SLURM_JOB_ID=" in environ or any(name in line for name in daemons):
                found.append(pid)
    return found


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("verb", choices=("start", "stop", "kill", "again"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--cpus", type=int, default=4)
    given = parser.parse_args()
    cluster = Cluster(given.directory)
    if given.verb in ("kill", "again") and not given.name:
        parser.error("name a daemon: slurmctld, n1, ...")
    if given.verb == "start":
        if os.geteuid():
            parser.error("only root can start a cluster that runs jobs of several users")
        for tool in ("slurmctld", "slurmd", "scontrol"):
            if shutil.which(tool) is None:
                parser.error(f"{tool} is missing: apt-get install slurmctld slurmd slurm-client")
        try:
            cluster.start(given.nodes, given.cpus)
        except RuntimeError as error:
            sys.exit(str(error))
        print(f"export SLURM_CONF={cluster.conf}")
    elif given.verb == "stop":
        cluster.stop()
    elif given.verb == "kill":
        cluster.end(given.name, signal.SIGKILL)
    else:
        cluster.begin(given.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
