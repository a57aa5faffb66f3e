"""A change that a partition's own value overrules says so."""

from __future__ import annotations

from makeway.config import parse_toml
from makeway_app.cli.nearer import overruled

SITE = parse_toml(
    '[[node]]\nname = "n1"\n[[partition]]\nname = "low"\npreempt_mode = ["suspend"]\n'
    '[[partition]]\nname = "high"\n[policy]\npreempt_mode = ["suspend", "gang"]\n',
    "site",
)


def test_a_partition_with_a_value_of_its_own_is_named() -> None:
    (told,) = overruled(SITE, "--compare", "policy.preempt_mode=requeue; cluster.def_mem_per_cpu=5")
    assert told == (
        "--compare policy.preempt_mode: partition low has preempt_mode of its own, so that it changes nothing there; "
        "try partition.low.preempt_mode=..."
    )


def test_a_key_that_nothing_overrules_is_silent() -> None:
    assert list(overruled(SITE, "--set", "cluster.def_mem_per_cpu=1000")) == []
