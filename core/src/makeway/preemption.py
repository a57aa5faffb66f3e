"""Hold the settings of preemption that policies and selectors of one scheduler share."""

from __future__ import annotations

import attrs

from makeway.model.values import Duration


@attrs.frozen(kw_only=True)
class PreemptionTable:
    """``[policy.preemption]``: who is exempt, who goes first, and what counts as a reason."""

    exempt_time: Duration | None = None
    """PreemptExemptTime in seconds; None: not set."""
    min_exempt_priority: int | None = None
    """Jobs above it are never displaced; None: off."""
    youngest_first: bool = False
    reorder_count: int = attrs.field(default=1, validator=attrs.validators.ge(0))
    strict_order: bool = False
    send_user_signal: bool = False
    reclaim_licenses: bool = False
