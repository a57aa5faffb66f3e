"""Read a scenario of the oracle: a cluster, jobs with their submission, and commands of people.

The format is the one of ``tests/oracle/FORMAT.md``. A scenario was played on a real Slurm whose
clocks were made to run fast; a replay that is to be held against the recording needs the same
clocks, so `build_scenario` writes them into the config (`harness_clockwork`).

========  ====================================================================
module    what it owns
========  ====================================================================
entries   the file as it is written
site      the configuration, out of the cluster and its slurm.conf
clocks    the clocks of the Slurm on which it was played
jobs      the jobs, as ``sbatch`` would submit them
acts      what people did meanwhile
========  ====================================================================
"""

from __future__ import annotations

import math

import attrs

from makeway.config import Config
from makeway.errors import ConfigError, Problem, unknown
from makeway.model import JobSpec, Seconds
from makeway_slurm.recordings.acts import Action, actions_of
from makeway_slurm.recordings.clocks import harness_clockwork
from makeway_slurm.recordings.entries import (
    ScenarioFile,
    noted,
    read_scenario_file,
)
from makeway_slurm.recordings.jobs import cleaning_times, jobs_of
from makeway_slurm.recordings.recording import Recording
from makeway_slurm.recordings.site import config_of
from makeway_slurm_rules.rules import version


@attrs.frozen(kw_only=True)
class Scenario:
    """A scenario, ready to be replayed."""

    name: str
    title: str = ""
    tags: tuple[str, ...] = ()
    expect: str = ""
    needs: str | None = None
    """Lowest release that knows the settings; None: any."""
    config: Config
    jobs: tuple[JobSpec, ...]
    """In order of submission; ids as Slurm numbers them, names as in the recording."""
    actions: tuple[Action, ...] = ()
    """In order of time."""
    duration: Seconds
    """How long to watch: as long as the recording did, if that is longer than was meant."""
    squeue_at: tuple[Seconds, ...] = ()
    warnings: tuple[str, ...] = ()
    """What the reader of slurm.conf had to say."""
    source: str = ""

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """Commands that a replay cannot follow, as they were typed."""
        return tuple(" ".join(each.words) for each in self.actions if not each.modelled)

    def playable_on(self, release: str) -> bool:
        """Say whether `release` knows the settings."""
        return self.needs is None or version(release) >= version(self.needs)


def build_scenario(file: ScenarioFile, recording: Recording | None = None, source: str = "") -> Scenario:
    """Turn a scenario file into config, jobs and commands.

    :raises ConfigError: with all problems of the first part that has any.
    """
    source = source or file.name
    _check(file, source)
    config, warnings = config_of(file, recording, source)
    jobs = jobs_of(file, recording, source)
    return Scenario(
        name=file.name,
        title=file.title,
        tags=file.tags,
        expect=file.expect.strip(),
        needs=file.needs,
        config=config,
        jobs=jobs,
        actions=actions_of(file, jobs, source, recording.responding if recording is not None else {}),
        duration=max(file.duration, recording.observed if recording is not None else 0.0),
        squeue_at=file.squeue_at,
        warnings=warnings,
        source=source,
    )


def _check(file: ScenarioFile, source: str) -> None:
    """Check what single values cannot show."""
    problems: list[Problem] = []
    if file.needs is not None:
        noted(problems, "needs", lambda: version(file.needs or ""))
    names = [job.name for job in file.job]
    users = {user.name for user in file.cluster.user} or {job.user for job in file.job}
    for at, job in enumerate(file.job):
        if names.index(job.name) != at:
            problems.append(Problem(f"job[{at}].name", f"job {job.name!r} is there twice"))
        if job.user not in users:
            problems.append(Problem(f"job[{at}].user", unknown("user", job.user, users)))
        for key in ("at", "runtime"):
            value = getattr(job, key)
            if value < 0 or math.isinf(value):
                problems.append(Problem(f"job[{at}].{key}", f"got {value}; allowed: 0 or more"))
    if problems:
        raise ConfigError(source, problems)


__all__ = [
    "Action",
    "Scenario",
    "ScenarioFile",
    "build_scenario",
    "cleaning_times",
    "harness_clockwork",
    "read_scenario_file",
]
