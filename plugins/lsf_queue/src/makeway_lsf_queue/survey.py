"""Look over the active jobs once, and remember it until one starts, stops, goes on or leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from makeway.bitmap import NodeBits
from makeway.model import Allocation, Candidates, ClusterView, Job, JobState
from makeway_lsf_queue import jobs, opening
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import Used

_Seen = tuple[Job, JobState, Allocation | None, NodeBits]
"""An active job as it was looked at, with its hosts."""


class Survey:
    """What candidates are made of, whoever asks."""

    def __init__(self, site: Site, view: ClusterView, before: Survey | None = None) -> None:
        """Look over the active jobs.

        :param before: the survey before this one; what it found out stays where nobody came, went or was stopped.
        """
        self.site = site
        self.version = view.version
        self.used = Used(view)
        self.running: dict[str, list[Job]] = {}
        """Running jobs that nobody told to leave, by queue, in job-table order."""
        self.stopped: list[Job] = []
        """Jobs suspended by the system, in job-table order."""
        self.exclusive: NodeBits = 0
        """Hosts of exclusive jobs."""
        self.suspended: list[Job] = []
        """Those, and jobs suspended by people."""
        self.stopped_first: dict[str, NodeBits] = {}
        """Queue -> the first hosts of its jobs that the system suspended."""
        self.stuck: dict[str, NodeBits] = {}
        """Suspended jobs that cannot have their slots, whoever they stop, with their hosts; filled by `resume`."""
        self.held: set[str] = set()
        """Suspended jobs of which a limit was found to stop them; filled by `resume`."""
        self.room: dict[str, Sequence[tuple[int, int]]] = {}
        """Queue -> hosts with cores that no running jobs use save those that it may preempt; filled by `vain`."""
        self.lacking: dict[object, bool] = {}
        """Whether jobs of a queue lack slots on their hosts, whoever made way; filled by `vain`."""
        self.roomy: dict[object, Sequence[tuple[int, int]]] = {}
        """The hosts of `room` that jobs of a queue may use as suspended jobs keep slots; filled by `vain`."""
        self.reasons: dict[object, str] = {}
        """What stands in the way on hosts; filled by `vain`."""
        self.kept_slots: dict[str, dict[int, int]] = {}
        """Queue -> host -> slots of suspended jobs that are not for that queue; filled by `gaps`."""
        self.named: dict[object, Candidates] = {}
        """What was said at `futile_at` to jobs that may preempt the same others; filled by `victims`."""
        self.futile: set[object] = set()
        """Requests, with their candidates, for which no choice of victims makes room at `futile_at`."""
        self.futile_at = view.now
        self._ranks: dict[NodeBits, Mapping[int, int]] = {}
        self._seen: dict[str, _Seen] = {}
        for job in view.active:
            self._note(job)
        if before is not None and before.site is site:
            changed = self._changed_since(before)
            self.stuck = {each: hosts for each, hosts in before.stuck.items() if not hosts & changed}

    def _changed_since(self, before: Survey) -> NodeBits:
        """Return the hosts on which anybody came, went, was stopped or goes on."""
        seen, known = self._seen, before._seen
        changed: NodeBits = 0
        for job_id, (job, state, allocation, hosts) in seen.items():
            was = known.get(job_id)
            if was is None:
                changed |= hosts
            elif was[1] is not state or was[2] is not allocation or was[0] is not job:
                changed |= hosts | was[3]
        for job_id in known.keys() - seen.keys():
            changed |= known[job_id][3]
        return changed

    def _note(self, job: Job) -> None:
        self._seen[job.id] = (job, job.state, job.allocation, job.nodes)
        if jobs.is_exclusive(job):
            self.exclusive |= job.nodes
        if job.state is JobState.RUNNING:
            if job.preempt_at is None:
                self.running.setdefault(job.partition.name, []).append(job)
        elif job.state is JobState.SUSPENDED:
            self.suspended.append(job)
            if jobs.is_suspended(job):
                self.stopped.append(job)
                if opening.by_window(self.site, job):
                    return  # closes no host (5.3)
                name = job.partition.name
                self.stopped_first[name] = self.stopped_first.get(name, 0) | (job.nodes & -job.nodes)

    def host_ranks(self, hosts: NodeBits) -> Mapping[int, int]:
        """Return host -> place in the order in which hosts are considered, least loaded first (3.3)."""
        known = self._ranks.get(hosts)
        if known is None:
            known = self._ranks[hosts] = self._ranked(hosts)
        return known

    def _ranked(self, hosts: NodeBits) -> Mapping[int, int]:
        nodes = self.used.nodes
        order = self.site.settings.host_order
        usable = [node.index for node in nodes if hosts >> node.index & 1]
        if order == "config":
            return {index: at for at, index in enumerate(usable)}

        def load(index: int) -> tuple[float, float, int]:
            node = nodes[index]
            share = self.used.running(index) / max(1, node.cpus)
            return (node.load if order == "load" else 0.0, share, index)

        return {index: at for at, index in enumerate(sorted(usable, key=load))}


class _Memo:
    """The last survey."""

    survey: Survey | None = None


def survey_of(site: Site, view: ClusterView) -> Survey:
    """Return the survey of the cluster as it is."""
    known = _Memo.survey
    if known is None or known.site is not site or known.version != view.version:
        known = _Memo.survey = Survey(site, view, known)
    if known.futile_at != view.now:
        known.futile, known.named, known.futile_at = set(), {}, view.now
    return known
