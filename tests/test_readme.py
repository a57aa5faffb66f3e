"""Run what the README and the how-to show, and compare it with what they say comes out.

``python tests/test_readme.py`` writes the outputs anew, to be looked at before they are committed.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import re
import shlex
import shutil
import tempfile
import types
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from makeway.hostlist import expand_hostlist
from makeway.readers.api import ReadOptions
from makeway_app.cli import cli
from makeway_app.cli.inputs import load_config
from makeway_app.readers.open import open_workload
from makeway_app.replay import Options, replay

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "docs/replay.md"]
PLUGINS = sorted(ROOT.glob("plugins/*/README.md"))
DISTRIBUTIONS = [*PLUGINS, ROOT / "testing/README.md"]
TRACE = ROOT / "examples/kth/kth-sp2-1500.swf.gz"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(
    r"(^```sh\n(?:(?!```).)*?^(makeway [^\n]*)\n```\n\n```text\n)(.*?)(^```$)",
    re.MULTILINE | re.DOTALL,
)


@attrs.frozen
class Shown:
    """A command of a page and the output that the page shows below it."""

    page: Path
    command: str
    output: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.command}"


def _shown(pages: Sequence[Path]) -> Iterator[Shown]:
    for page in pages:
        for _, command, output, _ in _SHOWN.findall(page.read_text()):
            yield Shown(page, command, output)


def _blocks(language: str, page: Path = README) -> list[str]:
    return [text for name, text in _FENCE.findall(page.read_text()) if name == language]


def _run(command: str) -> str:
    """Return what a command prints on standard output."""
    done = CliRunner().invoke(cli, shlex.split(command)[1:], prog_name="makeway")
    assert done.exit_code == 0, done.output
    return done.stdout


def _run_scenario(command: str, page: Path, folder: Path) -> str:
    """Return what a command prints on the last configuration that a plugin's page shows."""
    (folder / "scenario.toml").write_text(_blocks("toml", page)[-1])
    with contextlib.chdir(folder):
        return _run(command)


@pytest.mark.parametrize("shown", list(_shown(PAGES)), ids=str)
def test_commands_print_what_is_shown(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly."""
    monkeypatch.chdir(ROOT)
    assert _run(shown.command) == shown.output


def test_what_an_upgrade_changes_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of what the command prints."""
    monkeypatch.chdir(ROOT)
    part = (ROOT / "docs/replay.md").read_text().partition("### What an upgrade changes\n")[2]
    (_, command), (_, shown) = _FENCE.findall(part)[:2]
    assert _run(command).endswith(f"\n\n{shown}")


@pytest.mark.parametrize("shown", list(_shown(PLUGINS)), ids=str)
def test_scenarios_of_plugins_print_what_is_shown(shown: Shown, tmp_path: Path) -> None:
    """Exactly."""
    assert _run_scenario(shown.command, shown.page, tmp_path) == shown.output


@pytest.mark.parametrize("page", DISTRIBUTIONS, ids=lambda page: page.parent.name)
def test_every_distribution_is_listed(page: Path) -> None:
    """With a link to its page."""
    assert f"(../{page.relative_to(ROOT)})" in (ROOT / "docs/commands.md").read_text()


def test_the_first_command_preempts() -> None:
    """The README shows real people's jobs being displaced."""
    first = next(_shown(PAGES))
    found = re.search(r"^preemptions +([0-9,]+)$", first.output, re.MULTILINE)
    assert found is not None
    assert int(found[1]) > 0


def test_the_first_two_blocks_do_everything() -> None:
    """One installs and replays, the other one tests."""
    first, second = _blocks("sh")[:2]
    assert "pip install" in first
    assert first.splitlines()[-1].startswith("makeway replay examples/kth/")
    assert second == "sh tests/run.sh --all\n"


def test_the_readme_fits_on_a_few_screens() -> None:
    """Whoever wants more follows a link."""
    assert len(README.read_text().splitlines()) <= 130


def test_advice_is_shown_as_the_guide_has_it() -> None:
    """What `makeway tune` prints there is tested."""
    (shown,) = [block for block in _blocks("text") if block.startswith("recommended")]
    assert shown.rstrip("\n") in (ROOT / "docs/tune.md").read_text()


def test_the_configuration_is_short() -> None:
    """The one that the first command replays is linked, and has ten lines."""
    name = next(_shown(PAGES)).command.split()[2]
    assert f"({name})" in README.read_text()
    assert len([line for line in (ROOT / name).read_text().splitlines() if line]) <= 10


def test_the_policy_of_the_readme_runs() -> None:
    """As it stands, under the name that the command below it gives it."""
    plugin = types.ModuleType("youngest")
    exec(_blocks("python")[0], vars(plugin))
    assert "--plugin preempt/youngest=" in README.read_text()
    config = load_config(ROOT / "examples/kth/cluster.toml").config
    config = attrs.evolve(config, policy=attrs.evolve(config.policy, preempt="preempt/youngest"))
    jobs = open_workload(TRACE, ReadOptions(config=config, limit=300)).jobs
    run = replay(config, jobs, options=Options(plugins={"preempt/youngest": plugin}))
    assert run.recorder.metrics.preemptions > 0


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *PLUGINS]), ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    """Links into the repository name files that exist."""
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


