"""The rules of preempt/las: which job is in which queue, which makes way, and when; worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.errors import ConfigError
from makeway.model import JobSpec
from makeway_testing import one_node, replay_table, timeline
from makeway_testing.builders import preempting

NAME = "preempt/las"


def config(mode: str = "checkpoint", **settings: Any) -> dict[str, Any]:
    """Return a configuration with the plugin's own settings."""
    return preempting(NAME, mode, **{"thresholds": [20.0], **settings})


def test_a_new_job_displaces_one_that_has_had_its_share() -> None:
    """One core: the threshold of 20 core-seconds is passed after 20 s. A checkpoint keeps the work."""
    run = replay_table(
        """
        job  submit  nodes  run_time
        old       0      1        50
        new       5      1        10
        """,
        cluster=one_node(cpus=1),
        config=config(),
    )
    assert run.timeline == timeline(
        """
         0  old  start
        20  old  requeue  for new
        20  new  start
        30  new  complete
        30  old  start
        60  old  complete
        """
    )


def test_service_is_kept_over_restarts_and_requeues() -> None:
    """`old` lost its work, but not its service: it stays in the lower queue, and `next` displaces it at once."""
    run = replay_table(
        """
        job   submit  nodes  run_time
        old        0      1        50
        new        5      1        10
        next      35      1        10
        """,
        cluster=one_node(cpus=1),
        config=config("requeue"),
    )
    assert run.victims == ("old", "old")
    assert run.timeline == timeline(
        """
         0  old   start
        20  old   requeue  for new
        20  new   start
        30  new   complete
        30  old   start
        35  old   requeue  for next
        35  next  start
        45  next  complete
        45  old   start
        95  old   complete
        """
    )


def test_no_job_makes_way_within_a_queue() -> None:
    """Both have passed the threshold: first come, first served."""
    run = replay_table(
        """
        job    submit  nodes  run_time
        first       0      1        60
        other       1      1        60
        """,
        cluster=one_node(cpus=1),
        config=config(thresholds=[10.0]),
    )
    assert run.victims == ("first",)  # for `other`, which then runs in the same queue


@pytest.mark.parametrize("thresholds", [[], [0.0], [5.0, 5.0], [9.0, 3.0]])
def test_thresholds_ascend(thresholds: list[float]) -> None:
    """Anything else is an error that names the key."""
    with pytest.raises(ConfigError, match="thresholds"):
        replay_table("job nodes run_time\na 1 1", cluster=one_node(), config=config(thresholds=thresholds))


def test_two_gpus_pass_the_threshold_in_half_the_time() -> None:
    """Both dimensions count: 2 GPUs for 10 s are 20."""
    from makeway_preempt_las import Settings, size

    assert size(_job(gres_total={"gpu:a100": 2}), Settings().resource) == 2
    assert size(_job(gres={"gpu": 3}, min_nodes=2), "gpu") == 6
    assert size(_job(tasks=4), "gpu") == 4


def _job(**asked: Any) -> Any:
    class Pending:
        spec = JobSpec(id="1", **asked)

    return Pending()
