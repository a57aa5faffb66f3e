"""Put the rows of ``sacct -P`` together where text of a user's holds the separator or a line end.

SubmitLine, Comment and the like are whatever a user typed: ``sbatch --wrap="zcat a | sort"``. sacct prints
them as they are, so that a row may have too many fields, or be spread over lines. The other columns say how it
was meant: a time looks like a time, a count like a count. Where more than one reading fits, none is taken.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping

import attrs

from makeway.readers.lines import Line

FREE_TEXT = frozenset(
    """admincomment command comment constraints container extra jobname stderr stdin stdout submitline
    systemcomment workdir""".split()
)
"""Columns that hold what people typed."""
LINE_ENDS = frozenset("admincomment comment extra submitline systemcomment".split())
"""Those of them whose text may have several lines."""

JOB_ID = re.compile(r"([0-9]{1,18})(?:_([0-9]{1,9}))?(?:\+([0-9]{1,6}))?")
PENDING_ARRAY = re.compile(r"[0-9]{1,18}_\[[^\]|]*\]")
STEP = re.compile(r"[0-9_+]{1,40}\.[A-Za-z0-9_+]+")
ELAPSED = re.compile(r"(?:[0-9]{1,9}-)?[0-9]{1,9}(?::[0-9]{1,9}){1,2}(\.[0-9]+)?")
NOTHING = frozenset(("", "unknown", "none", "n/a", "none assigned", "(null)"))
"""How sacct says that it has no value."""

_IDS = frozenset(("jobid", "jobidraw"))
_TELLING = 3
"""Columns before any free text that make the beginning of a row unmistakable."""
_MOST_EXTRA = 200
"""Fields too many with which a row is still tried."""
_MOST_WAYS = 2000
"""Ways of putting a row together that are tried."""
_MOST_LINES = 1000
"""Lines of one row."""


class BadRowError(Exception):
    """A row that cannot be used; its text is the reason."""

    def __init__(self, reason: str, *, usual: bool = False) -> None:
        super().__init__(reason)
        self.usual = usual


# --------------------------------------------------------------------------- what a column looks like
def unix_time(text: str) -> float | None:
    """Return a time as Unix time, read as UTC; None: it is none."""
    if text.isascii() and text.isdigit():
        return float(text) if len(text) < 12 else None
    try:
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None


def _like(pattern: str) -> Callable[[str], bool]:
    matches = re.compile(pattern).fullmatch
    return lambda text: text.lower() in NOTHING or matches(text) is not None


def _is_id(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in (JOB_ID, PENDING_ARRAY, STEP))


def _is_time(text: str) -> bool:
    return text.lower() in NOTHING or unix_time(text) is not None


_COUNT = _like(r"[0-9.]{1,18}[KMGT]?")
_NUMBER = _like(r"[0-9]{1,18}")
_SPAN = _like(ELAPSED.pattern)
_TRES = _like(r"[A-Za-z][^\s|]*=[^\s|]*")
_NAME = _like(r"[^\s|\"'$;&<>()]+")
_MEM = _like(r"[0-9.]{1,25}[KMGTP]?[nc?]?")

_LOOKS: Mapping[str, Callable[[str], bool]] = {
    **dict.fromkeys(("jobid", "jobidraw"), _is_id),
    **dict.fromkeys(("submit", "eligible", "start", "end"), _is_time),
    **dict.fromkeys(("nnodes", "ncpus", "alloccpus", "reqcpus", "reqnodes", "allocnodes", "ntasks"), _COUNT),
    **dict.fromkeys(("uid", "gid", "elapsedraw", "cputimeraw", "restarts", "priority", "associd"), _NUMBER),
    **dict.fromkeys(("elapsed", "cputime", "suspended", "reserved", "planned", "totalcpu"), _SPAN),
    **dict.fromkeys(("reqtres", "alloctres"), _TRES),
    **dict.fromkeys(("user", "account", "group", "cluster", "qos", "partition"), _NAME),
    "timelimit": _like(r"[0-9:\-]{1,25}|UNLIMITED|Partition_Limit|INVALID"),
    "timelimitraw": _like(r"[0-9]{1,18}|UNLIMITED|Partition_Limit|INVALID"),
    "reqmem": _MEM,
    "state": _like(r"[A-Z_]{4,20}\+?(?: by \S+)?"),
    "exitcode": _like(r"[0-9]{1,5}:[0-9]{1,5}"),
}
"""Whether a text may be a value of the column; other columns may hold anything."""
_NEVER_EMPTY = (
    "alloccpus",
    "elapsed",
    "elapsedraw",
    "jobid",
    "jobidraw",
    "ncpus",
    "nnodes",
    "state",
    "submit",
)
_EMPTY_IN_STEPS = ("partition", "user")


# ------------------------------------------------------------------------------------------- layout
@attrs.frozen
class Layout:
    """Which column is where."""

    columns: tuple[str, ...]
    """In lower case, as the header has them."""

    @property
    def free(self) -> tuple[int, ...]:
        """Return the places of columns with text of users."""
        return tuple(at for at, name in enumerate(self.columns) if name in FREE_TEXT)

    def fields(self, line: str) -> dict[str, str]:
        """Split a row; text of a user's may hold the separator.

        :raises BadRowError: it has too few fields, or too many and no single way to put them together.
        """
        parts = [part.strip() for part in line.split("|")]
        if len(parts) == len(self.columns):
            return dict(zip(self.columns, parts, strict=True))
        if len(parts) < len(self.columns) or not self.free:
            raise BadRowError(f"{len(parts)} fields; allowed: {len(self.columns)}{self._advice()}")
        found = self._put_together(line.split("|"))
        if found is None:
            text = (
                f"{len(parts)} fields instead of {len(self.columns)}, which fit the columns in no single way"
            )
            raise BadRowError(text + self._advice())
        return found

    def _put_together(self, parts: list[str]) -> dict[str, str] | None:
        """Give the fields that are too many to columns of free text; None: no way fits, or several do."""
        extra = len(parts) - len(self.columns)
        if extra > _MOST_EXTRA:
            return None
        fitting: list[dict[str, str]] = []
        for shares in itertools.islice(_shares(extra, len(self.free)), _MOST_WAYS + 1):
            row = self._joined(parts, dict(zip(self.free, shares, strict=True)))
            if self._fits(row) and not any(_same(row, other) for other in fitting):
                fitting.append(row)
        return fitting[0] if len(fitting) == 1 else None

    def _joined(self, parts: list[str], shares: Mapping[int, int]) -> dict[str, str]:
        """Return the row in which each column of free text takes so many fields more than one."""
        row: dict[str, str] = {}
        at = 0
        for place, name in enumerate(self.columns):
            end = at + 1 + shares.get(place, 0)
            row[name] = "|".join(parts[at:end]).strip()
            at = end
        return row

    def _fits(self, row: Mapping[str, str]) -> bool:
        if not all(_LOOKS[name](text) for name, text in row.items() if name in _LOOKS):
            return False
        if any("\n" in text and name not in LINE_ENDS for name, text in row.items()):
            return False
        step = any(STEP.fullmatch(row.get(name, "")) for name in _IDS)
        return all(row.get(name) != "" for name in (_NEVER_EMPTY if step else _NEVER_EMPTY + _EMPTY_IN_STEPS))

    def begins(self, line: str) -> bool:
        """Whether a line looks like the beginning of a row, or like one that breaks off.

        What stands before any free text fits its column.
        """
        parts = [part.strip() for part in line.split("|")]
        before = self.columns[: self.free[0]] if self.free else self.columns
        if not before or self.is_header(line):
            return len(parts) >= len(self.columns)
        row = dict(zip(before, parts, strict=False))
        if len(parts) <= len(before) and len(parts) < len(self.columns) and not _is_telling(row):
            return False
        return self._fits(row)

    def is_header(self, line: str) -> bool:
        """Whether a line is a header once more, as where files were put together."""
        names = [name.strip().lower() for name in line.split("|")]
        return len(names) > 1 and any(
            name == column for name, column in zip(names, self.columns, strict=False) if column in _IDS
        )

    def goes_on(self, before: str, line: str) -> bool:
        """Whether a line belongs to the row that `before` began."""
        width = len(self.columns) - 1
        if self.begins(line):
            return (
                not _is_telling(self.columns[: self.free[0]])
                and before.count("|") < width
                and not self.is_whole(line)
            )
        return not before.count("|") == line.count("|") == width  # else two rows, one of them odd

    def is_whole(self, row: str) -> bool:
        """Whether a row has a value that fits for each column."""
        parts = row.split("|")
        if len(parts) == len(self.columns):
            return self._fits(self._joined(parts, {}))
        return len(parts) > len(self.columns) and bool(self.free) and self._put_together(parts) is not None

    def _advice(self) -> str:
        named = [name for name in self.columns if name in FREE_TEXT]
        if not named:
            return ""
        worst = "submitline" if "submitline" in named else named[0]
        return f"; {_SPELLED.get(worst, worst)} may hold '|' or a line end, so leave it out of sacct -o"


def _is_telling(columns: Collection[str]) -> bool:
    """Whether values that fit these columns cannot be mistaken for a piece of text."""
    return sum(name in _LOOKS for name in columns) >= _TELLING


_SPELLED = {"submitline": "SubmitLine", "jobname": "JobName", "workdir": "WorkDir", "comment": "Comment"}


def _shares(extra: int, columns: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to give `extra` fields to some columns."""
    if columns == 1:
        yield (extra,)
        return
    for first in range(extra, -1, -1):
        yield from ((first, *rest) for rest in _shares(extra - first, columns - 1))


def _same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two readings differ in text of users only."""
    return all(other[name] == text for name, text in one.items() if name not in FREE_TEXT)


# -------------------------------------------------------------------------------------------- lines
def whole_rows(lines: Iterator[Line], layout: Layout) -> Iterator[Line]:
    """Join rows that are spread over lines; the number is that of the first line.

    A line that does not begin like a row belongs to the one before.
    """
    if LINE_ENDS.isdisjoint(layout.columns):
        yield from lines
        return
    held: list[Line] = []
    text = ""
    for number, line in lines:
        if held and len(held) < _MOST_LINES and layout.goes_on(text, line):
            held.append((number, line))
            text += f"\n{line}"
            continue
        yield from _row_of(held, text, layout)
        held, text = [(number, line)], line
    yield from _row_of(held, text, layout)


def _row_of(held: list[Line], text: str, layout: Layout) -> Iterator[Line]:
    """Yield one row, or the first line and the rest if it makes sense without them alone."""
    if len(held) > 1 and not layout.is_whole(text) and layout.is_whole(held[0][1]):
        yield held[0]
        yield held[1][0], "\n".join(line for _, line in held[1:])
    elif held:
        yield held[0][0], text
