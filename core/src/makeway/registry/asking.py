"""Call hooks, and know which plugin to blame for what comes of it."""

from __future__ import annotations

import inspect
import logging
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any, NoReturn

import attrs
import pluggy

from makeway.errors import MakewayError, OutOfTime, PolicyError
from makeway.model import ClusterView, Job, PreemptBasis, Seconds
from makeway.registry import finding
from makeway.registry.finding import is_core, place_of

log = logging.getLogger("makeway")
_PLACE = re.compile(r" at 0x[0-9a-f]+")
"""Where something lies in memory, which tells nothing, and differs each time."""


@attrs.frozen
class Call:
    """One plugin's function for one hook, with the arguments that it takes."""

    plugin: str
    function: Callable[..., Any]
    positional: tuple[str, ...]
    named: tuple[str, ...] = ()
    """Arguments with a default that the contract knows."""
    of_selector: bool = False
    """Whether it is a selector's own search (`makeway.hookspecs.of_selector`)."""
    basis: PreemptBasis = PreemptBasis.OTHER
    """What decides which jobs may displace which (`makeway.hookspecs.based_on`)."""
    quicker: Callable[[ClusterView], Any] | None = None
    """What spares asking: kinds (`makeway.hookspecs.alike_by`); None: nothing does."""
    by_request: Callable[[ClusterView], Any] | None = None
    """Says when it answers by the request (`makeway.hookspecs.by_request`); None: it does not say."""
    _pick: Callable[[Mapping[str, Any]], Sequence[Any]] = attrs.field(init=False, repr=False, eq=False)
    """Returns what `positional` names."""

    @_pick.default
    def _picks(self) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
        names = self.positional
        if len(names) > 1:
            return operator.itemgetter(*names)
        return lambda arguments: [arguments[name] for name in names]

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """Call the function with what it takes out of `arguments`."""
        given = self._pick(arguments)
        if self.named:
            return self.function(*given, **{name: arguments[name] for name in self.named})
        return self.function(*given)


def _call(impl: pluggy.HookImpl, known: Sequence[str]) -> Call:
    defaulted = tuple(
        name
        for name, parameter in inspect.signature(impl.function).parameters.items()
        if name in known and parameter.default is not parameter.empty
    )
    positional = tuple(name for name in impl.argnames if name not in defaulted)
    marks = vars(impl.function) if hasattr(impl.function, "__dict__") else {}
    return Call(
        impl.plugin_name,
        impl.function,
        positional,
        defaulted,
        bool(marks.get("makeway_of_selector", False)),
        marks.get("makeway_basis", PreemptBasis.OTHER),
        marks.get("makeway_kinds"),
        marks.get("makeway_by_request"),
    )


