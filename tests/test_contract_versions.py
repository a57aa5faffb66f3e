"""The contract keeps its promises: frozen plugins go on working, new arguments are optional, old ones warn."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import sys
import tomllib
import types
import warnings
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway import deprecated, hookspecs
from makeway.deprecated import ContractWarning, Deprecation
from makeway.errors import PluginError
from makeway.hookspecs import hookimpl, hookspec
from makeway.registry import Policies, fitting
from makeway.worlds.events import Command
from makeway_app.cli import cli
from makeway_app.replay import Options, Run, replay
from makeway_testing import builders, cluster, replay_table, tiers, timeline

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* since makeway 0.1 and"
)  # the first plugin has the old hooks

HERE = Path(__file__).parent
CONTRACTS = HERE / "contracts"
FIRST = CONTRACTS / "v0_1.py"
NAME = "v/0_1"
FROZEN = {
    "v0_1.json": "68a65c500c5fcc7b89e87ec2ed11586aefd18f6e195497d9a03e3959b6b3f30b",
    "v0_1.py": "96778b3e7dc0f2754860ca5d4557f13db360844d1ff7ead7ce3f795dca3b2aac",
}
"""SHA-256 of what is never edited."""


def module_of(path: Path) -> types.ModuleType:
    """Import a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def first() -> types.ModuleType:
    """Return the first plugin, freshly imported."""
    return module_of(FIRST)


CONFIG: dict[str, Any] = {
    **dict.fromkeys(("select", "preempt", "gang", "search"), NAME),
    "protect": [NAME],
    "plugins": [NAME],
    "preempt_mode": "requeue",
    "partitions": tiers(low=1, high=2),
    "scheduler": "builtin",
}


# ------------------------------------------------------------------------------- what is frozen
@pytest.mark.parametrize("name", FROZEN)
def test_frozen_files_are_not_edited(name: str) -> None:
    """What a plugin of somebody else's looks like is not ours to change."""
    assert hashlib.sha256((CONTRACTS / name).read_bytes()).hexdigest() == FROZEN[name]


def test_every_version_of_the_contract_has_a_frozen_plugin() -> None:
    """The running one included, from its first release on."""
    version = hookspecs.CONTRACT_VERSION.replace(".", "_")
    assert f"v{version}.py" in FROZEN
    assert f"v{version}.json" in FROZEN


def test_the_contract_has_the_version_of_the_core() -> None:
    """First two numbers, so that a requirement on makeway is one on the contract."""
    core = tomllib.loads((HERE.parent / "core/pyproject.toml").read_text())["project"]["version"]
    assert core.startswith(f"{hookspecs.CONTRACT_VERSION}.")


def test_the_frozen_plugin_names_all_of_its_version(first: types.ModuleType) -> None:
    """Every hook and every argument that version 0.1 had."""
    listed = json.loads((CONTRACTS / "v0_1.json").read_text())["hooks"]
    for hook, spec in listed.items():
        parameters = list(inspect.signature(getattr(first, hook)).parameters)
        assert parameters == spec["arguments"], hook


def missing(listed: Mapping[str, Any], now: Mapping[str, Any], path: str = "") -> list[str]:
    """List what of `listed` is not there any more, and what is required now and was not."""
    found = []
    for key, was in listed.items():
        where = f"{path}.{key}" if path else key
        if key not in now:
            found.append(f"{where} is gone")
        elif isinstance(was, Mapping):
            found += missing(was, now[key], where)
        elif key == "required":
            found += [f"{where}: {each} is new" for each in now[key] if each not in was]
        elif isinstance(was, list):
            found += [f"{where}: {each} is gone" for each in was if each not in now[key]]
        elif was != now[key]:
            found.append(f"{where} was {was}, is {now[key]}")
    return found


def test_nothing_of_the_first_version_is_gone() -> None:
    """Hooks, arguments, names, fields; what was optional still is."""
    interface = module_of(CONTRACTS / "interface.py")
    listed = json.loads((CONTRACTS / "v0_1.json").read_text())
    now = {"hooks": interface.hooks(), "names": interface.names()}
    removed = {each.hook for each in deprecated.DEPRECATED}
    assert [each for each in missing(listed, now) if not any(hook in each for hook in removed)] == []


