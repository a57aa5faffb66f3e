"""What slurmctld 22.05.8 starts with, and what it refuses: each row was found by starting it.

MAKEWAY_REAL_SLURM=1 starts it again, with Debian's slurmctld and slurm-client.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from makeway.errors import ConfigError
from makeway.readers.api import Loaded
from makeway_slurm.readers.conf import SlurmConfReader
from makeway_slurm.readers.defaults import DEFAULTS
from makeway_slurm.readers.releases import NEWER, RETIRED

NODES = "NodeName=n[1-4] NodeAddr=127.0.0.1 CPUs=4 RealMemory=4000"
PARTITION = "PartitionName=p Nodes=ALL Default=YES"
QUIET = os.environ.get("MAKEWAY_REAL_SLURM") != "1"
REAL = [
    pytest.mark.real_slurm,
    pytest.mark.slow,
    pytest.mark.skipif(
        QUIET or shutil.which("slurmctld") is None, reason="MAKEWAY_REAL_SLURM=1 starts slurmctld"
    ),
]

CONS = "SelectType=select/cons_tres"
CANCEL = "PreemptMode=CANCEL"
STARTS = [
    CONS,
    f"{CONS}\nSelectTypeParameters=CR_ALLOCATE_FULL_SOCKET",
    f'{CONS}\nSelectTypeParameters=""',
    f"{CONS}\nSelectTypeParameters=CR_Core_Memory,CR_ONE_TASK_PER_CORE",
    "SelectType=select/cons_res",
    "SelectType=select/cray_aries",
    'Authinfo="cred_expire=1200","ttl=1500"',
    "DefMemPerNode=1000\nDefMemPerCPU=100",
    "MaxMemPerNode=UNLIMITED\nMaxMemPerCPU=100",
    "DefMemPerCPU=UNLIMITED",
    "FastSchedule=1",
    "SchedulerAuth=42",
    "JobRequeue=2",
    "KillWait=INFINITE",
    "CompleteWait=INFINITE",
    "EnforcePartLimits=1",
    "AccountingStorageEnforce=associations,limits,qos,nojobs",
    "AccountingStorageEnforce=2",
    "OverTimeLimit=UNLIMITED",
    "Licenses=a*4,b:2;c",
    "SchedulerParameters=bf_interval=abc,bf_window=30m,default_queue_depth=",
    f"{PARTITION} State=DRAINED",
    f"{CONS}\n{PARTITION} SelectTypeParameters=CR_Core_Memory,CR_LLN",
    f"{PARTITION} DefMemPerNode=UNLIMITED DefMemPerCPU=7",
    f"{PARTITION} MaxMemPerCPU=0 MaxMemPerNode=500",
    "DownNodes=n9 State=DOWN",
    "NodeName=m1 NodeAddr=127.0.0.1 CPUs=0",
    "NodeName=m1 NodeAddr=127.0.0.1 CPUs=4 State=MIXED",
    "NodeName=m1 NodeAddr=127.0.0.1 CPUs=4 State=DRAINED",
]
REFUSED = [
    "CacheGroups=0",
    "FastSchedule=0",
    "FastSchedule=2",
    "SchedulerPort=7321",
    "DefaultStorageType=accounting_storage/none",
    "Frobnicate=1",
    f"{CONS}\nSelectTypeParameters=CR_Memory",
    f"{CONS}\nSelectTypeParameters=CR_LLN",
    f"{CONS}\nSelectTypeParameters=CR_Core,CR_Memory",
    f"{CONS}\nSelectTypeParameters=CR_Core,CR_CPU",
    f"{CONS}\nSelectTypeParameters=CR_Core,ENFORCE_BINDING_GRES",
    f"{CONS}\nSelectTypeParameters=NONE",
    f"{PARTITION} TRESBillingWeights=CPUU=1.0",
    "PriorityType=priority/multifactor\nPriorityWeightTRES=CPUU=1000",
    "SelectType=select/linear\nSelectTypeParameters=CR_Core",
    f"PreemptType=preempt/QOS\n{CANCEL}",
    "SchedulerType=sched/BACKFILL",
    "SchedulerType=sched/hold",
    "PriorityType=priority/Multifactor",
    "EnforcePartLimits=Y",
    "AccountingStorageEnforce=none",
    "JobRequeue=YES",
    "OverTimeLimit=-1",
    "DefMemPerCPU=2G",
    "MaxMemPerNode=64G",
    "PreemptExemptTime=NONE",
    'AuthInfo="a b"c',
    f"{PARTITION} MaxNodes=-1",
    f"{PARTITION} MaxCPUsPerNode=-1",
    f"{PARTITION} DefMemPerNode=64G",
    f"{PARTITION} SelectTypeParameters=CR_CPU",
    f"{CONS}\n{PARTITION} SelectTypeParameters=CR_LLN",
    "SelectType=select/serial",
    "DefMemPerCPU=-1",
    f"{PARTITION} PowerDownOnIdle=YES",
    "NodeName=m1 NodeAddr=127.0.0.1 CPUs=4 RealMemory=64G",
    "NodeName=m1 NodeAddr=127.0.0.1 CPUs=4 State=UP",
]


def with_the_rest(text: str) -> str:
    """Add what the text does not say: the nodes and a partition."""
    lines = ["ClusterName=t", *text.splitlines(), NODES]
    partitions = [line for line in lines if line.startswith("PartitionName")]
    rest = [line for line in lines if line not in partitions]
    return "\n".join([*rest, *(partitions or [PARTITION])]) + "\n"


def read(tmp_path: Path, text: str, release: str | None = "22.05") -> Loaded:
    """Read a file as makeway does."""
    path = tmp_path / "slurm.conf"
    path.write_text(with_the_rest(text))
    return SlurmConfReader(release=release).read(path)


# ------------------------------------------------------------------------------------- as recorded
@pytest.mark.parametrize("text", STARTS)
def test_what_slurmctld_starts_with_is_no_error(tmp_path: Path, text: str) -> None:
    """Not for `check --strict` either."""
    assert read(tmp_path, text).refused == ()


@pytest.mark.parametrize("text", REFUSED)
def test_what_slurmctld_refuses_is_an_error_of_the_strict_check(tmp_path: Path, text: str) -> None:
    """Where it is clear what is meant, a replay goes on."""
    try:
        found = read(tmp_path, text)
    except ConfigError:
        return
    assert found.refused


@pytest.mark.parametrize(
    ("text", "cluster"),
    [
        ("DefMemPerNode=1000\nDefMemPerCPU=100", (None, 1000)),
        ("DefMemPerCPU=100\nDefMemPerNode=1000", (None, 1000)),
        ("DefMemPerNode=0\nDefMemPerCPU=100", (None, None)),
        ("DefMemPerNode=UNLIMITED\nDefMemPerCPU=100", (None, None)),
        ("DefMemPerCPU=100", (100, None)),
    ],
)
def test_memory_per_node_excludes_memory_per_cpu(
    tmp_path: Path, text: str, cluster: tuple[int | None, int | None]
) -> None:
    """`scontrol show config` shows the one per node; the log says that the other is ignored."""
    table = read(tmp_path, text).config.cluster
    assert (table.def_mem_per_cpu, table.def_mem_per_node) == cluster


def test_a_default_line_counts_as_the_partitions_own(tmp_path: Path) -> None:
    """`scontrol show partition` says DefMemPerNode=9."""
    text = f"PartitionName=DEFAULT DefMemPerNode=9\n{PARTITION} DefMemPerCPU=5"
    (table,) = read(tmp_path, text).config.partition
    assert (table.def_mem_per_cpu, table.def_mem_per_node) == (None, 9)


@pytest.mark.parametrize("release", ["22.05", "26.11", None])
def test_cons_tres_hands_out_cores_and_memory_by_default(tmp_path: Path, release: str | None) -> None:
    """The log says so: using default value: CR_Core_Memory."""
    assert read(tmp_path, CONS, release).config.policy.select_parameters == ("CR_Core_Memory",)


@pytest.mark.parametrize(
    ("words", "taken"),
    [("CR_Core", "CR_Core"), ("CR_Core_Memory,CR_LLN", "CR_Core_Memory"), ("CR_Socket,CR_Core", "CR_Socket")],
)
def test_a_partition_takes_a_single_word(tmp_path: Path, words: str, taken: str) -> None:
    """`scontrol show partition` shows one of the words."""
    (table,) = read(tmp_path, f"{CONS}\n{PARTITION} SelectTypeParameters={words}").config.partition
    assert table.select_parameters == (taken,)


def test_the_life_of_credentials_is_found_in_quotes(tmp_path: Path) -> None:
    """`scontrol show config` shows AuthInfo with the quotes; jobs are requeued after 1201 s."""
    found = read(tmp_path, 'Authinfo="cred_expire=1200","ttl=1500"')
    assert found.config.scheduler.clockwork["requeue_delay"] == 1201.0  # type: ignore[index]


# ------------------------------------------------------------------------------ retired parameters
@pytest.mark.parametrize("name", [each.name for each in RETIRED.values()])
def test_retired_parameters_are_told_and_left_out(tmp_path: Path, name: str) -> None:
    """Under a release without them, and without a release; the replay is the same."""
    plain = read(tmp_path, "").config
    retired = RETIRED[name.lower()]
    for release in (retired.gone if retired.defunct else "22.05", "26.11", None):
        found = read(tmp_path, f"{name}=0", release)
        told = found.warnings if retired.defunct else found.refused
        assert [
            text.partition(" ")[2].partition(":")[0]
            for text in told
            if f" {name}: gone" in text or text in found.refused
        ] == [name]
        assert found.config.partition == plain.partition


def test_a_release_that_still_had_a_parameter_is_not_told(tmp_path: Path) -> None:
    """FastSchedule went with 20.02."""
    assert read(tmp_path, "FastSchedule=0", "19.05").refused == ()
    (told,) = read(tmp_path, "FastSchedule=0", "20.02").refused
    assert "FastSchedule: gone since Slurm 20.02" in told


@pytest.mark.parametrize(
    ("release", "end"),
    [
        ("22.05", "Slurm 22.05 ignores '1'"),
        ("22.05.8", "Slurm 22.05 ignores '1'"),
        (None, "Slurm 22.05 ignores '1'"),
        ("26.11", "Slurm 22.05 ignores '1', and whether Slurm 26.11 starts with it is not known"),
    ],
)
def test_what_22_05_ignores_is_not_claimed_of_another_release(
    tmp_path: Path, release: str | None, end: str
) -> None:
    """Only the slurmctld of 22.05.8 was asked."""
    (told,) = read(tmp_path, "FastSchedule=1", release).warnings
    assert told.endswith(f"config_overrides now; {end}")


# ---------------------------------------------------------------------- the vendor's example files
EXAMPLE = """
ClusterName=cluster
SlurmctldHost=linux0
MpiDefault=none
ProctrackType=proctrack/cgroup
ReturnToService=1
SlurmctldPidFile=/var/run/slurmctld.pid
SlurmctldPort=6817
SlurmdPidFile=/var/run/slurmd.pid
SlurmdPort=6818
SlurmdSpoolDir=/var/spool/slurmd
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
TaskPlugin=task/affinity,task/cgroup
InactiveLimit=0
KillWait=30
MinJobAge=300
SlurmctldTimeout=120
SlurmdTimeout=300
Waittime=0
SchedulerType=sched/backfill
SelectType=select/cons_tres
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
JobAcctGatherFrequency=30
JobAcctGatherType=jobacct_gather/none
SlurmctldDebug=info
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdDebug=info
SlurmdLogFile=/var/log/slurmd.log
NodeName=linux[1-32] CPUs=1 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
"""The parameters that the example of 22.05 sets."""


