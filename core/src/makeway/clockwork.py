"""Name every delay of a scheduler's clockwork, with a preset.

``ideal`` has no latency at all: pure policy. Vendors add presets with the defaults of their scheduler
(`makeway.vendors`). A table in ``[scheduler] clockwork`` starts from ``preset`` and changes single values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from makeway.model import Duration, Seconds

_TINY = 1e-6


def _delay(default: Seconds) -> Seconds:
    value: Seconds = attrs.field(default=default, validator=attrs.validators.ge(0.0))
    return value


@attrs.frozen(kw_only=True)
class Clockwork:
    """The delays of one run, in seconds; an interval of 0 means "at every event"."""

    sched_interval: Duration = _delay(0.0)
    """Between two full passes of the main scheduler; 0: a pass whenever something changed."""
    sched_phase: Duration = _delay(0.0)
    """Instant of the first pass within its interval."""
    submit_delay: Duration = _delay(0.0)
    """From a submission to the pass that it triggers (batch_sched_delay); used when passes are periodic and
    `pass_on_submit` is set."""
    pass_on_submit: bool = True
    """A submission triggers a pass of its own between periodic ones."""
    pass_on_completion: bool = True
    """A job that has left its nodes triggers a pass of its own between periodic ones."""
    pass_on_own_end: bool = True
    """So does one that ended by itself; False: only one that was killed or requeued."""
    bf_interval: Duration = _delay(0.0)
    """Between two passes of the backfill scheduler; 0: after every main pass."""
    bf_phase: Duration = _delay(0.0)
    """Instant of the first backfill pass within its interval."""
    bf_window: Duration = _delay(86400.0)
    """How far backfill plans ahead."""
    bf_resolution: Duration = attrs.field(default=1.0, validator=attrs.validators.gt(0))
    """Grain of backfill's plan."""
    bf_max_job_test: int = attrs.field(default=1_000_000, validator=attrs.validators.ge(1))
    """Most jobs looked at in one backfill pass."""
    bf_max_job_array_resv: int = attrs.field(default=1_000_000, validator=attrs.validators.ge(1))
    """Most tasks of a job array that backfill keeps nodes for in one pass."""
    bf_min_prio_reserve: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Backfill keeps no nodes for jobs of a lower priority."""
    bf_licenses: bool = False
    """Backfill plans licences, too; the main scheduler ends a pass at a job whose licences are short."""
    default_queue_depth: int = attrs.field(default=1_000_000, validator=attrs.validators.ge(1))
    """Most jobs looked at in a triggered main pass."""
    limit_sweep: Duration = _delay(0.0)
    """Between two checks of time limits and grace times; 0: exactly when they strike."""
    limit_phase: Duration = _delay(0.0)
    """Instant of the first check within its interval."""
    kill_wait: Duration = _delay(0.0)
    """From SIGTERM to SIGKILL."""
    signal_time: Duration = _delay(0.0)
    """From a signal to the end of a job that ends by it."""
    min_kill_delay: Duration = _delay(0.0)
    """Least time that a node waits before SIGKILL, whatever `kill_wait` says."""
    message_timeout: Duration = _delay(0.0)
    """With `kill_wait`: how long a preemptor waits before it may have others killed again."""
    requeue_delay: Duration = _delay(0.0)
    """From leaving its nodes until a requeued job may start again."""
    min_job_age: Duration = _delay(300.0)
    """How long a person may have a job run again that has ended (MinJobAge); 0: for good."""
    completing_time: Duration = _delay(0.0)
    """From the end of a job's processes until its nodes are free (epilog)."""
    batch_host_delay: Duration = _delay(0.0)
    """By how much a killed job leaves its first node, where its batch script runs, after its other nodes."""
    leader_delay: Duration = _delay(0.0)
    """By how much the leader of a heterogeneous job that is killed leaves its nodes after the other components."""
    kill_spacing: Duration = _delay(0.0)
    """A killed job leaves its nodes by so much later for each job that was submitted before it."""
    suspend_grace_time: Duration = _delay(0.0)
    """From SIGTSTP to SIGSTOP; without effect in the simulated world, where jobs stop at SIGTSTP."""
    checkpoint_time: Duration = _delay(0.0)
    """How long a job that is checkpointed goes on holding its nodes, to write its state."""
    restart_time: Duration = _delay(0.0)
    """Running time that a job needs to read its state when it starts from a checkpoint."""
    checkpoint_interval: Duration = _delay(0.0)
    """Jobs save their state by themselves every so many seconds of running, and go back to the last time;
    0: the state is saved when the job is told to leave, and nothing is lost."""
    keep_freed: bool = True
    """What victims leave is kept for the job that they leave for: until the last of them has gone its nodes are closed
    to others, and then it is tried first. False: the first job in the queue takes it, as in Slurm."""
    second_phase: Duration | None = None
    """Where the controller's second begins: exempt times count from the whole second in which a job started; None:
    from the very instant."""
    counts_seconds: bool = False
    """Whether kill window, grace time and requeue delay count in the controller's whole seconds, too."""
    stopped_work_counts: bool = False
    """Whether a job does its work while it counts as running, even if its processes stay stopped; they end once they go
    on. So do jobs of recordings, which are told to end when they have had their running time."""
    minute_phase: Duration = _delay(0.0)
    """How many seconds past a full minute the wall clock stood at second 0: estimates that count in half minutes follow
    it."""
    first_tick: Duration | None = None
    """First wake-up of the timeslicer; None: one slice after the start."""

    def whole_second(self, at: Seconds) -> Seconds:
        """Return when the controller's second of `at` began; `at` itself where it does not count in seconds."""
        if self.second_phase is None or not self.counts_seconds:
            return at
        return math.floor(at - self.second_phase + _TINY) + self.second_phase


PRESETS: Mapping[str, Clockwork] = {
    "ideal": Clockwork(),
}
