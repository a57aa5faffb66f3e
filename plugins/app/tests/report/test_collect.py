"""What is made of a record before it is drawn: places, lanes, lost work, curves, sentences, sums."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from makeway_report import collect as collecting
from makeway_report.collect import collect
from makeway_report.columns import Packer
from makeway_report.curves import Curves, slowdown
from makeway_report.figures import FIGURES, figures_of, rows
from makeway_report.lost import starts
from makeway_report.places import WHOLE, Places, lanes
from makeway_report.record_file import read_record
from makeway_report.rest import STEPS, Rest
from makeway_report.sentences import told

CLUSTER = {"nodes": [{"names": "a[1-2]", "count": 2, "cpus": 4}, {"names": "b[1-3]", "count": 3, "cpus": 8}]}


def place(places: Places, nodes: str, **cpus: str) -> tuple[Any, ...]:
    """Return the rectangles of an interval."""
    return places.places[places.number({"nodes": nodes, "cpus": cpus})].ranges


def numbers(raw: bytes, at: list[int]) -> list[int]:
    """Unpack a column, as the page does."""
    offset, count, width, delta = at
    planes = [raw[offset + plane * count : offset + (plane + 1) * count] for plane in range(width)]
    codes = (sum(planes[plane][i] << 8 * plane for plane in range(width)) for i in range(count))
    found: list[int] = []
    for code in codes:
        value = -(code + 1) // 2 if code % 2 else code // 2
        found.append(value + (found[-1] if delta and found else 0))
    return found


# ------------------------------------------------------------------------------------------ columns
@pytest.mark.parametrize(
    "values", [[], [0], [1, -1, 127, -128], [3, 300, 70_000, 5_000_000_000, -5_000_000_000]]
)
@pytest.mark.parametrize("delta", [True, False])
def test_numbers_come_back(values: list[int], delta: bool) -> None:
    """Of one byte and of eight, negative ones too."""
    packer = Packer()
    packer.words("before", ["x"])
    packer.numbers("n", values, delta=delta)
    index, text = packer.packed()
    assert numbers(zlib.decompress(base64.b64decode(text)), index["n"]) == values


# ------------------------------------------------------------------------------------------- places
def test_neighbours_are_one_rectangle() -> None:
    """Whole nodes, whatever their sizes; a gap begins another."""
    places = Places(CLUSTER)
    assert place(places, "a[1-2],b1", a1="0-3", a2="0-3", b1="0-7") == ((0, 3, 0, WHOLE),)
    assert place(places, "a1,b1", a1="0-3", b1="0-7") == ((0, 1, 0, WHOLE), (2, 1, 0, WHOLE))


def test_lanes_are_the_numbers_of_the_cpus() -> None:
    """The second half of a node is its lower half; CPUs apart are lanes apart."""
    places = Places(CLUSTER)
    assert place(places, "a1", a1="2-3") == ((0, 1, WHOLE // 2, WHOLE // 2),)
    assert place(places, "b[1-2]", b1="0,4-7", b2="0,4-7") == (
        (2, 2, 0, WHOLE // 8),
        (2, 2, WHOLE // 2, WHOLE // 2),
    )


def test_jobs_on_the_same_cpus_lie_beside_one_another() -> None:
    """Two at once have a half each; what was there before alone, and elsewhere, keeps all."""
    places = Places(CLUSTER)
    one, other = (places.number({"nodes": node, "cpus": {node: "0-3"}}) for node in ("a1", "a2"))
    found = lanes([(0, 10, one), (10, 30, one), (12, 20, other), (20, 40, one)], places)
    shown = [places.places[number].ranges[0] for number in found]
    assert shown == [
        (0, 1, 0, WHOLE),
        (0, 1, 0, WHOLE // 2),
        (1, 1, 0, WHOLE),
        (0, 1, WHOLE // 2, WHOLE // 2),
    ]


# -------------------------------------------------------------------------------------------- lost work
@pytest.mark.parametrize(
    ("lost", "restarts", "expected"),
    [
        pytest.param(0, 1, {0: 0, 1: 0}, id="none"),
        pytest.param(400, 1, {0: 100, 1: 0}, id="all before the restart"),
        pytest.param(100, 1, {0: 25, 1: 0}, id="a checkpoint saved three quarters"),
        pytest.param(600, 1, {0: 100, 1: 50}, id="cancelled at last"),
        pytest.param(600, 2, {0: 100, 1: 50}, id="requeued twice, never started again"),
    ],
)
def test_what_is_lost_of_each_start(lost: float, restarts: int, expected: dict[int, float]) -> None:
    """100 s on four cores, then 50 s; the loss is at the end of a start."""
    job = {"core_seconds_lost": lost, "restarts": restarts}
    found = starts(job, [(0, 60, 0, 4), (80, 120, 0, 4), (200, 250, 1, 4)])
    assert {restart: start.lost for restart, start in found.items()} == expected
    assert (found[0].begin, found[0].end) == (0, 120)


def test_a_preemption_costs_what_its_victim_had_done(tmp_path: Path, kit: Any) -> None:
    """A suspension costs nothing, nor does the second requeue of the same start."""
    on = {"n1": "0-3"}
    intervals = [
        kit.interval("RUNNING", 0, 100, "n1", on),
        {"state": "PENDING", "start": 100, "end": 150, "restart": 1},
        kit.interval("RUNNING", 150, 200, "n1", on, 1),
    ]
    victim = kit.job(intervals=intervals, restarts=1, core_seconds_lost=400.0)
    entry = {"preemptor": None, "victim": "1", "mode": "requeue", "by": "p", "why": "w"}
    suspension = {**entry, "at": 80, "mode": "suspend"}
    found = kit.record({"1": victim}, [suspension, {"at": 90, **entry}, {"at": 100, **entry}])
    (tmp_path / "a.json").write_text(json.dumps(found))
    collected = collect(read_record(tmp_path / "a.json"), "a")
    raw = zlib.decompress(base64.b64decode(collected.data))
    columns = collected.about["columns"]
    assert numbers(raw, columns["preemptLost"]) == [0, 400, 0]
    assert numbers(raw, columns["pieceState"]) == [4, 0]
    assert numbers(raw, columns["preemptor"]) == [-1, -1, -1]


# ----------------------------------------------------------------------------------------------- sums
def test_curves_keep_the_largest_groups() -> None:
    """Five of them, the others together; in the order asked for."""
    curves = Curves()
    for group in range(8):
        for value in range(10 - group):
            curves.add(value, {"user": f"u{group}"})
    listed = curves.shown({"user": ["u3"]})["user"]
    assert [name for name, _, _ in listed] == ["u3", "u0", "u1", "u2", "u4", "others"]
    assert listed[0][1:] == (7, [0, 1, 2, 3, 4, 5, 6])
    assert listed[-1][1] == 5 + 4 + 3


def test_curves_of_many_have_few_points() -> None:
    """The least and the most among them."""
    curves = Curves()
    for value in range(100_000):
        curves.add(value, {"user": "u"})
    ((_, jobs, at),) = curves.shown({})["user"]
    assert jobs == 100_000
    assert (at[0], at[-1]) == (0, 99_999)
    assert len(at) < 200


@pytest.mark.parametrize(("run", "expected"), [(100, 2.0), (5, 20.0), (400, 1.0)])
def test_slowdown(run: float, expected: float) -> None:
    """200 s in the system; short runs count as 10 s, and no job is faster than itself."""
    assert slowdown(0, 200, run) == expected


def test_what_is_not_drawn_is_summed_up() -> None:
    """Eight cores over a quarter of the time, one job waiting before that."""
    rest = Rest(4000.0)
    interval = {"state": "RUNNING", "start": 1000, "end": 2000.5, "cpus": {"b1": "0-7"}, "nodes": "b1"}
    rest.add({"intervals": [{"state": "PENDING", "start": 0, "end": 1000}, interval]}, Places(CLUSTER))
    found = rest.as_json()
    assert STEPS == 4000
    assert found["cores"][999:1001] == [0, 8]
    assert found["cores"][1999:2002] == [8, 4, 0]
    assert sum(found["waiting"]) == 1000
    assert found["core_seconds"] == 8004


def test_small_jobs_are_left_to_the_sums(tmp_path: Path, kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that took part in a preemption is drawn, however small; the page's figures are about all."""
    monkeypatch.setattr(collecting, "MOST_JOBS", 3)
    jobs = {
        str(at): kit.job(intervals=[kit.interval("RUNNING", 0, at + 1, "n1", {"n1": "0-3"})])
        for at in range(8)
    }
    entry = {"at": 0.5, "preemptor": None, "victim": "0", "mode": "suspend", "by": "p", "why": "w"}
    (tmp_path / "a.json").write_text(json.dumps(kit.record(jobs, [entry])))
    about = collect(read_record(tmp_path / "a.json"), "a").about
    assert (about["jobs"], about["drawn"], about["rest"]["jobs"]) == (8, 3, 5)
    assert about["rest"]["core_seconds"] == 4 * (2 + 3 + 4 + 5 + 6)
    assert about["waits"]["user"][0]["jobs"] == 8