@pytest.mark.parametrize("release", ["22.05", "22.05.8", "26.11", None])
def test_the_vendors_example_has_no_faults(tmp_path: Path, release: str | None) -> None:
    """No error, and no warning either."""
    path = tmp_path / "slurm.conf"
    path.write_text(EXAMPLE)
    found = SlurmConfReader(release=release).read(path)
    assert (found.warnings, found.refused, found.matters, found.unmodelled) == ((), (), (), ())


OLD = "ControlMachine=linux0\nAuthType=auth/munge\nCacheGroups=0\nFastSchedule=1\nInactiveLimit=0"


def test_an_old_example_is_told_of_what_went(tmp_path: Path) -> None:
    """That of 2.x sets two parameters that went; 22.05.8 refuses one and ignores the other."""
    found = read(tmp_path, OLD)
    assert [text.partition(": ")[0] for text in found.refused] == [f"{tmp_path / 'slurm.conf'}:4 CacheGroups"]
    assert [text.partition(": ")[0] for text in found.warnings] == [
        f"{tmp_path / 'slurm.conf'}:5 FastSchedule"
    ]


# -------------------------------------------------------------------------------- what is worth a word
@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("InactiveLimit=0\nMaxArraySize=1001\nRebootProgram=", [], id="defaults"),
        pytest.param("InactiveLimit=60", ["InactiveLimit"], id="no default"),
        pytest.param("PriorityWeightAge=1000", [], id="a factor of another plugin"),
        pytest.param("PriorityType=priority/multifactor\nPriorityMaxAge=14-0", [], id="the age of no weight"),
        pytest.param("SuspendTime=300\nResumeTimeout=600", [], id="power saving without a program"),
        pytest.param("SuspendTime=-1\nSuspendProgram=/x", [], id="power saving that is off"),
        pytest.param(f"{PARTITION} AllowGroups=ALL RootOnly=NO", [], id="defaults of a partition"),
        pytest.param(f"{PARTITION} RootOnly=YES", ["PartitionName RootOnly"], id="a partition for some"),
        pytest.param("AccountingStorageEnforce=associations", [], id="no limits"),
    ],
)
def test_only_what_may_matter_is_worth_a_word(tmp_path: Path, text: str, named: list[str]) -> None:
    """Values that count without the parameter too, and what another parameter switches off, are not."""
    text = text.replace("RebootProgram=", 'RebootProgram=""')
    found = read(tmp_path, text)
    assert [each.name for each in found.unmodelled] == named
    assert found.warnings == ()


