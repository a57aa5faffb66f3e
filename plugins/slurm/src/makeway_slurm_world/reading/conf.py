"""Turn what a running controller says of its configuration into a slurm.conf, for the reader of that.

``scontrol show config`` prints every parameter, set or not, with units and in words of its own; partitions and nodes
are printed with what they are doing beside what they are. What is left is what the site set, in the file's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from makeway_slurm.readers import names
from makeway_slurm_world.reading.records import known, pairs

_SETTING = re.compile(r"([A-Za-z_]+)(?:\[[0-9]+\])?\s+= (.*)")
_UNIT = re.compile(r"(-?[0-9]+) (?:sec|min|usec|percent|nodes/min|KB|bytes)")
_KEPT = {name.lower(): name for name in (*names.MODELLED, *names.RELEVANT) if name != "MaxNodeCount"}
_UNSET = frozenset(
    """AccountingStorageEnforce=none BatchStartTimeout=10 BurstBufferType= CoreSpecPlugin=core_spec/none
    DisableRootJobs=No HealthCheckInterval=0 InactiveLimit=0 Licenses= MaxArraySize=1001 MaxJobCount=10000
    MaxMemPerCPU=UNLIMITED MaxMemPerNode=UNLIMITED DefMemPerCPU=UNLIMITED DefMemPerNode=UNLIMITED
    MaxTasksPerNode=512 MCSPlugin=mcs/none OverTimeLimit=0 PowerPlugin= PreemptExemptTime=00:00:00
    PreemptExemptTime=NONE PriorityFlags= ResumeRate=300 ResumeTimeout=60 ResvOverRun=0 SuspendRate=60
    SuspendTime=INFINITE SuspendTime=NONE SuspendTime=-1 SuspendTimeout=30 TopologyPlugin=topology/none
    TopologyPlugin=topology/default TopologyPlugin=topology/flat VSizeFactor=0 AllowSpecResourcesUsage=No
    SelectTypeParameters=NONE MaxBatchRequeue=5""".split()
)
"""What is printed where nothing was set, as 22.05 to 25.11 print it."""
_NO_VALUE = frozenset(("NONE", "UNLIMITED", "INFINITE"))
_PARTITION = {
    name.lower(): name
    for name in (*names.PARTITION_MODELLED, *names.PARTITION_RELEVANT)
    if name != "PartitionName"
}
_PARTITION_UNSET = frozenset(
    """AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=NO DisableRootJobs=NO ExclusiveUser=NO
    GraceTime=0 Hidden=NO LLN=NO MinNodes=0 RootOnly=NO ReqResv=NO PriorityJobFactor=1 PriorityTier=1 OverSubscribe=NO
    State=UP ExclusiveTopo=NO MaxTime=UNLIMITED""".split()
)
_NODE = {
    "CPUTot": "CPUs",
    "Sockets": "Sockets",
    "CoresPerSocket": "CoresPerSocket",
    "ThreadsPerCore": "ThreadsPerCore",
    "RealMemory": "RealMemory",
    "MemSpecLimit": "MemSpecLimit",
    "Weight": "Weight",
    "AvailableFeatures": "Features",
    "Gres": "Gres",
}
_NO_JOBS = frozenset(
    """BLOCKED DRAIN DRAINED DRAINING FAIL FAILING INVAL INVALID_REG NOT_RESPONDING NO_RESPOND PERFCTRS POWERED_DOWN
    POWERING_DOWN POWERING_UP REBOOT REBOOT_ISSUED UNKNOWN""".split()
)
_INDICES = re.compile(r"\([^()]*\)")


def settings(text: str) -> dict[str, str]:
    """Return what ``scontrol show config`` prints, by key, units taken off; what has no value is left out."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _SETTING.fullmatch(line.rstrip())
        if match is None:
            continue
        value = known(match[2].strip())
        unit = _UNIT.fullmatch(value) if value is not None else None
        if value is not None:
            found[match[1]] = unit[1] if unit else value
    return found


def global_lines(found: Mapping[str, str]) -> Iterator[str]:
    """Yield the parameters that the site set and that matter to a scheduler, as slurm.conf has them."""
    for key, value in found.items():
        name = _KEPT.get(key.lower())
        if name is None or f"{name}={value}" in _UNSET:
            continue
        yield f"{name}={_quoted(value)}"


def partition_lines(text: str, cluster_mode: str | None) -> Iterator[str]:
    """Yield a PartitionName line for each line of ``scontrol -o show part``.

    :param cluster_mode: PreemptMode of the cluster, which is printed for partitions that set none.
    """
    for line in text.splitlines():
        found = pairs(line)
        name = found.pop("PartitionName", "")
        if not name:
            continue
        kept = []
        for key, value in found.items():
            spelled = _PARTITION.get(key.lower())
            if spelled is None or known(value) is None or f"{spelled}={value}" in _PARTITION_UNSET:
                continue
            if (value in _NO_VALUE and spelled != "MaxTime") or (
                spelled == "PreemptMode" and _same_mode(value, cluster_mode)
            ):
                continue
            kept.append(f"{spelled}={_quoted(value)}")
        yield " ".join([f"PartitionName={name}", *kept])


def _same_mode(value: str, cluster_mode: str | None) -> bool:
    return set(value.upper().split(",")) == set((cluster_mode or "OFF").upper().split(","))


def node_lines(text: str) -> Iterator[str]:
    """Yield a NodeName line for each line of ``scontrol -o show node``."""
    for found in nodes(text).values():
        kept = [f"NodeName={found['NodeName']}"]
        for key, name in _NODE.items():
            value = known(found.get(key))
            if value is not None and not (key == "MemSpecLimit" and value == "0"):
                kept.append(f"{name}={_quoted(_INDICES.sub('', value))}")
        yield " ".join(kept)


def nodes(text: str) -> dict[str, dict[str, str]]:
    """Return the fields of each node by its name."""
    found = [pairs(line) for line in text.splitlines() if line.startswith("NodeName=")]
    return {each["NodeName"]: each for each in found}


def out_of_service(state: str) -> str:
    """Say what keeps a node from getting jobs: ``down``, ``drained``, or nothing (empty).

    A node that does not answer, as all do for a moment when the controller starts, gets no jobs; those on it run on.

    :param state: as ``IDLE+DRAIN`` or ``DOWN*``.
    """
    words = set(re.sub(r"[*$~#!%@^-]", "", state.upper()).split("+"))
    if words & {"DOWN", "ERROR", "FUTURE"}:
        return "down"
    if words & _NO_JOBS or "*" in state:
        return "drained"
    return ""


def conf_parts(found: Mapping[str, str], partitions: str, node_text: str) -> str:
    """Return the slurm.conf that says what a running controller says."""
    lines: Iterable[str] = (
        *global_lines(found),
        *node_lines(node_text),
        *partition_lines(partitions, found.get("PreemptMode")),
    )
    return "\n".join([*lines, ""])


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value
