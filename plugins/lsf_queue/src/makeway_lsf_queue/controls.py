"""Understand JOB_CONTROLS and TERMINATE_WHEN, and say how a victim of a queue makes way (lsf 6.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from makeway.errors import nearest
from makeway.model import PreemptMode
from makeway_lsf_queue.values import WrongValueError

ACTIONS = ("SUSPEND", "RESUME", "TERMINATE")
WHEN = ("LOAD", "PREEMPT", "WINDOW")
_PART = re.compile(r"\s*([A-Za-z_]+)\s*\[([^\]]*)\]\s*")
_DEADLY = {"KILL": 9, "TERM": 15, "INT": 2, "QUIT": 3}
_COMMANDS = {
    "brequeue": PreemptMode.REQUEUE,
    "bmig": PreemptMode.REQUEUE,
    "bkill": PreemptMode.CANCEL,
}
"""LSF's own commands that may be configured as the suspend action."""


def job_controls(text: str) -> Mapping[str, str]:
    """Return action -> signal or command; the text runs to the first closing bracket (9.2 no. 10).

    :raises WrongValueError: a keyword is unknown (they are case-sensitive); the queue is dropped.
    """
    found: dict[str, str] = {}
    at = 0
    while at < len(text.rstrip()):
        match = _PART.match(text, at)
        if match is None or match.group(1) not in ACTIONS:
            close = nearest(match.group(1), ACTIONS) if match is not None else ""
            raise WrongValueError(
                f"got {text[at:].strip()[:40]!r}; allowed: {'[..] '.join(ACTIONS)}[..]{close}"
            )
        action, inside = match.group(1), match.group(2).strip()
        if action == "RESUME" and inside == "CHKPNT":
            raise WrongValueError("RESUME[CHKPNT]; CHKPNT is for SUSPEND and TERMINATE")
        found[action] = inside
        at = match.end()
    if not found:
        raise WrongValueError("is empty")
    return found


def terminate_when(text: str) -> frozenset[str]:
    """Return when the terminate action takes the place of the suspend action.

    :raises WrongValueError: a word is unknown; the queue is dropped.
    """
    found = frozenset(text.split())
    wrong = sorted(found.difference(WHEN))
    if wrong or not found:
        close = nearest(wrong[0], WHEN) if wrong else ""
        raise WrongValueError(f"got {text!r}; allowed: {' '.join(WHEN)}{close}")
    return found


@attrs.frozen(kw_only=True)
class Manner:
    """How victims of a queue make way."""

    mode: PreemptMode = PreemptMode.SUSPEND
    why: str = "no JOB_CONTROLS: suspended"
    migrates: bool = False
    """Whether a checkpointable job takes its work along when it is requeued (bmig)."""


def manner_of(
    controls: Mapping[str, str],
    when: frozenset[str],
    requeue_exit_values: frozenset[int] | None,
    killed_with: int,
    cause: str = "PREEMPT",
) -> Manner:
    """Say how a victim makes way, or a job when its run window closes.

    :param requeue_exit_values: REQUEUE_EXIT_VALUES; None: every exit value but 0 ("all").
    :param killed_with: the exit value of a job that the terminate action has killed.
    :param cause: PREEMPT or WINDOW: the word of TERMINATE_WHEN that calls for the terminate action.
    """
    if cause in when:
        action = controls.get("TERMINATE", "")
        why = _because(f"TERMINATE_WHEN={cause}", action, "TERMINATE")
        return _killed(why, killed_with, requeue_exit_values)
    action = controls.get("SUSPEND", "")
    if not action:
        return Manner()
    why = f"JOB_CONTROLS=SUSPEND[{action}]"
    command = re.split(r"[\s;|&]", action)[0].rpartition("/")[2]
    if command == "bkill":
        return _killed(why, killed_with, requeue_exit_values)
    if command in _COMMANDS:
        return Manner(mode=_COMMANDS[command], why=why, migrates=command == "bmig")
    number = _deadly(action)
    if number is not None:
        return _killed(f"{why} ends the job", 128 + number, requeue_exit_values)
    return Manner(why=why)


def _deadly(action: str) -> int | None:
    """Return the number of a signal that ends a job; None: it is none such."""
    word = action.upper().removeprefix("SIG")
    number = int(word) if word.isdigit() else _DEADLY.get(word)
    return number if number in _DEADLY.values() else None


def _killed(why: str, value: int, requeue_exit_values: frozenset[int] | None) -> Manner:
    """Say what becomes of a job that is killed: one whose exit value is listed is requeued."""
    if requeue_exit_values is None or value in requeue_exit_values:
        why = f"{why}, and exit value {value} is in REQUEUE_EXIT_VALUES"
        return Manner(mode=PreemptMode.REQUEUE, why=why)
    return Manner(mode=PreemptMode.CANCEL, why=why)


def _because(cause: str, action: str, name: str) -> str:
    return f"{cause}, JOB_CONTROLS={name}[{action}]" if action else cause


def is_known_action(action: str) -> bool:
    """Whether a suspend action is a signal, CHKPNT, or a command whose effect is known."""
    command = re.split(r"[\s;|&]", action)[0].rpartition("/")[2]
    signal = re.fullmatch(r"(SIG)?[A-Z]{2,6}[0-9]?|\d{1,2}", action) is not None
    return signal or action == "CHKPNT" or command in _COMMANDS
