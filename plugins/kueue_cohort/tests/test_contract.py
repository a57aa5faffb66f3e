"""The plugin keeps the contracts of preempt policies and of readers of configurations."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import strategies as st

from makeway.config import Config
from makeway_testing import cluster
from makeway_testing.contracts import ConfigReaderContract, PreemptPolicyContract
from makeway_testing.strategies import Scenario, scenarios

NAME = "kueue/cohort"
WITHIN = ("Never", "LowerPriority", "LowerOrNewerEqualPriority")


def _queue(name: str, cohort: str) -> dict[str, Any]:
    return {
        "name": name,
        "cohort": cohort,
        "quotas": [{"flavor": "all", "resource": "cpu", "nominal": 1}],
        "within_queue": "LowerOrNewerEqualPriority",
        "reclaim": "LowerPriority",
        "borrow": "LowerPriority",
    }


ENDED_IN_TIME = Scenario.of(
    """
    job  user  partition  submit  nodes  run_time  begin  depends_on  oversubscribe  requeue  time_limit
    j1   -     a          0       1      20        -      -           -              -        -
    j3   -     b          0       1      60        -      j1          -              -        55
    j4   -     b,a        0       2      0         -      j3          -              -        -
    j8   ann   b          60      2      5         75     -           true           false    -
    """,
    cluster=cluster(4, cpus=1),
    config={
        "partitions": {"a": {}, "b": {}},
        "preempt": NAME,
        "scheduler": "greedy",
        "settings": {
            NAME: {
                "queue": [_queue("a", "root"), _queue("b", "one")],
                "cohort": [
                    {"name": "one", "parent": "root"},
                    {"name": "root", "quotas": [{"flavor": "all", "resource": "cpu", "nominal": 1}]},
                ],
            }
        },
    },
)
"""j4 displaces j8 in one queue, then starts and ends in the other while nodes are still kept for it."""


@st.composite
def sites(draw: st.DrawFn) -> Scenario:
    """Draw queues that stand for the partitions: flat or in a tree, classic or fair."""
    scenario = draw(scenarios([(NAME, "requeue")], schedulers=("greedy",)))
    assert not isinstance(scenario.settings, Config)
    names = sorted(scenario.settings["partitions"])
    queues = [
        {
            "name": name,
            "cohort": draw(st.sampled_from(("one", "root"))),
            "quotas": [{"flavor": "all", "resource": "cpu", "nominal": draw(st.integers(0, 2))}],
            "within_queue": draw(st.sampled_from(WITHIN)),
            "reclaim": draw(st.sampled_from(("Any", "Any", "LowerPriority"))),
            "borrow": draw(st.sampled_from(("Never", "LowerPriority"))),
        }
        for name in names
    ]
    root = [{"flavor": "all", "resource": "cpu", "nominal": 1}]
    own: dict[str, Any] = {
        "queue": queues,
        "cohort": [{"name": "one", "parent": "root"}, {"name": "root", "quotas": root}],
        "sharing": draw(st.sampled_from(("classic", "fair"))),
    }
    settings = {
        **{key: scenario.settings[key] for key in ("partitions",)},
        "preempt": NAME,
        "preempt_mode": "requeue",
        "select": "select/cons_tres",
        "select_parameters": "CR_Core",
        "scheduler": "greedy",
        "clockwork": {"requeue_delay": 1.0},
        "settings": {NAME: own},
    }
    # A job of Kueue names one queue; makeway tries one that names two in both.
    specs = tuple(attrs.evolve(spec, partitions=spec.partitions[:2]) for spec in scenario.specs)
    return Scenario(machine=scenario.machine, settings=settings, specs=specs)


class TestContract(PreemptPolicyContract):
    """Queues that lend and borrow."""

    __test__ = True
    plugin = NAME
    found = (ENDED_IN_TIME,)

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        """Draw sites of all kinds."""
        return sites()


class TestReader(ConfigReaderContract):
    """A site's manifests."""

    __test__ = True
    plugin = "reader/kueue"
    file_name = "kueue.yaml"
    sample = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: team
spec:
  cohortName: all
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: default
      resources:
      - name: cpu
        nominalQuota: 8
"""
    strange = "noSuchKey"
    strange_lines = "  noSuchKey: 3"
