"""Ask for what spares asking: ranks of the queue, kinds of preemptors, answers by request, what is sure."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from makeway.hookspecs.speed import Standing
from makeway.model import Attempt, ClusterView, Job, Seconds, Turns
from makeway.registry.asking import Asker, Call, shown

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


def rank_of(asker: Asker, view: ClusterView) -> Callable[[Job], int | None] | None:
    """Return what ranks jobs for the queue; None: the queue is ordered anew for each pass."""
    hook = "makeway_queue_order"
    rank = told_by(asker, hook, view)
    return None if rank is None else asker.number_of(asker.who(hook), hook, rank)


def kind_of(asker: Asker, view: ClusterView) -> Callable[[Job], Any] | None:
    """Return what tells jobs apart that may displace different others; None: each is asked about by itself."""
    hook = "makeway_preempt_candidates"
    kind = told_by(asker, hook, view)
    return None if kind is None else asker.key_of(asker.who(hook), hook, kind)


_ABOUT_A_TRY = (
    *(
        "makeway_admit",
        "makeway_closed_nodes",
        "makeway_protect",
        "makeway_preempt_candidates",
        "makeway_search",
    ),
    *("makeway_windows", "makeway_node_sets"),
)
"""Hooks that are asked about a pending job when it is tried."""


def by_request_of(asker: Asker, view: ClusterView) -> Callable[[Job], bool] | None:
    """Return whether all answers about a job depend on its request alone; None: that is known of no job."""
    tests: list[Callable[[Job], bool]] = []
    known: set[tuple[str, int]] = set()
    for hook in _ABOUT_A_TRY:
        for call in asker.calls(hook):
            if call.of_selector or not (call.positional or call.named):
                continue  # whoever takes no arguments says the same to all
            if call.by_request is None:
                return None
            if (call.plugin, id(call.by_request)) in known:
                continue  # it has said so of another hook
            known.add((call.plugin, id(call.by_request)))
            found = asker.asked_beside(call.plugin, hook, None, call.by_request, view)
            if found is None:
                return None
            if not callable(found):
                text = f"is marked with a function that returned {shown(found)}; allowed: a function of a job, or None"
                raise asker.fault(hook, None, text)
            tests.append(asker.truth_of(call.plugin, hook, found))
    return functools.reduce(_both, tests) if tests else _of_anybody


def _both(one: Callable[[Job], bool], other: Callable[[Job], bool]) -> Callable[[Job], bool]:
    """Return whether two tests hold."""
    return lambda job: one(job) and other(job)


def _of_anybody(job: Job) -> bool:
    return True


def in_vain_of(asker: Asker, view: ClusterView) -> Callable[[Job], str | Standing | None]:
    """Return what says why a job would wait if it were tried; None: that is not known, or others have a say as well.

    Others that answer `makeway_admit` about some jobs only have none about the rest. Nor has a search that is asked
    after the plugin's own.
    """
    hook = "makeway_admit"
    plugin, told = asker.who(hook), next((call.in_vain for call in asker.calls(hook)), None)
    found = None if told is None else asker.asked_beside(plugin, hook, None, told, view)
    if found is None or not _speaks_alone(asker, plugin):
        return lambda job: None
    concerns_others = _of_others(asker)

    def reason(job: Job) -> str | Standing | None:
        if concerns_others(job):
            return None
        said: object = asker.asked_beside(plugin, hook, job, found, job)
        if type(said) is Standing and type(said.reason) is str and said.reason:
            return said
        if said is None or (isinstance(said, str) and said):
            return said
        text = f"is marked with `in_vain`, which said {shown(said)}; allowed: a reason, or None"
        raise asker.fault(hook, job, text)

    return reason


def _speaks_alone(asker: Asker, plugin: str) -> bool:
    """Whether no other plugin has a say about a try, save limits that are about some jobs only."""
    for each in _ABOUT_A_TRY:
        calls = [call for call in asker.calls(each) if call.plugin != plugin and not call.of_selector]
        own_search = each == "makeway_search" and asker.who(each) == plugin
        if not own_search and any(each != "makeway_admit" or call.about is None for call in calls):
            return False
    return True


def _of_others(asker: Asker) -> Callable[[Job], bool]:
    """Return whether a limit that is about some jobs only is about this one."""
    tests = [call.about for call in asker.calls("makeway_admit") if call.about is not None]
    if len(tests) > 1:
        return lambda job: any(test(job) for test in tests)
    return tests[0] if tests else _of_nobody


def turned_of(asker: Asker, view: ClusterView) -> Callable[[], Iterable[Standing] | None]:
    """Return what says which reasons of `in_vain_of` no longer stand, or stand again; None: none of them does."""
    hook = "makeway_admit"
    plugin, told = asker.who(hook), next((call.turned for call in asker.calls(hook)), None)
    found = None if told is None else asker.asked_beside(plugin, hook, None, told, view)
    if found is None:
        return lambda: None

    def turned() -> Iterable[Standing] | None:
        said: object = asker.asked_beside(plugin, hook, None, found)
        if said is None:
            return None
        if isinstance(said, list | tuple) and set(map(type, said)) <= _STANDING:
            return said
        text = f"is marked with `turned`, which said {shown(said)}; allowed: a list of Standing, or None"
        raise asker.fault(hook, None, text)

    return turned


_STANDING = {Standing}
_BEFORE_THE_RUN = frozenset(
    ("makeway_settings", "makeway_dialect", "makeway_check", "makeway_selector", "makeway_displaces_by")
)
"""Hooks of which nothing is asked while jobs wait."""


def idle_of(asker: Asker, view: ClusterView) -> Callable[[Job], Standing | None] | None:
    """Return what says for how long a job would wait; None: that is not known, or another plugin looks on.

    It might look at the reasons for which jobs wait. Selectors, and who speaks of the whole run, do not.
    """
    hook = "makeway_admit"
    plugin, told = asker.who(hook), next((call.idle for call in asker.calls(hook)), None)
    if told is None or not _speaks_alone(asker, plugin):
        return None
    mine = (plugin, asker.who("makeway_selector"))
    for each in asker.hooks:
        if each not in _BEFORE_THE_RUN and any(call.plugin not in mine for call in asker.calls(each)):
            return None
    found = asker.asked_beside(plugin, hook, None, told, view)
    if found is None:
        return None
    concerns_others = _of_others(asker)

    def standing(job: Job) -> Standing | None:
        if concerns_others(job):
            return None
        said: object = asker.asked_beside(plugin, hook, job, found, job)
        if said is None or type(said) is Standing:
            return said
        text = f"is marked with `idle`, which said {shown(said)}; allowed: a Standing, or None"
        raise asker.fault(hook, job, text)

    return standing


_TURNS = ("forget", "came", "left", "waits", "begin", "next", "waits_as_before", "kind")
"""Methods of `makeway.model.Turns`."""


def turns_of(asker: Asker, view: ClusterView) -> tuple[Turns, Callable[[Job], bool]] | None:
    """Return what names jobs one by one, and about which jobs others have a say; None: the queue is ordered as a whole.

    Others must not order the queue first, keep anybody out beyond the jobs that they are about, or look at who was
    tried before: whoever is passed over is not among these.
    """
    hook = "makeway_queue_order"
    first = next(iter(asker.calls(hook)), None)
    if first is None or first.turns is None:
        return None
    tests: list[Callable[[Job], bool]] = []
    for each in ("makeway_admit", "makeway_closed_nodes"):
        for call in asker.calls(each):
            if call.plugin == first.plugin:
                continue
            if "before" in (*call.positional, *call.named):
                return None
            if each == "makeway_admit":
                if call.about is None:
                    return None
                tests.append(call.about)
    found = asker.asked_beside(first.plugin, hook, None, first.turns, view)
    if found is None:
        return None
    lacking = [name for name in _TURNS if not callable(getattr(found, name, None))]
    if lacking:
        raise asker.fault(
            hook, None, f"is marked with a function that returned {shown(found)}: no {lacking[0]}()"
        )
    asker.keep(found, hook)
    return found, (lambda job: any(test(job) for test in tests)) if tests else _of_nobody


def _of_nobody(job: Job) -> bool:
    return False


def let_in_of(
    asker: Asker, view: ClusterView
) -> tuple[Callable[[Job], Seconds], Sequence[Callable[[Job], bool]]] | None:
    """Return what says up to when limits surely let a job in; None: no plugin can say.

    Beside it stand the tests of jobs about which others have a say; it knows nothing of these.
    """
    hook = "makeway_admit"
    others: list[Callable[[Job], bool]] = []
    known: list[Callable[[Job], Seconds]] = []
    for call in asker.calls(hook):
        found = _sure(asker, call, hook, view)
        if found is not None:
            known.append(asker.instant_of(call.plugin, hook, found))
        elif call.about is not None:
            others.append(call.about)
        else:
            return None
    if len(known) == 1:
        return known[0], others
    return (lambda job: min([each(job) for each in known], default=math.inf)), others


def taken_of(asker: Asker, view: ClusterView) -> Callable[[Job], bool] | None:
    """Return what says of a job that is submitted whether it is surely taken; None: nobody can say."""
    hook = "makeway_accept"
    known: list[Callable[[Job], bool]] = []
    for call in asker.calls(hook):
        found = _sure(asker, call, hook, view)
        if found is None:
            return None
        known.append(asker.truth_of(call.plugin, hook, found))
    return known[0] if len(known) == 1 else lambda job: all(each(job) for each in known)


def quiet_of(asker: Asker, view: ClusterView, hook: str) -> Callable[[], Seconds] | None:
    """Return what says up to when asking a hook of the whole cluster would change nothing; None: nobody can say."""
    known: list[Callable[..., Seconds]] = []
    for call in asker.calls(hook):
        found = _sure(asker, call, hook, view)
        if found is None:
            return None
        known.append(asker.instant_of(call.plugin, hook, found))
    return known[0] if len(known) == 1 else lambda: min([each() for each in known], default=math.inf)


def _sure(asker: Asker, call: Call, hook: str, view: ClusterView) -> Callable[..., Any] | None:
    """Return what one plugin is sure of; None: it is sure of nothing."""
    if call.sure is None:
        return None
    found: Any = asker.asked_beside(call.plugin, hook, None, call.sure, view)
    if found is None:
        return None
    if not callable(found):
        text = f"is marked with a function that returned {shown(found)}; allowed: a function, or None"
        raise asker.fault(hook, None, text)
    known: Callable[..., Any] = found
    return known


def at_once_of(asker: Asker, view: ClusterView) -> Callable[[Job, Callable[..., Attempt]], object] | None:
    """Return what often knows whom a search would choose, before all candidates are named; None: nothing does.

    Only the plugin knows that names the candidates, and that is asked first for both. Each call of a hook is wanted
    where they are logged, and whoever protects jobs wants to know of each candidate. What it says about closed nodes
    counts only where no other has a say.
    """
    hook = "makeway_search"
    plugin, told = asker.who(hook), next((call.at_once for call in asker.calls(hook)), None)
    names = asker.who("makeway_preempt_candidates")
    if told is None or names != plugin or asker.implements("makeway_protect") or asker.traced:
        return None
    found = asker.asked_beside(plugin, hook, None, told, view)
    if found is None:
        return None
    if not callable(found):
        text = f"is marked with a function that returned {shown(found)}; allowed: a function, or None"
        raise asker.fault(hook, None, text)

    alone, concerns_others = _speaks_alone(asker, plugin), _of_others(asker)

    def known(job: Job, begin: Callable[..., Attempt]) -> object:
        if not alone or concerns_others(job):
            return asker.asked_beside(plugin, hook, job, found, job, lambda closed=None: begin())
        return asker.asked_beside(plugin, hook, job, found, job, begin)

    return known


__all__ = [
    "at_once_of",
    "by_request_of",
    "idle_of",
    "in_vain_of",
    "kind_of",
    "let_in_of",
    "quiet_of",
    "rank_of",
    "taken_of",
    "turned_of",
    "turns_of",
]
