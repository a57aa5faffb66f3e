"""Name things, states and reasons as Moab does (moab 12.2)."""

from __future__ import annotations

from makeway.model import Vocabulary

STATES = {
    "PENDING": "Idle",
    "PENDING and held": "Hold",
    "RUNNING": "Running",
    "SUSPENDED": "Suspended",
    "COMPLETED": "Completed",
    "FAILED": "Removed",
    "CANCELLED": "Removed",
    "PREEMPTED": "Removed (preempted)",
    "TIMEOUT": "Removed (over its wallclock limit)",
    "OUT_OF_MEMORY": "Removed (over its memory limit)",
    "NODE_FAIL": "Removed (a node failed)",
}

REASONS = {
    "None": "the next iteration is to come (RMPOLLINTERVAL)",
    "Resources": "too few resources are available",
    "Priority": "jobs of higher priority go first",
    "BeginTime": "its start date has not come",
    "Dependency": "its dependency is not met",
    "JobHeldUser": "a user holds it",
    "JobHeldAdmin": "an administrator holds it (SystemHold)",
    "Licenses": "too few licences are available",
    "PolicyLimit": "it would violate a limit (MAXJOB, MAXPROC, MAXNODE)",
    "Deferred": "it is deferred (DEFERTIME)",
    "NegativePriority": "its priority is negative (REJECTNEGPRIOJOBS)",
}
"""What the engine and `limits` say -> words in the terms of ``checkjob``."""

WORDS = Vocabulary(
    states=STATES,
    reasons=REASONS,
    nouns={"partition": "class", "status command": "showq", "ST": "STATE", "QOS": "QoS"},
)
