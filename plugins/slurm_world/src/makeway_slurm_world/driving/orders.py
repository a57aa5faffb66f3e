"""The commands that change something, as measured (spec 1 to 4)."""

from __future__ import annotations

import math

from makeway_slurm_world.talking.words import Order

FLAGS = "FLEX,IGNORE_JOBS,NO_HOLD_JOBS_AFTER_END,OVERLAP"
"""IGNORE_JOBS: it may lie over running jobs. FLEX: jobs in it may outlast it, else they are killed at its end."""


def _update(*words: str) -> Order:
    return Order(("scontrol", "update", *words))


# --------------------------------------------------------------------------------------- lease
def take_lease(name: str, nodes: str, seconds: float) -> Order:
    """Keep everybody else from starting on `nodes`; everyone's jobs may be put into it (spec 1.2)."""
    return Order(
        (
            "scontrol",
            "create",
            "reservation",
            f"ReservationName={name}",
            "StartTime=now",
            f"EndTime=now+{math.ceil(seconds)}",
            f"Nodes={nodes}",
            "Users=-nobody",
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


# --------------------------------------------------------------------------------------- start
def start(job: str, lease: str, nodes: str, count: int) -> Order:
    """Start a job on exactly these nodes, in one call: ReqNodeList alone would be a minimum (spec 1.3)."""
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


def restore(job: str, required: str, count: str) -> Order:
    """Give a job that waits again its own request back."""
    return _update(f"JobId={job}", f"ReqNodeList={required}", f"NumNodes={count}")


# ------------------------------------------------------------------------------------ displace
def requeue(job: str) -> Order:
    """Let a job wait again; without Incomplete, finished work would run again (spec 2.1)."""
    return Order(("scontrol", "requeue", "Incomplete", job))


def suspend(job: str) -> Order:
    """Stop a job; it keeps memory, licences and counted resources (spec 2.2)."""
    return Order(("scontrol", "suspend", job))


def resume(job: str) -> Order:
    """Let a stopped job go on; Slurm does not look whether its CPUs are free."""
    return Order(("scontrol", "resume", job))


def release(job: str) -> Order:
    """Let a held job wait like all others."""
    return Order(("scontrol", "release", job))


def cancel(job: str) -> Order:
    """End a job for good."""
    return Order(("scancel", job))


def signal(job: str, name: str, *, steps_only: bool) -> Order:
    """Send a signal; without -b the batch script does not get it (spec 2.3)."""
    return Order(("scancel", *(() if steps_only else ("-b",)), "-s", name, job))


__all__ = [
    "cancel",
    "give_up_lease",
    "leave_lease",
    "release",
    "renew_lease",
    "requeue",
    "restore",
    "resume",
    "shrink_lease",
    "signal",
    "start",
    "suspend",
    "take_back",
    "take_lease",
]
