"""RES_REQ: sections, expressions, and what is not known."""

from __future__ import annotations

import pytest

from makeway.model import Node
from makeway_lsf_queue.requirement import Host, alike_hosts, requirement
from makeway_lsf_queue.values import WrongValueError

NODE = Node(
    name="h1.site", index=0, cpus=8, memory_mb=16000, features=frozenset(("big", "os=linux")), gres={"gpu": 2}
)
KNOWN = frozenset(("big", "fast", "os=linux"))


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
        ("os==linux", True),
        ("os!=linux || fast", False),
        ("os==aix", False),
    ],
)
def test_what_a_host_is_asked(text: str, verdict: bool | None) -> None:
    """Names of features, comparisons, and load indices, of which nothing can be said."""
    select = requirement(text).select
    assert select is not None
    assert select(Host(NODE, KNOWN)) is verdict


def test_the_other_sections() -> None:
    """Hosts, slots on each, memory in MB or with a unit, amounts, an order; the rest is named."""
    found = requirement(
        "rusage[mem=2G,lic=1:duration=5] span[hosts=1] order[-slots:ut:ncpus] same[model] cu[type=r]"
    )
    assert (found.one_host, found.tile, found.memory_mb) == (True, None, 2048)
    assert found.order == (("slots", True), ("ncpus", False))
    assert (found.same, found.amounts) == (("model",), {"lic": 1.0})
    assert found.idle == ("cu[type=r]", "order[ut]", "rusage[duration=5]")
    assert requirement("rusage[mem=500]").memory_mb == 500
    assert requirement("span[ptile=4]").tile == 4
    assert requirement("span[ptile='!']").idle == ("span[ptile='!']",)
    assert requirement("span[block=4]").idle == ("span[block=4]",)
    assert requirement("{select[big]} || {select[fast]}").idle == ("{select[big]} || {select[fast]}",)


@pytest.mark.parametrize(
    ("queue", "own", "one_host", "tile", "order", "amounts"),
    [
        pytest.param(
            "span[hosts=1]", "order[slots]", True, None, ("slots",), {}, id="the queue's span stays"
        ),
        pytest.param("span[hosts=1]", "span[ptile=2]", False, 2, (), {}, id="the job's span replaces it"),
        pytest.param("span[hosts=1]", "span[hosts=-1]", False, None, (), {}, id="or takes it away"),
        pytest.param("order[ncpus]", "order[slots]", False, None, ("slots",), {}, id="so does its order"),
        pytest.param("order[ncpus]", "order[r1m]", False, None, (), {}, id="known or not"),
        pytest.param(
            "rusage[a=1,b=1]", "rusage[b=2]", False, None, (), {"a": 1, "b": 2}, id="amounts are merged"
        ),
    ],
)
def test_a_job_in_its_queue(
    queue: str,
    own: str,
    one_host: bool,
    tile: int | None,
    order: tuple[str, ...],
    amounts: dict[str, float],
) -> None:
    """IBM: span and order of the queue count where the job has none; of rusage the job's own value counts."""
    found = requirement(own).beside(requirement(queue))
    assert (found.one_host, found.tile) == (one_host, tile)
    assert tuple(name for name, _ in found.order) == order
    assert found.amounts == amounts


@pytest.mark.parametrize(
    ("names", "hosts", "features", "idle"),
    [
        pytest.param(("os",), (("os=a",), ("os=b",), ("os=a",)), "[os=a|os=b]", [], id="two values"),
        pytest.param(("os",), (("os=a",), ("os=a", "big")), "", [], id="all alike"),
        pytest.param(
            ("os", "cpu"), (("os=a",), ("os=b",)), "[os=a|os=b]", ["cpu"], id="one that no host has"
        ),
        pytest.param(("os",), (("os=a",), ("big",)), "", ["os"], id="not every host has it"),
        pytest.param(
            ("os", "cpu"),
            (("os=a", "cpu=x"), ("os=a", "cpu=y")),
            "[os=a&cpu=x|os=a&cpu=y]",
            [],
            id="both have to be alike",
        ),
    ],
)
def test_hosts_that_are_the_same(
    names: tuple[str, ...], hosts: tuple[tuple[str, ...], ...], features: str, idle: list[str]
) -> None:
    """same[a:b] on hosts that always have both: one value of a and one of b."""
    assert alike_hosts(names, hosts) == (features, idle)


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
