"""Keys of ``[world.settings]`` for ``world/local``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from makeway.model import Duration

_SECONDS = attrs.validators.ge(0.0)
_MANY = attrs.validators.ge(1)


@attrs.frozen(kw_only=True)
class Kind:
    """What holds for the jobs of a partition, or of a QOS; what a job says itself goes before it."""

    checkpointable: bool | None = None
    """Whether each is saved with its memory when it makes way by a checkpoint; None: not said."""
    checkpoint_every: Duration | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(1.0))
    )
    """So often it is saved as well; None: not said. It makes jobs checkpointable unless the other key says no."""

    @property
    def saves(self) -> bool | None:
        """Whether its jobs are saved; None: not said."""
        if self.checkpointable is None and self.checkpoint_every is not None:
            return True
        return self.checkpointable


@attrs.frozen(kw_only=True)
class Settings:
    """How jobs are held on this machine; every delay in seconds."""

    cgroups: Literal["auto", "off"] = "auto"
    """Whether each job gets a cgroup of its own where this user may make one (version 2)."""
    bind: bool = True
    """Whether jobs are bound to the cores that they were given."""
    kill_wait: Duration = attrs.field(default=30.0, validator=_SECONDS)
    """From SIGTERM to SIGKILL; ``scheduler.clockwork.kill_wait`` counts instead if it is set."""
    stop_delay: Duration = attrs.field(default=0.0, validator=_SECONDS)
    """From the notice (SIGTSTP, or the job's command) to the stop; ``scheduler.clockwork.suspend_grace_time`` counts
    instead if it is set. 0: no notice."""
    stop_limit: Duration = attrs.field(default=2.0, validator=attrs.validators.gt(0.0))
    """After which a suspension that did not stop everything has failed."""
    checkpoint_limit: Duration = attrs.field(default=300.0, validator=attrs.validators.gt(0.0))
    """After which a job's checkpoint command has failed."""
    partition: Mapping[str, Kind] = attrs.field(factory=dict)
    """Partition -> what holds for its jobs."""
    qos: Mapping[str, Kind] = attrs.field(factory=dict)
    """QOS -> what holds for its jobs; it goes before the partition."""
    user_images: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Most MB that what was saved of one user's jobs may take; 0: as much as there is room for."""
    on_end_limit: Duration = attrs.field(default=60.0, validator=attrs.validators.gt(0.0))
    """After which the command for the end of a job is killed."""
    leftovers: Literal["kill", "wait"] = "kill"
    """What becomes of processes that are left when the first one of a job has ended."""
    leftover_grace: Duration = attrs.field(default=0.0, validator=_SECONDS)
    """From SIGTERM to SIGKILL for these; 0: SIGKILL at once."""
    memory_short: Literal["requeue", "refuse", "ignore"] = "requeue"
    """What becomes of a suspension if the memory of who takes its place is not free: suspended jobs keep theirs."""
    swap_counts: bool = False
    """Whether free swap counts as free memory for that."""
    memory_factor: float = attrs.field(default=1.0, validator=_SECONDS)
    """Where the kernel does not limit the memory of a job, it is cancelled once it has so many times what it was given;
    0: never."""
    memory_floor: int = attrs.field(default=128, validator=attrs.validators.ge(0))
    """Free memory in MB below which the youngest job of the lowest tier goes back to the queue, before the kernel kills
    any; 0: never. It protects where jobs have no memory limit of their own."""
    gpu_victims: Literal["requeue", "refuse", "suspend"] = "requeue"
    """What becomes of a policy's suspension of a job with GPUs: it frees none of them."""
    keeper_lost: Literal["requeue", "fail", "hold"] = "requeue"
    """What becomes of a job whose keeper was killed."""
    reboot: Literal["requeue", "fail", "hold"] = "requeue"
    """What becomes of jobs that ran when the machine went down."""
    oom_score_adj: int = attrs.field(
        default=500, validator=attrs.validators.and_(attrs.validators.ge(0), attrs.validators.le(1000))
    )
    """How much rather than others the kernel takes jobs when memory runs out."""

    max_processes: int = attrs.field(default=8192, validator=attrs.validators.ge(0))
    """How many processes and threads a job may have where the kernel limits them (``pids.max``); 0: no limit."""

    operators: tuple[str, ...] = ()
    """Who may do everything with all jobs, beside root and the daemon's user: user names, and ``@group`` for all
    members of a group."""
    attributes: tuple[str, ...] = ()
    """Attributes that all users may give jobs (``submit --attribute``), beside operators, who give any."""
    private: bool = False
    """Whether names and commands of others' jobs are hidden from all but operators."""
    web: Literal["all", "operators", "off"] = "all"
    """Who may ask for a page in the browser."""
    web_port: int = attrs.field(
        default=0, validator=attrs.validators.and_(attrs.validators.ge(0), attrs.validators.le(65535))
    )
    """Port of the loopback on which the page is served; 0: any that is free, unless an operator names one."""

    user_connections: int = attrs.field(default=200, validator=_MANY)
    """Most open connections of one user to the daemon."""
    user_requests: float = attrs.field(default=200.0, validator=attrs.validators.ge(1.0))
    """Requests of one user a second; 16 kB that a request brings or gets count as another one. Operators are free."""
    user_jobs: int = attrs.field(default=10_000, validator=_MANY)
    """Most jobs of one user that wait or run; operators are free."""
    user_storage: int = attrs.field(default=256, validator=_MANY)
    """Most MB that the stored submissions of one user take; operators are free."""

    user_bookings: int = attrs.field(default=3, validator=attrs.validators.ge(0))
    """Most bookings of one user that are not over; operators are free of this and of the next four."""
    booking_limit: Duration = attrs.field(default=12 * 3600.0, validator=_SECONDS)
    """Longest time of a booking."""
    booking_cpus: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Most CPUs that one user may have booked for any one time; 0: all."""
    booking_gpus: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Most GPUs likewise."""
    booking_memory_mb: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Most memory likewise, in MB."""
    booking_unused: Duration = attrs.field(default=900.0, validator=_SECONDS)
    """After which a booking falls back that no job of its user is in; 0: never."""
