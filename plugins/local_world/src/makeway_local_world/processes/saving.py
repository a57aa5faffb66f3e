"""Let jobs be saved with their memory where they, their QOS or their partition ask for it.

The job runs `makeway_checkpointable`, its checkpoint command asks that for a save, and its end removes what was saved.
All of that is done by the job's own processes: what is saved lies where its owner keeps state, and the daemon reads it
with no rights of its own.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from makeway.model import Job
from makeway_checkpointable import criu, cuda, obstacles
from makeway_local_world.processes.settings import Kind, Settings
from makeway_local_world.submission import Submission, file_name

_STATE = "${XDG_STATE_HOME:-$HOME/.local/state}/makeway-saved"


UNASKED = "it has no checkpoint command; submit it with --checkpointable or --checkpoint-command"
"""The obstacle of a job that has no checkpoint command, and is not to be saved with its memory."""


class Saving:
    """Which jobs of a site are saved, and how."""

    def __init__(self, settings: Settings, daemon: str) -> None:
        """Find criu, and cuda-checkpoint.

        :param daemon: names the state directory.
        """
        self._settings, self._daemon = settings, daemon
        self._criu, self._why = "", ""
        try:
            self._criu = criu.find().path
        except criu.CriuError as error:
            self._why = str(error)
        self.cuda = cuda.find()

    def obstacle(self, submission: Submission, job: Job, gpus: int) -> str:
        """Say why a job cannot be checkpointed, as far as that is seen before its start; empty: it can be."""
        if submission.checkpoint is not None:
            return ""
        if not self._kind_of(submission, job).saves:
            return UNASKED
        if submission.terminal is not None:
            return "it runs in the foreground, and its guest does not wait"
        words = words_of(submission.command, submission.script)
        return self.refusal(words, submission.environment, gpus)

    def refusal(self, words: Sequence[str], environment: Mapping[str, str], gpus: int) -> str:
        """Say why a job that asks to be saved cannot be; empty: it can."""
        on_gpus = gpus and (self.cuda.why or cuda.shared(gpus))
        if on_gpus:
            return f"it cannot leave its GPUs: {on_gpus}"
        return self._why or obstacles.of_command(words, environment) or ""

    def saved(
        self, request: dict[str, Any], submission: Submission, job: Job, *, gpus: bool
    ) -> dict[str, Any]:
        """Return a request whose program is saved; for a job without an obstacle."""
        if submission.checkpoint is not None:
            return request
        every = self._kind_of(submission, job).checkpoint_every
        name = f"{self._daemon}-{file_name(job.id)}-{int(job.spec.wall_submit or 0)}"
        place = f'saved="{_STATE}/"{shlex.quote(name)}'
        run = shlex.join([sys.executable, "-I", "-m", "makeway_checkpointable", "--criu", self._criu])
        if gpus:
            run += f" --cuda-checkpoint {shlex.quote(self.cuda.path)}"
        run += ' --dir "$saved"'
        options = " --here" if every is None else f" --here --every {every:g}"
        if self._settings.user_images:
            options += f" --most {self._settings.user_images}"
        on_end, clear = submission.on_end, 'rm -rf "$saved"'
        clear_if_over = f'[ "$MAKEWAY_BECOMES" = PENDING ] || {clear}'
        return {
            **request,
            "script": f'#!/bin/sh\n{place}\n{_kept(submission)}exec {run}{options} -- {_started(submission)}"$@"\n',
            "checkpoint": f"{place}; {run} --save",
            "on_end": f"{place}; {clear}"
            if on_end is None
            else f"( {on_end}\n); ended=$?; {place}; {clear_if_over}; exit $ended",
            "on_end_only_over": on_end is None,  # what takes the job's place does not wait for it
        }

    def _kind_of(self, submission: Submission, job: Job) -> Kind:
        """Return what is said of a job: by itself, else by its QOS, else by its partition."""
        qos = job.qos.name if job.qos is not None else ""
        kinds = (
            Kind(checkpointable=submission.checkpointable, checkpoint_every=submission.checkpoint_every),
            self._settings.qos.get(qos, Kind()),
            self._settings.partition.get(job.partition.name, Kind()),
        )
        saves = next((each.saves for each in kinds if each.saves is not None), None)
        every = next((each.checkpoint_every for each in kinds if each.checkpoint_every is not None), None)
        return Kind(checkpointable=bool(saves), checkpoint_every=every)


def words_of(command: Sequence[str], script: str | None) -> list[str]:
    """Return the words by which a job begins."""
    return list(command) if script is None else script.partition("\n")[0].removeprefix("#!").split()


def _kept(submission: Submission) -> str:
    """Return lines that keep a job's script as a file, for a program that is saved may read on in it."""
    if submission.script is None:
        return ""
    end = f"end-{os.urandom(8).hex()}"
    return (
        'if [ ! -e "$saved/script" ]; then\n'
        '(umask 077; mkdir -p "$saved") || exit\n'
        f"(umask 077; cat >\"$saved/script.new\" <<'{end}'\n{submission.script}\n{end}\n"
        ') && mv "$saved/script.new" "$saved/script" || exit\nfi\n'
    )


def _started(submission: Submission) -> str:
    """Return how a job's script is started; empty: its command is."""
    if submission.script is None:
        return ""
    words = submission.script.partition("\n")[0].removeprefix("#!").strip().split(None, 1)
    return f'{shlex.join(words)} "$saved/script" '
