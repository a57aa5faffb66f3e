"""The settings of ``priority/multifactor``, with Slurm's defaults (slurm-priority-and-limits 1, 2)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway.errors import nearest

FLAGS = (
    *(
        "ACCRUE_ALWAYS",
        "CALCULATE_RUNNING",
        "DEPTH_OBLIVIOUS",
        "FAIR_TREE",
        "INCR_ONLY",
        "MAX_TRES",
        "MAX_TRES_GRES",
    ),
    *(
        "NO_FAIR_TREE",
        "NO_NORMAL_ALL",
        "NO_NORMAL_ASSOC",
        "NO_NORMAL_PART",
        "NO_NORMAL_QOS",
        "NO_NORMAL_TRES",
    ),
    "SMALL_RELATIVE_TO_TIME",
)
RESETS = ("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")


def _known_flags(instance: object, attribute: attrs.Attribute[frozenset[str]], value: frozenset[str]) -> None:
    del instance
    for flag in sorted(value):
        if flag not in FLAGS:
            raise ValueError(
                f"{attribute.name}: got {flag!r}; allowed: {', '.join(FLAGS)}{nearest(flag, FLAGS)}"
            )


def _weight(default: int = 0) -> int:
    value: int = attrs.field(default=default, validator=[attrs.validators.ge(0), attrs.validators.lt(2**32)])
    return value


@attrs.frozen(kw_only=True)
class Settings:
    """Keys of ``[policy.settings."priority/multifactor"]``."""

    weight_age: int = _weight()
    """PriorityWeightAge."""
    weight_assoc: int = _weight()
    """PriorityWeightAssoc."""
    weight_fairshare: int = _weight()
    """PriorityWeightFairshare."""
    weight_job_size: int = _weight()
    """PriorityWeightJobSize."""
    weight_partition: int = _weight()
    """PriorityWeightPartition."""
    weight_qos: int = _weight()
    """PriorityWeightQOS."""
    weight_tres: Mapping[str, float] = attrs.field(factory=dict)
    """PriorityWeightTRES: TRES -> weight."""
    max_age: float = attrs.field(default=7 * 86400.0, validator=attrs.validators.gt(0))
    """PriorityMaxAge: seconds after which a job is as old as it can be."""
    favor_small: bool = False
    """PriorityFavorSmall."""
    flags: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset, validator=_known_flags)
    """PriorityFlags."""
    dampening_factor: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """FairShareDampeningFactor."""
    decay_half_life: float = attrs.field(default=7 * 86400.0, validator=attrs.validators.ge(0))
    """PriorityDecayHalfLife: seconds after which usage counts half; 0: it does not decay."""
    calc_period: float = attrs.field(default=300.0, validator=attrs.validators.gt(0))
    """PriorityCalcPeriod: seconds between two recalculations."""
    calc_phase: float = 0.0
    """Instant of one of them: when the controller was started, give or take periods."""
    usage_reset_period: str = attrs.field(default="NONE", validator=attrs.validators.in_(RESETS))
    """PriorityUsageResetPeriod."""
    epoch: float | None = None
    """Unix time of instant 0, by whose days and weeks `usage_reset_period` goes; None: as the workload says."""
    tie_order: str = attrs.field(
        default="lineage", validator=attrs.validators.in_(("lineage", "newest_first"))
    )
    """Order of exactly tied siblings: by name (since 23.11), or who was added last goes first (before)."""

    def has(self, flag: str) -> bool:
        """Whether a flag is set; NO_NORMAL_ALL stands for its four."""
        return flag in self.flags or (flag.startswith("NO_NORMAL_") and "NO_NORMAL_ALL" in self.flags)
