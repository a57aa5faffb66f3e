"""Preempt by queue, as IBM Spectrum LSF does it (``lsf/queue``).

Queues say in their PREEMPTION line whose jobs they may take, and which queues may take their own. A queue of
higher PRIORITY then suspends running jobs of lower ones, from the least loaded host or in an order of
preference. Victims go on as soon as their slots are free. Spec lsf; what the documentation leaves open is an
option of `settings.Settings`.

=============== =========================================================================
module          what it owns
=============== =========================================================================
settings        the tables beside lsb.queues, options for what is not documented
values, windows single values, time windows (4.1, 9.2)
preemption_line the PREEMPTION line (2.1)
shares          FAIRSHARE of a queue, read; fairshare: who is next by it
requirement     RES_REQ, read; asking: of a job, put into fields; ordering: in which order of hosts (9.3)
controls        JOB_CONTROLS, TERMINATE_WHEN: how victims make way (6.1)
site            all of it compiled: which queues may preempt which, in which order (2.2, 3.2)
jobs, slots     what is asked of jobs and hosts; survey: of all active jobs at once
protection      vetoes (section 4)
victims         the candidates, in which order (3.3, 3.5, 5.3)
search          which of them: the walk, MINI_JOB, OPTIMAL_MINI_JOB (3.4)
limits, groups  job slot limits (section 5); counting: how much they hold; judging: who is kept out by them
resources       shared resources, memory (section 8)
gaps            the slots of suspended jobs (5.3)
admission       what keeps pending and suspended jobs out; opening: windows of queues (6.1, 9.3)
alike, vain     who is answered by what it asks for, and nothing else; who would be tried in vain
presence        which active jobs changed; capacity: the slots that jobs could get if all others made way
pacing          hosts that have just been given a job (9.3)
reserve         slot reservation and backfill (section 7)
actions, resume making way, going on, migrating (section 6)
vocabulary      names and numbers (section 10); explain: what ``makeway explain`` goes through
status          what ``bjobs`` prints
check           what ``makeway check`` finds
translate       tiers and modes of other schedulers, and back
reader          lsb.queues and the files beside it (section 9)
=============== =========================================================================
"""
