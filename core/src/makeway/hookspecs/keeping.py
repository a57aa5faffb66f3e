"""Specify the hooks about what lasts from one engine to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeway.hookspecs.marks import hookspec
from makeway.model import ClusterView


@hookspec
def makeway_hand_over(view: ClusterView, now: float) -> Mapping[str, Any] | None:
    """Hand over what the plugin remembers from one call to the next, so that another engine can go on from here.

    Called between two steps: when the state of a run is written down, before another configuration takes over, and by
    the journal of a live run. Whatever follows from jobs and settings is best left out: it is found out again.
    Selectors and arbiters hand over by methods of their own (`makeway.model.AdoptingSelector`,
    `makeway.model.AdoptingGang`); this is for policies that keep something beside.

    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: what `makeway_take_over` of the same plugin will be given, in values that JSON has: text, finite
        numbers, true and false, lists, and mappings with text as keys. None: the plugin remembers nothing.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked, each for itself.

    How much each user has had so far::

        @hookimpl
        def makeway_hand_over(view):
            return {"used": dict(used)}

    .. versionadded:: 0.1
    """


@hookspec
def makeway_take_over(memory: Mapping[str, Any], view: ClusterView, now: float) -> None:
    """Take over what a plugin of the same name handed over.

    Called once, when an engine adopts the state of another one, after the jobs are known and before selector and
    arbiter are told of them. Not called for a plugin that handed nothing over.

    :param memory: as `makeway_hand_over` returned it, perhaps by way of JSON. It may be some seconds older than the
        jobs after a crash: it may name jobs that are gone, and know nothing of new ones. Settings may have changed.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :raises: whatever is raised is reported as a ConfigError that names the file; the state is not adopted.

    Each plugin is told for itself.

    Go on counting::

        @hookimpl
        def makeway_take_over(memory):
            used.update(memory["used"])

    .. versionadded:: 0.1
    """
