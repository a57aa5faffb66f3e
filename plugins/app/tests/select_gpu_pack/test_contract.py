"""The plugin keeps the contract of selectors."""

from __future__ import annotations

from makeway_testing.contracts import SelectContract


class TestContract(SelectContract):
    """The packer."""

    __test__ = True
    plugin = "select/gpu_pack"
