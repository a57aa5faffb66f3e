"""Ask for what spares asking: kinds of preemptors, answers by request, turns of the queue."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from makeway.model import ClusterView, Job, QueueOrder, Turns
from makeway.registry.asking import Asker, shown
from makeway.registry.limits import HOOK as LIMITS
from makeway.registry.limits import Has, LimitsAsker

Told = Callable[[Job], Any]


def told_by(asker: Asker, hook: str, view: ClusterView) -> Told | None:
    """Return what tells jobs apart for `hook`; None: no plugin says.

    Only of the plugin that answers `hook` first, of which it spares asking.
    """
    (first, *_) = asker.calls(hook) or (None,)
    if first is None or first.quicker is None:
        return None
    found: Any = asker.asked_beside(first.plugin, hook, None, first.quicker, view)
    if found is not None and not callable(found):
        answer = shown(found)
        text = f"is marked with a function that returned {answer}; allowed: a function of a job, or None"
        raise asker.fault(hook, None, text)
    told: Told | None = found
    return told


def kind_of(asker: Asker, view: ClusterView) -> Callable[[Job], Any] | None:
    """Return what tells jobs apart that may displace different others; None: each is asked about by itself."""
    hook = "makeway_preempt_candidates"
    kind = told_by(asker, hook, view)
    return None if kind is None else asker.key_of(asker.who(hook), hook, kind)


_ABOUT_A_TRY = ("makeway_protect", "makeway_preempt_candidates", "makeway_search")
"""Hooks that are asked about a pending job when it is tried, beside its limits."""
_LIMITS_OF_A_TRY = ("admit", "closed_nodes", "reservations", "node_sets")
"""What limits say about it then."""


def by_request_of(asker: LimitsAsker, view: ClusterView) -> Callable[[Job], bool] | None:
    """Return whether all answers about a job depend on its request alone; None: that is known of no job."""
    tests: list[Callable[[Job], bool]] = []
    known: set[str] = set()
    for has in asker.all_limits:
        if any(map(has.says, _LIMITS_OF_A_TRY)):
            if has.limits.by_request is None:
                return None
            tests.append(asker.truth_of(has.plugin, LIMITS, has.limits.by_request))
            known.add(has.plugin)  # it speaks of its hooks as well
    for hook in _ABOUT_A_TRY:
        for call in asker.calls(hook):
            if call.plugin in known or call.of_selector or not (call.positional or call.named):
                continue  # what takes no arguments says the same to all
            if call.by_request is None:
                return None
            found = asker.asked_beside(call.plugin, hook, None, call.by_request, view)
            if found is None:
                return None
            if not callable(found):
                text = f"is marked with a function that returned {shown(found)}; allowed: a function of a job, or None"
                raise asker.fault(hook, None, text)
            tests.append(asker.truth_of(call.plugin, hook, found))
    return functools.reduce(_both, tests) if tests else _of_every_job


def _both(one: Callable[[Job], bool], other: Callable[[Job], bool]) -> Callable[[Job], bool]:
    """Return whether two tests hold."""
    return lambda job: one(job) and other(job)


def _of_every_job(job: Job) -> bool:
    return True


def _promising(asker: LimitsAsker, promise: str) -> Has | None:
    """Return the first limits that promise something; None: none does."""
    return next((has for has in asker.all_limits if getattr(has.limits, promise) is not None), None)


def in_vain_of(asker: LimitsAsker) -> Callable[[Job], str | None]:
    """Return what says why a job would wait if it were tried; None: that is not known, or others have a say as well.

    Limits of others that are about some jobs only have none about the rest. Nor has a search that is asked after the
    plugin's own.
    """
    has = _promising(asker, "inadmissible")
    if has is None or not _speaks_alone(asker, has.plugin):
        return lambda job: None
    plugin, found, concerns_others = has.plugin, has.limits.inadmissible, _of_others(asker, has.plugin)

    def reason(job: Job) -> str | None:
        if concerns_others(job):
            return None
        said: object = asker.asked_beside(plugin, LIMITS, job, found, job)  # type: ignore[arg-type]
        if said is None or (isinstance(said, str) and said):
            return said
        text = f"its inadmissible said {shown(said)}; allowed: a reason, or None"
        raise asker.fault(LIMITS, job, text)

    return reason


def _speaks_alone(asker: LimitsAsker, plugin: str) -> bool:
    """Whether no other plugin has a say about a try, save limits that are about some jobs only."""
    for each in _ABOUT_A_TRY:
        if each == "makeway_search" and asker.who(each) == plugin:
            continue
        if any(call.plugin != plugin and not call.of_selector for call in asker.calls(each)):
            return False
    others = [has for has in asker.all_limits if has.plugin != plugin]
    return not any(_closes(has) or (has.says("admit") and has.limits.concerns is None) for has in others)


def _closes(has: Has) -> bool:
    """Whether limits have a say about the nodes of a job."""
    return any(map(has.says, ("closed_nodes", "reservations", "node_sets")))


def _of_others(asker: LimitsAsker, plugin: str) -> Callable[[Job], bool]:
    """Return whether limits of others, which are about some jobs only, are about this one."""
    limits = [has.limits for has in asker.all_limits if has.plugin != plugin and has.says("admit")]
    tests = [each.concerns for each in limits if each.concerns is not None]
    if len(tests) > 1:
        return lambda job: any(test(job) for test in tests)
    return tests[0] if tests else _of_no_job


_TURNS = ("forget", "came", "left", "waits", "begin", "next", "waits_as_before", "kind")
"""Methods of `makeway.model.Turns`."""


def turns_of(
    asker: LimitsAsker, order: QueueOrder, plugin: str
) -> tuple[Turns, Callable[[Job], bool]] | None:
    """Return what names jobs one by one, and about which jobs others have a say; None: the queue is ordered as a whole.

    Others must not keep jobs out beyond those that they are about, or close nodes: they may look at what was tried
    before, and what is passed over is not among that.
    """
    hook = "makeway_queue"
    if type(order).turns is QueueOrder.turns:
        return None
    others = [has for has in asker.all_limits if has.plugin != plugin]
    if any(has.says("closed_nodes") or (has.says("admit") and has.limits.concerns is None) for has in others):
        return None
    found = asker.asked_beside(plugin, hook, None, order.turns)
    if found is None:
        return None
    lacking = [name for name in _TURNS if not callable(getattr(found, name, None))]
    if lacking:
        raise asker.fault(hook, None, f"its turns() returned {shown(found)}: no {lacking[0]}()")
    asker.keep(found, hook)
    return found, _of_others(asker, plugin)


def _of_no_job(job: Job) -> bool:
    return False
