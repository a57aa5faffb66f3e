"""Go through the trouble-shooting list for a job that should have preempted and did not (moab 12.1).

The wording of the vendor's list is lost; the questions are K01 to K22. All are answered, not
only the first that fails, each with the setting that decided it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from makeway.model import Check, ClusterView, Job, Seconds
from makeway_moab_qos.explain import jobs, settings
from makeway_moab_qos.explain.case import Case, case_of

_STEPS: tuple[Callable[[Case], Iterator[Check]], ...] = (
    *(jobs.k01, jobs.k02, jobs.k03, jobs.k04, jobs.k05, jobs.k06),
    *(settings.k07, jobs.k08, settings.k09, settings.k10, settings.k11, settings.k12),
    *(jobs.k13, jobs.k14, settings.k15, settings.k16, settings.k17, jobs.k18),
    *(jobs.k19, jobs.k20, settings.k21, jobs.k22),
)


def checks(job: Job, view: ClusterView, now: Seconds) -> list[Check]:
    """Return the list for `job`; for the hook.

    A job that may not preempt at all is asked only why not: by its flags (K01) and its QoS (K18).
    """
    case = case_of(job, view, now)
    if not case.right.ground:
        return [*jobs.k01(case), *jobs.k18(case)]
    return [check for step in _STEPS for check in step(case)]
