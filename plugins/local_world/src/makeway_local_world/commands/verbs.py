"""The commands that change jobs.

Cancel, suspend, resume, requeue, checkpoint, restore, hold, release, start, top, update; drain and undrain.
"""

from __future__ import annotations

import time

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import REFUSED, Daemon
from makeway_local_world.commands.words import Argument, Command, Option, Wrong, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_DONE = {
    "cancel": "cancelled",
    "suspend": "suspended",
    "resume": "resumed",
    "requeue": "requeued",
    "checkpoint": "checkpointed",
    "restore": "put first",
    "hold": "held",
    "release": "released",
    "start": "started",
    "top": "put first",
    "update": "updated",
    "signal": "signalled",
}
_IGNORE = {"limits": "ignorepolicies", "reservations": "ignorersv"}
"""What an operator may leave out of account at a start, in words of Moab's command."""


def order(verb: str, jobs: Sequence[str], as_json: bool, **more: Any) -> int:
    """Have something done to jobs, tell what was refused, and return 1 if anything was."""
    answer = Daemon().post("/v1/commands", {"verb": verb, "jobs": list(jobs), **more})
    return tell(verb, answer, as_json)


def tell(verb: str, answer: Mapping[str, Any], as_json: bool) -> int:
    """Print what became of an order; return the exit status."""
    if as_json:
        terminal.put(answer)
    else:
        for job_id, why in answer["refused"].items():
            terminal.say(f"makeway: {f'job {job_id}: ' if job_id else ''}{why}", err=True)
        if len(answer["done"]) > 1:
            terminal.say(f"{len(answer['done'])} jobs {_DONE[verb]}")
        if not answer["done"] and not answer["refused"]:
            terminal.say("no job fits")
    return REFUSED if answer["refused"] else 0


_CHOICE = (
    Argument("jobs", "[JOB...]", many=True, required=False, offers="jobs"),
    Option("-u", "--user", bare="", metavar="USER", offers="users", help="Jobs of a user; alone: yours."),
    Option("-p", "--partition", metavar="NAME", offers="partitions", help="Jobs of a partition."),
    Option("-J", "--name", metavar="NAME", help="Jobs of this name."),
    Option(
        "-t", "--state", metavar="STATE", reads=str.lower, help="Jobs that are pending, running or suspended."
    ),
)
"""Which jobs are meant: those that are named, or all that fit and that one may change."""


def _chosen(
    jobs: Sequence[str], user: str | None, partition: str | None, name: str | None, state: str | None
) -> dict[str, str]:
    """Return which jobs are meant, as the daemon is asked.

    :raises Wrong: some are named and described, or neither.
    """
    given = {"user": user, "partition": partition, "name": name, "state": state}
    found = {key: value for key, value in given.items() if value is not None}
    if bool(jobs) == bool(found):
        raise Wrong("name jobs, or say which by --user, --partition, --name and --state")
    if user == "":
        found["user"] = options.login()
    return found


def _plain(verb: str, text: str) -> Command:
    def run(jobs: tuple[str, ...], as_json: bool, **which: str | None) -> int:
        return order(verb, jobs, as_json, **_chosen(jobs, **which))

    run.__doc__ = text
    return command(verb, *_CHOICE, options.JSON)(run)


suspend = _plain("suspend", "Stop jobs; they keep their place and their memory until you resume them.")
resume = _plain("resume", "Let jobs go on that a person suspended.")
requeue = _plain("requeue", "End jobs and let them wait again; they start from the beginning.")
checkpoint = _plain(
    "checkpoint",
    "Have jobs run their checkpoint command, then end them and let them wait to go on from there.",
)
restore = _plain(
    "restore",
    "Let checkpointed jobs go on: release those that are held, and put them first as `top` does.",
)
hold = _plain("hold", "Keep waiting jobs from starting.")
release = _plain("release", "Let held jobs start again.")
top = _plain("top", "Put waiting jobs before all others; plain users: before their own others.")


