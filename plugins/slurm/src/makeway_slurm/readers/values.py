"""Translate single values of slurm.conf: times, sizes, modes, counts and lists of options.

Each function raises ValueError with a message that makes sense after ``file:line Key:``.
Where Slurm reports a value and carries on with another, so do we: `report` gets one sentence on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from makeway.errors import nearest
from makeway_slurm.readers.conf_parts import shown

Report = Callable[[str], object]
"""Takes one sentence about a value that Slurm accepts, but does not take as it is written."""

OverSubscribeMode = Literal["NO", "EXCLUSIVE", "YES", "FORCE"]
PreemptAction = Literal["off", "suspend", "requeue", "cancel"]
PreemptFlag = Literal["gang", "within", "priority"]
OptionValues = dict[str, bool | int]
"""By option: True for one that is just named, its number for one that has a value."""

_ENDLESS = frozenset(("infinite", "unlimited", "-1"))
_YES = frozenset(("yes", "true", "up", "1"))
_NO = frozenset(("no", "false", "down", "0"))
_WHOLE = re.compile(r"[0-9]{1,18}")
_SIGNED = re.compile(r"[+-]?[0-9]{1,18}")
_TIME = re.compile(
    r"(?P<m>[0-9]{1,10})|(?P<min>[0-9]{1,10}):(?P<sec>[0-9]{1,10})"
    r"|(?:(?P<days>[0-9]{1,10})-)?(?P<h>[0-9]{1,10}):(?P<hm>[0-9]{1,10}):(?P<hms>[0-9]{1,10})"
    r"|(?P<d>[0-9]{1,10})-(?P<dh>[0-9]{1,10})(?::(?P<dhm>[0-9]{1,10}))?"
)
_SIZE = re.compile(r"([0-9]{1,15})([KMGTP]?)B?", re.IGNORECASE)
_KIB = {"K": 1, "": 2**10, "M": 2**10, "G": 2**20, "T": 2**30, "P": 2**40}
_COUNT = re.compile(r"([0-9]{1,15})([KMGTP]?)", re.IGNORECASE)
_FACTOR = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SHARE = re.compile(r"(YES|FORCE)(?::([+-]?[0-9]{1,9}))?", re.IGNORECASE)
_SHARE_WORDS = ("NO", "EXCLUSIVE", "YES", "FORCE")
_LICENSE = re.compile(r"([^\s:,;|()=@]+(?:@[^\s:,;|()=@]+)?)(?::([0-9]{1,9}))?")
_PLACES = re.compile(r"\([^()]*\)")
_GRES_NAME = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*")


def _ignore(_: str) -> None:
    """Drop a report that was not asked for."""


# ------------------------------------------------------------------------------- plain values
def parse_time(text: str) -> int | None:
    """Return seconds; a number alone is minutes (1.6). None: endless (INFINITE, UNLIMITED, -1)."""
    if text.lower() in _ENDLESS:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        allowed = "minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s or INFINITE"
        raise ValueError(f"got {shown(text)}; expected a time: {allowed}")
    field = {name: int(value or 0) for name, value in match.groupdict().items()}
    days = field["days"] + field["d"]
    hours = field["h"] + field["dh"]
    minutes = field["m"] + field["min"] + field["hm"] + field["dhm"]
    seconds = field["sec"] + field["hms"]
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def parse_yes_no(text: str) -> bool:
    """Return whether `text` is YES (or TRUE, UP, 1) or NO (or FALSE, DOWN, 0)."""
    word = text.lower()
    if word in _YES | _NO:
        return word in _YES
    raise ValueError(f"got {shown(text)}; allowed: YES, NO, 1, 0")


def parse_count(text: str, most: int | None = None) -> int:
    """Return a whole number from 0 to `most`. None: any."""
    if not _WHOLE.fullmatch(text) or (most is not None and int(text) > most):
        limits = f" from 0 to {most}" if most is not None else ", 0 or more"
        raise ValueError(f"got {shown(text)}; expected a whole number{limits}")
    return int(text)


def parse_mem_mb(text: str) -> int:
    """Return megabytes, which a number alone is; K (rounded up), M, G, T or P may follow."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"got {shown(text)}; expected megabytes, or a number with K, M, G or T")
    return -(-int(match[1]) * _KIB[match[2].upper()] // 2**10)


def megabytes(text: str, refuse: Report = _ignore) -> int:
    """Return megabytes as `parse_mem_mb` does; slurmctld takes a number alone."""
    count = parse_mem_mb(text)
    if not _WHOLE.fullmatch(text):
        refuse(f"got {shown(text)}; a number of megabytes is wanted, taken as {count}")
    return count


def parse_seconds(text: str) -> int:
    """Return a whole number of seconds; INFINITE is 65535, the most that Slurm keeps."""
    return 65535 if text.lower() in _ENDLESS - {"-1"} else parse_count(text)


def parse_oversubscribe(text: str, report: Report = _ignore) -> tuple[OverSubscribeMode, int]:
    """Return the mode, and how many jobs may share (6.3).

    NO is 1, EXCLUSIVE is 0, YES and FORCE alone are 4. A number too low to share (YES:1, FORCE:0)
    is reported and taken as NO, as Slurm does; FORCE:1 stays.
    """
    word = text.upper()
    if word == "NO":
        return "NO", 1
    if word == "EXCLUSIVE":
        return "EXCLUSIVE", 0
    match = _SHARE.fullmatch(text)
    if match is None:
        allowed = "NO, EXCLUSIVE, YES, YES:n, FORCE, FORCE:n"
        raise ValueError(f"got {shown(text)}; allowed: {allowed}{nearest(word, _SHARE_WORDS)}")
    mode: OverSubscribeMode = "FORCE" if match[1].upper() == "FORCE" else "YES"
    count = int(match[2] or 4)
    least = 1 if mode == "FORCE" else 2
    if count < least:
        report(f"{shown(text)} is taken as NO; the least number for {mode} is {least}")
        return "NO", 1
    return mode, count


# ------------------------------------------------------------------------------- preempt mode
_ACTIONS: Mapping[str, PreemptAction] = {
    "off": "off",
    "cluster": "off",
    "suspend": "suspend",
    "on": "suspend",
    "requeue": "requeue",
    "cancel": "cancel",
}
_FLAGS: Mapping[str, PreemptFlag] = {"gang": "gang", "within": "within", "priority": "priority"}


def parse_preempt_mode(text: str) -> tuple[PreemptAction | None, frozenset[PreemptFlag]]:
    """Return the action and the flags of a PreemptMode (6.1). None: flags only.

    OFF and CLUSTER are one value to Slurm, and come back as off.
    """
    actions: list[PreemptAction] = []
    flags: set[PreemptFlag] = set()
    for word in text.split(","):
        token = word.lower()
        if token in _ACTIONS:
            actions.append(_ACTIONS[token])
        elif token in _FLAGS:
            flags.add(_FLAGS[token])
        else:
            raise ValueError(_unknown_mode(word, text))
    if len(actions) > 1:
        raise ValueError(f"got {shown(text)}; one action at most, not {', '.join(actions)}")
    for other in ("within", "priority"):
        if {"gang", other} <= flags:
            raise ValueError(f"got {shown(text)}; GANG cannot stand with {other.upper()}")
    return (actions[0] if actions else None), frozenset(flags)


def _unknown_mode(word: str, text: str) -> str:
    """Say what is wrong with one word of a PreemptMode."""
    known = [*_ACTIONS, *_FLAGS]
    if word.lower() == "checkpoint":
        return f"got {shown(text)}; Slurm 20.02 dropped CHECKPOINT; use REQUEUE or CANCEL"
    if word != word.strip() and word.strip().lower() in known:
        return f"got {shown(text)}; Slurm allows no blanks between the words"
    allowed = ", ".join(each.upper() for each in known)
    return f"got {shown(word)}; allowed: {allowed}{nearest(word.upper(), map(str.upper, known))}"


# ------------------------------------------------------------------------------- licences and gres
def parse_licenses(text: str) -> dict[str, int]:
    """Return the counts of ``a:2,b;c@server:3``; 1 where none is given, repeats add up."""
    counts: dict[str, int] = {}
    for word in _words(text.replace(";", ",")):
        match = _LICENSE.fullmatch(word)
        if match is None:
            raise ValueError(f"got {shown(word)}; expected name, name:count or name@server:count")
        counts[match[1]] = counts.get(match[1], 0) + int(match[2] or 1)
    return counts


def parse_gres(text: str) -> dict[str, int]:
    """Return the counts of ``gpu:4,gpu:tesla:2,fast:1(S:0)`` by name and, if typed, by name:type.

    A name counts all its types: this is ``{"gpu": 6, "gpu:tesla": 2, "fast": 1}``. Places in
    parentheses and the flag no_consume are dropped; K, M, G multiply by powers of 1024.
    """
    counts: dict[str, int] = {}
    for word in _words(_PLACES.sub("", text)):
        name, kind, count = _parse_one_gres(word)
        for key in (name, f"{name}:{kind}") if kind else (name,):
            counts[key] = counts.get(key, 0) + count
    return counts


def _parse_one_gres(word: str) -> tuple[str, str, int]:
    """Return name, type (empty: none) and count of one generic resource."""
    name, *rest = word.split(":")
    rest = [part for part in rest if part.lower() != "no_consume"]
    match = _COUNT.fullmatch(rest[-1]) if rest else None
    types = rest[:-1] if match else rest
    if len(types) > 1 or not all(_GRES_NAME.fullmatch(part) for part in (name, *types)):
        raise ValueError(f"got {shown(word)}; expected name, name:count or name:type:count")
    count = int(match[1]) * _FACTOR[match[2].upper()] if match else 1
    return name, "".join(types), count


# ------------------------------------------------------------------------------- option lists
_PREEMPT_FLAGS = frozenset(("reclaim_licenses", "send_user_signal", "strict_order", "youngest_first"))
_PREEMPT_NUMBERS = frozenset(("min_exempt_priority", "reorder_count", "suspend_grace_time"))
_SCHEDULER_FLAGS = frozenset(
    (
        "assoc_limit_stop",
        "bf_busy_nodes",
        "bf_continue",
        "bf_licenses",
        "bf_one_resv_per_job",
        "bf_running_job_reserve",
        "defer",
        "defer_batch",
        "pack_serial_at_end",
        "preempt_send_user_signal",
        "preempt_strict_order",
        "preempt_youngest_first",
    )
)
_SCHEDULER_NUMBERS = frozenset(
    (
        "batch_sched_delay",
        "bf_interval",
        "bf_job_part_count_reserve",
        "bf_max_job_array_resv",
        "bf_max_job_part",
        "bf_max_job_start",
        "bf_max_job_test",
        "bf_max_job_user",
        "bf_max_time",
        "bf_min_age_reserve",
        "bf_min_prio_reserve",
        "bf_resolution",
        "bf_window",
        "bf_window_linear",
        "bf_yield_interval",
        "bf_yield_sleep",
        "default_queue_depth",
        "max_sched_time",
        "max_switch_wait",
        "partition_job_depth",
        "preempt_reorder_count",
        "requeue_delay",
        "sched_interval",
        "sched_max_job_start",
        "sched_min_interval",
    )
)


def parse_preempt_parameters(text: str, report: Report = _ignore) -> tuple[OptionValues, list[str]]:
    """Return the PreemptParameters that we know, and the words that we do not (6.5).

    Slurm finds all but min_exempt_priority by searching for their name inside the text, so a longer
    word that contains one counts too; it is reported.
    """
    known: OptionValues = {}
    unknown: list[str] = []
    for word in _words(text):
        option = _find_preempt_option(word, report)
        if option is None:
            unknown.append(word)
        elif option in known:
            report(f"{shown(word)}: {option} is given twice; the first counts")
        else:
            known[option] = _preempt_option(option, word, report)
    return known, unknown


def parse_scheduler_parameters(text: str, report: Report = _ignore) -> tuple[OptionValues, list[str]]:
    """Return the SchedulerParameters that we know, in Slurm's units, and the words that we do not.

    The older spellings of preempt options (``preempt_youngest_first``) are among them, as written.
    """
    known: OptionValues = {}
    unknown: list[str] = []
    for word in _words(text):
        name, equals, value = word.partition("=")
        option = name.strip().lower()
        if option in known:
            report(f"{shown(word)}: {option} is given twice; the first counts")
        elif option in _SCHEDULER_FLAGS:
            known[option] = _flag(word, equals, report)
        elif option not in _SCHEDULER_NUMBERS:
            unknown.append(word)
        elif option == "preempt_reorder_count":
            known[option] = _reorder_count(value, report)
        else:
            known[option] = _leading_number(option, value.strip(), report)
    return known, unknown


def _find_preempt_option(word: str, report: Report) -> str | None:
    """Return the option that Slurm finds in one word. None: it finds none."""
    name = word.partition("=")[0].strip().lower()
    if name in _PREEMPT_FLAGS or name in _PREEMPT_NUMBERS:
        return name
    lower = word.lower()
    searched = [*sorted(_PREEMPT_FLAGS), "reorder_count=", "suspend_grace_time="]
    option = next((each.rstrip("=") for each in searched if each in lower), None)
    if option is not None:
        report(f"{shown(word)} counts as {option}, whose name it contains")
    return option


def _preempt_option(option: str, word: str, report: Report) -> bool | int:
    """Return the value of one option of PreemptParameters."""
    _, equals, value = word.partition("=")
    value = value.strip()
    if option in _PREEMPT_FLAGS:
        return _flag(word, equals, report)
    if option == "reorder_count":
        return _reorder_count(value, report)
    if option == "min_exempt_priority":
        return _number(option, value, _WHOLE)
    if not _WHOLE.fullmatch(value):
        report(f"{shown(word)}: taken as 2 seconds, as {shown(value)} is no number")
        return 2
    return int(value)


def _flag(word: str, equals: str, report: Report) -> Literal[True]:
    """Switch an option on; Slurm does so whatever follows its name."""
    if equals:
        report(f"{shown(word)}: switched on by its name; what follows '=' is not read")
    return True


def _reorder_count(value: str, report: Report) -> int:
    """Read reorder_count as C reads a number: text is 0; Slurm makes 1 of a negative one."""
    leading = _SIGNED.match(value)
    count = int(leading[0]) if leading else 0
    count = 1 if count < 0 else count
    if str(count) != value:
        report(f"reorder_count {shown(value)} is taken as {count}")
    return count


def _leading_number(option: str, value: str, report: Report) -> int:
    """Read a number as C does: text is 0, and what follows a number is not read."""
    leading = _SIGNED.match(value)
    count = int(leading[0]) if leading else 0
    if not leading or leading[0] != value:
        report(f"{option} {shown(value)} is taken as {count}")
    return count


def _number(option: str, value: str, allowed: re.Pattern[str] = _SIGNED) -> int:
    """Return a whole number; an error names the option."""
    if not allowed.fullmatch(value):
        raise ValueError(f"{option}: got {shown(value)}; expected a whole number")
    return int(value)


def _words(text: str) -> list[str]:
    """Split at commas; leave out empty words and the blanks around the others."""
    return [word for word in (each.strip() for each in text.split(",")) if word]
