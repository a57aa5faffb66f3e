"""Define what a world tells the engine (events) and what the engine asks of a world (actions).

Events are facts, not wishes. A world may report one twice, late, or out of order: the engine takes note of what
is news and counts the rest (`makeway_engine.reports`). What tells news from an echo is the *incarnation*: how often
the engine has started the job, counted from 1. An event that names an earlier incarnation is an echo. 0 means
"whichever runs now", for worlds that never repeat themselves.

Instants are seconds on the run's clock (`makeway.model.Seconds`), sets of nodes are bitmaps in index order.
"""

from __future__ import annotations

from typing import NamedTuple

from makeway.bitmap import NodeBits
from makeway.model import Allocation, Job, JobSpec, JobState, Seconds
from makeway.worlds.standing import Standing


# --------------------------------------------------------------------------------------- events
class Submitted(NamedTuple):
    """A job arrived."""

    spec: JobSpec


class Started(NamedTuple):
    """A start was performed: the job's processes run since `at`.

    Reporting it is optional. Limits and running times count from `at` once it is known; until then from the
    instant of the decision.
    """

    job_id: str
    incarnation: int = 0
    at: Seconds | None = None
    """The real instant; None: now."""
    obstacle: str = ""
    """Why it cannot be checkpointed; empty: nothing is known of that."""


class Finished(NamedTuple):
    """A job's processes ended by themselves."""

    job_id: str
    state: JobState
    """COMPLETED, FAILED or CANCELLED."""
    cleaned: bool = False
    """Whether its nodes are free already (no epilog); False: a `Cleaned` follows."""
    incarnation: int = 0


class Cleaned(NamedTuple):
    """A job that had ended or been killed has left all its nodes, or some of them before the others."""

    job_id: str
    nodes: NodeBits | None = None
    """The nodes that it has left before the others; None: all that it still held."""
    incarnation: int = 0


class Failed(NamedTuple):
    """An action was not performed, and will not be; what follows is a rule (`makeway.config.FailureTable`).

    A start that failed leaves nothing behind: no process of the job is on any node. A world that is not sure of
    that kills what may be there before it reports the failure.
    """

    serial: int
    """Of the action."""
    why: str
    """In words that people can read; shown in the queue."""
    retry: bool = True
    """Whether the same may succeed later; False: a job whose start failed is held at once."""
    nodes: NodeBits = 0
    """The nodes that refused; 0: it is not known, or it was not a node's fault."""


class Performed(NamedTuple):
    """An action was performed: it will not turn out to have failed.

    Reporting it is optional. Where it is done, a survey can tell what others did later from what was never
    done.
    """

    serial: int
    """Of the action."""


class Noticed(NamedTuple):
    """Somebody other than the engine changed a job: stopped, continued, requeued, cancelled, or ended it."""

    job_id: str
    state: JobState
    """As it is now: RUNNING, SUSPENDED, PENDING (it waits again), COMPLETING, or an end."""
    incarnation: int = 0
    by: str = ""
    """Who did it, if that is known; for people."""


class Checkpointed(NamedTuple):
    """A job has saved its state: asked to by `Checkpoint`, or by itself."""

    job_id: str
    saved: Seconds
    """Work of this incarnation that is safe now, in seconds of running."""
    incarnation: int = 0


class Obstructed(NamedTuple):
    """A running job cannot be checkpointed, for another reason than before; or it can be, again."""

    job_id: str
    obstacle: str = ""
    """In words that people can read; empty: it can be."""
    incarnation: int = 0


class BegunAnew(NamedTuple):
    """A job could not go on from what earlier incarnations had saved: it began from the beginning."""

    job_id: str
    why: str = ""
    """In words that people can read."""
    incarnation: int = 0


class Adopted(NamedTuple):
    """A job is there that this engine did not bring about: take it into the books as it stands."""

    standing: Standing


class Reused(NamedTuple):
    """The job of that id is gone, and another one has its id: what is submitted or adopted next is not an echo."""

    job_id: str
    by: str = ""
    """Who gave the id anew, if that is known; for people."""


