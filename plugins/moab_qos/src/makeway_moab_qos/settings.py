"""Hold what a moab.cfg says: the keys of ``[policy.settings."moab/qos"]`` (moab 10).

Rules that the documents leave open, or that rest on recollection alone, are keys of `Choices` with the
proposed default (moab 15.1). Names of policies and flags are spelled as in moab.cfg.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs

from makeway.model import Duration
from makeway_moab_qos.hosts import check_hosts

_TIME = attrs.validators.ge(0.0)
_COUNT = attrs.validators.ge(0)


NO_CLASS = "DEFAULT"
"""Partition of jobs that name no class, at a site that describes classes: CLASSCFG[DEFAULT] alone applies to it."""


class Profile(enum.Enum):
    """Whose behaviour counts."""

    MOAB = "moab"
    """What Moab documents."""
    MAUI = "maui"
    """What Maui 3.3.1 does, oddities included (moab 15.2 and 17)."""


class ListMode(enum.Enum):
    """How a credential's list of QoS joins those of the others (moab 3.3)."""

    OR = "or"
    AND = "and"
    """``&``"""
    ONLY = "only"
    """``^``"""


@attrs.frozen(kw_only=True)
class Credential:
    """QOSCFG, USERCFG, GROUPCFG, ACCOUNTCFG, CLASSCFG: the attributes of one index."""

    priority: float = 0
    flags: tuple[str, ...] = ()
    """QFLAGS; of a QoS only."""
    jobflags: tuple[str, ...] = ()
    qdef: str | None = None
    qlist: tuple[str, ...] = ()
    mode: ListMode = ListMode.OR
    members: tuple[str, ...] = ()
    """MEMBERULIST: users who may use the QoS."""
    max_job: tuple[int, ...] = ()
    max_proc: tuple[int, ...] = ()
    max_node: tuple[int, ...] = ()
    """Soft limit on what is active, and hard limit; one number is both."""
    max_job_per_user: tuple[int, ...] = ()
    max_proc_per_user: tuple[int, ...] = ()
    max_node_per_user: tuple[int, ...] = ()
    """The same for each user alone (MAXJOB[USER], and Maui's MAXJOBPERUSER)."""
    qt_weight: float = 0
    xf_weight: float = 0
    qt_target: float = 0
    xf_target: float = 0
    fs_target: float = 0
    """Percent of what is delivered; 0: no target."""
    fs_mode: str = attrs.field(
        default="target", validator=attrs.validators.in_(("target", "floor", "ceiling"))
    )
    """What FSTARGET's mark says: ``+`` floor, ``-`` ceiling (``^`` as well)."""
    preempt_min_time: Duration | None = None
    preempt_qt_threshold: Duration | None = None
    preempt_xf_threshold: float | None = None


@attrs.frozen(kw_only=True)
class Weights:
    """The weights of the priority formula (moab 8.1); None: not set, which counts as the default."""

    serv: float = 1
    queue_time: float = 1
    xfactor: float = 0
    sp_violation: float = 0
    bypass: float = 0
    cred: float = 1
    user: float = 0
    group: float = 0
    account: float = 0
    qos: float | None = None
    """None: 0; whether Moab's own default is 1 is not known (U4)."""
    klass: float = 0
    fs: float = 1
    fs_user: float = 0
    fs_group: float = 0
    fs_account: float = 0
    fs_qos: float = 0
    fs_klass: float = 0
    res: float = 1
    node: float = 0
    proc: float = 0
    mem: float = 0
    swap: float = 0
    disk: float = 0
    ps: float = 0
    pe: float = 0
    walltime: float = 0
    target: float = 1
    target_queue_time: float = 0
    target_xfactor: float = 0
    attr: float = 1
    usage: float = 1
    usage_consumed: float = 0
    usage_remaining: float = 0
    usage_percent: float = 0
    usage_execution_time: float = 0
    xf_min_limit: float = 0
    """XFMINWCLIMIT"""
    caps: Mapping[str, float] = attrs.field(factory=dict)
    """Key of this table -> cap of that component or subcomponent; 0: none."""


@attrs.frozen(kw_only=True)
class Standing:
    """SRCFG: a standing reservation."""

    name: str
    hosts: str = attrs.field(default="", validator=lambda _self, _field, value: check_hosts(value))
    """Names, ranges and regular expressions; empty: all nodes."""
    owner: str = ""
    """``KIND:name``; KIND is USER, GROUP, ACCT, CLASS or QOS."""
    flags: tuple[str, ...] = ()
    period: str = attrs.field(default="DAY", validator=attrs.validators.in_(("DAY", "WEEK", "INFINITY")))
    starts: float = 0.0
    """STARTTIME: seconds into its day or week."""
    ends: float = attrs.field(
        default=attrs.Factory(lambda self: 604800.0 if self.period == "WEEK" else 86400.0, takes_self=True)
    )
    """ENDTIME"""
    days: tuple[str, ...] = ()
    """MON, TUE, ...; nothing: every day."""
    access: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """user, group, account, class, qos, jobattr (flags of jobs) -> who may use it; nothing: all."""

    @property
    def always(self) -> bool:
        """Whether it is active all the time."""
        if self.period == "INFINITY":
            return True
        whole = self.starts == 0 and self.ends >= (604800 if self.period == "WEEK" else 86400)
        return whole and len(set(self.days)) in (0, 7)


