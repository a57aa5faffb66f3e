"""The pages about Kueue are followed literally."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from makeway.foreign import Judgement
from makeway_app.readers.foreign import FileSource
from makeway_kueue_cohort.recordings import KueueRecordings
from makeway_testing.command_line import Done, Run, command_line

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "coming-from-kueue.md"


def block(first: str) -> str:
    """Return the one block of the page that begins with these words."""
    found = re.findall(
        rf"^```\w+\n({first}.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(found) == 1
    return str(found[0])


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Save what the page says to save."""
    (tmp_path / "kueue.yaml").write_text(block("apiVersion"))
    (tmp_path / "jobs.csv").write_text(block("name,queue"))
    return tmp_path


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run commands."""
    return command_line(monkeypatch)


def run(cli: Run, site: Path, words: str) -> Done:
    """Run a command on the files."""
    return cli(*(str(site / each) if "." in each else each for each in words.split()))


def test_the_commands_of_the_page(cli: Run, site: Path) -> None:
    """The replay preempts r2 for p1, and explain says why."""
    commands = re.findall(r"^\$ makeway (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands == ["replay kueue.yaml jobs.csv", "explain --job r2 kueue.yaml jobs.csv"]
    replayed, explained = (run(cli, site, each) for each in commands)
    assert (replayed.status, explained.status) == (0, 0)
    assert re.search(r"^product +research +requeue +1$", replayed.out, re.MULTILINE)
    assert "job p1 (queue team-p) by requeue, InCohortReclamation" in explained.out
    # A core for each pod and piece: r1 an hour on 1, r2 nine minutes and an hour on 2, p1 half an hour on 1, of 16.
    used = (3600 + 2 * (540 + 3600) + 1800) / (16 * 6000)
    shown = re.search(r"^utilisation +([\d.]+)%$", replayed.out, re.MULTILINE)
    assert shown is not None
    assert float(shown[1]) == pytest.approx(100 * used, abs=0.06)
    assert run(cli, site, "check kueue.yaml").status == 0
    imported = run(cli, site, "import kueue.yaml").out
    assert 'team-r = "research"' in imported


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("LowerPriority", "LowerPriorty", "did you mean"),
        ("nominalQuota: 8", "nominalQuota: lots", "allowed: an amount"),
        ("clusterQueue: product", "clusterQueue: produce", "there is no ClusterQueue 'produce'"),
        ("  cohortName: everybody", "  cohortName: [", "not valid YAML"),
        ("metadata:\n  name: research\n", "metadata: {}\n", "metadata.name is missing"),
    ],
)
def test_mistakes_in_manifests(cli: Run, site: Path, old: str, new: str, said: str) -> None:
    """Each is one clear error with its line."""
    path = site / "kueue.yaml"
    path.write_text(path.read_text().replace(old, new))
    done = run(cli, site, "check kueue.yaml")
    assert done.status != 0
    assert said in (done.out + done.err)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("x,team-r,soon,60,1,1", "created: got 'soon'"),
        ("x,team-r,0,-1,1,1", "duration: got '-1'"),
        ("x,team-r,0,60,0,1", "pods: allowed: 1 or more"),
        ("x,team-r,0,60,1,some", "allowed: an amount"),
        ("r1,team-r,0,60,1,1", "is there twice"),
        ("x,team-r", "as many columns"),
    ],
)
def test_rows_that_cannot_be_used(cli: Run, site: Path, row: str, said: str) -> None:
    """They are counted with the reason; the others are played."""
    with (site / "jobs.csv").open("a") as file:
        file.write(row + "\n")
    done = run(cli, site, "replay kueue.yaml jobs.csv")
    assert done.status == 3
    assert said in (done.out + done.err)
    assert re.search(r"^rows unusable +1$", (done.out + done.err), re.MULTILINE)


def test_what_is_not_modelled_is_named(cli: Run, site: Path) -> None:
    """A topology, a gate, an admission check."""
    path = site / "kueue.yaml"
    text = path.read_text().replace("  name: a100\n---", "  name: a100\nspec:\n  topologyName: racks\n---")
    more = "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: AdmissionCheck\nmetadata: {name: x}\n"
    path.write_text(text + more)
    done = run(cli, site, "check kueue.yaml")
    assert "ResourceFlavor topologyName" in (done.out + done.err)
    assert "AdmissionCheck" in (done.out + done.err)


def test_the_score_of_the_other_page() -> None:
    """The table of docs/kueue-agreement.md is what the cases come to."""
    reader, cases, agree = KueueRecordings(), Counter[str](), Counter[str]()
    for path in sorted((Path(__file__).parent / "recordings").glob("*.json")):
        case = reader.recorded(FileSource(path))
        cases[case.data["kind"]] += 1
        agree[case.data["kind"]] += not case.unmodelled and case.answered() == Judgement()
    page = (DOCS / "kueue-agreement.md").read_text(encoding="utf-8")
    for kind, count in cases.items():
        assert re.search(
            rf"^\| {kind} \| [^|]+ \| {count} \| {agree[kind]} \| {count - agree[kind]} \|$",
            page,
            re.MULTILINE,
        )
    assert f"| all |  | {cases.total()} | {agree.total()} | {cases.total() - agree.total()} |" in page
