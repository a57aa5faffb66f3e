"""Room for tasks, counted in processors: each thread of a core is one."""

from __future__ import annotations

import pytest

from makeway_testing import cluster, node, replay_table


@pytest.mark.parametrize(("tasks", "starts"), [(3, 1.0), (4, 1.0), (5, 50.0)])
def test_every_thread_is_a_processor(tasks: int, starts: float) -> None:
    """n1 has two free cores of two threads, so four processors; n2 is busy until 50."""
    run = replay_table(
        f"""
        job    submit  tasks  required_nodes  run_time
        busy        0      4  n2                    50
        asked       1      {tasks}  -               10
        """,
        cluster=cluster([node(f"n{at}", sockets=1, cores_per_socket=2, threads_per_core=2) for at in (1, 2)]),
        config={"select": "moab/tasks"},
    )
    assert run.starts("asked") == (starts,)


def test_each_node_that_is_wanted_gets_a_task() -> None:
    """Four tasks on three idle nodes, three of them wanted: two tasks on one, and one on each of the others."""
    run = replay_table(
        """
        job  submit  tasks  min_nodes  run_time
        a         0      4          3        10
        """,
        cluster=cluster([node(f"n{at}", cpus=4) for at in (1, 2, 3)]),
        config={"select": "moab/tasks"},
    )
    assert run.starts("a") == (0.0,)
