"""The plugin keeps the contract of selectors."""

from __future__ import annotations

from makeway_testing.contracts import SelectContract


class TestContractOfCores(SelectContract):
    """Cores."""

    __test__ = True
    plugin = "select/cons_tres"
    parameters = ("CR_Core",)


class TestContractOfCoresAndMemory(SelectContract):
    """Cores and memory."""

    __test__ = True
    plugin = "select/cons_tres"
    parameters = ("CR_Core_Memory",)
