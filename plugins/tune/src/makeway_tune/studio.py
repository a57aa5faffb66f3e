"""``makeway studio``: change a setting in the browser, see the replay, compare, and have a job explained."""

from __future__ import annotations

import json
import signal
import tempfile
import webbrowser
from collections.abc import Mapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import click

from makeway import registry
from makeway.errors import ConfigError, MakewayError, Problem
from makeway.readers.api import ReadOptions
from makeway_app.cli.asked import Asked
from makeway_app.cli.inputs import open_jobs, with_actions
from makeway_app.cli.options import workload_options
from makeway_app.cli.processes import cores
from makeway_app.cli.request import in_world
from makeway_app.cli.terminal import note
from makeway_app.loopback import COOKIE, COOKIE_LASTS, SHIELD, Gate
from makeway_report import interval
from makeway_report.parts import joined
from makeway_tune.bench import Bench
from makeway_tune.files import Site, site_of
from makeway_tune.log import log_of
from makeway_tune.runs import no_warm_start

_LARGEST = 65536
"""Bytes of a request's body."""
_FILES = {"/": "studio.html", "/studio.js": "studio.js", "/studio.css": "studio.css"}
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


@click.command()
@workload_options
@click.option("--only", multiple=True, metavar="NAME", help="Offer only settings with this in their name.")
@click.option("--without", multiple=True, metavar="NAME", help="Leave settings with this in their name out.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Listen there; 0: anywhere."
)
@click.option("--no-browser", is_flag=True, help="Only say the address.")
@registry.one_look()
def studio(
    asked: Asked, only: tuple[str, ...], without: tuple[str, ...], port: int, no_browser: bool
) -> None:
    """Change settings of CONFIG in the browser, replay WORKLOAD, compare, and have jobs explained.

    CONFIG is not written: each change comes as a difference.  The page is on this machine alone, behind an address
    that works once; Ctrl-C ends it.
    """
    loaded = asked.load()
    note("warning", loaded.warnings)
    base = with_actions(in_world(asked.changed(loaded.config), None), asked.actions)
    no_warm_start(base, asked.config)
    opened = open_jobs(loaded, asked.workload, ReadOptions(config=base, limit=asked.limit), asked.format)
    log = log_of(tuple(opened.jobs), base, opened.name)
    site = site_of(asked.config, loaded.config, only, without, asked.accounting)
    with tempfile.TemporaryDirectory(prefix="makeway-studio.") as folder:
        bench = Bench(asked, site, log, loaded.config.policy.preempt, Path(folder), cores())
        about = {"config": asked.config.name, "workload": opened.name, "jobs": len(log.jobs)}
        with serving(bench, site, about, port) as server:
            address = server.gate.address(None)
            click.echo(address)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            if not no_browser:
                webbrowser.open(address)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                click.echo("", err=True)
            finally:
                bench.stop()


def serving(bench: Bench, site: Site, about: Mapping[str, Any], port: int = 0) -> Server:
    """Return a server on the loopback; the site as configured is replayed at once.

    :raises ConfigError: the port cannot be had.
    """
    try:
        server = Server(("127.0.0.1", port), _Handler)
    except OSError as error:
        raise ConfigError(f"--port {port}", [Problem("", f"cannot be had: {error.strerror}")]) from None
    server.bench, server.about = bench, about
    server.settings = [
        {"name": each.name, "now": each.now, "values": list(each.values)} for each in site.knobs
    ]
    server.gate.opened(server.server_port)
    bench.replayed({})
    return server


