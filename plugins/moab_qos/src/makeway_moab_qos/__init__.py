"""Preempt by QoS as Moab and Maui do (``moab/qos``), from a site's own moab.cfg.

A waiting job whose QoS is PREEMPTOR displaces running jobs marked PREEMPTEE of lower priority, the cheapest
per freed processor first; PREEMPTPOLICY says how they make way, and escalates where a job cannot make way
like that. Spec: moab. Profile ``moab`` is what Moab documents, profile ``maui`` what Maui 3.3.1 does.

============== ==============================================================
module         what it owns
============== ==============================================================
grammar        a moab.cfg taken apart; `times`: its values (section 9)
reader         the file becomes a configuration, `records` what it says of
               reservations and nodes; `parameters`: what is read (section 10)
settings       what was read, and what the documents leave open (15.1)
credentials    a job's QoS and flags (1, 3.3); `limits`: soft and hard (X2)
priority       start and run priority (4.2, 8)
order          the queue; marks of backfilled jobs (7.3)
turns          who is tried next, without ordering the whole queue; `streams`
               keeps it for that, and `plain` says for which jobs only room decides
conditions     which jobs may preempt which: conditions, context, guards (sections 3 and 6)
preemptees     how those stand that may be displaced
victims        order of the candidates and search (section 4)
actions        PREEMPTPOLICY and escalation (section 5); `capabilities` (section 13)
reservations   nodes kept for owners, locks (3.2 X4, 7.1); `periods`
fairshare      usage and targets (3.2 X3, 8.1)
adoption       what is handed over to another engine
resume         who was suspended goes on (7.4)
manual         what people may do (section 11); `expressions`: which jobs they mean
explain        the check list (section 12), by questions about jobs and settings
check          the same before anything runs
vocabulary     names; `status`: what ``showq`` prints (12.2)
closing        nodes that a job must leave alone (7.2)
recordings     what Maui itself did, for ``makeway verify``, and
               `recorded_commands`: what people typed
tasks          the selector ``moab/tasks``
============== ==============================================================
"""
