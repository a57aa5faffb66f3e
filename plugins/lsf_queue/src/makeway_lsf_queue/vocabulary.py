"""Name states and reasons as LSF does (lsf 0.3, 10)."""

from __future__ import annotations

from makeway.model import Vocabulary

STATES = {
    "PENDING": "PEND",
    "PENDING and held": "PSUSP",
    "RUNNING": "RUN",
    "SUSPENDED": "SSUSP",
    "SUSPENDED by a person": "USUSP",
    "COMPLETING": "EXIT",
    "COMPLETED": "DONE",
    "FAILED": "EXIT",
    "CANCELLED": "EXIT",
    "PREEMPTED": "EXIT (TERM_PREEMPT)",
    "TIMEOUT": "EXIT (TERM_RUNLIMIT)",
    "OUT_OF_MEMORY": "EXIT (TERM_MEMLIMIT)",
    "NODE_FAIL": "EXIT (TERM_UNKNOWN)",
}

PENDING = {
    "PEND_JOB_NEW": (1, "new job is waiting for scheduling"),
    "PEND_JOB_START_TIME": (2, "the job has a start time that has not come"),
    "PEND_JOB_DEPEND": (3, "waiting for other jobs to end"),
    "PEND_JOB_MIG": (5, "migrating"),
    "PEND_JOB_REQUEUED": (23, "requeued"),
    "PEND_QUE_WINDOW": (302, "the run or dispatch window of the queue is closed"),
    "PEND_QUE_JOB_LIMIT": (303, "the queue has reached its slot limit"),
    "PEND_QUE_USR_JLIMIT": (304, "the user has reached the queue's slot limit per user"),
    "PEND_QUE_USR_PJLIMIT": (305, "the queue's slot limit per user leaves too few for the parallel job"),
    "PEND_QUE_PJOB_LIMIT": (314, "the queue's slot limit leaves too few for the parallel job"),
    "PEND_USER_JOB_LIMIT": (601, "the user has reached a slot limit"),
    "PEND_UGRP_JOB_LIMIT": (602, "the user group has reached a slot limit"),
    "PEND_USER_PJOB_LIMIT": (603, "a slot limit leaves the user too few for the parallel job"),
    "PEND_UGRP_PJOB_LIMIT": (604, "a slot limit leaves the user group too few for the parallel job"),
    "PEND_HOST_NONEXCLUSIVE": (1002, "the job wants its hosts for itself, and they are not empty"),
    "PEND_HOST_JOB_SSUSP": (1003, "a job of equal or higher priority is suspended on the hosts"),
    "PEND_HOST_LESS_SLOTS": (1303, "the hosts do not have enough slots"),
    "PEND_HOST_JOB_LIMIT": (1305, "the hosts have reached their slot limit"),
    "PEND_QUE_PROC_JLIMIT": (1306, "the queue's slot limit per processor is reached"),
    "PEND_QUE_HOST_JLIMIT": (1307, "the queue's slot limit per host is reached"),
    "PEND_USER_PROC_JLIMIT": (1308, "the user's slot limit per processor is reached"),
    "PEND_HOST_USR_JLIMIT": (1309, "the host's slot limit per user is reached"),
    "PEND_HOST_EXCLUSIVE": (1322, "an exclusive job runs on the hosts"),
    "PEND_UGRP_PROC_JLIMIT": (1324, "the user group's slot limit per processor is reached"),
    "PEND_GENERAL_LIMIT_JOBS": (4701, "a limit on the number of jobs is reached"),
}
"""Name -> number and words; the words are ours."""

PARALLEL = {
    "PEND_QUE_JOB_LIMIT": "PEND_QUE_PJOB_LIMIT",
    "PEND_QUE_USR_JLIMIT": "PEND_QUE_USR_PJLIMIT",
    "PEND_USER_JOB_LIMIT": "PEND_USER_PJOB_LIMIT",
    "PEND_UGRP_JOB_LIMIT": "PEND_UGRP_PJOB_LIMIT",
}
"""Reason of a limit that is reached -> that of one which has room left, but too little for a parallel job."""

SUSPENSIONS = {
    "SUSPENDED": "SUSP_MBD_PREEMPT (0x00000080): preempted by the master for a job of higher priority",
    "SUSP_QUEUE_WINDOW": "SUSP_QUEUE_WINDOW (0x00000008): the run window of the queue is closed",
    "SUSPENDED by a person": "SUSP_ADMIN_STOP (0x00004000): stopped by an administrator",
}
"""State, or mark of a job, -> the bit of the suspend reason, and words of ours."""

UNNAMED = {
    "PEND_GENERAL_LIMIT_MEM": "a limit on reserved memory is reached",
    "6701": "6701: the preemptive job waits out PREEMPT_DELAY before it preempts",
    "JobHeldUser": "held (bstop of a pending job), until bresume",
    "JobHeldAdmin": "held (bstop of a pending job), until bresume",
    "PEND_HOST_ACCPT_ONE": "PEND_HOST_ACCPT_ONE: the hosts have just been given a job (JOB_ACCEPT_INTERVAL)",
    "Licenses": "a licence that the job asked for is short",
    "PEND_JOB_NO_RESOURCE": "a shared resource that the job reserves is short",
}

SLURM = {
    "None": "PEND_JOB_NEW",
    "Priority": "PEND_JOB_NEW",
    "Resources": "PEND_HOST_JOB_LIMIT",
    "BeginTime": "PEND_JOB_START_TIME",
    "Dependency": "PEND_JOB_DEPEND",
}
"""What the engine says by itself -> LSF's name."""


def shown(name: str) -> str:
    """Return a pending reason as people see it: name, number, words."""
    number, words = PENDING[name]
    return f"{name} ({number}): {words}"


WORDS = Vocabulary(
    states=STATES,
    reasons={
        **{name: shown(name) for name in PENDING},
        **UNNAMED,
        **{word: shown(name) for word, name in SLURM.items()},
    },
    suspensions=SUSPENSIONS,
    nouns={"partition": "queue", "node": "host", "status command": "bjobs", "ST": "STAT"},
)
