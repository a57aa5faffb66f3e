"""Remember which ids a workload has had, in little memory."""

from __future__ import annotations

import bisect
from array import array

_DIGITS = 18
"""Numbers with at most so many digits fit an entry of the array."""


class Seen:
    """A set of ids. Numbers that come in ascending order, as most logs have them, take eight bytes each."""

    def __init__(self) -> None:
        self._ascending = array("q")
        self._others: set[str] = set()

    def __contains__(self, job_id: str) -> bool:
        if job_id in self._others:
            return True
        number = _number(job_id)
        if number is None:
            return False
        place = bisect.bisect_left(self._ascending, number)
        return place < len(self._ascending) and self._ascending[place] == number

    def add(self, job_id: str) -> None:
        """Add an id that is not there yet."""
        number = _number(job_id)
        if number is not None and (not self._ascending or number > self._ascending[-1]):
            self._ascending.append(number)
        else:
            self._others.add(job_id)

    def is_new(self, job_id: str) -> bool:
        """Add an id; return whether it was not there yet."""
        if job_id.isascii() and job_id.isdigit() and job_id[0] != "0" and len(job_id) <= _DIGITS:
            number = int(job_id)
            ascending = self._ascending
            if not ascending or number > ascending[-1]:
                ascending.append(number)
                return True
        if job_id in self:
            return False
        self.add(job_id)
        return True


def _number(job_id: str) -> int | None:
    """Return an id as a number, if it is written as one is: 7, not 07, +7 or a superscript."""
    plain = job_id.isascii() and job_id.isdigit() and len(job_id) <= _DIGITS
    return int(job_id) if plain and (job_id[0] != "0" or job_id == "0") else None
