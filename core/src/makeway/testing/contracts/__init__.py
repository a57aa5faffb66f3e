"""The conformance kit: one contract per kind of plugin, which a plugin's author subclasses.

::

    from makeway.testing.contracts import PreemptPolicyContract

    class TestContract(PreemptPolicyContract):
        __test__ = True
        plugin = "preempt/youngest"

pytest then collects one test per rule. It needs Hypothesis (``pip install 'makeway[testing]'``).

===================== =====================================================================
contract              for plugins that are named under
===================== =====================================================================
PreemptPolicyContract ``policy.preempt``
===================== =====================================================================
"""

from __future__ import annotations

from makeway.testing.contracts.base import Contract, DecisionContract
from makeway.testing.contracts.preempt import PreemptPolicyContract
from makeway.testing.failures import BreachError, Broken, ContractError

__all__ = [
    "BreachError",
    "Broken",
    "Contract",
    "ContractError",
    "DecisionContract",
    "PreemptPolicyContract",
]
