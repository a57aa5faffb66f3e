"""List the keywords of the files: those that have an effect here, and those that LSF knows besides."""

from __future__ import annotations

FACTORS = ("CPU_TIME_FACTOR", "RUN_TIME_FACTOR", "RUN_JOB_FACTOR", "HIST_HOURS")
"""Of the dynamic priority, in lsb.queues and lsb.params."""

QUEUE = (
    *("QUEUE_NAME", "PRIORITY", "PREEMPTION", "JOB_CONTROLS", "TERMINATE_WHEN", "REQUEUE_EXIT_VALUES"),
    *("BACKFILL", "INTERRUPTIBLE_BACKFILL", "SLOT_RESERVE", "RESOURCE_RESERVE", "EXCLUSIVE"),
    *("QJOB_LIMIT", "UJOB_LIMIT", "HJOB_LIMIT", "PJOB_LIMIT", "RUNLIMIT", "RERUNNABLE", "CHKPNT", "MIG"),
    *("SLA_GUARANTEES_IGNORE", "HOSTS", "USERS", "MAX_JOB_PREEMPT", "MAX_JOB_PREEMPT_RESET"),
    *("MAX_TOTAL_TIME_PREEMPT", "NO_PREEMPT_INTERVAL", "PREEMPT_DELAY", "RUN_WINDOW", "DISPATCH_WINDOW"),
    *("JOB_ACCEPT_INTERVAL", "RES_REQ", "FAIRSHARE", *FACTORS),
)
"""Of lsb.queues, with an effect."""

QUEUE_IDLE = (
    *("DESCRIPTION", "ADMINISTRATORS", "NICE", "SCOPE"),
    *(
        "APS_PRIORITY",
        "CHUNK_JOB_SIZE",
        "COMMITTED_RUN_TIME_FACTOR",
        "CORELIMIT",
        "CPULIMIT",
    ),
    *("CSM_REQ", "CSM_VALID", "DATALIMIT", "DEFAULT_EXTSCHED", "DEFAULT_HOST_SPEC", "DISPATCH_BY_QUEUE"),
    *(
        "DISPATCH_ORDER",
        "EPILOGUE",
        "ELIGIBLE_PEND_TIME_LIMIT",
        "ENABLE_GPU_HIST_RUN_TIME",
        "FAIRSHARE_QUEUES",
    ),
    *("FILELIMIT", "FWD_JOB_FACTOR", "FWD_USER_SHARE", "GPU_REQ", "HOSTLIMIT_PER_JOB"),
    *("HOST_PRE_EXEC", "HOST_POST_EXEC", "IGNORE_DEADLINE", "IMPT_JOBBKLG", "IMPT_SLOTBKLG", "IMPT_TASKBKLG"),
    *("INTERACTIVE", "JOB_ACTION_WARNING_TIME", "JOB_IDLE", "JOB_OVERRUN"),
    *("JOB_SIZE_LIST", "JOB_STARTER", "JOB_UNDERRUN", "JOB_WARNING_ACTION", "LOCAL_MAX_PREEXEC_RETRY"),
    *(
        "MANDATORY_EXTSCHED",
        "MAX_JOB_REQUEUE",
        "MAX_PREEXEC_RETRY",
        "MAX_PROTOCOL_INSTANCES",
        "MAX_RSCHED_TIME",
    ),
    *("MAX_SLOTS_IN_POOL", "MAX_SBD_FAIL", "MEMLIMIT", "MEMLIMIT_TYPE", "MIN_SLOTS", "NETWORK_REQ"),
    *("NEW_JOB_SCHED_DELAY",),
    *(
        "NQS_QUEUES",
        "PEND_TIME_LIMIT",
        "PJOB_LIMIT_DEFAULT",
        "POST_EXEC",
        "PRE_EXEC",
        "PROCESSLIMIT",
        "PROCLIMIT",
    ),
    *(
        "QUEUE_GROUP",
        "RCVJOBS_FROM",
        "RC_ACCOUNT",
        "RC_DEMAND_POLICY",
        "RC_HOSTS",
        "RELAX_JOB_DISPATCH_ORDER",
    ),
    *(
        "REMOTE_MAX_PREEXEC_RETRY",
        "RESRSV_LIMIT",
        "RESUME_COND",
        "RUNTIME_LOG_INTERVAL",
    ),
    *(
        "RUN_TIME_DECAY",
        "SLOT_POOL",
        "SLOT_SHARE",
        "SNDJOBS_TO",
        "STACKLIMIT",
        "STOP_COND",
    ),
    *("SUCCESS_EXIT_VALUES", "SWAPLIMIT", "TASKLIMIT", "THREADLIMIT", "UJOB_LIMIT_DEFAULT", "USE_PAM_CREDS"),
    *(
        "USE_PRIORITY_IN_POOL",
        "R15S",
        "R1M",
        "R15M",
        "UT",
        "PG",
        "IO",
        "LS",
        "IT",
        "TMP",
        "SWP",
        "MEM",
        "ABS_RUNLIMIT",
    ),
)
"""Of lsb.queues, known to LSF, without an effect here."""

