"""Seek no victims: jobs wait for what is free, whatever they may displace (``search/none``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from makeway.errors import Finding
from makeway.hookspecs import hookimpl
from makeway.model import Blocked


@hookimpl
def makeway_search() -> Blocked:
    """Choose no job."""
    return Blocked(detail="no victims are sought (policy.search is search/none)")


@hookimpl
def makeway_check(config: Any) -> Sequence[Finding]:
    """Warn that the preempt policy is without effect."""
    message = f"no victims are sought, so {config.policy.preempt} never displaces a job"
    return [Finding(level="warning", where="policy.search", message=message)]
