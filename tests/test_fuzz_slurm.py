"""Random scenarios are sound; with ``-m fuzz_slurm`` real Slurm plays them and the replays agree.

MAKEWAY_FUZZ_SEEDS=1-100 says which to play (default: 1-10), MAKEWAY_FUZZ_OUT where scenarios, recordings and what
was reduced are kept.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

from makeway_slurm.readers.grammar import parse_conf
from makeway_slurm.recordings.priority.database import Database
from makeway_slurm.recordings.scenario import build_scenario, read_scenario_file
from makeway_verify.verdicts import Outcome

ORACLE = Path(__file__).parent / "oracle"
KINDS = pytest.mark.parametrize("exotic", [False, True], ids=["ordinary", "exotic"])


def load(name: str) -> types.ModuleType:
    """Import a program of tests/oracle."""
    found = importlib.util.spec_from_file_location(name, ORACLE / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fuzz() -> types.ModuleType:
    """Return the player."""
    return load("fuzz")


@KINDS
def test_scenarios_are_sound(exotic: bool, tmp_path: Path) -> None:
    """What is written is what was drawn, the same for the same seed, and can be replayed."""
    scenarios = load("random_scenarios")
    path = tmp_path / "drawn.toml"
    for seed in range(60):
        table = scenarios.scenario(seed, exotic=exotic)
        assert table == scenarios.scenario(seed, exotic=exotic)
        path.write_text(scenarios.write(table))
        read = tomllib.loads(path.read_text())
        assert (read["job"], read["cluster"]["nodes"]) == (table["job"], table["cluster"]["nodes"])
        assert build_scenario(read_scenario_file(path)).jobs != ()


def test_scenarios_about_priorities_are_sound(tmp_path: Path) -> None:
    """What is written is what was drawn, the same for the same seed; its database and its slurm.conf are understood."""
    priorities, write = load("random_priorities"), load("random_scenarios").write
    for seed in range(60):
        table = priorities.scenario(seed)
        assert table == priorities.scenario(seed)
        read = tomllib.loads(write(table))
        assert {key: read[key] for key in ("job", "table")} == {key: table[key] for key in ("job", "table")}
        database = Database()
        for command in read["cluster"]["sacctmgr"]:
            database.run(command.replace("<CLUSTER>", "cluster"))
        assert {"low", "mid", "high", "partqos"} <= set(database.qos)
        parse_conf(read["cluster"]["slurm_conf"], "drawn")


def test_a_difference_is_reduced_to_what_it_takes(fuzz: types.ModuleType) -> None:
    """Jobs, commands and words that do not matter go; here one job with one option does."""
    table = load("random_scenarios").scenario(12, exotic=True)
    kept = {"at": 3, "name": "kept", "runtime": 4, "args": ["-N1", "--mem=1", "--nice=7", "--time=1"]}
    table["job"] = [*table["job"], kept]

    def differs(smaller: dict[str, Any]) -> bool:
        return any("--nice=7" in job["args"] for job in smaller["job"])

    before = copy.deepcopy(table)
    found = fuzz.reduced(table, differs, 500)
    assert [job["args"] for job in found["job"]] == [["-N1", "--nice=7"]]
    assert found.get("action", []) == []
    assert table == before
    assert len(fuzz.reduced(table, differs, 1)["job"]) >= len(table["job"]) - 1


def test_a_job_that_a_command_names_stays(fuzz: types.ModuleType) -> None:
    """A scenario whose command names no job cannot be played."""
    job = {"at": 0, "runtime": 3, "args": ["-N1"]}
    table = {
        "job": [{**job, "name": "a"}, {**job, "name": "b"}],
        "action": [{"at": 1.5, "command": ["scancel", "<a>"]}],
        "cluster": {"nodes": [], "slurm_conf": ""},
    }
    found = fuzz.reduced(table, lambda smaller: bool(smaller["action"]), 100)
    assert [each["name"] for each in found["job"]] == ["a"]


def test_a_suspension_that_slurm_refuses_is_no_event() -> None:
    """Lines of a slurmctld 22.05.8: two commands that it carried out, and two that it refused."""
    lines = [
        "_slurm_rpc_suspend(suspend) for 2 Job is pending execution",
        "_slurm_rpc_suspend(suspend) for 1 usec=154",
        "_slurm_rpc_suspend(resume) for 1 usec=55",
        "_slurm_rpc_suspend(resume) for 1 Job is not suspended",
    ]
    events = load("run_oracle").EVENTS
    found = [[kind for kind, pattern in events if pattern.search(line)] for line in lines]
    assert found == [[], ["hand_suspend"], ["hand_resume"], []]


@pytest.mark.fuzz_slurm
@pytest.mark.slow
@KINDS
def test_real_slurm_does_what_we_replay(exotic: bool, fuzz: types.ModuleType, tmp_path: Path) -> None:
    """Differences are kept, reduced, and shown."""
    first, _, last = os.environ.get("MAKEWAY_FUZZ_SEEDS", "1-10").partition("-")
    folder = Path(os.environ.get("MAKEWAY_FUZZ_OUT", tmp_path))
    seeds = range(int(first), int(last or first) + 1)
    verdicts = fuzz.run(folder, seeds, exotic=exotic, at_once=2, plays=30)
    bad = [each for each in verdicts if each.outcome not in (Outcome.AGREES, Outcome.SKIPPED)]
    assert bad == [], "\n".join(str(each) for verdict in bad for each in verdict.comparison.differences)
