"""A small cluster on which values of keys matter, and makeway's command line."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFIG = """
node = [{ name = "n[1-2]", cpus = 4 }]
partition = [{ name = "low", default = true }, { name = "high", priority_tier = 2 }]

[policy]
preempt = "preempt/partition_prio"
preempt_mode = ["requeue"]

[[job]]
id = "1"
nodes = 2
run_time = 100
partition = "low"

[[job]]
id = "2"
nodes = 2
run_time = 10
submit = 50
partition = "high"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration with two jobs: the second takes the nodes of the first after 50 s."""
    path = tmp_path / "cluster.toml"
    path.write_text(CONFIG)
    return path