@attrs.frozen(kw_only=True)
class ResourceManager:
    """RMCFG."""

    name: str = "base"
    type: str = ""
    """PBS, TORQUE, PBSPRO, LL, LSF, SGE, NATIVE, ...; empty: makeway's own, which can do everything."""
    suspend_sig: str = ""
    checkpoint_sig: str = ""
    checkpoint_timeout: float = 0
    suspend_url: str = ""
    lacks: tuple[str, ...] = ()
    """Methods that it cannot do whatever its type says: suspend, checkpoint, requeue, cancel."""


@attrs.frozen(kw_only=True)
class Choices:
    """What the documents leave open (moab 15.1), or what rests on recollection alone."""

    minimise: bool = False
    """After the greedy walk, put back what is not needed, the costliest first (4.1)."""
    max_preemptees: int = attrs.field(default=32, validator=_COUNT)
    """Most victims of one preemptor; if more are needed, none is preempted (U6). 0: any number."""
    strict_priority: bool = True
    """An equal priority does not preempt (U5)."""
    owner_requires_preemptee: bool = True
    """Owner preemption (X4) takes only jobs that carry PREEMPTEE."""
    owner_respects_min_time: bool = True
    """It keeps to the minimum active time (U11)."""
    checkpoint_requires: str = attrs.field(
        default="none", validator=attrs.validators.in_(("none", "restartable"))
    )
    """Which flag CHECKPOINT needs (U7)."""
    checkpoint_on_the_way: bool = True
    """A job that cannot be suspended is checkpointed before it is requeued (U8), where the resource manager is
    known to do that; else it is requeued or cancelled."""
    escalate_for_resources: bool = True
    """A job whose suspension would free too little is checkpointed or requeued instead (U9); never under Maui."""
    interactive_needs_cancel: bool = True
    """INTERACTIVE jobs are victims only where the effective method is CANCEL (G9)."""
    preempt_again_while_locked: bool = False
    """A preemptor that holds a lock may take more victims (U14)."""
    max_time_counts_suspended: bool = False
    """JOBPREEMPTMAXACTIVETIME counts time spent suspended (U15)."""
    derive_flags: bool = True
    """Where no QoS has flags of Moab's: those that list others to preempt are PREEMPTOR, the listed PREEMPTEE."""
    class_violation_needs_preemptor: bool = False
    """ENABLEFSVIOLATIONPREEMPTION and ENABLESPVIOLATIONPREEMPTION help PREEMPTOR jobs only (X9)."""
    fs_violation_while_running: bool = True
    """PREEMPTFSV: a job is preemptible while its usage is beyond a target; false: only if it was when it started."""
    runnow_priority: int = attrs.field(default=1, validator=_COUNT)
    """System priority that RUNNOW gives (X10); 0: none, the job is only made a preemptor."""
    host_expressions_match_whole: bool = False
    """A regular expression of HOSTLIST has to match the whole name of a node, not just a part of it."""
    defer_refused_qos: bool = True
    """A job that asks for a QoS it may not use is deferred for DEFERTIME (3.3); false: as when Maui's simulator loads
    a trace, which wipes the deferral (section 17), it gets its default QoS and starts at once."""
    resume_manual: bool = True
    """Jobs that a person suspended are resumed like others, after the hold-down."""


