"""The plugin keeps the contracts of preempt policies and of readers of configurations."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from makeway.config import Config
from makeway_testing.contracts import ConfigReaderContract, PreemptPolicyContract
from makeway_testing.strategies import Scenario, scenarios

LINES = (
    *("PREEMPTIVE PREEMPTABLE", "PREEMPTIVE PREEMPTABLE", "PREEMPTIVE PREEMPTABLE"),
    *("PREEMPTIVE", "PREEMPTABLE", "PREEMPTIVE[a+1 b]"),
)
PREEMPT_FOR = ("", "MINI_JOB", "OPTIMAL_MINI_JOB", "LEAST_RUN_TIME")


@st.composite
def sites(draw: st.DrawFn, words: tuple[str, ...] = PREEMPT_FOR) -> Scenario:
    """Draw a small site: queues with a PREEMPTION line, and what jobs are preempted for."""
    scenario = draw(scenarios([("lsf/queue", "suspend")], schedulers=("greedy",)))
    assert not isinstance(scenario.settings, Config)
    names = sorted(scenario.settings["partitions"])
    partitions = {
        name: {"priority_tier": 10 * (at + 1), "attributes": {"PREEMPTION": draw(st.sampled_from(LINES))}}
        for at, name in enumerate(names)
    }
    chosen = draw(st.sampled_from(words))
    own: dict[str, Any] = {"params": {"PREEMPT_FOR": chosen}} if chosen else {}
    settings = {
        "preempt": "lsf/queue",
        "preempt_mode": "suspend",
        "select": "select/cons_tres",
        "select_parameters": "CR_Core",
        "scheduler": "greedy",
        "clockwork": {"requeue_delay": 1.0},
        "partitions": partitions,
        "settings": {"lsf/queue": own},
    }
    return Scenario(machine=scenario.machine, settings=settings, specs=scenario.specs)


class TestContract(PreemptPolicyContract):
    """Queues that preempt one another."""

    __test__ = True
    plugin = "lsf/queue"

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        """Draw sites of all kinds."""
        return sites()


class TestMiniJob(PreemptPolicyContract):
    """MINI_JOB promises the fewest jobs, so none is needless."""

    __test__ = True
    plugin = "lsf/queue"
    minimal = True

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        """Draw sites that ask for the fewest jobs."""
        return sites(("MINI_JOB", "OPTIMAL_MINI_JOB"))


class TestReader(ConfigReaderContract):
    """A site's ``lsb.queues``."""

    __test__ = True
    plugin = "reader/lsf"
    file_name = "lsb.queues"
    sample = """\
Begin Queue
QUEUE_NAME = short
PRIORITY = 70
PREEMPTION = PREEMPTIVE[normal]
End Queue

Begin Queue
QUEUE_NAME = normal
PRIORITY = 30
PREEMPTION = PREEMPTABLE
End Queue
"""
    nodes = ({"name": "h[1-2]", "cpus": 4},)
    strange = "NO_SUCH_KEY"
    strange_lines = "Begin Queue\nQUEUE_NAME = odd\nNO_SUCH_KEY = 3\nEnd Queue"
