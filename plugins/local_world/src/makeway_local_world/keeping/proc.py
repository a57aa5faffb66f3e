"""Read what /proc says of processes; a process that has gone meanwhile is no error."""

from __future__ import annotations

import os

from makeway_local_world.keeping.files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

STOPPED = frozenset("Tt")
ENDED = frozenset("ZX")
"""Z: not collected yet; X: it was listed, and had gone before it could be looked at."""
_FIRST_THREAD_ALONE = STOPPED | ENDED
"""States that the first thread of a process may be in while others run."""
_FROM_A_STOP = {"D": 1, "t": 2, "T": 2, "Z": 3, "X": 3}
"""How near threads are to a stop: those that run come first, those that have ended last."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Process:
    """One look at a process."""

    __slots__ = ("name", "parent", "pid", "resident", "started", "state")

    def __init__(self, pid: int, name: str, state: str, parent: int, started: int, resident: int) -> None:
        """Note what was seen.

        :param state: R, S, D, T (stopped), t (traced), Z (ended, not collected), X; of the thread that is furthest
            from a stop.
        :param started: ticks since the boot; with the pid it names a process for certain.
        :param resident: memory in pages.
        """
        self.pid = pid
        self.name = name
        self.state = state
        self.parent = parent
        self.started = started
        self.resident = resident


def look(pid: int) -> Process | None:
    """Look at a process; None: there is none of that number."""
    try:
        text = read_file(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    opening, closing = text.index(b"("), text.rindex(b")")
    fields = text[closing + 2 :].split()
    state = fields[0].decode("ascii")
    if int(fields[17]) > 1 and state in _FIRST_THREAD_ALONE:
        state = _of_all_threads(pid, state)
    return Process(
        pid=pid,
        name=text[opening + 1 : closing].decode("utf-8", "replace"),
        state=state,
        parent=int(fields[1]),
        started=int(fields[19]),
        resident=int(fields[21]),
    )


def terminal(pid: int) -> int:
    """Return the device of the terminal that controls a process; 0: it has none."""
    try:
        text = read_file(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return int(text[text.rindex(b")") + 2 :].split()[4])


def _of_all_threads(pid: int, state: str) -> str:
    """Return the state of a process whose first thread has stopped or ended: others may still run, and fork."""
    found = {state}
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return state
    for thread in threads:
        try:
            text = read_file(f"/proc/{pid}/task/{thread}/stat")
        except (FileNotFoundError, ProcessLookupError):
            continue
        closing = text.rindex(b")")
        found.add(chr(text[closing + 2]))
    return min(found, key=lambda each: _FROM_A_STOP.get(each, 0))


def boot_id() -> str:
    """Return what names this boot of the machine."""
    with open(BOOT_ID, encoding="ascii") as file:
        return file.read().strip()


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process: a child belongs to the thread that forked it."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return found
    for thread in threads:
        try:
            found += map(int, read_file(f"/proc/{pid}/task/{thread}/children").split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def has_children_files() -> bool:
    """Whether the kernel lists children (CONFIG_PROC_CHILDREN)."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def below(root: int, spared: Collection[int] = ()) -> Iterator[Process]:
    """Go down from a process, top down, without itself; what `spared` names is left out with all below it.

    It yields each process when it is reached, so that a caller who stops it is sure of its later children. One that
    has gone meanwhile is yielded in state X: its children may have moved up behind the look.
    """
    waiting = [pid for pid in children(root) if pid not in spared]
    seen = set(waiting)
    while waiting:
        pid = waiting.pop(0)
        found = look(pid)
        if found is None:
            yield Process(pid, "", "X", 0, 0, 0)
            continue
        yield found
        for child in children(pid):
            if child not in seen and child not in spared:
                seen.add(child)
                waiting.append(child)


def everybody() -> Iterator[int]:
    """Return the numbers of all processes that can be seen."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def below_by_looking_at_all(root: int, spared: Collection[int] = ()) -> Iterator[Process]:
    """Do the same where the kernel lists no children: by one look at all processes."""
    by_parent: dict[int, list[Process]] = {}
    for pid in everybody():
        found = look(pid)
        if found is not None:
            by_parent.setdefault(found.parent, []).append(found)
    waiting = list(by_parent.get(root, ()))
    while waiting:
        process = waiting.pop(0)
        if process.pid in spared:
            continue
        yield process
        waiting += by_parent.get(process.pid, ())


def proportional(pid: int) -> int | None:
    """Return the bytes of a process, of what it shares with others only its share; None: that cannot be read."""
    try:
        for line in read_file(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return None


def catches(pid: int, signal_number: int) -> bool:
    """Whether a process has a handler for a signal."""
    try:
        for line in read_file(f"/proc/{pid}/status").splitlines():
            if line.startswith(b"SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal_number - 1) & 1)
    except (FileNotFoundError, ProcessLookupError):
        pass
    return False
