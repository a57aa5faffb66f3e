"""The other subcommands: check, explain, import, plugins."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway import registry
from makeway.config import parse_toml

Run = Callable[..., Any]
Install = Callable[..., None]

SLURM = """
ClusterName=x
SlurmctldHost=h
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=n[1-2] CPUs=4
PartitionName=low Nodes=ALL Default=YES
"""


@pytest.fixture
def slurm_conf(tmp_path: Path) -> Path:
    """Write a slurm.conf without preemption."""
    path = tmp_path / "slurm.conf"
    path.write_text(SLURM)
    return path


# ----------------------------------------------------------------------------------------- check
def test_check_praises(run: Run, config: Path) -> None:
    """What there is nothing to say about."""
    shared = 'select = "select/cons_tres"\nselect_parameters = ["CR_CPU"]\n'
    config.write_text(config.read_text() + shared)
    done = run("check", config)
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith(f"\n{config}: nothing to complain about\n")


def test_check_tells_level_place_and_reason(run: Run, config: Path) -> None:
    """Errors fail; all of them are told."""
    config.write_text(config.read_text().replace('"requeue"', '"suspend"'))
    done = run("check", config)
    assert done.status == 1
    first = done.out.splitlines()[0]
    assert first.startswith("error: policy.preempt_mode: ")
    assert "SUSPEND" in first


def test_a_key_can_be_tried(run: Run, config: Path) -> None:
    """Before it is written into the file: what would be wrong with it, and what would make way."""
    done = run("check", config, "--set", "policy.preempt_mode=suspend")
    assert (done.status, "error: policy.preempt_mode: " in done.out) == (1, True)
    assert "suspended" in run("check", config, "--set", "policy.preempt_mode=suspend,gang").out
    wrong = run("check", config, "--set", "policy.preemptmode=suspend")
    assert (wrong.status, "did you mean 'preempt_mode'?" in wrong.out) == (1, True)


def test_warnings_fail_if_they_shall(run: Run, slurm_conf: Path) -> None:
    """A parameter that is not modelled and may matter is a warning; one a line, the file's name once."""
    slurm_conf.write_text(slurm_conf.read_text() + "JobSubmitPlugins=lua\nVSizeFactor=5\nInactiveLimit=0\n")
    done = run("check", slurm_conf)
    assert done.status == 0
    last = len(slurm_conf.read_text().splitlines())
    assert done.out.splitlines() == [
        "not modelled, may matter: 2 parameters of slurm.conf",
        f"  JobSubmitPlugins (line {last - 2})",
        f"  VSizeFactor (line {last - 1})",
        f"{slurm_conf}: 2 warnings",
    ]
    assert run("check", slurm_conf, "--strict").status == 1


def test_what_has_no_influence_is_listed_on_request(run: Run, slurm_conf: Path) -> None:
    """It is no warning."""
    assert run("check", slurm_conf, "--strict").out == f"{slurm_conf}: nothing to complain about\n"
    assert run("check", slurm_conf, "--all").out.splitlines() == [
        "no influence here: 1 parameter of slurm.conf",
        "  SlurmctldHost (line 3)",
        f"{slurm_conf}: nothing to complain about",
    ]


def test_strict_says_what_a_release_would_not_start_with(run: Run, slurm_conf: Path) -> None:
    """Retired parameters warn otherwise, and replay all the same."""
    slurm_conf.write_text(slurm_conf.read_text() + "FastSchedule=2\n")
    last = len(slurm_conf.read_text().splitlines())
    line = f"{slurm_conf}:{last} FastSchedule: gone since Slurm 20.02"
    done = run("check", slurm_conf, "--release", "22.05")
    assert done.status == 0
    assert f"warning: {line}" in done.out
    strict = run("check", slurm_conf, "--release", "22.05", "--strict")
    assert strict.status == 1
    assert f"error: {line}" in strict.out
    before = run("check", slurm_conf, "--release", "19.05", "--strict")
    assert line not in before.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[node]]\nnmae = 1\n", "error: node[0].nmae: unknown key; did you mean 'name'?"),
        ("x = ", "not valid TOML"),
        (f"x = {'[' * 20_000}", "not valid TOML: nested too deeply"),
        ('[[node]]\nname="n1"\n', "error: partition: there are no partitions"),
    ],
)
def test_check_finds_wrong_values(run: Run, tmp_path: Path, text: str, message: str) -> None:
    """Which are findings, not refusals."""
    path = tmp_path / "bad.toml"
    path.write_text(text)
    done = run("check", path)
    assert done.status == 1
    assert message in done.out


