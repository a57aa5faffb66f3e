"""``makeway explain``: tell why one job waited, which jobs it displaced, or which displaced it."""

from __future__ import annotations

import click

from makeway import registry
from makeway.config import Config
from makeway.errors import ConfigError, Problem, nearest
from makeway.escapes import printable_lines
from makeway.obstacle import counted
from makeway_app.cli.asked import Asked
from makeway_app.cli.group import TRACE, UNUSABLE, switched_on
from makeway_app.cli.inputs import check_plugins, with_actions
from makeway_app.cli.meter import Board
from makeway_app.cli.options import workload_options
from makeway_app.cli.request import Request
from makeway_app.cli.running import begun_warm, warmed_up, watched
from makeway_app.cli.terminal import console, note
from makeway_app.readers.commands import commands_with
from makeway_app.replay import Options
from makeway_app.replay import replay as run_replay
from makeway_app.report import rejection
from makeway_explain.story import Witness
from makeway_explain.story import explain as story


@click.command()
@workload_options
@click.option("--job", required=True, metavar="ID", help="The job in question.")
def explain(
    asked: Asked,
    job: str,
) -> None:
    """Replay WORKLOAD under CONFIG and tell what was decided about one job, and why.

    The exit status is 3 if the job's row cannot be used, or the job can never run here.
    """
    loaded, config = asked.load(), asked.config
    configured, _ = registry.translated(
        with_actions(asked.changed(loaded.config), asked.actions), loaded.config.policy.preempt
    )
    request = asked.request(loaded, all_rejected=True)
    check_plugins(configured, str(config), request.plugins, loaded.places)
    remarks = len(loaded.warnings) + len(loaded.matters) + len(loaded.refused) + len(loaded.unmodelled)
    if remarks:
        note("note", [f"{counted(remarks, 'warning')} about {config}; see makeway check"])
    unusable = _unusable_rows(request, configured, job)
    note("note", unusable)
    witness = Witness(job, native=loaded.reader is None)
    board = Board(["replaying"], console(err=True))
    (gauge,) = board.gauges
    with board.shown(), watched(request, configured, gauge) as jobs:
        configured, notes = warmed_up(configured, asked.warm_up, jobs.start_wall)
        note("note", notes)
        options = Options(
            until=asked.until,
            traced=witness.concerns,
            decided=witness.decided,
            started=gauge.started,
            after_step=witness.stepped,
            trace=switched_on(TRACE),
            plugins=request.plugins,
        )
        options = begun_warm(options, jobs, configured)
        commands = commands_with(configured, str(loaded.path), jobs)
        run = run_replay(configured, jobs.jobs, commands, options)
    paragraphs = list(story(run, witness, loaded.places))
    if not paragraphs:
        paragraphs = [f"job {job} was not submitted before --until"]
    click.echo(printable_lines("\n\n".join(paragraphs)))
    if any(witness.wants(each) for each, _, _ in run.recorder.unrunnable):
        raise click.exceptions.Exit(UNUSABLE)


def _unusable_rows(request: Request, config: Config, wanted: str) -> list[str]:
    """Look through the workload for the job; return why further rows with its id cannot be used.

    :raises ConfigError: it is not there.
    :raises click.exceptions.Exit: none of its rows can be used, which is told.
    """
    ids: dict[str, None] = {}
    with watched(request, config, Board(["looking for the job"], console(err=True)).gauges[0]) as workload:
        for spec in workload.jobs:
            ids[spec.id] = None
            if spec.het_id is not None:
                ids[spec.het_id] = None
    rows = [row for row in workload.rejected if wanted in (row.job, row.job.partition("+")[0])]
    told = [rejection(workload, row) for row in rows]
    if wanted in ids:
        return [f"a row of job {wanted} cannot be used: {text}" for text in told]
    if told:
        lines = "\n".join(f"  {text}" for text in told)
        click.echo(printable_lines(f"job {wanted} is not replayed, its row cannot be used\n{lines}"))
        raise click.exceptions.Exit(UNUSABLE)
    span = f", {next(iter(ids))} to {next(reversed(ids))}" if ids else ""
    bad = workload.rejected_count
    unusable = f", and {counted(bad, 'row')} that cannot be used" if bad else ""
    known = f"there are {len(ids):,}{span}{unusable}"
    text = f"no job {wanted!r} in {workload.name}; {known}{nearest(wanted, ids)}"
    raise ConfigError("--job", [Problem("", text)])
