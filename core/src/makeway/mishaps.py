"""Keep what could not be done in a run: jobs that can never run, commands that were refused, failed preemptions."""

from __future__ import annotations

from typing import Any

import attrs

from makeway.metrics import tidy
from makeway.model import Seconds
from makeway.worlds.events import Command


@attrs.define(eq=False)
class Mishaps:
    """What could not be done, in the order in which it came up."""

    unrunnable: list[tuple[str, str, str]] = attrs.field(factory=list)
    """Jobs that can never run here: id, place in the workload, reason."""
    refusals: list[tuple[Seconds, Command, str]] = attrs.field(factory=list)
    """People's commands that were refused: instant, command, reason."""
    failures: list[tuple[Seconds, str, str, str]] = attrs.field(factory=list)
    """Preemptions that could not be carried out: instant, preemptor, victim, reason."""

    def as_dict(self) -> dict[str, Any]:
        """Return failed preemptions and refused commands in the summary's shape; nothing where there were none."""
        found: dict[str, Any] = {}
        if self.failures:
            keys = ("at", "preemptor", "victim", "why")
            found["failed_preemptions"] = [dict(zip(keys, each, strict=True)) for each in self.failures]
        if self.refusals:
            found["refused_commands"] = [
                {"at": tidy(at), "command": one.name, "job": one.job_id, "user": one.user, "reason": reason}
                for at, one, reason in self.refusals
            ]
        return found
