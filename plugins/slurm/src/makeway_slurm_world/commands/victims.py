"""``makeway slurm victims``."""

from __future__ import annotations

import getpass
from pathlib import Path

import click

from makeway.errors import ConfigError, Problem, nearest
from makeway.model import JobState
from makeway_slurm_world.advising.advice import Advice
from makeway_slurm_world.advising.advice import advise as advise_on
from makeway_slurm_world.advising.overlay import laid_over, settings_in
from makeway_slurm_world.advising.victims import NEW, SlurmSays, ask_slurm, new_jobs
from makeway_slurm_world.commands import options
from makeway_slurm_world.commands.advise import plain, show
from makeway_slurm_world.reading.look import Look
from makeway_slurm_world.talking.runner import Reader


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="CONFIG",
    help="The policy to ask; else the cluster's own.",
)
@click.option("--no-slurm", is_flag=True, help="Do not ask `sbatch --test-only` beside the policy.")
@options.json_option
@click.argument("job", nargs=-1, type=click.UNPROCESSED, metavar="JOB | -- SBATCH-ARGUMENTS")
def victims(config: Path | None, no_slurm: bool, as_json: bool, job: tuple[str, ...]) -> None:
    """Say which jobs a job would displace now: a waiting one, or one described as for sbatch.

    Nothing is submitted. For a job described as for sbatch, the answer is held against that of the cluster's own
    Slurm (`sbatch --test-only`), which knows its own policy only.
    """
    if not job:
        raise click.UsageError("name a waiting job, or give sbatch's arguments behind --")
    asker = Reader()
    found = options.look_now(asker, settings_in(config).reservation if config is not None else "")
    options.tell(found, quiet=True)
    chosen = laid_over(found.config, config)
    waiting = len(job) == 1 and job[0][:1].isdigit()
    if waiting:
        _known(found, job[0])
        advice, says = advise_on(chosen, found.state), None
        ids = [job[0]]
    else:
        new = new_jobs(job, getpass.getuser())
        advice = advise_on(chosen, found.state, new)
        says = None if no_slurm else ask_slurm(asker, job, found.settings.get("SLURM_VERSION", ""))
        ids = [spec.id for spec in new]
    _answer(advice, ids, says, as_json=as_json)


def _known(found: Look, job_id: str) -> None:
    ids = {each.id: each for each in found.jobs}
    if job_id not in ids:
        raise ConfigError("JOB", [Problem("", f"no job {job_id!r} waits or runs{nearest(job_id, ids)}")])
    if ids[job_id].state is not JobState.PENDING:
        text = f"job {job_id} is {ids[job_id].word}; allowed: a job that waits"
        raise ConfigError("JOB", [Problem("", text)])


def _answer(advice: Advice, ids: list[str], says: SlurmSays | None, *, as_json: bool) -> None:
    mine = [advice.of(job_id) for job_id in ids]
    victims = sorted({each.job for one in mine for each in one.displaced if each.preemptor in ids})
    if as_json:
        told: dict[str, object] = {"policy": [plain(one) for one in mine], "displaces": victims}
        if says is not None:
            told["slurm"] = {
                "displaces": list(says.preempts),
                "nodes": says.nodes,
                "starts_at": says.starts_at,
                "refused": says.refused,
                "not_asked": says.not_asked,
            }
        options.put(told)
        return
    for one in mine:
        show(one)
    for job_id, why in ((job_id, why) for one in mine for job_id, why in one.waits.items()):
        name = "it" if job_id == NEW else f"job {job_id}"
        click.echo(f"{name} would wait: {why}" if not victims else f"{name} starts once they have made way")
    if not victims:
        click.echo("no job would make way")
    if says is not None:
        click.echo(_of_slurm(says, victims))


def _of_slurm(says: SlurmSays, victims: list[str]) -> str:
    if says.not_asked:
        return f"Slurm itself was not asked: {says.not_asked}"
    if says.refused:
        return f"Slurm itself: {says.refused}"
    theirs = sorted(says.preempts)
    taken = f"preempts {','.join(theirs)}" if theirs else "preempts none"
    verdict = "the same victims" if theirs == victims else "other victims"
    return f"Slurm itself: starts at {says.starts_at} on {says.nodes}, {taken} ({verdict})"
