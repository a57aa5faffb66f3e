"""Say what a plugin offers that reads foreign files: configurations, workloads, recordings of a real scheduler.

A plugin touches no file: the core reads, hands over text (`Source`), and takes tables back. The tables have the
shape of the TOML file (docs/config.md), so that ``makeway import`` is a matter of writing them out; the core
structures and checks them as if a person had written them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from makeway.left_out import LeftOut as LeftOut
from makeway.left_out import Said
from makeway.model import Cluster, JobSpec, Partition, Seconds, Vocabulary

if TYPE_CHECKING:
    from makeway.config import Config, PartitionTable, QosTable
    from makeway.readers.api import Loaded, WorkloadReader


class Source(Protocol):
    """A text file, read by the core."""

    @property
    def name(self) -> str:
        """File name without folders, for messages."""

    @property
    def text(self) -> str:
        """All of it, line ends as they are."""

    def beside(self, name: str) -> Source:
        """Return another file, relative to this one's folder.

        :raises ConfigError: it cannot be read.
        """


@attrs.frozen(kw_only=True)
class ForeignConfig(Said):
    """What a foreign configuration became, beside what is said of it."""

    tables: Mapping[str, Any]
    """The TOML file as nested tables; ``node`` may be left out if the file cannot say (``--nodes``)."""
    guesses: tuple[str, ...] = ()
    """Warnings about nodes that the files do not describe in full; not said where ``--nodes`` does."""


@attrs.frozen(kw_only=True)
class Knob:
    """A setting that a search may change, in the words of the file that holds it."""

    name: str
    """As people of this scheduler say it, ``PartitionName=batch GraceTime``; no two of a site have the same."""
    file: str
    """Relative to the folder of the configuration; it need not be there yet."""
    now: str
    """What the file says; empty: nothing, so that the default holds."""
    values: tuple[str, ...]
    """What it may say instead, nearest first."""
    written: Callable[[str, str], str]
    """Returns a text of the file with a value in it; the rest stays as it is, comments too."""
    typed: Callable[[str], str] | None = None
    """Returns the command that makes the change, where the file shows what is in a database; None: it is edited."""


def knob(
    name: str,
    file: str,
    now: str,
    values: Sequence[str],
    written: Callable[..., str],
    *,
    default: str = "",
    unset: bool = False,
    typed: Callable[..., str] | None = None,
    **at: str,
) -> Knob:
    """Return a setting with those values worth a try that do not hold now, whatever their case and order of words.

    :param default: what holds where the file says nothing.
    :param unset: whether the file may say nothing instead of what it says.
    :param at: what `written` and `typed` are given beside text and value, to find the place.
    """
    held = _words(now or default)
    others = tuple(each for each in values if _words(each) != held)
    return Knob(
        name=name,
        file=file,
        now=now,
        values=(*others, "") if unset and now else others,
        written=functools.partial(written, **at),
        typed=None if typed is None else functools.partial(typed, **at),
    )


def _words(text: str) -> list[str]:
    return sorted(text.lower().replace(",", " ").split())


class ForeignReader(Protocol):
    """Reads a foreign configuration.

    A reader whose files depend on more than their text may have a method ``asked(release, accounts)``, which returns
    the reader to be used: `release` is what ``--release`` says, `accounts` what ``--accounting`` does, or None. One
    with a true attribute ``names_all_nodes`` needs no ``--nodes``. One whose files may be searched for better settings
    (``makeway tune``) has a method ``knobs(source)``, which returns each `Knob` of them.
    """

    @property
    def name(self) -> str:
        """Short: ``moab.cfg``."""

    def claims(self, name: str, head: str) -> bool:
        """Say by file name and first lines whether the file is of this kind."""

    def translate(self, source: Source) -> ForeignConfig | Loaded:
        """Read it: into tables, or into a configuration that has been checked.

        :raises ConfigError: with all problems, each with file and line.
        """


@attrs.frozen(kw_only=True)
class ForeignWorkload:
    """What a foreign trace became."""

    jobs: Sequence[JobSpec]
    """In any order; the core sorts them by submission."""
    rejected: Sequence[tuple[int, str]] = ()
    """Line and reason of each row that cannot be used; no row is dropped in silence."""
    notes: tuple[str, ...] = ()
    """What was adjusted, one line each."""
    start_wall: float | None = None
    """Unix time of instant 0; None: the trace does not say."""


class ForeignWorkloadReader(Protocol):
    """Reads a trace of jobs that is small enough to be read at once."""

    @property
    def name(self) -> str:
        """Short, as in ``--format swf``."""

    def claims(self, name: str, head: str) -> bool:
        """Say by file name and first lines whether the file is of this kind."""

    def translate(self, source: Source) -> ForeignWorkload:
        """Read it.

        :raises ConfigError: if the file cannot be read at all; a bad row is rejected, and the others are used.
        """


@attrs.frozen(kw_only=True)
class Played:
    """What a replay of a recorded scenario came to."""

    summary: Mapping[str, Any]
    """The record in its summary form."""
    most_jobs_on_a_node: int
    """Most jobs that held one node at the same time."""


@attrs.frozen(kw_only=True)
class Judgement:
    """How a replay compares with a recording."""

    differences: tuple[tuple[str, Seconds | None, str, str], ...] = ()
    """Job, instant (None: of the job as a whole), recorded, replayed; empty: they agree."""
    not_imitated: str = ""
    """Why the recording is no measure (undefined behaviour, an artefact); empty: it is one."""


class RecordedScenario(Protocol):
    """A scenario with what a real scheduler did."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def release(self) -> str:
        """Name and version of the scheduler that was recorded."""

    @property
    def tables(self) -> Mapping[str, Any]:
        """The configuration, as nested tables."""

    @property
    def jobs(self) -> Sequence[JobSpec]:
        """In order of submission."""

    @property
    def commands(self) -> Sequence[Mapping[str, Any]]:
        """What people did, as ``[[action]]`` tables."""

    @property
    def until(self) -> Seconds:
        """End of the observation."""

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """What the scenario asks for that cannot be played; empty: nothing."""

    def judge(self, played: Played) -> Judgement:
        """Compare a replay with the recording."""


