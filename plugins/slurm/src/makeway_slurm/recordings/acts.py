"""Turn the actions of a scenario, command lines of people, into commands for the engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from makeway.errors import ConfigError, Problem, unknown
from makeway.hostlist import expand_hostlist
from makeway.model import JobSpec, Seconds
from makeway.worlds.events import Command, NodesDown, NodesDrained, NodesUp
from makeway_slurm.recordings.entries import (
    ActionEntry,
    ScenarioFile,
    noted,
)
from makeway_slurm.recordings.reserving import is_about

_NAME = re.compile(r"<([^<>]+)>(\+[0-9]+)?")


@attrs.frozen(kw_only=True)
class Action:
    """Something that a person did during the run."""

    at: Seconds
    words: tuple[str, ...]
    """The command line, with ids in place of ``<NAME>``, or of ``<NAME>+1`` for a component."""
    commands: tuple[Command, ...] = ()
    """What the engine is told; nothing if it was only a question."""
    nodes: tuple[str, ...] = ()
    """Nodes whose state was set."""
    become: type[NodesDown | NodesDrained | NodesUp] = NodesUp
    """What they are from then on."""
    modelled: bool = True
    """False: Slurm does something that we cannot follow."""


def actions_of(
    file: ScenarioFile,
    jobs: Sequence[JobSpec],
    source: str,
    responding: Mapping[str, Sequence[Seconds]],
) -> tuple[Action, ...]:
    """Translate the commands, in order of time.

    :param responding: node -> when it answered after it had been down, and was in service again.
    """
    problems: list[Problem] = []
    ids = {entry.name: _REFUSED for entry in file.job} | dict(_ids_by_name(jobs))
    actions: list[Action] = []
    for at, entry in sorted(enumerate(file.action), key=lambda pair: pair[1].at):
        where = f"action[{at}].command"
        action = noted(problems, where, lambda entry=entry: _action(entry, ids))
        actions += [action] if action else []
    if problems:
        raise ConfigError(source, problems)
    return tuple(sorted((_once_responding(each, responding) for each in actions), key=lambda each: each.at))


def _once_responding(action: Action, responding: Mapping[str, Sequence[Seconds]]) -> Action:
    """Return nodes that come back when they answer; at once, if it is not known that they were down."""
    if action.become is not NodesUp:
        return action
    heard = [at for node in action.nodes for at in responding.get(node, ())]
    soon = (at for at in heard if action.at <= at < action.at + _ANSWERED)
    return attrs.evolve(action, at=min(soon, default=action.at))


def _ids_by_name(jobs: Iterable[JobSpec]) -> Iterator[tuple[str, str]]:
    """Yield each job's name and id; a heterogeneous job also as a whole, by its leader's id."""
    for job in jobs:
        yield job.name, job.id
        if job.het_id is not None and job.het_offset == 0:
            yield job.name.removesuffix("+0"), job.id


def _action(entry: ActionEntry, ids: Mapping[str, str]) -> Action:
    """Translate one command.

    :raises ValueError: it names an unknown job, or is no command of Slurm's that we know.
    """
    if is_about(entry.command):
        return Action(at=entry.at, words=entry.command)
    words = tuple(
        _NAME.sub(lambda match: _id_of(match[1] + (match[2] or ""), ids), word) for word in entry.command
    )
    program = words[0] if words else ""
    rest = [word for word in words[1:] if not word.startswith("-")]
    if program in _QUESTIONS or (program == "sbatch" and "--test-only" in words):
        return Action(at=entry.at, words=words)
    if program == "scancel":
        return Action(at=entry.at, words=words, commands=_for_each("cancel", rest))
    if program != "scontrol" or not rest:
        raise ValueError(unknown("command", program, ("scontrol", "scancel", *_QUESTIONS)))
    return _control(entry.at, words, rest[0].lower(), rest[1:])


_QUESTIONS = ("squeue", "sinfo", "sacct", "sprio", "sdiag")
_REFUSED = "0"
"""Id of a job that sbatch refused: commands about it come to nothing."""
_ANSWERED: Seconds = 3.0
"""Nodes that come back answer within so much."""
_STATES: Mapping[str, type[NodesDown | NodesDrained | NodesUp]] = {
    "down": NodesDown,
    "drain": NodesDrained,
    "resume": NodesUp,
}
"""State of ``scontrol update nodename=``: what the engine is told."""
_VERBS = ("suspend", "resume", "hold", "release", "requeue")


def _control(at: Seconds, words: tuple[str, ...], verb: str, objects: Sequence[str]) -> Action:
    """Translate a command of scontrol."""
    if verb == "show":
        return Action(at=at, words=words)
    if verb == "update":
        return _update(at, words, objects)
    if verb not in _VERBS:
        raise ValueError(unknown("scontrol command", verb, (*_VERBS, "show", "update")))
    return Action(at=at, words=words, commands=_for_each(verb, objects))


def _id_of(name: str, ids: Mapping[str, str]) -> str:
    if name not in ids:
        raise ValueError(unknown("job", name, ids))
    return ids[name]


def _for_each(verb: str, words: Iterable[str], value: str = "") -> tuple[Command, ...]:
    """Return one command for each job of lists such as ``1,2``."""
    named = (job_id for word in words for job_id in word.split(","))
    return tuple(Command(verb, job_id, value=value) for job_id in named if job_id not in ("", _REFUSED))


def _update(at: Seconds, words: tuple[str, ...], objects: Sequence[str]) -> Action:
    """Translate ``scontrol update``: a job's priority, or nodes that go out of service and come back."""
    given = {key.lower(): value for key, _, value in (word.partition("=") for word in objects)}
    given.pop("reason", None)
    if set(given) == {"jobid", "priority"}:
        commands = _for_each("priority", [given["jobid"]], given["priority"])
        return Action(at=at, words=words, commands=commands)
    if set(given) == {"nodename", "state"} and (become := _STATES.get(given["state"].lower())) is not None:
        return Action(at=at, words=words, nodes=tuple(expand_hostlist(given["nodename"])), become=become)
    return Action(at=at, words=words, modelled=False)
