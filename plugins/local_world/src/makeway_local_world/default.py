"""Make the configuration of a machine that is not configured: its own CPUs, memory and GPUs.

Two partitions share them. Jobs of ``urgent`` suspend those of ``normal``; jobs that hold GPUs are requeued instead,
since a suspended process keeps its GPU's memory (local-world 2.3). A job that is requeued keeps its place in the queue.

The preset ``lab`` is the same for several people: fair share among them, and limits. With ``checkpoint``, jobs that
make way are saved with their memory.
"""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from makeway.config import (
    ClusterTable,
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
    WorldTable,
    validate,
)
from makeway.devices import PARTS
from makeway.errors import ConfigError, Problem
from makeway_local_world.requests import MOST_TASKS

if TYPE_CHECKING:
    from makeway_local_world.processes.settings import Settings

KEPT_MB = 512
"""Least memory that is kept for the system."""
KEPT_SHARE = 0.05
"""Share of the memory that is kept for the system."""
KILL_WAIT = 10.0
"""Seconds from SIGTERM to SIGKILL."""
HOUR, DAY = 3600.0, 86400.0
PERIOD = 2.0
"""Seconds between two recalculations of fair share: who comes last waits for one at most."""
WEIGHT = 10_000


@attrs.frozen(kw_only=True)
class Machine:
    """What a machine has."""

    name: str
    cpus: int
    memory_mb: int
    gpus: int = 0


def this_machine(gpus: int | None = None) -> Machine:
    """Look at this machine.

    :param gpus: how many GPUs it has; None: ask NVIDIA's library, if it is installed.
    """
    return Machine(
        name=platform.node().partition(".")[0] or "localhost",
        cpus=len(os.sched_getaffinity(0)),
        memory_mb=memory_mb(),
        gpus=count_gpus() if gpus is None else gpus,
    )


def memory_mb() -> int:
    """Return the memory that there is for all processes: the machine's, or less where a cgroup allows less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(Path(name).read_text()))
    return total >> 20


def count_gpus() -> int:
    """Return how many GPUs NVIDIA's library names; 0: none, or there is no library."""
    try:
        import pynvml
    except ImportError:
        return 0
    try:
        pynvml.nvmlInit()
        try:
            return int(pynvml.nvmlDeviceGetCount())
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return 0


def check(config: Config, source: str, found: int | None = None) -> list[str]:
    """Check a configuration against this machine; return what of it will not be had.

    :param found: GPUs of this machine; None: look, if any are configured.
    :raises ConfigError: it has parts of GPUs, which jobs cannot be given here, or names what there is not.
    """
    problems = [
        Problem(
            f"node[{at}].gres.{name}",
            f"got {count}; here jobs get whole GPUs only, so that nobody can use more than was given; "
            "allowed: gpu",
        )
        for at, node in enumerate(config.node)
        for name, count in node.gres.items()
        if name.partition(":")[0] in PARTS
    ]
    problems += _unknown(config)
    if problems:
        raise ConfigError(source, problems)
    return [*_unseen(config), *_unsaved(config), *_gpus_lacking(config, found)]


def _unseen(config: Config) -> list[str]:
    """Say which uses of this machine its partitions would make way for, and that are not seen."""
    wanted = {name: each.name for each in config.partition[::-1] for name in each.vacate_on_use}
    if not wanted:
        return []
    from makeway_local_world.processes.presence import absent

    return [
        f"partition {wanted[name]}: use of this machine is not seen by {name}: {why}"
        + (f"; {why.help}" if why.help else "")
        for name, why in absent(wanted).items()
    ]


def _settings(config: Config) -> Settings:
    from makeway.registry import world_settings
    from makeway_local_world.processes.settings import Settings

    found = world_settings(config)
    return found if isinstance(found, Settings) else Settings()


def _unknown(config: Config) -> list[Problem]:
    """Name settings of partitions and QOS that there are not."""
    settings = _settings(config)
    there = {
        "partition": (settings.partition, [each.name for each in config.partition]),
        "qos": (settings.qos, [each.name for each in config.qos]),
    }
    return [
        Problem(f"world.settings.{kind}.{name}", f"there is none; allowed: {', '.join(names) or 'none'}")
        for kind, (given, names) in there.items()
        for name in given
        if name not in names
    ]


def _unsaved(config: Config) -> list[str]:
    """Say why jobs that are to be saved with their memory will not be."""
    from makeway_checkpointable import criu

    settings = _settings(config)
    if not any(each.saves for each in (*settings.partition.values(), *settings.qos.values())):
        return []
    try:
        criu.ready()
    except criu.CriuError as error:
        return [f"no job is saved with its memory, so those that make way begin anew: {error}"]
    return []


