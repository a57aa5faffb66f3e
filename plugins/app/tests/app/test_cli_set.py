"""``--set KEY=VALUE``: where a path leads, and how a value is read."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import Config, parse_toml
from makeway.errors import ConfigError
from makeway_app.cli.changes import change, steps_of, variant

TEXT = """
workload.map = [{ user = ["ada"], to_partition = "low" }]

[[node]]
name = "n[1-2]"

[[partition]]
name = "low"

[[partition]]
name = "high.test"

[[qos]]
name = "1"

[[job]]
id = 7
nodes = 1
"""


@pytest.fixture
def config() -> Config:
    """Return a configuration with two partitions."""
    return parse_toml(TEXT, "cluster.toml")


def _value(config: Config, path: str) -> Any:
    """Return ``partition[0].name``, for the tests alone."""
    return eval(f"config.{path}", {"config": config})


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        pytest.param("cluster.name=x", "cluster.name", "x", id="a word"),
        pytest.param('cluster.name="x y"', "cluster.name", "x y", id="quoted"),
        pytest.param("cluster.name=7", "cluster.name", "7", id="text that looks like a number"),
        pytest.param("cluster.name=a=b", "cluster.name", "a=b", id="equals sign in the value"),
        pytest.param(" cluster.name = x ", "cluster.name", "x", id="blanks"),
        pytest.param("scheduler.slurm_release=22.05", "scheduler.slurm_release", "22.05", id="release"),
        pytest.param("scheduler.requeue=false", "scheduler.requeue", False, id="truth"),
        pytest.param("policy.preempt_mode=cancel", "policy.preempt_mode", ("cancel",), id="list"),
        pytest.param(
            "policy.preempt_mode=suspend, gang",
            "policy.preempt_mode",
            ("suspend", "gang"),
            id="words",
        ),
        pytest.param('policy.preempt_mode=["suspend"]', "policy.preempt_mode", ("suspend",), id="as TOML"),
        pytest.param(
            "policy.preemption.youngest_first=true",
            "policy.preemption.youngest_first",
            True,
            id="a table that was not there",
        ),
        pytest.param("partition.low.grace_time=5", "partition[0].grace_time", 5.0, id="by name"),
        pytest.param('partition."high.test".grace_time=5', "partition[1].grace_time", 5.0, id="quoted name"),
        pytest.param("partition[1].grace_time=5", "partition[1].grace_time", 5.0, id="by place"),
        pytest.param("partition.1.grace_time=5", "partition[1].grace_time", 5.0, id="bare place"),
        pytest.param("qos.1.priority=5", "qos[0].priority", 5, id="a number as name"),
        pytest.param("partition.*.grace_time=5", "partition[1].grace_time", 5.0, id="all"),
        pytest.param('node."n[1-2]".cpus=5', "node[0].cpus", 5, id="brackets in a name"),
        pytest.param(
            "workload.map[0].to_partition=high.test",
            "workload.map[0].to_partition",
            "high.test",
            id="a rule",
        ),
        pytest.param("job.7.nodes=2", "job[0]['nodes']", 2, id="a job"),
        pytest.param(
            "policy.settings.gang/timeslice.timeslice=9",
            "policy.settings['gang/timeslice']['timeslice']",
            9,
            id="settings of a plugin",
        ),
        pytest.param("scheduler.clockwork=slurm", "scheduler.clockwork", "slurm", id="preset"),
        pytest.param(
            "scheduler.clockwork.kill_wait=9",
            "scheduler.clockwork",
            {"kill_wait": 9},
            id="one delay",
        ),
        pytest.param(
            "scheduler.rules.stale_shadows=false",
            "scheduler.rules",
            {"stale_shadows": False},
            id="release rule",
        ),
        pytest.param("cluster.licenses.matlab=4", "cluster.licenses", {"matlab": 4}, id="licences"),
        pytest.param("job.7.nodes=", "job[0]", {"id": 7}, id="taken back"),
        pytest.param("policy.select=", "policy.select", "select/linear", id="back to the default"),
    ],
)
def test_a_key_is_changed(config: Config, text: str, path: str, value: Any) -> None:
    """And nothing else is."""
    changed = change(config, text)
    assert _value(changed, path) == value
    assert type(_value(changed, path)) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("policy", "allowed: KEY=VALUE", id="no value"),
        pytest.param("=1", "a key is missing", id="no key"),
        pytest.param("policy.preemt=x", "did you mean 'preempt'?", id="unknown key"),
        pytest.param("polcy.preempt=x", "did you mean 'policy'?", id="unknown table"),
        pytest.param("policy.select.x=1", "a single value; it has no key 'x'", id="too deep"),
        pytest.param("policy.mcs=1", "policy.mcs: got 1; allowed: a table", id="a table"),
        pytest.param("partition=1", "partition: got 1; allowed: a list", id="tables"),
        pytest.param("partition.low=1", "Write partition.low.KEY=VALUE", id="which key"),
        pytest.param("partition.lwo.up=true", "did you mean 'low'?", id="unknown name"),
        pytest.param("partition[2].up=true", "no partition named '[2]'", id="unknown place"),
        pytest.param("workload.map[1].user=x", "no workload.map number 1", id="unknown rule"),
        pytest.param("node[0].cpus=four", "got 'four'; allowed: a whole number", id="type"),
        pytest.param("policy.preempt_mode=reque", "did you mean 'requeue'?", id="mode"),
        pytest.param("scheduler.type=esy", "did you mean 'easy'?", id="scheduler"),
        pytest.param("scheduler.rules.stale=true", "no rule named 'stale'", id="rule"),
        pytest.param(
            "policy.settings.a.b=", "policy.settings.a.b: not set; nothing to take back", id="unset"
        ),
        pytest.param('policy."x=1', "allowed: KEY=VALUE", id="quote that does not end"),
        pytest.param("policy[x]=1", "cannot read the key at '[x]'", id="brackets"),
    ],
)
def test_what_does_not_fit_is_refused(config: Config, text: str, message: str) -> None:
    """Naming the flag as it was typed."""
    with pytest.raises(ConfigError) as caught:
        change(config, text)
    assert str(caught.value).startswith(f"--set {text}")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("key", "steps"),
    [
        ("a.b", ["a", "b"]),
        ("a[0].b", ["a", "[0]", "b"]),
        ('a."b.c"."d[1]"', ["a", "b.c", "d[1]"]),
        ("a.'b c'.d/e", ["a", "b c", "d/e"]),
    ],
)
def test_paths(key: str, steps: list[str]) -> None:
    """Dots divide, quotes hold together, brackets are places."""
    assert steps_of(key, "test") == steps


def test_a_delay_keeps_its_preset(config: Config) -> None:
    """When it is the first one to be changed."""
    changed = change(change(config, "scheduler.clockwork=slurm"), "scheduler.clockwork.kill_wait=9")
    assert changed.scheduler.clockwork == {"preset": "slurm", "kill_wait": 9}


def test_a_variant_changes_several_keys(config: Config) -> None:
    """Semicolons divide, quotes hold together."""
    changed = variant(config, "cluster.name='a;b'; policy.select=x ;")
    assert (changed.cluster.name, changed.policy.select) == ("a;b", "x")
