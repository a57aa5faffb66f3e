"""Ask a selector again, so that a search can be judged: could a victim have stayed?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from makeway.model import Attempt, Blocked, Candidates, Choice, Placement, PreemptMode
from makeway_testing.watching import Call


def without(call: Call, positions: Iterable[int], modes: Sequence[PreemptMode] = ()) -> Placement | Blocked:
    """Place the job of a search with these candidates gone, from the beginning."""
    candidates: Candidates = call.arguments["candidates"]
    attempt: Attempt = call.arguments["attempt"].fresh()
    for place, at in enumerate(positions):
        mode = modes[place] if modes else candidates.modes[at]
        attempt.remove(candidates.jobs[at], mode)
    return attempt.probe()


def needless(call: Call) -> str | None:
    """Say which victim could have stayed; None: none."""
    choice = call.answer
    if not isinstance(choice, Choice):
        return None
    jobs = call.arguments["candidates"].jobs
    for at in choice.victims:
        others = [other for other in choice.victims if other != at]
        modes = [mode for other, mode in zip(choice.victims, choice.modes, strict=False) if other != at]
        if isinstance(without(call, others, modes), Placement):
            taken = ", ".join(jobs[one].id for one in choice.victims)
            return f"it took {taken}; {jobs[at].id} could have stayed"
    return None
