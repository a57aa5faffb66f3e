"""No fault of a scheduler is ever on where jobs are real; all of them can be where it is modelled."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest

from makeway import vendors
from makeway.config import Config, build_cluster, parse_toml
from makeway.errors import ConfigError
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.switches import SWITCHES
from makeway_engine.engine import Engine
from makeway_slurm_rules.rules import RULES

CONFIG = """
node = [{ name = "n1", cpus = 4, memory_mb = 8000 }]
partition = [{ name = "normal", default = true }, { name = "urgent", priority_tier = 2 }]
[policy]
select = "select/cons_tres"
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
"""
WORLDS = ("world/local", "local", "world/slurm", "slurm", "world/of-a-site")
DEFECTS = sorted(vendors.defects())


def in_world(name: str, **scheduler: Any) -> Config:
    """Return the configuration of a world, under a scheduler that is set like this."""
    config = parse_toml(CONFIG, "test")
    return attrs.evolve(
        config,
        world=attrs.evolve(config.world, name=name),
        scheduler=attrs.evolve(config.scheduler, **scheduler),
    )


def rules_of(config: Config) -> dict[str, bool]:
    """Return defect -> whether an engine under this configuration has it."""
    ledger = Engine(config, Recorder(build_cluster(config)), Policies(config)).ledger
    return {name: ledger.rule(name) for name in DEFECTS}


def test_each_rule_that_says_it_is_a_defect_is_one() -> None:
    """What the sentence tells people and what the engine looks at are one thing."""
    assert {name for name, rule in RULES.items() if rule.defect} == {
        name for name, rule in RULES.items() if "(a defect" in rule.text
    }
    assert {name for name, switch in SWITCHES.items() if switch.defect} == {
        name for name in SWITCHES if RULES[name].defect
    }
    assert len(DEFECTS) > 20


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("release", [None, "22.05", "23.11", "26.11"])
def test_no_defect_is_on_where_jobs_are_real(world: str, release: str | None) -> None:
    """Neither by the release, nor by a rule that got past the checks."""
    for rules in ({}, dict.fromkeys(DEFECTS, True)):
        assert not any(rules_of(in_world(world, slurm_release=release, rules=rules)).values())


def test_all_defects_can_be_on_in_a_model() -> None:
    """Only there: a replay follows the scheduler that it models."""
    assert all(rules_of(in_world("world/simulated", rules=dict.fromkeys(DEFECTS, True))).values())


@pytest.mark.parametrize(("name", "world"), list(itertools.product(DEFECTS, ("world/local", "world/slurm"))))
def test_a_configuration_that_asks_for_one_is_refused(name: str, world: str) -> None:
    """It names the rule, and what is allowed."""
    wanted = f'{CONFIG}\n[scheduler.rules]\n{name} = true\n[world]\nname = "{world}"\n'
    with pytest.raises(ConfigError, match=f"scheduler.rules.{name}: got true, .*allowed: false"):
        parse_toml(wanted, "test")
    parse_toml(wanted.replace("= true\n[world", "= false\n[world"), "test")
    parse_toml(wanted.replace(world, "world/simulated"), "test")