def test_power_saving_is_modelled_but_for_its_pace(tmp_path: Path) -> None:
    """How long a node takes to boot is not in the file: the longest that Slurm waits for it is taken, and said."""
    text = "SuspendTime=300\nSuspendProgram=/x\nResumeProgram=/y\nSuspendRate=5\nResumeTimeout=90"
    found = read(tmp_path, text)
    assert [each.name for each in found.unmodelled] == ["SuspendRate"]
    (warning,) = found.warnings
    assert "ResumeTimeout=90" in warning


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\nPriorityDecayHalfLife=1-0",
            ["fair share weighs in Slurm's order of jobs (PriorityWeightFairshare=1000)"],
        ),
        ("PriorityType=priority/multifactor\nPriorityWeightAge=5\nPriorityWeightJobSize=0", []),
        ("PriorityType=priority/multifactor\nPriorityWeightQOS=5", []),
        ("PriorityType=priority/basic\nPriorityWeightFairshare=1000", []),
        ("AccountingStorageEnforce=safe", ["Slurm enforces limits of associations and QOS"]),
        ("AccountingStorageEnforce=qos", []),
    ],
)
def test_what_decides_at_a_site_has_its_sentence(tmp_path: Path, text: str, said: list[str]) -> None:
    """Instead of a line for each parameter of it; `safe` brings limits with it, `qos` does not."""
    found = read(tmp_path, text)
    assert [
        sentence
        for sentence, begin in zip(found.matters, said, strict=True)
        if not sentence.startswith(begin)
    ] == []
    assert found.unmodelled == ()


