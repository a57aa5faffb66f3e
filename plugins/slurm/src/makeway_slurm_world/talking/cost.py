"""Say what looking costs the controller, and how often a site lets its users ask (slurm-live 3 and 6).

Slurm 23.02 and later may limit each user by a bucket of tokens (``SlurmctldParameters=rl_enable``): it holds
`rl_bucket_size` of them, each call takes one, and `rl_refill_rate` come back every `rl_refill_period` seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

CALLS_PER_LOOK = 4
"""Calls of a look at which little changed: the queue, nodes and partitions, one job."""
_SHARE = 0.5
"""Of the calls that a site allows, what looking may take; the rest is for starting and displacing."""
_CALL = re.compile(r"^\s*(REQUEST_\w+)\s*\(\s*[0-9]+\)\s+count:([0-9]+)\s+ave_time:([0-9]+)", re.MULTILINE)
_LOOKS = {"REQUEST_JOB_INFO": "reading all jobs", "REQUEST_JOB_INFO_SINGLE": "reading one job"}


@attrs.frozen(kw_only=True)
class Limit:
    """How often one user may call."""

    burst: int
    """Calls at once."""
    rate: float
    """Calls a second in the long run."""

    @property
    def poll(self) -> float:
        """Return the seconds that have to be between two looks."""
        return CALLS_PER_LOOK / (self.rate * _SHARE)


def limit_of(settings: Mapping[str, str]) -> Limit | None:
    """Return the limit that a site's configuration sets; None: it sets none.

    :param settings: as ``scontrol show config`` says.
    """
    words = [word.strip() for word in settings.get("SlurmctldParameters", "").split(",")]
    if "rl_enable" not in [word.lower() for word in words]:
        return None
    given = {key.lower(): value for key, _, value in (word.partition("=") for word in words)}

    def number(key: str, default: int) -> int:
        text = given.get(key, "")
        return max(1, int(text)) if text.isascii() and text.isdigit() else default

    return Limit(
        burst=number("rl_bucket_size", 30),
        rate=number("rl_refill_rate", 2) / number("rl_refill_period", 1),
    )


def cost(text: str) -> dict[str, float]:
    """Return the milliseconds that the controller takes on average, by what it is asked.

    :param text: what ``sdiag`` printed.
    """
    found = {name: int(mean) / 1000 for name, _, mean in _CALL.findall(text)}
    return {words: found[name] for name, words in _LOOKS.items() if name in found}


def told(text: str, poll: float) -> str:
    """Return a sentence about what looking costs; empty: the controller has not counted yet."""
    found = cost(text)
    if not found:
        return ""
    parts = ", ".join(f"{words} {value:.1f} ms" for words, value in found.items())
    share = 0.1 * found.get("reading all jobs", 0.0) / poll
    return f"sdiag: {parts} of the controller's time; with a look every {poll:g} s that is {share:.2g}% of a core"