@attrs.frozen(kw_only=True)
class Settings:
    """Keys of ``[policy.settings."moab/qos"]``."""

    profile: Profile = Profile.MOAB
    preempt_policy: str = "REQUEUE"
    guaranteed_preemption: bool = False
    job_retry_time: float = attrs.field(default=60.0, validator=_TIME)
    nowait_preemption: bool = False
    preemption_algorithm: str = ""
    min_active_time: float = attrs.field(default=0.0, validator=_TIME)
    max_active_time: float = attrs.field(default=0.0, validator=_TIME)
    completion_time: float = attrs.field(default=0.0, validator=_TIME)
    prio_job_select_weight: float | None = None
    rtime_weight: float | None = None
    search_depth: int | None = None
    max_job_preempt_per_iteration: int = attrs.field(default=0, validator=_COUNT)
    ignore_preemptee_priority: bool = False
    sp_violation_preemption: bool = False
    fs_violation_preemption: bool = False
    check_suspended_job_priority: bool = True
    suspend_resources: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    min_admin_stime: float | None = None
    """MINADMINSTIME; None: 60 s, Maui's 10 s under its profile."""
    reservation_policy: str = "CURRENTHIGHEST"
    reservation_depth: Mapping[str, int] = attrs.field(factory=dict)
    """Bucket -> how many jobs hold reservations; nothing: one bucket of 1."""
    reservation_qos: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Bucket -> its QoS; nothing: all."""
    backfill_policy: str = "FIRSTFIT"
    backfill_depth: int = 0
    bf_priority_policy: str = "NONE"
    wc_violation_action: str = "CANCEL"
    node_match_policy: str = ""
    node_access_policy: str = "SHARED"
    node_allocation_policy: str = "LASTAVAILABLE"
    node_set_plus: str = ""
    node_set_policy: str = ""
    """NODESETPOLICY: ONEOF, FIRSTOF or ANYOF; empty: jobs are kept to no set of nodes."""
    node_set_attribute: str = "FEATURE"
    """NODESETATTRIBUTE; sets by anything but features are not made."""
    node_set_list: tuple[str, ...] = ()
    """NODESETLIST: the features; none: each that a node has."""
    node_set_priority: str = ""
    """NODESETPRIORITYTYPE: BESTFIT takes the smallest set first, WORSTFIT the largest; else as they are listed."""
    node_set_delay: float = attrs.field(default=0.0, validator=_TIME)
    """NODESETDELAY: how long a job waits for a set before any nodes will do; in Maui for good unless it is 0."""
    node_set_optional: bool = True
    """NODESETISOPTIONAL; False: no job starts outside a set."""
    enable_negative_priority: bool = False
    reject_negative_priority: bool = False
    priority_accrual: str = ""
    """JOBPRIOACCRUALPOLICY; empty: QUEUEPOLICY."""
    priority_exceptions: tuple[str, ...] = ()
    """JOBPRIOEXCEPTIONS: with ACCRUE, what does not stop queue time; ALL: nothing stops it, as under ALWAYS."""
    use_system_queue_time: bool = False
    """USESYSTEMQUEUETIME: queue time counts from submission, where JOBPRIOACCRUALPOLICY does not say."""
    defer_time: float = attrs.field(default=3600.0, validator=_TIME)
    fs_policy: str = "NONE"
    """What fairshare usage counts; NONE: there is no fairshare. With ``%``: of what could be delivered."""
    fs_interval: float = attrs.field(default=86400.0, validator=attrs.validators.gt(0))
    """Length of a fairshare window."""
    fs_depth: int = attrs.field(default=7, validator=attrs.validators.ge(1))
    """How many windows count, the current one included."""
    fs_decay: float = attrs.field(default=1.0, validator=_TIME)
    """Weight of a window against the one after it."""
    use_job_regex: bool = False
    weights: Weights = Weights()
    qos: Mapping[str, Credential] = attrs.field(factory=dict)
    user: Mapping[str, Credential] = attrs.field(factory=dict)
    group: Mapping[str, Credential] = attrs.field(factory=dict)
    account: Mapping[str, Credential] = attrs.field(factory=dict)
    klass: Mapping[str, Credential] = attrs.field(factory=dict)
    system: Credential = Credential()
    """QDEF and QLIST of the whole system (SYSCFG)."""
    standing: tuple[Standing, ...] = ()
    monday_at: float | None = None
    """Second of the replay at which a Monday begins, for the times of standing reservations; None: as the
    workload's dates say (UTC), or 0."""
    rm: tuple[ResourceManager, ...] = ()
    admin1: tuple[str, ...] = ("root",)
    admin2: tuple[str, ...] = ()
    admin3: tuple[str, ...] = ()
    choices: Choices = Choices()
    written: tuple[str, ...] = ()
    """Parameters that the site's file sets, for the check list: what is set differs from what is a default."""

    memo: dict[str, Any] = attrs.field(init=False, factory=dict, eq=False, repr=False)
    """Answers that stay the same for the whole run, kept by what asks."""

    @cached_property
    def maui(self) -> bool:
        """Whether Maui's behaviour counts."""
        return self.profile is Profile.MAUI

    @property
    def hold_down(self) -> float:
        """Least time from a suspension until the scheduler resumes the job (moab 7.4, Q12)."""
        if self.min_admin_stime is not None and not self.maui:
            return self.min_admin_stime
        return 10.0 if self.maui else 60.0

    @property
    def depths(self) -> Mapping[str, int]:
        """How many jobs of each bucket hold reservations."""
        if self.reservation_policy == "NEVER" or self.optimistic:
            return {}
        return self.reservation_depth or {"0": 1}

    @cached_property
    def optimistic(self) -> bool:
        """Whether backfill starts jobs that may not have the time to end (moab 7.3)."""
        return self.backfill_policy == "PREEMPT"

    @property
    def backfills(self) -> bool:
        """Whether jobs may start before one that waits."""
        return self.backfill_policy != "NONE"


def path(*keys: str) -> str:
    """Return the path of a setting in the config."""
    return ".".join(('policy.settings."moab/qos"', *keys))