# --------------------------------------------------------------------------------- the real daemon
@pytest.fixture
def started(tmp_path: Path) -> Iterator[object]:
    """Return a function that starts slurmctld on a text and says whether it ran, with its answers."""
    daemons: list[subprocess.Popen[bytes]] = []

    def start(text: str, *asked: str) -> tuple[bool, str]:
        conf = tmp_path / "real.conf"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (tmp_path / "state").mkdir(exist_ok=True)
        keys = {line.partition("=")[0].lower() for line in text.splitlines()}
        base = {
            "SlurmctldHost": f"{socket.gethostname().partition('.')[0]}(127.0.0.1)",
            "SlurmUser": "root",
            "AuthType": "auth/none",
            "CredType": "cred/none",
            "SlurmctldPort": port,
            "SlurmctldPidFile": tmp_path / "pid",
            "StateSaveLocation": tmp_path / "state",
            "SlurmdSpoolDir": tmp_path / "spool",
            "ProctrackType": "proctrack/linuxproc",
            "MailProg": "/bin/true",
        }
        head = "".join(f"{key}={value}\n" for key, value in base.items() if key.lower() not in keys)
        conf.write_text(head + with_the_rest(text))
        with (tmp_path / "log").open("wb") as log:
            daemons.append(
                subprocess.Popen(["slurmctld", "-D", "-c", "-f", str(conf)], stderr=log, stdout=log)
            )
        end = time.monotonic() + 20
        while time.monotonic() < end and daemons[-1].poll() is None:
            if "Running as primary controller" in (tmp_path / "log").read_text(errors="replace"):
                env = {**os.environ, "SLURM_CONF": str(conf)}
                out = [
                    subprocess.run(each.split(), env=env, capture_output=True, text=True).stdout
                    for each in asked
                ]
                return True, "\n".join(out)
            time.sleep(0.05)
        return False, ""

    yield start
    for daemon in daemons:
        daemon.kill()
        daemon.wait()


