"""``makeway report --figure``: figures for papers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from makeway_app.cli import cli
from makeway_report.pieces import LOST, STATES, pieces_of
from makeway_report.places import Places

KTH = Path(__file__).parents[4] / "examples/kth"


def run(*given: object) -> Result:
    """Run makeway."""
    return CliRunner().invoke(cli, [str(each) for each in given])


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replay 300 jobs under requeue."""
    path = tmp_path_factory.mktemp("paper") / "run.json"
    given = ("replay", KTH / "cluster.toml", KTH / "kth-sp2-1500.swf.gz", "--limit", 300, "--json", path)
    assert run(*given).exit_code == 0
    return path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of libraries that matplotlib brings
def test_all_figures_of_one_and_two_runs(tmp_path: Path, record: Path) -> None:
    """The same record makes the same file; text stays text; lost work is hatched, width is as asked for."""
    pytest.importorskip("matplotlib", reason="the extra figures is not installed")
    names = [tmp_path / name for name in ("gantt.svg", "waits.svg", "utilisation.svg", "matrix.svg")]
    options = [word for name in names for word in ("--figure", name)]
    for records in ((record,), (record, record)):
        texts = []
        for _ in range(2):
            done = run("report", *records, *options, "--columns", 1)
            assert done.exit_code == 0, done.output
            texts.append([name.read_text() for name in names])
        assert texts[0] == texts[1]
        gantt, waits, utilisation, matrix = texts[0]
        assert 'width="252pt"' in gantt  # 3.5 in of 72 points
        assert "work lost" in gantt
        assert "<pattern" in gantt
        assert "share of jobs" in waits
        assert "cores in use" in utilisation
        assert ">preemptor</text>" in matrix
    for name, head in (("gantt.png", b"\x89PNG"), ("gantt.pdf", b"%PDF")):
        assert run("report", record, "--figure", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(head)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param("gant.svg", "did you mean 'gantt'?", id="kind"),
        pytest.param("gantt.gif", "allowed: svg, png, pdf", id="format"),
        pytest.param("no/such/gantt.svg", "cannot be written", id="folder"),
    ],
)
def test_what_is_no_figure_is_refused(tmp_path: Path, record: Path, name: str, told: str) -> None:
    """With what would be."""
    pytest.importorskip("matplotlib", reason="the extra figures is not installed")
    done = run("report", record, "--figure", tmp_path / name)
    assert done.exit_code == 2
    assert told in done.stderr


def test_without_matplotlib_it_says_what_to_install(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And without anything to make it says so."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'makeway[figures]'" in run("report", record, "--figure", "gantt.svg").stderr
    assert "nothing to make" in run("report", record).stderr


def test_lost_work_is_taken_from_the_end_backwards() -> None:
    """A start that ran ten seconds, was suspended and ran five more lost eight: the last five and three before."""

    def interval(state: str, start: float, end: float) -> dict[str, object]:
        return {
            "state": state,
            "start": start,
            "end": end,
            "restart": 0,
            "nodes": "n1",
            "cpus": {"n1": "0-1"},
        }

    job = {
        "intervals": [interval("RUNNING", 0, 10), interval("SUSPENDED", 10, 20), interval("RUNNING", 20, 25)],
        "core_seconds_lost": 16.0,  # eight seconds on two cores
        "restarts": 0,
    }
    pieces, _ = pieces_of(0, job, Places({"nodes": [{"names": "n1", "cpus": 2}]}))
    running, suspended = STATES.index("RUNNING"), STATES.index("SUSPENDED")
    assert [(piece.start, piece.end, piece.state) for piece in pieces] == [
        (0, 7, running),
        (7, 10, LOST),
        (10, 20, suspended),
        (20, 25, LOST),
    ]


@pytest.mark.filterwarnings("ignore")  # of libraries that matplotlib brings
def test_suspended_jobs_are_in_the_figure(tmp_path: Path) -> None:
    """Where a policy suspends, the legend names it."""
    pytest.importorskip("matplotlib", reason="the extra figures is not installed")
    record, figure = tmp_path / "run.json", tmp_path / "gantt.svg"
    given = ("replay", KTH / "suspend.toml", KTH / "kth-sp2-1500.swf.gz", "--limit", 300, "--json", record)
    assert run(*given).exit_code == 0
    assert run("report", record, "--figure", figure).exit_code == 0
    assert ">suspended</text>" in figure.read_text()


def test_a_policy_that_names_no_cpus_loses_what_the_job_asked_for() -> None:
    """Two cores for nine minutes are lost: all of the first start, and nothing of the second."""
    held = [(60.0, 600.0, 0), (2400.0, 6000.0, 1)]
    job = {
        "core_seconds_lost": 2 * 540.0,
        "restarts": 1,
        "requested": {"nodes": 1, "cpus": 2},
        "intervals": [
            {
                "state": "RUNNING",
                "start": start,
                "end": end,
                "restart": restart,
                "nodes": "n1",
                "cpus": {"n1": ""},
            }
            for start, end, restart in held
        ],
    }
    pieces, _ = pieces_of(0, job, Places({"nodes": [{"names": "n1", "cpus": 8}]}))
    assert [(each.start, each.end, each.state) for each in pieces] == [
        (60.0, 600.0, LOST),
        (2400.0, 6000.0, STATES.index("RUNNING")),
    ]


def test_numbers_of_a_matrix_can_be_read() -> None:
    """White on dark brown and black on pale orange: at least 4.5 to 1 on every colour of the map."""
    matplotlib = pytest.importorskip("matplotlib", reason="the extra figures is not installed")
    from makeway_report.paper import _readable

    def luminance(colour: Any) -> float:
        parts = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in colour[:3]]
        return float(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2])

    colours = matplotlib.colormaps["Oranges"]
    assert (_readable(colours(0.0)), _readable(colours(1.0))) == ("black", "white")
    for at in range(256):
        back, text = luminance(colours(at)), 1.0 if _readable(colours(at)) == "white" else 0.0
        assert (max(back, text) + 0.05) / (min(back, text) + 0.05) >= 4.5
