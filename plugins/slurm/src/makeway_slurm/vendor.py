"""Add to what `makeway_slurm_rules` tells of Slurm what people type and see: its commands, its files, its checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from makeway.errors import Finding
from makeway.model import ClusterView, Listing, Seconds, StatusCommand, Vocabulary
from makeway.vendors import Vendor
from makeway_app.status import COMMAND
from makeway_slurm.status import SQUEUE

if TYPE_CHECKING:
    from makeway.config import Config


def check(config: Config) -> Iterable[Finding]:
    """Find what Slurm would refuse, ignore or do unexpectedly."""
    from makeway_slurm.check import combinations

    return combinations(config)


def _priorities(view: ClusterView, now: Seconds) -> Sequence[Listing]:
    from makeway_slurm.multifactor.tables import show_priorities

    return show_priorities(view, now)


def _shares(view: ClusterView, now: Seconds) -> Sequence[Listing]:
    from makeway_slurm.multifactor.tables import show_shares

    return show_shares(view, now)


VENDOR = Vendor(
    name="slurm",
    title="Slurm",
    vocabulary=Vocabulary(status=SQUEUE),
    tables=(
        StatusCommand(name="sprio", options="-l", show=_priorities),
        StatusCommand(name="sshare", options="-a -l -m", show=_shares),
    ),
    formats=("sacct",),
    accounting="`sacctmgr -P show qos`, `sacctmgr -P show assoc` or `sacctmgr dump`",
    check=check,
    spellings={SQUEUE.name: COMMAND},
)
