"""The plugin keeps the contract of vetoes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from makeway.testing.contracts import ProtectContract


class TestContract(ProtectContract):
    """Hours that open and close during the runs, some users, and the last minute."""

    __test__ = True
    plugin = "protect/calendar"
    settings: ClassVar[Mapping[str, Any]] = {
        "start": "2026-03-02T07:59:30",
        "last_minutes": 1.0,
        "rule": [
            {"name": "a minute", "users": ["*"], "hours": ["08:00-08:01"]},
            {"name": "one job", "jobs": ["2"]},
        ],
    }
