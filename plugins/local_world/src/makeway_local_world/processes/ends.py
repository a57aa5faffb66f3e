"""How an incarnation ended, for the engine and for people."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import attrs

from makeway.model import JobState
from makeway_local_world.keeping import words
from makeway_local_world.processes.rundir import RunDirectory
from makeway_local_world.submission import beside, directory_of


@attrs.frozen(kw_only=True)
class End:
    """What the exit file of an incarnation says."""

    status: int | None = None
    """Raw wait status of the first process; None: it never ran, or is unknown."""
    killed: str | None = None
    """Why it was killed by us; None: it ended by itself."""
    became: str | None = None
    """What the daemon said that it comes to; None: nothing."""
    failed: str | None = None
    """Why it could not start; None: it did."""
    left: tuple[str, ...] = ()
    """Processes that were left when the first one had ended: name and pid."""
    oom_kills: int = 0
    """Processes that the kernel killed since the job's memory limit was reached."""
    user_seconds: float = 0.0
    """CPU time of the first process and its collected children."""
    system_seconds: float = 0.0
    """The same in the kernel."""
    peak_kb: int = 0
    """Most memory of one process, or of the whole job where it has a cgroup with a memory controller."""
    wall: float | None = None
    """When it ended, as Unix time."""
    untold: str = ""
    """Why its owner was not told of something as it had asked for; empty: all was told."""
    gpus: tuple[str, ...] = ()
    """The GPUs that it had, by UUID."""

    @property
    def code(self) -> int:
        """Exit code; 0 if a signal ended it."""
        return os.WEXITSTATUS(self.status) if self.status is not None and os.WIFEXITED(self.status) else 0

    @property
    def signal(self) -> int:
        """Signal that ended it; 0: none."""
        return os.WTERMSIG(self.status) if self.status is not None and os.WIFSIGNALED(self.status) else 0

    @property
    def text(self) -> str:
        """Code and signal as Slurm shows them: ``1:0``, ``0:9``."""
        return f"{self.code}:{self.signal}"

    @property
    def state(self) -> JobState:
        """How the engine is to count it if it was not asked for."""
        if self.oom_kills or self.over_memory:
            return JobState.OUT_OF_MEMORY
        if self.killed is not None:
            return JobState.CANCELLED
        return JobState.COMPLETED if self.status == 0 and not self.failed else JobState.FAILED

    @property
    def over_memory(self) -> bool:
        """Whether the daemon ended it since it had more memory than it was given."""
        return self.became == JobState.OUT_OF_MEMORY.value

    @property
    def why(self) -> str:
        """One phrase for people; empty: it went well."""
        if self.failed:
            return self.failed
        if self.oom_kills:
            return f"OUT_OF_MEMORY: the kernel killed {self.oom_kills} of its processes at its memory limit"
        if self.over_memory:
            return f"OUT_OF_MEMORY: {self.killed}"
        if self.signal:
            return f"ended by {_signal_name(self.signal)}"
        if self.code > 128 and self.code - 128 in signal.valid_signals():
            name = _signal_name(self.code - 128)
            return f"exit code {self.code}, which a shell also reports for {name}"
        return f"exit code {self.code}" if self.code else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_WORDS = {
    "exec": "it cannot be executed",
    "output": "its output cannot be opened",
    "error output": "its error output cannot be opened",
    "input": "its input cannot be opened",
    "working directory": "it cannot enter its directory",
    "script": "the first line of its script names no interpreter",
    "rights": "its user's rights cannot be had",
    "keeper": "its keeper cannot begin",
}


def failure_text(failed: dict[str, Any]) -> str:
    """Say in words why a start failed."""
    step, what, number = str(failed.get("step")), str(failed.get("what", "")), int(failed.get("number", 0))
    text = _WORDS.get(step, f"{step} failed")
    reason = os.strerror(number) if number else ""
    what = what.removeprefix(f"[Errno {number}] ").removeprefix(reason).lstrip(": ")
    return ": ".join(part for part in (text, what, reason) if part)


def end_of_plain(told: dict[str, Any]) -> End:
    """Read an exit file."""
    usage = told.get("rusage") or [0.0, 0.0, 0]
    failed = told.get("failed")
    return End(
        status=told.get("status"),
        killed=told.get("killed"),
        became=told.get("becomes"),
        failed=failure_text(failed) if failed else None,
        left=tuple(f"{name} ({pid})" for pid, name, _ in told.get("left", ())),
        oom_kills=int(told.get("oom", 0)),
        user_seconds=float(usage[0]),
        system_seconds=float(usage[1]),
        peak_kb=int(told.get("peak", 0)) // 1024 or int(usage[2]),
        wall=told.get("wall"),
        untold=told.get("untold", ""),
        gpus=tuple(told.get("gpus", ())),
    )


def end_of(state: Path, job_id: str, incarnation: int) -> End | None:
    """Return how an incarnation ended; None: it has not, or that is not known."""
    kept = directory_of(state, job_id) / beside(job_id, "exit", incarnation)
    for again in (False, True):  # it is copied before the directory of the incarnation is taken away
        with contextlib.suppress(OSError, words.WordError):
            return end_of_plain(words.unpack(kept.read_bytes()))
        with contextlib.suppress(OSError, words.WordError):
            fresh = None if again else RunDirectory(state, (job_id, incarnation)).end()
            if fresh is not None:
                return end_of_plain(fresh)
    return None
