"""Look at one plugin, from the outside in, and note all faults."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import process_time  # bound here: probes let the clock of `time` stand still
from typing import Any

import attrs

from makeway.config import build_cluster
from makeway.errors import ConfigError, InvariantError, MakewayError, OutOfTime, PluginError, PolicyError
from makeway.model import Blocked, Candidates, ClusterView, Job, JobState
from makeway.record import Recorder
from makeway.registry import Installed, Policies, load
from makeway.registry.asking import Call
from makeway.registry.finding import offers
from makeway.registry.fitting import fits, who_is
from makeway.registry.limits import METHODS, Has
from makeway.registry.tables import settings_class
from makeway.settings import structure
from makeway.worlds.watch import time_limit
from makeway_app.replay import Options, Run, answerable, drive
from makeway_app.worlds.simulated import SimulatedWorld
from makeway_engine.engine import Engine
from makeway_testing.probing import probes
from makeway_testing.probing.listing import LISTING, wrong_readers
from makeway_testing.probing.scenes import Scene, scenes
from makeway_testing.probing.stand import STAND_INS
from makeway_testing.watching import plain

_MOST = 10
"""Faults that are told apart; more of them say nothing new."""
_UNTIL = 5_000.0
"""Seconds after which a scene is over, whatever still waits."""
_SAYS = {
    "makeway_preempt_candidates": "named a candidate",
    "makeway_protect": "protected a job",
    "makeway_search": "chose a job",
    "makeway_limits.admit": "kept a job out",
    "makeway_limits.closed_nodes": "closed a node",
    "makeway_limits.past_time_limit": "planned anything",
    "makeway_explain": "said anything",
}
"""Hook -> what an answer does that puts its rule to the test."""
_FOR_EVER = 30
"""Times that one job makes way in a scene of some minutes, if jobs displace one another for ever."""
_DECIDES = (*probes.TIMED, "makeway_search", "makeway_limits.past_time_limit")
"""Hooks whose answers are compared when scenes are played again."""
_PLACE = re.compile(r" at 0x[0-9a-f]+")
"""Where something lies in memory, which tells nothing."""
_NUISANCES = ("requeue, easy", "cancel, greedy", "suspend+gang, backfill")
"""Scenes that are played again under other circumstances."""
_BUSY = "requeue, greedy"
"""The scene that is played with many jobs: each that waits asks for candidates."""
_SLOW = 0.01
"""Seconds a call that are slow, as a replay asks for each job that waits, in each pass."""
_PATIENCE = 4
"""Time limits of a decision that a slow hook may take in all: the scenes ask some thousand times."""
_PURE = ("makeway_preempt_candidates", "makeway_protect", "makeway_queue.sort", "makeway_preempt_mode")
"""Hooks that are asked twice each time."""


@attrs.define
class _Pace:
    """How long the calls of each hook took; time that other programs take from them does not count."""

    limit: float
    """Seconds that all calls of a slow hook may take; 0: any."""
    calls: Counter[str] = attrs.field(factory=Counter)
    seconds: dict[str, float] = attrs.field(factory=dict)
    slow: dict[str, str] = attrs.field(factory=dict)
    """Hook -> what is said of it, once it has taken too long."""

    def took(self, hook: str, seconds: float) -> str | None:
        """Note a call; return what is said of a slow hook."""
        self.calls[hook] += 1
        whole = self.seconds[hook] = self.seconds.get(hook, 0.0) + seconds
        each = whole / self.calls[hook]
        if hook not in self.slow and 0 < self.limit < whole and each >= _SLOW:
            asked = "a replay asks for each job that waits, in each pass"
            self.slow[hook] = f"takes {each * 1000:,.0f} ms a call; {asked}, so the check ends here"
        return self.slow.get(hook)


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
    spoke: Counter[str] = attrs.field(factory=Counter)
    """Hook -> how often its answer named, kept out, closed, ordered or planned anything."""
    named: int = 0
    """Candidates, over all answers."""
    victims: int = 0
    """Preemptions in all scenes."""
    scenes: int = 0
    faults: list[str] = attrs.field(factory=list)
    warnings: list[str] = attrs.field(factory=list)
    transcript: list[str] | None = None
    """All answers, one text each; None: they are not kept."""
    watch: probes.Stopwatch | probes.Steps | None = None
    """Times single answers, or counts their steps; None: nothing asks."""
    pace: _Pace = attrs.field(factory=lambda: _Pace(0.0))
    """How long the calls took, over all scenes."""
    _known: set[Any] = attrs.field(factory=set)
    _at_fault: set[str] = attrs.field(factory=set)
    """Hooks that a fault names; one that raises each time has no answer to count."""

    @property
    def untested(self) -> tuple[tuple[str, str], ...]:
        """Hooks of which the scenes say nothing, each with the reason."""
        found = []
        for hook in self.hooks:
            if not self.calls[hook] and hook in self._at_fault:
                continue
            if not self.calls[hook]:
                found.append((hook, "never called"))
            elif hook in _SAYS and not self.spoke[hook]:
                found.append((hook, f"it never {_SAYS[hook]}"))
        return tuple(found)

    def notes(self, questions: Sequence[str]) -> None:
        """Note which questions an object that the plugin built answers; each is to be tested as a hook is."""
        self.hooks = tuple(dict.fromkeys((*self.hooks, *questions)))

    def blame(self, hook: str, message: str, job: str | None = None) -> None:
        """Note a fault of a hook."""
        self.note(self.fault(hook, message, job))

    def fault(self, hook: str, message: str, job: str | None = None) -> PolicyError:
        """Return a fault of a hook."""
        item = self.installed
        source = f"{item.distribution} {item.version}" if item else ""
        return PolicyError(self.name, hook, job, message, source)

    def note(self, error: BaseException) -> None:
        """Note a fault, unless it is known, be it of another job."""
        text = str(error)
        if isinstance(error, PolicyError):
            self._at_fault.add(error.hook)
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
    :raises PluginError: nothing offers it.
    """
    trial = Trial(name, pace=_Pace(_PATIENCE * limit))
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
            trial.hooks = fits(name, trial.plugin, trial.installed)
        except PluginError as error:
            trial.note(error)
            return trial
        try:
            _try_listings(trial)
            _try_defaults(trial)
            _try_scenes(trial, settings)
        except OutOfTime as error:
            trial.note(PluginError(f"{who_is(name, trial.installed)} {error}"))
    return trial


