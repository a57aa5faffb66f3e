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
    makeway_over_limit,
    makeway_overdue,
    makeway_preempt_action,
    makeway_preempt_candidates,
    makeway_preempt_mode,
    makeway_protect,
    makeway_search,
)
from makeway.hookspecs.keeping import makeway_hand_over, makeway_take_over
from makeway.hookspecs.marks import (
    CONTRACT_VERSION,
    asked_at_submission,
    based_on,
    hookimpl,
    hookspec,
    of_selector,
)
from makeway.hookspecs.passing import (
    makeway_accept,
    makeway_admit,
    makeway_closed_nodes,
    makeway_marks,
    makeway_next,
    makeway_node_sets,
    makeway_queue_order,
    makeway_windows,
)
from makeway.hookspecs.people import makeway_commands
from makeway.hookspecs.reading import makeway_check, makeway_dialect, makeway_settings, makeway_world
from makeway.hookspecs.speed import (
    Standing,
    about,
    alike_by,
    at_once,
    by_request,
    one_by_one,
    ranked_by,
    sure_by,
)

__all__ = [
    "CONTRACT_VERSION",
    "Standing",
    "about",
    "alike_by",
    "asked_at_submission",
    "at_once",
    "based_on",
    "by_request",
    "hookimpl",
    "hookspec",
    "makeway_accept",
    "makeway_admit",
    "makeway_check",
    "makeway_closed_nodes",
    "makeway_commands",
    "makeway_dialect",
    "makeway_displaces_by",
    "makeway_explain",
    "makeway_gang",
    "makeway_hand_over",
    "makeway_marks",
    "makeway_next",
    "makeway_node_sets",
    "makeway_over_limit",
    "makeway_overdue",
    "makeway_preempt_action",
    "makeway_preempt_candidates",
    "makeway_preempt_mode",
    "makeway_priority",
    "makeway_protect",
    "makeway_queue_order",
    "makeway_search",
    "makeway_selector",
    "makeway_settings",
    "makeway_take_over",
    "makeway_windows",
    "makeway_world",
    "of_selector",
    "one_by_one",
    "ranked_by",
    "sure_by",
]
