"""Say what a suspended job goes on holding (moab 5.1, 7.4, 17).

By default its memory, not its processors; Maui's books give the memory away too. SUSPENDRESOURCES lists what
stays dedicated, for one partition or for all: NODE and PROC keep the processors, MEM the memory. SWAP and DISK
are not counted here.
"""

from __future__ import annotations

from makeway.model import Job
from makeway_moab_qos.settings import Settings
from makeway_moab_qos.tasks.books import Keeps

_BY_DEFAULT = Keeps()
_IN_MAUI = Keeps(memory=False)
_FOR_ALL = ("0", "ALL", "DEFAULT")


def kept_when_suspended(job: Job, settings: Settings) -> Keeps:
    """Return what `job` holds, or would hold, while it is suspended."""
    if settings.maui:
        return _IN_MAUI
    table = settings.suspend_resources
    for index in (job.partition.name, *_FOR_ALL):
        if index in table:
            listed = table[index]
            return Keeps(cores="NODE" in listed or "PROC" in listed, memory="MEM" in listed)
    return _BY_DEFAULT
