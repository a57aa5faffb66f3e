"""Say what of the contract goes away, since when, until when, and what takes its place.

A hook or an argument is never changed in place. What replaces it stands beside it, and the old one goes on
working, with a warning to whoever still implements it, for at least two minor releases. Its entry here stays
after the removal, so that plugins which still have it are told what to do.

In `makeway.hookspecs` an old hook is marked ``@hookspec(warn_on_impl=deprecated.hook("makeway_old"))``, one with
old arguments ``@hookspec(warn_on_impl_args=deprecated.arguments("makeway_hook"))``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs


class ContractWarning(FutureWarning):
    """Warn that a plugin uses what will go away; shown to whoever runs it, not only to its author."""


@attrs.frozen(kw_only=True)
class Deprecation:
    """One hook, or one argument of a hook, that goes away."""

    hook: str
    argument: str | None = None
    """None: the whole hook."""
    instead: str
    """What to do, as an order: ``implement makeway_new``."""
    since: str
    """Version of makeway that warned first."""
    remove_in: str
    """Version of makeway that does without it."""

    @property
    def what(self) -> str:
        """What goes away, in words."""
        return f"argument {self.argument!r} of hook {self.hook}" if self.argument else f"hook {self.hook}"

    def __str__(self) -> str:
        text = f"{self.what} is deprecated since makeway {self.since} and removed in {self.remove_in}"
        return f"{text}; {self.instead}"


DEPRECATED: tuple[Deprecation, ...] = tuple(
    Deprecation(hook=hook, instead=instead, since="0.1", remove_in="0.3")
    for hook, instead in (
        ("makeway_config_readers", "hand over Dialect(configs=...) by makeway_dialect"),
        ("makeway_workload_readers", "hand over Dialect(workloads=...) by makeway_dialect"),
        ("makeway_recordings", "hand over Dialect(recordings=...) by makeway_dialect"),
        ("makeway_vocabulary", "hand over Dialect(vocabulary=...) by makeway_dialect"),
        ("makeway_queue_rank", "mark makeway_queue_order with @ranked_by(...)"),
        ("makeway_preemptor_kind", "mark makeway_preempt_candidates with @alike_by(...)"),
        ("makeway_jobs_named", "return Commands(names=...) from makeway_commands"),
        ("makeway_manual", "return Commands(refuses=...) from makeway_commands"),
    )
)
"""All of them, those that are removed by now included."""


def hook(name: str, table: Sequence[Deprecation] | None = None) -> ContractWarning:
    """Return the warning to whoever implements the hook `name`."""
    return ContractWarning(str(_entry(name, None, table)))


def arguments(name: str, table: Sequence[Deprecation] | None = None) -> Mapping[str, Warning]:
    """Return argument -> the warning to whoever takes it, for the hook `name`."""
    found = [each for each in _table(table) if each.hook == name and each.argument is not None]
    return {str(each.argument): ContractWarning(str(each)) for each in found}


def removed(name: str, argument: str | None = None, table: Sequence[Deprecation] | None = None) -> str:
    """Say that a hook or argument that the contract does not have was removed; empty: it never was there."""
    for each in _table(table):
        if (each.hook, each.argument) == (name, argument):
            return f"{each.what} was removed in makeway {each.remove_in}; {each.instead}"
    return ""


def overdue(
    version: str, hooks: Mapping[str, Collection[str]], table: Sequence[Deprecation] | None = None
) -> list[str]:
    """List what the contract still has although its time is over.

    :param version: of makeway.
    :param hooks: hook -> its arguments, as specified.
    """
    return [
        str(each)
        for each in _table(table)
        if _release(each.remove_in) <= _release(version)
        and each.hook in hooks
        and (each.argument is None or each.argument in hooks[each.hook])
    ]


def _entry(name: str, argument: str | None, table: Sequence[Deprecation] | None) -> Deprecation:
    return next(each for each in _table(table) if (each.hook, each.argument) == (name, argument))


def _table(table: Sequence[Deprecation] | None) -> Sequence[Deprecation]:
    return DEPRECATED if table is None else table


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
