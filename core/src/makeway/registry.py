"""Find, import, ask and check plugins; the only user of pluggy's manager.

Only plugins that the config names are imported. Every answer is checked at the border, and every
exception is turned into an error that names plugin, hook and job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any, NoReturn

import attrs
import pluggy

from makeway import hookspecs
from makeway.bitmap import NodeBits
from makeway.config import Config
from makeway.errors import ConfigError, Finding, MakewayError, PluginError, PolicyError, Problem, nearest
from makeway.model import (
    Attempt,
    Blocked,
    Candidates,
    Check,
    Choice,
    Cluster,
    ClusterView,
    Gang,
    Job,
    Placement,
    Plan,
    PreemptMode,
    Selector,
    Vocabulary,
)
from makeway.record import Line
from makeway.settings import structure

GROUP = "makeway"
KINDS = ("select", "preempt", "gang", "search", "protect", "plugins")
"""Keys of ``[policy]`` that name plugins."""

log = logging.getLogger("makeway")


@attrs.frozen(kw_only=True)
class Installed:
    """One name that an installed distribution offers."""

    name: str
    target: str
    """Module that implements it."""
    distribution: str
    version: str


def installed() -> list[Installed]:
    """Return what is installed, by name; nothing is imported."""
    found = []
    for point in metadata.entry_points(group=GROUP):
        dist = point.dist
        found.append(
            Installed(
                name=point.name,
                target=point.value,
                distribution=dist.name if dist else "?",
                version=dist.version if dist else "?",
            )
        )
    return sorted(set(found), key=lambda item: (item.name, item.distribution, item.version))


def pip_name(name: str) -> str:
    """Return the pip package that would bring the plugin `name`, by the naming rule of this project."""
    return "makeway-" + name.replace("/", "-").replace("_", "-")


def load(name: str) -> Any:
    """Import the plugin called `name`.

    :raises PluginError: if it is unknown, offered twice, or cannot be imported.
    """
    everything = installed()
    matches = [item for item in everything if item.name == name]
    if not matches:
        names = sorted({item.name for item in everything})
        raise PluginError(
            f"no plugin named {name!r}; installed: {', '.join(names) or 'none'}"
            f"{nearest(name, names)}; 'pip install {pip_name(name)}' would bring it if that package exists"
        )
    if len({(item.distribution, item.version, item.target) for item in matches}) > 1:
        offers = ", ".join(f"{item.distribution} {item.version}" for item in matches)
        raise PluginError(f"two distributions offer a plugin named {name!r}: {offers}; uninstall one")
    point = next(p for p in metadata.entry_points(group=GROUP) if p.name == name)
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # a module that ends the program is no plugin either
        item = matches[0]
        raise PluginError(
            f"plugin {name!r} of {item.distribution} {item.version} cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error


@attrs.frozen(kw_only=True)
class Described:
    """An installed plugin, looked at from close by."""

    installed: Installed
    hooks: tuple[str, ...] = ()
    """Hooks that it implements, by alphabet."""
    problem: str = ""
    """Why it cannot be used; empty: it can."""


def described() -> list[Described]:
    """Import every installed plugin and say what it implements, or why it cannot be used."""
    return [_described(item) for item in installed()]


def _described(item: Installed) -> Described:
    try:
        manager = _manager_of(item.name, load(item.name))
    except PluginError as error:
        return Described(installed=item, problem=str(error))
    callers = manager.get_hookcallers(manager.get_plugin(item.name)) or []
    return Described(installed=item, hooks=tuple(sorted(caller.name for caller in callers)))


def _manager_of(name: str, plugin: Any) -> pluggy.PluginManager:
    """Return a manager that knows one plugin.

    :raises PluginError: it does not fit the contract.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, name=name)
    except (pluggy.PluginValidationError, ValueError) as error:
        raise PluginError(f"plugin {name!r} does not fit the contract: {error}") from None
    _check_spelling(manager, [name])
    return manager


