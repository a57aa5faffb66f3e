"""Arguments and options that several subcommands share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from makeway import catalogue, registry
from makeway.config import MappingRule
from makeway.model import Seconds
from makeway.plain import seconds_of
from makeway.readers.mapping import parse_map_flag
from makeway.vendors import of_accounting, of_releases, usable
from makeway_app import status
from makeway_app.cli.asked import Asked
from makeway_app.cli.loose import plugin_option

Command = Callable[..., Any]


class Duration(click.FloatRange):
    """Seconds from the start of the replay."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0.0, max=1e11)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read a number, or a length of time such as 2h."""
        length = seconds_of(value) if isinstance(value, str) else None
        try:
            number = float(value if length is None else length)
        except ValueError:
            number = math.nan
        if number != number:
            self.fail(
                f"got {value!r}; allowed: a number of seconds, or a length of time such as 30min", param, ctx
            )
        return super().convert(number, param, ctx)


def _release(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    vendor = of_releases()
    if vendor is None:
        raise click.BadParameter(registry.missing(param.opts[0]), ctx, param)
    try:
        return vendor.stated(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def _maps(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[MappingRule, ...]:
    try:
        return tuple(parse_map_flag(value) for value in values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def config_argument(command: Command) -> Command:
    """Add CONFIG."""
    return click.argument("config", type=click.Path(path_type=Path))(command)


def set_option(command: Command) -> Command:
    """Add ``--set``."""
    text = "Change a key of the configuration: policy.preempt_mode=requeue."
    return click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help=text)(command)


def release_option(command: Command) -> Command:
    """Add ``--release``."""
    vendor = of_releases()
    oldest, newest = (vendor and vendor.releases) or ("", "")
    text = "Release of the scheduler whose behaviour counts; none that is installed has any."
    if vendor is not None:
        text = f"Release of {vendor.title} whose behaviour counts: {oldest} to {newest}."
    return click.option("--release", callback=_release, metavar="RELEASE", help=text)(command)


def nodes_option(command: Command) -> Command:
    """Add ``--nodes``."""
    text = "TOML file with the [[node]] tables that a foreign CONFIG leaves out."
    return click.option("--nodes", type=click.Path(path_type=Path), metavar="FILE", help=text)(command)


def accounting_option(command: Command) -> Command:
    """Add ``--accounting``."""
    vendor = of_accounting()
    text = "QOS and users; no distribution that is installed reads them."
    if vendor is not None:
        text = f"QOS and users: what {vendor.accounting} wrote. Repeatable."
    path = click.Path(path_type=Path)
    return click.option("--accounting", type=path, multiple=True, metavar="FILE", help=text)(command)


def status_options(command: Command) -> Command:
    """Add ``--NAME-at`` for the status command of each vendor that is installed."""
    for name, (vendor, _) in reversed([*status.commands().items()]):
        option = click.option(
            f"--{name}-at",
            type=Duration(),
            multiple=True,
            metavar="SECONDS",
            help=f"The same as {name} of {vendor.title} has it.",
        )
        command = option(command)
    return command


def status_instants(given: Mapping[str, tuple[Seconds, ...]]) -> dict[str, tuple[Seconds, ...]]:
    """Return status command -> instants at which it is asked for, from the values of `status_options`."""
    return {name: given[f"{name}_at"] for name in status.commands()}


def time_limit_option(command: Command) -> Command:
    """Add ``--decision-time-limit``."""
    return click.option(
        "--decision-time-limit",
        type=click.FloatRange(min=0.0, max=86400.0),
        metavar="SECONDS",
        help="End with an error when a plugin takes longer over one answer; 0: any. Overrides the configuration.",
    )(command)


def _formats() -> set[str]:
    return {name for vendor in usable() for name in vendor.formats}


_WORKLOAD = (
    config_argument,
    click.argument("workload", type=click.Path(path_type=Path), required=False),
    click.option(
        "--map",
        "maps",
        callback=_maps,
        multiple=True,
        metavar="RULE",
        help="Send jobs to a partition or QOS: user=3,7:high. The first that fits counts.",
    ),
    click.option(
        "--format",
        metavar="NAME",
        help=f"Format of the workload: {', '.join(sorted({'native', *catalogue.formats(), *_formats()}))}.",
    ),
    click.option("--limit", type=click.IntRange(1, 10**12), help="Take only so many jobs."),
    set_option,
    click.option("--until", type=Duration(), help="Stop at this second of the replay."),
    time_limit_option,
    plugin_option,
    release_option,
    nodes_option,
    accounting_option,
    click.option(
        "--do",
        "actions",
        multiple=True,
        metavar="'AT COMMAND JOB'",
        help="Do something by hand during the run: '60 suspend 485', '60 cancel 485 by ann'. Repeatable; "
        "suspend, resume, requeue, cancel, checkpoint, start, hold, release, or priority=N.",
    ),
    click.option(
        "--warm-up",
        "warm_up",
        multiple=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Work out what everybody had used at the start from what accounting printed of the time before. "
        "Repeatable.",
    ),
    click.option(
        "--outages",
        multiple=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Let nodes be down or drained as `sacctmgr -P show event` says, in use as `last -F` or a CSV says, or "
        "what [[outage]] tables of a TOML file say. Repeatable.",
    ),
)


def workload_options(command: Command) -> Command:
    """Add what says which jobs are replayed, and how; the command gets all of it as one `Asked`, first."""
    names = [field.name for field in attrs.fields(Asked)]

    @functools.wraps(command)
    def gathered(**given: Any) -> Any:
        return command(Asked(**{name: given.pop(name) for name in names}), **given)

    wrapped: Command = gathered
    for decorator in reversed(_WORKLOAD):
        wrapped = decorator(wrapped)
    return wrapped
