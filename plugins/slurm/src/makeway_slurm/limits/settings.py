"""The settings of ``limits/slurm`` (slurm-priority-and-limits 6, 7)."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Settings:
    """Keys of ``[policy.settings."limits/slurm"]``."""

    enforce: bool = True
    """Whether limits of QOS and associations hold (limits or safe in AccountingStorageEnforce)."""
    safe: bool = False
    """Whether a job starts only if it can use up its whole time limit (safe)."""
    associations: bool = False
    """Whether a user without an association to the account is refused (associations, limits, safe)."""
    qos: bool = False
    """Whether a QOS that is not in the list of the association is refused (qos)."""
    part_limits: str = attrs.field(default="NO", validator=attrs.validators.in_(("NO", "ANY", "ALL")))
    """EnforcePartLimits."""
    max_array_size: int = attrs.field(default=1001, validator=attrs.validators.ge(0))
    """MaxArraySize: indices from 0 to one less."""
    groups_wait: bool = True
    """Whether a user outside AllowGroups waits where EnforcePartLimits is NO (since 23.02); False: he is refused."""
    limit_stop: bool = False
    """Whether a job that a limit keeps out holds up those behind it in its partition (assoc_limit_stop): in the main
    scheduler only where the limit counts TRES, in backfill whichever it is (11.1 no. 2)."""
    limit_retry: float = attrs.field(default=500.0, validator=attrs.validators.ge(0.0))
    """With `limit_stop`: where there is room at once, backfill keeps nodes for such a job from so many seconds later on
    (recorded: limit_stop_never)."""
    lift_by_preempting: bool = False
    """Whether jobs that hold what a limit counts may be displaced for its sake, which Slurm never does (11.2)."""
    covers_below: bool = True
    """Whether an account in AllowAccounts or DenyAccounts covers those below it (since 23.02)."""
    accounts_as_config: bool = True
    """Whether PartitionConfig is the reason of a job whose account a partition keeps out (24.11); False: a sentence
    that says so."""
