"""RES_REQ: sections, expressions, and what is not known."""

from __future__ import annotations

import pytest

from makeway.model import Node
from makeway_lsf_queue.requirement import Host, requirement
from makeway_lsf_queue.values import WrongValueError

NODE = Node(name="h1.site", index=0, cpus=8, memory_mb=16000, features=frozenset(("big",)), gres={"gpu": 2})
KNOWN = frozenset(("big", "fast"))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("big", True),
        ("fast", False),
        ("!fast && big", True),
        ("fast || ncpus>=8", True),
        ("select[hname==h1] order[r15s:pg]", True),
        ("select[hname!=h1.site]", False),
        ("(fast || maxmem > 8000) && ngpus==2", True),
        ("mem>1000", None),
        ("mem>1000 && fast", False),
        ("mem>1000 || big", True),
        ("select[defined(fast)]", False),
        ('"select[type==any] span[hosts=1]"', True),
        ("type==LINUX", None),
        ("big==1 && fast==0", True),
    ],
)
def test_what_a_host_is_asked(text: str, verdict: bool | None) -> None:
    """Names of features, comparisons, and load indices, of which nobody can say."""
    select = requirement(text).select
    assert select is not None
    assert select(Host(NODE, KNOWN)) is verdict


def test_the_other_sections() -> None:
    """One host; memory in MB, or with a unit; the rest is named."""
    found = requirement("rusage[mem=2G,lic=1:duration=5] span[hosts=1] order[slots] same[model]")
    assert (found.one_host, found.memory_mb) == (True, 2048)
    assert found.idle == ("order[slots]", "same[model]", "rusage[lic=1]", "rusage[duration=5]")
    assert requirement("rusage[mem=500]").memory_mb == 500
    assert requirement("span[ptile=4]").idle == ("span[ptile=4]",)
    assert requirement("{select[big]} || {select[fast]}").idle == ("{select[big]} || {select[fast]}",)


@pytest.mark.parametrize(
    "text", ["select[big", "select[big &&]", "selec[big]", "order[ut] big", "select[(big]", "a ? b"]
)
def test_what_is_no_requirement(text: str) -> None:
    """It is said, with what is allowed."""
    with pytest.raises(WrongValueError):
        requirement(text)


@pytest.mark.parametrize(
    "text", ["(" * 3000 + "big" + ")" * 3000, "!" * 5000 + "big", "select[" + "(" * 60 + "big]"]
)
def test_what_is_nested_too_deep(text: str) -> None:
    """It is refused in a line."""
    with pytest.raises(WrongValueError, match="more than 50 conditions within one another") as told:
        requirement(text)
    assert len(str(told.value)) < 200


def test_long_expressions_and_numbers() -> None:
    """Ten thousand names in a row are read; a number of five thousand digits is no memory."""
    select = requirement(" || ".join(["fast"] * 10_000)).select
    assert select is not None
    assert select(Host(NODE, KNOWN)) is False
    assert requirement(f"rusage[mem={'9' * 5000}]").memory_mb is None
