"""How hard the contracts try: ``MAKEWAY_PROFILE=quick`` answers within seconds, and says what it leaves out.

It is read from the environment, as the kit adds no option to pytest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import attrs

from makeway.errors import ConfigError, Problem, nearest

PROFILE = "MAKEWAY_PROFILE"
"""Environment variable: the name of a profile."""


@attrs.frozen(kw_only=True)
class Profile:
    """How many random runs there are."""

    name: str
    examples: int | None = None
    """Most random runs per rule; None: as many as the contract says."""
    least: int
    """Fewest that a rule counts with which wants several times as many runs as others."""
    in_other_processes: int
    """Random runs that are played in processes of their own."""
    hash_seeds: tuple[str, ...]
    """One such process each."""
    insists: bool
    """Whether a plugin that random runs never put to the test fails."""
    leaves_out: str = ""
    """What it does not do, in words."""


FULL = Profile(name="full", least=25, in_other_processes=40, hash_seeds=("1", "2", "3"), insists=True)
QUICK = Profile(
    name="quick",
    examples=5,
    least=5,
    in_other_processes=5,
    hash_seeds=("1", "2"),
    insists=False,
    leaves_out=(
        "at most 5 random runs per rule instead of 25; 20 instead of 100 for rules that want many; "
        "2 hash seeds with 5 runs each instead of 3 with 40; a plugin that none of them puts to the test is skipped"
    ),
)
PROFILES: Mapping[str, Profile] = {each.name: each for each in (FULL, QUICK)}


def profile() -> Profile:
    """Return the profile that the environment names.

    :raises ConfigError: there is no such profile.
    """
    name = os.environ.get(PROFILE) or FULL.name
    if name not in PROFILES:
        said = f"got {name!r}; allowed: {', '.join(PROFILES)}{nearest(name, PROFILES)}"
        raise ConfigError(PROFILE, [Problem("", said)])
    return PROFILES[name]