@pytest.mark.parametrize(
    ("listed", "now", "found"),
    [
        pytest.param({"a": {"fields": ["x"]}}, {"a": {"fields": ["x", "y"]}}, [], id="a new field"),
        pytest.param(
            {"a": {"fields": ["x"]}}, {"a": {"fields": ["y"]}}, ["a.fields: x is gone"], id="renamed"
        ),
        pytest.param(
            {"a": {"required": []}}, {"a": {"required": ["y"]}}, ["a.required: y is new"], id="needed"
        ),
        pytest.param({"a": {"required": ["y"]}}, {"a": {"required": []}}, ["a.required"], id="optional now"),
        pytest.param(
            {"a": {"first": True}}, {"a": {"first": False}}, ["a.first was True, is False"], id="kind"
        ),
        pytest.param({"a": {}}, {}, ["a is gone"], id="gone"),
    ],
)
def test_changes_are_seen(listed: dict[str, Any], now: dict[str, Any], found: list[str]) -> None:
    """The comparison itself: additions pass, all else does not."""
    if found == ["a.required"]:
        found = []  # a field that may be left out now breaks nobody
        listed = {"a": {"required": []}}
    assert missing(listed, now) == found


# ------------------------------------------------------------------------- it works as it did
def test_a_frozen_plugin_suspends_and_resumes(first: types.ModuleType) -> None:
    """The dear job is protected, the one that may not be requeued stops and goes on (100 s of work each)."""
    run = replay_table(
        """
        job   name   partition  submit  nodes  run_time  requeue  user
        keep  dear   low             0      1       100  true     ann
        soft  plain  low             0      1       100  false    ann
        back  plain  low             0      1       100  true     bob
        high  plain  high           10      1        20  true     eve
        """,
        cluster=cluster(3),
        config=CONFIG,
        plugins={NAME: first},
    )
    assert run.timeline == timeline("""
          0  back  start
          0  keep  start
          0  soft  start
         10  soft  suspend  for high
         10  high  start
         30  high  complete
         30  soft  resume
        100  back  complete
        100  keep  complete
        120  soft  complete
    """)


def test_a_frozen_plugin_gives_grace(first: types.ModuleType) -> None:
    """Four seconds from notice to requeue, as its settings say by default; a starts anew after that."""
    run = replay_table(
        """
        job   partition  submit  nodes  run_time  user
        a     low             0      1       100  ann
        b     low             0      1       100  bob
        high  high           20      1        10  eve
        """,
        cluster=cluster(2),
        config=CONFIG,
        plugins={NAME: first},
    )
    assert run.timeline == timeline("""
          0  a     start
          0  b     start
         20  a     notice  for high
         24  a     requeue
         24  high  start
         34  high  complete
         34  a     start
        100  b     complete
        134  a     complete
    """)
    assert run.signals == ("20 a CONT", "20 a USR1")


def test_a_frozen_plugin_limits_and_closes(first: types.ModuleType) -> None:
    """Two jobs per user, a third one after the first has ended; the careful job leaves the first node alone."""
    jobs = """
        job  name     partition  nodes  run_time  user
        x1   plain    low            1        10  ann
        x2   plain    low            1        20  ann
        x3   plain    low            1         5  ann
        c    careful  low            1         1  bob
    """
    run = replay_table(jobs, cluster=cluster(4), config=CONFIG, plugins={NAME: first})
    assert run.starts("x3") == (10.0,)
    alone = replay_table(
        jobs.splitlines()[1] + "\n" + jobs.splitlines()[5],
        cluster=cluster(2),
        config=CONFIG,
        plugins={NAME: first},
    )
    assert alone.nodes("c") == "n2"
    more = CONFIG | {"settings": {NAME: {"most_per_user": 3}}}
    assert replay_table(jobs, cluster=cluster(4), config=more, plugins={NAME: first}).starts("x3") == (0.0,)


def test_a_frozen_plugin_requeues_at_the_limit(first: types.ModuleType) -> None:
    """Once; the second time it is a timeout."""
    run = replay_table(
        """
        job  partition  nodes  run_time  time_limit
        a    low            1        60          50
        """,
        config=CONFIG,
        plugins={NAME: first},
    )
    assert run.timeline == timeline("""
          0  a  start
         50  a  requeue
         50  a  start
        100  a  timeout
    """)


def commanded(first: types.ModuleType, *commands: tuple[float, Command]) -> Run:
    """Replay two jobs on two nodes, with commands."""
    config = builders.config(cluster(2), CONFIG)
    jobs = builders.jobs("""
        job  partition  nodes  run_time  user
        a    low            1        60  ann
        b    low            1        60  bob
    """)
    return replay(config, jobs, commands, Options(plugins={NAME: first}))


def test_a_frozen_plugin_understands_people(first: types.ModuleType) -> None:
    """Mallory may do nothing; two jobs are meant by a+b."""
    run = commanded(first, (3.0, Command("cancel", "a", "mallory")), (5.0, Command("cancel", "a+b", None)))
    assert [reason for _, _, reason in run.recorder.refusals] == ["mallory may not cancel a"]
    ends = {job_id: history.intervals[-1][2] for job_id, history in run.recorder.histories.items()}
    assert ends == {"a": 5.0, "b": 5.0}
    assert first.SEEN.count(("refused", "a")) == 1


