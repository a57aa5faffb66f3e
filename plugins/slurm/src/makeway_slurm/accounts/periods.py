"""Tell the stretches of the calendar at whose ends usage is reset."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

_DAY = 86400


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