class Command(NamedTuple):
    """A person asks for something."""

    name: str
    """suspend, resume, requeue, cancel, checkpoint, hold, release, start, priority, change, or signal."""
    job_id: str
    user: str | None = None
    """None: an administrator."""
    value: str = ""
    """The new priority; the signal; ``nice=5``, ``qos=high``, ``site_factor=250``, ``begin=3600`` (seconds of the run);
    with start what to ignore."""


class NodesDown(NamedTuple):
    """Nodes failed: jobs on them end as NODE_FAIL, or are requeued."""

    nodes: NodeBits


class NodesDrained(NamedTuple):
    """Nodes take no new jobs; those on them go on."""

    nodes: NodeBits


class NodesUp(NamedTuple):
    """Nodes are in service again."""

    nodes: NodeBits


class NodesUsed(NamedTuple):
    """A person uses nodes: jobs of one partition make way there, and none of it starts until they are quiet."""

    nodes: NodeBits
    partition: str
    why: str = ""
    """What shows it, and since when; for people."""


class NodesQuiet(NamedTuple):
    """No person has used nodes for as long as a partition wants."""

    nodes: NodeBits
    partition: str


Event = (
    Submitted
    | Started
    | Finished
    | Cleaned
    | Failed
    | Performed
    | Noticed
    | Checkpointed
    | Obstructed
    | BegunAnew
    | Adopted
    | Reused
    | Command
    | NodesDown
    | NodesDrained
    | NodesUp
    | NodesUsed
    | NodesQuiet
)


# -------------------------------------------------------------------------------------- actions
# Every action ends in the same three fields:
#   serial       grows by one with every action of a run, over restarts of the daemon too; 0: not numbered
#   incarnation  of the job that is meant
#   after        serials of actions that must have succeeded before; if one failed, this one is not performed,
#                and is reported as failed as well. A serial that the world knows nothing of has succeeded.
# Actions about one job are performed in the order of their serials.
class Start(NamedTuple):
    """Start the job on `allocation`.

    Performed at most once per incarnation: a world that is told again, after a crash, looks first.
    """

    job: Job
    serial: int = 0
    incarnation: int = 0
    after: tuple[int, ...] = ()
    allocation: Allocation | None = None
    """As decided; `job.allocation` may change while the start waits for other actions."""
    stopped: bool = False
    """Whether it is stopped in the same step: its turn comes later, and others run on its cores. A world that can
    starts it stopped; the `Suspend` follows all the same."""


class Kill(NamedTuple):
    """Terminate the job's processes (SIGCONT, SIGTERM, after the kill wait SIGKILL) and clean up.

    Ends in `Cleaned`; until then its nodes count as taken. A job that is not there is clean.
    """

    job: Job
    why: str
    serial: int = 0
    incarnation: int = 0
    after: tuple[int, ...] = ()
    attempt: int = 1
    """How often this kill was asked for."""
    forced: bool = False
    """Whether SIGKILL is to be used at once: earlier attempts failed."""
    becomes: JobState | None = None
    """What the job comes to: PENDING if it is to wait again, else its end. None: not said. Only worlds that have a
    queue of their own need it."""


class Suspend(NamedTuple):
    """Stop the job's processes (SIGTSTP, then SIGSTOP), or by one signal that the policy names."""

    job: Job
    signal: str = ""
    """Without SIG; empty: SIGTSTP, then SIGSTOP."""
    serial: int = 0
    incarnation: int = 0
    after: tuple[int, ...] = ()


class Resume(NamedTuple):
    """Continue the job's processes (SIGCONT)."""

    job: Job
    serial: int = 0
    incarnation: int = 0
    after: tuple[int, ...] = ()


class SendSignal(NamedTuple):
    """Send a signal to the job."""

    job: Job
    signal: str
    steps_only: bool
    serial: int = 0
    incarnation: int = 0
    after: tuple[int, ...] = ()


class Checkpoint(NamedTuple):
    """Save the job's state; it is killed afterwards."""

    job: Job
    serial: int = 0
    incarnation: int = 0
    after: tuple[int, ...] = ()
    within: Seconds = 0.0
    """After which it has failed; 0: as the world's own settings say."""
    before: Seconds | None = None
    """Work of this incarnation that was saved before, to which the job goes back if this fails; None: none was."""


Action = Start | Kill | Suspend | Resume | SendSignal | Checkpoint
