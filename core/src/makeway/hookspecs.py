"""Specify every hook of makeway, in the order in which a job meets them.

A plugin is a module (or object) with functions marked ``@hookimpl``; it is installed under an entry
point of the group ``makeway`` whose name (``preempt/qos``) is the value that users write in the
config. Only plugins named in the config are imported.

Three kinds of hooks:

- a *decision* is asked until the first answer; None passes to the next plugin, then to the default that the
  hook names; an exception ends the run as PolicyError;
- a *veto* is asked of all, and the answers are joined; None protects nobody; an exception ends the run as
  PolicyError;
- an *observer* is told, all of them; an exception is logged, and that plugin's observers are off for the run.

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

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from makeway import deprecated
from makeway.bitmap import NodeBits
from makeway.errors import Finding
from makeway.model import (
    Attempt,
    Blocked,
    Candidates,
    Check,
    Choice,
    Cluster,
    ClusterView,
    Gang,
    Grouping,
    Job,
    Plan,
    PreemptBasis,
    PreemptMode,
    Protection,
    Selector,
    Vocabulary,
)

if TYPE_CHECKING:
    from makeway.config import Config
    from makeway.foreign import Dialect, ForeignReader, ForeignWorkloadReader, RecordingReader
    from makeway.priorities import Prioritizer
    from makeway.readers.api import WorkloadReader
    from makeway.record import Line
    from makeway.runners.api import RunnerFactory
    from makeway.worlds.api import WorldFactory

hookspec = pluggy.HookspecMarker("makeway")
hookimpl = pluggy.HookimplMarker("makeway")
F = TypeVar("F", bound=Callable[..., Any])


def about(wanted: Callable[[Job], bool]) -> Callable[[F], F]:
    """Mark an implementation of `makeway_admit` as being about some jobs only, so that others cost nothing.

    Goes below ``@hookimpl``. The hook is not called for a job that no implementation is about.

    :param wanted: says of a pending job, by what it asked for, whether the limit is about it.
    """

    def mark(function: F) -> F:
        function.makeway_about = wanted  # type: ignore[attr-defined]
        return function

    return mark


def of_selector(function: F) -> F:
    """Mark an implementation of `makeway_search` as the search of a selector, made for that selector's attempts.

    Goes below ``@hookimpl``. It is given the attempts that the selector began, as they are; limits judge its choice,
    and take no part in the search. Where another selector is in use it returns None, so that the next plugin
    is asked. A search in the plugin that built the selector counts as marked.
    """
    function.makeway_of_selector = True  # type: ignore[attr-defined]
    return function


def based_on(basis: PreemptBasis) -> Callable[[F], F]:
    """Mark an implementation of `makeway_preempt_candidates` with what decides who may displace whom.

    Goes below ``@hookimpl``. Selectors that model a scheduler ask for it (``view.preempt_basis``). Without a mark the
    basis is ``PreemptBasis.OTHER``. With ``PreemptBasis.NOTHING`` preemption is off.
    """

    if not isinstance(basis, PreemptBasis):
        raise TypeError(f"based_on({basis!r:.80}); allowed: a PreemptBasis")

    def mark(function: F) -> F:
        function.makeway_basis = basis  # type: ignore[attr-defined]
        return function

    return mark


CONTRACT_VERSION = "0.1"
"""Version of this contract; a plugin's requirement on ``makeway`` names the range it is written for."""


# ------------------------------------------------------------------ 1. before the run: reading
@hookspec
def makeway_settings() -> type[Any] | None:
    """Name the class that holds the plugin's settings.

    Called once per plugin when a config is read. The class is an attrs class; its fields are the keys of
    ``[policy.settings."<plugin name>"]``, structured strictly: an unknown key or a value of another type
    is an error that names path, value and what is allowed.

    :returns: an attrs class whose fields all have defaults; None: the plugin has no settings.
    :raises: whatever is raised ends the run as PluginError.

    All plugins are asked, each for itself.

    One key, with a default::

        @attrs.frozen
        class Settings:
            patience: float = 60.0

        @hookimpl
        def makeway_settings():
            return Settings

    .. versionadded:: 0.1
    """


