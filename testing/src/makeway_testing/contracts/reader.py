"""The contracts of readers: of foreign configurations, and of workloads.

A reader is judged by a sample that its author gives, and by what becomes of the sample when it is damaged.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from makeway.config import Config
from makeway.errors import ConfigError, MakewayError
from makeway.foreign import Dialect
from makeway.model import JobSpec
from makeway.readers.api import Loaded, ReadOptions, Rejected
from makeway.readers.lines import read_head
from makeway.registry.finding import OWN
from makeway_app.readers.foreign import Adapted, adapted_workload
from makeway_testing import builders, nuisances
from makeway_testing.contracts.base import Contract
from makeway_testing.failures import BreachError

STRANGERS: Mapping[str, str] = {
    "jobs.swf": "; MaxNodes: 4\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 -1 -1 -1\n",
    "jobs.sacct": "JobID|JobName|Partition|Submit|Start|End|State\n1|a|p|2024-01-01T00:00:00|||\n",
    "jobs.toml": '[[job]]\nid = "1"\nnodes = 1\nrun_time = 10\n',
    "jobs.jsonl": '{"id": "1", "nodes": 1, "run_time": 10}\n',
    "slurm.conf": "ClusterName=a\nNodeName=n1 CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n",
    "README": "This is prose, and no configuration.\n",
    "notes.txt": "",
}
"""Files of other kinds, by name."""


class ReaderContract(Contract):
    """What both kinds of readers promise; subclass `WorkloadReaderContract` or `ConfigReaderContract`."""

    file_name: ClassVar[str] = ""
    """A name that such a file has: ``jobs.csv``."""
    sample: ClassVar[str] = ""
    """A file of the kind, as it should be."""
    beside: ClassVar[Mapping[str, str]] = {}
    """Further files in the same folder, by name, that the sample refers to."""
    reader: ClassVar[str] = ""
    """Name of the reader, if the plugin offers several."""

    def key(self) -> str:
        """Return the key of ``[policy]`` that a plugin without decisions stands under."""
        return "plugins"

    hook = "makeway_dialect"
    _part: ClassVar[str] = ""
    """Part of the dialect in which the reader is."""

    def _readers(self) -> list[Any]:
        function = getattr(self._plugin(), self.hook, None)
        if function is None:
            return self.fail(f"it does not implement {self.hook}", hook=self.hook)
        dialect: Dialect = function()
        return list(getattr(dialect, self._part))

    def _reader(self) -> Any:
        found = [each for each in self._readers() if self.reader in ("", each.name)]
        if not found:
            self.fail(
                f"it offers no reader{f' called {self.reader!r}' if self.reader else ''}", hook=self.hook
            )
        return self._adapt(found[0])

    def _adapt(self, reader: Any) -> Any:
        raise NotImplementedError

    def read(self, path: Path) -> Any:
        """Read a file whole, into something that can be compared."""
        raise NotImplementedError

    def outcome(self, text: str, name: str = "") -> Any:
        """Return what reading `text` comes to: what was read, or the `ConfigError`."""
        with _folder({**self.beside, (name or self.file_name): text}) as folder:
            try:
                return self.read(folder / (name or self.file_name))
            except ConfigError as error:
                return error

    # ---------------------------------------------------------------------------------- rules
    def test_it_has_a_name(self) -> None:
        """A reader has a short name of its own, for messages and ``--format``."""
        names = [each.name for each in self._readers()]
        if not all(isinstance(name, str) and name.strip() == name != "" for name in names):
            self.fail(f"the names are {names}", hook=self.hook)
        if len(set(names)) < len(names):
            self.fail(f"two readers have one name: {names}", hook=self.hook)

    def test_it_claims_its_own(self) -> None:
        """A reader claims its sample."""
        if not self._claims(self.file_name, self.sample):
            self.fail(f"it does not claim {self.file_name}, its own sample", hook=f"{self.hook} (claims)")

    def test_it_leaves_others_alone(self) -> None:
        """A reader does not claim files of other kinds, whatever their extension promises."""
        for name, text in STRANGERS.items():
            if self._claims(name, text):
                self.fail(f"it claims {name}: {text[:60]!r}", hook=f"{self.hook} (claims)")

    def _claims(self, name: str, text: str) -> bool:
        with _folder({name: text}) as folder:
            try:
                head = read_head(folder / name)
            except ConfigError:
                return False  # no reader is asked about an empty file
            return bool(self._reader().claims(folder / name, head))

    def test_the_sample_is_read(self) -> None:
        """The sample is read without an error."""
        found = self.outcome(self.sample)
        if isinstance(found, ConfigError):
            self.fail(f"its own sample is refused: {found}", hook=self.hook)

    def test_same_file_same_answer(self) -> None:
        """Read twice, with the computer's clock at another instant, a file gives the same."""
        package = type(self._reader()).__module__.partition(".")[0]
        inner = getattr(self._reader(), "inner", None)
        if inner is not None:
            package = type(inner).__module__.partition(".")[0]
        first = self.outcome(self.sample)
        for instant in nuisances.CLOCKS:
            with nuisances.Clock(instant, "" if package in OWN else package) as read:
                again = self.outcome(self.sample)
            if str(again) != str(first):
                seen = f"; it read {', '.join(sorted(read))}" if read else ""
                self.fail(f"first {str(first)[:300]}, then {str(again)[:300]}{seen}", hook=self.hook)

    def test_damage_is_an_error_in_words(self) -> None:
        """Whatever a file holds, the reader raises nothing but ConfigError, which names the file."""
        whole = {"empty": "", "binary": "\x00\x01\x02\n" * 3, "prose": STRANGERS["README"]}
        for what, text in (*whole.items(), *_damaged(self.sample)):
            with _folder({**self.beside, self.file_name: text}) as folder:
                path = folder / self.file_name
                try:
                    self.read(path)
                except ConfigError as error:
                    if self.file_name not in str(error):
                        self._damage(f"the error does not name the file: {error}", what, text)
                except MakewayError as error:
                    self._damage(f"it raised {type(error).__name__}, not ConfigError: {error}", what, text)
                except Exception as error:
                    self._damage(f"it raised {type(error).__name__}: {error}", what, text)

    def _damage(self, found: str, what: str, text: str) -> None:
        shown = text if len(text) < 400 else text[:397] + "..."
        indented = "\n".join(f"    {line}" for line in shown.splitlines())
        self.fail(BreachError(f"{what}: {found}\nthe file:\n{indented}", hook=self.hook))