PARAMS = (
    *("PREEMPT_FOR", "PREEMPT_JOBTYPE", "PREEMPTABLE_RESOURCES", "USE_SUSP_SLOTS", "PARALLEL_SCHED_BY_SLOT"),
    *("NO_PREEMPT_RUN_TIME", "NO_PREEMPT_FINISH_TIME", "NO_PREEMPT_INTERVAL", "MAX_JOB_PREEMPT"),
    *("MAX_JOB_PREEMPT_RESET", "MAX_TOTAL_TIME_PREEMPT", "PREEMPT_DELAY", "MBD_SLEEP_TIME", "DEFAULT_QUEUE"),
    *("JOB_ACCEPT_INTERVAL", *FACTORS),
)
"""Of lsb.params, with an effect."""

PARAMS_IDLE = (
    *("SBD_SLEEP_TIME", "PREEMPTION_WAIT_TIME", "ABS_RUNLIMIT", "MAX_JOB_REQUEUE"),
    *(
        "JOB_DEP_LAST_SUB",
        "CLEAN_PERIOD",
        "MAX_JOB_NUM",
        "MAX_SBD_FAIL",
        "MAX_JOB_ARRAY_SIZE",
        "MAX_USER_PRIORITY",
    ),
    *(
        "DEFAULT_PROJECT",
        "DEFAULT_USER_GROUP",
        "DEFAULT_APPLICATION",
        "MBD_REFRESH_TIME",
        "JOB_SCHEDULING_INTERVAL",
    ),
    *("RESOURCE_RESERVE_PER_TASK", "RESOURCE_RESERVE_PER_SLOT"),
)
"""Of lsb.params, known to LSF, without an effect here: those that a misspelling could be taken for, and the spec's."""

PARAMS_OPENLAVA = ("MAX_PREEMPT_JOBS", "PREEMPT_SLOT_SUSPEND")
"""Of lsb.params, OpenLava only (9.3)."""

APPLICATION = (
    *("NAME", "NO_PREEMPT_RUN_TIME", "NO_PREEMPT_FINISH_TIME", "NO_PREEMPT_INTERVAL", "MAX_JOB_PREEMPT"),
    *("MAX_JOB_PREEMPT_RESET", "MAX_TOTAL_TIME_PREEMPT", "PREEMPT_DELAY", "RUNTIME", "RUNLIMIT"),
    *("RERUNNABLE", "CHKPNT_DIR", "MIG"),
)
"""Of lsb.applications, with an effect."""

USER = ("USER_NAME", "MAX_JOBS", "JL/P")
HOST = ("HOST_NAME", "MXJ", "JL/U", "MIG")
LIMIT = (
    *("NAME", "USERS", "PER_USER", "HOSTS", "PER_HOST", "QUEUES", "PER_QUEUE"),
    *("SLOTS", "SLOTS_PER_PROCESSOR", "JOBS", "MEM"),
)
"""Of lsb.resources, with an effect."""

LSF_CONF = ("LSB_DISABLE_LIMLOCK_EXCL", "LSB_GPU_NEW_SYNTAX", "LSB_NCPU_ENFORCE")
"""Of lsf.conf, with an effect."""

_LOAD = ("R15S", "R1M", "R15M", "UT", "PG", "IO", "LS", "IT", "TMP", "SWP", "MEM", "STOP_COND", "RESUME_COND")
_THRESHOLDS = [f"{file}:{key}" for file in ("lsb.queues", "lsb.hosts") for key in _LOAD]
WHY_IDLE = {
    **dict.fromkeys(_THRESHOLDS, "a replay has no load indices, so no threshold is ever passed"),
    "lsb.params:SBD_SLEEP_TIME": "jobs stop and go on at the instant at which that is decided",
    "lsb.params:PREEMPTION_WAIT_TIME": "License Scheduler's; what victims give back is there as soon as they have left",
    "lsb.params:MAX_JOB_REQUEUE": "jobs are requeued as often as it takes",
    "lsb.queues:MAX_JOB_REQUEUE": "jobs are requeued as often as it takes",
    "lsb.params:ABS_RUNLIMIT": "run limits are never multiplied by CPU factors, as with ABS_RUNLIMIT=Y",
}
"""File and keyword without an effect here that bears on preemption -> why it has none."""

_EVERY_LEVEL = ("lsb.params", "lsb.queues", "lsb.applications")
BELONGS = {
    **dict.fromkeys(("NO_PREEMPT_RUN_TIME", "NO_PREEMPT_FINISH_TIME"), ("lsb.params", "lsb.applications")),
    **dict.fromkeys(
        (
            *("NO_PREEMPT_INTERVAL", "MAX_JOB_PREEMPT", "MAX_JOB_PREEMPT_RESET", "MAX_TOTAL_TIME_PREEMPT"),
            "PREEMPT_DELAY",
        ),
        _EVERY_LEVEL,
    ),
    **dict.fromkeys(
        ("PREEMPT_FOR", "PREEMPT_JOBTYPE", "PREEMPTABLE_RESOURCES", "USE_SUSP_SLOTS", "MBD_SLEEP_TIME"),
        ("lsb.params",),
    ),
    **dict.fromkeys(
        (
            *("PREEMPTION", "PRIORITY", "SLOT_RESERVE", "BACKFILL", "INTERRUPTIBLE_BACKFILL", "EXCLUSIVE"),
            *("QJOB_LIMIT", "UJOB_LIMIT", "HJOB_LIMIT", "PJOB_LIMIT", "RUN_WINDOW", "DISPATCH_WINDOW"),
        ),
        ("lsb.queues",),
    ),
    "MAX_JOBS": ("lsb.users",),
    "MXJ": ("lsb.hosts",),
}
"""Keyword that bears on preemption -> the files that may hold it (lsf 4.1, 9.3)."""