class Asker:
    """Asks plugins in their order; the one that answers or raises is known by name."""

    def __init__(self, manager: pluggy.PluginManager, extra: Mapping[str, Any], *, trace: bool) -> None:
        self._manager = manager
        self._extra = extra
        self._trace = trace
        self._calls: dict[str, tuple[Call, ...]] = {}
        """Hook -> what to ask, first to last."""
        self._answered: dict[str, str] = {}
        """Hook -> the plugin whose answer is looked at, or was last."""
        for name, caller in vars(manager.hook).items():
            if name.startswith("_"):
                continue
            known = caller.spec.argnames if caller.spec is not None else ()
            impls = reversed(caller.get_hookimpls())
            self._calls[name] = tuple(_call(impl, known) for impl in impls)
        self._built: dict[int, tuple[Any, str, str]] = {}
        """Identity of an object that a plugin built -> it, the plugin, and the hook that handed it over."""

    # ------------------------------------------------------------------------------ asking
    def implements(self, hook: str) -> bool:
        """Whether any plugin of this run implements `hook`."""
        return bool(self._calls[hook])

    @property
    def traced(self) -> bool:
        """Whether each call of a hook is logged."""
        return self._trace

    @property
    def hooks(self) -> Sequence[str]:
        """All hooks, whether or not any plugin implements them."""
        return tuple(self._calls)

    def calls(self, hook: str) -> Sequence[Call]:
        """Return what to ask `hook`, first to last."""
        return self._calls[hook]

    def who(self, hook: str) -> str:
        """Return the plugin that answers `hook` first; empty if none."""
        calls = self._calls[hook]
        return calls[0].plugin if calls else ""

    def first(self, hook: str, about: Job | None, /, **arguments: Any) -> Any:
        """Return the first answer that is one; None: no plugin has an opinion."""
        for call in self._calls[hook]:
            answer = self._ask(call, hook, about, arguments)
            if answer is not None:
                return answer
        return None

    def every(self, hook: str, about: Job | None, /, **arguments: Any) -> Iterator[Any]:
        """Yield every answer that is one; meanwhile its plugin is the one to blame."""
        for call in self._calls[hook]:
            answer = self._ask(call, hook, about, arguments)
            if answer is not None:
                yield answer

    def answers(self, hook: str, about: Job | None, /, **arguments: Any) -> Iterator[tuple[str, Any]]:
        """Yield every answer that is one, after the plugin that gave it."""
        for answer in self.every(hook, about, **arguments):
            yield self._answered[hook], answer

    def _ask(self, call: Call, hook: str, about: Job | None, arguments: Mapping[str, Any]) -> Any:
        """Ask one plugin; from its answer on it is the one to blame."""
        try:
            answer = call(arguments)
        except MakewayError:
            raise
        except (Exception, SystemExit) as error:
            self._raised(call.plugin, hook, about, error)
        if self._trace:
            self._show(call, hook, arguments, answer)
        if answer is not None:
            self._answered[hook] = call.plugin
        return answer

    def asked_beside(
        self, plugin: str, hook: str, job: Job | None, function: Callable[..., Any], *given: Any
    ) -> Any:
        """Return what a function answers that `plugin` handed over by `hook`; from then on it is the one to blame."""
        self._answered[hook] = plugin
        try:
            return function(*given)
        except MakewayError:
            raise
        except (Exception, SystemExit) as error:
            raise self.blame(hook, job, error) from error

    def instant_of(
        self, plugin: str, hook: str, name: str, function: Callable[..., Any]
    ) -> Callable[..., Seconds]:
        """Return what asks `function`, as `asked_beside` does, for an instant; of a job, or of the whole cluster."""

        def checked(*given: Any) -> Seconds:
            try:
                found = function(*given)
            except MakewayError:
                raise
            except (Exception, SystemExit) as error:
                self._answered[hook] = plugin
                raise self.blame(hook, None, error) from error
            if (type(found) is float or type(found) is int) and found == found:
                at: Seconds = found
                return at
            self._answered[hook] = plugin
            text = f"its {name} said {shown(found)}; allowed: seconds since the start"
            raise self.fault(hook, None, text)

        return checked

    def key_of(self, plugin: str, hook: str, function: Callable[[Job], Any]) -> Callable[[Job], Any]:
        """Return what asks `function`, as `asked_beside` does, for something hashable about one job after the other."""
        answered = self._answered

        def checked(job: Job) -> Any:
            answered[hook] = plugin
            try:
                found = function(job)
            except MakewayError:
                raise
            except (Exception, SystemExit) as error:
                raise self.blame(hook, job, error) from error
            try:
                hash(found)
            except TypeError as error:
                text = f"its function returned {shown(found)}; allowed: something hashable or None"
                raise self.fault(hook, job, text) from error
            return found

        return checked

    def number_of(
        self, plugin: str, hook: str, function: Callable[[Job], Any]
    ) -> Callable[[Job], int | None]:
        """Return what asks `function`, as `asked_beside` does, for a whole number about one job after the other."""
        return self._of_type(plugin, hook, function, frozenset((int, type(None))), "a whole number or None")

    def truth_of(self, plugin: str, hook: str, function: Callable[[Job], Any]) -> Callable[[Job], bool]:
        """Return what asks `function`, as `asked_beside` does, for True or False about one job after the other."""
        return self._of_type(plugin, hook, function, frozenset((bool,)), "True or False")

    def _of_type(
        self,
        plugin: str,
        hook: str,
        function: Callable[[Job], Any],
        types: frozenset[type],
        allowed: str,
    ) -> Callable[[Job], Any]:
        """Return what asks `function` for something of one of these very types about one job after the other."""
        answered = self._answered

        def checked(job: Job) -> Any:
            answered[hook] = plugin
            try:
                found = function(job)
            except MakewayError:
                raise
            except (Exception, SystemExit) as error:
                raise self.blame(hook, job, error) from error
            if type(found) in types:
                return found
            text = f"its function returned {shown(found)}; allowed: {allowed}"
            raise self.fault(hook, job, text)

        return checked

    def listed(self, hook: str, job: Job | None, answer: Any) -> list[Any]:
        """Return an answer as a list.

        :raises PolicyError: it is nothing that can be gone through.
        """
        try:
            return list(answer)
        except Exception as error:
            self._blame(hook, job, f"returned {shown(answer)}; allowed: a sequence ({error})", error)

    def keep(self, built: Any, hook: str) -> None:
        """Remember which plugin built an object whose methods the engine calls."""
        self._built[id(built)] = (built, self._answered[hook], hook)

    def _show(self, call: Call, hook: str, arguments: Mapping[str, Any], answer: Any) -> None:
        """Log one answer to a hook."""
        self._log(hook, call.plugin, arguments, answer)

    def _log(self, hook: str, plugin: str, arguments: Mapping[str, Any], answer: Any) -> None:
        given = {key: str(value)[:80] for key, value in arguments.items() if key != "view"}
        log.warning("hook %s of %s %s -> %s", hook, plugin, given, str(answer)[:200])

    # ----------------------------------------------------------------------------- blaming
    def _raised(self, plugin: str, hook: str, about: Job | None, error: BaseException) -> NoReturn:
        text = f"raised {type(error).__name__}: {error}{place_of(error)}"
        raise self._error(plugin, hook, about, text) from error

    def _blame(
        self, hook: str, job: Job | None, message: str, error: BaseException | None = None
    ) -> NoReturn:
        raise self.fault(hook, job, message) from error

    def fault(self, hook: str, job: Job | None, message: str) -> PolicyError:
        """Return the error to raise for a wrong answer to `hook`, or by an object that came from it."""
        return self._error(self._answered.get(hook) or self.who(hook), hook, job, message)

    def _error(self, plugin: str, hook: str, job: Job | None, message: str) -> PolicyError:
        return PolicyError(plugin, hook, job.id if job else None, message, self._distribution(plugin))

    def _distribution(self, plugin: str) -> str:
        if plugin in self._extra:
            return ""
        item = next((each for each in finding.installed() if each.name == plugin), None)
        return f"{item.distribution} {item.version}" if item else ""

    def blame(self, hook: str, job: Job | None, error: BaseException) -> MakewayError:
        """Return the error to raise for what an object that the plugin behind `hook` built has raised."""
        if isinstance(error, MakewayError):
            return error
        return self.fault(hook, job, f"raised {type(error).__name__}: {error}{place_of(error)}")

    def blamed(self, error: BaseException) -> PolicyError | None:
        """Return the error to raise for what was raised in code of a plugin; None: it was in none.

        For what no hook is asked for at that moment: methods of selectors and arbiters, and endless loops.
        """
        frames = list(_frames(error))
        for at, frame in enumerate(frames):
            found = self._owner(frame)
            if found is not None:
                plugin, hook = found
                method = "" if hook == frame.f_code.co_name else f"its {frame.f_code.co_name}() "
                what = (
                    str(error) if isinstance(error, OutOfTime) else f"raised {type(error).__name__}: {error}"
                )
                return self._error(plugin, hook, _job_of(frames[:at]), f"{method}{what}{place_of(error)}")
        return self._unusable(frames, error)

    def _unusable(self, frames: Sequence[FrameType], error: BaseException) -> PolicyError | None:
        """Return the error for an answer so odd that looking at it failed; None: it was something else."""
        for frame in reversed(frames):
            hook = frame.f_locals.get("hook")
            if (
                str(frame.f_globals.get("__name__")).startswith("makeway.registry.")
                and hook in self._answered
            ):
                text = f"its answer cannot be used: {type(error).__name__}: {error}"
                return self._error(self._answered[hook], hook, _job_of(frames), text)
        return None

    def _owner(self, frame: FrameType) -> tuple[str, str] | None:
        """Return plugin and hook of a frame; None: it belongs to no plugin of this run."""
        hook = self._hooks_by_code().get(frame.f_code)
        if hook is not None:
            return hook
        if frame.f_locals.get("self") is self:
            return None  # asking on behalf of another, in whatever module
        _, plugin, name = self._built.get(id(frame.f_locals.get("self")), (None, "", ""))
        if plugin:
            return plugin, name
        module = str(frame.f_globals.get("__name__"))
        if is_core(module):
            return None
        for plugin, name in self._homes().get(_package(module), ()):
            return plugin, name
        return None

    def _hooks_by_code(self) -> dict[CodeType, tuple[str, str]]:
        return {
            code: (call.plugin, hook)
            for hook, calls in self._calls.items()
            for call in calls
            if (code := getattr(call.function, "__code__", None)) is not None
        }

    def _homes(self) -> dict[str, list[tuple[str, str]]]:
        """Return each package of a plugin with the plugins in it, and the hook that builds objects."""
        homes: dict[str, list[tuple[str, str]]] = {}
        for hook in (*_BUILDS, *self._calls):
            for call in self._calls.get(hook, ()):
                module = str(getattr(call.function, "__module__", ""))
                homes.setdefault(_package(module), []).append((call.plugin, hook))
        return homes


