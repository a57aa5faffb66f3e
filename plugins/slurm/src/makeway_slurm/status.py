"""Show the queue as ``squeue`` does, in its own order (P,t,-p)."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import ClusterView, Listing, Seconds, StatusCommand, Vocabulary
from makeway_app.status import by_partition, plain


def show(view: ClusterView, now: Seconds) -> Sequence[Listing]:
    """Return the table, in Slurm's words whatever those of the site are."""
    return [plain(view, now, by_partition(view.present), Vocabulary())]


SQUEUE = StatusCommand(name="squeue", show=show)
