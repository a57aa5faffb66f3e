"""Specify the hooks that go away: what takes the place of each stands in `makeway.deprecated`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from makeway import deprecated
from makeway.hookspecs.marks import hookspec
from makeway.model import ClusterView, Job, Vocabulary

if TYPE_CHECKING:
    from makeway.foreign import ForeignReader, ForeignWorkloadReader, RecordingReader
    from makeway.readers.api import WorkloadReader
    from makeway.runners.api import RunnerFactory


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


@hookspec(firstresult=True, warn_on_impl=deprecated.hook("makeway_queue_rank"))
def makeway_queue_rank(view: ClusterView) -> Callable[[Job], int | None] | None:
    """Rank jobs for the queue: as the mark `ranked_by`, which takes its place.

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


@hookspec(firstresult=True, warn_on_impl=deprecated.hook("makeway_preemptor_kind"))
def makeway_preemptor_kind(view: ClusterView) -> Callable[[Job], Hashable | None] | None:
    """Say which pending jobs may displace the same others: as the mark `alike_by`, which takes its place.

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


@hookspec(firstresult=True, warn_on_impl=deprecated.hook("makeway_jobs_named"))
def makeway_jobs_named(
    expression: str, command: str, user: str | None, view: ClusterView, now: float
) -> Sequence[str] | None:
    """Say which jobs a person means: as `makeway_commands`, which takes its place.

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


@hookspec(firstresult=True, warn_on_impl=deprecated.hook("makeway_manual"))
def makeway_manual(command: str, job: Job, user: str | None, view: ClusterView, now: float) -> str | None:
    """Refuse a person's command, and say why: as `makeway_commands`, which takes its place.

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
