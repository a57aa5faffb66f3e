"""``makeway slurm drive``: another policy decides over some nodes."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import click

from makeway.config import Config, dump_toml, validate
from makeway.errors import ConfigError, Problem
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.record import Line
from makeway.settings import structure
from makeway_app.cli.terminal import note
from makeway_live.recovery import live_of
from makeway_slurm_world.advising.advice import advise
from makeway_slurm_world.advising.overlay import laid_over, restricted, settings_in
from makeway_slurm_world.commands import options
from makeway_slurm_world.commands.places import Lock, directory, state_option
from makeway_slurm_world.commands.release import hand_back
from makeway_slurm_world.driving import orders, preconditions
from makeway_slurm_world.driving.components import parts_of, start_together
from makeway_slurm_world.driving.settings import Settings
from makeway_slurm_world.people.board import Board
from makeway_slurm_world.people.service import Service
from makeway_slurm_world.reading.look import Look
from makeway_slurm_world.talking.cost import Limit, limit_of, told
from makeway_slurm_world.talking.runner import Hand, Printer, Reader, SlurmError
from makeway_slurm_world.talking.words import STATISTICS

JOURNAL, CONFIG = "journal.db", "config.toml"
"""In the state directory: what happened, and the whole configuration, for `makeway explain` and `replay`."""
_SHOWN = ("preempt", "state", "failed", "noticed", "rejected", "policy_error")


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--nodes", required=True, metavar="LIST", help="The nodes to decide over, such as n[1-4].")
@state_option
@click.option(
    "--lease", type=click.FloatRange(min=5.0), metavar="SECONDS", help="How long the lease outlives makeway."
)
@click.option(
    "--poll", type=click.FloatRange(min=0.2), metavar="SECONDS", help="Time between two looks at the queue."
)
@click.option(
    "--socket",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PATH",
    help="Where `makeway queue`, `why` and `history` ask; else `socket` in the state directory.",
)
@click.option(
    "--board",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the queue with plans and reasons to this file, as JSON that everybody may read.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print what would be done now, command by command, and do nothing."
)
@click.option(
    "--keep",
    is_flag=True,
    help="Do not hand back when told to end: the lease ends by itself, the next one goes on.",
)
@click.option(
    "--hand-back-timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for running preemptors when told to end.",
)
def drive(
    config: Path,
    nodes: str,
    state: Path | None,
    lease: float | None,
    poll: float | None,
    socket: Path | None,
    board: Path | None,
    dry_run: bool,
    keep: bool,
    hand_back_timeout: float,
) -> None:
    """Let the policy of CONFIG decide over some nodes of the running Slurm, until SIGTERM or Ctrl-C.

    CONFIG says what differs from the cluster's own configuration, as for `advise`. A reservation that is renewed every
    few seconds keeps Slurm from starting jobs there; nothing in slurm.conf changes. When it ends, everything is handed
    back; when it is killed, the reservation ends by itself, and `makeway slurm release` mends the rest.
    """
    try:
        names = expand_hostlist(nodes)
    except ValueError as error:
        raise ConfigError("--nodes", [Problem("", str(error))]) from None
    if board is not None and not os.access(board.absolute().parent, os.W_OK | os.X_OK):
        raise ConfigError(
            "--board", [Problem("", f"{board}: its folder is not there, or cannot be written to")]
        )
    place = directory(state)
    found = options.look_now(Hand(), settings_in(config).reservation)
    chosen = configured(restricted(laid_over(found.config, config), names), names, lease, poll)
    chosen = slowed(chosen, limit_of(found.settings))
    options.tell(found)
    preconditions.check(Hand(), found, chosen, names)
    wishes = structure(chosen.world.settings, Settings, "world.settings")
    parameters = found.settings.get("SchedulerParameters", "")
    note("note", preconditions.slow_backfill(parameters, wishes.het_start_limit))
    if dry_run:
        _dry(found, chosen, names, wishes)
        return
    lock = Lock(place)
    try:
        _tell_cost(chosen)
        _drive(chosen, place, socket or place / "socket", board)
        if not keep:
            click.echo("handing back")
            if not hand_back(
                place, settings_in(config).reservation, requeue=False, dry=False, timeout=hand_back_timeout
            ):
                click.echo(
                    "makeway: not all is given back yet; `makeway slurm release` goes on with it", err=True
                )
                raise click.exceptions.Exit(1)
    finally:
        lock.release()


def configured(config: Config, names: list[str], lease: float | None, poll: float | None) -> Config:
    """Return a configuration whose world is Slurm: no delays of a simulation, and the world's own settings."""
    settings = {**config.world.settings, "nodes": fold_hostlist(names)}
    settings |= {} if lease is None else {"lease": lease}
    settings |= {} if poll is None else {"poll": poll}
    margin = structure(settings, Settings, "world.settings").restart_margin
    driving = attrs.evolve(
        config,
        world=attrs.evolve(config.world, name="world/slurm", state=None, settings=settings),
        scheduler=attrs.evolve(config.scheduler, clockwork={"preset": "ideal", "requeue_delay": margin}),
        job=(),
        action=(),
    )
    validate(driving, "config")
    return driving


