"""A plugin's name is never behaviour: every shipped plugin decides the same under another name."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from makeway import registry
from makeway.config import Config
from makeway.foreign import Played, RecordedScenario
from makeway.readers.api import ReadOptions
from makeway.settings import structure
from makeway_app.cli.inputs import load_config
from makeway_app.readers.foreign import FileSource
from makeway_app.readers.open import open_workload
from makeway_app.replay import Options
from makeway_app.replay import replay as plain_replay
from makeway_slurm.recordings.play import play
from makeway_slurm.recordings.recording import read_recording
from makeway_slurm.recordings.scenario import build_scenario, read_scenario_file
from makeway_verify import recordings

ROOT = Path(__file__).parents[1]
EVERY = 9
"""One recording of so many is played whenever the tests run; all of them under ``slow``."""


def other(name: str) -> str:
    """Return the name under which a plugin is registered instead."""
    return "elsewhere/" + name.replace("/", "-")


def renamed(config: Config) -> tuple[Config, dict[str, Any]]:
    """Return a configuration that names each plugin otherwise, and the plugins by those names."""
    policy = config.policy
    plugins = {other(name): registry.load(name) for name in registry.names_in(config)}
    gang = registry.gang_of(config)
    changed = attrs.evolve(
        policy,
        select=other(policy.select),
        preempt=other(policy.preempt),
        priority=None if policy.priority is None else other(policy.priority),
        gang=None if gang is None else other(gang),
        search=None if policy.search is None else other(policy.search),
        protect=tuple(map(other, policy.protect)),
        plugins=tuple(map(other, policy.plugins)),
        settings={other(name): table for name, table in policy.settings.items() if other(name) in plugins},
    )
    return attrs.evolve(config, policy=changed), plugins


def replay_renamed(
    config: Config, jobs: Any, commands: Any = None, options: Any = None, cluster: Any = None
) -> Any:
    """Replay with all plugins under other names; takes what `makeway_app.replay.replay` takes."""
    changed, plugins = renamed(config)
    return plain_replay(changed, jobs, commands, attrs.evolve(options or Options(), plugins=plugins), cluster)


def said(record: Mapping[str, Any]) -> str:
    """Return a record as text, with the plugins called by their usual names."""
    text = json.dumps(record, sort_keys=True, default=str)
    for item in registry.installed():
        text = text.replace(other(item.name), item.name)
    return text


def with_replay(function: Any, replay: Any) -> Any:
    """Return a function that replays with `replay`, whatever module it comes from."""
    known = {**function.__globals__, "replay": replay}
    return types.FunctionType(function.__code__, known, function.__name__, function.__defaults__)


def listed(files: list[Path]) -> list[Any]:
    """Mark all but a sample as slow."""
    return [
        pytest.param(file, id=file.stem, marks=() if at % EVERY == 0 else (pytest.mark.slow,))
        for at, file in enumerate(files)
    ]


def scenarios() -> list[Path]:
    """List the scenarios that Slurm was recorded with."""
    return sorted((ROOT / "tests").glob("*/scenarios/*.toml"))


@pytest.mark.parametrize("path", listed(scenarios()))
def test_slurm_s_scenarios(path: Path) -> None:
    """Slurm's policies and selectors, with their limits, gang and searches."""
    results = sorted(path.parents[1].glob(f"results-*/{path.stem}.json"))
    scenario = build_scenario(read_scenario_file(path), read_recording(results[0]) if results else None)
    expected = play(scenario)
    assert said(with_replay(play, replay_renamed)(scenario)) == said(expected)


def maui() -> list[Path]:
    """List the recordings of Maui."""
    return sorted(each for each in (ROOT / "plugins/moab_qos/tests/recordings").rglob("*") if each.is_file())


@pytest.mark.parametrize("path", listed(maui()))
def test_recordings_of_maui(path: Path) -> None:
    """moab/qos and its selector."""
    offered, _ = registry.offered("recordings")
    reader = recordings._reader_of(path, [each for each in offered if hasattr(each, "recorded")])
    if reader is None:
        pytest.skip("not a recording by itself")
    scenario = cast(RecordedScenario, reader.recorded(FileSource(path)))
    if scenario.unmodelled:
        pytest.skip("not modelled")
    tables = {**scenario.tables, "action": list(scenario.commands)}
    config = structure(tables, Config, str(path))
    expected: Played = recordings._play(config, scenario, str(path))
    found = with_replay(recordings._play, replay_renamed)(config, scenario, str(path))
    assert said(found.summary) == said(expected.summary)


@pytest.mark.parametrize(
    ("site", "trace"),
    [
        ("examples/lsf/lsb.queues", "examples/lsf/jobs.jsonl"),
        ("examples/kth/cluster.toml", "examples/kth/kth-sp2-1500.swf.gz"),
    ],
)
def test_examples(site: str, trace: str) -> None:
    """lsf/queue with its settings, and Slurm's tiers over a real trace."""
    config = load_config(ROOT / site).config
    options = ReadOptions(config=config, limit=400)
    plain, elsewhere = (
        run(config, open_workload(ROOT / trace, options).jobs).summary()
        for run in (plain_replay, replay_renamed)
    )
    assert plain["preemptions"]
    assert said(elsewhere) == said(plain)
