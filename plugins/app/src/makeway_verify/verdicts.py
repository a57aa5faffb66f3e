"""Say how replays compare with recordings of a real scheduler, and print the score."""

from __future__ import annotations

import enum
import statistics
from collections.abc import Sequence

import attrs
from rich.console import Console
from rich.text import Text

from makeway.model import Seconds


class Aspect(enum.Enum):
    """What a difference is about."""

    JOBS = "jobs"
    """One side does not know the job."""
    STATES = "states"
    BOUNDARY = "boundary"
    FINAL_STATE = "final state"
    RESTARTS = "restarts"
    NODES = "nodes"
    CPUS = "CPUs"
    GRES = "GRES"
    """Counted resources on each node."""
    REASON = "reason"
    """Why it still waits at the end."""


_DETAILS = frozenset((Aspect.NODES, Aspect.CPUS, Aspect.GRES, Aspect.REASON))


@attrs.frozen
class Difference:
    """One way in which replay and recording differ."""

    aspect: Aspect
    job: str
    at: Seconds | None
    """Instant in the recording where the two part; None: it is about the whole job."""
    recorded: str
    replayed: str

    def __str__(self) -> str:
        when = "" if self.at is None else f" at {self.at:.2f} s"
        parts = f"recorded {self.recorded}, replayed {self.replayed}"
        return f"{self.job}: {self.aspect.value}{when}: {parts}"


@attrs.frozen(kw_only=True)
class Comparison:
    """What comparing two runs came to."""

    differences: tuple[Difference, ...] = ()
    """By job, in the order of the recording."""
    gaps: tuple[Seconds, ...] = ()
    """Distance of each pair of boundaries that belong together."""

    @property
    def same_story(self) -> bool:
        """Whether all but nodes, CPUs and reasons agrees."""
        return all(each.aspect in _DETAILS for each in self.differences)

    @property
    def agrees(self) -> bool:
        """Whether all agrees."""
        return not self.differences

    @property
    def largest_gap(self) -> Seconds:
        """Largest distance between boundaries; 0 if there are none."""
        return max(self.gaps, default=0.0)


class Outcome(enum.Enum):
    """How a scenario came out."""

    AGREES = "agrees"
    OTHER_NODES = "other nodes"
    """The story is the same, the nodes are not."""
    DIFFERS = "differs"
    FAILED = "failed"
    """The replay ended with an error."""
    SKIPPED = "skipped"


@attrs.frozen(kw_only=True)
class Verdict:
    """How one scenario came out, and why."""

    name: str
    outcome: Outcome
    why: str = ""
    """Reason of a skip or failure; empty otherwise."""
    release: str = ""
    """Release of the recording."""
    comparison: Comparison = Comparison()


# ------------------------------------------------------------------------------- the score
_STYLE = {
    Outcome.AGREES: "green",
    Outcome.OTHER_NODES: "yellow",
    Outcome.DIFFERS: "red",
    Outcome.FAILED: "red",
    Outcome.SKIPPED: "dim",
}


def print_score(verdicts: Sequence[Verdict], console: Console) -> None:
    """Print a line for each scenario, its differences below it, and the score."""
    width = max((len(verdict.name) for verdict in verdicts), default=0)
    for verdict in verdicts:
        console.print(_line(verdict, width), soft_wrap=True)
        for difference in verdict.comparison.differences:
            console.print(Text(f"    {difference}"), soft_wrap=True)
    console.print(Text(score(verdicts), style="bold"), soft_wrap=True)


def _line(verdict: Verdict, width: int) -> Text:
    line = Text(f"{verdict.name:<{width}}  ")
    line.append(f"{verdict.outcome.value:<11}", style=_STYLE[verdict.outcome])
    if verdict.why:
        line.append(f"  {verdict.why}")
    elif verdict.comparison.gaps:
        line.append(f"  largest distance {verdict.comparison.largest_gap:.2f} s", style="dim")
    return line


def score(verdicts: Sequence[Verdict]) -> str:
    """Return the score in a line: how many agree, and how close the boundaries are."""
    counts = dict.fromkeys(Outcome, 0)
    for verdict in verdicts:
        counts[verdict.outcome] += 1
    played = len(verdicts) - counts[Outcome.SKIPPED]
    parts = [f"{counts[Outcome.AGREES]} of {played} agree"]
    parts += [f"{n} {o.value}" for o, n in counts.items() if n and o is not Outcome.AGREES]
    gaps = sorted(gap for verdict in verdicts for gap in verdict.comparison.gaps)
    if gaps:
        far = gaps[int(len(gaps) * 0.95)]
        middle = statistics.median(gaps)
        parts.append(f"boundaries: median {middle:.2f} s, 95% {far:.2f} s, most {gaps[-1]:.2f} s")
    return "; ".join(parts)