def _gpus_lacking(config: Config, found: int | None) -> list[str]:
    """Say how many GPUs are missing; `found` is as in `check`."""
    wanted = sum(
        count for node in config.node for name, count in node.gres.items() if name.partition(":")[0] == "gpu"
    )
    if not wanted:
        return []
    found = count_gpus() if found is None else found
    if found >= wanted:
        return []
    return [
        f"{found} of {wanted} GPUs are found (NVIDIA's library names them, by nvidia-ml-py); "
        "jobs that ask for more do not start"
    ]


def configuration(machine: Machine, world: str = "world/local") -> Config:
    """Return the configuration of a machine.

    A job that asks for no memory gets half of what there is per CPU, so that a suspended job and the one that it makes
    way for both fit.
    """
    kept = max(KEPT_MB, int(machine.memory_mb * KEPT_SHARE))
    usable = max(1, machine.memory_mb - kept)
    config = Config(
        cluster=ClusterTable(name=machine.name, def_mem_per_cpu=max(1, usable // machine.cpus // 2)),
        node=(
            NodeTable(
                name=machine.name,
                cpus=machine.cpus,
                memory_mb=machine.memory_mb,
                mem_spec_limit_mb=min(kept, machine.memory_mb - 1),
                gres={"gpu": machine.gpus} if machine.gpus else {},
            ),
        ),
        partition=(
            PartitionTable(name="normal", default=True, priority_tier=1),
            PartitionTable(name="urgent", priority_tier=2, preempt_mode=("off",)),
        ),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core_Memory",),
            preempt="preempt/partition_prio",
            preempt_mode=("suspend", "gang"),
            plugins=("preempt/gpu_requeue",) if machine.gpus else (),
        ),
        scheduler=SchedulerTable(
            type="easy", clockwork={"kill_wait": KILL_WAIT}, rules={"requeue_keeps_priority": True}
        ),
        world=WorldTable(name=world),
    )
    validate(config, "this machine")
    return config


def lab(machine: Machine, world: str = "world/local") -> Config:
    """Return the configuration of a machine that several people share.

    Who has used less of late comes first. A user has half of the GPUs at most, in all partitions together, and in
    ``urgent`` half of the CPUs and one GPU. Half of the machine may be booked by one user.
    """
    plain = configuration(machine, world)
    normal, urgent = plain.partition
    everybody = {"Account": "lab", "User": "*"}
    cpus, gpus = -(-machine.cpus // 2), -(-machine.gpus // 2)
    urgently = f"cpu={cpus}"
    bookings = {"user_bookings": 2, "booking_limit": 8 * HOUR, "booking_cpus": cpus}
    bookings["booking_memory_mb"] = (plain.node[0].memory_mb - plain.node[0].mem_spec_limit_mb) // 2
    if machine.gpus:
        everybody["GrpTRES"] = f"gres/gpu={gpus}"
        urgently += ",gres/gpu=1"
        bookings["booking_gpus"] = gpus
    config = attrs.evolve(
        plain,
        cluster=attrs.evolve(plain.cluster, attributes={"associations": [{"Account": "lab"}, everybody]}),
        partition=(
            attrs.evolve(normal, default_time=DAY, max_time=7 * DAY),
            attrs.evolve(urgent, default_time=HOUR, max_time=4 * HOUR, qos="urgent"),
        ),
        qos=(QosTable(name="urgent", flags=("DenyOnLimit",), attributes={"MaxTRESPU": urgently}),),
        policy=attrs.evolve(
            plain.policy,
            priority="priority/multifactor",
            plugins=("limits/slurm", *plain.policy.plugins),
            settings={
                "priority/multifactor": {"weight_fairshare": WEIGHT, "calc_period": PERIOD},
                "limits/slurm": {"max_array_size": MOST_TASKS + 1},
            },
        ),
        world=attrs.evolve(plain.world, settings=bookings),
    )
    validate(config, "lab")
    return config


def checkpoint(machine: Machine, world: str = "world/local") -> Config:
    """Return the configuration of a machine whose jobs leave with their memory when they make way, and go on later.

    So nothing of it is kept free for those that take their place.
    """
    plain = configuration(machine, world)
    config = attrs.evolve(
        plain,
        cluster=attrs.evolve(plain.cluster, def_mem_per_cpu=2 * (plain.cluster.def_mem_per_cpu or 1)),
        policy=attrs.evolve(plain.policy, preempt_mode=("checkpoint",), plugins=()),
        world=attrs.evolve(plain.world, settings={"partition": {"normal": {"checkpointable": True}}}),
    )
    validate(config, "checkpoint")
    return config


PRESETS = {"checkpoint": checkpoint, "lab": lab}
"""Configurations by name, for this machine."""


def is_preset(path: Path) -> bool:
    """Whether a preset is meant, rather than a file."""
    return str(path) in PRESETS and not path.is_file()


def named(path: Path) -> str:
    """Return how a daemon in another directory is told of a configuration."""
    return str(path) if is_preset(path) else str(path.absolute())
