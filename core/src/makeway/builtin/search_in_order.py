"""Take candidates in the order of their policy until the job fits, then give back those not needed
(``search/in_order``).

This is the search that is used where no plugin in use has one. It keeps to the order in which the preempt policy
named the candidates, cheapest to lose first.
"""

from __future__ import annotations

from makeway.hookspecs import by_request, hookimpl
from makeway.model import Attempt, Candidates, Choice
from makeway.searching import in_order


@hookimpl
@by_request(lambda view: lambda job: True)
def makeway_search(attempt: Attempt, candidates: Candidates) -> Choice | None:
    """Take in order, then give back in reverse."""
    return in_order(attempt, candidates)
