"""Work the priorities of many waiting jobs out at once, where the fair tree ranks and age is the time since eligible.

`Multifactor.again` and `Multifactor.fresh` say what each comes to; this adds the same numbers in the same order without
a call for each. `tests/test_sure.py` holds one to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from makeway.model import Job
from makeway.priorities import Priority
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.multifactor.factors import HIGHEST, total
from makeway_slurm.multifactor.known import Known

_TINY = 1e-6


def priorities_at(
    jobs: Sequence[Job],
    second: int,
    known_of: Mapping[str, Known],
    look_at: Callable[[Job], Known],
    fairshare: Sequence[float] | None,
    settings: Settings,
) -> list[Priority]:
    """Return the priorities of jobs as of a recalculation.

    :param second: of the recalculation; who became eligible later is of no age.
    :param known_of: what was found out of jobs.
    :param look_at: finds it out.
    :param fairshare: factors by association; None: fair share counts nothing.
    """
    found: list[Priority] = []
    floor, add = math.floor, found.append
    weight, weight_age, most = settings.weight_fairshare, settings.weight_age, settings.max_age
    for job in jobs:
        known, qos = known_of.get(job.id), job.qos
        if known is None or known.qos != (qos.name if qos is not None else ""):
            known = look_at(job)
        age, since = 0.0, job.eligible_since
        if since is not None and (weight_age or known.later is not None):
            waited = second - floor(since + _TINY)
            if waited > 0:
                age = (waited / most if waited < most else 1.0) * weight_age
                if known.later is not None:
                    known.grow()
        node, fixed = known.association, known.alone
        given = fairshare[node.index] * weight if fairshare is not None and node is not None else 0.0
        known.age, known.fairshare = age, given
        if fixed is None:
            known.values = {name: total(age, each, given) for name, each in known.fixed.items()}
            every = [*known.values.values()]
            add(every[0] if every.count(every[0]) == len(every) else dict(known.values))
            continue
        sum_ = age + fixed.assoc + given
        for each in fixed.after_fairshare:
            sum_ += each
        value = 1 if sum_ < 1.0 else int(sum_)
        if value > HIGHEST:
            value = HIGHEST
        known.values[job.partition.name] = value
        add(value)
    return found


__all__ = ["priorities_at"]
