"""Have Slurm start a batch job again, if this is one."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping

_LIMIT = 60.0
_STATE = re.compile(r"\bJobState=(\S+)")


def job_id(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the job of Slurm's in which this runs; None: it does not. The local world sets Slurm's variables, too."""
    return None if "MAKEWAY_JOB" in environ else environ.get("SLURM_JOB_ID")


def requeue(environ: Mapping[str, str] = os.environ) -> str:
    """Ask for the job to be requeued; return what came of it, in words.

    A job that was cancelled, or is requeued already, is left alone: Slurm would bring it back.
    """
    job = job_id(environ)
    if job is None:
        return "start it again to go on"
    shown = _scontrol("show", "job", "-o", job)
    found = _STATE.search(shown.stdout) if isinstance(shown, subprocess.CompletedProcess) else None
    if found is None:
        return f"job {job} cannot be requeued: {_words(shown)}; submit it again to go on"
    if found[1] != "RUNNING":
        return f"job {job} is {found[1]}, so it is not requeued from here; started again, it goes on"
    done = _scontrol("requeue", job)
    if isinstance(done, subprocess.CompletedProcess) and done.returncode == 0:
        return f"job {job} is requeued, and goes on when it starts"
    return f"job {job} cannot be requeued: {_words(done)}; submit it again to go on"


def _scontrol(*words: str) -> subprocess.CompletedProcess[str] | str:
    try:
        return subprocess.run(
            ["scontrol", *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        return "there is no scontrol"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


def _words(done: subprocess.CompletedProcess[str] | str) -> str:
    if isinstance(done, str):
        return done
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1].strip() if lines else f"scontrol ended with status {done.returncode}"
