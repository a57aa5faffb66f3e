"""Take on the rights of a job's owner, for good; what a keeper does before is all that root does for a start.

The daemon says it in a mandate of its own, apart from the request: root never reads what the owner asked for.
"""

from __future__ import annotations

import os

from makeway_local_world.keeping import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class RightsError(OSError):
    """The rights of the owner cannot be had, or those of root cannot be lost."""


def check(mandate: Mapping[str, Any]) -> None:
    """Check that this process can become the owner.

    :raises RightsError: it cannot.
    """
    if os.geteuid() != 0 and (mandate["uid"], mandate["gid"]) != (os.geteuid(), os.getegid()):
        raise RightsError(1, "only root runs jobs of others")


def take_on(mandate: Mapping[str, Any]) -> None:
    """Become the owner: groups, group, user, in this order; without root there is nothing to take on.

    No process of the same user can trace this one from then on, or reach its open files through /proc: the kernel
    refuses that until it executes a program.

    :raises RightsError: the process is not what it has to be; it must not go on.
    """
    check(mandate)
    uid, gid, groups = mandate["uid"], mandate["gid"], mandate["groups"]
    if os.geteuid() != 0:
        return
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if uid == 0:
        return
    linux.let_nobody_trace()
    linux.leave_keyring()
    if os.getresuid() != (uid,) * 3 or os.getresgid() != (gid,) * 3 or _may_return():
        raise RightsError(1, "root's rights cannot be lost")


def _may_return() -> bool:
    try:
        os.setuid(0)
    except OSError:
        return False
    return True


def set_oom_score(value: int) -> None:
    """Say how much rather than others the kernel takes this process when memory runs out.

    What root sets is also the least that the owner may set later.
    """
    try:
        handle = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(handle, b"%d" % value)
    except OSError:
        pass  # lowering needs rights; everything runs as well without it
    finally:
        os.close(handle)
