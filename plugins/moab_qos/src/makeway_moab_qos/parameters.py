"""List the parameters that are read, and where each goes (moab 8.1 and 10)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class Parameter:
    """One plain parameter."""

    kind: str
    """time, boolean, integer, number, word, names, weight, indexed (numbers by bucket), indexed names."""
    key: str
    """Key of the settings."""
    maui: bool = True
    """Whether Maui has it."""


_MOAB_ONLY = {
    "GUARANTEEDPREEMPTION": Parameter("boolean", "guaranteed_preemption", False),
    "JOBRETRYTIME": Parameter("time", "job_retry_time", False),
    "NOWAITPREEMPTION": Parameter("boolean", "nowait_preemption", False),
    "PREEMPTIONALGORITHM": Parameter("word", "preemption_algorithm", False),
    "JOBPREEMPTMINACTIVETIME": Parameter("time", "min_active_time", False),
    "JOBPREEMPTMAXACTIVETIME": Parameter("time", "max_active_time", False),
    "JOBPREEMPTCOMPLETIONTIME": Parameter("time", "completion_time", False),
    "PREEMPTPRIOJOBSELECTWEIGHT": Parameter("number", "prio_job_select_weight", False),
    "PREEMPTRTIMEWEIGHT": Parameter("number", "rtime_weight", False),
    "PREEMPTSEARCHDEPTH": Parameter("integer", "search_depth", False),
    "MAXJOBPREEMPTPERITERATION": Parameter("integer", "max_job_preempt_per_iteration", False),
    "IGNOREPREEMPTEEPRIORITY": Parameter("boolean", "ignore_preemptee_priority", False),
    "ENABLESPVIOLATIONPREEMPTION": Parameter("boolean", "sp_violation_preemption", False),
    "ENABLEFSVIOLATIONPREEMPTION": Parameter("boolean", "fs_violation_preemption", False),
    "CHECKSUSPENDEDJOBPRIORITY": Parameter("boolean", "check_suspended_job_priority", False),
    "SUSPENDRESOURCES": Parameter("indexed names", "suspend_resources", False),
    "NODESETPLUS": Parameter("word", "node_set_plus", False),
    "NODESETISOPTIONAL": Parameter("boolean", "node_set_optional", False),
    "JOBPRIOACCRUALPOLICY": Parameter("word", "priority_accrual"),
    "JOBPRIOEXCEPTIONS": Parameter("names", "priority_exceptions", False),
}
PLAIN: Mapping[str, Parameter] = {
    **_MOAB_ONLY,
    "PREEMPTPOLICY": Parameter("word", "preempt_policy"),
    "MINADMINSTIME": Parameter("time", "min_admin_stime"),
    "RESERVATIONPOLICY": Parameter("word", "reservation_policy"),
    "RESERVATIONDEPTH": Parameter("indexed", "reservation_depth"),
    "RESERVATIONQOSLIST": Parameter("indexed names", "reservation_qos"),
    "BACKFILLPOLICY": Parameter("word", "backfill_policy"),
    "BACKFILLDEPTH": Parameter("integer", "backfill_depth"),
    "BFPRIORITYPOLICY": Parameter("word", "bf_priority_policy"),
    "WCVIOLATIONACTION": Parameter("word", "wc_violation_action"),
    "JOBNODEMATCHPOLICY": Parameter("word", "node_match_policy"),
    "NODEACCESSPOLICY": Parameter("word", "node_access_policy"),
    "NODEALLOCATIONPOLICY": Parameter("word", "node_allocation_policy"),
    "NODESETPOLICY": Parameter("word", "node_set_policy"),
    "NODESETATTRIBUTE": Parameter("word", "node_set_attribute"),
    "NODESETLIST": Parameter("names", "node_set_list"),
    "NODESETPRIORITYTYPE": Parameter("word", "node_set_priority"),
    "NODESETDELAY": Parameter("time", "node_set_delay"),
    "ENABLENEGJOBPRIORITY": Parameter("boolean", "enable_negative_priority"),
    "REJECTNEGPRIOJOBS": Parameter("boolean", "reject_negative_priority"),
    "DEFERTIME": Parameter("time", "defer_time"),
    "FSPOLICY": Parameter("word", "fs_policy"),
    "FSINTERVAL": Parameter("time", "fs_interval"),
    "FSDEPTH": Parameter("integer", "fs_depth"),
    "FSDECAY": Parameter("number", "fs_decay"),
    "USESYSTEMQUEUETIME": Parameter("boolean", "use_system_queue_time"),
    "USEJOBREGEX": Parameter("boolean", "use_job_regex"),
    "ADMIN1": Parameter("names", "admin1"),
    "ADMIN2": Parameter("names", "admin2"),
    "ADMIN3": Parameter("names", "admin3"),
}
"""Parameters that are settings one to one."""

WEIGHTS: Mapping[str, str] = {
    "SERVICEWEIGHT": "serv",
    "QUEUETIMEWEIGHT": "queue_time",
    "XFACTORWEIGHT": "xfactor",
    "SPVIOLATIONWEIGHT": "sp_violation",
    "BYPASSWEIGHT": "bypass",
    "CREDWEIGHT": "cred",
    "USERWEIGHT": "user",
    "GROUPWEIGHT": "group",
    "ACCOUNTWEIGHT": "account",
    "QOSWEIGHT": "qos",
    "CLASSWEIGHT": "klass",
    "FSWEIGHT": "fs",
    "FSUSERWEIGHT": "fs_user",
    "FSGROUPWEIGHT": "fs_group",
    "FSACCOUNTWEIGHT": "fs_account",
    "FSQOSWEIGHT": "fs_qos",
    "FSCLASSWEIGHT": "fs_klass",
    "RESWEIGHT": "res",
    "NODEWEIGHT": "node",
    "PROCWEIGHT": "proc",
    "MEMWEIGHT": "mem",
    "SWAPWEIGHT": "swap",
    "DISKWEIGHT": "disk",
    "PSWEIGHT": "ps",
    "PEWEIGHT": "pe",
    "WALLTIMEWEIGHT": "walltime",
    "TARGETWEIGHT": "target",
    "TARGETQUEUETIMEWEIGHT": "target_queue_time",
    "TARGETXFACTORWEIGHT": "target_xfactor",
    "ATTRWEIGHT": "attr",
    "USAGEWEIGHT": "usage",
    "CONSUMEDWEIGHT": "usage_consumed",
    "USAGECONSUMEDWEIGHT": "usage_consumed",
    "REMAININGWEIGHT": "usage_remaining",
    "USAGEREMAININGWEIGHT": "usage_remaining",
    "PERCENTWEIGHT": "usage_percent",
    "USAGEPERCENTWEIGHT": "usage_percent",
    "USAGEEXECUTIONTIMEWEIGHT": "usage_execution_time",
}
"""Weights; ``...CAP`` in place of ``...WEIGHT`` is the cap."""

CREDENTIALS: Mapping[str, str] = {
    "QOSCFG": "qos",
    "USERCFG": "user",
    "GROUPCFG": "group",
    "ACCOUNTCFG": "account",
    "CLASSCFG": "klass",
}
"""Parameters by credential, and the key of the settings."""

_MOST = ("MAXJOB", "MAXPROC", "MAXNODE")
_PER_USER = ("PERUSER", "[USER]")
CREDENTIAL_ATTRIBUTES: Mapping[str, tuple[str, str]] = {
    "PRIORITY": ("number", "priority"),
    "QDEF": ("list", "qdef"),
    "QLIST": ("list", "qlist"),
    "JOBFLAGS": ("flags", "jobflags"),
    "FLAGS": ("flags", "jobflags"),
    "QFLAGS": ("flags", "flags"),
    "MEMBERULIST": ("names", "members"),
    "MAXJOB": ("limit", "max_job"),
    "MAXPROC": ("limit", "max_proc"),
    "MAXNODE": ("limit", "max_node"),
    **{
        f"{kind}{per}": ("limit", f"{kind[:3]}_{kind[3:]}_per_user".lower())
        for kind in _MOST
        for per in _PER_USER
    },
    "QTWEIGHT": ("number", "qt_weight"),
    "XFWEIGHT": ("number", "xf_weight"),
    "QTTARGET": ("time", "qt_target"),
    "XFTARGET": ("number", "xf_target"),
    "FSTARGET": ("target", "fs_target"),
    "PREEMPTMINTIME": ("time", "preempt_min_time"),
    "PREEMPTQTTHRESHOLD": ("time", "preempt_qt_threshold"),
    "PREEMPTXFTHRESHOLD": ("number", "preempt_xf_threshold"),
}
MOAB_ONLY_ATTRIBUTES = frozenset(("FLAGS", "PREEMPTMINTIME", "PREEMPTQTTHRESHOLD", "PREEMPTXFTHRESHOLD"))

CLOCK = ("RMPOLLINTERVAL", "JOBMAXOVERRUN", "XFMINWCLIMIT")
"""Parameters that become keys of other tables."""
RECORDS = ("SRCFG", "NODECFG", "RMCFG", "ADMINCFG", "SYSCFG")
"""Other parameters with attributes."""
WITHOUT_EFFECT = frozenset(
    (
        *("SERVERHOST", "SERVERPORT", "SERVERMODE", "SCHEDCFG", "LOGFILE", "LOGLEVEL", "LOGFILEMAXSIZE"),
        *("ADMINHOST", "MONITOREDJOBS", "STATDIR", "TOOLSDIR", "RESDEPTH", "RMPOLLTIMEOUT", "AMCFG"),
        *("DEFERCOUNT", "RESERVATIONRETRYTIME", "RMTYPE", "RMHOST", "RMSERVER", "RMPORT", "ADMINHOSTS"),
        *("ENABLEMULTIREQJOBS", "LOGFILEROLLDEPTH", "LOGDIR"),
    )
)
"""Parameters that say nothing about who runs where; listed apart from those that may matter."""

JOB_FLAGS = ("PREEMPTOR", "PREEMPTEE", "RESTARTABLE", "SUSPENDABLE", "INTERACTIVE", "BACKFILL")
QOS_FLAGS = (
    *("PREEMPTOR", "PREEMPTEE", "PREEMPTSPV", "PREEMPTFSV", "RESTARTPREEMPT", "RUNNOW", "NTR", "NOBF"),
    *("NORESERVATION", "RESERVEALWAYS", "DEDICATED", "USERESERVED"),
    *("IGNALL", "IGNUSER", "IGNGROUP", "IGNACCOUNT", "IGNCLASS", "IGNQOS", "IGNSYSTEM"),
)
FLAGS = tuple(dict.fromkeys((*JOB_FLAGS, *QOS_FLAGS, "SPVIOLATION", "FSVIOLATION", "IGNMAXJOB", "IGNALL")))
"""Flags that are known; ``IGN*`` are many."""
OTHER_FLAGS = ("DEADLINE", "ENABLEUSERRSV", "PREEMPTCONFIG", "PROVISION", "TRIGGER", "VIRTUAL")
"""Flags of a QoS that say nothing about who makes way."""
METHODS = ("SUSPEND", "CHECKPOINT", "REQUEUE", "CANCEL")
"""From the least to the most disruptive."""
WORDS: Mapping[str, tuple[str, ...]] = {
    "PREEMPTPOLICY": METHODS,
    "RESERVATIONPOLICY": ("CURRENTHIGHEST", "HIGHEST", "NEVER"),
    "BACKFILLPOLICY": ("FIRSTFIT", "BESTFIT", "GREEDY", "NONE", "PREEMPT"),
    "BFPRIORITYPOLICY": ("NONE", "RANDOM", "DURATION", "HWDURATION"),
    "WCVIOLATIONACTION": ("CANCEL", "PREEMPT"),
    "JOBNODEMATCHPOLICY": ("EXACTNODE", "EXACTPROC"),
    "NODESETPOLICY": ("ONEOF", "FIRSTOF", "ANYOF"),
    "NODEACCESSPOLICY": ("SHARED", "SINGLEJOB", "SINGLETASK", "SINGLEUSER"),
    "FSPOLICY": (
        *("NONE", "DEDICATEDPS", "DEDICATEDPES", "UTILIZEDPS"),
        *("DEDICATEDPS%", "DEDICATEDPES%", "UTILIZEDPS%"),
    ),
    "JOBPRIOACCRUALPOLICY": ("ALWAYS", "FULLPOLICY", "QUEUEPOLICY", "ACCRUE", "RESET"),
}
"""What a policy may be, spelled as it has to be; not listed: anything."""
