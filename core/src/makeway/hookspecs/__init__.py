"""Specify every hook of makeway.

A plugin is a module (or object) with functions marked ``@hookimpl``; it is installed under an entry
point of the group ``makeway`` whose name (``preempt/qos``) is the value that users write in the
config. Only plugins named in the config are imported.

Two kinds of hooks:

- a *decision* is asked until the first answer; None passes to the next plugin, then to the default that the
  hook names; an exception ends the run as PolicyError;
- a *veto* is asked of all, and the answers are joined; None protects nothing; an exception ends the run as
  PolicyError.

Plugins are asked in this order: ``policy.plugins`` as listed, ``policy.priority``, ``policy.search``,
``policy.preempt``, ``policy.gang``, ``policy.select``, ``policy.protect``. So a further plugin overrides the others.
A hook takes the arguments that it names and no others, so arguments may be added at any time; one with a
default keeps it where the contract does not have it. Wrappers of other plugins' answers are refused. An answer
has to come within ``policy.decision_time_limit``, if one is set. What may change and what may not is in
docs/contract.md.
Hooks take and return whole collections. They are pure:
same arguments, same answer; no clock, no I/O, no chance. What a policy wants to know it asks the view
(`makeway.model.ClusterView`), its settings included: ``view.settings(Settings)``.
"""

from __future__ import annotations

from makeway.hookspecs.building import makeway_displaces_by, makeway_gang, makeway_priority, makeway_selector
from makeway.hookspecs.displacing import (
    makeway_explain,
    makeway_preempt_action,
    makeway_preempt_candidates,
    makeway_preempt_mode,
    makeway_protect,
    makeway_search,
)
from makeway.hookspecs.marks import (
    CONTRACT_VERSION,
    based_on,
    hookimpl,
    hookspec,
    of_selector,
)
from makeway.hookspecs.passing import makeway_limits, makeway_queue
from makeway.hookspecs.people import makeway_commands
from makeway.hookspecs.reading import makeway_check, makeway_dialect, makeway_settings, makeway_world
from makeway.hookspecs.speed import (
    alike_by,
    by_request,
)

__all__ = [
    "CONTRACT_VERSION",
    "alike_by",
    "based_on",
    "by_request",
    "hookimpl",
    "hookspec",
    "makeway_check",
    "makeway_commands",
    "makeway_dialect",
    "makeway_displaces_by",
    "makeway_explain",
    "makeway_gang",
    "makeway_limits",
    "makeway_preempt_action",
    "makeway_preempt_candidates",
    "makeway_preempt_mode",
    "makeway_priority",
    "makeway_protect",
    "makeway_queue",
    "makeway_search",
    "makeway_selector",
    "makeway_settings",
    "makeway_world",
    "of_selector",
]