class WorkloadReaderContract(ReaderContract):
    """What readers of workloads promise (`Dialect.workloads`)."""

    _part = "workloads"
    jobs: ClassVar[int] = 0
    """How many jobs the sample holds."""

    def _adapt(self, reader: Any) -> Any:
        return adapted_workload(reader)

    def read(self, path: Path) -> Any:
        """Read all jobs."""
        workload = self._reader().read(path, ReadOptions(config=builders.config(), most_rejected=None))
        jobs = list(workload.jobs)
        return _Read(jobs, list(workload.rejected), workload.rejected_count)

    def _sound(self) -> _Read:
        found = self.outcome(self.sample)
        if not isinstance(found, _Read):
            self.fail(f"its own sample is refused: {found}", hook=self.hook)
        return found

    def test_every_job_of_the_sample_is_there(self) -> None:
        """The sample gives as many jobs as its author says, and none is rejected."""
        found = self._sound()
        if not self.jobs:
            raise TypeError(f"{type(self).__name__}: set `jobs` to the number of jobs in the sample")
        if len(found.jobs) != self.jobs or found.count:
            text = f"{len(found.jobs)} jobs and {found.count} rejected rows; the sample holds {self.jobs}"
            self.fail(text, hook=self.hook)

    def test_jobs_are_in_order_of_submission(self) -> None:
        """Jobs come in order of submission, at instants of zero or more."""
        times = [spec.submit_at for spec in self._sound().jobs]
        if times != sorted(times) or any(at < 0 for at in times):
            self.fail(f"the submissions are {times}", hook=self.hook)

    def test_ids_are_unique(self) -> None:
        """No two jobs have one id."""
        ids = [spec.id for spec in self._sound().jobs]
        if len(set(ids)) < len(ids) or not all(ids):
            self.fail(f"the ids are {ids}", hook=self.hook)

    def test_no_row_is_dropped_in_silence(self) -> None:
        """A damaged row is read, or rejected with line and reason, or the file is refused: none is dropped."""
        lines = self.sample.splitlines()
        whole = self._sound().rows
        for at, line in enumerate(lines):
            if not line.strip() or not self._is_row(lines, at, whole):
                continue
            for what, damaged in _damages(line):
                text = "\n".join([*lines[:at], damaged, *lines[at + 1 :]]) + "\n"
                found = self.outcome(text)
                if isinstance(found, _Read) and found.rows < whole:
                    self._damage(
                        f"{found.rows} jobs and rejected rows are left of {whole}",
                        f"line {at + 1} {what}",
                        text,
                    )

    def _is_row(self, lines: Sequence[str], at: int, whole: int) -> bool:
        """Whether a line is about one job, or the whole file cannot do without it."""
        found = self.outcome("\n".join([*lines[:at], *lines[at + 1 :]]) + "\n")
        return isinstance(found, ConfigError) or found.rows == whole - 1

    def test_rejections_say_where_and_why(self) -> None:
        """Every rejected row has the number of its line, and a reason."""
        lines = self.sample.splitlines()
        for at, line in enumerate(lines):
            for what, damaged in _damages(line) if line.strip() else ():
                text = "\n".join([*lines[:at], damaged, *lines[at + 1 :]]) + "\n"
                found = self.outcome(text)
                if not isinstance(found, _Read):
                    continue
                for row in found.rejected:
                    if not row.reason.strip() or not 0 < row.line <= len(lines):
                        self._damage(
                            f"rejected: line {row.line}, {row.reason!r}", f"line {at + 1} {what}", text
                        )

    def test_the_jobs_can_be_replayed(self) -> None:
        """The jobs of the sample pass through a replay, whatever it does with them."""
        from makeway_testing.scenario import replay_table  # only here: it brings the engine

        jobs = [attrs.evolve(spec, partitions=(), qos=None) for spec in self._sound().jobs]
        try:
            replay_table(jobs, cluster=builders.cluster(64, cpus=64), until=1e6)
        except MakewayError as error:
            self.fail(f"a replay of the sample fails: {error}", hook=self.hook)


