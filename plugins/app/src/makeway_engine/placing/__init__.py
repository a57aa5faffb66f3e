"""Place one pending job: `placer` leads each `Question` through the rooms `probe`, `order`, `search` and `action`."""

from __future__ import annotations

from makeway_engine.placing.placer import Placer
from makeway_engine.placing.question import Outcome, Question, Room

__all__ = ["Outcome", "Placer", "Question", "Room"]
