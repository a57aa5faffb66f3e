"""Say of which jobs all that is answered depends on what they ask for: what is said to one holds for all of them."""

from __future__ import annotations

from collections.abc import Callable

from makeway.model import ClusterView, Job
from makeway_lsf_queue.compiling import site_of


def alike(view: ClusterView) -> Callable[[Job], bool] | None:
    """Return whether a job is answered by its request; None: slots are reserved, or queues have windows.

    A job that may preempt only after a while (PREEMPT_DELAY, lsf 4.4) is judged by its submission as well.
    """
    site = site_of(view)
    if site.has_reserving_queues or site.has_windows:
        return None
    if not any(level.delay for level in site.levels):
        return lambda job: True
    return lambda job: not site.level_of(job).delay
