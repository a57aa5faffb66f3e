"""Write events and actions down as values that JSON has, and read them back: for journals and states.

Sets of nodes are host lists, so that they survive a change of the cluster; jobs are named by id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeway.model import Cluster, Job, JobSpec, JobState
from makeway.settings import structure, unstructure
from makeway.state import Held as HeldTable
from makeway.state import (
    Standing,
    allocation_of,
    held_of,
    nodes_from_text,
    nodes_to_text,
)
from makeway.worlds import events as kinds
from makeway.worlds.events import Action, Event

_EVENTS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(kinds.Submitted, kinds.Started, kinds.Finished, kinds.Cleaned, kinds.Failed, kinds.Noticed),
        *(
            kinds.Performed,
            kinds.Checkpointed,
            kinds.Obstructed,
            kinds.BegunAnew,
            kinds.Adopted,
            kinds.Reused,
            kinds.Command,
            kinds.NodesDown,
            kinds.NodesDrained,
            kinds.NodesUp,
            kinds.NodesUsed,
            kinds.NodesQuiet,
        ),
    )
}
_ACTIONS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (kinds.Start, kinds.Kill, kinds.Suspend, kinds.Resume, kinds.SendSignal, kinds.Checkpoint)
}


# ------------------------------------------------------------------------------------ events
def event_to_plain(event: Event, cluster: Cluster) -> dict[str, Any]:
    """Return an event as its kind and fields; those that have their default are left out."""
    plain: dict[str, Any] = {"event": type(event).__name__}
    defaults = type(event)._field_defaults
    for name, value in event._asdict().items():
        if name not in defaults or value != defaults[name]:
            plain[name] = _value(name, value, cluster)
    return plain


def event_of_plain(plain: Mapping[str, Any], cluster: Cluster, source: str = "journal") -> Event:
    """Return the event that `event_to_plain` made plain.

    :raises ConfigError: a job in it cannot be read.
    :raises KeyError, TypeError, ValueError: it is none, or names a node that is not there.
    """
    fields = dict(plain)
    kind = _EVENTS[fields.pop("event")]
    for name, value in fields.items():
        if name == "spec":
            fields[name] = structure(value, JobSpec, source)
        elif name == "standing":
            fields[name] = structure(value, Standing, source)
        elif name == "state":
            fields[name] = JobState(value)
        elif name == "nodes" and value is not None:
            fields[name] = nodes_from_text(cluster, value)
    event: Event = kind(**fields)
    return event


# ----------------------------------------------------------------------------------- actions
def action_to_plain(action: Action, cluster: Cluster) -> dict[str, Any]:
    """Return an action as its kind and fields; those that have their default are left out."""
    plain: dict[str, Any] = {"action": type(action).__name__, "job": action.job.id}
    defaults = type(action)._field_defaults
    for name, value in action._asdict().items():
        if name != "job" and (name not in defaults or value != defaults[name]):
            plain[name] = _value(name, value, cluster)
    return plain


def action_of_plain(plain: Mapping[str, Any], jobs: Mapping[str, Job], cluster: Cluster) -> Action | None:
    """Return the action that `action_to_plain` made plain; None: its job is gone."""
    fields = dict(plain)
    kind = _ACTIONS[fields.pop("action")]
    job = jobs.get(fields.pop("job"))
    if job is None:
        return None
    if "after" in fields:
        fields["after"] = tuple(fields["after"])
    if "becomes" in fields:
        fields["becomes"] = JobState(fields["becomes"])
    if fields.get("allocation") is not None:
        fields["allocation"] = allocation_of(cluster, structure(fields["allocation"], HeldTable, "journal"))
    action: Action = kind(job=job, **fields)
    return action


def _value(name: str, value: Any, cluster: Cluster) -> Any:
    if name in ("spec", "standing"):
        return unstructure(value)
    if name == "allocation":
        return None if value is None else unstructure(held_of(cluster, value))
    if name == "nodes":
        return None if value is None else nodes_to_text(cluster, value)
    if name == "after":
        return list(value)
    return value.value if isinstance(value, JobState) else value
