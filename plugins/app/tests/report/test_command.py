"""``makeway report`` and ``makeway replay --report``: what they write, and what they refuse."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from makeway_app.cli import cli

ROOT = Path(__file__).parents[4]


def run(*given: object) -> Result:
    """Run makeway."""
    return CliRunner().invoke(cli, [str(each) for each in given])


@pytest.fixture
def found(tmp_path: Path, kit: Any) -> Path:
    """A record of one job."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(kit.record({"1": kit.job()})))
    return path


def test_all_runs_of_a_comparison_are_on_the_page(tmp_path: Path) -> None:
    """Under their labels; no record is left behind."""
    page = tmp_path / "page.html"
    seed = ROOT / "examples/seed/cluster.toml"
    done = run(
        "replay", seed, "--compare", "policy.preempt=preempt/none; policy.preempt_mode=off", "--report", page
    )
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "<bdi>as configured</bdi>" in text
    assert "policy.preempt=preempt/none; policy.preempt_mode=off" in text
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_record_and_a_page_at_once(tmp_path: Path) -> None:
    """Both hold all jobs, though the first runs on, and the last one submitted ends before the one before it."""
    config = tmp_path / "c.toml"
    head = '[[node]]\nname = "n[1-3]"\n[[partition]]\nname = "p"\ndefault = true\n'
    jobs = (
        f"[[job]]\nid = {at}\nsubmit = {at}\nrun_time = {run}\n" for at, run in ((1, 9000), (2, 50), (3, 20))
    )
    config.write_text(head + "".join(jobs))
    given = ("replay", config, "--until", "100", "--json")
    assert run(*given, tmp_path / "a.json", "--report", tmp_path / "a.html").exit_code == 0
    assert run(*given, tmp_path / "b.json").exit_code == 0
    assert (
        run("report", tmp_path / "b.json", "--label", "as configured", "-o", tmp_path / "b.html").exit_code
        == 0
    )
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    found = json.loads((tmp_path / "a.json").read_text())["jobs"]
    assert [job["final_state"] for job in found.values()] == ["RUNNING", "COMPLETED", "COMPLETED"]


def test_the_same_record_makes_the_same_page(tmp_path: Path, found: Path) -> None:
    """Byte for byte, from a compressed record and one of another layout too."""
    with gzip.open(tmp_path / "zipped.json.gz", "wt") as stream:
        stream.write(json.dumps(json.loads(found.read_text()), indent=2))
    pages = []
    for path in (found, found, tmp_path / "zipped.json.gz"):
        assert run("report", path, "--label", "a", "-o", tmp_path / "a.html").exit_code == 0
        pages.append((tmp_path / "a.html").read_bytes())
    assert pages[0] == pages[1] == pages[2]


def test_names_cannot_leave_their_element(tmp_path: Path, kit: Any) -> None:
    """The only script elements are ours."""
    evil = "</script><script>alert(1)</script><!--"
    path = tmp_path / "evil.json"
    document = kit.record({evil: kit.job(user=evil)})
    document["record"]["workload"] = evil
    path.write_text(json.dumps(document))
    assert run("report", path, "--title", evil, "-o", tmp_path / "a.html").exit_code == 0
    text = (tmp_path / "a.html").read_text()
    assert len(re.findall(r"<script\b", text)) == 3
    assert "<!--" not in text


def test_the_policy_names_the_script_and_the_style(tmp_path: Path, found: Path) -> None:
    """Everything else is forbidden."""
    run("report", found, "-o", tmp_path / "a.html")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', (tmp_path / "a.html").read_text())
    assert policy is not None
    shown = policy[1].replace("&#39;", "'")
    assert shown.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in shown


def test_the_library_comes_with_its_licence() -> None:
    """MIT asks for that."""
    vendor = ROOT / "plugins/app/src/makeway_report/vendor/uplot"
    assert "MIT License" in (vendor / "LICENSE").read_text()
    assert "v1.6.32" in (vendor / "uPlot.iife.min.js").read_text()[:200]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "it is not JSON", id="empty"),
        pytest.param("[]", "it is not a JSON object", id="a list"),
        pytest.param('{"a": 1}', "is no record of makeway", id="another object"),
        pytest.param(
            '{"jobs": {}, "metrics": {}}', "was written by an older makeway; replay it again", id="older"
        ),
        pytest.param(
            '{"record": {"version": 9}}', "is a record of version 9; this makeway reads 1", id="newer"
        ),
        pytest.param(
            '{"at":0.0,"kind":"record"}\n{"at":1}', "is a log; a record is what --json writes", id="log"
        ),
        pytest.param(
            '{\n"record":{"version":1},\n"jobs":{\n', "breaks off: cluster, preemptions, metrics", id="cut"
        ),
        pytest.param('{\n"record":{"version":,\n', "is damaged", id="damaged"),
        pytest.param(
            '{"record": {"version": 1}, "cluster": {}, "jobs": {}, "preemptions": [], "metrics": {}}',
            "what it holds is damaged (KeyError",
            id="of no run",
        ),
        pytest.param("\0\1\2", "it is not JSON", id="binary"),
    ],
)
def test_what_is_no_record(tmp_path: Path, text: str, problem: str) -> None:
    """One error with the file, and no page."""
    (tmp_path / "run.json").write_text(text)
    done = run("report", tmp_path / "run.json", "-o", tmp_path / "page.html")
    assert done.exit_code == 2
    assert f"{tmp_path / 'run.json'}" in done.output
    assert problem in done.output
    assert not (tmp_path / "page.html").exists()


def test_a_record_without_what_the_page_shows(tmp_path: Path, found: Path) -> None:
    """One error, and no page."""
    whole = json.loads(found.read_text())
    del whole["record"]["policy"]["preempt"]
    (tmp_path / "run.json").write_text(json.dumps(whole))
    done = run("report", tmp_path / "run.json", "-o", tmp_path / "page.html")
    assert done.exit_code == 2
    assert "what it holds is damaged (LookupError" in done.output
    assert not (tmp_path / "page.html").exists()


def test_what_is_not_there(tmp_path: Path) -> None:
    """The file and the reason."""
    done = run("report", tmp_path / "none.json", "-o", tmp_path / "page.html")
    assert done.exit_code == 2
    assert "none.json: cannot be read: No such file or directory" in done.output


def test_labels_are_for_all_or_none(tmp_path: Path, found: Path) -> None:
    """And a page is no record."""
    done = run("report", found, found, "--label", "a", "-o", tmp_path / "page.html")
    assert done.exit_code == 2
    assert "given 1 times for 2 records" in done.output
    done = run("report", found, "-o", found)
    assert done.exit_code == 2
    assert "is the input" in done.output


def test_files_of_one_name_are_told_apart(tmp_path: Path, found: Path) -> None:
    """By their folders."""
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "run.json"
    other.write_text(found.read_text())
    assert run("report", found, other, "-o", tmp_path / "page.html").exit_code == 0
    assert "<bdi>other/run</bdi>" in (tmp_path / "page.html").read_text()


def test_help_lists_what_others_bring() -> None:
    """After the core's own commands."""
    text = run("--help").output
    assert text.index("replay") < text.index("  report")
