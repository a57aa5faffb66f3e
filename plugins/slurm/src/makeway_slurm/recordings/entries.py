"""Read the file of a scenario as it is written: the tables of ``tests/oracle/FORMAT.md``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.bounds import toml_of
from makeway.errors import Problem
from makeway.model import Seconds
from makeway.readers.lines import read_text
from makeway.settings import structure

DEFAULT_USER = "alice"
DEFAULT_ACCOUNT = "acct"
DEFAULT_QOS = "normal"


@attrs.frozen(kw_only=True)
class JobEntry:
    """One ``job`` of the file."""

    at: Seconds
    name: str
    runtime: Seconds = 10.0
    args: tuple[str, ...] = ()
    user: str = DEFAULT_USER
    step: bool = False
    on_term: str = attrs.field(
        default="default", validator=attrs.validators.in_(("default", "exit", "ignore"))
    )


@attrs.frozen(kw_only=True)
class ActionEntry:
    """One ``action`` of the file."""

    at: Seconds
    command: tuple[str, ...]


@attrs.frozen(kw_only=True)
class NodeEntry:
    """One of the cluster's ``nodes``; the name may be a host list."""

    name: str
    cpus: int | None = None
    sockets: int = 1
    cores_per_socket: int | None = None
    threads_per_core: int = 1
    real_memory: int = 1000
    features: tuple[str, ...] = ()
    weight: int = 1
    gres: str = ""
    """As slurm.conf has it: ``gpu:4``, ``gpu:a:2,gpu:b:2``, ``gpu:2,shard:8``."""
    gres_cores: tuple[str, ...] = ()
    """For each GPU the cores that are next to it, ``0-3``; empty: all are."""


@attrs.frozen(kw_only=True)
class QosEntry:
    """One of the cluster's ``qos``."""

    name: str
    priority: int = 0
    preempt: tuple[str, ...] = ()
    preempt_mode: str | None = None
    grace_time: Seconds = 0.0
    preempt_exempt_time: str | None = None
    flags: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class AccountEntry:
    """One of the cluster's ``account``."""

    name: str


@attrs.frozen(kw_only=True)
class UserEntry:
    """One of the cluster's ``user``."""

    name: str
    accounts: tuple[str, ...] = ()
    default_account: str | None = None
    qos: tuple[str, ...] = ()
    default_qos: str | None = None


@attrs.frozen(kw_only=True)
class ClusterEntry:
    """The ``cluster`` table."""

    nodes: tuple[NodeEntry, ...]
    slurm_conf: str
    licenses: Mapping[str, int] = attrs.field(factory=dict)
    qos: tuple[QosEntry, ...] = ()
    account: tuple[AccountEntry, ...] = ()
    user: tuple[UserEntry, ...] = ()
    one_node_line: bool = False
    """True: one NodeName line for each entry of `nodes`; else one for each node."""

    @property
    def accounting(self) -> bool:
        """Whether there was an accounting database."""
        return bool(self.qos or self.account or self.user)


@attrs.frozen(kw_only=True)
class ScenarioFile:
    """A whole scenario file."""

    name: str
    title: str = ""
    tags: tuple[str, ...] = ()
    expect: str = ""
    needs: str | None = None
    duration: Seconds
    squeue_at: tuple[Seconds, ...] = ()
    job: tuple[JobEntry, ...] = ()
    action: tuple[ActionEntry, ...] = ()
    cluster: ClusterEntry
    debug: bool = False
    stop_when_done: bool = True


def read_scenario_file(path: Path) -> ScenarioFile:
    """Read the file as it is written.

    :raises ConfigError: it cannot be read, is no TOML, or has unknown keys or wrong values.
    """
    data = toml_of(read_text(path), str(path))
    return structure({"name": path.stem, **data}, ScenarioFile, str(path))


def noted(problems: list[Problem], where: str, read: Any) -> Any:
    """Return what `read` returns; note its ValueError."""
    try:
        return read()
    except ValueError as error:
        problems.append(Problem(where, str(error)))
        return None
