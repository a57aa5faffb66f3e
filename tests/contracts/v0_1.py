"""A plugin written against version 0.1 of the contract: every hook, every argument. Never edited."""

from collections import Counter

import attrs

from makeway import bitmap
from makeway.errors import Finding
from makeway.foreign import ForeignConfig
from makeway.hookspecs import hookimpl
from makeway.model import (
    Allocation,
    Blocked,
    Candidates,
    Check,
    Choice,
    Forecast,
    GangOrder,
    GangVerb,
    JobState,
    Placement,
    Plan,
    PreemptMode,
    Signal,
    SuspendedBy,
    Vocabulary,
)

SEEN = []


@attrs.frozen
class Settings:
    most_per_user: int = 2
    grace_time: float = 4.0


# ------------------------------------------------------------------------------- before the run
@hookimpl
def makeway_settings():
    return Settings


class Reader:
    name = "first.conf"

    def claims(self, name, head):
        return head.startswith("# first.conf")

    def translate(self, source):
        names = [line.split()[1] for line in source.text.splitlines() if line.startswith("machine")]
        nodes = [{"name": name, "cpus": 1} for name in names]
        return ForeignConfig(
            tables={"node": nodes, "partition": [{"name": "all", "default": True}], "policy": {"plugins": ["v/0_1"]}}
        )


@hookimpl
def makeway_config_readers():
    return [Reader()]


@hookimpl
def makeway_workload_readers():
    return []


@hookimpl
def makeway_runners():
    return {}


@hookimpl
def makeway_recordings():
    return []


@hookimpl
def makeway_check(config, cluster, settings):
    if settings[Settings].most_per_user < 1:
        where = 'policy.settings."v/0_1".most_per_user'
        return [Finding(level="error", where=where, message=f"nobody may run on {len(cluster.nodes)} nodes")]
    return [Finding(level="note", where="policy", message=f"select is {config.policy.select}", section="none 1")]


@hookimpl
def makeway_vocabulary():
    return Vocabulary(
        states={"RUNNING": "Working"}, reasons={"Resources": "No machine"}, nouns={"partition": "group"}
    )


# ------------------------------------------------------------------------ at the start of a run
class Selector:
    def __init__(self, cluster):
        self.everything = bitmap.full(len(cluster.nodes))
        self.notices = Counter()

    def placed(self, job):
        assert job.allocation is not None
        self.notices["placed"] += 1

    def released(self, job):
        assert job.allocation is not None
        self.notices["released"] += 1

    def suspended(self, job):
        assert job.suspended_by in (SuspendedBy.POLICY, SuspendedBy.ADMIN)
        self.notices["suspended"] += 1

    def resumed(self, job):
        self.notices["resumed"] += 1

    def screen(self, jobs, nodes):
        return [job for job in jobs if job.size <= nodes.bit_count()]

    def attempt(self, job, nodes, view):
        return Attempt(job, nodes, view)

    def forecast(self, job, nodes, view, removable):
        attempt = Attempt(job, nodes, view)
        for at, _, other in view.releases():
            attempt.remove(other, PreemptMode.CANCEL)
            found = attempt.probe()
            if isinstance(found, Placement):
                taken = found.allocation.nodes
                return Forecast(at=at, nodes=taken, eligible=taken, preempts=False)
        return None

    def possible(self, job, view):
        if job.size > self.everything.bit_count():
            return Blocked(reason="TooBig", resource="nodes", wanted=job.size, never=True, detail="too big")
        return None


class Attempt:
    def __init__(self, job, nodes, view, gone=()):
        self.job = job
        self.nodes = nodes
        self.view = view
        self.gone = set(gone)

    def probe(self):
        busy = 0
        for other in self.view.active:
            if other.id not in self.gone and other.state is not JobState.SUSPENDED:
                busy |= other.allocation.nodes
        free = self.nodes & ~busy
        if free.bit_count() < self.job.size:
            return Blocked(reason="Resources", resource="nodes", wanted=self.job.size, available=free.bit_count())
        nodes = bitmap.first_n(free, self.job.size)
        held = Allocation(nodes=nodes, node_indices=tuple(bitmap.indices(nodes)), shared=False)
        return Placement(allocation=held, why="first free nodes")

    def remove(self, job, mode):
        assert mode in PreemptMode
        self.gone.add(job.id)

    def fresh(self):
        return Attempt(self.job, self.nodes, self.view)

    def cover(self, jobs, modes):
        return None


@hookimpl
def makeway_selector(view):
    return Selector(view.cluster)


