"""Read where something changed, each reader at its own time."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from makeway_lsf_queue import changes
from makeway_lsf_queue.changes import Changes


def test_a_reader_sees_what_changed_since_it_read_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, or everything once it has been away for too long."""
    monkeypatch.setattr(changes, "_MOST", 20)
    chance, known = Random(1), Changes()
    added: list[int] = []
    readers = [-1, 0, 0, 0]
    seen = Counter[str]()
    for _ in range(500):
        bits = 1 << chance.randrange(50)
        added.append(bits)
        known.add(bits)
        at = chance.randrange(len(readers))
        if chance.random() < 0.3:
            expected = 0
            for each in added[max(0, readers[at]) :]:
                expected |= each
            found = known.since(readers[at])
            seen["everything" if found == -1 else "what changed"] += 1
            assert found in (expected, -1)
            assert found == expected or len(added) - readers[at] > 1
            readers[at] = known.end
            assert known.since(readers[at]) == 0
    assert min(seen["everything"], seen["what changed"]) > 20


def test_who_has_never_read_looks_at_everything() -> None:
    """Even if nothing has changed."""
    assert Changes().since(-1) == -1
    assert Changes().since(0) == 0