def test_check_finds_what_a_replay_would_stumble_over(run: Run, with_jobs: Path) -> None:
    """Missing plugins, wrong rules, jobs and commands."""
    text = with_jobs.read_text() + '[[job]]\nnodes = "x"\n[[action]]\nat = 1\n'
    text = 'workload.map = [{ to_partition = "hgh" }]\n' + text
    with_jobs.write_text(text.replace("[policy]", '[policy]\nselect = "select/none"'))
    done = run("check", with_jobs)
    assert done.status == 1
    for message in (
        "error: policy.select: no plugin named 'select/none'",
        "error: workload.map[0].to_partition: no partition named 'hgh'",
        "error: job[2].nodes: got 'x'",
        "error: action[0].command: missing",
    ):
        assert message in done.out


def test_check_finds_jobs_that_have_nowhere_to_go(run: Run, with_jobs: Path) -> None:
    """Which a replay would do without, and exit with 3."""
    with_jobs.write_text(with_jobs.read_text().replace('"high"\nnodes', '"hgh"\nnodes'))
    done = run("check", with_jobs)
    assert done.status == 1
    assert "error: job 2: no partition named 'hgh'; allowed: high, low; did you mean 'high'?" in done.out
    done = run("replay", with_jobs)
    assert done.status == 3
    assert "with-jobs.toml: job 2: no partition named 'hgh'" in done.out
    done = run("explain", with_jobs, "--job", 2)
    assert done.status == 3
    assert "  with-jobs.toml: job 2: no partition named 'hgh'" in done.out


# ------------------------------------------------------------------------------ words of plugins
WORDS = """
from makeway.errors import Finding
from makeway.hookspecs import hookimpl
from makeway.foreign import Dialect
from makeway.model import Vocabulary

@hookimpl
def makeway_dialect():
    words = Vocabulary(
        states={"RUNNING": "RUN", "PENDING": "PEND"},
        reasons={"Resources": "Not enough hosts"},
        nouns={"partition": "queue", "node": "host"},
    )
    return Dialect(vocabulary=words)

@hookimpl
def makeway_check(cluster):
    return [Finding(level="warning", where="partition[0]", message="too low")]
"""


def test_plugins_bring_their_words_and_checks(run: Run, install: Install, with_jobs: Path) -> None:
    """Which people see; what is recorded keeps Slurm's."""
    install("makeway-words", {"words/lsf": "makeway_words"}, {"makeway_words": WORDS})
    words = ("--set", "policy.plugins=words/lsf")
    done = run("explain", with_jobs, "--job", 1, *words)
    assert "2 hosts, no time limit, queue low" in done.out
    assert "0 s to 10 s: RUN on n[1-2]" in done.out
    assert "10 s to 30 s: Not enough hosts" in done.out
    assert "job 2 (queue high)" in done.out
    done = run("replay", with_jobs, "--squeue-at", 12, *words)
    assert "PEND 0:00     2 (Not enough hosts)" in done.out
    assert "queue  started" in done.out
    text = with_jobs.read_text().replace("[policy]", '[policy]\nplugins = ["words/lsf"]')
    with_jobs.write_text(text)
    assert "warning: partition[0]: too low" in run("check", with_jobs).out


FOREIGN = """
from makeway.foreign import Dialect, ForeignConfig
from makeway.hookspecs import hookimpl

class Reader:
    name = "odd.cfg"
    def claims(self, name, head):
        return name == self.name
    def translate(self, source):
        words = source.beside("more").text.split()
        tables = {"partition": [{"name": word} for word in words], "scheduler": {"type": "esy"}}
        tables["scheduler"]["type"] = source.text.strip()
        return ForeignConfig(
            tables=tables, warnings=("odd",), places={"scheduler.type": "odd.cfg:1"}
        )

@hookimpl
def makeway_dialect():
    return Dialect(configs=[Reader()])
"""