def _try_listings(trial: Trial) -> None:
    if LISTING in trial.hooks:
        trial.calls[LISTING] += 1
        try:
            for wrong in wrong_readers(trial.name, trial.plugin):
                trial.blame(LISTING, wrong)
        except OutOfTime as error:
            trial.blame(LISTING, str(error))
        except PluginError as error:
            trial.note(error)


def _try_defaults(trial: Trial) -> None:
    """Hold plain defaults of the settings to their types, as if a user had written them."""
    try:
        cls = settings_class(who_is(trial.name, trial.installed), trial.plugin)
    except PluginError:
        return  # the first scene tells
    if cls is None:
        return
    for field in attrs.fields(cls):
        if field.init and type(field.default) in (str, int, float, bool):
            try:
                structure({field.name: field.default}, cls, "config", field.name)
            except ConfigError as error:
                trial.blame("makeway_settings", f"the default of {field.name}: {error.problems[0].message}")


def _try_scenes(trial: Trial, settings: Mapping[str, Any]) -> None:
    if not set(trial.hooks) - {LISTING}:
        return
    played = list(scenes(trial.name, trial.hooks, settings))
    # First, while the plugin has had no occasion to remember anything.
    _try_nuisances(trial, [scene for scene in played if scene.title in _NUISANCES])
    for scene in played:
        trial.scenes += 1
        try:
            _play(trial, scene)
        except (PluginError, ConfigError) as error:
            trial.note(error)  # the same in every scene
            return
        except InvariantError as error:
            trial.note(PluginError(f"{who_is(trial.name, trial.installed)}, scene {scene.title!r}: {error}"))
            return
        except MakewayError as error:
            trial.note(error)
            if isinstance(error.__cause__, OutOfTime):
                return  # each further scene would take as long
    if not trial.faults:
        _try_growth(trial, next(scene for scene in played if scene.title == _BUSY))


def _try_nuisances(trial: Trial, played: Sequence[Scene]) -> None:
    """Play scenes again under circumstances that no decision may depend on."""
    package = str(getattr(trial.plugin, "__name__", "")).partition(".")[0]
    for scene in played:
        who = f"{who_is(trial.name, trial.installed)}, scene {scene.title!r}"
        try:
            for found in probes.nuisances_of(scene, lambda each: _transcript(trial, each), package):
                trial.note(PluginError(f"{who}: it {found}"))
        except MakewayError as error:
            trial.note(error)
        if trial.faults:
            return


