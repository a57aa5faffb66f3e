"""The commands that change jobs.

Cancel, suspend, resume, requeue, checkpoint, hold, release, start, top, update; drain and undrain.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from typing import Any

import click

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import REFUSED, Daemon

_DONE = {
    "cancel": "cancelled",
    "suspend": "suspended",
    "resume": "resumed",
    "requeue": "requeued",
    "checkpoint": "checkpointed",
    "hold": "held",
    "release": "released",
    "start": "started",
    "top": "put first",
    "update": "updated",
    "signal": "signalled",
}
_IGNORE = {"limits": "ignorepolicies", "reservations": "ignorersv"}
"""What an operator may leave out of account at a start, in words of Moab's command."""


def order(verb: str, jobs: Sequence[str], as_json: bool, **more: Any) -> None:
    """Have something done to jobs, tell what was refused, and leave with 1 if anything was."""
    answer = Daemon().post("/v1/commands", {"verb": verb, "jobs": list(jobs), **more})
    tell(verb, answer, as_json)


def tell(verb: str, answer: Mapping[str, Any], as_json: bool) -> None:
    """Print what became of an order."""
    if as_json:
        terminal.put(answer)
    else:
        for job_id, why in answer["refused"].items():
            terminal.say(f"makeway: {f'job {job_id}: ' if job_id else ''}{why}", err=True)
        if len(answer["done"]) > 1:
            terminal.say(f"{len(answer['done'])} jobs {_DONE[verb]}")
    if answer["refused"]:
        raise click.exceptions.Exit(REFUSED)


def _plain(verb: str, text: str) -> click.Command:
    @click.command(name=verb, help=text)
    @options.jobs_argument()
    @options.json_option
    def command(jobs: tuple[str, ...], as_json: bool) -> None:
        order(verb, jobs, as_json)

    return command


suspend = _plain("suspend", "Stop jobs; they keep their place and their memory until you resume them.")
resume = _plain("resume", "Let jobs go on that a person suspended.")
requeue = _plain("requeue", "End jobs and let them wait again; they start from the beginning.")
checkpoint = _plain(
    "checkpoint",
    "Have jobs run their checkpoint command, then end them and let them wait to go on from there.",
)
hold = _plain("hold", "Keep waiting jobs from starting.")
release = _plain("release", "Let held jobs start again.")
top = _plain("top", "Put waiting jobs before all others; plain users: before their own others.")


@click.command()
@options.jobs_argument(required=False)
@click.option(
    "-u", "--user", is_flag=False, flag_value="", default=None, help="All jobs of a user; alone: yours."
)
@click.option("--all", "everything", is_flag=True, help="All jobs that you may cancel.")
@click.option(
    "-s", "--signal", metavar="NAME", help="Send this signal instead; the job goes on or ends by itself."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before all jobs are cancelled.")
@options.json_option
def cancel(
    jobs: tuple[str, ...], user: str | None, everything: bool, signal: str | None, yes: bool, as_json: bool
) -> None:
    """End jobs for good, or send them a signal."""
    if not (jobs or everything or user is not None):
        raise click.UsageError("name jobs, or say --user or --all")
    if jobs and (everything or user is not None):
        raise click.UsageError("name jobs, or say --user or --all, not both")
    if everything and not yes:
        click.confirm("End all jobs that you may cancel?", abort=True)
    whose = getpass.getuser() if user == "" else user
    verb, value = ("cancel", "") if signal is None else ("signal", signal)
    order(verb, jobs, as_json, user=whose, all=everything, value=value)


@click.command()
@options.jobs_argument()
@click.option(
    "--ignore",
    "ignored",
    type=click.Choice(tuple(_IGNORE)),
    multiple=True,
    help="Limits of users and QOS; what the scheduler keeps for jobs that wait.",
)
@options.json_option
def start(jobs: tuple[str, ...], ignored: tuple[str, ...], as_json: bool) -> None:
    """Start waiting jobs now, before all others, if they fit; for operators. No job makes way for them."""
    order("start", jobs, as_json, value=",".join(_IGNORE[each] for each in dict.fromkeys(ignored)))


@click.command()
@options.job_argument
@click.argument("changes", metavar="FIELD=VALUE...", nargs=-1, required=True)
@options.json_option
def update(job: str, changes: tuple[str, ...], as_json: bool) -> None:
    """Change a job: time=LIMIT, also while it runs; while it waits partition=NAME,..., qos=NAME, priority=N, nice=N.

    Plain users may only shorten limits and lower priorities.
    """
    wanted = {}
    for text in changes:
        field, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"got {text!r}; allowed: FIELD=VALUE, as in time=2:00:00")
        if field == "time":
            try:
                value = str(round(options.seconds_of(value)))
            except ValueError as error:
                raise click.UsageError(f"time: {error}") from None
        wanted[field] = value
    order("update", (job,), as_json, changes=wanted)


@click.command()
@click.argument("reason", required=False, default="")
@options.json_option
def drain(reason: str, as_json: bool) -> None:
    """Start nothing any more; jobs that run go on. REASON is shown to people."""
    answer = Daemon().post("/v1/drain", {"reason": reason})
    if as_json:
        terminal.put(answer)


@click.command()
@options.json_option
def undrain(as_json: bool) -> None:
    """Start jobs again after `drain`."""
    answer = Daemon().post("/v1/undrain")
    if as_json:
        terminal.put(answer)


__all__ = [
    "cancel",
    "checkpoint",
    "drain",
    "hold",
    "order",
    "release",
    "requeue",
    "resume",
    "start",
    "suspend",
    "tell",
    "top",
    "undrain",
    "update",
]
