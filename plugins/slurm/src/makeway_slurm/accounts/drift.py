"""Let run minutes drift where a QOS has a UsageFactor, as Slurm does before 23.11.7 under priority/basic.

A job puts count x time limit x UsageFactor on what running jobs may still use, and takes off count x time limit when it
ends. With a factor above 1 the rest stays for good; with one below 1 it takes what others put there, down to nothing
(slurm-priority-and-limits 6.2; recorded: limit_factor_drift, limit_factor_drift_others). Where recalculations charge
for the time that was run, nothing drifts (recorded: limit_factor_drift_multifactor).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from makeway_slurm.accounts.entry import Charge
from makeway_slurm.accounts.tres import BILLING


@contextmanager
def of(charge: Charge, columns: Mapping[str, int]) -> Iterator[None]:
    """Keep in the entries of a job what drifts when it is taken off, which is done meanwhile.

    The job no longer is among those that are charged, but still among the young ones if it was.

    :param columns: the place of each name in the lists of an entry.
    """
    taken = _taken_off(charge, columns)
    rest = [
        {at: max(0.0, entry.owing_now(at) + entry.drifted.get(at, 0.0) - off) for at, off in taken.items()}
        for entry in charge.entries
    ]
    yield
    for entry, left in zip(charge.entries, rest, strict=True):
        for at, total in left.items():
            entry.drifted[at] = total - entry.owing_now(at)


def _taken_off(charge: Charge, columns: Mapping[str, int]) -> dict[int, float]:
    """Return what the end of a job takes off, in TRES-seconds by column."""
    seconds, shape = charge.limit or 0.0, charge.shape
    counts: dict[str, float] = dict(shape.held)
    if shape.factor:
        counts[BILLING] = shape.rates[BILLING] / shape.factor
    return {columns[name]: count * seconds for name, count in counts.items() if name in columns}


__all__ = ["of"]
