"""``makeway slurm look``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from makeway.columns import columns
from makeway.config import dump_toml
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.state import write_state
from makeway_slurm_world.commands import options
from makeway_slurm_world.reading.conf import out_of_service
from makeway_slurm_world.reading.look import Look


@click.command("look")
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="STATE.json",
    help="Write jobs and nodes as they are now; `makeway replay --from` goes on from there.",
)
@click.option(
    "--save-config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="CONFIG.toml",
    help="Write the cluster and its policy as a configuration of makeway's.",
)
@options.json_option
def look_command(save: Path | None, save_config: Path | None, as_json: bool) -> None:
    """Show the running cluster as makeway sees it, and say what of it cannot be seen.

    Asks scontrol and sacctmgr, and changes nothing. The two files together are a replay that begins with the cluster
    as it is now: `makeway replay CONFIG.toml jobs --from STATE.json`.
    """
    found = options.look_now()
    if save_config is not None:
        save_config.write_text(dump_toml(found.config), encoding="utf-8")
    if save is not None:
        save.write_text(write_state(found.state), encoding="utf-8")
    options.tell(found)
    if as_json:
        options.put(_plain(found))
        return
    _show(found)
    for path in filter(None, (save_config, save)):
        click.echo(f"written: {path}")


def _plain(found: Look) -> dict[str, object]:
    return {
        "cluster": found.config.cluster.name,
        "release": found.settings.get("SLURM_VERSION", ""),
        "nodes": dict(found.node_states),
        "jobs": [
            {
                "id": job.id,
                "user": job.spec.user,
                "state": job.word,
                "reason": job.reason,
                "partition": job.partition,
                "nodes": fold_hostlist(job.nodes),
                "not_modelled": list(job.notes),
            }
            for job in found.jobs
        ],
        "unread": list(found.unread),
        "notes": [*found.warnings, *found.matters],
        "not_modelled": [each.name for each in found.unmodelled],
    }


def _show(found: Look) -> None:
    count = sum(len(expand_hostlist(table.name)) for table in found.config.node)
    policy = found.config.policy
    out = [name for name, state in found.node_states.items() if out_of_service(state)]
    mode = ",".join(policy.preempt_mode)
    click.echo(
        f"{found.config.cluster.name}: Slurm {found.settings.get('SLURM_VERSION', '(unknown)')}, {count} nodes, "
        f"{policy.select}, {policy.preempt} ({mode})"
    )
    if out:
        click.echo(f"out of service: {fold_hostlist(out)}")
    for partition in found.config.partition:
        click.echo(f"partition {partition.name}: {partition.nodes}, tier {partition.priority_tier}")
    states = Counter(job.word for job in found.jobs)
    jobs = ", ".join(f"{number} {word}" for word, number in sorted(states.items()))
    click.echo(f"jobs: {jobs or 'none'}")
    rows = [("JOB", "USER", "PARTITION", "STATE", "NODES", "REASON")]
    rows += [
        (job.id, job.spec.user, ",".join(job.spec.partitions), job.word, fold_hostlist(job.nodes), job.reason)
        for job in found.jobs
    ]
    if found.jobs:
        click.echo("\n".join(columns(rows)))


look = look_command
