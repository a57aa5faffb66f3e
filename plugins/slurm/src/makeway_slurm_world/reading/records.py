"""Split the lines of ``scontrol -o`` into keys and values.

Values are not quoted, and some are what people typed: names, comments, paths. A user who names a job
``x JobState=RUNNING`` may not fool the reader: the fields that Slurm itself writes stand between two that can be
found, and a record in which they can be found twice is not believed at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import attrs

_KEY = re.compile(r"(?:^| )([A-Za-z][A-Za-z0-9_:/]*(?:\[[0-9]+\])?)=")
_NOTHING = frozenset(("", "(null)", "N/A", "n/a", "None", "Unknown"))
_BEGINS = re.compile(r"JobId=[0-9]+ ")
_SPINE = re.compile(
    r" UserId=(?P<user>\S*)\((?P<uid>[0-9]+)\) GroupId=(?P<group>\S*)\([0-9]+\) MCS_label=(?P<mcs>\S*)"
    r" Priority=(?P<priority>[0-9]+) Nice=(?P<nice>-?[0-9]+) (?P<rest>Account=.*? JobState=(?P<state>[A-Z_]+) )"
)
"""What Slurm writes behind a job's name, in all releases that are known."""
_TYPED = re.compile(r" (?:Command|WorkDir|AdminComment|SystemComment|Comment|Extra|StdErr|StdIn|StdOut)=")
"""Behind these comes what people typed."""
_FIELD = re.compile(r"([A-Za-z:/]+)=(\S*)")
_ASKED = frozenset(("TresPerJob", "TresPerNode", "TresPerSocket", "TresPerTask"))
_PLACE = re.compile(r" Nodes=(\S+) CPU_IDs=(\S*) Mem=([0-9]+) GRES=(\S*)")


class UnreadableError(Exception):
    """A record that cannot be told from what a user typed."""


@attrs.frozen(kw_only=True)
class Place:
    """What a job holds on some nodes that are alike."""

    nodes: str
    """Host list."""
    cpus: str
    """CPU ids, as ``0-3,6``."""
    memory_mb: int
    gres: str
    """As ``gpu:2(IDX:0-1)``; empty: none."""


@attrs.frozen(kw_only=True)
class JobRecord:
    """One job, as ``scontrol -d -o show job`` prints it."""

    number: int
    """The raw job id, of which each array task that was split off has one of its own."""
    name: str
    user: str
    group: str
    state: str
    priority: int
    nice: int
    fields: Mapping[str, str]
    """Everything else that Slurm writes itself; fields without a value are left out."""
    places: tuple[Place, ...]


def pairs(line: str) -> dict[str, str]:
    """Split a line of ``Key=Value`` in which no user types; the first of a key counts."""
    found: dict[str, str] = {}
    marks = list(_KEY.finditer(line))
    ends = [*(mark.start() for mark in marks[1:]), len(line)]
    for mark, end in zip(marks, ends, strict=False):
        found.setdefault(mark[1], line[mark.end() : end].strip())
    return found


def known(value: str | None) -> str | None:
    """Return a value; None: Slurm says in one of its ways that there is none."""
    return None if value is None or value in _NOTHING else value


def job_lines(text: str) -> Iterator[str]:
    """Yield the record of each job, lines that belong together put together: names may have several lines."""
    held: list[str] = []
    for line in text.splitlines():
        if _BEGINS.match(line):
            if held:
                yield " ".join(held)
            held = [line]
        elif held and line.strip():
            held.append(line)
    if held:
        yield " ".join(held)


def job_record(line: str) -> JobRecord:
    """Read one record.

    :raises UnreadableError: it has not the form of one, or has it more than once.
    """
    match = re.match(r"JobId=([0-9]+) ", line)
    if match is not None and (line.count(" JobState=") > 1 or line.count(" UserId=") > 1):
        text = "its name or comment looks like a record of Slurm's"
        raise UnreadableError(f"job {match[1]}: {text}")
    spine = _SPINE.search(line)
    if match is None or spine is None:
        raise UnreadableError(f"not a job's record: {line[:60]!r}")
    head = line[: spine.start()]
    before, _, name = head.partition(" JobName=")
    typed = _TYPED.search(line, spine.end())
    behind = line[spine.start("rest") : typed.start() if typed else len(line)]
    first = behind.find(" MinCPUsNode=")
    held, asked = (behind[:first], behind[first:]) if first >= 0 else (behind, "")
    places = tuple(
        Place(nodes=nodes, cpus=cpus, memory_mb=int(memory), gres="" if gres == "(null)" else gres)
        for nodes, cpus, memory, gres in _PLACE.findall(held)
    )
    fields = pairs(before) | pairs(_PLACE.sub("", held) + asked)
    fields |= _asked(line[typed.start() :]) if typed else {}
    name, _, het = name.partition(" HetJobIdSet=")
    return JobRecord(
        number=int(match[1]),
        name=name,
        user=spine["user"],
        group=spine["group"],
        state=spine["state"],
        priority=int(spine["priority"]),
        nice=int(spine["nice"]),
        fields={key: value for key, value in fields.items() if known(value) is not None}
        | ({"HetJobIdSet": het} if het else {}),
        places=places,
    )


def _asked(text: str) -> dict[str, str]:
    """Return the counted resources at the end, behind what people typed: only words with keys follow, the last counts.

    A user who types such words makes no other job wait.
    """
    found: dict[str, str] = {}
    for word in reversed(text.rstrip(" ").split(" ")):
        field = _FIELD.fullmatch(word)
        if field is None:
            break
        if field[1] in _ASKED and field[2]:
            found.setdefault(field[1], field[2])
    return found
