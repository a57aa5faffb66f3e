"""Let run minutes drift where a QOS has a UsageFactor, as Slurm does before 23.11.7.

A job puts count x time limit x UsageFactor on what running jobs may still use. Under priority/basic it takes off count
x time limit when it ends. With a factor above 1 the rest stays for good; with one below 1 it takes what others put
there, down to nothing (slurm-priority-and-limits 6.2; recorded: limit_factor_drift, limit_factor_drift_others). Where
recalculations charge for the time that was run, ends let nothing drift (recorded: limit_factor_drift_multifactor).

A job of a QOS with NoReserve that backfill starts is given its time limit only then, so that it puts less there, or
more, than the end takes off (recorded: noreserve_minutes_factor, noreserve_minutes_factor_multifactor).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from makeway_slurm.accounts.entry import Charge
from makeway_slurm.accounts.tres import BILLING


@contextmanager
def of(charge: Charge, columns: Mapping[str, int], rest: float, *, plain: bool) -> Iterator[None]:
    """Keep in the entries of a job what drifts when it is taken off, which is done meanwhile.

    The job no longer is among those that are charged, but still among the young ones if it was.

    :param columns: the place of each name in the lists of an entry.
    :param rest: seconds that it might still have run, by what was charged.
    :param plain: whether it takes off its whole time limit without UsageFactor.
    """
    if plain:
        taken = _plain(charge, columns, charge.limit or 0.0)
    else:
        taken = {at: charge.rate_in(at) * max(0.0, rest) for at in set(columns.values())}
    left = [
        {at: max(0.0, entry.owing_now(at) + entry.drifted.get(at, 0.0) - off) for at, off in taken.items()}
        for entry in charge.entries
    ]
    yield
    for entry, totals in zip(charge.entries, left, strict=True):
        for at, total in totals.items():
            entry.drifted[at] = total - entry.owing_now(at)


def lengthened(charge: Charge, columns: Mapping[str, int], seconds: float) -> None:
    """Book so many of the seconds of a job that starts without UsageFactor: it had a shorter time limit until then.

    Recorded: noreserve_minutes_factor, noreserve_minutes_factor_multifactor.

    :param columns: the place of each name in the lists of an entry.
    """
    for at, amount in _plain(charge, columns, seconds).items():
        more = amount - charge.rate_in(at) * seconds
        for entry in charge.entries:
            entry.drifted[at] = entry.drifted.get(at, 0.0) + more


def _plain(charge: Charge, columns: Mapping[str, int], seconds: float) -> dict[int, float]:
    """Return what a job holds for some seconds, UsageFactor aside, in TRES-seconds by column."""
    shape = charge.shape
    counts: dict[str, float] = dict(shape.held)
    if shape.factor:
        counts[BILLING] = shape.rates[BILLING] / shape.factor
    return {columns[name]: count * seconds for name, count in counts.items() if name in columns}
