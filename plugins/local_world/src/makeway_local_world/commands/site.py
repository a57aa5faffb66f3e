"""``makeway reload``, ``makeway doctor`` and ``makeway web``."""

from __future__ import annotations

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Daemon
from makeway_local_world.commands.words import Argument, Failed, Option, command, whole
from makeway_local_world.reach import PlaceError


@command("reload", Argument("config", "[CONFIG]", required=False, offers="files"), options.JSON)
def reload_(config: str | None, as_json: bool) -> None:
    """Go on under CONFIG, or under the daemon's own file read again, while jobs run.

    If jobs, nodes or suspended victims do not fit, nothing changes and the reason is said.
    """
    from pathlib import Path

    from makeway.config import dump_toml
    from makeway_local_world.commands.up import THIS_MACHINE, configuration

    server = Daemon()
    if config is None:
        named = str(server.get("/v1/daemon")["config"])
        config = None if named == THIS_MACHINE else named
    loaded, source = configuration(None if config is None else Path(config))
    answer = server.post("/v1/reload", {"config": dump_toml(loaded), "source": source})
    for text in answer["notes"]:
        terminal.say(f"note: {text}", err=True)
    if as_json:
        terminal.put(answer)


@command(
    "doctor",
    Option(
        "--measure", flag=True, help="Save and bring back a program, and say how many seconds a GiB takes."
    ),
    options.JSON,
)
def doctor(measure: bool, as_json: bool) -> int:
    """Say what this machine can and cannot do: users, cgroups, GPUs, logins, the daemon.

    The exit status is 1 if something is broken.
    """
    from makeway_local_world.doctor import Finding, examine, measured

    about = None
    try:
        about = Daemon().get("/v1/daemon")
    except (Failed, PlaceError) as error:
        daemon = Finding("note", "daemon", str(error))
    else:
        what = "several people" if about["system"] else f"jobs of {about['user']} only"
        daemon = Finding("ok", "daemon", f"process {about['pid']} runs {what}, state in {about['state']}")
        if about["trouble"]:
            daemon = Finding("bad", "daemon", about["trouble"])
    findings = [daemon, *examine(about), *(measured() if measure else ())]
    if as_json:
        terminal.put([each.as_dict() for each in findings])
    else:
        for each in findings:
            terminal.say(
                f"{each.level:<5} {each.about}: {each.text}" + (f" ({each.help})" if each.help else "")
            )
    return int(any(each.level == "bad" for each in findings))


@command(
    "web",
    Option("--control", flag=True, help="Let the page change jobs, too."),
    Option(
        "--port",
        reads=whole(0, 65535),
        default=0,
        shown=True,
        metavar="N",
        help="0: as configured (world.settings.web_port), else any that is free; others are for operators.",
    ),
    Option("--no-browser", flag=True, help="Only print the address."),
    options.JSON,
)
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
        import webbrowser

        webbrowser.open(answer["url"])
