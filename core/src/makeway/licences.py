"""Keep out jobs whose licences are not there: the limit that Slurm-like selectors share (slurm-preemption 1.11).

Licences belong to the cluster, not to nodes, so no selector counts them. A plugin that finds nodes as Slurm does
answers `makeway_limits` with `LicenceLimits`, and puts `taken_by` into its allocations; one that does neither has
nothing to do with licences. Suspended jobs keep their licences; a job that leaves gives them back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from makeway.model import NOTHING, Blocked, ClusterView, Job, Limits

LICENCES = "licences"
"""`Blocked.resource` where a licence is short."""


def wants(job: Job) -> bool:
    """Whether `job` asks for licences."""
    return bool(job.spec.licenses)


class LicenceLimits(Limits):
    """Keeps out jobs whose licences are not there."""

    concerns = staticmethod(wants)

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return which licence a pending job lacks; None: none."""
        return lacking(job, view) if job.spec.licenses and job.allocation is None else None

    @staticmethod
    def by_request(job: Job) -> bool:
        """Whether nothing but what the job asks for counts: it always does."""
        return True


def lacking(job: Job, view: ClusterView, taken: Mapping[str, int] = NOTHING) -> Blocked | None:
    """Return which licence a pending job lacks; None: none. One that asks for more than there are is refused.

    :param taken: licences that others are about to take: name -> how many.
    """
    wanted = job.spec.licenses
    there = view.licenses_free
    free = {name: there.get(name, 0) - taken.get(name, 0) for name in wanted}
    short = [name for name, count in wanted.items() if free[name] < count]
    if not short or (job.spec.licenses_any and len(short) < len(wanted)):
        return None
    total = view.cluster.licenses
    beyond = [name for name, count in wanted.items() if total.get(name, 0) < count]
    never = len(beyond) == len(wanted) if job.spec.licenses_any else bool(beyond)
    name = beyond[0] if never else short[0]
    frees = {} if never else _given_back(job, short, view)
    return Blocked(
        reason="Licenses",
        resource=LICENCES,
        wanted=wanted[name],
        available=max(0, free[name]),
        detail=_sentence(name, wanted[name], free[name], view),
        never=never,
        liftable=bool(frees),
        frees=frees,
    )


def _given_back(job: Job, short: Sequence[str], view: ClusterView) -> Mapping[str, float]:
    """Return what holds what is short: active job -> how much of the first of `short` it would give back.

    Where one of several licences is enough, any of its holders may be enough by itself.
    """
    holders = view.license_holders
    found: dict[str, float] = {}
    for name in short:
        for holder, count in holders.get(name, NOTHING).items():
            if job.spec.licenses_any:
                found[holder] = math.inf
            elif name == short[0]:
                found[holder] = count
            else:
                found.setdefault(holder, 0.0)
    return found


def _sentence(name: str, wanted: int, free: int, view: ClusterView) -> str:
    total = view.cluster.licenses.get(name)
    if total is None:
        return f"{wanted} of licence {name} wanted, of which the cluster has none"
    if wanted > total:
        return f"{wanted} of licence {name} wanted, of which the cluster has {total}"
    return f"{wanted} of licence {name} wanted, {free} of {total} free, {total - free} in use"


def taken_by(job: Job, free: Mapping[str, int]) -> Mapping[str, int]:
    """Return the licences that a job takes when it starts: all, or the first of which enough are free."""
    wanted = job.spec.licenses
    if not wanted or not job.spec.licenses_any:
        return dict(wanted) if wanted else NOTHING
    name = next((name for name, count in wanted.items() if free.get(name, 0) >= count), next(iter(wanted)))
    return {name: wanted[name]}


def held(job: Job) -> Mapping[str, int]:
    """Return the licences that a job holds."""
    return job.allocation.licenses if job.allocation is not None else NOTHING