def slowed(config: Config, limit: Limit | None) -> Config:
    """Return a configuration that looks no more often than the site lets a user ask, and say so."""
    settings = structure(config.world.settings, Settings, "world.settings")
    if limit is None or settings.poll >= limit.poll:
        return config
    text = f"the site allows a user {limit.rate:g} calls a second (rl_enable): a look every {limit.poll:g} s"
    note("note", [f"{text}, not every {settings.poll:g} s"])
    table = {**config.world.settings, "poll": limit.poll}
    return attrs.evolve(config, world=attrs.evolve(config.world, settings=table))


def _tell_cost(config: Config) -> None:
    """Say what looking costs the controller, as far as it tells."""
    poll = structure(config.world.settings, Settings, "world.settings").poll
    with contextlib.suppress(SlurmError):
        if said := told(Reader().ask(STATISTICS).out, poll):
            click.echo(said)


# ------------------------------------------------------------------------------------ dry run
def _dry(found: Look, config: Config, names: list[str], settings: Settings) -> None:
    """Print the commands of the first pass."""
    hand = Printer()
    mine = set(names)
    jobs = {job.id: job for job in found.jobs}
    here = tuple(
        each
        for each in found.state.jobs
        if each.allocation is None or set(expand_hostlist(each.allocation.nodes)) <= mine
    )
    down = [name for name in expand_hostlist(found.state.down_nodes or "") if name in mine]
    advice = advise(config, attrs.evolve(found.state, jobs=here, down_nodes=fold_hostlist(down)))
    hand.tell(orders.take_lease(settings.reservation, fold_hostlist(names), settings.lease))
    for each in advice.displaced:
        verb = {"requeue": orders.requeue, "suspend": orders.suspend}.get(each.mode, orders.cancel)
        hand.tell(verb(each.job))
    places = {start.job: tuple(expand_hostlist(start.nodes)) for start in advice.starts}
    everything = [name for table in found.config.node for name in expand_hostlist(table.name)]
    for start in advice.starts:
        parts = parts_of(jobs[start.job], jobs)
        if parts[0].spec.het_id is None:
            hand.tell(orders.start(start.job, settings.reservation, start.nodes, len(places[start.job])))
        elif parts[0].id == start.job and all(part.id in places for part in parts):
            for order in start_together(parts, places, settings.reservation, everything):
                hand.tell(order)


# -------------------------------------------------------------------------------------- really
def _drive(config: Config, place: Path, socket: Path, file: Path | None) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    (place / CONFIG).write_text(dump_toml(config), encoding="utf-8")
    board = Board(place / JOURNAL, file)
    live = live_of(config, place, sink=lambda line: _told(line, board), name=JOURNAL)
    service = None
    try:
        board.wake = live.clock.wake
        service = Service(socket, board)
        with _until_told() as over:
            click.echo(f"driving {config.world.settings['nodes']} with {config.policy.preempt}")
            while not over():
                live.turn()
                board.turned(live.engine, live.steps, live.clock.now(), live.clock.wall(), live.unwritten)
    finally:
        if service is not None:
            service.close()
        board.close()
        live.close()
        close = getattr(live.journal, "close", None)
        if close is not None:
            close()


def _told(line: Line, board: Board) -> None:
    """Show what is decided, with its reasons."""
    board.heard(line)
    if line.kind in _SHOWN:
        data = ", ".join(f"{key} {value}" for key, value in line.data.items() if value not in ("", None))
        logging.getLogger("makeway").info("job %s: %s: %s", line.job, line.kind, data)


@contextlib.contextmanager
def _until_told() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM and SIGINT end the loop after its turn."""
    told: list[int] = []

    def end(number: int, _: object) -> None:
        told.append(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: bool(told)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
