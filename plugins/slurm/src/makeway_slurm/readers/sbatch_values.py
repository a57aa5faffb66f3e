"""Read the values of single options of sbatch."""

from __future__ import annotations

import re
from pathlib import Path

from makeway.dependencies import ANY, SINGLE
from makeway.errors import nearest
from makeway.hostlist import expand_hostlist
from makeway.model import Exclusive, UserSignal
from makeway_slurm.readers.values import parse_gres, parse_licenses, parse_time
from makeway_slurm.topology.sets import SWITCHES, WAIT

_NODES = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_WAIT = re.compile(r"now(?:\+([0-9]{1,9})(seconds?|minutes?|hours?|days?|weeks?)?)?")
_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIGNAL = re.compile(r"(?:([RB]{1,2}):)?([A-Z0-9]+)(?:@([0-9]{1,5}))?", re.IGNORECASE)
_LAYOUT = re.compile(
    r"(\*|block|cyclic|fcyclic|arbitrary|plane(=[0-9]+)?|pack|nopack)"
    r"([:,](\*|block|cyclic|fcyclic|pack|nopack))*",
    re.IGNORECASE,
)
_AFTER = re.compile(r"(after(?:any|ok|notok|corr)?)((?::[0-9]+(?:\+[0-9]+)?)+)", re.IGNORECASE)


def read_nodes(text: str) -> tuple[int, int]:
    """Read ``4`` or ``2-4``; one number is both least and most."""
    match = _NODES.fullmatch(text)
    least, most = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= least <= most:
        raise ValueError(f"got {text!r}; expected a number of nodes, or least-most")
    return least, most


def read_switches(text: str) -> dict[str, float]:
    """Read ``n[@time]``: so many leaf switches at most, and how long to wait for that."""
    count, at, wait = text.partition("@")
    if not (count.isascii() and count.isdigit() and int(count[:9]) >= 1):
        raise ValueError(f"got {text!r}; expected a number of switches, or number@time")
    found = {SWITCHES: float(int(count[:9]))}
    seconds = parse_time(wait) if at else None
    return found if seconds is None else {**found, WAIT: float(seconds)}


def read_sockets(text: str) -> tuple[int | None, ...]:
    """Read ``sockets[:cores[:threads]]``; ``*`` is any."""
    parts = text.split(":")
    if len(parts) > 3 or not all(re.fullmatch(r"\*|[1-9][0-9]{0,8}", part) for part in parts):
        raise ValueError(f"got {text!r}; expected sockets[:cores[:threads]], numbers or *")
    return tuple(None if part == "*" else int(part) for part in parts)


def read_layout(text: str) -> str:
    if not _LAYOUT.fullmatch(text):
        allowed = "block, cyclic, fcyclic, plane=n, arbitrary, *, then :block, :cyclic, :fcyclic"
        raise ValueError(f"got {text!r}; allowed: {allowed}")
    return text.lower()


def read_exclusive(text: str) -> Exclusive:
    try:
        return Exclusive(text.lower())
    except ValueError:
        close = nearest(text, ("user", "mcs"))
        raise ValueError(f"got {text!r}; allowed: nothing, user, mcs{close}") from None


def read_node_file(text: str) -> tuple[str, ...]:
    try:
        return tuple(expand_hostlist(Path(text).read_text(encoding="utf-8")))
    except OSError as error:
        raise ValueError(f"cannot read {text!r}: {error.strerror}") from None


def read_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not all(names):
        raise ValueError(f"got {text!r}; expected names separated by commas")
    return names


def read_gpus(text: str) -> dict[str, int]:
    """Read ``4``, ``a100:2`` or a list of such."""
    return parse_gres(",".join(f"gpu:{part}" for part in text.split(",")))


def read_licenses(text: str) -> tuple[dict[str, int], bool]:
    """Read ``a:1,b:2``, or ``a:1|b:1`` of which one is enough."""
    either = "|" in text
    if either and "," in text:
        raise ValueError(f"got {text!r}; expected ',' or '|' between licences, not both")
    return parse_licenses(text.replace("|", ",")), either


def read_limit(text: str) -> int | None:
    """Read a time limit, which Slurm rounds up to minutes (recorded: resv_maintenance_of_all); None: unlimited."""
    seconds = parse_time(text)
    return -(-seconds // 60) * 60 if seconds else None


def read_begin(text: str) -> int:
    """Read ``now+5minutes`` as seconds from the submission."""
    match = _WAIT.fullmatch(text.replace(" ", ""))
    if match is None:
        forms = "now and now+N[seconds, minutes, hours, days, weeks]"
        raise ValueError(f"got {text!r}; only {forms} are modelled")
    return int(match[1] or 0) * _UNIT[(match[2] or "s")[0]]


def read_signal(text: str) -> UserSignal:
    match = _SIGNAL.fullmatch(text)
    if match is None:
        raise ValueError(f"got {text!r}; expected [R|B:]signal[@seconds]")
    where = (match[1] or "").upper()
    return UserSignal(
        name=match[2].upper().removeprefix("SIG"),
        lead=float(match[3] or 60),
        batch_only="B" in where,
        borrows_reservation="R" in where,
    )


def read_dependency(text: str) -> tuple[str, ...]:
    """Read ``afterany:1:2,afterok:3`` as a condition on one job each (`makeway.dependencies`)."""
    found: list[str] = []
    for part in text.split(","):
        match = _AFTER.fullmatch(part)
        if match is None and part.lower() != SINGLE:
            forms = "after, afterany, afterok, afternotok and aftercorr:id[:id...], and singleton"
            raise ValueError(f"got {part!r}; only {forms} are modelled")
        kind = match[1].lower() if match is not None else ""
        jobs = match[2].split(":")[1:] if match is not None else [SINGLE]
        found += jobs if kind in ("", ANY) else (f"{kind}:{job}" for job in jobs)
    return tuple(found)
