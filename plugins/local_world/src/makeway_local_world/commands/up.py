"""``makeway up``: begin a daemon."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from makeway.config import Config, dump_toml, validate
from makeway.errors import MakewayError
from makeway_app.cli.group import status_of
from makeway_app.cli.inputs import load_config
from makeway_app.cli.loose import load_files, plugin_option
from makeway_app.cli.terminal import note
from makeway_local_world import default
from makeway_local_world.commands import terminal
from makeway_local_world.commands.down import down
from makeway_local_world.daemon.restoring import REASON
from makeway_local_world.places import Places, make_private
from makeway_local_world.reach import SYSTEM_SOCKET
from makeway_local_world.units import unit

STARTING = 60.0
"""Seconds in which a daemon has to be ready."""
THIS_MACHINE = "this machine"
LOG = "daemon.log"


class NotStarted(MakewayError):  # noqa: N818  # an answer, not a fault
    """The daemon did not come up."""


def _shared(command: Any) -> Any:
    """Add what `up` and the daemon itself have in common."""
    for option in reversed(
        [
            click.argument("config", required=False, type=click.Path(path_type=Path)),
            click.option("--system", is_flag=True, help="Serve all people of this machine; for root."),
            click.option(
                "--state", type=click.Path(path_type=Path), metavar="DIR", help="The state directory."
            ),
            click.option("--socket", type=click.Path(path_type=Path), metavar="FILE", help="The socket."),
            click.option(
                "--recover",
                is_flag=True,
                help="Go on though the journal is damaged or gone: with its copy, and with all that lies beside it. "
                "The machine is drained until `makeway undrain`.",
            ),
            plugin_option,
        ]
    ):
        command = option(command)
    return command


@click.command()
@_shared
@click.option(
    "--foreground", is_flag=True, help="Stay in the foreground; Ctrl-C ends the daemon, not the jobs."
)
@click.option("--print-unit", is_flag=True, help="Print a systemd unit that does the same, and do nothing.")
@click.option(
    "--print-config", is_flag=True, help="Print the configuration that would be used, and do nothing."
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def up(
    config: Path | None,
    system: bool,
    state: Path | None,
    socket: Path | None,
    recover: bool,
    plugin_files: Mapping[str, Path],
    foreground: bool,
    print_unit: bool,
    print_config: bool,
    as_json: bool,
) -> None:
    """Start the daemon, under CONFIG or one for this machine.

    CONFIG is a file, or `lab`: fair share and limits for people who share this machine. Or it is `checkpoint`: jobs of
    `normal` leave with their memory, and go on where they were.

    Without CONFIG, the partitions `normal` and `urgent` share the CPUs, the memory and the GPUs of this machine; jobs
    of `urgent` suspend those of `normal`, and those that hold GPUs are requeued.

    The daemon ends with `makeway down`; jobs go on without it. The next one finds them again.
    """
    if print_unit:
        terminal.say_text(unit(system=system, config=config, state=state))
        return
    if system and os.geteuid():
        raise click.UsageError("--system is for root; without it the daemon runs jobs of your own")
    loaded, source = configuration(config)
    if print_config:
        terminal.say_text(dump_toml(loaded))
        return
    places = Places.find(system=system, state=state, socket=socket, configured=loaded.world.state)
    if foreground:
        note("warning", unreachable(places))
        _foreground(loaded, places, source, plugin_files, recover)
        return
    about = _background(config, places, system, plugin_files, recover)
    if as_json:
        terminal.put(about)
        return
    terminal.say(f"makeway is up: {_summary(loaded)}")
    if recover:
        terminal.say(f"  drained: {REASON}; {places.state / LOG} lists what was found")
    terminal.say(f"  configuration: {source}", f"  state: {places.state}")
    note("warning", unreachable(places))
    if not system and os.path.exists(SYSTEM_SOCKET):
        terminal.say(f"  your commands now ask this daemon, and not the machine's at {SYSTEM_SOCKET}")
    if places.socket != Places.find(system=system).socket:
        terminal.say(f"  commands find it by MAKEWAY_SOCKET={places.socket}")


def configuration(path: Path | None) -> tuple[Config, str]:
    """Read a configuration for this machine, or make one; return it and its name.

    :raises ConfigError: it cannot be used.
    """
    if path is None:
        return default.configuration(default.this_machine()), THIS_MACHINE
    if default.is_preset(path):
        made = default.PRESETS[str(path)](default.this_machine())
        note("warning", default.check(made, str(path)))
        return made, f"{path}, for {THIS_MACHINE}"
    loaded = load_config(path)
    note("warning", [*loaded.warnings, *loaded.matters])
    config = loaded.config
    if not config.world.real:
        config = attrs.evolve(config, world=attrs.evolve(config.world, name="world/local"))
        validate(config, str(path))
    note("warning", default.check(config, str(path)))
    return config, str(path.absolute())


def unreachable(places: Places) -> list[str]:
    """Say if the socket of a daemon for all people lies where only root may enter."""
    if not places.system or places.socket.parent != places.state:
        return []
    return [
        f"{places.socket}: nobody but root reaches it, for the state directory is closed to others; "
        "--socket FILE names another place"
    ]


def _summary(config: Config) -> str:
    node = config.node[0]
    cpus = sum(each.cpus or 1 for each in config.node)
    gpus = node.gres.get("gpu", 0)
    has = [f"{cpus} CPUs", f"{node.memory_mb / 1024:.1f} GiB"]
    if gpus:
        found = default.count_gpus()
        has.append(f"{gpus} GPUs" if found >= gpus else f"{found} of {gpus} GPUs")
    names = " and ".join(partition.name for partition in config.partition)
    what = "partition" if len(config.partition) == 1 else "partitions"
    return f"{', '.join(has)}; {what} {names}"


def _foreground(
    config: Config, places: Places, source: str, files: Mapping[str, Path], recover: bool
) -> None:
    from makeway_local_world.daemon.main import serve

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    serve(config, places, source=source, plugins=load_files(files), ready=_notify, recover=recover)


def _notify() -> None:
    """Tell systemd that the daemon is ready, if it asked to be told (``Type=notify``)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    import socket

    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notice:
        notice.sendto(b"READY=1", address.replace("@", "\0", 1) if address.startswith("@") else address)


