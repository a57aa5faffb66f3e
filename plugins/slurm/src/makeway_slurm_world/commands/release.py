"""``makeway slurm release``: the way back."""

from __future__ import annotations

import time
from pathlib import Path

import click

from makeway_slurm_world.commands.places import Lock, TakenError, directory, state_option
from makeway_slurm_world.driving.handback import HandBack
from makeway_slurm_world.driving.notebook import Notebook
from makeway_slurm_world.driving.settings import Settings
from makeway_slurm_world.talking.runner import Away, Hand, Printer

PAUSE = 2.0
"""Seconds between two tries."""


@click.command()
@state_option
@click.option(
    "--reservation",
    metavar="NAME",
    help="Name of the lease; else the one that the state directory names, else makeway.",
)
@click.option(
    "--requeue", is_flag=True, help="Requeue suspended jobs whose CPUs are in use; else wait for these."
)
@click.option("--dry-run", is_flag=True, help="Print the commands, and run none that changes anything.")
@click.option("--if-dead", is_flag=True, help="Do nothing while a `makeway slurm drive` runs; for watchdogs.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long to wait for what is in the way; else for as long as it takes.",
)
def release(
    state: Path | None,
    reservation: str | None,
    requeue: bool,
    dry_run: bool,
    if_dead: bool,
    timeout: float | None,
) -> None:
    """Give the nodes back to Slurm: afterwards no job is held, suspended or bound by makeway, and the lease is gone.

    Each step can be repeated. A suspended job goes on once nobody runs on its CPUs; until then the lease stays on its
    nodes. Run it with --if-dead from systemd's OnFailure, or from cron, as a watchdog.
    """
    place = directory(state)
    try:
        lock = Lock(place)
    except TakenError:
        if if_dead:
            return
        raise
    try:
        done = hand_back(place, reservation, requeue=requeue, dry=dry_run, timeout=timeout)
    finally:
        lock.release()
    if not done:
        click.echo("makeway: not all is given back yet; run it again", err=True)
        raise click.exceptions.Exit(1)


def hand_back(place: Path, name: str | None, *, requeue: bool, dry: bool, timeout: float | None) -> bool:
    """Give everything back; say whether that was done in time.

    :param name: of the lease; None: the one that the notebook names, else the usual one.
    :param timeout: seconds; None: for as long as it takes.
    :raises Away: the controller cannot be reached, and nothing is to be done but print.
    """
    hand = Printer() if dry else Hand()
    notebook = Notebook(place)
    lease = name or notebook.pages.lease or Settings().reservation
    back = HandBack(hand, notebook, lease, click.echo, requeue=requeue, dry=dry)
    until = None if timeout is None else time.monotonic() + timeout
    told = ""
    while True:
        try:
            if back.step(time.monotonic()):
                return True
        except Away as error:
            if dry:
                raise
            if str(error) != told:
                told = str(error)
                click.echo(f"warning: {told}; it is tried again every {PAUSE:g} s", err=True)
        if until is not None and time.monotonic() >= until:
            return False
        time.sleep(PAUSE)