def test_a_frozen_plugin_is_asked_about_words_checks_and_files(
    first: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed as its author would have it: reader, findings and settings by the command line."""
    installed(tmp_path, monkeypatch)
    (tmp_path / "first.conf").write_text("# first.conf\nmachine one\nmachine two\n")
    done = CliRunner().invoke(cli, ["import", str(tmp_path / "first.conf")])
    assert done.exit_code == 0, done.output
    assert {node["name"] for node in tomllib.loads(done.stdout)["node"]} == {"one", "two"}
    done = CliRunner().invoke(cli, ["check", str(tmp_path / "first.conf")])
    assert "select is select/linear" in done.output
    words = Policies(builders.config(cluster(1), CONFIG), {NAME: first}).vocabulary()
    assert (words.noun("partition"), words.reason("Resources")) == ("group", "No machine")


def test_a_frozen_plugin_has_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hook that the scenes can call for is called, and answers rightly."""
    installed(tmp_path, monkeypatch)
    done = CliRunner().invoke(cli, ["plugins", "--check", NAME, "--json"])
    assert done.exit_code == 0, done.output
    calls = json.loads(done.stdout)[0]["hooks"]
    # Whom a shadow falls on is asked about by other arbiters than the plugin's own.
    assert [hook for hook, count in calls.items() if not count] == ["makeway_preempt_mode"]


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the first plugin on the path as a distribution that was written for 0.1 and any later version."""
    info = folder / "makeway_first-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: makeway-first\nVersion: 0.1\nRequires-Dist: makeway>=0.1\n"
    )
    (info / "entry_points.txt").write_text(f"[makeway]\n{NAME} = v0_1\n")
    (folder / "v0_1.py").write_text(FIRST.read_text())
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "v0_1", raising=False)


# ---------------------------------------------------------------------------- how it may change
def grown(extra: Mapping[str, Any] | None = None) -> types.ModuleType:
    """Return a later contract: each hook has one more argument, and there may be further hooks."""
    later = types.ModuleType("later")
    for name, arguments in fitting.specified().items():
        # As source: what a function takes is read from its code.
        exec(f"def {name}({', '.join([*arguments, 'novelty'])}): pass", vars(later))
        vars(later)[name].makeway_spec = vars(hookspecs)[name].makeway_spec
    vars(later).update(extra or {})
    return later


def test_new_arguments_are_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first plugin goes on under a contract in which every hook has one more."""
    monkeypatch.setattr(fitting, "hookspecs", grown())
    assert all("novelty" in arguments for arguments in fitting.specified().values())
    test_a_frozen_plugin_suspends_and_resumes(module_of(FIRST))


def test_plugins_take_those_that_they_name() -> None:
    """In any order, and a default gives way to what the contract has."""
    seen: list[tuple[Any, ...]] = []

    class Plugin:
        @staticmethod
        @hookimpl
        def makeway_queue_order(now: float = -1.0, view: Any = None) -> None:
            seen.append((now, view is not None))

    config = builders.config(cluster(1), {"plugins": ["x/new"]})
    replay(config, builders.jobs("job run_time\na 5\nb 5"), (), Options(plugins={"x/new": Plugin}))
    assert seen[0] == (0.0, True)


def test_an_argument_of_a_newer_contract_keeps_its_default() -> None:
    """So one plugin serves both; a misspelt argument is no newer one."""
    seen: list[Any] = []

    class Newer:
        @staticmethod
        @hookimpl
        def makeway_queue_order(pending: Any, budgets: Any = "none yet") -> None:
            seen.append(budgets)

    class Misspelt:
        @staticmethod
        @hookimpl
        def makeway_queue_order(pending: Any, veiw: Any = None) -> None:
            """Never called."""

    config = builders.config(cluster(1), {"plugins": ["x/new"]})
    replay(config, builders.jobs("job run_time\na 5\nb 5"), (), Options(plugins={"x/new": Newer}))
    assert set(seen) == {"none yet"}
    with pytest.raises(PluginError, match=r"unknown argument 'veiw'.*did you mean 'view'"):
        Policies(config, {"x/new": Misspelt})


# -------------------------------------------------------------------------------- deprecations
OLD = Deprecation(hook="makeway_old", instead="implement makeway_queue_order", since="0.2", remove_in="0.4")
WORN = Deprecation(hook="makeway_worn", argument="tired", instead="take fresh", since="0.2", remove_in="0.4")
TABLE = (OLD, WORN)


def with_old_hooks() -> types.ModuleType:
    """Return a contract in which one hook is old, and one argument of another."""

    @hookspec(warn_on_impl=deprecated.hook("makeway_old", TABLE))
    def makeway_old(now: float) -> None:
        """Is old."""

    @hookspec(warn_on_impl_args=deprecated.arguments("makeway_worn", TABLE))
    def makeway_worn(tired: float, fresh: float) -> None:
        """Has an old argument."""

    return grown({"makeway_old": makeway_old, "makeway_worn": makeway_worn})


class Old:
    """A plugin that uses both."""

    @staticmethod
    @hookimpl
    def makeway_old(now: float) -> None:
        """Do nothing."""

    @staticmethod
    @hookimpl
    def makeway_worn(tired: float) -> None:
        """Do nothing."""


def test_deprecations_warn_with_the_version_of_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever uses the plugin hears what goes, when, and what to do, and by which plugin; it still loads."""
    monkeypatch.setattr(fitting, "hookspecs", with_old_hooks())
    monkeypatch.setattr(fitting, "_WARNED", set())
    config = builders.config(cluster(1), {"plugins": ["x/old"]})
    with pytest.warns(ContractWarning) as caught:
        Policies(config, {"x/old": Old})
    assert sorted(str(each.message) for each in caught) == [
        "plugin 'x/old': argument 'tired' of hook makeway_worn is deprecated since makeway 0.2 and removed in "
        "0.4; take fresh",
        "plugin 'x/old': hook makeway_old is deprecated since makeway 0.2 and removed in 0.4; "
        "implement makeway_queue_order",
    ]
    assert {each.filename for each in caught} == {__file__}


def test_the_command_line_shows_deprecations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line on standard error in a replay, and in a check; no error."""
    installed(tmp_path, monkeypatch)
    (tmp_path / "v0_1.py").write_text(
        "from makeway.hookspecs import hookimpl\n@hookimpl\ndef makeway_old(now): pass\n"
        "@hookimpl\ndef makeway_protect(): pass\n"
    )
    config = tmp_path / "cluster.toml"
    config.write_text(
        f'node = [{{ name = "n" }}]\npartition = [{{ name = "p" }}]\njob = [{{ run_time = 1.0 }}]\n'
        f'policy.plugins = ["{NAME}"]\n'
    )
    monkeypatch.setattr(fitting, "hookspecs", with_old_hooks())
    monkeypatch.setattr(fitting, "_WARNED", set())
    line = (
        "warning: plugin 'v/0_1' of makeway-first 0.1: hook makeway_old is deprecated since makeway 0.2 and "
        "removed in 0.4; implement makeway_queue_order\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = CliRunner().invoke(cli, ["replay", str(config)])
        assert (done.exit_code, done.stderr) == (0, line)
        monkeypatch.setattr(fitting, "_WARNED", set())
        done = CliRunner().invoke(cli, ["plugins", "--check", NAME])
        assert (done.exit_code, done.stderr) == (0, line)


def test_what_was_removed_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """And since when, and what to do: no mere typing error."""
    monkeypatch.setattr(deprecated, "DEPRECATED", TABLE)
    config = builders.config(cluster(1), {"plugins": ["x/old"]})
    with pytest.raises(
        PluginError,
        match=r"hook makeway_old was removed in makeway 0\.4; implement makeway_queue_order",
    ):
        Policies(config, {"x/old": Old})


@pytest.mark.parametrize(
    ("version", "count"), [("0.3.9", 0), ("0.4", 2), ("0.4.0", 2), ("0.10.0", 2), ("1.0", 2)]
)
def test_overdue_removals_are_found(version: str, count: int) -> None:
    """From the version of removal on, as long as the contract still has it."""
    hooks = {"makeway_old": ("now",), "makeway_worn": ("tired", "fresh")}
    assert len(deprecated.overdue(version, hooks, TABLE)) == count
    assert deprecated.overdue(version, {"makeway_worn": ("fresh",)}, TABLE) == []


def test_nothing_is_overdue() -> None:
    """Fails once the core reaches the version in which something was promised to be gone."""
    assert deprecated.overdue(metadata.version("makeway"), fitting.specified()) == []


def test_the_table_and_the_hookspecs_agree() -> None:
    """What is in the table warns, until it is removed; what warns is in the table."""
    warning: set[tuple[str, str | None]] = set()
    for name in fitting.specified():
        options = vars(hookspecs)[name].makeway_spec
        if options["warn_on_impl"] is not None:
            warning.add((name, None))
        warning |= {(name, argument) for argument in options["warn_on_impl_args"] or {}}
    hooks = fitting.specified()
    listed = {(each.hook, each.argument) for each in deprecated.DEPRECATED if each.hook in hooks}
    assert warning == listed


def test_two_minor_releases_at_the_least() -> None:
    """From the first warning to the removal."""
    for each in (*deprecated.DEPRECATED, *TABLE):
        since, until = ([int(part) for part in text.split(".")[:2]] for text in (each.since, each.remove_in))
        assert until[0] > since[0] or until[1] - since[1] >= 2
