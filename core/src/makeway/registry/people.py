"""Ask what plugins say about commands that people give."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import ClusterView, Commands, Job
from makeway.registry.asking import Asker, shown

_HOOK = "makeway_commands"


class People:
    """The plugins' rules about commands, asked for when the first command comes."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._rules: Sequence[tuple[str, Commands]] | None = None

    def _all_rules(self) -> Sequence[tuple[str, Commands]]:
        if self._rules is None:
            rules = []
            for plugin, answer in self._asker.answers(_HOOK, None):
                if not isinstance(answer, Commands):
                    raise self._asker.fault(
                        _HOOK, None, f"returned {shown(answer)}; allowed: Commands, or None"
                    )
                rules.append((plugin, answer))
            self._rules = rules
        return self._rules

    def names(self, expression: str, command: str, user: str | None, view: ClusterView) -> list[str]:
        """Return the ids of the jobs that a person means."""
        for plugin, rules in self._all_rules():
            if rules.names is not None:
                given = expression, command, user, view
                answer = self._asker.asked_beside(plugin, _HOOK, None, rules.names, *given)
                if answer is not None:
                    return self._ids(answer)
        return [expression]

    def _ids(self, answer: object) -> list[str]:
        named = self._asker.listed(_HOOK, None, answer)
        if not all(isinstance(each, str) for each in named):
            raise self._asker.fault(_HOOK, None, f"returned {shown(answer)}; allowed: ids of jobs, or None")
        return named

    def refusal(self, command: str, job: Job, user: str | None, view: ClusterView) -> str | None:
        """Return why a person's command is refused; None: it is not."""
        for plugin, rules in self._all_rules():
            if rules.refuses is not None:
                given = command, job, user, view
                answer = self._asker.asked_beside(plugin, _HOOK, job, rules.refuses, *given)
                if answer is not None:
                    return self._reason(job, answer)
        return None

    def _reason(self, job: Job, answer: object) -> str:
        if not isinstance(answer, str):
            raise self._asker.fault(_HOOK, job, f"returned {shown(answer)}; allowed: a reason, or None")
        return answer
