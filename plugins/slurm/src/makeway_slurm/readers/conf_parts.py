"""Hold what was read from a slurm.conf: settings with their places, records, duplicates."""

from __future__ import annotations

import attrs

from makeway.errors import Problem

RECORD_KINDS = frozenset(
    (
        "blockname",
        "downnodes",
        "frontendname",
        "nodename",
        "nodeset",
        "partitionname",
        "poweraction",
        "switchname",
    )
)
"""Keys that begin a record: all that follows on their line belongs to them."""
REPEATABLE = frozenset(("epilog", "epilogslurmctld", "prolog", "prologslurmctld", "slurmctldhost"))
"""Parameters that Slurm collects when they are given more than once."""
_SHOWN = 60


@attrs.frozen(kw_only=True)
class Setting:
    """One ``Key=Value`` and where it stands."""

    key: str
    """As spelled in the file."""
    value: str
    """As written, without the quotes around it."""
    file: str
    line: int
    quoted: bool = False
    inherited: bool = False
    """It comes from a DEFAULT line, which `file` and `line` name."""

    @property
    def canonical(self) -> str:
        """Return the key in lower case, as it is compared."""
        return self.key.lower()

    @property
    def where(self) -> str:
        """Return the place as errors name it: ``slurm.conf:12 SchedulerTimeSlice``."""
        return f"{self.file}:{self.line} {self.key}"

    def problem(self, message: str) -> Problem:
        """Blame this setting."""
        return Problem(self.where, message)


@attrs.frozen(kw_only=True)
class Duplicate:
    """A setting that a later one of the same key replaces."""

    lost: Setting
    kept: Setting

    def problem(self) -> Problem:
        """Say which of the two counts; meant as a warning, as Slurm starts all the same."""
        kept = f"{self.kept.file}:{self.kept.line}"
        return self.lost.problem(f"given again at {kept}, which wins with {shown(self.kept.value)}")


@attrs.frozen(kw_only=True)
class Record:
    """One record line, such as ``PartitionName=batch Nodes=n[1-4]``, with its defaults."""

    kind: str
    """One of `RECORD_KINDS`."""
    key: str
    """The kind as spelled in the file."""
    name: str
    """The value of that key, as written: a host list, a name, or DEFAULT."""
    file: str
    line: int
    settings: tuple[Setting, ...] = ()
    """Its own in the order written, then those inherited from DEFAULT lines; each key once."""
    duplicates: tuple[Duplicate, ...] = ()
    """Keys given more than once on the line itself."""

    @property
    def is_default(self) -> bool:
        """Tell whether this is a DEFAULT line, which defines nothing by itself."""
        return self.name.upper() == "DEFAULT"

    @property
    def where(self) -> str:
        """Return the place as errors name it: ``slurm.conf:30 PartitionName=batch``."""
        return f"{self.file}:{self.line} {self.key}={self.name}"

    def get(self, key: str) -> Setting | None:
        """Return the setting of `key` in any case; None: neither the line nor a DEFAULT has it."""
        wanted = key.lower()
        return next((each for each in self.settings if each.canonical == wanted), None)

    def problem(self, message: str) -> Problem:
        """Blame this record."""
        return Problem(self.where, message)


@attrs.frozen(kw_only=True)
class SlurmConf:
    """All that a slurm.conf and the files that it includes say, in reading order."""

    source: str
    """The file as the user named it."""
    entries: tuple[Setting | Record, ...] = ()
    """Simple parameters and records; DEFAULT lines are kept as records."""

    def parameters(self) -> dict[str, Setting]:
        """Return the simple parameters by canonical key; the last one given wins."""
        return {each.canonical: each for each in self.entries if isinstance(each, Setting)}

    def repeated(self, key: str) -> tuple[Setting, ...]:
        """Return each giving of a parameter that may be given more than once, in order."""
        wanted = key.lower()
        given = (each for each in self.entries if isinstance(each, Setting))
        return tuple(each for each in given if each.canonical == wanted)

    def records(self, kind: str) -> tuple[Record, ...]:
        """Return the records of one kind in order, without the DEFAULT lines."""
        wanted = kind.lower()
        found = (each for each in self.entries if isinstance(each, Record))
        return tuple(each for each in found if each.kind == wanted and not each.is_default)

    def duplicates(self) -> tuple[Duplicate, ...]:
        """Return what is given in vain, in reading order, so that the caller can warn."""
        kept = self.parameters()
        found: list[Duplicate] = []
        for each in self.entries:
            if isinstance(each, Record):
                found += each.duplicates
            elif each is not kept[each.canonical] and each.canonical not in REPEATABLE:
                found.append(Duplicate(lost=each, kept=kept[each.canonical]))
        return tuple(found)


def shown(text: str) -> str:
    """Quote `text` for a message: printable, and shortened if it is long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
