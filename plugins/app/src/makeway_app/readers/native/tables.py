"""Mirror ``[[job]]`` key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from makeway.model import Duration


@attrs.frozen(kw_only=True)
class SignalTable:
    """``signal``: asked for ahead of the job's end."""

    name: str
    lead: Duration = 60.0
    batch_only: bool = False
    borrows_reservation: bool = False


@attrs.frozen(kw_only=True)
class ComponentTable:
    """``[[job.component]]``: a part of a heterogeneous job; also all that a job may ask for.

    In a component, None means "as in the job itself".
    """

    partition: str | tuple[str, ...] | None = None
    """One or several, any of which will do; None: the default one."""
    qos: str | None = None
    nodes: int | None = None
    """Exactly so many; None: see `min_nodes` and `max_nodes`."""
    min_nodes: int | None = None
    max_nodes: int | None = None
    tasks: int | None = None
    cpus: int | None = None
    """Tasks of one CPU each; None: see `tasks`."""
    cpus_per_task: int | None = None
    tasks_per_node: int | None = None
    tasks_per_socket: int | None = None
    tasks_per_core: int | None = None
    threads_per_core: int | None = None
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    min_cpus_per_node: int | None = None
    distribution: str | None = None
    spread: bool | None = None
    memory_mb: int | None = None
    """On each node; 0: all of it."""
    memory_mb_per_cpu: int | None = None
    gres: Mapping[str, int] | None = None
    """On each node."""
    gres_total: Mapping[str, int] | None = None
    """Over the whole job."""
    gres_per_task: Mapping[str, int] | None = None
    gres_per_socket: Mapping[str, int] | None = None
    licenses: Mapping[str, int] | None = None
    licenses_any: bool | None = None
    exclusive: bool | str | None = None
    """True or ``node``: whole nodes; ``user``, ``mcs``: only shared with jobs of the same."""
    oversubscribe: bool | None = None
    contiguous: bool | None = None
    features: str | None = None
    required_nodes: str | tuple[str, ...] | None = None
    excluded_nodes: str | tuple[str, ...] | None = None
    """Host lists."""
    steps: bool | None = None
    on_signal: Mapping[str, str] | None = None
    """Signal other than TERM and KILL -> what its processes do: die, exit (end well), ignore."""
    on_term: str | None = None
    """What its processes do on SIGTERM: default (die), exit (end well), ignore."""
    command: str | tuple[str, ...] | None = None
    """Words, or one line for the shell."""


@attrs.frozen(kw_only=True)
class JobTable(ComponentTable):
    """``[[job]]``, or one line of JSON."""

    id: str | int | None = None
    """None: the next number that is free."""
    name: str = ""
    user: str = "user"
    group: str | None = None
    account: str | None = None
    submit: Duration = 0.0
    """Seconds since the start."""
    begin: Duration | None = None
    """Not before this instant."""
    run_time: Duration | None = None
    """Seconds of undisturbed running; None: runs until it ends or is told to."""
    time_limit: Duration | None = None
    """Seconds; None: the partition's."""
    priority: int | None = None
    """None: by order of submission; 0: held."""
    nice: int = 0
    requeue: bool | None = None
    """None: as the cluster does."""
    batch: bool = True
    signal: SignalTable | None = None
    mcs_label: str | None = None
    reservation: str | None = None
    depends_on: str | tuple[str, ...] = ()
    array: str | None = None
    """Tasks of an array, as ``sbatch --array`` takes them: ``0-15``, ``0-99%4``; each becomes a job."""
    component: tuple[ComponentTable, ...] = ()
    """Parts of a heterogeneous job: they start together; what one leaves out is as in the job."""
    flags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = attrs.field(factory=dict)


_MANY = (1, 10_000_000)
_MEGABYTES = (0, 2**50)
TIME = (0, 1e11)
RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("nodes", "min_nodes", "max_nodes", "tasks", "cpus", "cpus_per_task"), _MANY),
    **dict.fromkeys(("tasks_per_node", "tasks_per_socket", "tasks_per_core"), _MANY),
    **dict.fromkeys(("threads_per_core", "sockets_per_node", "cores_per_socket"), _MANY),
    **dict.fromkeys(("min_cpus_per_node",), _MANY),
    **dict.fromkeys(("memory_mb", "memory_mb_per_cpu"), _MEGABYTES),
    **dict.fromkeys(("submit", "begin", "run_time", "time_limit"), TIME),
    "priority": (0, 2**32),
    "nice": (-(2**31), 2**31),
}
COUNTS = ("gres", "gres_total", "gres_per_task", "gres_per_socket", "licenses")
SAID_TWICE = (
    ("nodes", "min_nodes"),
    ("nodes", "max_nodes"),
    ("cpus", "tasks"),
    ("cpus", "cpus_per_task"),
    ("memory_mb", "memory_mb_per_cpu"),
)
"""Pairs of keys that exclude each other."""
PLAIN_TEXT = (
    *("id", "name", "user", "group", "account", "partition", "qos", "features"),
    *("mcs_label", "reservation"),
)
_OWN = (
    *("partition", "nodes", "min_nodes", "cpus", "memory_mb", "exclusive", "command"),
    *("required_nodes", "excluded_nodes"),
)
"""Keys of a component that JobSpec has under another name or in another form."""
SAME = tuple(one.name for one in attrs.fields(ComponentTable) if one.name not in _OWN)
"""Keys of a component that JobSpec has as they are; None stands for JobSpec's default."""
OF_JOB = (
    *("name", "user", "group", "account", "run_time", "time_limit", "priority", "nice"),
    *("requeue", "batch", "mcs_label", "reservation", "attributes"),
)
"""Keys of a job that JobSpec takes as they are."""
