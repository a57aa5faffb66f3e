"""Count recalculations of usage, and the stretches of the calendar at whose ends it is reset."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from makeway.model import Seconds

_DAY = 86400
_STEEP, _FAR, _MANY = 1.05, 1e15, 1000
"""Nothing is said ahead where usage decays faster in a period, after more usage, and of more recalculations."""


def recalculations(grown: float, period: Seconds, per_second: float) -> int:
    """Return how many recalculations surely let usage grow by less than `grown` seconds, of today's worth.

    :param period: PriorityCalcPeriod.
    :param per_second: what is left of usage after a second.
    """
    if not float(period).is_integer() or per_second <= 0.0:
        return 0
    worth = per_second ** -int(period)
    if worth > _STEEP:
        return 0
    if worth == 1.0:
        count = grown / period
    else:
        count = math.log1p(min(grown, _FAR) * (worth - 1.0) / period) / math.log(worth)
    return max(0, int(min(count, _MANY)) - 1)


def stretch(period: str, at: float) -> Sequence[int]:
    """Return which day, week, ... of the calendar an instant lies in; UTC.

    :param period: PriorityUsageResetPeriod.
    :param at: Unix time.
    """
    day = math.floor(at / _DAY)
    moment = time.gmtime(day * _DAY)
    return {
        "DAILY": (day,),
        "WEEKLY": ((day + 4) // 7,),  # day 0 was a Thursday; weeks begin on Sunday
        "MONTHLY": (moment.tm_year, moment.tm_mon),
        "QUARTERLY": (moment.tm_year, (moment.tm_mon - 1) // 3),
        "YEARLY": (moment.tm_year,),
    }[period]


__all__ = ["recalculations", "stretch"]
