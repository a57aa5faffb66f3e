"""The search that comes with makeway keeps the contract of search strategies."""

from __future__ import annotations

from makeway_testing.contracts import SearchContract


class TestLeastDisruption(SearchContract):
    """It promises the fewest victims, so none is needless."""

    __test__ = True
    plugin = "search/least_disruption"
    minimal = True
