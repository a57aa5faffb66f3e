"""The conformance kit: one contract per kind of plugin, which a plugin's author subclasses.

::

    from makeway_testing.contracts import PreemptPolicyContract

    class TestContract(PreemptPolicyContract):
        __test__ = True
        plugin = "preempt/youngest"

pytest then collects one test per rule. It needs Hypothesis (``pip install 'makeway[dev]'``).

====================== ====================================================================
contract               for
====================== ====================================================================
PreemptPolicyContract  what may be displaced: plugins named under ``policy.preempt``
ActionContract         how victims make way (``makeway_preempt_action``): ``policy.plugins``
SelectContract         nodes and cores: ``policy.select``
GangContract           turns on shared resources: ``policy.gang``
PriorityContract       what is tried first: ``policy.priority``
SearchContract         which candidates are taken: ``policy.search``
ProtectContract        vetoes: ``policy.protect``
WorkloadReaderContract readers of traces (``Dialect.workloads``)
ConfigReaderContract   readers of foreign configurations (``Dialect.configs``)
WorldContract          worlds: ``[world] name`` (``makeway_world``)
====================== ====================================================================
"""

from __future__ import annotations

from makeway_testing.contracts.action import ActionContract
from makeway_testing.contracts.base import Contract
from makeway_testing.contracts.decision import DecisionContract
from makeway_testing.contracts.gang import GangContract
from makeway_testing.contracts.preempt import PreemptPolicyContract
from makeway_testing.contracts.priority import PriorityContract
from makeway_testing.contracts.protect import ProtectContract
from makeway_testing.contracts.reader import ConfigReaderContract, ReaderContract, WorkloadReaderContract
from makeway_testing.contracts.search import SearchContract
from makeway_testing.contracts.select import SelectContract
from makeway_testing.contracts.world import WorldContract
from makeway_testing.failures import BreachError, Broken, ContractError

__all__ = [
    "ActionContract",
    "BreachError",
    "Broken",
    "ConfigReaderContract",
    "Contract",
    "ContractError",
    "DecisionContract",
    "GangContract",
    "PreemptPolicyContract",
    "PriorityContract",
    "ProtectContract",
    "ReaderContract",
    "SearchContract",
    "SelectContract",
    "WorkloadReaderContract",
    "WorldContract",
]