def offered(hook: str) -> tuple[list[Any], list[PluginError]]:
    """Return all that the installed plugins answer to a hook that lists things, and what failed.

    :param hook: ``makeway_config_readers`` or ``makeway_workload_readers``.
    """
    found: list[Any] = []
    failed: list[PluginError] = []
    for name in dict.fromkeys(item.name for item in installed()):
        try:
            found += _answers(name, hook)
        except PluginError as error:
            failed.append(error)
    return found, failed


def _answers(name: str, hook: str) -> list[Any]:
    manager = _manager_of(name, load(name))
    try:
        return [each for answer in getattr(manager.hook, hook)() for each in answer]
    except Exception as error:
        text = f"plugin {name!r}, hook {hook}: raised {type(error).__name__}: {error}"
        raise PluginError(text) from error


def names_in(config: Config) -> list[str]:
    """Return the plugins that `config` names, in the order in which they are asked."""
    policy = config.policy
    wanted = [*policy.plugins, policy.search, policy.preempt, gang_of(config), policy.select]
    wanted += policy.protect
    return list(dict.fromkeys(name for name in wanted if name is not None))


def gang_of(config: Config) -> str | None:
    """Return the gang plugin in force: the one named, else the built-in one if a mode asks for gang."""
    if config.policy.gang is not None:
        return config.policy.gang
    return "gang/timeslice" if "gang" in config.policy.preempt_mode else None


