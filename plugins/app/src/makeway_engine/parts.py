"""Name the parts of a run for those who work on all of them; the engine has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from makeway.clockwork import Clockwork
from makeway.config import Config
from makeway.model import Gang, Job, Selector
from makeway.record import Recorder
from makeway.registry import Policies
from makeway_engine.deeds import Deeds
from makeway_engine.in_use import InUse
from makeway_engine.ledger import Ledger
from makeway_engine.making_way import MakingWay
from makeway_engine.placing import Placer
from makeway_engine.queue import Queue
from makeway_engine.reports import Reports
from makeway_engine.schedulers import Schedulers
from makeway_engine.submission import Submission
from makeway_engine.transitions import Transitions
from makeway_engine.vacating import Vacating


class Parts(Protocol):
    """A run, part by part. See `makeway_engine.engine.Engine`."""

    config: Config
    clockwork: Clockwork
    recorder: Recorder
    policies: Policies
    deeds: Deeds | None
    ledger: Ledger
    selector: Selector
    gang: Gang | None
    queue: Queue
    transitions: Transitions
    making_way: MakingWay
    placer: Placer
    schedulers: Schedulers
    reports: Reports
    in_use: InUse
    vacating: Vacating
    submission: Submission

    def memory(self) -> dict[str, Any]:
        """Return when passes are due, and the like; for `save`."""

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""

    def wake_up(self, pending: Iterable[Job]) -> None:
        """Let a pass be made in the next step, and see which of the jobs that wait already wait for good."""
