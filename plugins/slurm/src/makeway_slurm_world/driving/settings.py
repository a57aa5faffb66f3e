"""The settings of ``world/slurm``."""

from __future__ import annotations

import attrs

_positive = attrs.validators.gt(0.0)
_not_negative = attrs.validators.ge(0.0)


@attrs.frozen(kw_only=True)
class Settings:
    """``[world.settings]`` of ``world/slurm``."""

    nodes: str = ""
    """The nodes that makeway decides over, a host list."""
    reservation: str = "makeway"
    """Name of the lease."""
    lease: float = attrs.field(default=60.0, validator=_positive)
    """Seconds for which the lease is taken; it is renewed after a third of that (slurm-live 1.2)."""
    poll: float = attrs.field(default=1.0, validator=_positive)
    """Seconds between two looks at the queue; one costs the controller about 5 ms per 1,000 jobs (slurm-live 3)."""
    full_look: float = attrs.field(default=30.0, validator=_positive)
    """Seconds between two reads of everything."""
    nudge: str = ""
    """A file that a site's hook script touches; then the next look is taken at once. Empty: there is none."""
    start_limit: float = attrs.field(default=15.0, validator=_positive)
    """Seconds after which a start that Slurm has not made is taken back."""
    het_start_limit: float = attrs.field(default=90.0, validator=_positive)
    """The same for heterogeneous jobs, which Slurm starts in its backfill turns alone: every bf_interval, 30 s."""
    suspend_wait: float = attrs.field(default=2.0, validator=_not_negative)
    """Seconds from a suspension until another job is started there: a job may catch SIGTSTP that long (2.2)."""
    restart_margin: float = attrs.field(default=10.0, validator=attrs.validators.ge(2.0))
    """Seconds before a requeued job starts again on a node that it left; less than 2 may fail the job (2.1)."""
