"""Say which settings of a slurm.conf a search may change, and write them into its text.

Only what decides which job makes way, when and how; never which nodes there are, or who may use them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from makeway.foreign import Knob, knob
from makeway_slurm.readers.conf_parts import RECORD_KINDS, Record, SlurmConf
from makeway_slurm.readers.grammar import read_conf

_EXEMPT = ("00:10:00", "00:30:00", "01:00:00", "04:00:00")
_GRACE = ("60", "300", "900")
_SLICES = ("10", "60", "300")
_SHARED = ("NO", "FORCE:1", "FORCE:2")
_WORDS = (("youngest_first", ("", "yes")), ("strict_order", ("", "yes")), ("reorder_count", ("", "4", "16")))
_LEVELS = 4
_TIER = "1"
_MOST_TIERS = 4
_VALUE = r"""=[ \t]*(?:"[^"]*"|[^ \t#\n]*)"""
_RELATED = re.compile(r"[ \t]*(?:Preempt\w*|JobRequeue|SchedulerType)[ \t]*=", re.IGNORECASE)


def knobs(path: Path) -> Sequence[Knob]:
    """Return what may be changed in a slurm.conf and in the files that it includes.

    :raises ConfigError: it cannot be read.
    """
    conf = read_conf(path)
    return [each for each in _knobs(conf, path) if not each.file.startswith("..")]


def _knobs(conf: SlurmConf, path: Path) -> Iterator[Knob]:
    set_now = conf.parameters()

    def parameter(key: str, values: Sequence[str], default: str = "", *, always: bool = False) -> Knob:
        at = set_now.get(key.lower())
        file, now = (path, "") if at is None else (Path(at.file), at.value)
        place = _beside(path, file)
        return knob(key, place, now, values, with_parameter, default=default, unset=not always, key=key)

    kind = set_now["preempttype"].value.lower() if "preempttype" in set_now else "preempt/none"
    if kind == "preempt/none":
        return
    mode = set_now["preemptmode"].value.upper() if "preemptmode" in set_now else "OFF"
    gang = "GANG" in mode
    yield parameter("PreemptMode", ("REQUEUE", "CANCEL", "SUSPEND,GANG"), always=True)
    yield parameter("PreemptExemptTime", _EXEMPT)
    yield parameter("JobRequeue", ("0", "1"), "1", always=True)
    if gang:
        yield parameter("SchedulerTimeSlice", _SLICES, "30", always=True)
    yield from _words(conf, path, "PreemptParameters", _WORDS)
    priorities = ("", *levels(_weights(conf)))
    if len(priorities) > 1:
        exempt = (("min_exempt_priority", priorities),)
        yield from _words(conf, path, "PreemptParameters", exempt)
        if "schedulertype" not in set_now or set_now["schedulertype"].value.lower() == "sched/backfill":
            yield from _words(conf, path, "SchedulerParameters", (("bf_min_prio_reserve", priorities),))
    partitions = conf.records("PartitionName")
    tiers = sorted({_tier(each) for each in partitions}, key=int)
    for each in partitions:
        below = _tier(each) != tiers[-1] or kind != "preempt/partition_prio"
        if below:
            modes = ("OFF", "REQUEUE", "CANCEL", *(("SUSPEND",) if gang else ()))
            yield _of(each, path, "PreemptMode", modes, mode.replace("GANG", "").strip(","))
            yield _of(each, path, "GraceTime", _GRACE, "0")
        if gang:
            yield _of(each, path, "OverSubscribe", _SHARED)
        if 1 < len(tiers) <= _MOST_TIERS:
            yield _of(each, path, "PriorityTier", tiers, _TIER)


def _weights(conf: SlurmConf) -> list[int]:
    """Return the weights by which priorities come about; none: they count down."""
    said = conf.parameters()
    if "prioritytype" in said and said["prioritytype"].value.lower() != "priority/multifactor":
        return []
    texts = [each.value for key, each in said.items() if key.startswith("priorityweight")]
    return [int(each) for each in texts if each.isdigit()]