class Gang:
    next_tick = None

    def started(self, job, view):
        return [
            GangOrder(verb=GangVerb.SUSPEND, job=other, because_of=job, mode=PreemptMode.SUSPEND)
            for other in view.active
            if other.state is JobState.RUNNING
            and other.allocation.nodes & job.allocation.nodes
            and other.partition.priority_tier < job.partition.priority_tier
        ]

    def ended(self, job, view):
        taken = 0
        for other in view.active:
            if other.state is JobState.RUNNING:
                taken |= other.allocation.nodes
        orders = []
        for other in view.active:
            stopped = other.state is JobState.SUSPENDED and other.suspended_by is SuspendedBy.POLICY
            if stopped and not other.allocation.nodes & taken:
                taken |= other.allocation.nodes
                orders.append(GangOrder(verb=GangVerb.RESUME, job=other, why="its nodes are free"))
        return orders

    def held(self, job, view):
        return ()

    def tick(self, view):
        return ()

    def before_pass(self, view):
        return ()

    def after_pass(self, view):
        return iter(())


@hookimpl
def makeway_gang(view):
    assert view.cluster.nodes
    return Gang()


# ---------------------------------------------------------------------------- a scheduling pass
@hookimpl
def makeway_queue_order(pending, view, now):
    assert now == view.now
    return sorted(pending, key=lambda job: (-job.partition.priority_tier, job.submit_at, job.index))


@hookimpl
def makeway_admit(jobs, view, now):
    most = view.settings(Settings).most_per_user
    active = Counter(job.user for job in view.active)
    return {
        job.id: Blocked(reason="TooMany", resource="jobs", wanted=1, liftable=False, ask_again_at=None)
        for job in jobs
        if active[job.user] >= most
    }


@hookimpl
def makeway_closed_nodes(job, before, view, now):
    assert job not in before
    return bitmap.single(0) & view.up if job.spec.name == "careful" else 0


@hookimpl
def makeway_marks(view, now):
    return {job.id: job.marks | {"seen"} for job in view.pending}


# ------------------------------------------------------------------------- a job that does not fit
@hookimpl
def makeway_preempt_candidates(preemptor, active, view, now):
    tier = preemptor.partition.priority_tier
    lower = [job for job in active if job.partition.priority_tier < tier and job.state is JobState.RUNNING]
    lower.sort(key=lambda job: (-job.started_at, job.index))
    modes = tuple(PreemptMode.REQUEUE if job.requeueable else PreemptMode.SUSPEND for job in lower)
    return Candidates(jobs=tuple(lower), modes=modes, note="lower tiers", protected={}, ask_again_at=None)


@hookimpl
def makeway_preempt_mode(jobs, view, now):
    return [PreemptMode.SUSPEND for _ in jobs]


@hookimpl
def makeway_protect(preemptor, candidates, view, now):
    return {job.id: f"is dear, also to {preemptor.id}" for job in candidates if job.spec.name == "dear"}


@hookimpl
def makeway_search(attempt, candidates, view, now):
    for at, (job, mode) in enumerate(zip(candidates.jobs, candidates.modes, strict=True)):
        attempt.remove(job, mode)
        found = attempt.probe()
        if isinstance(found, Placement):
            return Choice(placement=found, victims=tuple(range(at + 1)), method="in order", considered=at + 1)
    return None


@hookimpl
def makeway_preempt_action(preemptor, victims, modes, view, now):
    grace = view.settings(Settings).grace_time
    return [
        Plan(job=job, mode=mode, why="a lower tier")
        if mode is PreemptMode.SUSPEND
        else Plan(
            job=job,
            mode=mode,
            notice=(Signal(name="CONT"), Signal(name="USR1", steps_only=True)),
            farewell=(),
            grace_time=grace,
            why="a lower tier",
        )
        for job, mode in zip(victims, modes, strict=True)
    ]


@hookimpl
def makeway_over_limit(jobs, view, now):
    return [
        Plan(job=job, mode=PreemptMode.REQUEUE, why="once more") if job.restarts == 0 and job.requeueable else None
        for job in jobs
    ]


@hookimpl
def makeway_explain(job, view, now):
    idle = view.idle.bit_count()
    return [Check(code="V1", verdict="fail", question="is any node idle?", found=f"{idle} for {job.id}")]


# ----------------------------------------------------------------------------- people, observers
@hookimpl
def makeway_jobs_named(expression, command, user, view, now):
    return expression.split("+") if "+" in expression else None


@hookimpl
def makeway_manual(command, job, user, view, now):
    return f"{user} may not {command} {job.id}" if user == "mallory" else None


@hookimpl
def makeway_on_line(line):
    SEEN.append((line.kind, line.job))
