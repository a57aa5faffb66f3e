"""Take jobs in: what a specification comes to here, and which jobs are refused at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from makeway.bitmap import NodeBits, highest, lowest, span
from makeway.config import McsTable, SchedulerTable
from makeway.errors import unknown
from makeway.features import unknown_features, unreadable
from makeway.model import Job, JobDraft, JobSpec, JobState, Partition, Selector
from makeway.obstacle import counted, length
from makeway.partition_bounds import BOUNDS, CONFIG, NODES, TIME, Bounds, beyond, bounds_of
from makeway.record import Recorder
from makeway_engine.exclusivity import label_of
from makeway_engine.ledger import Ledger, enter, put, put_field
from makeway_engine.placing import Placer
from makeway_engine.queue import Queue
from makeway_engine.schedulers.het import refuse
from makeway_engine.schedulers.lanes import BEHIND
from makeway_engine.transitions import Transitions


class Submission:
    """The door of one run."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        transitions: Transitions,
        placer: Placer,
        selector: Selector,
        recorder: Recorder,
        scheduler: SchedulerTable,
    ) -> None:
        self._ledger = ledger
        self._queue = queue
        self._transitions = transitions
        self._placer = placer
        self._selector = selector
        self._recorder = recorder
        self._scheduler = scheduler
        self._mcs = ledger.settings(McsTable)
        self._labels = self._mcs.label != "none"
        self._door = transitions.policies.limits_say("validate")
        self._asked = transitions.policies.asked()
        self._keeps_out = transitions.policies.asked_at_submission
        # Where partitions refuse no job, one may be closed to a job that is alone; else a job alone is tried next.
        self._untried = (BEHIND,) if scheduler.enforce_part_limits else (BEHIND, "None")
        self.taken = transitions.policies.surely_valid() if self._door else None
        """Says which jobs are surely taken there; None: that is not known."""
        self.last_index = 0
        """Place of the last job in the job table so far."""
        self._refused_het: dict[str, str] = {}
        """Ids of heterogeneous jobs that were refused, with the reason."""
        self._partition_sets: dict[tuple[str, ...], tuple[tuple[Partition, ...], str]] = {}
        self._bounds: dict[tuple[int, str | None], Bounds] = {}
        """By partition and service class."""

    def submit(self, spec: JobSpec) -> None:
        """Enter a new job; one that can never run ends at once as FAILED with the reason."""
        ledger = self._ledger
        transitions = self._transitions
        now = ledger.now
        self.last_index += 1
        draft, problem = self._draft(spec, self.last_index)
        job = ledger.enter(draft)
        put_field(job, "priority", transitions.priorities.first(job))
        self._recorder.entered(job, now)
        self._queue.add(job, now)
        transitions.changed = True
        if spec.het_id is not None and self._scheduler.type == "builtin":
            problem = problem or "heterogeneous jobs are started by the backfill scheduler alone"
        if spec.features and not problem and (unknown := unknown_features(spec.features, ledger.cluster)):
            problem = f"no node has the feature {unknown[0]!r}"
        if not problem and self._door and (self.taken is None or not self.taken(job)):
            problem = transitions.policies.refusal(job, ledger)
        if not problem and not self._scheduler.enforce_part_limits:
            over = self._beyond(job)
            problem = self._refused_beyond(job, over) if over else ""
            if over and not problem:
                self._placer.beyond[job.id] = over
                return
        problem = problem or self._misfit(job) or self._refused_as_impossible(job)
        if spec.het_id is not None:
            problem = self._refused_het.get(spec.het_id, "") or problem
        if problem:
            self.reject(job, problem)
        else:
            self.name_limit(job)

    def name_limit(self, job: Job) -> None:
        """Let a job that was submitted behind others say which limit keeps it out, if that limit wants it to."""
        if not self._keeps_out or job.reason not in self._untried:
            return
        limit = self._ledger.kept_out(job)
        if limit is not None and limit.at_submission and not self._is_let_in_elsewhere(job):
            if limit.stays:
                self._ledger.settled_reasons.add(limit.reason)
            self._ledger.wait_for(job, limit.reason)

    def _is_let_in_elsewhere(self, job: Job) -> bool:
        """Whether no limit keeps a job out of another one of its partitions (recorded: part_bars_qos_builtin)."""
        try:
            for partition in job.partitions[1:]:
                enter(job, partition)
                if self._ledger.kept_out(job) is None:
                    return True
            return False
        finally:
            if len(job.partitions) > 1:
                enter(job, job.partitions[0])

    def rewrite(self, job: Job, spec: JobSpec) -> str:
        """Let a pending job that has no entries in the queue ask for something else: partitions, memory, GPUs.

        Return what is wrong with it, as at its submission; then it stays as it was. Empty: nothing is.
        """
        problem = self._rewrite(job, spec)
        self._ledger.moved(job)
        return problem

    def _rewrite(self, job: Job, spec: JobSpec) -> str:
        before = {
            name: getattr(job, name) for name in ("spec", "partitions", "partition", "time_limit", "reason")
        }
        moves = spec.partitions != job.spec.partitions
        draft, problem = self._draft(spec, job.index)
        over = self._placer.beyond.pop(job.id, "")
        put(
            job,
            spec=spec,
            partitions=draft.partitions,
            partition=draft.partition,
            time_limit=draft.time_limit if moves else job.time_limit,
        )
        if not problem and self._door:
            problem = self._transitions.policies.refusal(job, self._ledger)
        if not problem and not self._scheduler.enforce_part_limits and (now_over := self._beyond(job)):
            self._placer.beyond[job.id] = now_over
            return ""
        problem = problem or self._misfit(job) or self._impossible(job)
        if problem:
            put(job, **before)
            if over:
                self._placer.beyond[job.id] = over
        return problem

    def draft(self, spec: JobSpec, index: int) -> tuple[JobDraft, str]:
        """Return a job that was submitted before this engine came, and what is wrong with it here; empty: nothing."""
        self.last_index = max(self.last_index, index)
        return self._draft(spec, index)

    def look_again(self, pending: Iterable[Job]) -> None:
        """See which of the jobs that wait already wait for good, by the limits of their partitions."""
        if not self._scheduler.enforce_part_limits:
            for job in pending:
                over = self._beyond(job)
                if over:
                    self._placer.beyond[job.id] = over

    def _draft(self, spec: JobSpec, index: int) -> tuple[JobDraft, str]:
        """Return a job as it is when it is submitted now, its priority apart, and what is wrong with it."""
        now = self._ledger.now
        partitions, problem = self.partitions_of(spec)
        first = partitions[0]
        if self._asked is not None:
            spec = self._asked(spec, first, self._ledger.cluster)
        qos = None
        if spec.qos is not None:
            cluster = self._ledger.cluster
            qos = cluster.qos_named(spec.qos)
            if qos is None and cluster.qos:
                problem = problem or f"InvalidQOS: {spec.qos!r}"
        limit = spec.time_limit
        if limit is None:
            limit = first.default_time if first.default_time is not None else first.max_time
        required = excluded = 0
        if spec.required_nodes or spec.excluded_nodes:
            required, excluded, wrong = self._named_nodes(spec)
            problem = problem or wrong
        if spec.features:
            problem = problem or unreadable(spec.features)
        requeueable = spec.batch and (spec.requeue if spec.requeue is not None else self._scheduler.requeue)
        draft = JobDraft(  # in the order of its fields: names take three times as long
            spec,
            spec.id,
            index,
            spec.user,
            spec.account,
            partitions,
            first,
            qos,
            now,  # submitted
            now if spec.begin_at is None else max(now, spec.begin_at),
            limit,
            0,  # priority
            requeueable,
            spec.min_nodes if spec.min_nodes > 1 else 1,
        )
        if required or excluded:
            draft.required, draft.excluded = required, excluded
        if self._labels:
            draft.mcs_label = self._label(spec)
        return draft, problem

    def _label(self, spec: JobSpec) -> str | None:
        return label_of(self._mcs, spec.user, spec.group, spec.account, spec.mcs_label)

    def partitions_of(self, spec: JobSpec) -> tuple[tuple[Partition, ...], str]:
        """Return the partitions of a job, and what is wrong with them; never none, so that it can be rejected."""
        found = self._partition_sets.get(spec.partitions)
        if found is None:
            found = self._partition_sets[spec.partitions] = self._find_partitions(spec.partitions)
        return found

    def _find_partitions(self, names: tuple[str, ...]) -> tuple[tuple[Partition, ...], str]:
        cluster = self._ledger.cluster
        any_one = cluster.partitions[:1]
        if not names:
            default = cluster.default_partition
            if default is None:
                return any_one, "no partition given and there is no default one"
            return (default,), ""
        found = []
        for name in names:
            partition = cluster.partition(name)
            if partition is None:
                return any_one, unknown("partition", name, (each.name for each in cluster.partitions))
            found.append(partition)
        return tuple(found), ""

    def _named_nodes(self, spec: JobSpec) -> tuple[NodeBits, NodeBits, str]:
        """Return the nodes that a job must and must not have, and what is wrong with them.

        A user who wants nodes that follow one another must have those between the ones named.
        """
        required, missing = self._bits(spec.required_nodes)
        excluded, _ = self._bits(spec.excluded_nodes)
        if missing:
            return required, excluded, f"no node named {missing!r}"
        if spec.contiguous and required:
            required = span(lowest(required), highest(required) + 1)
        named = required.bit_count()
        if spec.max_nodes is not None and named > spec.max_nodes:
            wrong = f"must have {counted(named, 'node')}, but takes at most {spec.max_nodes:,}"
            return required, excluded, wrong
        return required, excluded, ""

    def _bits(self, names: Sequence[str]) -> tuple[NodeBits, str]:
        bits = 0
        for name in names:
            node = self._ledger.cluster.node(name)
            if node is None:
                return bits, name
            bits |= 1 << node.index
        return bits, ""

    def _beyond(self, job: Job) -> str:
        """Return which bound of its partition a job is beyond, where that only makes it wait; empty: none.

        Of several partitions the last one has its say if a job is beyond all (recorded: part_bounds_of_all).
        """
        several = len(job.partitions) > 1
        bounds = [beyond(job, each) for each in job.partitions]
        over = bounds[-1] if all(bounds) else ""
        if over == NODES or (several and self._ledger.rule("too_few_nodes_of_several_refuse")):
            return over
        return CONFIG if all(job.spec.cpus > self._cpus_of(each) for each in job.partitions) else over

    def _cpus_of(self, partition: Partition) -> int:
        return sum(node.cpus for node in self._ledger.cluster.nodes if partition.nodes >> node.index & 1)

    def _refused_beyond(self, job: Job, over: str) -> str:
        """Say why a job that is beyond a bound is refused all the same; empty: it waits.

        That depends on the release, and on whether it has several partitions (recorded:
        part_bounds_impossible).
        """
        rule, several = self._ledger.rule, len(job.partitions) > 1
        if not all(each.accepts for each in job.partitions):
            return self._misfit(job)
        if over == TIME and (several or rule("impossible_despite_time")):
            return self._refused_as_impossible(job)
        refuses = rule("too_few_nodes_of_several_refuse") if several else rule("too_few_nodes_refuse")
        if refuses and (over == CONFIG or _lacks_nodes(job, job.partitions[-1])):
            return self._refused_as_impossible(job)
        return ""

    def _misfit(self, job: Job) -> str:
        reasons = []
        size = job.size
        for partition in job.partitions:
            kind = partition.index, job.qos.name if job.qos is not None else None
            bounds = self._bounds.get(kind)
            if bounds is None:
                bounds = self._bounds[kind] = bounds_of(job, partition)
            if size > bounds.most:
                reasons.append(
                    f"{NODES}: needs {counted(size, 'node')}; partition {partition.name} gives at most {bounds.most}"
                )
            elif size < bounds.least:
                reasons.append(
                    f"{NODES}: asks for {counted(size, 'node')}; "
                    f"partition {partition.name} wants {partition.min_nodes} or more"
                )
            elif (
                bounds.time is not None
                and (limit := job.time_limit_in(partition)) is not None
                and limit > bounds.time
            ):
                reasons.append(
                    f"{TIME}: asks for a time limit of {length(limit)}; "
                    f"partition {partition.name} allows {length(bounds.time)}"
                )
            elif not partition.accepts:
                what = "drained" if partition.up else "inactive"
                reasons.append(f"partition {partition.name} is {what}: it takes no new jobs")
            else:
                return ""
        return "; ".join(reasons)

    def _refused_as_impossible(self, job: Job) -> str:
        """Say why no empty cluster could run a job; empty: it waits, since one could, or a limit comes before that.

        Of several partitions the last one of the lowest tier decides (recorded: part_impossible_and_barred and
        part_impossible_tiers), apart from those that bar the job where that counts like a bound (recorded:
        part_any_bars). That it is too short for the job is no reason to wait (recorded: part_impossible_and_too_long).
        """
        if self._ledger.rule("down_before_impossible") and not all(each.up for each in job.partitions):
            return ""
        problem = self._impossible(job)
        if not problem:
            return ""
        by_tier = sorted(job.partitions, key=lambda each: -each.priority_tier)
        for partition in reversed(by_tier):
            enter(job, partition)
            limit = self._ledger.kept_out(job)
            if limit is None or not limit.reason == limit.detail == CONFIG:
                break
        enter(job, job.partitions[0])
        # Where something else keeps it out, too, the detail says what: a denied account, or a limit.
        bound = limit is not None and limit.reason == limit.detail and limit.reason in (TIME, CONFIG)
        if limit is None or bound or not limit.before_nodes:
            return problem
        put_field(job, "reason", limit.reason)
        return ""

    def _impossible(self, job: Job) -> str:
        """Say why no empty cluster could run a job in any of its partitions, as ``sbatch`` does; empty: one could.

        Nodes out of service may come back, so that a job is not judged without them.
        """
        told: list[str] = []
        for partition in job.partitions:
            if partition.nodes & self._ledger.up != partition.nodes:
                return ""
            if job.partition is not partition:
                enter(job, partition)
            blocked = self._selector.possible(job, self._ledger)
            if blocked is None and len(job.partitions) > 1 and self._is_barred(job):
                continue
            if blocked is None:
                if partition is not job.partitions[0]:
                    enter(job, job.partitions[0])
                return ""
            told.append(blocked.detail or blocked.reason)
        enter(job, job.partitions[0])
        if told:
            put_field(job, "reason", "BadConstraints")
        return "; ".join(dict.fromkeys(told))

    def _is_barred(self, job: Job) -> bool:
        """Whether a partition keeps a job out where it is tried, rather than its bounds, or a limit that counts."""
        limit = self._ledger.kept_out(job)
        return limit is not None and limit.before_nodes and not limit.wanted and limit.reason not in BOUNDS

    def reject(self, job: Job, problem: str) -> None:
        """Refuse a job; of a heterogeneous one all components, those that are still to come as well."""
        het_id = job.spec.het_id
        if het_id is None:
            refuse((job,), problem, self._transitions)
            return
        told = self._refused_het.setdefault(het_id, f"component {job.id}: {problem}")
        refuse(
            [part for part in self._ledger.components(job) if part.state is JobState.PENDING],
            told,
            self._transitions,
        )

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return how many jobs came, and which were refused, for `restore`."""
        return {"count": self.last_index, "refused_het": dict(self._refused_het)}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self.last_index = max(self.last_index, memory["count"])
        self._refused_het = dict(memory["refused_het"])


def _lacks_nodes(job: Job, partition: Partition) -> bool:
    """Whether a job wants more nodes than a partition has, though not more than it allows."""
    most = partition.max_nodes
    return job.size > partition.nodes.bit_count() and (most is None or job.size <= most)
