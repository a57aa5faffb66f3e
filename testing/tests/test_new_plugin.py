"""``makeway new-plugin``: names, what is refused, what is written; that it works is tests/test_new_plugin_works.py."""

from __future__ import annotations

import ast
import importlib.util
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway.model import JobSpec
from makeway_testing.builders import node
from makeway_testing.new_plugin import KINDS, Names
from makeway_testing.relay import relay
from makeway_testing.strategies import Scenario

Run = Callable[..., Any]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of its own the current one."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_distribution_is_written(run: Run, here: Path, kind: str) -> None:
    """One name, spelled as each place wants it; every module can be parsed; nothing else is left behind."""
    done = run("new-plugin", "last-come-first", "--kind", kind)
    assert (done.status, done.err) == (0, "")
    folder = here / f"makeway-{kind}-last-come-first"
    package = f"makeway_{kind}_last_come_first"
    assert [path.name for path in here.iterdir()] == [folder.name]
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == folder.name
    assert project["entry-points"]["makeway"] == {f"{kind}/last_come_first": package}
    assert "makeway-core>=0.1,<0.2" in project["dependencies"]
    assert (folder / "src" / package / "py.typed").is_file()
    assert (folder / "README.md").read_text().startswith(f"# {folder.name}\n")
    modules = sorted(folder.rglob("*.py"))
    assert {"__init__.py", "test_contract.py", "test_rule.py"} <= {path.name for path in modules}
    for path in modules:
        assert ast.get_docstring(ast.parse(path.read_text()))
    for path in folder.rglob("*.toml"):
        tomllib.loads(path.read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_explain_their_arguments(run: Run, here: Path, kind: str) -> None:
    """Every argument of every hook but the trivial ones is in its docstring, or in that of what it builds."""
    run("new-plugin", "some", "--kind", kind)
    module = next(here.glob("*/src/*/__init__.py")).read_text()
    hooks = [node for node in ast.parse(module).body if isinstance(node, ast.FunctionDef)]
    hooks = [node for node in hooks if node.name.startswith("makeway_")]
    assert hooks
    for hook in hooks:
        text = ast.get_docstring(hook) or ""
        assert text
        missing = [arg.arg for arg in hook.args.args if f":param {arg.arg}:" not in text]
        assert not missing, f"{hook.name}: {missing}"


def test_the_next_three_commands_are_told(run: Run, here: Path) -> None:
    """Install, test, replay: as they are to be typed."""
    (here / "my site").mkdir()
    done = run("new-plugin", "preempt/youngest", "--kind", "preempt", "--into", "my site")
    assert done.out.splitlines()[-4:] == [
        "next:",
        "  python -m pip install -e './my site/makeway-preempt-youngest[test]'",
        "  python -m pytest 'my site/makeway-preempt-youngest'",
        "  makeway replay 'my site/makeway-preempt-youngest/example.toml'",
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("Youngest First", "such as 'youngest_first'", id="capitals and blanks"),
        pytest.param("1st", "such as 'st'", id="a digit first"),
        pytest.param("", "allowed: small letters", id="empty"),
        pytest.param("../x", "before the slash is the kind", id="a path"),
        pytest.param("preempt/../x", "such as 'x'", id="a path behind the kind"),
        pytest.param("gang/x", "--kind says 'preempt'", id="another kind"),
        pytest.param("x" * 61, "at most 60", id="too long"),
        pytest.param("a__b", "such as 'a_b'", id="two underscores"),
        pytest.param("größe", "allowed: small letters", id="letters beyond ASCII"),
        pytest.param("none", "'preempt/none' is offered by makeway", id="installed already"),
    ],
)
def test_bad_names(run: Run, here: Path, name: str, said: str) -> None:
    """One clear error, exit status 2, nothing written."""
    done = run("new-plugin", name, "--kind", "preempt")
    assert done.status == 2
    assert said in done.err
    assert not list(here.iterdir())


def test_names_of_installed_distributions_are_taken(run: Run, here: Path, install: Any) -> None:
    """A distribution of that name, or a package, would be hidden by the new one."""
    install("makeway-preempt-mine", {"preempt/other": "other"}, {"other": "", "makeway_preempt_yours": ""})
    done = run("new-plugin", "mine", "--kind", "preempt")
    assert (done.status, "makeway-preempt-mine 1.0 is installed already" in done.err) == (2, True)
    done = run("new-plugin", "yours", "--kind", "preempt")
    assert (done.status, "makeway_preempt_yours can be imported" in done.err) == (2, True)


def test_nothing_is_overwritten(run: Run, here: Path) -> None:
    """Neither a folder nor a file nor a link that leads nowhere."""
    folder = here / "makeway-preempt-mine"
    folder.mkdir()
    (folder / "notes").write_text("mine")
    (here / "makeway-preempt-yours").write_text("a file")
    (here / "makeway-preempt-lost").symlink_to(here / "nowhere")
    for name in ("mine", "yours", "lost"):
        done = run("new-plugin", name, "--kind", "preempt")
        assert (done.status, "is there already; nothing was written" in done.err) == (2, True)
    assert [path.name for path in folder.iterdir()] == ["notes"]
    assert len(list(here.iterdir())) == 3


def test_a_folder_that_does_not_exist(run: Run, here: Path) -> None:
    """It is not made: that would be a typing error's work."""
    done = run("new-plugin", "mine", "--kind", "preempt", "--into", "plugnis")
    assert (done.status, "plugnis: no such folder" in done.err) == (2, True)
    assert not list(here.iterdir())


def test_names() -> None:
    """The rule of this project: one name, three spellings."""
    names = Names(kind="preempt", name="last_come_first")
    assert names.entry == "preempt/last_come_first"
    assert names.package == "makeway_preempt_last_come_first"
    assert names.distribution == "makeway-preempt-last-come-first"


def test_an_arbiter_hears_of_jobs_that_are_leaving(run: Run, here: Path) -> None:
    """One that takes over while a job is being ended leaves the next one stopped until it is told of the end."""
    assert run("new-plugin", "mine", "--kind", "gang").status == 0
    source = here / "makeway-gang-mine/src/makeway_gang_mine/__init__.py"
    spec = importlib.util.spec_from_file_location("makeway_gang_mine", source)
    assert spec is not None
    assert spec.loader is not None
    plugin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plugin)
    shares = {name: {"oversubscribe": "FORCE:2"} for name in ("a", "b")}
    ends_by_limit = JobSpec(id="one", partitions=("a",), submit_at=0.0, run_time=20.0, time_limit=15.0)
    waits = JobSpec(id="two", partitions=("b",), submit_at=0.0, run_time=10.0)
    scenario = Scenario(
        machine=(node("n1", cpus=1),),
        settings={"partitions": shares, "gang": "gang/mine"},
        specs=(ends_by_limit, waits),
        commands="",
        until=None,
    )
    relay(scenario, {"gang/mine": plugin})