# -------------------------------------------------------------------------------- background
def _background(
    config: Path | None, places: Places, system: bool, files: Mapping[str, Path], recover: bool
) -> dict[str, Any]:
    """Start the daemon as a process of its own, and wait until it answers.

    :raises NotStarted: it did not come up; the text is its own.
    """
    make_private(places.state)
    reading, writing = os.pipe()
    arguments = [sys.executable, "-P", "-m", "makeway_local_world.daemon", f"--ready-fd={writing}"]
    arguments += [f"--state={places.state}", f"--socket={places.socket}"]
    arguments += ["--system"] if system else []
    arguments += ["--recover"] if recover else []
    arguments += [f"--plugin={name}={path.absolute()}" for name, path in files.items()]
    arguments += ["--", default.named(config)] if config is not None else []
    with open(places.state / LOG, "ab") as log:
        os.fchmod(log.fileno(), 0o600)
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            pass_fds=[writing],
            start_new_session=True,
        )
    os.close(writing)
    with open(reading, "rb", buffering=0) as answers:
        text = _first_line(answers, STARTING)
    try:
        told = json.loads(text)
    except ValueError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        if process.returncode is None:
            process.terminate()
        raise NotStarted(f"the daemon did not come up; {places.state / LOG} says why") from None
    if "error" in told:
        process.wait(10.0)
        terminal.say(*f"makeway: {told['error']}".split("\n"), err=True)
        raise click.exceptions.Exit(int(told["status"]))
    return dict(told)


def _first_line(stream: Any, longest: float) -> str:
    """Read a line from a pipe; empty: its writer has gone, or took too long."""
    import select

    until, found = time.monotonic() + longest, b""
    while b"\n" not in found:
        left = until - time.monotonic()
        if left <= 0 or not select.select([stream], [], [], left)[0]:
            return ""
        more = stream.read(65536)
        if not more:
            break
        found += more
    return found.decode(errors="replace")


@click.command()
@_shared
@click.option("--ready-fd", type=int, default=-1, hidden=True)
def daemon(
    config: Path | None,
    system: bool,
    state: Path | None,
    socket: Path | None,
    recover: bool,
    plugin_files: Mapping[str, Path],
    ready_fd: int,
) -> None:
    """Be the daemon; `makeway up` starts this in the background."""
    from makeway_local_world.daemon.main import serve

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)

    def tell(about: Mapping[str, Any]) -> None:
        if ready_fd >= 0:
            with contextlib.suppress(OSError):
                os.write(ready_fd, json.dumps(about).encode() + b"\n")
                os.close(ready_fd)

    try:
        loaded, source = configuration(config)
        places = Places.find(system=system, state=state, socket=socket, configured=loaded.world.state)
        about = {"pid": os.getpid(), "state": str(places.state), "socket": str(places.socket)}
        serve(
            loaded,
            places,
            source=source,
            plugins=load_files(plugin_files),
            ready=lambda: tell(about),
            recover=recover,
        )
    except MakewayError as error:
        tell({"error": str(error), "status": status_of(error)})
        logging.getLogger("makeway").error("%s", error)
        raise click.exceptions.Exit(status_of(error)) from None
    except OSError as error:
        text = f"{error.filename or places.state}: {error.strerror}"
        tell({"error": text, "status": 1})
        logging.getLogger("makeway").error("%s", text)
        raise click.exceptions.Exit(1) from None


__all__ = ["configuration", "daemon", "down", "up"]