class RecordedAnswer(Protocol):
    """A single question with the answer that a real scheduler gave: nothing is replayed, the plugin answers by itself.

    For what a scheduler's own tests state without a run: a decision on given books, an order, a share.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def release(self) -> str:
        """Name and version of the scheduler that was asked."""

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """What the question is about that the plugin does not model; empty: nothing."""

    def answered(self) -> Judgement:
        """Answer the question with the code that decides in a replay, and compare."""


class RecordedVerdict(Protocol):
    """A recording that its plugin plays and judges, for what the summary of a replay does not show."""

    def verdict(self, *, skip_missing: bool) -> Any:
        """Replay its scenario and hold it against what was recorded.

        :returns: a `makeway_verify.verdicts.Verdict`.
        :param skip_missing: whether a scenario whose plugins are missing is skipped; else it failed.
        """


class ScenarioReader(Protocol):
    """Reads scenarios whose recording lies in a file of its own (``makeway verify --recorded``), and plays them."""

    @property
    def name(self) -> str:
        """Short: ``slurm.conf scenarios``."""

    def claims(self, name: str, head: str) -> bool:
        """Say by file name and first lines whether the file is a scenario of this kind."""

    def verdict(self, scenario: str, recorded: str, *, skip_missing: bool) -> Any:
        """Replay a scenario and hold it against its recording, which may not exist.

        :returns: a `makeway_verify.verdicts.Verdict`.
        :param scenario: path of the scenario.
        :param recorded: path of the recording.
        :param skip_missing: whether a scenario whose plugins are missing is skipped; else it failed.
        :raises ConfigError: one of the files is malformed.
        """


class RecordingReader(Protocol):
    """Reads recordings of a real scheduler for ``makeway verify``."""

    @property
    def name(self) -> str:
        """Short: ``Maui recordings``."""

    def claims(self, name: str, head: str) -> bool:
        """Say by file name and first lines whether the file is of this kind."""

    def recorded(self, source: Source) -> RecordedScenario | RecordedAnswer | RecordedVerdict:
        """Read one.

        :raises ConfigError: with all problems.
        """


class Accounts(Protocol):
    """What files of accounting say of QOS and users.

    One whose settings may be searched for better ones (``makeway tune``) has a method ``knobs(config, files)``, which
    returns each `Knob` of them, with the file as it was given.
    """

    def merged(self, config: Config) -> Loaded:
        """Return a configuration with them; it is not validated.

        :raises ConfigError: they do not go together.
        """


@attrs.frozen
class Term:
    """What became of one part of a configuration when it was put into the words of another scheduler."""

    said: str
    """As the configuration has it."""
    becomes: str = ""
    """In the words of the policy in use; empty: it has no equal there."""
    why: str = ""
    """What is different about it; empty: nothing."""


@attrs.frozen
class Way:
    """Which jobs make way for which others, and how; for people who read a configuration."""

    victims: str
    """Whose jobs make way: a partition, a QOS, a queue."""
    how: str
    """killed, requeued, checkpointed, suspended or never."""
    by: str
    """For whose jobs."""
    why: str = ""
    """What decides it, or limits it; empty: nothing more is to be said."""


HOW = {
    "cancel": "killed",
    "requeue": "requeued",
    "suspend": "suspended",
    "checkpoint": "checkpointed",
    "off": "never",
}
"""Mode of preemption -> what becomes of a victim."""


@attrs.frozen(kw_only=True)
class Common:
    """A configuration in the words that all schedulers share, and what decided in it which jobs may displace which."""

    config: Config
    """Partitions with tiers, QOS with lists of those that they preempt, modes of preemption."""
    cluster: Cluster
    """What it describes."""
    by_qos: bool
    """Whether it is the lists of QOS that decide; else the tiers of partitions."""

    def mode(self, table: PartitionTable | QosTable) -> str:
        """Return how jobs of a partition or QOS make way: requeue, cancel, suspend, checkpoint or off."""
        modes = table.preempt_mode or self.config.policy.preempt_mode
        return next((mode.lower() for mode in modes if mode.lower() not in ("gang", "within")), "off")

    def below(self, table: PartitionTable) -> list[PartitionTable]:
        """Return the partitions of lower tiers whose jobs make way at all."""
        return [
            other
            for other in self.config.partition
            if other.priority_tier < table.priority_tier and self.mode(other) != "off"
        ]

    def above(self, table: PartitionTable) -> bool:
        """Whether a partition has a higher tier."""
        return any(other.priority_tier > table.priority_tier for other in self.config.partition)


def has_tiers(config: Config) -> bool:
    """Whether the configuration says itself which partitions come before others."""
    return len({table.priority_tier for table in config.partition}) > 1


Translated = tuple["Config", Sequence[Term]]


@attrs.frozen(kw_only=True)
class Translator:
    """Puts configurations into the words of a scheduler, for those who swap one policy for another's."""

    into: Callable[[Common], Translated]
    """Adds what this scheduler's policy reads; what has no equal is a `Term` without one."""
    out_of: Callable[[Config], Translated]
    """Adds what all share to a configuration in this scheduler's words, where that is not said yet."""
    ways: Callable[[Config, Cluster], Sequence[Way]]
    """Says which jobs make way for which others, and how."""