def _transcript(trial: Trial, scene: Scene) -> str:
    """Return all that the plugin answered in a scene, and what came of it, as text."""
    alone = Trial(trial.name, trial.installed, trial.plugin, trial.hooks, pace=trial.pace)
    alone.transcript = []
    summary = _play(alone, scene)
    outcome = {key: summary[key] for key in ("jobs", "preemptions")}
    return "\n".join([*alone.transcript, json.dumps(outcome, default=str)])


def _try_growth(trial: Trial, scene: Scene) -> None:
    """Compare single answers about few and about many jobs, in steps and in time.

    Steps are counted once.  What seems slow by the clock is timed again, as machines are busy.
    """
    if not set(trial.hooks) & set(probes.TIMED):
        return
    try:
        counted = probes.steepness(*_answers(trial, scene, probes.COUNTED_SIZES, probes.Steps))
        blamed = dict(counted) or _slow(trial, scene)
    except MakewayError as error:
        trial.note(error)
        return
    for hook, message in blamed.items():
        trial.blame(hook, message)


def _slow(trial: Trial, scene: Scene) -> dict[str, str]:
    """Return hook -> what is said of one that takes too long by the clock, twice."""
    again = {}
    found = dict(probes.growth(*_answers(trial, scene, probes.SIZES, probes.Stopwatch)))
    if found:
        again = dict(probes.growth(*_answers(trial, scene, probes.SIZES, probes.Stopwatch)))
    return {hook: again[hook] for hook in found.keys() & again.keys()}


def _answers(
    trial: Trial, scene: Scene, sizes: Sequence[int], watch: type[probes.Stopwatch | probes.Steps]
) -> list[dict[str, list[float]]]:
    """Return for each number of jobs: hook -> what each of its answers took."""
    took = []
    for size in sizes:
        alone = Trial(trial.name, trial.installed, trial.plugin, trial.hooks)
        alone.watch = watch()
        _play(alone, probes.many(scene, size), checked=False)
        took.append(alone.watch.took)
    return took


class _Counting(Policies):
    """Counts calls, and asks again to see whether the answer is the same."""

    def __init__(self, trial: Trial, scene: Scene) -> None:
        loose = {} if trial.installed else {trial.name: trial.plugin}
        super().__init__(scene.config, {**STAND_INS, **loose}, trace=True)
        self._trial = trial
        if "makeway_settings" in trial.hooks:
            trial.calls["makeway_settings"] += 1

    def _ask(self, call: Call, hook: str, about: Job | None, arguments: Mapping[str, Any]) -> Any:
        """Ask the plugin on trial with a stopwatch, or an ear for what it opens."""
        return self._on_trial(call.plugin, hook, lambda: Policies._ask(self, call, hook, about, arguments))

    def say(self, has: Has, method: str, job: Job | None, *given: Any) -> Any:
        """Ask the limits on trial likewise."""
        ask = functools.partial(super().say, has, method, job, *given)
        return self._on_trial(has.plugin, f"makeway_limits.{method}", ask)

    def _of_queue(self, method: str, jobs: Sequence[Job], view: ClusterView) -> Any:
        """Ask the order on trial likewise."""
        ask = functools.partial(super()._of_queue, method, jobs, view)
        return self._on_trial(self.order_of, f"makeway_queue.{method}", ask)

    def _on_trial(self, plugin: str, hook: str, ask: Callable[[], Any]) -> Any:
        trial = self._trial
        if plugin != trial.name:
            return ask()
        if trial.watch is not None:
            with trial.watch.timing(hook):
                return ask()
        began = process_time()
        with probes.listening() as heard:
            answer = ask()
        slow = trial.pace.took(hook, process_time() - began)
        if slow is not None:
            raise trial.fault(hook, slow)
        if heard and hook != LISTING:
            trial.blame(hook, f"reaches out of the run: {heard[0]}; a policy looks at its arguments only")
        return answer

    def build_limits(self, view: ClusterView, own: Sequence[Has] = ()) -> None:
        """Note which methods there are to be tested."""
        super().build_limits(view, own)
        for has in self.all_limits:
            if has.plugin == self._trial.name:
                self._trial.notes([f"makeway_limits.{name}" for name in METHODS if has.says(name)])

    def build_queue(self, view: ClusterView) -> None:
        """Note which methods there are to be tested."""
        super().build_queue(view)
        if self.order_of == self._trial.name:
            said = {"sort": self.orders, "heads": self.names_heads}
            self._trial.notes([f"makeway_queue.{name}" for name, says in said.items() if says])

    def _show(self, call: Call, hook: str, arguments: Mapping[str, Any], answer: Any) -> None:
        about = arguments.get("preemptor")
        self._count(call.plugin, hook, answer, lambda: call(arguments), about)

    def _show_said(self, has: Has, method: str, given: Sequence[Any], answer: Any) -> None:
        self._count(has.plugin, f"makeway_limits.{method}", answer)

    def _show_order(self, method: str, jobs: Sequence[Job], view: ClusterView, answer: Any) -> None:
        ask = functools.partial(getattr(self.order, method), jobs, view)
        self._count(self.order_of, f"makeway_queue.{method}", answer, ask)

    def _count(
        self,
        plugin: str,
        hook: str,
        answer: Any,
        again: Callable[[], Any] | None = None,
        about: Job | None = None,
    ) -> None:
        """Count an answer of the plugin on trial; see that the same question gets the same one."""
        trial = self._trial
        if plugin != trial.name or trial.watch is not None:
            return
        trial.calls[hook] += 1
        if _says_something(answer):
            trial.spoke[hook] += 1
        if isinstance(answer, Candidates) and isinstance(answer.jobs, tuple | list):
            trial.named += len(answer.jobs)
        if trial.transcript is not None and hook in _DECIDES:
            trial.transcript.append(f"{hook}: {_PLACE.sub('', str(plain(answer)))}")
        if (
            hook in _PURE
            and again is not None
            and answer is not None
            and _essence(again()) != _essence(answer)
        ):
            text = "answers the same question in another way when asked again; it must depend on its arguments only"
            trial.blame(hook, text, about.id if about is not None else None)


