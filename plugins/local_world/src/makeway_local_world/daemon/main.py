"""Live the life of a daemon: take the state directory, recover, serve, and leave the jobs to their keepers."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from makeway.config import Config
from makeway.errors import JournalError
from makeway_live.drive import Live
from makeway_live.recovery import live_of
from makeway_local_world.daemon import backup
from makeway_local_world.daemon.holding import Hold
from makeway_local_world.daemon.people import Rules, rules_of
from makeway_local_world.daemon.restoring import restore
from makeway_local_world.places import Places, check_file_system, make_private, make_public
from makeway_local_world.reach import PlaceError, short

_log = logging.getLogger("makeway")


def serve(
    config: Config,
    places: Places,
    *,
    source: str,
    ready: Callable[[], None] = lambda: None,
    plugins: Mapping[str, Any] | None = None,
    recover: bool = False,
) -> None:
    """Be the daemon of a state directory until SIGTERM, SIGINT, or ``makeway down``.

    :param source: name of the configuration's file.
    :param ready: called once commands are answered.
    :param plugins: policies and worlds by name that need no installation.
    :param recover: whether a person has decided to go on without the journal that is there.
    :raises Taken: another daemon has the directory.
    :raises PlaceError: a directory is not as it must be.
    :raises ConfigError, PluginError, JournalError: it cannot begin.
    """
    os.umask(0o077)
    make_private(places.state)
    check_file_system(places.state)
    hold = Hold(places.state, {"socket": str(places.socket), "system": places.system})
    try:
        rules = rules_of(config, places, source, plugins)
        if recover:
            for told in restore(places.state, ",".join(node.name for node in config.node)):
                _log.warning("recovered: %s", told)
        live = _recovered(config, places, plugins)
        try:
            _serve(live, places, rules, source, ready, plugins)
        finally:
            live.close()
            close = getattr(live.journal, "close", None)
            if close is not None:
                close()
    finally:
        hold.release()


def _recovered(config: Config, places: Places, plugins: Mapping[str, Any] | None) -> Live:
    """Build the loop where the last daemon ended, and make a copy of its journal.

    :raises JournalError: it is damaged; the text names the copy.
    """
    journal = places.state / "journal.db"
    try:
        lost = backup.what_is_lost(journal)
    except JournalError as error:
        raise JournalError(f"{error}{backup.hint(journal)}") from None
    if lost:
        anew = f"to begin anew, move {places.state} away"
        raise JournalError(f"{journal}: {lost}; nothing was changed{backup.hint(journal)}; {anew}")
    try:
        live = live_of(config, places.state, plugins=plugins, sink=_unheard)
    except JournalError as error:
        raise JournalError(f"{error}{backup.hint(journal)}") from None
    backup.make(journal)  # only now: it can be used
    return live


def _unheard(_: object) -> None:
    """Have reasons and decisions written down."""


def _serve(
    live: Live,
    places: Places,
    rules: Rules,
    source: str,
    ready: Callable[[], None],
    plugins: Mapping[str, Any] | None,
) -> None:
    from makeway_local_world.daemon.front import Front  # aiohttp: only here
    from makeway_local_world.daemon.service import Service

    service = Service(live, places, rules, source, plugins)
    front = Front(service)
    with _listening(places) as listener:
        thread = threading.Thread(target=front.run, args=(listener,), name="socket", daemon=True)
        thread.start()
        front.started.wait()
        with _told_to_end(service.desk.stop):
            if front.failure is None:
                ready()
                _log.info("makeway serves %s", places.socket)
                service.desk.run()
        front.stop()
        thread.join(10.0)
    service.close()
    if front.failure is not None:
        raise front.failure


@contextlib.contextmanager
def _told_to_end(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT end the daemon well; SIGHUP of a terminal that is gone does nothing."""

    def told(number: int, _: object) -> None:
        _log.info("told to end by signal %s", number)
        stop()

    before = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGINT)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _listening(places: Places) -> Iterator[socket.socket]:
    """Listen on the socket; it goes when the daemon goes.

    The lock of the state directory is held, so a socket that is there is a dead one's, unless it is answered.
    """
    path = places.socket
    if path.parent != places.state:
        (make_public if places.system else make_private)(path.parent)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short(path) as name:
            _clear(name, str(path))
            listener.bind(name)
        os.chmod(path, 0o666 if places.system else 0o600)
        listener.listen(512)
        listener.setblocking(False)
        made = os.stat(path)
        yield listener
        with contextlib.suppress(OSError):
            if os.stat(path).st_ino == made.st_ino:
                os.unlink(path)
    finally:
        listener.close()


def _clear(name: str, shown: str) -> None:
    """Take away the socket of a daemon that is dead.

    :raises PlaceError: it is no socket, or another daemon answers there.
    """
    try:
        found = os.lstat(name)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise PlaceError(f"{shown}: it is there and no socket; nothing was changed")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(5.0)
    try:
        probe.connect(name)
    except OSError:
        os.unlink(name)
    else:
        raise PlaceError(f"{shown}: another daemon, with another state directory, answers there")
    finally:
        probe.close()
