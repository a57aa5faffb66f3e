"""Show on the page what a job has printed: read by a process that has the rights of the reader.

The daemon opens no file of a user. It trusts nothing that comes back but its length: the process is the reader's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import sys
from pathlib import Path
from typing import Any

from makeway_local_world.requests import Who

MOST = 64 << 10
"""Bytes that are shown of the end of a file."""
_LONGEST = 10.0
"""Seconds for which a file is waited for."""
_HEAD = 1000
"""Bytes of the line ahead of the end."""
_PACKAGES = str(Path(__file__).parents[2])
_BEGIN = (
    "import sys; sys.path.append(sys.argv[1]);from makeway_local_world.keeping.reading import main; main()"
)


async def read(who: Who, path: str) -> dict[str, Any]:
    """Return the end of a file (``text``), and its ``size``; or ``why`` it cannot be read."""
    asked = {"uid": who.uid, "gid": who.gid, "groups": _groups(who), "path": path, "most": MOST}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _BEGIN, _PACKAGES),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"LC_ALL": "C.UTF-8"},
        cwd="/",
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(asked).encode())
        process.stdin.close()
        data = await asyncio.wait_for(_bounded(process.stdout), _LONGEST)
    except TimeoutError:
        return {"path": path, "why": f"it could not be read in {_LONGEST:.0f} s"}
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    return {"path": path, **answer(data)}


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    """Read until the end, or until there is more than there may be."""
    try:
        return await stream.readexactly(MOST + _HEAD)
    except asyncio.IncompleteReadError as error:
        return error.partial


def answer(data: bytes) -> dict[str, Any]:
    """Return what the process said, whatever it is."""
    head, _, text = data.partition(b"\n")
    try:
        told = json.loads(head)
        if "why" in told:
            return {"why": str(told["why"])[:_HEAD]}
        size = int(told["size"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return {"why": "it could not be read"}
    return {"size": size, "text": text[:MOST].decode(errors="replace")}


def _groups(who: Who) -> list[int]:
    try:
        return sorted(os.getgrouplist(pwd.getpwuid(who.uid).pw_name, who.gid))
    except KeyError:
        return [who.gid]  # a number that has no name has no groups, even if a user is called like it
