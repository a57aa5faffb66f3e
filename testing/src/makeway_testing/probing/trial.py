"""Look at one plugin, from the outside in, and note all faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from makeway.config import build_cluster
from makeway.engine.engine import Engine
from makeway.errors import ConfigError, InvariantError, MakewayError, OutOfTime, PluginError, PolicyError
from makeway.model import Candidates, JobState
from makeway.record import Line, Recorder
from makeway.registry import Installed, Policies, load
from makeway.registry.asking import Call
from makeway.registry.finding import offers
from makeway.registry.fitting import fits, who_is
from makeway.replay import Options, answerable, drive
from makeway.worlds.simulated import SimulatedWorld
from makeway.worlds.watch import time_limit
from makeway_testing.probing.listing import LISTING, wrong_listings
from makeway_testing.probing.scenes import Scene, scenes
from makeway_testing.probing.stand import STAND_INS

_MOST = 10
"""Faults that are told apart; more of them say nothing new."""
_UNTIL = 20_000.0
"""Seconds after which a scene is over, whatever still waits."""
_PURE = ("makeway_preempt_candidates", "makeway_protect", "makeway_queue_order", "makeway_preempt_mode")
"""Hooks that are asked twice each time."""


@attrs.define
class Trial:
    """What is known about a plugin."""

    name: str
    installed: Installed | None = None
    """None: it is not."""
    plugin: Any = None
    hooks: tuple[str, ...] = ()
    calls: Counter[str] = attrs.field(factory=Counter)
    """Hook -> how often it was called."""
    scenes: int = 0
    faults: list[str] = attrs.field(factory=list)
    warnings: list[str] = attrs.field(factory=list)
    _known: set[Any] = attrs.field(factory=set)

    @property
    def uncalled(self) -> tuple[str, ...]:
        """Hooks that nothing in the scenes called for."""
        return tuple(hook for hook in self.hooks if not self.calls[hook])

    def blame(self, hook: str, message: str, job: str | None = None) -> None:
        """Note a fault of a hook."""
        item = self.installed
        source = f"{item.distribution} {item.version}" if item else ""
        self.note(PolicyError(self.name, hook, job, message, source))

    def note(self, error: BaseException) -> None:
        """Note a fault, unless it is known, be it of another job."""
        text = str(error)
        same = (error.hook, error.message) if isinstance(error, PolicyError) else text
        if same not in self._known and len(self.faults) < _MOST:
            self._known.add(same)
            self.faults.append(text)


def try_out(
    name: str, settings: Mapping[str, Any], limit: float, loose: Callable[[], Any] | None = None
) -> Trial:
    """Look at the plugin `name`.

    :param settings: ``[policy.settings]`` tables; only that of `name` counts.
    :param limit: seconds that the import and each call may take; 0: any.
    :param loose: imports the plugin if it is not an installed one.
    :raises PluginError: nobody offers it.
    """
    trial = Trial(name)
    try:
        trial.installed = None if loose else offers(name)
    except PluginError as error:
        trial.note(error)
        return trial
    if trial.installed is None and loose is None:
        load(name)  # which says what there is instead
    with time_limit(limit):
        try:
            trial.plugin = loose() if loose else load(name)
            trial.hooks, warned = fits(name, trial.plugin, trial.installed)
            trial.warnings += warned
        except PluginError as error:
            trial.note(error)
            return trial
        try:
            _try_listings(trial)
            _try_scenes(trial, settings)
        except OutOfTime as error:
            trial.note(PluginError(f"{who_is(name, trial.installed)} {error}"))
    return trial


def _try_listings(trial: Trial) -> None:
    for hook in LISTING:
        if hook in trial.hooks:
            trial.calls[hook] += 1
            try:
                for wrong in wrong_listings(trial.name, trial.plugin, hook):
                    trial.blame(hook, wrong)
            except OutOfTime as error:
                trial.blame(hook, str(error))
            except PluginError as error:
                trial.note(error)


def _try_scenes(trial: Trial, settings: Mapping[str, Any]) -> None:
    if not set(trial.hooks) - set(LISTING):
        return
    for scene in scenes(trial.name, trial.hooks, settings):
        trial.scenes += 1
        try:
            _play(trial, scene)
        except (PluginError, ConfigError) as error:
            trial.note(error)  # the same in every scene
            return
        except InvariantError as error:
            trial.note(PluginError(f"{who_is(trial.name, trial.installed)}, scene {scene.title!r}: {error}"))
        except MakewayError as error:
            trial.note(error)
            if isinstance(error.__cause__, OutOfTime):
                return  # each further scene would take as long


class _Counting(Policies):
    """Counts calls, and asks again to see whether the answer is the same."""

    def __init__(self, trial: Trial, scene: Scene) -> None:
        loose = {} if trial.installed else {trial.name: trial.plugin}
        super().__init__(scene.config, {**STAND_INS, **loose}, trace=True)
        self._trial = trial
        if "makeway_settings" in trial.hooks:
            trial.calls["makeway_settings"] += 1

    def _show(self, call: Call, hook: str, arguments: Mapping[str, Any], answer: Any) -> None:
        if call.plugin != self._trial.name:
            return
        self._trial.calls[hook] += 1
        if hook in _PURE and answer is not None and _essence(call(arguments)) != _essence(answer):
            about = arguments.get("preemptor")
            text = "answers the same question in another way when asked again; it must depend on its arguments only"
            self._trial.blame(hook, text, about.id if about is not None else None)

    def on_line(self, line: Line) -> None:
        """Count, then show the line to the observers."""
        if "makeway_on_line" in self._trial.hooks:
            self._trial.calls["makeway_on_line"] += 1
        super().on_line(line)

    def observers_failed(self) -> bool:
        """Whether an observer of the plugin on trial was switched off."""
        return self._trial.name in self._observers_off


def _essence(answer: Any) -> Any:
    """Return what of an answer can be compared."""
    if isinstance(answer, Candidates):
        return [job.id for job in answer.jobs], answer.modes
    if isinstance(answer, Mapping):
        return dict(answer)
    return list(answer) if isinstance(answer, tuple | list) else None


def _play(trial: Trial, scene: Scene) -> None:
    """Let the plugin answer in one scene, and look at what came of it.

    :raises MakewayError: it fails.
    """
    policies = _Counting(trial, scene)
    cluster = build_cluster(scene.config)
    recorder = Recorder(cluster, policies.on_line if policies.implements("makeway_on_line") else None)
    recorder.traced = lambda job: True
    with answerable(policies):
        policies.vocabulary()
        policies.findings(scene.config, cluster)
        engine = Engine(scene.config, recorder, policies)
    engine.trust()
    world = SimulatedWorld(scene.jobs, engine.clockwork, scene.commands)
    checks = _checks(scene)
    drive(engine, world, Options(until=_UNTIL, after_step=lambda engine: _look(engine, checks)))
    if policies.observers_failed():
        trial.blame("makeway_on_line", "raised an error; the log says which")
    left = list(_unfinished(engine))
    if left:
        jobs = f"job {left[0]} has" if len(left) == 1 else f"jobs {', '.join(left)} have"
        trial.warnings.append(f"scene {scene.title!r}: {jobs} not ended after {_UNTIL:g} s")


def _checks(scene: Scene) -> Any:
    # It comes with the kit for plugin authors, which nobody else has to load.
    from makeway.invariants import InvariantChecker

    return InvariantChecker(scene.commands)


def _look(engine: Engine, check: Any) -> None:
    check(engine)
    for job in engine.ledger.pending[:2]:
        with answerable(engine.policies):
            engine.policies.explain(job, engine.ledger)


def _unfinished(engine: Engine) -> Iterator[str]:
    for job_id, history in engine.recorder.histories.items():
        if history.final_state is None and history.state is not JobState.COMPLETING:
            yield job_id
