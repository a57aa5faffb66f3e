"""Place one pending job: `placer` leads each `Question` through the rooms `probe`, `order`, `search` and `action`."""

from __future__ import annotations

from makeway.engine.placing.placer import Placer
from makeway.engine.placing.question import Outcome, Question, Room

__all__ = ["Outcome", "Placer", "Question", "Room"]
