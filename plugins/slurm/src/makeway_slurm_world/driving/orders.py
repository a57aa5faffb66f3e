"""The commands that change something, as measured (slurm-live 1 to 4)."""

from __future__ import annotations

import math

from makeway_slurm_world.talking.words import Order

FLAGS = "FLEX,IGNORE_JOBS,NO_HOLD_JOBS_AFTER_END,OVERLAP"
"""IGNORE_JOBS: it may lie over running jobs. FLEX: jobs in it may outlast it, else they are killed at its end."""


def _update(*words: str) -> Order:
    return Order(("scontrol", "update", *words))


# --------------------------------------------------------------------------------------- lease
def take_lease(name: str, nodes: str, seconds: float) -> Order:
    """Keep all others from starting on `nodes`; everyone's jobs may be put into it (slurm-live 1.2)."""
    return Order(
        (
            "scontrol",
            "create",
            "reservation",
            f"ReservationName={name}",
            "StartTime=now",
            f"EndTime=now+{math.ceil(seconds)}",
            f"Nodes={nodes}",
            "Users=-daemon",  # 26.05 takes nobody (65534) for no user
            f"Flags={FLAGS}",
        )
    )


def renew_lease(name: str, seconds: float) -> Order:
    """Let the lease end later; EndTime counts seconds, Duration would count minutes."""
    return _update(f"ReservationName={name}", f"EndTime=now+{math.ceil(seconds)}")


def shrink_lease(name: str, nodes: str) -> Order:
    """Give up all nodes but these."""
    return _update(f"ReservationName={name}", f"Nodes={nodes}")


def give_up_lease(name: str) -> Order:
    """End the lease; refused while a pending job names it."""
    return Order(("scontrol", "delete", f"reservation={name}"))


# --------------------------------------------------------------------------------------- whole
def whole(job: str) -> str:
    """Return the name by which Slurm takes all components of a heterogeneous job; an ordinary job's own."""
    return job.partition("+")[0]


# --------------------------------------------------------------------------------------- start
def start(job: str, lease: str, nodes: str, count: int) -> Order:
    """Start a job on exactly these nodes, in one call: ReqNodeList alone would be a minimum (slurm-live 1.3)."""
    return _update(
        f"JobId={job}",
        f"ReservationName={lease}",
        f"ReqNodeList={nodes}",
        f"NumNodes={count}-{count}",
        "StartTime=now",
    )


def leave_lease(job: str) -> Order:
    """Let a job out of the lease, so that a requeue, for whatever reason, waits like all others."""
    return _update(f"JobId={job}", "ReservationName=")


def take_back(job: str, required: str, count: str) -> Order:
    """Undo a start that was not made: the request as it was.

    :param count: as ``1-4``.
    """
    return _update(f"JobId={job}", "ReservationName=", f"ReqNodeList={required}", f"NumNodes={count}")


def bind(job: str, required: str, count: str) -> Order:
    """Bind a job that waits to nodes, or give it its own request back; scontrol takes no leader of a het job.

    :param job: its number, for a component of a heterogeneous job.
    :param required: a host list; empty: none.
    :param count: as ``1-4``.
    """
    return _update(f"JobId={job}", f"ReqNodeList={required}", f"NumNodes={count}")


def keep_from(job: str, excluded: str) -> Order:
    """Keep one component that waits from nodes, or give it its own list back: the way to bind a leader.

    :param job: as ``12+0``; without the offset, it would count for all components.
    :param excluded: a host list; empty: none.
    """
    return _update(f"JobId={job}", f"ExcNodeList={excluded}")


def start_bound(job: str, lease: str) -> Order:
    """Start all components of a heterogeneous job in one call, each on the nodes that it is bound to."""
    return _update(f"JobId={whole(job)}", f"ReservationName={lease}", "StartTime=now")


# ------------------------------------------------------------------------------------ displace
# Slurm displaces a heterogeneous job as a whole, and takes the leader's name alone for that.
def requeue(job: str) -> Order:
    """Let a job wait again; without Incomplete, finished work would run again (slurm-live 2.1)."""
    return Order(("scontrol", "requeue", "Incomplete", whole(job)))


def suspend(job: str) -> Order:
    """Stop a job; it keeps memory, licences and counted resources (slurm-live 2.2)."""
    return Order(("scontrol", "suspend", whole(job)))


def resume(job: str) -> Order:
    """Let a stopped job go on; Slurm does not look whether its CPUs are free."""
    return Order(("scontrol", "resume", whole(job)))


def release(job: str) -> Order:
    """Let a held job wait like all others."""
    return Order(("scontrol", "release", job))


def cancel(job: str) -> Order:
    """End a job for good."""
    return Order(("scancel", whole(job)))


def signal(job: str, name: str, *, steps_only: bool) -> Order:
    """Send a signal; without -b the batch script does not get it (slurm-live 2.3)."""
    return Order(("scancel", *(() if steps_only else ("-b",)), "-s", name, job))
