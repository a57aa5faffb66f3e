"""``makeway logs`` and ``makeway wait``: what a job says, and how it ends."""

from __future__ import annotations

import os
import sys
import time

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Daemon, job_route
from makeway_local_world.commands.words import Failed, Option, command, seconds, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LOOK = 0.2
"""Seconds between two looks at a file that grows."""
CHUNK = 1 << 16


class NoLog(Failed):
    """There is no output yet, or it cannot be read."""


@command(
    "logs",
    options.JOB_OR_LAST,
    Option("-f", "--follow", flag=True, help="Go on until the job has ended."),
    Option("-e", "--stderr", flag=True, help="Standard error, if it has a file of its own."),
    Option("-n", "--lines", reads=whole(0), metavar="N", help="Only the last so many lines."),
    Option("--path", to="only_path", flag=True, help="Print where the output is, and nothing else."),
    options.JSON,
)
def logs(
    job: str | None, follow: bool, stderr: bool, lines: int | None, only_path: bool, as_json: bool
) -> None:
    """Show what a job has printed; with -f also what it prints from now on.

    Of an array, what each of its tasks has printed. Without JOB, of the one that you submitted last.
    """
    server = Daemon()
    job = job or options.last_job(server)
    about = server.get(job_route(job, "logs"))
    if as_json:
        terminal.put(about)
        return
    which = "error" if stderr else "output"
    if "tasks" in about:
        if follow:
            raise NoLog(f"{job} is an array; name one of its tasks, such as {about['tasks'][0]}")
        for task in about["tasks"]:
            if not only_path:
                terminal.say(f"==> {task} <==")
                sys.stdout.flush()
            try:
                _show(server.get(job_route(task, "logs")), which, lines, only_path=only_path)
            except NoLog as error:
                terminal.say(f"({error})")
        return
    if follow:
        _follow(server, job, which, lines)
        return
    _show(about, which, lines, only_path=only_path)


def _show(about: Mapping[str, Any], which: str, lines: int | None, *, only_path: bool) -> None:
    """Print what there is of one job's output, or where it is."""
    if only_path:
        terminal.say(about[which])
        return
    try:
        with open(about[which], "rb", opener=_plain_file) as stream:
            _from_line(stream, lines)
            _pour(stream)
    except FileNotFoundError:
        waits = about["state"] == "PENDING"
        why = "the job has not started yet" if waits else "there is no such file"
        raise NoLog(f"{about[which]}: {why}") from None


def end_of(path: str, lines: int) -> str:
    """Return the last lines of a file that is a job's output, with rights of one's own.

    :raises OSError: it cannot be read.
    """
    with open(path, "rb", opener=_plain_file) as stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, end - CHUNK))
        text = stream.read(CHUNK).decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-lines:])


def _plain_file(path: str, flags: int) -> int:
    """Open without waiting, should it be a pipe that nothing writes to."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _pour(stream: Any) -> int:
    """Copy what there is to standard output."""
    total = 0
    out = sys.stdout.buffer
    while data := stream.read(CHUNK):
        out.write(data)
        total += len(data)
    out.flush()
    return total


def _from_line(stream: Any, lines: int | None) -> None:
    """Go to where the last so many lines begin."""
    if lines is None:
        return
    end = stream.seek(0, os.SEEK_END)
    found, at, tail = 0, end, b""
    while at > 0 and found <= lines:
        size = min(CHUNK, at)
        at -= size
        stream.seek(at)
        tail = stream.read(size) + tail
        found = tail.count(b"\n", 0, max(0, len(tail) - 1))
        if found >= lines:
            break
    parts = tail.splitlines(keepends=True)
    kept = sum(map(len, parts[-lines:])) if lines else 0
    stream.seek(end - kept)


def _follow(server: Daemon, job: str, which: str, lines: int | None) -> None:
    """Print what comes, over starts of further incarnations, until the job has ended."""
    path, stream = "", None
    about = server.get(job_route(job, "logs"))
    asked = time.monotonic()
    try:
        while True:
            if about[which] != path:
                if stream is not None:
                    _pour(stream)
                    stream.close()
                    stream = None
                path = about[which]
            if stream is None:
                try:
                    stream = open(path, "rb", opener=_plain_file)  # noqa: SIM115  # closed below
                    _from_line(stream, lines)
                    lines = None
                except FileNotFoundError:
                    pass
            came = _pour(stream) if stream is not None else 0
            if about["ended"]:
                return
            if not came:
                time.sleep(LOOK)
            if time.monotonic() - asked > 2 * LOOK:
                about = server.get(job_route(job, "logs"))
                asked = time.monotonic()
    finally:
        if stream is not None:
            stream.close()


# ---------------------------------------------------------------------------------------- wait
@command(
    "wait",
    options.JOBS_OR_LAST,
    Option("--timeout", reads=seconds, metavar="SECONDS", help="Give up after so long (status 1)."),
    options.JSON,
)
def wait(jobs: tuple[str, ...], timeout: float | None, as_json: bool) -> int:
    """Wait until jobs have ended; leave with the highest exit status of theirs.

    Without JOB, until the one has ended that you submitted last.
    """
    server = Daemon()
    jobs = jobs or (options.last_job(server),)
    until = None if timeout is None else time.monotonic() + timeout
    found = [each for job in jobs for each in ended(server, job, until)]
    if as_json:
        terminal.put({"jobs": found})
    return max(map(exit_status, found))


def ended(
    server: Daemon, job: str, until: float | None = None, meanwhile: Callable[[], None] = lambda: None
) -> list[dict[str, Any]]:
    """Wait until a job, or all tasks of an array, have ended; return them."""
    while True:
        left = 50.0 if until is None else max(0.0, until - time.monotonic())
        answer = server.get(job_route(job, "wait"), longest=min(50.0, left))
        if answer["ended"]:
            return list(answer["jobs"])
        meanwhile()
        if until is not None and time.monotonic() >= until:
            raise NoLog(f"job {job} has not ended yet")


def exit_status(job: dict[str, Any]) -> int:
    """Return the exit status that a job stands for: its own, 128+n for signal n, 1 for other bad ends."""
    code, number = job.get("exit_code"), job.get("exit_signal")
    if number:
        return min(255, 128 + int(number))
    if code:
        return min(255, int(code))
    return 0 if job["state"] == "COMPLETED" else 1
