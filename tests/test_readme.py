"""Run what the README and the how-to show, and compare it with what they say comes out.

``python tests/test_readme.py`` writes the outputs anew, to be looked at before they are committed.
"""

from __future__ import annotations

import contextlib
import functools
import re
import shlex
import tempfile
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from makeway.cli import cli
from makeway.cli.inputs import load_config
from makeway.readers.api import ReadOptions
from makeway.readers.open import open_workload
from makeway.replay import Options, replay

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "docs/replay.md"]
PLUGINS = sorted(ROOT.glob("plugins/*/README.md"))
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


@pytest.mark.parametrize("shown", list(_shown(PLUGINS)), ids=str)
def test_scenarios_of_plugins_print_what_is_shown(shown: Shown, tmp_path: Path) -> None:
    """Exactly."""
    assert _run_scenario(shown.command, shown.page, tmp_path) == shown.output


@pytest.mark.parametrize("page", PLUGINS, ids=lambda page: page.parent.name)
def test_every_plugin_is_in_the_readme(page: Path) -> None:
    """With a link to its page."""
    assert f"({page.relative_to(ROOT)})" in README.read_text()


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
    assert second == "sh tests/run.sh\n"


def test_the_config_is_the_one_in_the_examples() -> None:
    """In ten lines."""
    text = _blocks("toml")[0]
    assert text == (ROOT / "examples/kth/cluster.toml").read_text()
    assert len([line for line in text.splitlines() if line]) <= 10


def test_the_policy_of_the_readme_runs() -> None:
    """As it stands, under the name that the entry point gives it."""
    plugin = types.ModuleType("makeway_preempt_youngest")
    exec(_blocks("python")[0], vars(plugin))
    assert f'= "{plugin.__name__}"' in _blocks("toml")[1]
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
