"""Preempt by quotas that lend and borrow, as Kueue does (``kueue/cohort``).

Queues have quotas, and lend what they do not use to the other queues of their cohort, a tree. Who needs its own quota
back reclaims it: the jobs of queues that borrow have to leave, by priority or by fair shares. Spec: kueue.

========== =========================================================================
module     what it owns
========== =========================================================================
site       queues, cohorts, quotas, policies (sections 1 and 2)
settings   the same as people write it
tree       a queue or cohort: what is available, who borrows (1.7 to 1.12), shares (6.2); books: all trees
order      who may be a candidate, who is lost first (2.5, 3, 4)
classic    victims, greedy with give-back (section 5); fair: by shares (section 6); decide: one of them all
reasons    the reasons for which victims leave (8.1)
flavors    which flavor a job gets (7.3); taints: which it may not use
passes     one pass over the heads of all queues (section 7)
requests   a job's queue, request and priority
yard       what jobs hold in one run; waiting: who waits in a queue, and who was tried there in vain
rounds     the heads of all queues, pass after pass; turns: who is tried next, victims of one job
places     the selector ``kueue/quota``: quota alone decides
reader     Kueue's own manifests, and jobs in CSV
check      what ``makeway check`` finds; explain: what ``makeway explain`` goes through
recordings Kueue's test tables, for ``makeway verify``; case: their words
vocabulary names
========== =========================================================================
"""