@attrs.frozen(kw_only=True)
class Dialect:
    """What a plugin knows of the files and words of a scheduler; all of it may be left out."""

    configs: Sequence[ForeignReader] = ()
    """Readers of configurations. Two that claim one file are an error that names both."""
    workloads: Sequence[ForeignWorkloadReader | WorkloadReader] = ()
    """Readers of traces; one for traces too large to be held is a `makeway.readers.api.WorkloadReader`."""
    accounting: Callable[[Sequence[str]], Accounts] | None = None
    """Reads the files of ``--accounting``, given by path; raises ConfigError with all problems. None: it reads none."""
    recordings: Sequence[RecordingReader | ScenarioReader] = ()
    """Readers of recordings of the real scheduler, for ``makeway verify``."""
    vocabulary: Vocabulary | None = None
    """Words for what is shown to people where a plugin with this dialect is in use; None: Slurm's."""
    translator: Translator | None = None
    """Puts configurations into this scheduler's words, and out of them; None: there is none."""
    asked: Callable[[JobSpec, Partition, Cluster], JobSpec] | None = None
    """Puts what a job, or its partition, asks for in this scheduler's words into fields of the request, when the job
    comes; None: there are no such words."""
    unheard: Callable[[Cluster, Mapping[str, Any]], Callable[[JobSpec], Sequence[str]]] | None = None
    """Returns what says which words of a job have no effect, by the cluster and the settings of all plugins; None:
    nothing does."""