@hookspec
def makeway_dialect() -> Dialect | None:
    """Hand over what the plugin knows of a scheduler's files and words: a `makeway.foreign.Dialect`.

    Called on all installed plugins when a file is opened that is not makeway's own: a configuration that is not
    TOML, a workload that no built-in reader claims, files of ``--accounting``, recordings. Beside `makeway_runners`
    it is the only hook for which plugins are imported that no config names. Of plugins that a config names, the
    words count.

    :returns: the dialect; it may be the same for several plugins of a distribution. None: the same as none.
    :raises: whatever is raised is reported as PluginError.

    All answers are joined.

    One word; readers go beside it (``configs=[...]``)::

        @hookimpl
        def makeway_dialect():
            return Dialect(vocabulary=Vocabulary(nouns={"partition": "queue"}))

    .. versionadded:: 0.1
    """


@hookspec(warn_on_impl=deprecated.hook("makeway_config_readers"))
def makeway_config_readers() -> Sequence[ForeignReader]:  # type: ignore[empty-body]
    """List readers of foreign configuration files: as `makeway_dialect`, which takes its place.

    Called when a config file that is not TOML is opened, on all installed plugins.

    :returns: readers; each says by file name and by content whether a file is its own. A plugin's reader is a
        `makeway.foreign.ForeignReader`: it is given text and hands back tables.
    :raises: whatever is raised is reported as PluginError.

    All answers are joined; two readers that claim one file are an error that names both.

    Nothing to offer::

        @hookimpl
        def makeway_config_readers():
            return []

    .. versionadded:: 0.1
    """


@hookspec(warn_on_impl=deprecated.hook("makeway_workload_readers"))
def makeway_workload_readers() -> Sequence[WorkloadReader | ForeignWorkloadReader]:  # type: ignore[empty-body]
    """List readers of workloads: as `makeway_dialect`, which takes its place.

    Called when a workload is opened that no built-in reader claims, on all installed plugins.

    :returns: readers; each says by file name and by the first lines whether a file is its own. A plugin's reader is
        a `makeway.foreign.ForeignWorkloadReader`: it is given text and hands back jobs. One for traces too large
        for that is a `makeway.readers.api.WorkloadReader`, which opens the file itself.
    :raises: whatever is raised is reported as PluginError.

    All answers are joined; the first reader that recognises the file reads it, unless the user names one.

    Nothing to offer::

        @hookimpl
        def makeway_workload_readers():
            return []

    .. versionadded:: 0.1
    """


@hookspec
def makeway_world() -> WorldFactory | None:
    """Build the world that jobs run in.

    Called on the one plugin that ``[world] name`` or ``--world`` names, such as ``world/local``. Unlike policies,
    worlds may do I/O and read clocks; they decide nothing. Settings come from ``[world.settings]``, structured by
    the class that the plugin's `makeway_settings` names.

    :returns: called as ``factory(cluster, settings, state)``; returns a `makeway.worlds.api.World`. None: the plugin
        has no world.
    :raises: whatever is raised is reported as PluginError.

    Only the plugin that is named is asked.

    No world::

        @hookimpl
        def makeway_world():
            return None

    .. versionadded:: 0.1
    """


@hookspec
def makeway_runners() -> Mapping[str, RunnerFactory]:  # type: ignore[empty-body]
    """DEPRECATED: list worlds by name; implement `makeway_world` instead.

    Called by ``makeway replay --runner NAME``, on all installed plugins. Goes away with that option.

    :returns: name -> factory; a factory is called with the jobs, in order of submission, and the clockwork, and
        returns a `makeway.runners.api.Runner`.
    :raises: whatever is raised is reported as PluginError.

    All answers are joined; a name offered twice is an error.

    Nothing to offer::

        @hookimpl
        def makeway_runners():
            return {}

    .. versionadded:: 0.1
    """