class Server(ThreadingHTTPServer):
    """The page's port."""

    daemon_threads = True
    bench: Bench
    about: Mapping[str, Any]
    settings: list[dict[str, Any]]

    def __init__(self, *given: Any) -> None:
        """Let no one in so far."""
        super().__init__(*given)
        self.gate: Gate[None] = Gate(lambda whom: whom)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of browsers that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 60
    server_version, sys_version = "makeway", ""

    def do_GET(self) -> None:
        """Show the page, what there is, or the page of a run."""
        parts = urlsplit(self.path)
        if not self._ours():
            return None
        token = parse_qs(parts.query).get("token")
        if token and parts.path == "/":
            return self._admit(token[0])
        if not self._known():
            return None
        if parts.path in _FILES:
            name = _FILES[parts.path]
            text = resources.files("makeway_tune").joinpath("static", name).read_text(encoding="utf-8")
            text += joined([interval.STYLE]) if name == "studio.css" else ""
            return self._say(text, _KINDS[Path(name).suffix])
        if parts.path == "/v1/state":
            server = self.server
            return self._json({"about": server.about, "settings": server.settings, **server.bench.state()})
        page = self.server.bench.page(parts.path.removeprefix("/runs/"))
        if page is not None and parts.path.startswith("/runs/"):
            # It brings a policy of its own, which lets its one script run.
            policy = {"Content-Security-Policy": "frame-ancestors 'none'"}
            return self._say(page.read_text(encoding="utf-8"), "text/html", {**SHIELD, **policy})
        return self._fail(HTTPStatus.NOT_FOUND, f"there is nothing at {parts.path}")

    def do_POST(self) -> None:
        """Replay with other settings, or tell the story of a job."""
        if not self._ours() or not self._known():
            return None
        if "Origin" not in self.headers:
            return self._fail(HTTPStatus.FORBIDDEN, "another page may not ask that")
        try:
            given = self._body()
            if self.path == "/v1/runs":
                name = self.server.bench.replayed({str(key): str(text) for key, text in given.items()})
            elif self.path == "/v1/stories":
                name = self.server.bench.told(str(given.get("run", "")), str(given.get("job", "")))
            else:
                return self._fail(HTTPStatus.NOT_FOUND, f"there is nothing at {self.path}")
        except (ValueError, MakewayError) as error:
            return self._fail(HTTPStatus.BAD_REQUEST, str(error))
        return self._json({"name": name})

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LARGEST:
            raise ValueError(f"got a body of {length or 'unknown'} bytes; allowed: up to {_LARGEST}")
        found = json.loads(self.rfile.read(int(length)))
        if not isinstance(found, dict):
            raise ValueError("got no table of settings")
        return found

    # ------------------------------------------------------------------------------ who asks
    def _ours(self) -> bool:
        refused = self.server.gate.refusal(self.headers.get)
        if refused:
            self._fail(HTTPStatus.FORBIDDEN, refused)
        return not refused

    def _known(self) -> bool:
        """Whether the browser has the cookie."""
        try:
            given = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            given = None
        known = given is not None and self.server.gate.knows(given.value)
        if not known:
            self._fail(HTTPStatus.UNAUTHORIZED, "ask for an address that works: makeway studio")
        return known

    def _admit(self, token: str) -> None:
        cookie = self.server.gate.admit(token)
        if cookie is None:
            return self._fail(HTTPStatus.UNAUTHORIZED, "this address was used before, or is too old")
        self.send_response(HTTPStatus.SEE_OTHER)
        flags = f"HttpOnly; SameSite=Strict; Path=/; Max-Age={int(COOKIE_LASTS)}"
        for name, text in (*SHIELD.items(), ("Location", "/"), ("Set-Cookie", f"{COOKIE}={cookie}; {flags}")):
            self.send_header(name, text)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    # -------------------------------------------------------------------------------- answers
    def _json(self, found: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._say(json.dumps(found), "application/json", status=status)

    def _fail(self, status: HTTPStatus, why: str) -> None:
        self._json({"error": why}, status)

    def _say(
        self, text: str, kind: str, headers: Mapping[str, str] = SHIELD, status: HTTPStatus = HTTPStatus.OK
    ) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (*headers.items(), ("Content-Type", f"{kind}; charset=utf-8")):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: the address of a request holds a token."""
