"""Answer questions over a unix socket, so that `makeway queue`, `why` and `history` speak of the live cluster.

The routes are those of the local world's daemon that only ask. Nothing can be changed here: Slurm's own commands do
that, with Slurm's own rights.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import socketserver
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from makeway.errors import JournalError, MakewayError
from makeway_slurm_world.people.board import Board

_FORBIDDEN = "makeway only tells here; sbatch, scancel and scontrol change jobs of Slurm"
_MOST = 1_000_000
_LONGEST = 1 << 20
"""Bytes that are read of what a client sends."""


class SocketError(MakewayError):
    """The socket cannot be had."""


class _Handler(BaseHTTPRequestHandler):
    """One conversation."""

    server: _Server
    timeout = 60

    def do_GET(self) -> None:
        """Answer a question."""
        url = urlsplit(self.path)
        asked = {key: values[-1] for key, values in parse_qs(url.query).items()}
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        try:
            if parts == ["v1", "events"]:
                self._events()
            else:
                self._say(*_answer(self.server.board, parts, asked))
        except JournalError as error:
            self._say(503, {"error": str(error)})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_POST(self) -> None:
        """Refuse; what was sent is read first, or the other side would not hear why."""
        length = self.headers.get("Content-Length", "0")
        self.rfile.read(min(_LONGEST, int(length)) if length.isascii() and length.isdigit() else 0)
        self._say(403, {"error": _FORBIDDEN})

    def _say(self, status: int, data: Mapping[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _events(self) -> None:
        """Say whenever something was decided, until the other side has gone or the loop ends."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        last = self.server.board.steps(-2)
        while not self.server.over.is_set():
            now = self.server.board.steps(last)
            text = f"id: {now}\nevent: step\ndata: {{}}\n\n" if now != last else ": still here\n\n"
            self.wfile.write(text.encode())
            self.wfile.flush()
            last = now

    def log_message(self, *_: Any) -> None:
        """Say nothing on standard error."""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: str, board: Board) -> None:
        self.board = board
        self.over = threading.Event()
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Leave a broken conversation to the client that broke it."""


def _answer(board: Board, parts: list[str], asked: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    match parts:
        case ["v1", "jobs"]:
            return 200, board.queue(asked.get("user"))
        case ["v1", "history"]:
            try:
                since, until = float(asked.get("since", 0.0)), float(asked.get("until", "inf"))
                limit = min(_MOST, max(1, int(asked.get("limit", 1000))))
            except ValueError as error:
                return 400, {"error": str(error)}
            return 200, board.history(since, until, asked.get("user"), limit)
        case ["v1", "jobs", job_id]:
            found = board.job(job_id)
            return (200, found) if found is not None else _unknown(job_id)
        case ["v1", "jobs", job_id, "why"]:
            told = board.why(job_id)
            return (200, {"told": told}) if told is not None else _unknown(job_id)
        case _:
            return 404, {"error": f"a Slurm under makeway does not answer {'/'.join(parts)}"}


def _unknown(job_id: str) -> tuple[int, dict[str, Any]]:
    return 404, {"error": f"makeway knows no job {job_id!r} on its nodes"}


class Service:
    """Serves one board."""

    def __init__(self, path: Path, board: Board) -> None:
        """Take the socket, and begin to answer.

        :param path: all users who may enter its directory may ask.
        :raises SocketError: it is another user's, or cannot be made.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            if path.is_socket() and not _is_answered(path):
                path.unlink()
            with _short(path) as address:
                self._server = _Server(address, board)
            path.chmod(0o666)
        except OSError as error:
            raise SocketError(f"{path}: {error.strerror}; name another with --socket") from None
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer no one any more."""
        self._server.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10.0)
        self.path.unlink(missing_ok=True)


class _short:  # noqa: N801  # used like a function
    """A name for a socket that is short enough for the kernel, however deep its directory lies."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> str:
        self._descriptor = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._descriptor}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _is_answered(path: Path) -> bool:
    """Whether a process listens there."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe, _short(path) as address:
        probe.settimeout(5.0)
        probe.connect(address)
        return True
    return False