@command(
    "cancel",
    *_CHOICE,
    Option("--all", to="everything", flag=True, help="All jobs that you may cancel."),
    Option(
        "-s", "--signal", metavar="NAME", help="Send this signal instead; the job goes on or ends by itself."
    ),
    Option("-y", "--yes", flag=True, help="Do not ask before all jobs are cancelled."),
    options.JSON,
)
def cancel(
    jobs: tuple[str, ...],
    everything: bool,
    signal: str | None,
    yes: bool,
    as_json: bool,
    **which: str | None,
) -> int:
    """End jobs for good, or send them a signal."""
    if everything and (jobs or any(each is not None for each in which.values())):
        raise Wrong("name jobs, or say --all, not both")
    chosen = {} if everything else _chosen(jobs, **which)
    if everything and not yes and not terminal.agreed("End all jobs that you may cancel?"):
        return REFUSED
    verb, value = ("cancel", "") if signal is None else ("signal", signal)
    return order(verb, jobs, as_json, all=everything, value=value, **chosen)


def _ignored(values: Sequence[str]) -> tuple[str, ...]:
    for value in values:
        if value not in _IGNORE:
            raise ValueError(f"got {value!r}; allowed: {', '.join(_IGNORE)}")
    return tuple(values)


@command(
    "start",
    options.JOBS,
    Option(
        "--ignore",
        to="ignored",
        many=True,
        reads=_ignored,
        default=(),
        metavar="|".join(_IGNORE),
        help="Limits of users and QOS; what the scheduler keeps for jobs that wait.",
    ),
    options.JSON,
)
def start(jobs: tuple[str, ...], ignored: tuple[str, ...], as_json: bool) -> int:
    """Start waiting jobs now, before all others, if they fit; for operators. No job makes way for them."""
    return order("start", jobs, as_json, value=",".join(_IGNORE[each] for each in dict.fromkeys(ignored)))


def _begin(text: str) -> float:
    from makeway_local_world.commands.submit import instant

    return instant(text, time.time())


_READ: dict[str, Callable[[str], float]] = {
    "time": options.length,
    "mem": options.megabytes,
    "begin": _begin,
}
"""Fields of an update that people write otherwise than the daemon does."""


@command(
    "update",
    options.JOB,
    Argument("changes", "[FIELD=VALUE... | -- COMMAND [ARGUMENT]...]", many=True, required=False),
    options.JSON,
    behind="command",
)
def update(job: str, changes: tuple[str, ...], command: tuple[str, ...], as_json: bool) -> int:
    """Change a job: time=LIMIT, also while it runs; while it waits what it asks for, and when it may begin.

    While it waits: name=NAME, partition=NAME,..., qos=NAME, mem=4G, gpus=N, begin=18:30, dependency=afterok:ID,
    priority=N, nice=N. An empty dependency lets it wait for no other. Behind -- stands a COMMAND that it runs instead
    of its own. Plain users may only shorten limits and lower priorities.
    """
    if bool(changes) == bool(command):
        raise Wrong("name fields, as in time=2:00:00, or a command behind --")
    wanted = {}
    for text in changes:
        field, equals, value = text.partition("=")
        if not equals:
            raise Wrong(f"got {text!r}; allowed: FIELD=VALUE, as in time=2:00:00")
        if field in _READ:
            try:
                value = str(round(_READ[field](value)))
            except ValueError as error:
                raise Wrong(f"{field}: {error}") from None
        wanted[field] = value
    return order("update", (job,), as_json, **({"command": command} if command else {"changes": wanted}))


@command("drain", Argument("reason", "[REASON]", required=False), options.JSON)
def drain(reason: str | None, as_json: bool) -> None:
    """Start nothing any more; jobs that run go on. REASON is shown to people."""
    answer = Daemon().post("/v1/drain", {"reason": reason or ""})
    if as_json:
        terminal.put(answer)


@command("undrain", options.JSON)
def undrain(as_json: bool) -> None:
    """Start jobs again after `drain`."""
    answer = Daemon().post("/v1/undrain")
    if as_json:
        terminal.put(answer)
