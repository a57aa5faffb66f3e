"""Ids of a workload, remembered in little memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from makeway.readers.seen import Seen

ODD = ["07", "7", "+7", "7_1", "", "\N{SUPERSCRIPT TWO}", "9" * 18, "9" * 19]
IDS = st.one_of(st.integers(0, 30).map(str), st.sampled_from(ODD))


@given(st.lists(IDS))
def test_it_is_a_set(ids: list[str]) -> None:
    """In whatever order they come, and however they are written."""
    seen, plain = Seen(), set[str]()
    for each in ids:
        assert (each in seen) == (each in plain)
        if each not in plain:
            seen.add(each)
            plain.add(each)


@given(st.lists(IDS))
def test_adding_tells_whether_it_was_there(ids: list[str]) -> None:
    """As asking before would."""
    seen, plain = Seen(), set[str]()
    for each in ids:
        assert seen.is_new(each) == (each not in plain)
        plain.add(each)
        assert all(known in seen for known in plain)