# ------------------------------------------------------------------------------------------ sentences
def test_a_decision_in_words() -> None:
    """The reason, which jobs it could displace, which rule protects which, and which it took."""
    decision = {
        "outcome": "preempts",
        "reason": "Resources",
        "detail": "2 nodes wanted, 0 usable",
        "placement": "n[1-2]",
        "candidates": [[str(at), "requeue"] for at in range(100)],
        "candidate_count": 130,
        "protected": {"exempt until 50 s": ["8", "9"]},
        "victims": [["1", "requeue"]],
        "method": "two passes",
        "by": "preempt/qos",
    }
    lines = told(decision).split("\n")
    assert lines[0] == "for n[1-2]; without that Resources: 2 nodes wanted, 0 usable"
    assert lines[1].endswith("11 (requeue) and 118 more")
    assert lines[2:] == [
        "protected: 8, 9: exempt until 50 s",
        "takes (two passes): 1 (requeue)",
        "rule: preempt/qos",
    ]


def test_figures_have_signs_and_no_verdicts() -> None:
    """What looks the same is the same."""
    first = dict.fromkeys((figure.key for figure in FIGURES), 0.5)
    other = {**first, "utilisation": 0.6, "mean_wait": 10.5, "makespan": 0.5000001}
    changes = {figure.key: cells[1].change for figure, cells in rows([first, other])}
    assert changes["utilisation"] == "+10.0%"
    assert changes["mean_wait"] == "+10 s"
    assert changes["makespan"] == "same"


def test_figures_of_gpus_are_shown_where_a_run_has_them() -> None:
    """Only the figures that there are; a run without them has empty cells, and nothing is compared with nothing."""
    plain = dict.fromkeys((figure.key for figure in FIGURES), 0.5)
    first, other = plain | {"gpu_utilisation": 0.5}, plain | {"gpu_utilisation": 0.75, "jct_mean": 90.0}
    assert figures_of([plain]) == list(FIGURES)
    found = rows([first, other, plain])[len(FIGURES) :]
    assert [figure.name for figure, _ in found] == ["mean JCT", "GPU utilisation"]
    assert [[cell.value for cell in cells] for _, cells in found] == [
        ["", "0:01:30", ""],
        ["50.0%", "75.0%", ""],
    ]
    assert [[cell.change for cell in cells] for _, cells in found] == [["", "", ""], ["", "+25.0%", ""]]
