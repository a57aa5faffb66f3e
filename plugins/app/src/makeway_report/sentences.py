"""Tell decisions in words, as ``makeway explain`` does; a line per thought."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST_NAMES = 12
"""Jobs that are named one by one."""


def told(decision: Mapping[str, Any]) -> str:
    """Return the lines of one decision, without its instant and its outcome."""
    return "\n".join(_lines(decision))


def _lines(decision: Mapping[str, Any]) -> Iterator[str]:
    reason, detail = decision.get("reason", ""), decision.get("detail", "")
    why = ": ".join(part for part in (reason, detail) if part)
    if decision["outcome"] == "preempts":
        yield f"for {decision.get('placement', '')}; without that {why}"
    elif why:
        yield why
    if candidates := decision.get("candidates"):
        names = [f"{job} ({mode})" for job, mode in candidates]
        yield f"could displace, in this order: {_few(names, decision['candidate_count'])}"
    if vacated := decision.get("vacated"):
        yield f"could use what these hold, which are suspended: {_few(vacated, len(vacated))}"
    for rule, jobs in decision.get("protected", {}).items():
        yield f"protected: {_few(jobs, len(jobs))}: {rule}"
    if victims := decision.get("victims"):
        method = f" ({decision['method']})" if "method" in decision else ""
        yield f"takes{method}: {_few([f'{job} ({mode})' for job, mode in victims], len(victims))}"
    if decision.get("by") and (candidates or decision.get("protected")):
        yield f"rule: {decision['by']}"


def _few(names: Sequence[str], total: int) -> str:
    more = total - min(len(names), MOST_NAMES)
    return ", ".join(names[:MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
