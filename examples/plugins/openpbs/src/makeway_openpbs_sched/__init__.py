"""Preempt as OpenPBS does (``openpbs/sched``), from a site's own sched_config.

Every job has a preemption value by the level of ``preempt_prio`` that it is in. One that cannot start takes
running jobs of lower value, the lowest value and the most recent start first, as far as they can help with what
blocks it; a victim that turns out needless is let off. Each victim goes through the letters of ``preempt_order`` for
the share of its time that is left. Suspended jobs wait in the queue like any other, and go on where they were.
Section numbers are those of docs/rules/openpbs.md; what is inferred there is a setting.

============== ===================================================================
module         what it owns
============== ===================================================================
settings       what a site says, and choices where behaviour is inferred (1, 8.2)
levels         preempt_prio and the preemption value (1.4, 2.2)
letters        preempt_order and the share of time left (1.5, 4.1)
limits         limits, hard and soft (2.3)
targets        preempt_targets (1.7)
windows        prime time
site           all of it together: what the rules ask about jobs (section 2)
requests, room what jobs ask for, what vnodes have free (1.9)
victims        which jobs, in which order (2.5, 3.3)
reasons        what blocks, and what can help (3.4)
search         take, cull, let off (3.5, 3.6)
actions        how victims make way (section 4)
order, resume  the queue with suspended jobs in it (3.2, 5)
admission      what keeps jobs out; calendar: enforced resumption (5.4)
vnodes         the selector ``openpbs/vnodes``
reader         sched_config and the output of qmgr (section 6); `grammar`: their lines
check, explain what ``makeway check`` and ``makeway explain`` say
============== ===================================================================
"""
