"""The plugin keeps the contracts of preempt policies, selectors and readers of configurations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
from hypothesis import strategies as st

from makeway_testing import one_node
from makeway_testing.contracts import (
    ConfigReaderContract,
    GangContract,
    PreemptPolicyContract,
    SelectContract,
)
from makeway_testing.strategies import Scenario, scenarios

SITE = Path(__file__).parent / "site"
PRIORITIES = (0, 0, 10, 150, 200)
LIMITS: tuple[dict[str, str], ...] = (
    *({}, {}, {}),
    {"max_run": "[u:PBS_GENERIC=2]"},
    {"max_run_soft": "[u:PBS_GENERIC=1]"},
    {"max_run_res_soft.ncpus": "[o:PBS_ALL=3]"},
)
ORDERS = ("S", "SCR", "R", "D", "S 50 R", "SC 80 R 20 D", "SCR 80", "CR")
LEVELS = (
    "express_queue, normal_jobs",
    "express_queue, normal_jobs, server_softlimits, queue_softlimits",
    "normal_jobs, express_queue, express_queue+queue_softlimits",
)


@st.composite
def sites(draw: st.DrawFn) -> Scenario:
    """Draw a small site: queues with Priority and limits, and the parameters of preemption."""
    scenario = draw(scenarios([("openpbs/sched", "suspend")], schedulers=("greedy",)))
    names = sorted(scenario.settings["partitions"])  # type: ignore[index]  # drawn flat
    partitions = {
        name: {"attributes": {"Priority": draw(st.sampled_from(PRIORITIES)), **draw(st.sampled_from(LIMITS))}}
        for name in names
    }
    own: dict[str, Any] = {
        "preempt_order": draw(st.sampled_from(ORDERS)),
        "preempt_prio": draw(st.sampled_from(LEVELS)),
        "server": draw(st.sampled_from(LIMITS)),
        "restrict_res_to_release_on_suspend": draw(st.sampled_from(([], ["ncpus"], ["ncpus", "mem"]))),
        "sched_preempt_enforce_resumption": draw(st.booleans()),
        "by_queue": draw(st.booleans()),
        "checkpoint_abort": draw(st.booleans()),
    }
    settings = {
        "preempt": "openpbs/sched",
        "preempt_mode": "suspend",
        "select": "openpbs/vnodes",
        "scheduler": "greedy",
        "clockwork": {"requeue_delay": 1.0},
        "partitions": partitions,
        "settings": {"openpbs/sched": own},
    }
    return attrs.evolve(scenario, settings=settings)


S1 = Scenario.of(
    """
    job  partition  submit  cpus  run_time
    J1   workq           0     1       100
    E1   expressq        5     1        30
    """,
    cluster=one_node(cpus=1),
    config={
        "preempt": "openpbs/sched",
        "preempt_mode": "suspend",
        "select": "openpbs/vnodes",
        "scheduler": "greedy",
        "partitions": {"workq": {}, "expressq": {"attributes": {"Priority": 200}}},
    },
)
"""The first scenario of the description: a job makes way, and goes on."""


class TestContract(PreemptPolicyContract):
    """Sites of all kinds."""

    __test__ = True
    plugin = "openpbs/sched"
    found = (S1,)

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        """Draw sites."""
        return sites()


class TestVnodes(SelectContract):
    """The selector by itself, under the kit's own policies."""

    __test__ = True
    plugin = "openpbs/vnodes"


class TestReader(ConfigReaderContract):
    """A site's sched_config, with what qmgr printed beside it."""

    __test__ = True
    plugin = "reader/openpbs"
    file_name = "sched_config"
    sample = (SITE / "sched_config").read_text()
    beside: ClassVar[Mapping[str, str]] = {"qmgr.txt": (SITE / "qmgr.txt").read_text()}
    strange = "no_such_option"
    strange_lines = "no_such_option: 3 ALL"


class TestArbiter(GangContract):
    """Suspended jobs wait in the queue; none take turns."""

    __test__ = True
    plugin = "openpbs/sched"
    timeslice = None
    found = (S1,)

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        """Draw sites."""
        return sites()
