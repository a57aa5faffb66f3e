"""Name things as Kueue does (kueue 1, 8.1)."""

from __future__ import annotations

from makeway.model import Vocabulary

WORDS = Vocabulary(
    states={
        "PENDING": "Pending",
        "PENDING and held": "Inactive",
        "RUNNING": "Admitted",
        "COMPLETING": "Evicted",
        "COMPLETED": "Finished",
        "FAILED": "Finished",
        "CANCELLED": "Finished",
        "PREEMPTED": "Evicted",
        "TIMEOUT": "Finished",
        "OUT_OF_MEMORY": "Finished",
    },
    nouns={"partition": "queue"},
)