@hookspec(warn_on_impl=deprecated.hook("makeway_recordings"))
def makeway_recordings() -> Sequence[RecordingReader]:  # type: ignore[empty-body]
    """List readers of recordings of a real scheduler: as `makeway_dialect`, which takes its place.

    Called by ``makeway verify`` without ``--recorded``, on all installed plugins.

    :returns: readers (`makeway.foreign.RecordingReader`); each says by file name and content whether a file is
        its own. The core plays the scenario that one returns, and lets it judge the replay.
    :raises: whatever is raised is reported as PluginError.

    All answers are joined; the first reader that recognises a file reads it.

    Nothing to offer::

        @hookimpl
        def makeway_recordings():
            return []

    .. versionadded:: 0.1
    """


@hookspec
def makeway_check(
    config: Config, cluster: Cluster, settings: Mapping[type[Any], Any]
) -> Sequence[Finding] | None:
    """Find what is wrong or odd about a configuration, beyond what single values show.

    Called by ``makeway check`` on the plugins that the config names, once the config is valid. The checks of a
    vendor (`makeway.vendors`) come first, and only if it leads: where a plugin of another scheduler names candidates,
    they are left out.

    :param config: the whole configuration, as written.
    :param cluster: what it describes.
    :param settings: the plugins' settings, by class.
    :returns: findings, each with the path in the config that it is about. None: the same as none.
    :raises: whatever is raised is reported as PolicyError.

    All answers are joined, plugins in the order of the config.

    A partition that nobody can use::

        @hookimpl
        def makeway_check(cluster):
            return [Finding(level="warning", where=f"partition[{p.index}]", message="it has no nodes")
                    for p in cluster.partitions if not p.nodes]

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True, warn_on_impl=deprecated.hook("makeway_vocabulary"))
def makeway_vocabulary() -> Vocabulary | None:
    """Name states, reasons and things as users of another scheduler do: as `makeway_dialect`, which takes its place.

    Called by what is shown to people (explain, tables); what is decided and recorded keeps its words.

    :returns: a `makeway.model.Vocabulary`. None: no opinion; if all pass, the words are those of the vendor that leads.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    One word::

        @hookimpl
        def makeway_vocabulary():
            return Vocabulary(nouns={"partition": "queue"})

    .. versionadded:: 0.1
    """


# --------------------------------------------------------------------- 2. at the start of a run
@hookspec(firstresult=True)
def makeway_selector(view: ClusterView) -> Selector | None:
    """Build the selector of the run: the one that finds nodes and cores.

    Called once, before the first event. Decision hook of the kind *select*.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.model.Selector`; it may keep books, but only from what the engine tells it.
        None: no opinion; if nobody answers the run does not start.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins. See `makeway.model.Selector` and `makeway.model.Attempt` for what is asked of it.

    One that a plugin took from elsewhere::

        @hookimpl
        def makeway_selector(view):
            return WholeNodes(view.cluster)

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_displaces_by(view: ClusterView) -> Grouping | None:
    """Say by what the policy tells preemptors and victims apart.

    Called once, before the first event. Tables of preemptions are grouped by it; nothing is decided by it.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.model.Grouping`. None: no opinion; if all pass, jobs are grouped by partition.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    A policy about accounts::

        @hookimpl
        def makeway_displaces_by():
            return Grouping("account", lambda job: job.account or "(none)")

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_gang(view: ClusterView) -> Gang | None:
    """Build the arbiter that decides who is active on shared resources and resumes who was stopped.

    Called once, before the first event, after `makeway_selector`. Decision hook of the kind *gang*.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.model.Gang`, or a `makeway.model.QueuedGang`, whose suspended jobs wait in the queue
        beside the pending ones. None: no opinion; if nobody answers, nobody is ever suspended.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins. With ``gang`` among the preempt modes the arbiter does the suspending as well: the engine
    starts the preemptor, and the arbiter's answer to ``started`` has to stop the victims whose cores it took. In
    any case whoever was suspended by policy goes on by its orders only.

    Nobody takes turns::

        @hookimpl
        def makeway_gang(view):
            return None

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_priority(view: ClusterView) -> Prioritizer | None:
    """Build what gives jobs their priority, and knows when priorities have to be worked out anew.

    Called once, before the first event, after `makeway_gang`. Decision hook of the kind *priority*. The default order
    of the queue goes by priority within a tier, backfill plans in that order, and some preempt policies compare
    the priorities of preemptors and victims. An active job keeps the priority with which it started, unless `again`
    changes it.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.priorities.Prioritizer`; what it has to count it keeps in a book (``view.book``).
        None: no opinion; if all pass, jobs stand in order of submission.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    The longer it waits the more urgent it is, worked out every five minutes::

        class ByAge:
            next_at = 300.0

            def fresh(self, jobs, occasion, view):
                return [1] * len(jobs)

            def again(self, jobs, view):
                self.next_at = view.now + 300.0
                return {job.id: 1 + int(view.now - job.submit_at) for job in jobs}

        @hookimpl
        def makeway_priority(view):
            return ByAge()

    .. versionadded:: 0.1
    """


# ------------------------------------------------------------------------- 3. a scheduling pass
@hookspec(firstresult=True)
def makeway_queue_order(pending: Sequence[Job], view: ClusterView, now: float) -> Sequence[Job] | None:
    """Order the queue: who is tried first.

    Called at the start of every scheduling and backfill pass that has eligible jobs waiting, unless the same
    plugin has ranked them (`makeway_queue_rank`).

    :param pending: eligible pending jobs, one entry per job and partition it was submitted to, with
        ``job.partition`` the one to be tried; in the default order. Suspended jobs are among them if the
        gang lets them wait in the queue (`makeway.model.QueuedGang`).
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: the same entries in another order. None: the default order, which is priority tier,
        priority, submission, job index (spec slurm-preemption 7.1).
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins. Entries left out or added are an error.

    Longest wait first::

        @hookimpl
        def makeway_queue_order(pending):
            return sorted(pending, key=lambda job: (job.submit_at, job.index))

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_queue_rank(view: ClusterView) -> Callable[[Job], int | None] | None:
    """Rank jobs for the queue, where that says all about `makeway_queue_order`: the same order, kept between passes.

    Called once per run, of the plugin that orders the queue, and not if suspended jobs wait in the queue. The
    function that it returns is called when a job becomes eligible, once for each partition that it was submitted
    to, with ``job.partition`` the one to be tried.

    :param view: the cluster before the first job.
    :returns: a function of a job that returns a whole number: the lower goes first, and of one number the default
        order holds. It depends on nothing that changes while the job waits, save its priority: a job with a new
        priority is ranked anew. Once it returns None, for a job about which a number does not say all,
        `makeway_queue_order` is asked from then on. None: it is asked anyway.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    Short jobs first::

        @hookimpl
        def makeway_queue_order(pending):
            return sorted(pending, key=lambda job: (job.time_limit or 0) > 3600)

        @hookimpl
        def makeway_queue_rank():
            return lambda job: int((job.time_limit or 0) > 3600)

    .. versionadded:: 0.1
    """


@hookspec
def makeway_admit(
    jobs: Sequence[Job], before: Sequence[Job], view: ClusterView, now: float
) -> Mapping[str, Blocked] | None:
    """Say which pending jobs a limit keeps out, whatever room there is.

    Called for each job that is about to be tried, and again while victims are sought for it, with those
    chosen so far already gone from `view` (``view.made_way``), so that a preemption that would only run
    into a limit is not begun. A limit that says of itself that it is ``liftable`` does not end the attempt:
    victims are sought until the limit lets the job through as well as room is found. One that says ``never``
    refuses the job for good, with its `detail` as the reason. One that knows whose leaving would help says so in
    ``frees``, so that searches need not try everybody. Slurm's licences are such a limit (`makeway.licences`). An
    implementation that concerns few jobs is marked with `about`, and is not called for the others.

    :param jobs: pending jobs in the order in which they will be tried.
    :param before: jobs that were tried before it in this pass and have to wait, in that order, so that a limit may
        be kept for them; schedulers other than ``greedy`` leave it empty.
    :param view: the cluster as of `now`, or as it would be without the victims.
    :param now: seconds since the start of the replay.
    :returns: job id -> what stands in its way; a job left out may go on. None: nobody is kept out.
        Jobs in ``view.made_way`` are shown there as they would be: suspended, or not at all.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked; the first reason given for a job is the one reported.

    No more than ten active jobs per user::

        @hookimpl
        def makeway_admit(jobs, view):
            active = Counter(job.user for job in view.active)
            return {job.id: Blocked(reason="QOSMaxJobsPerUserLimit", resource="jobs", wanted=1)
                    for job in jobs if active[job.user] >= 10}

    .. versionadded:: 0.1
    """


@hookspec
def makeway_closed_nodes(job: Job, before: Sequence[Job], view: ClusterView, now: float) -> NodeBits | None:
    """Close nodes to one pending job: kept for others, or full by a limit that counts per node.

    Called for each job that is about to be tried, after `makeway_admit`, and again while victims are sought
    for it, with those chosen so far already gone from `view`.

    :param job: the pending job.
    :param before: jobs that were tried before it in this pass and have to wait, in that order; schedulers
        other than ``greedy`` leave it empty.
    :param view: the cluster as of `now`, or as it would be without the victims.
    :param now: seconds since the start of the replay.
    :returns: nodes that the job must leave alone, as a bitmap. None: none.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked, answers are joined.

    The first job that waits keeps what is idle in its partition::

        @hookimpl
        def makeway_closed_nodes(job, before, view):
            return before[0].partition.nodes & view.idle if before else 0

    .. versionadded:: 0.1
    """


@hookspec
def makeway_marks(view: ClusterView, now: float) -> Mapping[str, frozenset[str]] | None:
    """Say what is to be remembered about single jobs.

    Called at the start of every pass, after the arbiter's `before_pass`, and at its end. Marks are words of the
    policy's own (BACKFILL, ...); the engine only keeps them in ``job.marks``, until the job is requeued or marked anew.

    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: id of a pending or active job -> all of its marks; a job left out keeps those it has. None: nobody
        is marked anew.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked, in order; the last to mark a job counts.

    Who has run for an hour is a veteran for good::

        @hookimpl
        def makeway_marks(view, now):
            return {job.id: job.marks | {"veteran"} for job in view.active if job.ran_until(now) >= 3600}

    .. versionadded:: 0.1
    """


# ------------------------------------------------------------------ 4. a job that does not fit
@hookspec(firstresult=True)
def makeway_preempt_candidates(
    preemptor: Job, active: Sequence[Job], view: ClusterView, now: float
) -> Candidates | None:
    """Name the jobs that `preemptor` may displace, cheapest to lose first, and how each makes way.

    Called for a pending job that finds no room, or that a liftable limit keeps out. How many jobs that are depends
    on the scheduler: under ``easy`` only the first job that waits may have others make way; under ``builtin`` the
    first one of each partition; under ``backfill`` and ``greedy`` every job that is tried. Called again for the
    same job whenever it is tried again, and for estimates of its start; once for all jobs of one kind where the
    plugin tells kinds apart (`makeway_preemptor_kind`). Not called while preemption is off. Decision hook of the
    kind *preempt candidates*.

    :param preemptor: the pending job; its partition and QOS exist.
    :param active: all running and suspended jobs, in job-table order.
    :param view: the cluster as of `now`; read-only, valid during the call.
    :param now: seconds since the start of the replay; the only clock there is.
    :returns: `makeway.model.Candidates`: some of `active`, none twice, each with its mode; a job left
        out is safe. Empty: none of them. None: no opinion; if all pass, nobody is preempted.
    :raises: whatever is raised ends the run as PolicyError naming plugin, hook and job.

    First answer wins.

    Anybody, youngest first, as Slurm's ``youngest_first`` orders them::

        @hookimpl
        def makeway_preempt_candidates(active):
            jobs = sorted(active, key=lambda job: (-job.started_at, job.index))
            return Candidates(jobs=tuple(jobs), modes=(PreemptMode.REQUEUE,) * len(jobs))

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_preemptor_kind(view: ClusterView) -> Callable[[Job], Hashable | None] | None:
    """Say which pending jobs may displace the same others, so that `makeway_preempt_candidates` is asked once for all.

    Called once per run, of the plugin that names the candidates. The function that it returns is called for pending
    jobs that find no room.

    :param view: the cluster before the first job.
    :returns: a function of a job that returns anything hashable: jobs for which it is the same, and that are tried in
        the same partition, have the same candidates at any one moment. An empty tuple: they have none, whoever
        is there. None, for a job or instead of a function: that is not known.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    Jobs of one user may displace those of all others::

        @hookimpl
        def makeway_preempt_candidates(preemptor, active):
            jobs = tuple(job for job in active if job.user != preemptor.user)
            return Candidates(jobs=jobs, modes=(PreemptMode.REQUEUE,) * len(jobs))

        @hookimpl
        def makeway_preemptor_kind():
            return lambda job: job.user

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView, now: float) -> Sequence[PreemptMode] | None:
    """Say how each of `jobs` would make way.

    Called when somebody else than the preempt policy decides that a job has to leave: the gang arbiter that
    finds a job under a shadow.

    :param jobs: active jobs.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: one mode per job, same order. None: no opinion; if all pass, the cluster-wide mode.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    Everybody is suspended::

        @hookimpl
        def makeway_preempt_mode(jobs):
            return [PreemptMode.SUSPEND] * len(jobs)

    .. versionadded:: 0.1
    """


@hookspec
def makeway_protect(
    preemptor: Job, candidates: Sequence[Job], view: ClusterView, now: float
) -> Mapping[str, str | Protection] | None:
    """Protect some of the candidates, and say why.

    Called after `makeway_preempt_candidates` when it named anybody. Veto hook: any plugin may protect a
    job, none may unprotect it.

    :param preemptor: the pending job.
    :param candidates: whom the preempt policy would let go, in its order.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: job id -> reason in words that people can read, or a `makeway.model.Protection`, which says as well
        when it ends by itself. None: nobody is protected.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked, answers are joined; the first reason for a job is the one reported.

    Nobody within five minutes of its end::

        @hookimpl
        def makeway_protect(candidates, now):
            return {job.id: f"ends in {job.end_at - now:.0f} s" for job in candidates
                    if job.end_at is not None and job.end_at - now < 300}

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_search(
    attempt: Attempt, candidates: Candidates, view: ClusterView, now: float
) -> Choice | Blocked | None:
    """Choose which candidates to take, probing as you go.

    Called when a job was blocked and candidates are left after the vetoes. Decision hook of the kind
    *search*.

    :param attempt: the blocked job against the cluster, with nobody removed yet. Limits (`makeway_admit`) and
        closed nodes are part of it, except for a search that is marked with `of_selector`.
    :param candidates: whom it may displace, in order, with modes.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: `makeway.model.Choice`, victims as positions in `candidates`. `makeway.model.Blocked`: nobody shall be
        displaced; no other plugin is asked, and its `detail` is told to people. None: no opinion; the next plugin
        is asked, with an attempt of its own. If all pass, the job waits.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins. A selector usually brings the search of the scheduler that it models, which is used unless
    ``policy.search`` or the preempt plugin answers first. Where no plugin in use has a search,
    ``search/in_order`` is used.

    One at a time until it fits::

        @hookimpl
        def makeway_search(attempt, candidates):
            for at, (job, mode) in enumerate(zip(candidates.jobs, candidates.modes)):
                attempt.remove(job, mode)
                found = attempt.probe()
                if isinstance(found, Placement):
                    return Choice(placement=found, victims=tuple(range(at + 1)))

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_preempt_action(
    preemptor: Job | None,
    victims: Sequence[Job],
    modes: Sequence[PreemptMode],
    reasons: Sequence[str],
    view: ClusterView,
    now: float,
) -> Sequence[Plan] | None:
    """Plan how each victim makes way: notice, grace time, and what is done in the end.

    Called with the victims that a search chose, and once more for a victim whose grace time is over.
    Decision hook of the kind *preempt action*.

    :param preemptor: for whom; None when a grace time ran out after the preemptor was gone.
    :param victims: active jobs, in the order in which they are to be told.
    :param modes: the modes that the candidates came with; parallel to `victims`.
    :param reasons: why each was chosen (`Choice.reasons`, else `Candidates.reasons`), parallel to `victims`; empty
        texts where nobody said. They are recorded whatever is returned.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: one `makeway.model.Plan` per victim, same order. None: each in its mode, at once.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    Ten minutes for everybody::

        @hookimpl
        def makeway_preempt_action(victims, modes):
            return [Plan(job=job, mode=mode, notice=(Signal(name="TERM"),), grace_time=600.0)
                    for job, mode in zip(victims, modes)]

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_over_limit(jobs: Sequence[Job], view: ClusterView, now: float) -> Sequence[Plan | None] | None:
    """Plan how jobs leave that have reached their time limit.

    Called when limits strike, before anything is done about it. A job in its grace time is not among them.

    :param jobs: running jobs over their limit, soonest first.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: one `makeway.model.Plan` per job, same order; None in its place: the job ends as TIMEOUT. None
        for all: they all do.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    They wait again::

        @hookimpl
        def makeway_over_limit(jobs):
            return [Plan(job=job, mode=PreemptMode.REQUEUE, why="over its limit") for job in jobs]

    .. versionadded:: 0.1
    """


@hookspec
def makeway_explain(job: Job, view: ClusterView, now: float) -> Sequence[Check] | None:
    """Go through the policy's check list for a job that could not start.

    Called by ``makeway explain`` for the job in question, each time that it was tried and had to wait, at that
    very moment. Not called while it waits for victims of its own to leave. Nothing is decided by the answer.

    :param job: the pending job.
    :param view: the cluster as of `now`, as it was when the job was tried.
    :param now: seconds since the start of the replay.
    :returns: `makeway.model.Check`, in the order of the list. None: the plugin has none.
    :raises: whatever is raised ends the run as PolicyError.

    All answers are joined, plugins in the order of the config.

    One question::

        @hookimpl
        def makeway_explain(job, view):
            busy = not view.idle & job.partition.nodes
            return [Check(code="E1", verdict="fail" if busy else "pass", question="is any node idle?",
                          found="none is" if busy else "yes")]

    .. versionadded:: 0.1
    """


# --------------------------------------------------------------------------- 5. people's commands
@hookspec(firstresult=True)
def makeway_jobs_named(
    expression: str, command: str, user: str | None, view: ClusterView, now: float
) -> Sequence[str] | None:
    """Say which jobs a person means, where a command may name more than one job or describe them.

    Called for each command that a person gives, before `makeway_manual`.

    :param expression: what stands in place of a job id.
    :param command: the command, as in `makeway_manual`.
    :param user: who asks; None: an administrator.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: ids of jobs, in the order in which they are to be dealt with, each by itself; empty: the command is
        refused, since it means nobody. None: no opinion; if all pass, the expression is the id of one job.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    A list with commas::

        @hookimpl
        def makeway_jobs_named(expression):
            return expression.split(",") if "," in expression else None

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_manual(command: str, job: Job, user: str | None, view: ClusterView, now: float) -> str | None:
    """Refuse a person's command, and say why.

    Called before a suspend, resume, requeue, cancel, checkpoint, hold, release or start that a person
    asked for is carried out. States that make a command meaningless are refused by the engine itself.

    :param command: one of the words above.
    :param job: the job it is about.
    :param user: who asks; None: an administrator.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: the reason for refusing; None: no objection.
    :raises: whatever is raised ends the run as PolicyError.

    The first refusal counts.

    Owners may do anything but resume::

        @hookimpl
        def makeway_manual(command, job, user):
            if command == "resume" and user == job.user:
                return "a user may not resume his own job"

    .. versionadded:: 0.1
    """


# ---------------------------------------------------------------------------------- 6. adoption
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


# --------------------------------------------------------------------------------- 7. observers
@hookspec
def makeway_on_line(line: Line) -> None:
    """Look at one line of the record as it is written: a change of state or a decision.

    Called after the engine has acted. Observer hook.

    :param line: see `makeway.record.Line`.
    :raises: is logged, and the plugin's observers are off for the rest of the run.

    Count the preemptions::

        @hookimpl
        def makeway_on_line(line):
            if line.kind == "preempt":
                seen.append(line)

    .. versionadded:: 0.1
    """


__all__ = ["CONTRACT_VERSION", "NodeBits", "about", "based_on", "hookimpl", "hookspec", "of_selector"]