def test_foreign_files_are_completed_by_nodes(
    run: Run, install: Install, config: Path, tmp_path: Path
) -> None:
    """A plugin's reader gets text and hands back tables; errors name the lines of its file."""
    install("makeway-odd", {"reader/odd": "makeway_odd_cfg"}, {"makeway_odd_cfg": FOREIGN})
    path, nodes = tmp_path / "odd.cfg", tmp_path / "nodes.toml"
    path.write_text("easy")
    (tmp_path / "more").write_text("short long")
    nodes.write_text('[[node]]\nname = "n[1-3]"\n')
    done = run("import", path)
    assert done.status == 2
    assert "--nodes" in done.err
    done = run("import", path, "--nodes", nodes)
    assert done.status == 0
    assert [each.name for each in parse_toml(done.out, "out").partition] == ["short", "long"]
    path.write_text("esy")
    assert "odd.cfg:1: got 'esy'" in run("check", path, "--nodes", nodes).out
    beside = tmp_path / "beside.toml"
    beside.write_text("x =")
    assert f"error: {beside}: not valid TOML: " in run("check", path, "--nodes", beside).out
    beside.write_text("[[nodes]]\nname = 'n1'\n")
    assert "the one given has no [[node]] tables, but 'nodes'" in run("check", path, "--nodes", beside).out
    done = run("check", config, "--nodes", nodes)
    assert done.status == 2
    assert "--nodes is not needed" in done.err


# ---------------------------------------------------------------------------------------- import
def test_import_writes_toml(run: Run, slurm_conf: Path, tmp_path: Path) -> None:
    """To standard output or a file; warnings go to standard error."""
    done = run("import", slurm_conf)
    assert done.status == 0
    assert parse_toml(done.out, "out").partition[0].name == "low"
    assert done.err == ""
    target = tmp_path / "out.toml"
    assert run("import", slurm_conf, "-o", target).out == ""
    assert target.read_text() == done.out
    assert run("check", target).status == 0


def test_import_for_a_release(run: Run, slurm_conf: Path) -> None:
    """Which the TOML names."""
    done = run("import", slurm_conf, "--release", "22.05")
    assert parse_toml(done.out, "out").scheduler.slurm_release == "22.05"


def test_import_tells_all_problems(run: Run, slurm_conf: Path) -> None:
    """With file and line; no file is written."""
    slurm_conf.write_text(SLURM + "PremptMode=OFF\nNodeName=n[1-2] CPU=4\n")
    done = run("import", slurm_conf, "-o", slurm_conf.with_suffix(".toml"))
    assert done.status == 2
    assert f"{slurm_conf}:8" in done.err
    assert f"{slurm_conf}:9" in done.err
    assert not slurm_conf.with_suffix(".toml").exists()


READER = """
from makeway.foreign import Dialect, ForeignConfig
from makeway.hookspecs import hookimpl

class Reader:
    name = "fancy"
    def claims(self, name, head):
        return head.startswith("fancy")
    def translate(self, source):
        return ForeignConfig(
            tables={"node": [{"name": "n1"}], "partition": [{"name": "p"}]}, warnings=("so fancy",)
        )

@hookimpl
def makeway_dialect():
    return Dialect(configs=[Reader()])
"""


@pytest.mark.looks_anew
def test_readers_of_plugins_are_asked(run: Run, install: Install, tmp_path: Path) -> None:
    """Of all installed ones."""
    path = tmp_path / "site.fancy"
    path.write_text("fancy\n")
    assert run("import", path).status == 2
    install("makeway-fancy", {"reader/fancy": "makeway_fancy"}, {"makeway_fancy": READER})
    done = run("import", path)
    assert done.status == 0
    assert "warning: so fancy" in done.err
    assert parse_toml(done.out, "out").partition[0].name == "p"


def test_two_readers_that_claim_one_file(run: Run, install: Install, tmp_path: Path) -> None:
    """Both are named."""
    for name in ("one", "two"):
        source = READER.replace('"fancy"\n    def', f'"{name}"\n    def')
        install(f"makeway-{name}", {f"reader/{name}": f"makeway_{name}"}, {f"makeway_{name}": source})
    path = tmp_path / "site.fancy"
    path.write_text("fancy\n")
    done = run("import", path)
    assert done.status == 2
    assert "claimed by two readers: 'one' and 'two'" in done.err