_BUILDS = ("makeway_selector", "makeway_gang", "makeway_priority", "makeway_queue", "makeway_limits")
"""Hooks that build objects."""


def _package(module: str) -> str:
    return ".".join(module.split(".")[: 3 if module.startswith("makeway.builtin.") else 1])


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _job_of(frames: Sequence[FrameType]) -> Job | None:
    """Return the job that makeway was busy with, by what its innermost function calls so."""
    for frame in reversed(frames):
        for name in ("about", "job"):
            if name in frame.f_locals:
                found = frame.f_locals[name]
                return found if isinstance(found, Job) else None
    return None


def guarded(asker: Asker, hook: str, job: Job | None, call: Callable[..., Any], *given: Any) -> Any:
    """Run a method of an object that a plugin built; blame the plugin for what it raises."""
    try:
        return call(*given)
    except MakewayError:
        raise
    except (Exception, SystemExit) as error:
        raise asker.blame(hook, job, error) from error


def shown(value: Any) -> str:
    """Return a value for a message, not too long; whatever its own ``repr`` does."""
    try:
        text = _text_of(value)
    except Exception:
        text = f"<a {type(value).__name__} that cannot be shown>"
    text = _PLACE.sub("", text)
    return text if len(text) <= 80 else text[:77] + "..."


def _text_of(value: Any) -> str:
    if isinstance(value, Job):
        return f"job {value.id}"
    if type(value) in (list, tuple):
        more = ", ..." if len(value) > 5 else ""
        left, right = "[]" if isinstance(value, list) else "()"
        return f"{left}{', '.join(map(_text_of, value[:5]))}{more}{right}"
    return repr(value)