class Policies:
    """The plugins of one run, with one typed method per hook."""

    def __init__(
        self, config: Config, extra: Mapping[str, Any] | None = None, *, trace: bool = False
    ) -> None:
        """Load what `config` names.

        :param extra: plugins by name that need no installation, for tests and scripts.
        :param trace: log every call of a hook and its answer.
        :raises PluginError: if one cannot be loaded or does not fit the contract.
        :raises ConfigError: if a settings table is wrong.
        """
        self.names = names_in(config)
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._observers_off: set[str] = set()
        plugins = {name: _module(name, extra) for name in self.names}
        for name in reversed(self.names):  # the last registered is asked first
            try:
                self._manager.register(plugins[name], name=name)
            except (pluggy.PluginValidationError, ValueError) as error:
                raise PluginError(f"plugin {name!r} does not fit the contract: {error}") from None
        _check_spelling(self._manager, self.names)
        self.settings = _settings(self._manager, config, self.names)
        if trace:
            self._trace()

    def _trace(self) -> None:
        def before(hook_name: str, _: Any, kwargs: Mapping[str, Any]) -> None:
            shown = {key: str(value)[:80] for key, value in kwargs.items() if key != "view"}
            log.warning("hook %s %s", hook_name, shown)

        def after(outcome: Any, hook_name: str, _: Any, kwargs: Mapping[str, Any]) -> None:
            del kwargs
            log.warning("hook %s -> %s", hook_name, str(outcome.get_result())[:200])

        self._manager.add_hookcall_monitoring(before, after)

    # --------------------------------------------------------------------- what there is
    def implements(self, hook: str) -> bool:
        """Whether any plugin of this run implements `hook`."""
        return bool(getattr(self._manager.hook, hook).get_hookimpls())

    def hooks_of(self, name: str) -> list[str]:
        """Return the hooks that the plugin `name` implements."""
        plugin = self._manager.get_plugin(name)
        callers = self._manager.get_hookcallers(plugin) or []
        return sorted(caller.name for caller in callers)

    def who(self, hook: str) -> str:
        """Return the plugin that answers `hook` first; empty if none."""
        found = getattr(self._manager.hook, hook).get_hookimpls()
        return str(found[-1].plugin_name) if found else ""

    # ----------------------------------------------------------------------------- hooks
    def selector(self, view: ClusterView) -> Selector:
        """Build the selector.

        :raises PluginError: if no plugin offers one.
        """
        found = self._first("makeway_selector", None, view=view)
        if found is None:
            raise PluginError(
                f"none of the plugins in use finds nodes: {', '.join(self.names)}; "
                "policy.select must name one that does, such as 'select/linear'"
            )
        for verb in (
            "placed",
            "released",
            "suspended",
            "resumed",
            "screen",
            "attempt",
            "forecast",
            "possible",
        ):
            if not callable(getattr(found, verb, None)):
                self._blame("makeway_selector", None, f"its selector has no method {verb!r}")
        selector: Selector = found
        return selector

    def gang(self, view: ClusterView) -> Gang | None:
        """Build the gang arbiter; None: nobody is ever suspended."""
        found: Gang | None = self._first("makeway_gang", None, view=view)
        if found is not None:
            for verb in ("started", "ended", "held", "tick", "before_pass"):
                if not callable(getattr(found, verb, None)):
                    self._blame("makeway_gang", None, f"its arbiter has no method {verb!r}")
        return found

    def queue_order(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job] | None:
        """Order the queue; None: the default order."""
        answer = self._first("makeway_queue_order", None, pending=pending, view=view, now=view.now)
        if answer is None:
            return None
        ordered = self._listed("makeway_queue_order", None, answer)
        if sorted(map(id, ordered)) != sorted(map(id, pending)):
            self._blame("makeway_queue_order", None, "its order leaves jobs out, adds some, or repeats them")
        return ordered

    def admit(self, jobs: Sequence[Job], view: ClusterView) -> dict[str, Blocked]:
        """Return which jobs a limit keeps out, and why."""
        joined: dict[str, Blocked] = {}
        for answer in self._all("makeway_admit", None, jobs=jobs, view=view, now=view.now):
            if not isinstance(answer, Mapping) or not all(isinstance(b, Blocked) for b in answer.values()):
                self._blame("makeway_admit", None, f"returned {_shown(answer)}; allowed: job id -> Blocked")
            for job_id, blocked in answer.items():
                joined.setdefault(job_id, blocked)
        return joined

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Return the nodes that `job` must leave alone."""
        hook = "makeway_closed_nodes"
        closed = 0
        for answer in self._all(hook, job, job=job, before=before, view=view, now=view.now):
            if type(answer) is not int or answer < 0:
                self._blame(hook, job, f"returned {_shown(answer)}; allowed: a bitmap of nodes")
            closed |= answer
        return closed

    def marks(self, view: ClusterView) -> dict[str, frozenset[str]]:
        """Return job id -> its marks from now on."""
        hook = "makeway_marks"
        joined: dict[str, frozenset[str]] = {}
        for answer in self._all(hook, None, view=view, now=view.now):
            if not isinstance(answer, Mapping) or not all(isinstance(m, frozenset) for m in answer.values()):
                self._blame(hook, None, f"returned {_shown(answer)}; allowed: job id -> frozenset of words")
            for job_id in answer:
                if view.job(job_id) is None:
                    self._blame(hook, None, f"marked job {job_id}, which is neither pending nor active")
            joined.update(answer)
        return joined

    def over_limit(self, jobs: Sequence[Job], view: ClusterView) -> list[Plan | None]:
        """Return how each of `jobs` leaves; None: it ends as TIMEOUT."""
        hook = "makeway_over_limit"
        answer = self._first(hook, None, jobs=jobs, view=view, now=view.now)
        if answer is None:
            return [None] * len(jobs)
        plans = self._listed(hook, None, answer)
        fits = len(plans) == len(jobs) and all(
            plan is None or (isinstance(plan, Plan) and plan.job is job)
            for plan, job in zip(plans, jobs, strict=False)
        )
        if not fits:
            self._blame(hook, None, f"returned {_shown(plans)}; allowed: one Plan or None per job, in order")
        return plans

    def explain(self, job: Job, view: ClusterView) -> list[Check]:
        """Return the plugins' check lists for a job that waits."""
        hook = "makeway_explain"
        joined: list[Check] = []
        for answer in self._all(hook, job, job=job, view=view, now=view.now):
            checks = self._listed(hook, job, answer)
            if not all(isinstance(check, Check) for check in checks):
                self._blame(hook, job, f"returned {_shown(checks)}; allowed: a sequence of Check")
            joined += checks
        return joined

    def vocabulary(self) -> Vocabulary:
        """Return the words to be shown to people."""
        answer = self._first("makeway_vocabulary", None)
        if answer is None:
            return Vocabulary()
        if not isinstance(answer, Vocabulary):
            self._blame("makeway_vocabulary", None, f"returned {_shown(answer)}; allowed: a Vocabulary")
        return answer

    def findings(self, config: Config, cluster: Cluster) -> list[Finding]:
        """Return what the plugins find wrong or odd about `config`."""
        hook = "makeway_check"
        found: list[Finding] = []
        for answer in self._all(hook, None, config=config, cluster=cluster, settings=self.settings):
            each = self._listed(hook, None, answer)
            if not all(isinstance(finding, Finding) for finding in each):
                self._blame(hook, None, f"returned {_shown(each)}; allowed: findings")
            found += each
        return found

    def candidates(self, preemptor: Job, active: Sequence[Job], view: ClusterView) -> Candidates:
        """Return whom `preemptor` may displace; empty if nobody has an opinion."""
        hook = "makeway_preempt_candidates"
        answer = self._first(hook, preemptor, preemptor=preemptor, active=active, view=view, now=view.now)
        if answer is None:
            return Candidates(note="no plugin names candidates")
        if not isinstance(answer, Candidates):
            self._blame(hook, preemptor, f"returned {_shown(answer)}; allowed: Candidates")
        if len(answer.jobs) != len(answer.modes):
            self._blame(hook, preemptor, f"{len(answer.jobs)} jobs but {len(answer.modes)} modes")
        named = set(map(id, answer.jobs))
        if len(named) < len(answer.jobs):
            twice = next(job for at, job in enumerate(answer.jobs) if job in answer.jobs[:at])
            self._blame(hook, preemptor, f"named job {twice} twice")
        strangers = named.difference(map(id, active))
        if strangers:
            job = next(job for job in answer.jobs if id(job) in strangers)
            self._blame(hook, preemptor, f"named {_named(job)}, which is not among the active jobs")
        return answer

    def modes(self, jobs: Sequence[Job], view: ClusterView) -> Sequence[PreemptMode]:
        """Return how each of `jobs` would make way; without an opinion, the cluster-wide mode."""
        hook = "makeway_preempt_mode"
        answer = self._first(hook, None, jobs=jobs, view=view, now=view.now)
        if answer is None:
            return [view.preempt_mode.action or PreemptMode.OFF for _ in jobs]
        modes = self._listed(hook, None, answer)
        if len(modes) != len(jobs) or not all(isinstance(mode, PreemptMode) for mode in modes):
            self._blame(hook, None, f"returned {_shown(answer)}; allowed: one PreemptMode per job")
        return modes

    def protected(self, preemptor: Job, candidates: Sequence[Job], view: ClusterView) -> dict[str, str]:
        """Return job id -> why a plugin protects it."""
        hook = "makeway_protect"
        joined: dict[str, str] = {}
        answers = self._all(
            hook, preemptor, preemptor=preemptor, candidates=candidates, view=view, now=view.now
        )
        for answer in answers:
            if not isinstance(answer, Mapping) or not all(isinstance(r, str) and r for r in answer.values()):
                self._blame(hook, preemptor, f"returned {_shown(answer)}; allowed: job id -> reason")
            for job_id, reason in answer.items():
                joined.setdefault(job_id, reason)
        return joined

    def search(self, attempt: Attempt, candidates: Candidates, view: ClusterView) -> Choice | None:
        """Choose the victims; None: preempting does not help."""
        hook = "makeway_search"
        job = attempt.job
        answer = self._first(hook, job, attempt=attempt, candidates=candidates, view=view, now=view.now)
        if answer is None:
            return None
        placement: object = getattr(answer, "placement", None)
        if not isinstance(answer, Choice) or not isinstance(placement, Placement):
            self._blame(hook, job, f"returned {_shown(answer)}; allowed: a Choice with a placement")
        size = len(candidates.jobs)
        for at in answer.victims:
            position: object = at
            if not isinstance(position, int) or not 0 <= position < size:
                self._blame(hook, job, f"chose candidate number {_shown(at)} of {size}")
        if len(set(answer.victims)) < len(answer.victims):
            self._blame(hook, job, "chose a candidate twice")
        if answer.modes and len(answer.modes) != len(answer.victims):
            self._blame(hook, job, f"{len(answer.victims)} victims but {len(answer.modes)} modes")
        return answer

    def plans(
        self,
        preemptor: Job | None,
        victims: Sequence[Job],
        modes: Sequence[PreemptMode],
        view: ClusterView,
    ) -> list[Plan]:
        """Return how each victim makes way."""
        hook = "makeway_preempt_action"
        answer = self._first(
            hook, preemptor, preemptor=preemptor, victims=victims, modes=modes, view=view, now=view.now
        )
        if answer is None:
            return [Plan(job=job, mode=mode) for job, mode in zip(victims, modes, strict=True)]
        plans = self._listed(hook, preemptor, answer)
        if not all(isinstance(plan, Plan) for plan in plans):
            self._blame(hook, preemptor, f"returned {_shown(plans)}; allowed: one Plan per victim")
        if [id(plan.job) for plan in plans] != list(map(id, victims)):
            self._blame(hook, preemptor, "its plans are not one per victim, in order")
        for plan in plans:
            if plan.grace_time < 0 or plan.hold_down < 0:
                self._blame(hook, preemptor, f"returned {_shown(plan)}; allowed: a Plan")
        return plans

    def jobs_named(self, expression: str, command: str, user: str | None, view: ClusterView) -> list[str]:
        """Return the ids of the jobs that a person means."""
        hook = "makeway_jobs_named"
        answer = self._first(
            hook, None, expression=expression, command=command, user=user, view=view, now=view.now
        )
        if answer is None:
            return [expression]
        named = self._listed(hook, None, answer)
        if not all(isinstance(each, str) for each in named):
            self._blame(hook, None, f"returned {_shown(answer)}; allowed: ids of jobs, or None")
        return named

    def refusal(self, command: str, job: Job, user: str | None, view: ClusterView) -> str | None:
        """Return why a person's command is refused; None: it is not."""
        hook = "makeway_manual"
        answer = self._first(hook, job, command=command, job=job, user=user, view=view, now=view.now)
        if answer is not None and not isinstance(answer, str):
            self._blame(hook, job, f"returned {_shown(answer)}; allowed: a reason, or None")
        return answer

    def on_line(self, line: Line) -> None:
        """Show a line of the record to the observers."""
        for impl in self._manager.hook.makeway_on_line.get_hookimpls():
            name = impl.plugin_name
            if name in self._observers_off:
                continue
            try:
                impl.function(*(line for _ in impl.argnames))
            except Exception as error:
                self._observers_off.add(name)
                log.warning("observer of plugin %r raised %r; its observers are off", name, error)

    def blame(self, hook: str, job: Job | None, error: Exception) -> MakewayError:
        """Return the error to raise for what an object that the plugin behind `hook` built has raised."""
        if isinstance(error, MakewayError):
            return error
        text = f"raised {type(error).__name__}: {error}"
        return PolicyError(self.who(hook), hook, job.id if job else None, text)

    # -------------------------------------------------------------------------- plumbing
    def _first(self, hook: str, about: Job | None, /, **arguments: Any) -> Any:
        caller = getattr(self._manager.hook, hook)
        if not caller.get_hookimpls():
            return None
        try:
            return caller(**arguments)
        except MakewayError:
            raise
        except Exception as error:
            self._blame(hook, about, f"raised {type(error).__name__}: {error}", error)

    def _all(self, hook: str, about: Job | None, /, **arguments: Any) -> list[Any]:
        caller = getattr(self._manager.hook, hook)
        if not caller.get_hookimpls():
            return []
        try:
            answers: list[Any] = caller(**arguments)
        except MakewayError:
            raise
        except Exception as error:
            self._blame(hook, about, f"raised {type(error).__name__}: {error}", error)
        return answers

    def _listed(self, hook: str, job: Job | None, answer: Any) -> list[Any]:
        try:
            return list(answer)
        except Exception as error:
            self._blame(hook, job, f"returned {_shown(answer)}; allowed: a sequence ({error})", error)

    def _blame(
        self, hook: str, job: Job | None, message: str, error: BaseException | None = None
    ) -> NoReturn:
        raise PolicyError(self._culprit(hook, error), hook, job.id if job else None, message) from error

    def _culprit(self, hook: str, error: BaseException | None) -> str:
        impls = getattr(self._manager.hook, hook).get_hookimpls()
        codes = {impl.function.__code__: impl.plugin_name for impl in impls}
        trace = error.__traceback__ if error is not None else None
        while trace is not None:
            name = codes.get(trace.tb_frame.f_code)
            if name is not None:
                return str(name)
            trace = trace.tb_next
        return str(impls[-1].plugin_name) if impls else "?"


