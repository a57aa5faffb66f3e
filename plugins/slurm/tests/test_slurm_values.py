"""Values of slurm.conf: what Slurm takes them for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makeway_slurm.readers import values

DAY = 86400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("5", 300, id="m"),
        pytest.param("5:30", 330, id="m:s"),
        pytest.param("90:00", 5400, id="m:s over an hour"),
        pytest.param("1:02:03", 3723, id="h:m:s"),
        pytest.param("00:00:10", 10, id="h:m:s with zeros"),
        pytest.param("2-3", 2 * DAY + 3 * 3600, id="d-h"),
        pytest.param("2-3:04", 2 * DAY + 3 * 3600 + 240, id="d-h:m"),
        pytest.param("2-3:04:05", 2 * DAY + 3 * 3600 + 245, id="d-h:m:s"),
        pytest.param("0", 0, id="zero"),
        pytest.param("infinite", None, id="INFINITE"),
        pytest.param("UNLIMITED", None, id="UNLIMITED"),
        pytest.param("-1", None, id="-1"),
    ],
)
def test_time(text: str, seconds: int | None) -> None:
    """Section 1.6."""
    assert values.parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "abc", "-2", "1:2:3:4", "1-", "1:", "1.5", " 5", "5m", "٣"])
def test_bad_time(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time: minutes"):
        values.parse_time(text)


@pytest.mark.parametrize(
    ("text", "answer"), [("YES", True), ("no", False), ("1", True), ("0", False), ("up", True)]
)
def test_yes_no(text: str, answer: bool) -> None:
    assert values.parse_yes_no(text) is answer


def test_yes_no_allows_nothing_else() -> None:
    with pytest.raises(ValueError, match="got 'maybe'; allowed: YES, NO, 1, 0"):
        values.parse_yes_no("maybe")


def test_count_has_limits() -> None:
    assert values.parse_count("65533", most=65533) == 65533
    with pytest.raises(ValueError, match="got '65534'; expected a whole number from 0 to 65533"):
        values.parse_count("65534", most=65533)
    with pytest.raises(ValueError, match="got '-1'; expected a whole number, 0 or more"):
        values.parse_count("-1")


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [
        ("24000", 24000),
        ("16G", 16384),
        ("2t", 2 * 2**20),
        ("512M", 512),
        ("2048K", 2),
        ("1K", 1),
        ("1GB", 1024),
    ],
)
def test_memory(text: str, megabytes: int) -> None:
    assert values.parse_mem_mb(text) == megabytes


@pytest.mark.parametrize("text", ["", "G", "1.5G", "-1", "16X", "16 G"])
def test_bad_memory(text: str) -> None:
    with pytest.raises(ValueError, match="expected megabytes"):
        values.parse_mem_mb(text)


@pytest.mark.parametrize(
    ("text", "mode", "count", "reported"),
    [
        pytest.param("NO", "NO", 1, False, id="NO"),
        pytest.param("exclusive", "EXCLUSIVE", 0, False, id="EXCLUSIVE shares with none"),
        pytest.param("YES", "YES", 4, False, id="YES is YES:4"),
        pytest.param("yes:2", "YES", 2, False, id="YES:2"),
        pytest.param("YES:1", "NO", 1, True, id="YES:1 is NO"),
        pytest.param("FORCE", "FORCE", 4, False, id="FORCE is FORCE:4"),
        pytest.param("FORCE:1", "FORCE", 1, False, id="FORCE:1 stays forced"),
        pytest.param("FORCE:0", "NO", 1, True, id="FORCE:0 is NO"),
        pytest.param("FORCE:-3", "NO", 1, True, id="negative is NO"),
    ],
)
def test_oversubscribe(text: str, mode: str, count: int, reported: bool) -> None:
    """Section 6.3."""
    notes: list[str] = []

    assert values.parse_oversubscribe(text, notes.append) == (mode, count)
    assert bool(notes) is reported


@pytest.mark.parametrize("text", ["", "FORCES", "YES:", "YES:x", "NO:2", "EXCLUSIVE:1", " YES"])
def test_bad_oversubscribe(text: str) -> None:
    with pytest.raises(ValueError, match="allowed: NO, EXCLUSIVE, YES"):
        values.parse_oversubscribe(text)


@pytest.mark.parametrize(
    ("text", "action", "flags"),
    [
        pytest.param("OFF", "off", set(), id="OFF"),
        pytest.param("cluster", "off", set(), id="CLUSTER is OFF"),
        pytest.param("ON", "suspend", set(), id="ON is SUSPEND"),
        pytest.param("SUSPEND,GANG", "suspend", {"gang"}, id="SUSPEND,GANG"),
        pytest.param("gang,requeue", "requeue", {"gang"}, id="flags may come first"),
        pytest.param("CANCEL,WITHIN,PRIORITY", "cancel", {"within", "priority"}, id="two flags"),
        pytest.param("GANG", None, {"gang"}, id="flag only"),
        pytest.param("WITHIN,PRIORITY", None, {"within", "priority"}, id="flags only"),
        pytest.param("GANG,GANG", None, {"gang"}, id="flag twice"),
    ],
)
def test_preempt_mode(text: str, action: str | None, flags: set[str]) -> None:
    """Section 6.1."""
    assert values.parse_preempt_mode(text) == (action, frozenset(flags))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("REQUEUE,CANCEL", "one action at most", id="two actions"),
        pytest.param("CANCEL,CANCEL", "one action at most", id="one action twice"),
        pytest.param("OFF,CANCEL", "one action at most", id="OFF is an action"),
        pytest.param("GANG,WITHIN,CANCEL", "GANG cannot stand with WITHIN", id="GANG,WITHIN"),
        pytest.param("GANG,PRIORITY", "GANG cannot stand with PRIORITY", id="GANG,PRIORITY"),
        pytest.param("SUSPEND, GANG", "allows no blanks", id="blank"),
        pytest.param("CHECKPOINT", "Slurm 20.02 dropped CHECKPOINT", id="CHECKPOINT"),
        pytest.param("CANCLE", "did you mean 'CANCEL'?", id="unknown"),
        pytest.param("", "got ''; allowed: OFF", id="empty"),
        pytest.param("SUSPEND,", "got ''; allowed: OFF", id="empty word"),
    ],
)
def test_bad_preempt_mode(text: str, complaint: str) -> None:
    """Sections 6.1 and S59."""
    with pytest.raises(ValueError, match=r"^got ") as caught:
        values.parse_preempt_mode(text)

    assert complaint in str(caught.value)


def test_licenses() -> None:
    assert values.parse_licenses("a:2,b, c@srv:3,a") == {"a": 3, "b": 1, "c@srv": 3}
    assert values.parse_licenses("") == {}


def test_licenses_as_22_05_8_takes_them() -> None:
    """`scontrol show license` lists three: the asterisk is no count, the semicolon separates."""
    assert values.parse_licenses("a*4,b:2;c") == {"a*4": 1, "b": 2, "c": 1}


@pytest.mark.parametrize("text", ["a:", ":2", "a:x", "a b", "a|b", "a:1:2", "a@"])
def test_bad_licenses(text: str) -> None:
    with pytest.raises(ValueError, match="expected name, name:count"):
        values.parse_licenses(text)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        pytest.param(
            "gpu:4,gpu:tesla:2,fast:1(S:0)",
            {"gpu": 6, "gpu:tesla": 2, "fast": 1},
            id="types are summed and kept",
        ),
        pytest.param("gpu", {"gpu": 1}, id="one if not said"),
        pytest.param("gpu:a100", {"gpu": 1, "gpu:a100": 1}, id="type alone"),
        pytest.param("gpu:a100:2(IDX:0,3)", {"gpu": 2, "gpu:a100": 2}, id="comma in parentheses"),
        pytest.param("gpu:1080:2", {"gpu": 2, "gpu:1080": 2}, id="type of digits"),
        pytest.param(
            "bandwidth:lustre:no_consume:4K",
            {"bandwidth": 4096, "bandwidth:lustre": 4096},
            id="no_consume and suffix",
        ),
        pytest.param("gpu:0", {"gpu": 0}, id="none of them"),
        pytest.param("", {}, id="empty"),
    ],
)
def test_gres(text: str, counts: dict[str, int]) -> None:
    assert values.parse_gres(text) == counts


@pytest.mark.parametrize("text", ["gpu:", ":2", "gpu:a:b:2", "gpu(S:0", "gpu:4:tesla", "g pu", "no consume"])
def test_bad_gres(text: str) -> None:
    with pytest.raises(ValueError, match="expected name, name:count"):
        values.parse_gres(text)


@pytest.mark.parametrize(
    ("text", "known", "unknown", "reports"),
    [
        pytest.param(
            "reorder_count=3,STRICT_ORDER,min_exempt_priority=100",
            {"reorder_count": 3, "strict_order": True, "min_exempt_priority": 100},
            [],
            0,
            id="known",
        ),
        pytest.param("suspend_grace_time=5", {"suspend_grace_time": 5}, [], 0, id="number"),
        pytest.param("suspend_grace_time=x", {"suspend_grace_time": 2}, [], 1, id="bad: 2 s"),
        pytest.param("reorder_count=-1", {"reorder_count": 1}, [], 1, id="negative: 1"),
        pytest.param("reorder_count=abc", {"reorder_count": 0}, [], 1, id="text: 0"),
        pytest.param("youngest", {}, ["youngest"], 0, id="unknown"),
        pytest.param("preempt_youngest_first", {"youngest_first": True}, [], 1, id="found inside a word"),
        pytest.param("preempt_reorder_count=2", {"reorder_count": 2}, [], 1, id="number inside a word"),
        pytest.param("strict_order=no", {"strict_order": True}, [], 1, id="on whatever follows"),
        pytest.param("reorder_count=2,reorder_count=3", {"reorder_count": 2}, [], 1, id="first one counts"),
        pytest.param(" youngest_first , ,", {"youngest_first": True}, [], 0, id="blanks"),
        pytest.param("", {}, [], 0, id="empty"),
    ],
)
def test_preempt_parameters(text: str, known: dict[str, int], unknown: list[str], reports: int) -> None:
    """Section 6.5."""
    notes: list[str] = []

    assert values.parse_preempt_parameters(text, notes.append) == (known, unknown)
    assert len(notes) == reports


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5"])
def test_min_exempt_priority_must_be_a_number(value: str) -> None:
    with pytest.raises(ValueError, match=r"^min_exempt_priority: got"):
        values.parse_preempt_parameters(f"youngest_first,min_exempt_priority={value}")


def test_scheduler_parameters() -> None:
    text = "bf_interval=30,bf_continue,preempt_reorder_count=2,sched_interval=-1,bf_new=7,Defer"

    assert values.parse_scheduler_parameters(text) == (
        {
            "bf_interval": 30,
            "bf_continue": True,
            "preempt_reorder_count": 2,
            "sched_interval": -1,
            "defer": True,
        },
        ["bf_new=7"],
    )


@pytest.mark.parametrize(("text", "number"), [("soon", 0), ("30s", 30), ("", 0), ("-5", -5), ("12", 12)])
def test_numbers_of_scheduler_parameters_are_read_as_c_does(text: str, number: int) -> None:
    """22.05.8 starts with all of these; what is not as written is reported."""
    reports: list[str] = []
    known, _ = values.parse_scheduler_parameters(f"bf_interval={text}", reports.append)
    assert known == {"bf_interval": number}
    assert bool(reports) is (text != str(number))


PARSERS: list[Callable[[str], object]] = [
    values.parse_time,
    values.parse_yes_no,
    values.parse_count,
    values.parse_mem_mb,
    values.parse_oversubscribe,
    values.parse_preempt_mode,
    values.parse_licenses,
    values.parse_gres,
    values.parse_preempt_parameters,
    values.parse_scheduler_parameters,
]


@pytest.mark.parametrize("parse", PARSERS)
@given(text=st.text(max_size=30) | st.text(alphabet="gpuFORCE:,-=()@19_KM", max_size=30))
def test_any_text_is_a_value_or_a_value_error(parse: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(ValueError):
        parse(text)