def test_a_reader_that_raises_is_blamed(run: Run, install: Install, tmp_path: Path) -> None:
    """By name; another plugin that cannot be imported is only a warning."""
    source = READER.replace("return ForeignConfig", "return 1 / 0 or ForeignConfig")
    install("makeway-bad", {"reader/bad": "makeway_bad"}, {"makeway_bad": source})
    install("makeway-worse", {"reader/worse": "makeway_worse"}, {"makeway_worse": "import no_no"})
    path = tmp_path / "site.fancy"
    path.write_text("fancy\n")
    done = run("import", path)
    assert done.status == 2
    assert "the reader 'fancy' raised ZeroDivisionError" in done.err
    assert "warning: plugin 'reader/worse' of makeway-worse 1.0 cannot be imported" in done.err


# --------------------------------------------------------------------------------------- plugins
def _rows(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in out.splitlines()[1:]}


def test_plugins_lists_what_is_installed(run: Run, config: Path) -> None:
    """Name, kind, distribution, version, hooks; and what a configuration selects."""
    done = run("plugins", "--config", config)
    assert done.status == 0
    rows = _rows(done.out)
    assert rows["preempt/none"][1:3] == ["preempt", "makeway-core"]
    assert "selected" not in run("plugins").out
    selected = [name for name, row in rows.items() if row[4:5] == ["yes"]]
    assert selected == ["preempt/partition_prio", "select/linear"]
    assert rows["select/linear"][-1] == "selector"


def test_plugins_as_json(run: Run) -> None:
    """The same for programs."""
    entries = {entry["name"]: entry for entry in json.loads(run("plugins", "--json").out)}
    assert entries["preempt/none"]["hooks"] == ["makeway_preempt_candidates"]
    assert entries["preempt/none"]["problem"] == ""


def test_a_broken_plugin_does_not_stop_the_listing(run: Run, install: Install) -> None:
    """It shows its error; one that is offered twice shows that."""
    install("makeway-bad", {"preempt/bad": "makeway_bad"}, {"makeway_bad": "import no_such_thing"})
    for name in ("makeway-one", "makeway-two"):
        install(name, {"preempt/same": "makeway_same"}, {"makeway_same": ""})
    done = run("plugins")
    assert done.status == 0
    assert "No module named 'no_such_thing'" in done.out
    assert done.out.count("two distributions offer a plugin named 'preempt/same'") == 2
    assert "select/linear" in done.out


def test_a_selected_plugin_that_is_missing(run: Run, config: Path) -> None:
    """Is named with the nearest one, after the list; the name of a package is not guessed."""
    config.write_text(config.read_text().replace("partition_prio", "partition_pri"))
    done = run("plugins", "--config", config)
    assert done.status == 1
    assert "select/linear" in done.out
    assert "no plugin named 'preempt/partition_pri' is installed" in done.err
    assert "did you mean 'preempt/partition_prio'" in done.err
    assert "pip install" not in done.err


def test_packages_of_this_project_are_known_by_name() -> None:
    """Every plugin, command, page and view of a distribution beside the core is listed with it."""
    root = Path(__file__).parents[4]
    groups = {
        "makeway": "plugins",
        "makeway.commands": "commands",
        "makeway.pages": "pages",
        "makeway.views": "views",
    }
    brought: dict[tuple[str, str], str] = {}
    for path in [root / "testing/pyproject.toml", *(root / "plugins").glob("*/pyproject.toml")]:
        project = tomllib.loads(path.read_text())["project"]
        for group, names in project.get("entry-points", {}).items():
            brought |= {(groups[group], name): project["name"] for name in names if group in groups}
    listed = tomllib.loads((root / "core/src/makeway/catalogue.toml").read_text())["distributions"]
    known = {
        (kind, name): dist
        for dist, table in listed.items()
        for kind in groups.values()
        for name in table.get(kind, ())
    }
    assert {what: known.get(what) for what in brought} == brought
    assert all(registry.bringer(*what) == dist for what, dist in brought.items())
    assert registry.how_to_get("lsf/queue") == "'pip install makeway-lsf-queue' brings it"
