"""``makeway checkpointable``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class _Length(click.ParamType[float]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from makeway.plain import A_LENGTH, seconds_of

        text = str(value)
        seconds = float(text) if text.replace(".", "", 1).isdecimal() else seconds_of(text)
        if seconds is None or seconds < 1.0:
            self.fail(f"got {text!r:.60}; allowed: {A_LENGTH}, from one second on", param, ctx)
        return seconds


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir",
    "directory",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Holds what is saved, and the program's output; one for each program, where every node sees it.",
)
@click.option("--every", type=_Length(), metavar="TIME", help="Save it so often, too: 30m, 1:30:00.")
@click.option(
    "--shield",
    is_flag=True,
    help="Let the program ignore SIGTERM, where Slurm sends it to every process of a job.",
)
@click.option("--here", is_flag=True, help="Let it print where this command prints, if that is a file.")
@click.option(
    "--save", is_flag=True, help="Have the program that runs with this DIR saved, to be ended then."
)
@click.option(
    "--most",
    type=click.IntRange(1),
    metavar="MB",
    help="Save nothing if all that lies beside DIR would take more than that with it.",
)
@click.option("--criu", metavar="PATH", help="Use this criu, not the one of MAKEWAY_CRIU or of the PATH.")
@click.option(
    "--cuda-checkpoint",
    metavar="PATH",
    help="Use this cuda-checkpoint for GPUs, not the one of MAKEWAY_CUDA_CHECKPOINT or of the PATH.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def checkpointable(
    ctx: click.Context,
    directory: Path,
    every: float | None,
    shield: bool,
    here: bool,
    save: bool,
    most: int | None,
    criu: str | None,
    cuda_checkpoint: str | None,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND so that it loses nothing when it has to leave: in a batch script of any Slurm, by a plain user.

    SIGTERM saves it and has Slurm requeue the job. Started again with the same DIR, it goes on where it was.
    """
    if save:
        from makeway_checkpointable.door import ask

        if command:
            raise click.UsageError("--save takes no COMMAND: it asks the one that runs")
        ctx.exit(ask(directory))
    if not command:
        raise click.UsageError("name a COMMAND behind --")
    from makeway_checkpointable.wrapper import run

    ctx.exit(
        run(
            command,
            directory,
            every=every,
            shield=shield,
            given_criu=criu,
            given_cuda=cuda_checkpoint,
            here=here,
            most=most,
        )
    )
