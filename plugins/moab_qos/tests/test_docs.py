"""What the documents show is what comes out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from makeway_app.cli import cli
from makeway_app.report import _figures_of
from makeway_moab_qos.parameters import CREDENTIALS, PLAIN, RECORDS
from makeway_moab_qos.settings import Choices

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/coming-from-moab.md").read_text(encoding="utf-8")
README = (ROOT / "plugins/moab_qos/README.md").read_text(encoding="utf-8")
AGREEMENT = (ROOT / "docs/maui-agreement.md").read_text(encoding="utf-8")


def run(*words: str | Path) -> str:
    """Run the command line; return what it prints."""
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
def test_the_swap_as_shown(tmp_path: Path) -> None:
    """The first two columns of the table."""
    trace = ROOT / "examples/kth/kth-sp2-1500.swf.gz"
    path = tmp_path / "out.json"
    run(
        *("replay", ROOT / "examples/moab/swap.toml", trace),
        *("--compare", "policy.preempt=moab/qos", "--json", path),
    )
    data = json.loads(path.read_text())
    found = [
        dict(_figures_of(each)) for each in (data["metrics"], data["compared"]["policy.preempt=moab/qos"])
    ]
    rows = re.findall(
        r"^\| ([a-z -]+) \| (\S+) \| (\S+) \|", PAGE[PAGE.index("| trace |") :], flags=re.MULTILINE
    )
    assert len(rows) == 7
    for name, slurm, moab in rows:
        assert (slurm, moab) == (found[0][name], found[1][name]), name


def test_the_moab_example_runs() -> None:
    """Nothing to complain about, and it replays."""
    nodes = ROOT / "examples/moab/nodes.toml"
    config = ROOT / "examples/moab/moab.cfg"
    assert "nothing to complain about" in run("check", config, "--nodes", nodes)
    trace = ROOT / "examples/kth/kth-sp2-1500.swf.gz"
    assert "200 jobs" in run("replay", config, trace, "--nodes", nodes, "--limit", "200")


def test_explain_names_the_line(tmp_path: Path) -> None:
    """The check list with the lines of moab.cfg."""
    config, nodes = tmp_path / "moab.cfg", tmp_path / "nodes.toml"
    config.write_text("QOSCFG[high] PRIORITY=1000\nQOSCFG[high] QFLAGS=NOBF\nQOSCFG[low] QFLAGS=PREEMPTEE\n")
    nodes.write_text(
        '[[node]]\nname = "n1"\ncpus = 1\n[[job]]\nid = "L"\nqos = "low"\nrun_time = 50\n'
        '[[job]]\nid = "H"\nqos = "high"\nsubmit = 5\nrun_time = 5\n'
    )
    shown = run("explain", config, "--nodes", nodes, "--job", "H")
    assert re.search(r"K01 fail .*add QFLAGS=PREEMPTOR \[moab.cfg:2\]", shown)


def test_the_check_list_as_shown(tmp_path: Path) -> None:
    """The four lines of the README."""
    config, nodes = tmp_path / "moab.cfg", tmp_path / "nodes.toml"
    config.write_text(
        "PREEMPTPOLICY REQUEUE\nQUEUETIMEWEIGHT 1\n"
        "QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=1000\nQOSCFG[low] QFLAGS=PREEMPTEE PRIORITY=100\n"
    )
    nodes.write_text(
        '[[node]]\nname = "n1"\ncpus = 1\n[[job]]\nid = "L"\nqos = "low"\nrun_time = 5000\n'
        '[[job]]\nid = "H"\nqos = "high"\nsubmit = 300\nrun_time = 5\n'
    )
    shown = run("explain", config, "--nodes", nodes, "--job", "H", "--until", "301").splitlines()
    lines = re.findall(r"^  K\d\d .*$", README, flags=re.MULTILINE)
    assert len(lines) == 4
    assert [line for line in lines if line not in shown] == []


@pytest.mark.parametrize("name", [*PLAIN, *CREDENTIALS, *(name for name in RECORDS if name != "SYSCFG")])
def test_every_parameter_is_in_the_page(name: str) -> None:
    """Same, different or absent."""
    named = re.sub(r"`ADMIN1` to `ADMIN3`", "`ADMIN1` `ADMIN2` `ADMIN3`", PAGE)
    assert re.search(rf"\b{name}\b", named)


@pytest.mark.parametrize("field", attrs.fields(Choices), ids=lambda field: str(field.name))
def test_every_choice_is_in_the_readme(field: attrs.Attribute[object]) -> None:
    """With its default."""
    shown = json.dumps(field.default)
    assert f"| `{field.name}` | {shown} |" in README or f"| `{field.name}` | `{shown}` |" in README


@pytest.mark.slow
def test_the_score_is_current() -> None:
    """As many recordings as there are, and none differs."""
    folder = Path(__file__).parent / "recordings"
    shown = run("verify", folder)
    agree = re.search(r"(\d+) of (\d+) agree; (\d+) skipped", shown)
    assert agree is not None
    assert f"| agree | {agree.group(1)} |" in AGREEMENT
    assert f"| not imitated | {agree.group(3)} |" in AGREEMENT
    assert agree.group(1) == agree.group(2)


def test_the_scenario_of_the_readme(tmp_path: Path) -> None:
    """Its moab.cfg, on one node: the record's line is the one that it shows."""
    scenario = README[README.index("## Scenario") : README.index("## Keys and defaults")]
    (config,) = re.findall(r"```\n(.*?)```", scenario, flags=re.DOTALL)
    (line,) = re.findall(r"`(PREEMPTPOLICY SUSPEND; [^`]+)`", scenario)
    (tmp_path / "moab.cfg").write_text(config)
    nodes = tmp_path / "nodes.toml"
    nodes.write_text(
        '[[node]]\nname = "n1"\ncpus = 4\n'
        '[[job]]\nid = "L"\nuser = "ann"\nqos = "low"\ntasks = 4\nsubmit = 0\nrun_time = 100\n'
        '[[job]]\nid = "H"\nuser = "bob"\nqos = "high"\ntasks = 4\nsubmit = 10\nrun_time = 100\n'
    )
    run("replay", tmp_path / "moab.cfg", "--nodes", nodes, "--json", tmp_path / "out.json")
    (entry,) = json.loads((tmp_path / "out.json").read_text())["preemptions"]
    assert (entry["victim"], entry["mode"], entry["why"]) == ("L", "requeue", line)
