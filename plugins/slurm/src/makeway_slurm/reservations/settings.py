"""The settings of ``reservations/slurm`` (slurm-priority-and-limits 9)."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Settings:
    """Keys of ``[policy.settings."reservations/slurm"]``."""

    overrun: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(0))
    )
    """ResvOverRun: seconds for which jobs may go on after the end of their reservation; None: as slurm.conf says."""
    documented: bool = True
    """Whether ANY_NODES, DAILY, HOURLY, MAGNETIC, PURGE_COMP, TIME_FLOAT and WEEKLY count, which Slurm documents and
    which are not measured."""
    complete: bool = False
    """Whether every reservation is described, so that a job which names another one, or names one before it is created
    or after its end, is refused, as Slurm does. Exports of a site show the present ones only."""
    epoch: float | None = None
    """Unix time of instant 0, for tables with dates; None: as the workload says."""
