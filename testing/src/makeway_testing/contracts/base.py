"""What all contracts share: how a plugin is named, how random runs are drawn, and how a rule is held against them."""

from __future__ import annotations

import inspect
import os
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.strategies import SearchStrategy

from makeway import registry
from makeway.config import Config
from makeway.errors import MakewayError, PluginError
from makeway.model import Job
from makeway.record import Preemption
from makeway_engine.engine import Engine
from makeway_testing import builders
from makeway_testing.failures import BreachError, Broken, ContractError, source_of
from makeway_testing.invariants import InvariantChecker
from makeway_testing.patience import MOST_STEPS, Patience, endless
from makeway_testing.profile import profile
from makeway_testing.scenario import TableRun
from makeway_testing.shrinking import smallest
from makeway_testing.strategies import Scenario
from makeway_testing.watching import Call, watched

EXAMPLES = "MAKEWAY_EXAMPLES"
"""Environment variable: how many random runs each rule is held against."""


class Contract:
    """Base of all contracts; see `makeway_testing.contracts`.

    Subclass one of the contracts below, set ``__test__ = True`` and `plugin`, and pytest collects its rules.
    """

    __test__ = False
    plugin: ClassVar[str] = ""
    """Name of the entry point: ``preempt/youngest``."""
    module: ClassVar[Any] = None
    """The plugin itself, if it is not installed; None: it is found by its entry point."""
    settings: ClassVar[Mapping[str, Any]] = {}
    """Keys of ``[policy.settings."<plugin>"]``."""
    config: ClassVar[Mapping[str, Any]] = {}
    """What else the configuration says, flat, as for `makeway_testing.config`; it wins over what is drawn."""
    companions: ClassVar[Mapping[str, Any]] = {}
    """Further plugins by name that need no installation."""
    examples: ClassVar[int] = 25
    """How many random runs each rule is held against; ``MAKEWAY_EXAMPLES`` in the environment wins."""
    trials: ClassVar[int] = 400
    """How many smaller scenarios are tried once a rule is found broken."""
    found: ClassVar[Sequence[Scenario]] = ()
    """Scenarios that are played first for every rule: what was found once is kept here (`Scenario.of`)."""
    hook: ClassVar[str] = ""
    """The hook that makes a plugin one of this kind."""

    # --------------------------------------------------------------------------- for subclasses
    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw what the rules are held against; override it where a policy looks at something else."""
        raise NotImplementedError

    def key(self) -> str:
        """Return the key of ``[policy]`` that names the plugin."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------- every kind
    def test_it_can_be_selected(self) -> None:
        """The plugin is found by its name, its hooks are spelled as in the contract, and its settings fit."""
        plugin = self._plugin()
        if not hasattr(getattr(plugin, self.hook, None), "makeway_impl"):
            self.fail(f"it does not implement {self.hook}, or lacks @hookimpl there", hook=self.hook)
        try:
            registry.Policies(self.configured(), {**self.companions, self.plugin: plugin})
        except MakewayError as error:
            self.fail(str(error))

    def configured(self) -> Config:
        """Return a configuration with the plugin in it, and nothing else that need be said."""
        return builders.config(None, self._wired({}))

    # ---------------------------------------------------------------------------------- playing
    def play(
        self,
        scenario: Scenario,
        watch: Callable[[Call], None] | None = None,
        replace: Callable[[str, Any], Any] | None = None,
        checker: InvariantChecker | None = None,
        *,
        checked: bool = True,
    ) -> TableRun:
        """Replay `scenario` with the plugin under test.

        :param checked: False: without the invariants.
        :raises MakewayError: whatever comes of it.
        """
        plugin = self._plugin()
        if watch is not None or replace is not None:
            plugin = watched(plugin, watch or _look_away, replace)
        return scenario.replay(
            plugins={**self.companions, self.plugin: plugin},
            checker=checker or (self.checker(()) if checked else Patience()),
        )

    def checker(self, calls: Sequence[Call]) -> InvariantChecker:
        """Return what checks the invariants of one run; `calls` grows with it."""
        del calls
        return PatientChecker(allowed=any_victim)

    def draw(self) -> SearchStrategy[Scenario]:
        """Return `scenarios`, with the plugin, its settings and `config` in each."""
        return self.scenarios().map(self._with_plugin)

    def _with_plugin(self, scenario: Scenario) -> Scenario:
        if isinstance(scenario.settings, Config):
            return scenario
        return scenario.with_settings(**self._wired(scenario.settings))

    def _wired(self, given: Mapping[str, Any]) -> dict[str, Any]:
        key = self.key()
        many = key in ("protect", "plugins")
        found: dict[str, Any] = {**self.config, key: (self.plugin,) if many else self.plugin}
        if self.settings:
            both = {**given.get("settings", {}), **self.config.get("settings", {})}
            found["settings"] = {**both, self.plugin: dict(self.settings)}
        return found

    def _plugin(self) -> Any:
        if not self.plugin:
            raise TypeError(f"{type(self).__name__}: set `plugin` to the name of the entry point")
        if self.module is not None:
            return self.module
        try:
            return registry.load(self.plugin)
        except PluginError as error:
            self.fail(str(error))

    # ------------------------------------------------------------------------------- holding rules
    @registry.one_look()
    def hold(
        self,
        rule: Callable[[Scenario], None],
        drawn: SearchStrategy[Scenario] | None = None,
        *,
        times: int = 1,
    ) -> None:
        """Hold `rule` against random scenarios; the docstring of the test that calls says what the rule is.

        :param rule: raises `BreachError` if a scenario shows that it is broken; other errors of a run are
            other rules' business.
        :param drawn: the scenarios, the plugin in each; None: those of `draw`.
        :param times: `examples` are drawn so many times over.
        :raises ContractError: with the smallest scenario that was found.
        """
        shown: list[tuple[Scenario, BreachError]] = []

        def breach(scenario: Scenario) -> BreachError | None:
            try:
                rule(scenario)
            except BreachError as error:
                return error
            except MakewayError:
                return None
            return None

        def attempt(scenario: Scenario) -> None:
            error = breach(scenario)
            if error is not None:
                shown.append((scenario, error))
                raise error

        def shows(scenario: Scenario) -> bool:
            try:
                error = breach(scenario)
            except Exception:  # taken apart so far that it is no scenario any more
                return False
            if error is not None:
                shown.append((scenario, error))
            return error is not None

        try:
            for scenario in self.found:
                attempt(self._with_plugin(scenario))
            self._effort(times)(hypothesis.given(self.draw() if drawn is None else drawn)(attempt))()
        except (BreachError, hypothesis.errors.HypothesisException):
            if not shown:
                raise
        if shown:
            smallest(shown[0][0], shows, self.trials)
            scenario, error = shown[-1]
            self.fail(error, scenario=scenario)

    def _effort(self, times: int = 1) -> hypothesis.settings:
        asked = profile()
        most = self.examples if asked.examples is None else min(self.examples, asked.examples)
        count = int(os.environ.get(EXAMPLES) or most)
        return hypothesis.settings(
            max_examples=count if times == 1 else times * max(count, asked.least),
            derandomize=EXAMPLES not in os.environ,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )

    def skip(self, why: str) -> NoReturn:
        """Leave out a rule that the plugin has not promised to keep.

        :raises unittest.SkipTest: always.
        """
        raise unittest.SkipTest(why)

    def fail(self, found: str | BreachError, *, hook: str = "", scenario: Scenario | None = None) -> NoReturn:
        """Fail the test that is running; the first paragraph of its docstring is the rule.

        :raises ContractError: always.
        """
        error = found if isinstance(found, BreachError) else BreachError(found, hook=hook)
        broken = Broken(
            contract=_contract_of(type(self)),
            rule=_rule_of(self, _test_that_calls()),
            plugin=self.plugin,
            found=error.found,
            hook=error.hook,
            job=error.job,
            at=error.at,
            scenario="" if scenario is None else source_of(scenario),
        )
        raise ContractError(broken) from None


def _look_away(call: Call) -> None:
    del call


def any_victim(engine: Engine, entry: Preemption, victim: Job) -> str:
    """Allow every preemption; what may go is what the contract for preempt plugins is about."""
    del engine, entry, victim
    return ""


class PatientChecker(InvariantChecker):
    """Checks the invariants, and ends a run that would never end."""

    def __call__(self, engine: Engine) -> None:
        """Check after a step."""
        super().__call__(engine)
        if self.steps > MOST_STEPS:
            raise endless(engine)


# --------------------------------------------------------------------------------------- names
def _contract_of(cls: type[Any]) -> str:
    """Return the name of the contract that a test class subclasses."""
    return next(base.__name__ for base in cls.__mro__ if base.__module__.startswith(__package__ or "?"))


def _rule_of(contract: Contract, test: str) -> str:
    text = inspect.getdoc(getattr(contract, test, None)) or test
    return " ".join(text.partition("\n\n")[0].split()).removesuffix(".")


def _test_that_calls() -> str:
    names = (frame.function for frame in inspect.stack(context=0))
    return next((name for name in names if name.startswith("test_")), "")
