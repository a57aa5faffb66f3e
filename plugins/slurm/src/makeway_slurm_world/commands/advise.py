"""``makeway slurm advise``: one pass of a policy, or a diary of many."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import IO

import click

from makeway_slurm_world.advising.advice import Advice
from makeway_slurm_world.advising.advice import advise as advise_on
from makeway_slurm_world.advising.diary import Diary
from makeway_slurm_world.advising.overlay import laid_over, settings_in
from makeway_slurm_world.commands import options
from makeway_slurm_world.reading.look import Look
from makeway_slurm_world.talking.runner import Away

_WAITS_SHOWN = 20
_SAVED = "none of it, if these jobs ran under makeway checkpointable"


@click.command()
@options.config_argument
@click.option("--follow", is_flag=True, help="Go on, and hold what Slurm does against what the policy said.")
@click.option(
    "--every",
    type=click.FloatRange(min=1.0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks.",
)
@click.option("--looks", type=click.IntRange(min=1), help="End after so many looks; else with Ctrl-C.")
@click.option(
    "--diary",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append each look to this file, as a line of JSON.",
)
@options.json_option
def advise(
    config: Path | None, follow: bool, every: float, looks: int | None, diary: Path | None, as_json: bool
) -> None:
    """Say what a policy would do now: who would start, who would make way, who waits and why.

    CONFIG says what differs from the cluster's own configuration; its [policy] stands in place of the cluster's.
    Without CONFIG the cluster's own policy is asked. No command is run that changes anything.
    """
    ours = settings_in(config).reservation if config is not None else ""
    found = options.look_now(None, ours)
    options.tell(found)
    advice = advise_on(laid_over(found.config, config), found.state)
    if not follow:
        _tell(advice, found, as_json=as_json)
        return
    if diary is None:
        _follow(found, advice, config, every, looks, None, ours)
    else:
        with open(diary, "a", encoding="utf-8") as stream:
            _follow(found, advice, config, every, looks, stream, ours)


# ----------------------------------------------------------------------------------- one pass
def plain(advice: Advice) -> dict[str, object]:
    """Return advice in values that JSON has."""
    return {
        "starts": [
            {"job": each.job, "nodes": each.nodes, "partition": each.partition} for each in advice.starts
        ],
        "makes_way": [
            {
                "job": each.job,
                "how": each.mode,
                "for": each.preemptor,
                "why": each.why,
                "core_hours_lost": round(each.core_hours, 3),
            }
            for each in advice.displaced
        ],
        "waits": dict(advice.waits),
        "refused": dict(advice.refused),
        "left_out": list(advice.left_out),
    }


def _tell(advice: Advice, found: Look, *, as_json: bool) -> None:
    if as_json:
        options.put(plain(advice))
        return
    show(advice)
    waiting = [(job_id, why) for job_id, why in advice.waits.items()]
    for job_id, why in waiting[:_WAITS_SHOWN]:
        click.echo(f"job {job_id} waits: {why}")
    if len(waiting) > _WAITS_SHOWN:
        click.echo(f"and {len(waiting) - _WAITS_SHOWN} more wait")
    if not (advice.starts or advice.displaced or waiting):
        click.echo("no job starts, makes way or waits")
    del found


def show(advice: Advice) -> None:
    """Print who starts, who makes way, and who is refused."""
    for start in advice.starts:
        click.echo(f"job {start.job} would start on {start.nodes} in partition {start.partition}")
    for each in advice.displaced:
        why = f": {each.why}" if each.why else ""
        target = f" for job {each.preemptor}" if each.preemptor else ""
        click.echo(f"job {each.job} would make way ({each.mode}){target}{why}")
    if advice.core_hours:
        click.echo(f"{_work(advice.core_hours)} of work would be lost; {_SAVED}")
    for job_id, why in advice.refused.items():
        click.echo(f"job {job_id} could never run: {why}")
    for text in advice.left_out:
        click.echo(f"warning: {text}", err=True)


def _work(core_hours: float) -> str:
    return f"{core_hours:,.1f} core-hours" if core_hours >= 0.1 else f"{core_hours * 3600:,.0f} core-seconds"


# -------------------------------------------------------------------------------------- diary
def _follow(
    before: Look,
    advice: Advice,
    config: Path | None,
    every: float,
    looks: int | None,
    stream: IO[str] | None,
    ours: str,
) -> None:
    diary = Diary()
    done = 1
    try:
        while looks is None or done < looks:
            time.sleep(every)
            try:
                after = options.look_now(None, ours)
            except Away as error:
                click.echo(f"warning: {error}", err=True)
                continue
            entry = diary.entry(before, advice, after)
            if stream is not None:
                stream.write(json.dumps(entry) + "\n")
                stream.flush()
            _echo(entry)
            before, advice = after, advise_on(laid_over(after.config, config), after.state)
            done += 1
    finally:
        for name, number in diary.counts.items():
            click.echo(f"{name}: {number}")
        if diary.core_hours:
            click.echo(f"lost to slurm's requeues: {_work(diary.core_hours)}; {_SAVED}")


def _echo(entry: dict[str, dict[str, object]]) -> None:
    at = time.strftime("%H:%M:%S", time.localtime(float(str(entry["at"]))))
    slurm, policy = entry["slurm"], entry["policy"]
    if slurm["started"] or slurm["displaced"] or policy["starts"] or policy["displaces"]:
        click.echo(f"{at} slurm: {_short(slurm)} | policy: {_short(policy)}")


def _short(side: dict[str, object]) -> str:
    parts = []
    for verb, what in side.items():
        if isinstance(what, dict) and what:
            parts.append(verb + " " + ", ".join(f"{job_id} ({detail})" for job_id, detail in what.items()))
        elif isinstance(what, list) and what and isinstance(what[0], dict):
            parts.append(verb + " " + ", ".join(f"{each['job']} ({each['mode']})" for each in what))
    return "; ".join(parts) or "nothing"
