"""Stand between the engine and a plugin: see every call of a hook, and ask it again.

`watched` returns a plugin like the one given whose hooks show each `Call` to a watcher before the engine gets the
answer. A watcher that finds a rule broken raises `makeway_testing.failures.BreachError`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import attrs

from makeway import hookspecs
from makeway.hookspecs import hookimpl
from makeway.model import Allocation, Candidates, ClusterView, Job, Limits, Placement, QueueOrder
from makeway.registry.limits import METHODS
from makeway_testing.failures import BreachError

Watcher = Callable[["Call"], None]


@attrs.frozen(kw_only=True, eq=False)
class Call:
    """One call of a hook, answered."""

    hook: str
    arguments: Mapping[str, Any]
    """All that the hookspec offers."""
    answer: Any
    _function: Callable[..., Any]
    _taken: tuple[str, ...]

    def ask(self, **changed: Any) -> Any:
        """Ask the plugin again, with some arguments changed."""
        arguments = {**self.arguments, **changed}
        if "attempt" in arguments and "attempt" not in changed:
            arguments["attempt"] = arguments["attempt"].fresh()
        return self._function(**{name: arguments[name] for name in self._taken})

    def mark(self, name: str) -> Any:
        """Return a mark of the implementation; None: it has none such."""
        return getattr(self._function, name, None)

    @property
    def about(self) -> Job | None:
        """The job that the call is about; None: none in particular."""
        attempt = self.arguments.get("attempt")
        if attempt is not None:
            found: Job = attempt.job
            return found
        about = self.arguments.get("preemptor") or self.arguments.get("job")
        return about if isinstance(about, Job) else None

    def breach(self, found: str) -> BreachError:
        """Return the error to raise for what was found."""
        view: ClusterView | None = self.arguments.get("view")
        at = self.arguments.get("now", view.now if view is not None else None)
        about = self.about
        return BreachError(found, hook=self.hook, job=about.id if about is not None else "", at=at)


def watched(plugin: Any, watch: Watcher, replace: Callable[[str, Any], Any] | None = None) -> Any:
    """Return a plugin that answers as `plugin` does and shows each call.

    What is no hook is left out: misspelt ones are found where the plugin itself is loaded.

    :param replace: given hook and answer, returns what the engine gets in its place.
    """
    found = SimpleNamespace()
    for name in dir(plugin):
        if name.startswith("makeway_") and hasattr(hookspecs, name):
            function = getattr(plugin, name)
            options = getattr(function, "makeway_impl", None)
            plain = options is not None and not (options.get("wrapper") or options.get("hookwrapper"))
            setattr(found, name, _shown(name, function, watch, replace) if plain else function)
    return found


_BUILT: Mapping[str, tuple[type, Sequence[str]]] = {
    "makeway_queue": (QueueOrder, ("sort", "heads")),
    "makeway_limits": (Limits, [name for name in METHODS if name not in ("save", "restore")]),
}
"""Hook -> the base class of what it builds, and the methods that are questions."""


def _listening(hook: str, built: Any, watch: Watcher, replace: Callable[[str, Any], Any] | None) -> Any:
    """Let what a hook built show each question, as ``makeway_limits.admit``; return it."""
    base, names = _BUILT[hook]
    if not isinstance(built, base):
        return built
    kind = type(built)

    def showing(name: str) -> Callable[..., Any]:
        own = getattr(kind, name)
        taken = tuple(inspect.signature(own).parameters)[1:]
        question = f"{hook}.{name}"

        def answered(self: Any, *values: Any) -> Any:
            arguments = dict(zip(taken, values, strict=True))
            function = functools.partial(own, self)
            answer = function(*values)
            watch(Call(hook=question, arguments=arguments, answer=answer, function=function, taken=taken))
            return answer if replace is None else replace(question, answer)

        return answered

    overridden = [name for name in names if getattr(kind, name) is not getattr(base, name)]
    methods = {name: showing(name) for name in overridden}
    built.__class__ = type(kind.__name__, (kind,), {"__slots__": (), **methods})
    return built


def _shown(
    hook: str, function: Callable[..., Any], watch: Watcher, replace: Callable[[str, Any], Any] | None
) -> Callable[..., Any]:
    """Return a hook that takes all that the hookspec offers, so that a call is known whole."""
    offered = tuple(inspect.signature(getattr(hookspecs, hook)).parameters)
    taken = tuple(inspect.signature(function).parameters)

    def answered(*values: Any) -> Any:
        arguments = dict(zip(offered, values, strict=True))
        answer = function(**{name: arguments[name] for name in taken})
        if hook in _BUILT:
            answer = _listening(hook, answer, watch, replace)
        watch(Call(hook=hook, arguments=arguments, answer=answer, function=function, taken=taken))
        return answer if replace is None else replace(hook, answer)

    # pluggy reads the names of the arguments off the function's code.
    listed = ", ".join(offered)
    shown: Callable[..., Any] = eval(f"lambda {listed}: answered({listed})", {"answered": answered})
    marks = {name: value for name, value in vars(function).items() if name.startswith("makeway_")}
    vars(shown).update(marks)  # what decorators of `makeway.hookspecs` say of it
    return hookimpl(shown)


# ------------------------------------------------------------------------------ comparable answers
def plain(value: Any) -> Any:
    """Return `value` as something that can be compared and shown: jobs by id, sets sorted."""
    if isinstance(value, Job):
        return value.id
    if isinstance(value, Allocation):
        return ("allocation", value.node_indices, value.cpus, value.cores, value.memory_mb)
    if isinstance(value, Placement):
        return (plain(value.allocation), value.overlays)
    if isinstance(value, Candidates):
        fields = {field.name: getattr(value, field.name) for field in attrs.fields(Candidates)}
        return {name: plain(each) for name, each in (fields | {"allowed_after": _allowed(value)}).items()}
    if isinstance(value, Mapping):
        keyed = [(_key(key), each) for key, each in value.items()]
        return {key: plain(each) for key, each in sorted(keyed, key=lambda pair: str(pair[0]))}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(each) for each in value]
    if attrs.has(type(value)):
        return {field.name: plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    return getattr(value, "value", value)


def _allowed(candidates: Candidates) -> list[tuple[bool, bool]] | None:
    """Return what a condition says of each candidate, taken first and after those before it."""
    allowed, jobs = candidates.allowed_after, tuple(candidates.jobs)
    if not callable(allowed):
        return None
    return [(bool(allowed(job, ())), bool(allowed(job, jobs[:at]))) for at, job in enumerate(jobs)]


def _key(key: Any) -> Any:
    """Return a key that is compared and shown as its value would be; plugins may use any object as one."""
    shown = plain(key)
    return shown if isinstance(shown, str | int | float) else str(shown)


def short(value: Any) -> str:
    """Write an answer on one line."""
    text = str(plain(value))
    return text if len(text) <= 300 else text[:297] + "..."


_FIELDS = tuple(field.name for field in attrs.fields(Job))


def snapshot(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the arguments of a call say now, to be compared with what they say afterwards."""
    found: dict[str, Any] = {}
    jobs: dict[str, Job] = {}
    for name, value in arguments.items():
        if isinstance(value, Job):
            jobs[value.id] = value
        elif isinstance(value, Sequence) and not isinstance(value, str):
            found[name] = [plain(each) for each in value]
            jobs |= {each.id: each for each in value if isinstance(each, Job)}
        elif attrs.has(type(value)) and not hasattr(value, "jobs_on"):
            found[name] = plain(value)
    view: ClusterView | None = arguments.get("view")
    if view is not None:
        jobs |= {job.id: job for job in (*view.active, *view.pending)}
        found["view.active"] = [job.id for job in view.active]
        found["view.pending"] = [job.id for job in view.pending]
        found["view.cluster"] = repr(view.cluster)
    for job in jobs.values():
        found[f"job {job.id}"] = {name: _value(getattr(job, name)) for name in _FIELDS}
    return found


def _value(value: Any) -> Any:
    if isinstance(value, Allocation):
        return {**attrs.asdict(value, recurse=False), "licenses": dict(value.licenses)}
    return repr(value)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say what differs, one phrase each: ``priority of job j1: 5, then 6``."""
    found = []
    for name in before:
        one, other = before[name], after.get(name)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            found += [
                f"{key} of {name}: {one[key]}, then {other.get(key)}"
                for key in one
                if one[key] != other.get(key)
            ]
        else:
            found.append(f"{name}: {str(one)[:120]}, then {str(other)[:120]}")
    return found