# ------------------------------------------------------------------------------ pictures, files
def _drawn(first: str, page: Path) -> list[list[str]]:
    """Return the cells of the picture whose first cell is `first`."""
    (text,) = [block for block in _blocks("text", page) if block.startswith(first)]
    return [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]


Jobs = Mapping[str, Sequence[tuple[float, float, str, frozenset[str]]]]
"""Of each job from when to when it was in which state, and on which nodes."""


def _played(config: str, folder: Path) -> Jobs:
    record = folder / "record.json"
    _run(f"makeway replay {shlex.quote(str(ROOT / config))} --json {shlex.quote(str(record))}")
    return {
        name: [
            (each["start"], each["end"], each["state"], frozenset(expand_hostlist(each["nodes"])))
            for each in job["intervals"]
        ]
        for name, job in json.loads(record.read_text())["jobs"].items()
    }


def _state(jobs: Jobs, name: str, at: float, node: str) -> str | None:
    found = [state for start, end, state, nodes in jobs[name] if start <= at < end and node in nodes]
    return found[0] if found else None


def _after(cell: str) -> float:
    """Return an instant 3 s after the one that heads a column: jobs do not all arrive in the same second."""
    return float(cell.removesuffix(" s")) + 3


def test_the_picture_of_a_preemption_is_true(tmp_path: Path) -> None:
    """A job that is drawn on a node runs there, and no other does."""
    (_, *heads), *rows = _drawn("node ", ROOT / "docs/how-a-decision-is-made.md")
    jobs = _played("examples/seed/cluster.toml", tmp_path)
    for node, *drawn in rows:
        for at, job in zip(map(_after, heads), drawn, strict=True):
            assert [name for name in jobs if _state(jobs, name, at, node) == "RUNNING"] == [job], (node, at)


def test_the_picture_of_turns_is_true(tmp_path: Path) -> None:
    """Each column is an instant at which the turn changes."""
    (_, *heads), *rows = _drawn("job ", ROOT / "examples/gang/README.md")
    jobs = _played("examples/gang/cluster.toml", tmp_path)
    words = {"runs": "RUNNING", "stopped": "SUSPENDED", "-": None}
    assert {name for name, *_ in rows} == set(jobs)
    for name, *drawn in rows:
        for at, word in zip(map(_after, heads), drawn, strict=True):
            assert _state(jobs, name, at, "n1") == words[word], (name, at)


SITES = {
    "slurm.conf": ["examples/site/slurm.conf", "examples/site/june.sacct"],
    "moab.cfg": ["examples/moab/moab.cfg", "examples/moab/nodes.toml"],
    "lsb.queues": ["examples/lsf/lsb.*", "examples/lsf/jobs.jsonl"],
    "sched_config": ["examples/plugins/openpbs/tests/site/*"],
    "kueue.yaml": ["examples/kueue/*"],
}
"""Files of a site by the configuration that the table of README names."""


def _table_of_files() -> list[str]:
    _, _, text = README.read_text().partition("## Your files\n")
    return re.findall(r"\| `(makeway replay [^`]*)` \|$", text.partition("## ")[0], re.MULTILINE)


@pytest.mark.parametrize("command", _table_of_files())
def test_the_commands_for_a_sites_files_work(command: str, tmp_path: Path) -> None:
    """In a folder that holds such files under the names that the table uses."""
    config = shlex.split(command)[2]
    if config == "sched_config" and "openpbs/sched" not in entry_points(group="makeway").names:
        pytest.skip("the plugin for OpenPBS is not installed")
    for pattern in SITES[config]:
        for file in ROOT.glob(pattern):
            shutil.copy(file, tmp_path)
    (tmp_path / "jobs.swf").write_bytes(gzip.decompress(TRACE.read_bytes()))
    with contextlib.chdir(tmp_path):
        done = CliRunner().invoke(cli, [*shlex.split(command)[1:], "--limit", "100", "--allow-unusable"])
    assert done.exit_code == 0, done.output
    assert re.search(r"^preemptions +\d", done.stdout, re.MULTILINE)


def test_the_table_names_every_kind_of_file() -> None:
    """One command each."""
    assert [shlex.split(each)[2] for each in _table_of_files()] == list(SITES)


def _rewrite() -> None:
    """Put the outputs of today into the pages."""
    for page in PAGES:
        page.write_text(_SHOWN.sub(lambda m: f"{m[1]}{_run(m[2])}{m[4]}", page.read_text()))
    for page in PLUGINS:
        with tempfile.TemporaryDirectory() as folder:
            run = functools.partial(_run_scenario, page=page, folder=Path(folder))
            page.write_text(_SHOWN.sub(lambda m: f"{m[1]}{run(m[2])}{m[4]}", page.read_text()))  # noqa: B023


if __name__ == "__main__":
    _rewrite()
