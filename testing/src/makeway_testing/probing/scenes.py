"""Set the scenes: four nodes, three partitions, some QOS, and jobs that get into each other's way."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import attrs

from makeway.config import Config, validate
from makeway.model import JobSpec, Seconds
from makeway.settings import structure
from makeway.worlds.events import Command, Event
from makeway_app.readers.native import workload_of_tables
from makeway_testing.probing.stand import POLICY, SELECTOR

_ROLES: Mapping[str, tuple[str, ...]] = {
    "select": ("makeway_selector",),
    "preempt": ("makeway_preempt_candidates", "makeway_preempt_mode", "makeway_preempt_action"),
    "gang": ("makeway_gang",),
    "priority": ("makeway_priority",),
    "search": ("makeway_search",),
    "protect": ("makeway_protect",),
}
_MODES = (("requeue",), ("cancel",), ("suspend", "gang"), ("checkpoint",))
_SCHEDULERS = ("builtin", "easy", "backfill", "greedy")


@attrs.frozen(kw_only=True)
class Scene:
    """One configuration with its jobs and commands."""

    title: str
    config: Config
    jobs: tuple[JobSpec, ...]
    commands: tuple[tuple[Seconds, Event], ...] = ()


def scenes(name: str, hooks: Collection[str], settings: Mapping[str, Any]) -> Iterator[Scene]:
    """Yield scenes in which the plugin `name` is asked whatever it answers.

    :param settings: ``[policy.settings]`` tables; those of others than `name` do not count.
    """
    policy = _roles(name, hooks)
    policy["settings"] = {key: table for key, table in settings.items() if key == name}
    for modes in _MODES:
        for scheduler in _SCHEDULERS:
            tables = _tables({**policy, "preempt_mode": modes}, scheduler)
            config = structure(tables, Config, "scene")
            validate(config, "scene")
            yield Scene(
                title=f"{'+'.join(modes)}, {scheduler}",
                config=config,
                jobs=tuple(workload_of_tables(_JOBS, "scene").jobs),
                commands=_COMMANDS,
            )


def _roles(name: str, hooks: Collection[str]) -> dict[str, Any]:
    """Return the keys of ``[policy]``: the plugin on trial wherever it has something to say."""
    plays = {role: any(hook in hooks for hook in own) for role, own in _ROLES.items()}
    found: dict[str, Any] = {
        "select": name if plays["select"] else SELECTOR,
        "preempt": name if plays["preempt"] else POLICY,
        "plugins": [] if any(plays.values()) or "makeway_world" in hooks else [name],
        "protect": [name] if plays["protect"] else [],
    }
    if plays["gang"]:
        found["gang"] = name
    if plays["priority"]:
        found["priority"] = name
    if plays["search"]:
        found["search"] = name
    # Asked last: a policy may only say how victims leave, a selector may bring no search.
    found["protect"] += [POLICY, SELECTOR]
    return found


def _tables(policy: Mapping[str, Any], scheduler: str) -> dict[str, Any]:
    return {
        "cluster": {"name": "scene", "licenses": {"matlab": 1}},
        "node": [
            {"name": "n[1-3]", "sockets": 1, "cores_per_socket": 2, "memory_mb": 4000},
            {"name": "n4", "sockets": 1, "cores_per_socket": 4, "memory_mb": 8000, "features": ["big"]},
        ],
        "partition": [
            {"name": "low", "default": True, "max_time": 3600.0},
            {"name": "mid", "priority_tier": 2, "nodes": "n[1-3]", "grace_time": 5.0},
            {"name": "high", "priority_tier": 3},
        ],
        "qos": [
            {"name": "scavenger"},
            {"name": "normal", "priority": 10, "preempt": ["scavenger"]},
            {"name": "urgent", "priority": 100, "preempt": ["normal", "scavenger"], "grace_time": 3.0},
        ],
        "policy": policy,
        # With both an end: jobs that displace one another without a pause would go on for ever.
        "scheduler": {"type": scheduler, "clockwork": {"requeue_delay": 7.0}},
    }


def _job(id: str, submit: float, nodes: int, run_time: float, partition: str, **more: Any) -> dict[str, Any]:
    table = {"id": id, "submit": submit, "nodes": nodes, "run_time": run_time, "partition": partition}
    given = {"qos": "normal", "time_limit": run_time + 30.0, **table, **more}
    return {key: value for key, value in given.items() if value is not None}


_JOBS = [
    _job("1", 0, 1, 100, "low", user="ann", account="physics", qos="scavenger"),
    _job("2", 0, 2, 90, "low", user="bob", account="biology"),
    _job("3", 1, 1, 300, "low", user="ann", account="physics", name="long", time_limit=120.0),
    _job("4", 2, 2, 60, "mid", user="eve", account="biology"),
    _job("5", 3, 4, 20, "low", user="bob", account="biology", requeue=False),
    _job("6", 10, 1, 40, "high", user="eve", account="physics", qos="urgent"),
    _job("7", 12, 3, 30, "high", user="ann", account="physics", qos="urgent"),
    _job("8", 15, 1, 25, "mid", user="bob", account="biology", licenses={"matlab": 1}),
    _job("9", 16, 1, 25, "low", user="bob", account="biology", licenses={"matlab": 1}, qos="urgent"),
    _job("10", 40, 4, 15, "high", user="eve", account="biology", qos="urgent"),
    _job("11", 41, 1, 5, "low", user="ann", account="physics", qos="scavenger"),
    _job("12", 200, 2, 50, "low", user="ann", account="physics", batch=False),
    _job("13", 210, 4, 10, "high", user="bob", account="physics"),
    # No account, no QOS, no limit: what a policy must not take for granted.
    _job("14", 300, 2, 60, "mid", user="dan", qos=None, time_limit=None),
    _job("15", 305, 1, 20, "mid", user="eve", account="biology", group="staff", time_limit=None),
    _job("16", 310, 3, 15, "high", user="ann", account="physics", qos=None, time_limit=None),
    _job("17", 312, 1, 15, "high", user="dan", qos="urgent"),
    _job("18", 314, 1, 30, "low", user="dan", qos="scavenger"),
]
_COMMANDS: tuple[tuple[Seconds, Event], ...] = (
    (5.0, Command("suspend", "1", "ann")),
    (8.0, Command("resume", "1", None)),
    (17.0, Command("hold", "9", "bob")),
    (60.0, Command("release", "9", "bob")),
    (220.0, Command("requeue", "12", None)),
    (400.0, Command("cancel", "12", "ann")),
)
