"""The rules of preempt/spot: which job evicts which, and which way is the cheapest; worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.errors import ConfigError
from makeway_testing import cluster, one_node, replay_table, timeline
from makeway_testing.builders import preempting

NAME = "preempt/spot"


def config(select: str = "select/cons_tres", **settings: Any) -> dict[str, Any]:
    """Return a configuration with the plugin's own settings."""
    return preempting(NAME, **settings) | {
        "select": select,
        "select_parameters": "CR_Core",
        "scheduler": "greedy",
        "clockwork": {"preset": "ideal"},
        "qos": {"HP": {}, "Spot": {}},
    }


def test_high_priority_evicts_spot_and_no_other() -> None:
    """One node: the job of class HP displaces the spot job, no job of its own class, and spot displaces none."""
    run = replay_table(
        """
        job    qos   submit  cpus  run_time
        spot   Spot       0     4       100
        first  HP        10     4        50
        other  HP        20     4        10
        more   Spot      30     4        10
        """,
        cluster=one_node(cpus=4),
        config=config(),
    )
    assert run.timeline == timeline(
        """
          0  spot   start
         10  spot   requeue  for first
         10  first  start
         60  first  complete
         60  other  start
         70  other  complete
         70  spot   start
        170  spot   complete
        170  more   start
        180  more   complete
        """
    )


def test_the_cheapest_victim_goes() -> None:
    """At 100 old has 100 s of 1 CPU to lose, young 10 s of 1, and wide 20 s of 2: 160, 70 and 160 with 60 s each."""
    run = replay_table(
        """
        job    qos   submit  cpus  run_time
        old    Spot       0     1       500
        wide   Spot      80     2       500
        young  Spot      90     1       500
        hp     HP       100     1        10
        """,
        cluster=one_node(cpus=4),
        config=config(),
    )
    assert run.victims == ("young",)
    assert run.run.recorder.preemptions[0].why == "costs 70 GPU-seconds"


def test_the_cheapest_node_is_emptied() -> None:
    """A job that needs a whole node at 300: d and c on n1 cost 600 + 180, a and b on n2 400 each.

    In the order of victims it takes c, then a and b, and gives c back: 800. To empty n1 costs 780.
    """
    run = replay_table(
        """
        job  qos   submit  nodes  tasks  run_time  required_nodes
        d    Spot       0      1      2      1000  n1
        a    Spot     100      1      2      1000  n2
        b    Spot     100      1      2      1000  n2
        c    Spot     210      1      2      1000  n1
        hp   HP       300      1      4        10  -
        """,
        cluster=cluster(2, cpus=4),
        config=config(restart_cost=0),
    )
    assert sorted(run.victims) == ["c", "d"]


@pytest.mark.parametrize(("price", "victim"), [(0.0, "wide"), (60.0, "old")])
def test_beginning_again_has_a_price(price: float, victim: str) -> None:
    """At 100 old loses 100 s of one CPU, and wide 40 s of two; 60 s more for each make it 160 and 200."""
    run = replay_table(
        """
        job   qos   submit  cpus  run_time
        old   Spot       0     1       500
        wide  Spot      60     2       500
        rest  HP        60     1       500
        hp    HP       100     1        10
        """,
        cluster=one_node(cpus=4),
        config=config(restart_cost=price),
    )
    assert run.victims == (victim,)


def test_a_wrong_price_is_an_error() -> None:
    """The key is named."""
    with pytest.raises(ConfigError, match="restart_cost"):
        replay_table("job nodes run_time\na 1 1", cluster=one_node(), config=config(restart_cost=-1.0))
