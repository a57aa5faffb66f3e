"""Ask plugins which room a job has, and until when: closed nodes, windows, sets of nodes, jobs that have to end."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, NodeSets, Overdue, Seconds, Window
from makeway.registry.asking import Asker, shown
from makeway.registry.border import is_table


class Room(Asker):
    """What plugins say about the room of single jobs; every answer is checked."""

    @property
    def closes(self) -> bool:
        """Whether any plugin may close nodes to a job that others may use."""
        return self.implements("makeway_closed_nodes") or self.implements("makeway_windows")

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Return the nodes that `job` must leave alone if it is to start now."""
        hook = "makeway_closed_nodes"
        closed = 0
        arguments = {"job": job, "before": before, "view": view, "now": view.now}
        for call in self.calls(hook):
            answer = self._ask(call, hook, job, arguments)
            if answer is None:
                continue
            if type(answer) is not int or answer < 0:
                self._blame(hook, job, f"returned {shown(answer)}; allowed: a bitmap of nodes")
            closed |= answer
        return closed | closed_by(self.windows(job, view), view.now, length_of(job))

    def windows(self, job: Job, view: ClusterView) -> list[Window]:
        """Return the times for which nodes are kept from `job`."""
        hook = "makeway_windows"
        found: list[Window] = []
        if not self.implements(hook):
            return found
        for answer in self.every(hook, job, job=job, view=view, now=view.now):
            windows = self.listed(hook, job, answer)
            if not all(isinstance(window, Window) for window in windows):
                self._blame(hook, job, f"returned {shown(answer)}; allowed: a sequence of Window")
            found += windows
        return found

    def node_sets(self, job: Job, nodes: NodeBits, view: ClusterView) -> NodeSets:
        """Return the sets of nodes to try one after the other."""
        hook = "makeway_node_sets"
        answer = self.first(hook, job, job=job, nodes=nodes, view=view, now=view.now)
        if answer is None:
            return NodeSets(sets=(nodes,))
        if not isinstance(answer, NodeSets) or not all(
            type(each) is int and each >= 0 for each in answer.sets
        ):
            self._blame(hook, job, f"returned {shown(answer)}; allowed: NodeSets of bitmaps of nodes")
        self._see_instant(hook, job, answer.ask_again_at)
        return NodeSets(sets=tuple(each & nodes for each in answer.sets), ask_again_at=answer.ask_again_at)

    def _see_instant(self, hook: str, job: Job | None, at: object) -> None:
        if at is not None and (not isinstance(at, int | float) or at != at):
            text = f"wants to be asked again at {shown(at)}; allowed: seconds since the start, or None"
            self._blame(hook, job, text)

    def overdue(self, view: ClusterView) -> tuple[dict[str, str], Seconds | None]:
        """Return which running jobs have to end, with the reason; and when to ask again though no job starts."""
        hook = "makeway_overdue"
        joined: dict[str, str] = {}
        again: Seconds | None = None
        for answer in self.every(hook, None, view=view, now=view.now):
            if not isinstance(answer, Overdue) or not is_table(answer.jobs, str):
                self._blame(hook, None, f"returned {shown(answer)}; allowed: Overdue, job id -> reason")
            self._see_instant(hook, None, answer.ask_again_at)
            joined = {**answer.jobs, **joined}
            if answer.ask_again_at is not None:
                again = answer.ask_again_at if again is None else min(again, answer.ask_again_at)
        return joined, again


def closed_by(windows: Sequence[Window], start: Seconds, length: Seconds) -> NodeBits:
    """Return the nodes that windows close to a job which starts at `start` and may run for `length` seconds."""
    closed = 0
    for window in windows:
        if window.closes(start, length):
            closed |= window.nodes
    return closed


YEAR: Seconds = 365 * 86400.0
"""Limit assumed for jobs without one."""


def length_of(job: Job) -> Seconds:
    """Return how long a job may run, as windows see it."""
    return job.time_limit if job.time_limit is not None else YEAR
