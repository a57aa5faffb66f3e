"""What a site must be like before anything is done: each refusal says what to change (slurm-live 7 and 9)."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator, Sequence

from makeway.config import Config
from makeway.errors import ConfigError, Problem
from makeway.hostlist import expand_hostlist
from makeway_slurm_world.reading.look import Look
from makeway_slurm_world.reading.records import known, pairs
from makeway_slurm_world.talking.runner import Asker, SlurmError
from makeway_slurm_world.talking.words import Question, show

_SUSPEND_CRASHES = (((23, 11, 0), (24, 5, 5)), ((24, 11, 0), (24, 11, 1)))
_CLEARING_CRASHES = ((23, 2, 0), (23, 2, 1))
_OLDEST = (21, 8, 0)
_BF_INTERVAL = 30
"""Seconds between two turns of Slurm's backfill where slurm.conf does not say (slurm-gang-and-select)."""
_MAY = ("operator", "administrator")


def check(asker: Asker, found: Look, config: Config, nodes: Sequence[str], user: str | None = None) -> None:
    """Refuse a site where driving would do harm.

    :param config: the policy that is to decide, and the nodes that it knows.
    :param user: who runs Slurm's commands; None: this process's user.
    :raises ConfigError: with everything that has to be changed.
    """
    problems = [
        *_of_release(found.settings.get("SLURM_VERSION", ""), suspends=suspends(config)),
        *_of_cluster(found, suspends=suspends(config)),
        *_of_partitions(asker.ask(show("part")).out, nodes),
        *_of_rights(asker, found, user or getpass.getuser()),
    ]
    if problems:
        raise ConfigError("the cluster", problems)


def suspends(config: Config) -> bool:
    """Whether the policy may suspend jobs."""
    tables = [table.preempt_mode or () for table in config.partition]
    tables += [table.preempt_mode or () for table in config.qos]
    return any("suspend" in words for words in (*tables, config.policy.preempt_mode))


def slow_backfill(parameters: str, limit: float) -> list[str]:
    """Say if starts of heterogeneous jobs would be taken back before Slurm gets to them: only its backfill does that.

    :param parameters: SchedulerParameters of slurm.conf.
    :param limit: seconds after which such a start is taken back.
    """
    found = re.search(r"(?:^|,)bf_interval=([0-9]+)", parameters)
    interval = int(found[1]) if found else _BF_INTERVAL
    if 2 * interval <= limit:
        return []
    text = f"heterogeneous jobs start at a turn of Slurm's backfill, every {interval} s (bf_interval)"
    return [f"{text}; set world.settings.het_start_limit to {2 * interval} or more"]


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", text)[:3])


def _of_release(text: str, *, suspends: bool) -> Iterator[Problem]:
    version = _release(text)
    if not version:
        yield Problem("release", f"got {text!r}; it has to be known")
    elif version < _OLDEST:
        yield Problem("release", f"Slurm {text} lacks what is needed; allowed: 21.08 or later")
    elif version in _CLEARING_CRASHES:
        yield Problem(
            "release",
            f"the controller of Slurm {text} crashes when a start is taken back; update to 23.02.2 or later",
        )
    elif suspends and any(first <= version <= last for first, last in _SUSPEND_CRASHES):
        text = f"Slurm {text} may crash once a suspended job is cancelled; update, or take a policy that requeues"
        yield Problem("release", text)


def _of_cluster(found: Look, *, suspends: bool) -> Iterator[Problem]:
    settings = found.settings
    mode = settings.get("PreemptMode", "OFF").upper()
    if "GANG" in mode:
        yield Problem(
            "PreemptMode", f"got {mode}; Slurm's own time slices know nothing of makeway: take GANG away"
        )
    if suspends and "MEMORY" not in settings.get("SelectTypeParameters", "").upper():
        text = "memory is not tracked, so that a suspended job and its successor may exceed it: set CR_Core_Memory"
        yield Problem("SelectTypeParameters", text)


def _of_partitions(text: str, nodes: Sequence[str]) -> Iterator[Problem]:
    wanted = set(nodes)
    for line in text.splitlines():
        fields = pairs(line)
        name, listed = fields.get("PartitionName"), known(fields.get("Nodes"))
        if not name or not listed or not wanted & set(expand_hostlist(listed)):
            continue
        mode, sharing = fields.get("PreemptMode", "OFF"), fields.get("OverSubscribe", "NO")
        if mode.upper() != "OFF":
            yield Problem(
                f"PartitionName={name} PreemptMode",
                f"got {mode}; Slurm displaces jobs there, too: set PreemptMode=OFF",
            )
        if sharing.partition(":")[0].upper() not in ("NO", "EXCLUSIVE"):
            text = f"got {sharing}; jobs would share CPUs without makeway's knowledge: set OverSubscribe=NO"
            yield Problem(f"PartitionName={name} OverSubscribe", text)


def _of_rights(asker: Asker, found: Look, user: str) -> Iterator[Problem]:
    owner = found.settings.get("SlurmUser", "").partition("(")[0]
    if user in ("root", owner):
        return
    try:
        words = ("sacctmgr", "-n", "-P", "show", "user", user, "format=AdminLevel")
        level = asker.ask(Question(words)).out.strip().lower()
    except SlurmError:
        level = ""
    if level not in _MAY:
        text = f"{user} is no operator; `sacctmgr modify user {user} set AdminLevel=Operator` makes one, root does too"
        yield Problem("rights", text)