def _essence(answer: Any) -> Any:
    """Return what of an answer can be compared."""
    if isinstance(answer, Candidates):
        return [job.id for job in answer.jobs], answer.modes
    if isinstance(answer, Mapping):
        return dict(answer)
    return list(answer) if isinstance(answer, tuple | list) else None


def _says_something(answer: Any) -> bool:
    """Whether an answer names, orders or plans anything."""
    if isinstance(answer, Candidates):
        return bool(answer.jobs)
    return not isinstance(answer, Blocked) and answer is not None and answer not in ((), [], {}, 0)


def _play(trial: Trial, scene: Scene, *, checked: bool = True) -> dict[str, Any]:
    """Let the plugin answer in one scene, look at what came of it, and return the summary.

    :param checked: False: the invariants and explain are left out.
    :raises MakewayError: it fails.
    """
    policies = _Counting(trial, scene)
    cluster = build_cluster(scene.config)
    recorder = Recorder(cluster)
    recorder.traced = lambda job: True
    with answerable(policies):
        policies.vocabulary()
        policies.findings(scene.config, cluster)
        engine = Engine(scene.config, recorder, policies, trusted=True)
    world = SimulatedWorld(scene.jobs, engine.clockwork, scene.commands)
    checks = _checks(scene)

    def look(engine: Engine) -> None:
        if checked:
            _look(engine, checks)
        _stop_going_in_circles(trial, scene, recorder)

    ended_at = drive(engine, world, Options(until=_UNTIL, after_step=look))
    trial.victims += len(recorder.preemptions)
    left = list(_unfinished(engine))
    if left:
        jobs = f"job {left[0]} has" if len(left) == 1 else f"jobs {', '.join(left)} have"
        trial.warnings.append(f"scene {scene.title!r}: {jobs} not ended after {_UNTIL:g} s")
    return Run(engine=engine, recorder=recorder, ended_at=ended_at).summary()


def _checks(scene: Scene) -> Any:
    # It comes with the kit for plugin authors, which no one else has to load.
    from makeway_testing.invariants import InvariantChecker

    return InvariantChecker(scene.commands)


def _look(engine: Engine, check: Any) -> None:
    check(engine)
    for job in engine.ledger.pending[:2]:
        with answerable(engine.policies):
            engine.policies.explain(job, engine.ledger)


def _stop_going_in_circles(trial: Trial, scene: Scene, recorder: Recorder) -> None:
    """End a scene in which jobs displace one another for ever.

    :raises InvariantError: they do.
    """
    if len(recorder.preemptions) > _FOR_EVER:
        most = max(recorder.histories.values(), key=lambda history: history.preempted)
        if most.preempted > _FOR_EVER:
            text = f"job {most.job.id} made way {most.preempted} times for others that make way for it"
            raise InvariantError(f"jobs displace one another for ever: {text}")


def _unfinished(engine: Engine) -> Iterator[str]:
    for job_id, history in engine.recorder.histories.items():
        if history.final_state is None and history.state is not JobState.COMPLETING:
            yield job_id
