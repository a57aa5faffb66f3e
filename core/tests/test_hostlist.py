"""Host lists: what Slurm writes, in the order written, and nothing hostile."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makeway.hostlist import MAX_HOSTS, expand_hostlist, fold_hostlist, natural_key


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("n[01-03]", "n01 n02 n03", id="zero padding is kept"),
        pytest.param("n[9-11]", "n9 n10 n11", id="no padding is invented"),
        pytest.param("n3,n1,n2", "n3 n1 n2", id="order as written"),
        pytest.param("n[3,1-2]", "n3 n1 n2", id="order as written inside a bracket"),
        pytest.param("r[2,1]n[1-2]", "r2n1 r2n2 r1n1 r1n2", id="last bracket turns fastest"),
        pytest.param("n[1-2]-ib", "n1-ib n2-ib", id="suffix"),
        pytest.param("a,,b, ", "a b", id="empty items are skipped"),
        pytest.param("a b\tc", "a b c", id="blanks separate"),
        pytest.param("n1,n[1-2],n1", "n1 n2", id="each name once"),
        pytest.param("n[5]", "n5", id="range of one"),
        pytest.param("", "", id="empty"),
    ],
)
def test_expand(text: str, names: str) -> None:
    assert expand_hostlist(text) == names.split()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("n[1-3", "unbalanced '['", id="open bracket"),
        pytest.param("n1]", "unbalanced ']'", id="close bracket"),
        pytest.param("n[]", "'' is not a number", id="empty bracket"),
        pytest.param("n[a-b]", "'a-b' is not a number", id="letters"),
        pytest.param("n[3-1]", "'3-1' runs backwards", id="backwards"),
        pytest.param("n[1-010]", "padding", id="padding differs"),
        pytest.param("n[1-4/2]", "'1-4/2' is not", id="steps are ClusterShell's"),
        pytest.param("n[1-4]!n2", "is not a host name", id="operators are ClusterShell's"),
        pytest.param("@rack", "is not a host name", id="groups are ClusterShell's"),
        pytest.param("n*", "is not a host name", id="wildcards are ClusterShell's"),
        pytest.param("n[1-" + "9" * 5000 + "]", "more than 18 digits", id="endless number"),
    ],
)
def test_malformed_lists_are_named(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"^host list") as caught:
        expand_hostlist(text)

    assert complaint in str(caught.value)
    assert text[:20] in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("n[1-99999999999]", id="one range"),
        pytest.param(f"n[1-{MAX_HOSTS}],m", id="one too many over all items"),
        pytest.param("a[0-999]b[0-999]c[0-999]", id="product"),
    ],
)
def test_hostile_sizes_are_refused_before_expanding(text: str) -> None:
    with pytest.raises(ValueError, match="more than 1,000,000 hosts"):
        expand_hostlist(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        pytest.param("n5 n1 n3 n2", "n[1-3,5]", id="sorted"),
        pytest.param("n09 n10 n08", "n[08-10]", id="padded"),
        pytest.param("r1n1 r1n2 r2n1", "r1n[1-2],r2n1", id="last number only"),
        pytest.param("n1-ib n2-ib login", "login,n[1-2]-ib", id="suffix"),
        pytest.param("n n1 n2", "n,n[1-2]", id="name without a number"),
        pytest.param("n2 n10 n1x", "n1x,n[2,10]", id="groups by first name"),
        pytest.param("n1", "n1", id="one"),
        pytest.param("n1 n1", "n1", id="twice the same"),
        pytest.param("", "", id="none"),
    ],
)
def test_fold(names: str, text: str) -> None:
    assert fold_hostlist(names.split()) == text


def test_fold_refuses_what_is_no_name() -> None:
    with pytest.raises(ValueError, match="'n\\[1' is not a host name"):
        fold_hostlist(["n[1"])


def test_natural_order_counts_digits_as_numbers() -> None:
    names = ["n10", "n2", "n02", "a", "n", "n2a", "n1", "r1n10", "r1n9"]

    assert sorted(names, key=natural_key) == [*("a", "n", "n1", "n2", "n02", "n2a", "n10", "r1n9", "r1n10")]


host_names = st.from_regex(r"[a-z]{0,2}[0-9]{1,4}(-?[a-z][0-9]{0,3})?|[a-z-]{1,4}", fullmatch=True)


@given(st.lists(host_names, max_size=30))
def test_folding_loses_no_name(names: list[str]) -> None:
    assert sorted(expand_hostlist(fold_hostlist(names))) == sorted(set(names))


@given(st.lists(host_names, max_size=30))
def test_natural_order_is_total(names: list[str]) -> None:
    """Two names are equal to the sort only if they are the same."""
    assert len({natural_key(name) for name in names}) == len(set(names))


@given(st.text(alphabet="n19,-[]!@* \n\u0661", max_size=20) | st.text(max_size=20))
def test_any_text_expands_or_is_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        names = expand_hostlist(text)
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("08-12", "08 09 10 11 12"),
        ("0-1", "0 1"),
        ("9-10", "9 10"),
        ("000-002", "000 001 002"),
        ("05", "05"),
        ("00", "00"),
    ],
)
def test_padding_follows_the_first_number(text: str, names: str) -> None:
    """As Slurm expands them; a zero alone pads nothing."""
    assert expand_hostlist(f"n[{text}]") == [f"n{each}" for each in names.split()]