class ConfigReaderContract(ReaderContract):
    """What readers of foreign configurations promise (`Dialect.configs`)."""

    _part = "configs"
    nodes: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """``[[node]]`` tables, if the file cannot say which nodes there are."""
    strange: ClassVar[str] = ""
    """A parameter that the reader does not know; empty: the format has none."""
    strange_lines: ClassVar[str] = ""
    """How it stands in a file; empty: on a line of its own."""

    def _adapt(self, reader: Any) -> Any:
        return Adapted(reader)

    def read(self, path: Path) -> Any:
        """Read it, and check it as if a person had written it."""
        companion = {"node": list(self.nodes)} if self.nodes else None
        reader = self._reader()
        return reader.read(path, companion) if companion else reader.read(path)

    def _sound(self) -> Loaded:
        found = self.outcome(self.sample)
        if not isinstance(found, Loaded):
            self.fail(f"its own sample is refused: {found}", hook=self.hook)
        return found

    def test_it_becomes_a_configuration(self) -> None:
        """The sample becomes a valid configuration, with nodes and partitions."""
        found: Any = self._sound().config
        if not isinstance(found, Config) or not found.node or not found.partition:
            self.fail(f"it became {str(found)[:200]}", hook=self.hook)
        builders.build_cluster(found)

    def test_unknown_parameters_are_named(self) -> None:
        """A parameter that the reader does not know is named, in a warning or an error."""
        if not self.strange:
            self.skip("`strange` names no parameter")
        lines = self.strange_lines or self.strange
        found = self.outcome(f"{self.sample.rstrip()}\n{lines}\n")
        said = "\n".join(found.warnings) if isinstance(found, Loaded) else str(found)
        if self.strange.split()[0].lower() not in said.lower():
            self.fail(f"no warning names {self.strange!r}; the warnings: {said or 'none'}", hook=self.hook)

    def test_places_are_in_the_file(self) -> None:
        """Every place that is named is a line of the file, or of one beside it."""
        known = {self.file_name: self.sample, **self.beside}
        for key, place in self._sound().places.items():
            name, _, line = str(place).split(" ")[0].rpartition(":")
            text = known.get(Path(name).name)
            if text is None or not line.isdigit() or not 0 < int(line) <= len(text.splitlines()):
                self.fail(f"{key} is said to be at {place!r}", hook=self.hook)


@attrs.frozen
class _Read:
    """What came of a workload."""

    jobs: list[JobSpec]
    rejected: list[Rejected]
    count: int
    """All rejected rows."""

    @property
    def rows(self) -> int:
        return len(self.jobs) + self.count


@contextlib.contextmanager
def _folder(files: Mapping[str, str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in files.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        yield folder


def _damages(line: str) -> Iterator[tuple[str, str]]:
    """Yield what may happen to a line."""
    yield "torn in the middle", line[: len(line) // 2]
    yield "with its digits read badly", "".join("?" if char.isdigit() else char for char in line)
    yield "with the sign of a number turned", _negative(line)
    yield "with a word more", f"{line} more"
    for mark in (",", "|", ";", "\t", "="):
        if mark in line:
            yield f"without what is before the first {mark!r}", line.partition(mark)[2]
            yield f"with {mark!r} once more", f"{line}{mark}"
    yield "of nonsense", "%$ nonsense !"


def _negative(line: str) -> str:
    at = next((place for place, char in enumerate(line) if char.isdigit()), 0)
    return f"{line[:at]}-{line[at:]}"


def _damaged(sample: str) -> Iterator[tuple[str, str]]:
    """Yield the sample with one line damaged, missing or doubled, and torn off at several places."""
    lines = sample.splitlines()
    for at, line in enumerate(lines):
        for what, damaged in _damages(line):
            yield f"line {at + 1} {what}", "\n".join([*lines[:at], damaged, *lines[at + 1 :]]) + "\n"
        yield f"line {at + 1} missing", "\n".join([*lines[:at], *lines[at + 1 :]]) + "\n"
        yield f"line {at + 1} doubled", "\n".join([*lines[: at + 1], *lines[at:]]) + "\n"
    for part in (1, 3, 5, 7):
        cut = len(sample) * part // 8
        yield f"torn off after {cut} characters", sample[:cut]
