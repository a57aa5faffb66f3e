"""Tell a user of what happens to a job: ``python -m makeway_local_world.telling --mail ANN --webhook URL --desktop``.

The keeper of the job starts it with the rights of the job's owner, in the job's environment. Nothing here runs as
root, and no other user can make it run. What it is told comes from variables (``MAKEWAY_EVENT`` and others).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any

from makeway.escapes import printable

LIMIT = 20.0
"""Seconds that one way may take."""
_SAID = {
    "begin": "begins",
    "end": "has ended",
    "fail": "has failed",
    "requeue": "makes way and waits again",
    "suspend": "makes way: it is suspended",
    "resume": "goes on",
}


def story(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what happened, as a webhook gets it; ``text`` says it in a sentence."""
    event, job = environ.get("MAKEWAY_EVENT", ""), environ.get("MAKEWAY_JOB_ID", "")
    name, host = environ.get("SLURM_JOB_NAME", ""), socket.gethostname()
    code, killed = environ.get("MAKEWAY_EXIT"), environ.get("MAKEWAY_KILLED", "")
    text = f"{host}: job {job} ({name}) {_SAID.get(event, event)}"
    if event in ("end", "fail"):
        text += f", {killed}" if killed else f", exit {code}"
    elif event == "requeue" and killed:
        text += f", {killed}"
    return {
        "event": event,
        "job": job,
        "name": name,
        "user": environ.get("USER", ""),
        "partition": environ.get("MAKEWAY_PARTITION", ""),
        "host": host,
        "at": float(environ.get("MAKEWAY_AT", "0")),
        "incarnation": int(environ.get("MAKEWAY_INCARNATION", "1")),
        "exit": code,
        "killed": killed or None,
        "text": printable(text),
    }


def mail(told: Mapping[str, Any], address: str) -> None:
    """Hand a message to this machine's mail program.

    :raises OSError: there is none.
    """
    message = EmailMessage()
    message["Subject"] = told["text"]
    message["To"] = address
    message.set_content(
        "".join(f"{key}: {printable(str(value))}\n" for key, value in told.items() if value is not None)
    )
    program = shutil.which("sendmail", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/lib")
    if program is None:
        raise FileNotFoundError("there is no sendmail on this machine")
    subprocess.run([program, "-t", "-oi"], input=bytes(message), check=True, timeout=LIMIT)


def post(told: Mapping[str, Any], url: str) -> None:
    """Post JSON; a redirection is followed as `urllib` does, to http and https alone."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url}: allowed: http:// and https://")
    body = json.dumps(told).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # checked above
    with urllib.request.urlopen(request, timeout=LIMIT):
        pass


def show(told: Mapping[str, Any]) -> None:
    """Show it on the user's desktop, whose bus is where systemd puts it."""
    bus = os.environ.get("DBUS_SESSION_BUS_ADDRESS", f"unix:path=/run/user/{os.getuid()}/bus")
    subprocess.run(
        ["notify-send", "--app-name=makeway", "--", "makeway", told["text"]],
        env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": bus},
        check=True,
        timeout=LIMIT,
    )


def main() -> int:
    """Tell in all ways that are named; one that fails keeps no other from being tried."""
    words, told, failed = sys.argv[1:], story(os.environ), 0
    while words:
        way = words.pop(0)
        try:
            if way == "--mail":
                mail(told, words.pop(0))
            elif way == "--webhook":
                post(told, words.pop(0))
            elif way == "--desktop":
                show(told)
            else:
                raise ValueError(f"{way}: allowed: --mail ADDRESS, --webhook URL, --desktop")
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            sys.stderr.write(f"{way}: {error}\n")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
