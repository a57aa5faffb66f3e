"""Change what no decision may depend on, play the scenes again, and see whether the record is the same.

=========  =========================================================================
probe      what is changed, and what that finds
=========  =========================================================================
again      nothing: chance, and what is remembered from run to run
clock      the computer's clock
sets       the ids of jobs and their places in memory, so the order of sets of them
files      nothing; what a hook opens, starts or connects to is noted
growth     four times as many jobs: how much more one answer does, in steps of Python
           (the same on every machine) and in CPU time (which sees into libraries)
=========  =========================================================================
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import attrs

from makeway.dependencies import dependency, of_job
from makeway.model import JobSpec
from makeway.worlds.events import Command
from makeway_testing import nuisances
from makeway_testing.probing.scenes import Scene

Play = Callable[[Scene], str]
"""Plays a scene and returns its record."""

_SIZES = (250, 1000)
_COUNTED_SIZES = (100, 400)
"""Fewer jobs where steps are counted: each step of Python takes some ten times as long then."""
_TOO_STEEP = 9.0
"""How many times as much an answer may take with four times the jobs: n log n is about 5, a square 16."""
_MANY_STEPS = 250_000
"""Steps of one answer about 400 jobs below which no one minds: with 1,000 jobs it takes less than 0.1 s."""
_ENOUGH_STEPS = 4_000_000
"""Where counting ends: nothing is learned from more."""
_NOTICEABLE = 0.03
"""Seconds below which no one minds."""
_TOO_SLOW = 0.5
"""Seconds for one answer about 1,000 jobs."""


def nuisances_of(scene: Scene, play: Play, package: str) -> Iterator[str]:
    """Yield what the record of a scene depends on and must not.

    :param package: the plugin's own, whose modules may have imported a clock by name.
    """
    first = play(scene)
    if play(scene) != first:
        yield "decides otherwise when the same scene is played again: it is left to chance, or kept from run to run"
        return
    for instant in nuisances.CLOCKS:
        clock = nuisances.Clock(instant, package)
        with clock as read:
            record = play(scene)
        if record != first:
            seen = f" ({', '.join(sorted(read))})" if read else ""
            yield f"decides otherwise at another time of the computer's clock{seen}; `now` is the only time there is"
            break
    for at, prefix in enumerate(nuisances.PREFIXES):
        with nuisances.scattered(at):
            record = play(renamed(scene, prefix)).replace(prefix, "")
        if record != first:
            yield "decides otherwise when sets of jobs or of their ids come in another order; sort them first"
            break


def _renamed(spec: JobSpec, prefix: str) -> tuple[str, ...]:
    return tuple(of_job(word, prefix + dependency(word).job) for word in spec.depends_on)


def renamed(scene: Scene, prefix: str) -> Scene:
    """Return the same scene with `prefix` before every job id."""
    jobs = tuple(
        attrs.evolve(spec, id=prefix + spec.id, depends_on=_renamed(spec, prefix)) for spec in scene.jobs
    )
    commands = tuple(
        (at, event._replace(job_id=prefix + event.job_id) if isinstance(event, Command) else event)
        for at, event in scene.commands
    )
    return attrs.evolve(scene, jobs=jobs, commands=commands)


# ------------------------------------------------------------------------------------------- growth
def many(scene: Scene, size: int) -> Scene:
    """Return a scene with so many one-node jobs running when ten of a higher partition come."""
    nodes = attrs.evolve(scene.config.node[0], name=f"n[1-{size}]")
    partitions = tuple(attrs.evolve(each, nodes="ALL") for each in scene.config.partition)
    config = attrs.evolve(scene.config, node=(nodes,), partition=partitions)
    low, high = scene.jobs[1], scene.jobs[5]
    jobs = [
        attrs.evolve(
            low, id=f"r{at}", user=f"u{at % 7}", submit_at=0.0, min_nodes=1, max_nodes=1, run_time=50.0
        )
        for at in range(size)
    ]
    jobs += [
        attrs.evolve(high, id=f"w{at}", submit_at=10.0, min_nodes=1, max_nodes=1, run_time=5.0)
        for at in range(10)
    ]
    return attrs.evolve(scene, title=f"{size} jobs", config=config, jobs=tuple(jobs), commands=())


@attrs.define
class Stopwatch:
    """Times calls of hooks."""

    took: dict[str, list[float]] = attrs.field(factory=dict)

    @contextlib.contextmanager
    def timing(self, hook: str) -> Iterator[None]:
        """Keep how long a call takes; time that other programs take from it does not count."""
        began = time.process_time()
        try:
            yield
        finally:
            self.took.setdefault(hook, []).append(time.process_time() - began)


@attrs.define
class Steps:
    """Counts the steps that calls of hooks take: bytecodes of Python, which depend on no machine's mood."""

    took: dict[str, list[float]] = attrs.field(factory=dict)

    @contextlib.contextmanager
    def timing(self, hook: str) -> Iterator[None]:
        """Keep how many steps a call takes; nothing where a debugger already looks at every step."""
        kept, before = self.took.setdefault(hook, []), sys.gettrace()
        if before is not None or sum(kept) > _ENOUGH_STEPS:
            yield
            return
        steps = 0

        def count(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal steps
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            steps += event == "opcode"
            return count

        sys.settrace(count)
        try:
            yield
        finally:
            sys.settrace(None)
            kept.append(steps)


def steepness(
    small: Mapping[str, list[float]], large: Mapping[str, list[float]]
) -> Iterator[tuple[str, str]]:
    """Yield hook and what is said of those whose dearest answer takes too many more steps with more jobs."""
    times = _COUNTED_SIZES[1] // _COUNTED_SIZES[0]
    for hook, counts in sorted(large.items()):
        if hook not in TIMED or not counts or not small.get(hook):
            continue
        most, before = max(counts), max(small[hook])
        if most > _MANY_STEPS and most > _TOO_STEEP * before:
            yield (
                hook,
                (
                    f"takes {most / before:.0f} times as long with {times} times the jobs ({most:,.0f} steps of "
                    f"Python for {_COUNTED_SIZES[1]}); at 10,000 it would take minutes"
                ),
            )


def growth(small: Mapping[str, list[float]], large: Mapping[str, list[float]]) -> Iterator[tuple[str, str]]:
    """Yield hook and what is said of those that take too long, or grow too fast with the number of jobs."""
    for hook, times in sorted(large.items()):
        if hook not in TIMED:
            continue
        slow = _usual(times)
        if slow > _TOO_SLOW:
            yield hook, f"takes {slow:.1f} s for one answer about {_SIZES[1]} jobs"
            continue
        before = _usual(small.get(hook, [slow]))
        if slow > _NOTICEABLE and slow > _TOO_STEEP * before:
            yield (
                hook,
                (
                    f"takes {slow / before:.0f} times as long with {_SIZES[1] // _SIZES[0]} times the jobs "
                    f"({slow * 1000:.0f} ms for {_SIZES[1]}); at 10,000 it would take minutes"
                ),
            )


def _usual(times: Sequence[float]) -> float:
    """Return what the dearest questions usually take: the least of the ten longest times."""
    return sorted(times)[-10:][0]


SIZES = _SIZES
COUNTED_SIZES = _COUNTED_SIZES
TIMED = (
    *("makeway_preempt_candidates", "makeway_preempt_mode", "makeway_preempt_action", "makeway_protect"),
    *("makeway_queue.sort", "makeway_limits.admit", "makeway_limits.closed_nodes", "makeway_limits.marks"),
)
"""Hooks whose own time is looked at; a search probes, which takes the selector's time."""


# ------------------------------------------------------------------------------------------- files
_WATCHED = (
    "open",
    "os.listdir",
    "os.scandir",
    "subprocess.Popen",
    "os.system",
    "socket.connect",
    "urllib.Request",
)
_seen: list[str] | None = None
"""What was noted since listening began; None: nothing listens."""
_hooked = False


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is not None and event in _WATCHED and not _importing(sys._getframe()):
        _seen.append(f"{event}({arguments[0]!r:.60})")


def _importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported, or source is read to show it in an error."""
    while frame is not None:
        if frame.f_globals.get("__name__") in ("importlib._bootstrap", "linecache", "traceback"):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """Note which files are opened, programs started and connections made meanwhile."""
    global _seen, _hooked
    if not _hooked:
        sys.addaudithook(_listen)
        _hooked = True
    _seen, seen = [], _seen
    try:
        yield _seen
    finally:
        _seen = seen
