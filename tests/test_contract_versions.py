"""The contract keeps its promises: new arguments are optional, old ones warn."""

from __future__ import annotations

import tomllib
import types
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from makeway import deprecated, hookspecs
from makeway.deprecated import ContractWarning, Deprecation
from makeway.errors import PluginError
from makeway.hookspecs import hookimpl, hookspec
from makeway.registry import Policies, fitting
from makeway_app.replay import Options, replay
from makeway_testing import builders, cluster

HERE = Path(__file__).parent


def test_the_contract_has_the_version_of_the_core() -> None:
    """First two numbers, so that a requirement on makeway is one on the contract."""
    core = tomllib.loads((HERE.parent / "core/pyproject.toml").read_text())["project"]["version"]
    assert core.startswith(f"{hookspecs.CONTRACT_VERSION}.")


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
def grown(extra: Mapping[str, Any] | None = None) -> types.ModuleType:
    """Return a later contract: each hook has one more argument, and there may be further hooks."""
    later = types.ModuleType("later")
    for name, arguments in fitting.specified().items():
        # As source: what a function takes is read from its code.
        exec(f"def {name}({', '.join([*arguments, 'novelty'])}): pass", vars(later))
        vars(later)[name].makeway_spec = vars(hookspecs)[name].makeway_spec
    vars(later).update(extra or {})
    return later


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