def guarded(policies: Policies, hook: str, job: Job | None, call: Callable[[], Any]) -> Any:
    """Run a method of an object that a plugin built; blame the plugin for what it raises."""
    try:
        return call()
    except MakewayError:
        raise
    except Exception as error:
        raise policies.blame(hook, job, error) from error


def _module(name: str, extra: Mapping[str, Any] | None) -> Any:
    return extra[name] if extra and name in extra else load(name)


def _check_spelling(manager: pluggy.PluginManager, names: Sequence[str]) -> None:
    specified = [name for name in vars(hookspecs) if name.startswith("makeway_")]
    for name in names:
        for attribute in dir(manager.get_plugin(name)):
            if attribute.startswith("makeway_") and attribute not in specified:
                raise PluginError(
                    f"plugin {name!r} implements the unknown hook {attribute!r}"
                    f"{nearest(attribute, specified)}"
                )
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(str(error)) from None


def _settings(manager: pluggy.PluginManager, config: Config, names: Sequence[str]) -> dict[type[Any], Any]:
    problems: list[Problem] = []
    tables = config.policy.settings
    structured: dict[type[Any], Any] = {
        type(config.policy.preemption): config.policy.preemption,
        type(config.policy.mcs): config.policy.mcs,
        type(config.policy): config.policy,
        type(config.scheduler): config.scheduler,
        type(config.workload): config.workload,
    }
    for name in names:
        plugin = manager.get_plugin(name)
        maker = getattr(plugin, "makeway_settings", None)
        try:
            cls = maker() if maker is not None else None
        except Exception as error:
            text = f"raised {type(error).__name__}: {error}"
            raise PluginError(f"plugin {name!r}, hook makeway_settings: {text}") from error
        table = tables.get(name, {})
        path = f'policy.settings."{name}"'
        if cls is None:
            problems += [Problem(f"{path}.{key}", f"plugin {name!r} has no settings") for key in table]
            continue
        if not attrs.has(cls):
            raise PluginError(f"the settings class of plugin {name!r} is no attrs class")
        try:
            structured[cls] = structure(table, cls, "config", path)
        except ConfigError as error:
            problems += error.problems
    for name in tables:
        # What is installed but not in use may have settings, so that policies can be compared by one key.
        if name not in names and not any(item.name == name for item in installed()):
            problems.append(
                Problem(
                    f'policy.settings."{name}"',
                    f"no plugin of that name is in use; in use: {', '.join(names)}{nearest(name, names)}",
                )
            )
    if problems:
        raise ConfigError("config", problems)
    return structured


def _named(value: Any) -> str:
    return f"job {value.id}" if isinstance(value, Job) else _shown(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
