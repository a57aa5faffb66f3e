"""Define what a world tells the engine (events) and what the engine asks of a world (actions)."""

from __future__ import annotations

from typing import NamedTuple

from makeway.bitmap import NodeBits
from makeway.model import Job, JobSpec, JobState


# --------------------------------------------------------------------------------------- events
class Submitted(NamedTuple):
    """A job arrived."""

    spec: JobSpec


class Finished(NamedTuple):
    """A job's processes ended by themselves."""

    job_id: str
    state: JobState
    """COMPLETED, FAILED or CANCELLED."""
    cleaned: bool = False
    """Whether its nodes are free already (no epilog)."""


class Cleaned(NamedTuple):
    """A job that had ended or been killed has left all its nodes, or some of them before the others."""

    job_id: str
    nodes: NodeBits | None = None
    """The nodes that it has left before the others; None: all that it still held."""


class Command(NamedTuple):
    """A person asks for something."""

    name: str
    """suspend, resume, requeue, cancel, checkpoint, hold, release, start, or priority."""
    job_id: str
    user: str | None = None
    """None: an administrator."""
    value: str = ""
    """The new priority; with start what to ignore: ignorepolicies, ignorersv."""


class NodesDown(NamedTuple):
    """Nodes failed: jobs on them end as NODE_FAIL, or are requeued."""

    nodes: NodeBits


class NodesDrained(NamedTuple):
    """Nodes take no new jobs; those on them go on."""

    nodes: NodeBits


class NodesUp(NamedTuple):
    """Nodes are in service again."""

    nodes: NodeBits


Event = Submitted | Finished | Cleaned | Command | NodesDown | NodesDrained | NodesUp


# -------------------------------------------------------------------------------------- actions
class Start(NamedTuple):
    """Start the job on `job.allocation`."""

    job: Job


class Kill(NamedTuple):
    """Terminate the job's processes (SIGCONT, SIGTERM, after the kill wait SIGKILL) and clean up."""

    job: Job
    why: str


class Suspend(NamedTuple):
    """Stop the job's processes (SIGTSTP, then SIGSTOP), or by one signal that the policy names."""

    job: Job
    signal: str = ""
    """Without SIG; empty: SIGTSTP, then SIGSTOP."""


class Resume(NamedTuple):
    """Continue the job's processes (SIGCONT)."""

    job: Job


class SendSignal(NamedTuple):
    """Send a signal to the job."""

    job: Job
    signal: str
    steps_only: bool


class Checkpoint(NamedTuple):
    """Save the job's state; it is killed afterwards."""

    job: Job


Action = Start | Kill | Suspend | Resume | SendSignal | Checkpoint
