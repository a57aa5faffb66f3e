"""Look over the active jobs once, and remember it until one starts, stops, goes on or leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from makeway.bitmap import NodeBits
from makeway.model import Allocation, Candidates, ClusterView, Exclusive, Job, JobState, Seconds
from makeway_lsf_queue import jobs, opening
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import Used

_Seen = tuple[Job, JobState, Allocation | None, Seconds | None, NodeBits]
"""An active job as it was looked at: when it is to leave, if it is, and its hosts."""


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
        self.lasting: dict[str, tuple[dict[int, int], NodeBits]] = {}
        """Queue -> what `room` says of each host, and hosts where that is to be looked at anew; filled by `vain`."""
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
        known = before._seen if before is not None and before.site is site else {}
        changed = self._look(view, known)
        if before is not None and before.site is site:
            self.stuck = {each: hosts for each, hosts in before.stuck.items() if not hosts & changed}
            self.lasting = {queue: (free, old | changed) for queue, (free, old) in before.lasting.items()}

    def _look(self, view: ClusterView, known: Mapping[str, _Seen]) -> NodeBits:
        """Note the active jobs; return the hosts on which anybody came, went, was stopped, goes on or is to leave.

        :param known: the active jobs as they were.
        """
        seen, running = self._seen, self.running
        changed: NodeBits = 0
        for job in view.active:
            state, allocation, leaves_at = job.state, job.allocation, job.preempt_at
            was = known.get(job.id)
            if was is None:
                hosts = job.nodes
                changed |= hosts
                was = (job, state, allocation, leaves_at, hosts)
            elif was[0] is not job or (
                was[1] is not state or was[2] is not allocation or was[3] != leaves_at
            ):
                hosts = job.nodes
                changed |= hosts | was[4]
                was = (job, state, allocation, leaves_at, hosts)
            seen[job.id] = was
            if job.spec.exclusive is Exclusive.NODE:
                self.exclusive |= was[4]
            if state is JobState.SUSPENDED:
                self._note_stopped(job)
            elif state is JobState.RUNNING and leaves_at is None:
                name = job.partition.name
                if name in running:
                    running[name].append(job)
                else:
                    running[name] = [job]
        for job_id in known.keys() - seen.keys():
            changed |= known[job_id][4]
        return changed

    def _note_stopped(self, job: Job) -> None:
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