def levels(weights: Iterable[int]) -> tuple[str, ...]:
    """Return priorities that part jobs: quarters of the most that a job can have, from the bottom."""
    most = sum(weights)
    return tuple(str(most * at // _LEVELS) for at in range(1, _LEVELS)) if most >= _LEVELS else ()


def _words(
    conf: SlurmConf, path: Path, key: str, words: Sequence[tuple[str, Sequence[str]]]
) -> Iterator[Knob]:
    """Yield each of some words of a parameter as a setting of its own."""
    setting = conf.parameters().get(key.lower())
    given = {} if setting is None else _words_in(setting.value)
    file = _beside(path, path if setting is None else Path(setting.file))
    for word, values in words:
        now = (given[word] or "yes") if word in given else ""
        yield knob(f"{key}={word}", file, now, values, _with_word, key=key, word=word)


def _words_in(value: str) -> dict[str, str]:
    pairs = (word.strip().partition("=") for word in value.split(",") if word.strip())
    return {name.lower(): text for name, _, text in pairs}


def _with_word(text: str, value: str, key: str, word: str) -> str:
    now = re.findall(rf"^[ \t]*{key}[ \t]*{_VALUE}", text, re.IGNORECASE | re.MULTILINE)
    listed = now[-1].partition("=")[2].strip().strip('"') if now else ""
    kept = [each.strip() for each in listed.split(",") if each.strip()]
    kept = [each for each in kept if each.partition("=")[0].lower() != word]
    if value:
        kept.append(word if value == "yes" else f"{word}={value}")
    return with_parameter(text, ",".join(kept), key)


def _of(record: Record, path: Path, key: str, values: Sequence[str], default: str = "") -> Knob:
    """Return a setting of one partition."""
    said = next((each for each in record.settings if each.canonical == key.lower()), None)
    now = said.value if said is not None and not said.inherited else ""
    in_force = said.value if said is not None else default
    name, file = f"PartitionName={record.name} {key}", _beside(path, Path(record.file))
    return knob(name, file, now, values, with_key, default=in_force, partition=record.name, key=key)


def _tier(record: Record) -> str:
    said = {each.canonical: each.value for each in record.settings}
    tier = said.get("prioritytier", said.get("priority", _TIER))
    return tier if tier.isdigit() else _TIER


def _beside(path: Path, file: Path) -> str:
    return os.path.relpath(file, path.parent)


# ------------------------------------------------------------------------------------- writing
def with_parameter(text: str, value: str, key: str) -> str:
    """Return a slurm.conf with a parameter in it; an empty value takes it out."""
    lines = text.split("\n")
    pattern = re.compile(rf"(^|[ \t])({re.escape(key)}[ \t]*){_VALUE}", re.IGNORECASE)
    found = [at for at, line in enumerate(lines) if not _is_record(line) and pattern.search(_bare(line))]
    if found:
        at = found[-1]
        if not value and pattern.sub("", _bare(lines[at])).strip() == "":
            del lines[at]
        else:
            lines[at] = pattern.sub(
                lambda match: f"{match[1]}{match[2]}={value}" if value else "", lines[at], count=1
            )
        return "\n".join(lines)
    if not value:
        return text
    lines.insert(_place(lines), f"{key}={value}")
    return "\n".join(lines)


def _place(lines: Sequence[str]) -> int:
    """Return where a new parameter goes: below those of its kind, else before the first record."""
    related = [at for at, line in enumerate(lines) if _RELATED.match(line)]
    if related:
        at = related[-1]
        while lines[at].rstrip().endswith("\\") and at + 1 < len(lines):
            at += 1
        return at + 1
    return next((at for at, line in enumerate(lines) if _is_record(line)), len(lines) - 1)


def with_key(text: str, value: str, partition: str, key: str) -> str:
    """Return a slurm.conf with a key on the line of a partition; an empty value takes it out."""
    lines = text.split("\n")
    head = re.compile(
        rf'[ \t]*PartitionName[ \t]*=[ \t]*"?{re.escape(partition)}"?(?=[ \t\\#]|$)', re.IGNORECASE
    )
    for first, line in enumerate(lines):
        if head.match(line) is None:
            continue
        last = first
        while lines[last].rstrip().endswith("\\") and last + 1 < len(lines):
            last += 1
        pattern = re.compile(rf"([ \t])({re.escape(key)}[ \t]*){_VALUE}", re.IGNORECASE)
        for at in range(first, last + 1):
            if pattern.search(_bare(lines[at])):
                text_of = f"\\g<1>\\g<2>={value}" if value else ""
                lines[at] = pattern.sub(text_of, lines[at], count=1)
                return "\n".join(lines)
        if value:
            body = _bare(lines[last]).rstrip()
            lines[last] = f"{body} {key}={value}{lines[last][len(body) :]}"
        return "\n".join(lines)
    return text


def _is_record(line: str) -> bool:
    return line.partition("=")[0].strip().lower() in RECORD_KINDS


def _bare(line: str) -> str:
    """Return a line without its comment."""
    return line.partition("#")[0]
