"""Hold what the files beside lsb.queues say, and the options for what the documentation leaves open.

Tables keep LSF's own keywords and spelling, so that a configuration can be compared with the files line by
line; queues and hosts carry theirs in the ``attributes`` of their partition and node. Every option below decides
something that rests on memory or inference alone; its default is the decision taken in docs/rules/lsf.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from makeway.model import Duration, Seconds

NAME = "lsf/queue"


def _one_of(*words: str) -> Any:
    return attrs.validators.in_(words)


@attrs.frozen(kw_only=True)
class ResourceTable:
    """A shared resource (lsf.shared, lsf.cluster)."""

    total: int = 0
    release: bool = True
    """RELEASE: whether a suspended job gives it back."""
    dynamic: bool = False
    """A suspended job keeps a dynamic resource."""


@attrs.frozen(kw_only=True)
class Settings:
    """``[policy.settings."lsf/queue"]``."""

    params: Mapping[str, str] = attrs.field(factory=dict)
    """lsb.params, Parameters."""
    applications: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """lsb.applications, by NAME."""
    users: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """lsb.users, User: MAX_JOBS and JL/P by USER_NAME."""
    user_groups: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """lsb.users, UserGroup: members."""
    host_groups: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """lsb.hosts, HostGroup: members."""
    limits: tuple[Mapping[str, str], ...] = ()
    """lsb.resources, Limit sections."""
    lsf_conf: Mapping[str, str] = attrs.field(factory=dict)
    """lsf.conf, as far as it matters here."""
    resources: Mapping[str, ResourceTable] = attrs.field(factory=dict)
    """Shared resources that jobs reserve (``attributes.rusage``)."""

    sunday_at: Seconds | None = None
    """Second of the replay at which a Sunday begins at the site, for RUN_WINDOW and DISPATCH_WINDOW (9.2 no. 12).

    None: as the workload's wall clock says, in UTC; without one the replay begins on a Sunday at midnight.
    """

    preemptable_list: str = attrs.field(default="exclusive", validator=_one_of("exclusive", "union"))
    """PREEMPTABLE[list] against a PREEMPTIVE queue that is not on it (2.2 step 5): it keeps it out, or does not."""
    unknown_queue: str = attrs.field(default="skip", validator=_one_of("skip", "disable"))
    """A list names a queue that does not exist (2.1): skip the name, or the whole PREEMPTION line."""
    host_order: str = attrs.field(default="load", validator=_one_of("load", "slots", "config"))
    """Least loaded host (3.3): by load, then by slots in use; by slots in use; in the order of the config."""
    same_host: str = attrs.field(default="priority", validator=_one_of("priority", "ties"))
    """Victims on one host (3.2, regime N): the lower queue goes first; or only ties decide."""
    ties: str = attrs.field(default="youngest", validator=_one_of("youngest", "oldest"))
    """Victims alike in all else (3.3)."""
    over_preempt: bool = True
    """Whether the default choice keeps parallel victims that turned out needless (3.4, 12 no. 4)."""
    exact_search: int = attrs.field(default=4, validator=attrs.validators.ge(0))
    """OPTIMAL_MINI_JOB: sets of up to so many victims are searched exactly (3.4)."""
    duration: str = attrs.field(default="estimate", validator=_one_of("estimate", "run_limit"))
    """Which comes first as a job's duration (4.3)."""
    without_duration: str = attrs.field(default="unprotected", validator=_one_of("unprotected", "protected"))
    """A job without any duration, where a percentage or a finish time is configured (4.3)."""
    run_time: str = attrs.field(default="running", validator=_one_of("running", "since_start"))
    """What counts as run time for protections and LEAST_RUN_TIME (4.3): time in RUN; all time since the start."""
    overrun_protected: bool = True
    """Whether a job past its estimate counts as about to finish (4.3)."""
    preempt_count: str = attrs.field(default="reached", validator=_one_of("reached", "exceeded"))
    """When MAX_JOB_PREEMPT protects (4.3, 12 no. 6)."""
    brun_protected: bool = True
    """Whether jobs started by brun are safe (4.6)."""
    queue_users: str = attrs.field(default="trust", validator=_one_of("trust", "refuse"))
    """USERS of a queue (9.3): a job of the workload was let in by its queue; or users not listed are refused."""
    sla_protected: bool = True
    """Whether jobs of a service class are safe from queues without SLA_GUARANTEES_IGNORE (4.6)."""
    backfill_guard: str = attrs.field(default="10.1", validator=_one_of("10.1", "7.3"))
    """Whether a queue below the reserving one may take a backfill job's slots (7.2): yes, or no."""
    killed_exit_value: int = 130
    """Exit value of a job that the terminate action has killed, for REQUEUE_EXIT_VALUES (6.1)."""
    resize_preempts: bool = False
    """Whether a request to grow (``attributes.resize``) may preempt (4.6)."""
    ssusp_closes_host: bool = True
    """Whether the first host of a suspended job is closed to queues of its own or a lower priority (5.3)."""
    chain: bool = True
    """Whether slots of a suspended job may be used by who takes those of the jobs that displaced it (12 no. 3)."""
    gpu_resource: bool = True
    """Whether GPU preemption takes ngpus_physical in PREEMPTABLE_RESOURCES (8.3)."""
    resume: str = attrs.field(default="slots", validator=_one_of("slots", "preemptor"))
    """When a victim resumes (6.3): as soon as its slots are free, or not before its preemptor is gone."""
    jobs_limit_on_resume: str = attrs.field(default="all", validator=_one_of("all", "running"))
    """Which jobs a JOBS limit counts when a suspended job is to go on (5.1, 6.3): all, as the text says, which may
    keep suspended jobs from going on for good after two preemptions in a row; or those that run."""
    resume_order: str = attrs.field(default="reverse", validator=_one_of("reverse", "first_suspended"))
    """Who resumes first (6.3, 12 no. 14): the reverse of preemption, or who was stopped first."""
    take_back: bool = True
    """Whether a suspended job may stop those that use its slots by USE_SUSP_SLOTS when it could go on (5.3)."""
    accept_interval: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """JOB_ACCEPT_INTERVAL where no file sets it (9.3): LSF has 1 turn then, its examples none."""
    reserve_longest: Duration | None = None
    """Longest reservation for queues with resource reservation; None: as SLOT_RESERVE says."""
