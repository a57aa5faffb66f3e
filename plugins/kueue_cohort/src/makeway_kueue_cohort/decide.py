"""Ask who has to leave so that a workload fits, in the way in which the site shares."""

from __future__ import annotations

from collections.abc import Sequence

from makeway_kueue_cohort import classic, fair
from makeway_kueue_cohort.books import Books
from makeway_kueue_cohort.classic import ByQueue
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.reasons import Victim
from makeway_kueue_cohort.site import Pair, Sharing


def victims(
    preemptor: Workload, short: Sequence[Pair], admitted: ByQueue, books: Books
) -> tuple[Victim, ...]:
    """Return who has to leave, first taken first; empty: none can make room.

    :param preemptor: the workload that waits; `Workload.uses` is what it asks for, in the flavors chosen for it.
    :param short: the pairs in which it does not fit.
    :param admitted: queue -> the workloads counted in `books` there.
    :param books: they end as they were.
    """
    search = fair.choose if books.site.sharing is Sharing.FAIR else classic.choose
    return search(preemptor, short, admitted, books)