class TestSlurmctld:
    """The rows above, once more."""

    pytestmark = REAL

    @pytest.mark.parametrize(
        ("text", "starts"), [*((text, True) for text in STARTS), *((text, False) for text in REFUSED)]
    )
    def test_starts_or_refuses(self, started: object, text: str, starts: bool) -> None:
        """As the table says."""
        assert callable(started)
        assert started(text)[0] is starts

    @pytest.mark.parametrize("name", [each.name for each in RETIRED.values() if not each.defunct])
    def test_knows_no_retired_parameter(self, started: object, name: str) -> None:
        """All of them are refused."""
        assert callable(started)
        assert started(f"{name}=0")[0] is False

    @pytest.mark.parametrize("name", sorted(NEWER[""]))
    def test_does_not_know_newer_parameters_yet(self, started: object, name: str) -> None:
        """All of them are refused."""
        assert callable(started)
        assert started(f"{name}=1")[0] is False

    def test_has_the_defaults_that_we_think(self, started: object) -> None:
        """Of the parameters that `scontrol show config` prints as they are written."""
        assert callable(started)
        _, out = started("PriorityType=priority/multifactor", "scontrol show config")
        said = {
            key.strip().lower(): value.strip()
            for key, sign, value in (line.partition("=") for line in out.splitlines())
            if sign
        }
        words = {"infinite": "-1", "no": "NO"}
        for key in (
            "inactivelimit",
            "maxarraysize",
            "maxjobcount",
            "maxtaskspernode",
            "resumerate",
            "vsizefactor",
        ):
            assert said[key].split()[0] == DEFAULTS[key]
        for key in ("suspendtime", "allowspecresourcesusage", "disablerootjobs", "topologyplugin"):
            assert words.get(said[key].lower(), said[key]) == DEFAULTS[key]
