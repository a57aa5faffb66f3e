"""``makeway reload``, ``makeway doctor`` and ``makeway web``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from makeway.config import dump_toml
from makeway.errors import MakewayError
from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Absent, Daemon
from makeway_local_world.commands.up import THIS_MACHINE, configuration
from makeway_local_world.doctor import Finding, examine


@click.command("reload")
@click.argument("config", required=False, type=click.Path(path_type=Path))
@options.json_option
def reload_(config: Path | None, as_json: bool) -> None:
    """Go on under CONFIG, or under the daemon's own file read again, while jobs run.

    If jobs, nodes or suspended victims do not fit, nothing changes and the reason is said.
    """
    server = Daemon()
    if config is None:
        named = str(server.get("/v1/daemon")["config"])
        config = None if named == THIS_MACHINE else Path(named)
    loaded, source = configuration(config)
    answer = server.post("/v1/reload", {"config": dump_toml(loaded), "source": source})
    for text in answer["notes"]:
        terminal.say(f"note: {text}", err=True)
    if as_json:
        terminal.put(answer)


@click.command()
@options.json_option
@click.pass_context
def doctor(ctx: click.Context, /, as_json: bool) -> None:
    """Say what this machine can and cannot do: users, cgroups, GPUs, logins, the daemon.

    The exit status is 1 if something is broken.
    """
    about = None
    try:
        about = Daemon().get("/v1/daemon")
    except (Absent, MakewayError) as error:
        daemon = Finding("note", "daemon", str(getattr(error, "message", error)))
    else:
        what = "several people" if about["system"] else f"jobs of {about['user']} only"
        daemon = Finding("ok", "daemon", f"process {about['pid']} runs {what}, state in {about['state']}")
        if about["trouble"]:
            daemon = Finding("bad", "daemon", about["trouble"])
    findings = [daemon, *examine(about)]
    if as_json:
        terminal.put([each.as_dict() for each in findings])
    else:
        for each in findings:
            terminal.say(
                f"{each.level:<5} {each.about}: {each.text}" + (f" ({each.help})" if each.help else "")
            )
    if any(each.level == "bad" for each in findings):
        ctx.exit(1)


@click.command()
@click.option("--control", is_flag=True, help="Let the page change jobs, too.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="0: as configured (world.settings.web_port), else any that is free; others are for operators.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@options.json_option
def web(control: bool, port: int, no_browser: bool, as_json: bool) -> None:
    """Show the queue, and what happens, in the browser.

    The address holds a token that works once; from then on the browser has a cookie. Only this machine can reach it.
    """
    answer = Daemon().post("/v1/web", {"control": control, "port": port})
    if as_json:
        terminal.put(answer)
        return
    terminal.say(answer["url"])
    if not no_browser:
        webbrowser.open(answer["url"])


__all__ = ["doctor", "reload_", "web"]
