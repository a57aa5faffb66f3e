"""Turn the PartitionName lines of a slurm.conf into partition tables.

Section numbers are those of slurm-preemption.md and slurm-gang-and-select.md, as named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from makeway.config import PartitionTable, parse_select_parameters
from makeway.errors import nearest
from makeway.model import Sharing
from makeway_slurm.accounts.tres import parse_weights
from makeway_slurm.check import of_partition, partition_select_is_ignored
from makeway_slurm.limits.access import LISTS
from makeway_slurm.readers.conf_parts import Record, Setting, shown
from makeway_slurm.readers.draft import Draft
from makeway_slurm.readers.nodes import Nodes
from makeway_slurm.readers.releases import NEWER_SELECT_WORDS
from makeway_slurm.readers.topologies import FILE as TOPOLOGIES
from makeway_slurm.readers.values import (
    Report,
    megabytes,
    parse_count,
    parse_mem_mb,
    parse_oversubscribe,
    parse_preempt_mode,
    parse_time,
    parse_yes_no,
)

T = TypeVar("T")

MAX_TIER = 65533
"""The largest PriorityTier."""

_STATES = {"UP": (True, True), "DOWN": (False, True), "DRAIN": (True, False), "INACTIVE": (False, False)}
"""Whether jobs may start in a partition of this state, and whether it takes new ones."""
_STATES |= {"DRAINED": _STATES["DRAIN"]}
_ENDLESS = ("unlimited", "infinite", "-1")
_UNITS = ("cr_cpu", "cr_core", "cr_socket")
_FULL_SOCKET = "cr_allocate_full_socket"
"""The default since 15.08; slurmctld still takes the word."""
_EXCLUSIVE = ("NO", "NODE", "USER", "TOPO")


def read_partitions(draft: Draft, nodes: Nodes, cluster_select: Sequence[str]) -> tuple[PartitionTable, ...]:
    """Translate all partition lines; `cluster_select` are the cluster's SelectTypeParameters."""
    tables: list[PartitionTable] = []
    seen: dict[str, Record] = {}
    for record in draft.conf.records("PartitionName"):
        first = seen.setdefault(record.name, record)
        if first is not record:
            where = f"{first.file}:{first.line}"
            draft.problems.append(record.problem(f"this partition is there already: {where}"))
            continue
        line = _Line(draft, record, f"partition[{len(tables)}]")
        draft.places[line.path] = record.where
        tables.append(line.table(nodes, cluster_select))
    return tuple(_one_default(draft, tables))


def _one_default(draft: Draft, tables: list[PartitionTable]) -> list[PartitionTable]:
    """Keep the last Default=YES only, as Slurm does."""
    marked = [table.name for table in tables if table.default]
    if len(marked) > 1:
        draft.warnings.append(f"Default=YES on {', '.join(marked)}: the last one counts, {marked[-1]!r}")
    return [attrs.evolve(t, default=t.default and t.name == marked[-1]) for t in tables]


@attrs.define
class _Line:
    """One PartitionName line."""

    draft: Draft
    record: Record
    path: str

    def table(self, nodes: Nodes, cluster_select: Sequence[str]) -> PartitionTable:
        """Translate all of it."""
        sharing, exclusive_user = self._sharing()
        tier, factor = self._ranks()
        max_time = self.value("MaxTime", parse_time, None, "max_time")
        up, accepts = self._state()
        return PartitionTable(
            name=self.record.name,
            nodes=self.value("Nodes", nodes.resolve, "", "nodes"),
            priority_tier=tier,
            priority_job_factor=factor,
            oversubscribe=sharing,
            exclusive_user=exclusive_user,
            preempt_mode=self._mode(),
            grace_time=float(self.value("GraceTime", parse_count, 0, "grace_time")),
            qos=self.value("QOS", _name, None, "qos"),
            default=self.value("Default", parse_yes_no, False, "default"),
            max_time=_seconds(max_time),
            default_time=self._default_time(max_time),
            min_nodes=self.value("MinNodes", parse_count, 0, "min_nodes"),
            max_nodes=self.value("MaxNodes", self._limit("MaxNodes"), None, "max_nodes"),
            **read_memory(self.draft, self.record.get, f"{self.path}."),
            max_cpus_per_node=self.value(
                "MaxCPUsPerNode", self._limit("MaxCPUsPerNode"), None, "max_cpus_per_node"
            ),
            select_parameters=self._select(cluster_select),
            lln=self.value("LLN", parse_yes_no, False, "lln"),
            up=up,
            accepts=accepts,
            attributes=self._attributes(),
        )

    def value(self, key: str, parse: Callable[[str], T], default: T, field: str) -> T:
        """Translate one setting of the line."""
        return self.draft.read(self.record.get(key), parse, default, f"{self.path}.{field}")

    def _limit(self, key: str) -> Callable[[str], int | None]:
        setting = self.record.get(key)
        return parse_limit if setting is None else limit_parser(self.draft.refuser(setting))

    def _mode(self) -> tuple[str, ...] | None:
        """Translate PreemptMode; GANG is dropped, as it is a cluster-wide option (6.3)."""
        setting = self.record.get("PreemptMode")
        words = self.draft.read(setting, mode_words, None, f"{self.path}.preempt_mode")
        if setting is None or words is None:
            return None
        if "cluster" in setting.value.lower().split(","):
            self.draft.warn(setting, "CLUSTER means OFF on a partition; leave PreemptMode out to inherit")
        if "gang" not in words:
            return words
        rest = tuple(word for word in words if word != "gang")
        left = "the rest counts" if rest else "nothing is left, which means OFF"
        self.draft.warn(setting, f"GANG is for the cluster only and is dropped; {left}")
        return rest or ("off",)

    def _ranks(self) -> tuple[int, int]:
        """Translate Priority, which sets both, PriorityTier and PriorityJobFactor (6.3)."""
        both = self.value("Priority", _parse_tier, 1, "priority_tier")
        tier = self.value("PriorityTier", _parse_tier, both, "priority_tier")
        factor = self.value("PriorityJobFactor", _parse_tier, both, "priority_job_factor")
        return tier, factor

    def _sharing(self) -> tuple[str, bool]:
        """Translate OverSubscribe (once Shared), ExclusiveUser and Exclusive of 26.05 (6.3)."""
        setting = self.record.get("OverSubscribe") or self.record.get("Shared")
        report = self.draft.reporter(setting) if setting else _ignore
        parse = _sharing_parser(report)
        sharing = self.draft.read(setting, parse, "NO", f"{self.path}.oversubscribe")
        user = self.value("ExclusiveUser", parse_yes_no, False, "exclusive_user")
        exclusive = self.record.get("Exclusive")
        word = self.draft.read(exclusive, _parse_exclusive, None, f"{self.path}.exclusive")
        if exclusive is None or word is None:
            return sharing, user
        if not self.draft.since("26.05"):
            self.draft.refuse(
                exclusive, f"Slurm {self.draft.release} does not know it (since 26.05); taken anyway"
            )
        if word == "TOPO":
            self.draft.warn(exclusive, "TOPO is taken as NODE; topology is not modelled")
        whole = word in ("NODE", "TOPO")
        return Sharing.EXCLUSIVE.value if whole else sharing, user or word == "USER"

    def _state(self) -> tuple[bool, bool]:
        """Translate State: may jobs start, and are new ones taken? Say so where a replay shows it."""
        setting = self.record.get("State")
        up, accepts = self.draft.read(setting, _parse_state, (True, True), f"{self.path}.up")
        if setting is not None and not accepts:
            what = f"partition {self.record.name} takes no new jobs, so all that a replay sends there are refused"
            self.draft.warn(setting, what)
        elif setting is not None and not up:
            self.draft.warn(setting, f"jobs are taken by partition {self.record.name}, but none starts there")
        return up, accepts

    def _default_time(self, max_time: int | None) -> float | None:
        """Translate DefaultTime; it cannot go beyond MaxTime."""
        setting = self.record.get("DefaultTime")
        time = self.draft.read(setting, parse_time, None, f"{self.path}.default_time")
        if setting is not None and time is not None and max_time is not None and time > max_time:
            self.draft.warn(
                setting, f"partition {self.record.name}: longer than MaxTime, which counts instead"
            )
            return float(max_time)
        return _seconds(time)

    def _select(self, cluster: Sequence[str]) -> tuple[str, ...]:
        """Translate SelectTypeParameters; drop what Slurm ignores. See 0.3 no. 7 on gang.

        slurmctld 22.05.8 takes the first word that a partition may have, and does not start if there is none.
        """
        setting = self.record.get("SelectTypeParameters")
        nothing: tuple[str, ...] = ()
        words = self.draft.read(setting, select_words, nothing, f"{self.path}.select_parameters")
        if setting is None or not words:
            return nothing
        own = [word for word in words if of_partition(word)]
        if own and len(words) > 1:
            self.draft.warn(setting, f"only {own[0]} counts, as a partition takes a single word")
        reason = partition_select_is_ignored(cluster, own[:1] or words)
        if reason is None:
            return (own[0],)
        tell = self.draft.reporter(setting) if own else self.draft.refuser(setting)
        tell(f"ignored: {reason}")
        return nothing

    def _attributes(self) -> dict[str, Any]:
        """Keep what the model has no field for but may be asked for."""
        found: dict[str, Any] = {}
        over = self.record.get("OverTimeLimit")
        if over is not None:
            found["over_time_limit"] = self.draft.read(over, _parse_over_time, 0.0)
        weights = self.record.get("TRESBillingWeights")
        if weights is not None:
            nothing: dict[str, float] = {}
            self.draft.read(weights, parse_weights, nothing)
            found["TRESBillingWeights"] = weights.value
        for key in LISTS:
            listed = self.record.get(key)
            if listed is not None and listed.value.lower() not in ("", "all"):
                found[key] = listed.value
        own = self._topology()
        if own is not None:
            found["topology"] = own
        return found

    def _topology(self) -> str | None:
        """Return the topology that it names and that is not the default; None: it names none."""
        setting = self.record.get("Topology")
        known = self.draft.topologies
        if setting is None or any(each.default and each.name == setting.value for each in known):
            return None
        if not known:
            text = f"there is no {TOPOLOGIES} beside the file, which would say what {setting.value} is"
            self.draft.warn(setting, text)
            return None
        return setting.value


def read_memory(draft: Draft, get: Callable[[str], Setting | None], prefix: str) -> Mapping[str, Any]:
    """Translate DefMemPer* and MaxMemPer* of the cluster or of a partition; 0 and UNLIMITED are none.

    Of one per CPU and one per node slurmctld takes the latter, whatever its value.
    """
    found: dict[str, int | None] = {}
    for word, stem in (("DefMemPer", "def_mem_per_"), ("MaxMemPer", "max_mem_per_")):
        per_cpu, per_node = get(f"{word}CPU"), get(f"{word}Node")
        for unit, setting in (("cpu", per_cpu), ("node", per_node)):
            parse = _memory_parser(draft.refuser(setting)) if setting is not None else parse_mem_mb
            found[f"{stem}{unit}"] = draft.read(setting, parse, None, f"{prefix}{stem}{unit}")
        if per_node is not None and per_cpu is not None:
            draft.warn(per_cpu, f"ignored, as {word}Node is given as well and excludes it")
            found[f"{stem}cpu"] = None
    return found


# ------------------------------------------------------------------------------------ values
def mode_words(text: str) -> tuple[str, ...]:
    """Return a PreemptMode as the config spells it: action first, then flags."""
    action, flags = parse_preempt_mode(text)
    head = (action,) if action is not None else ()
    return head + tuple(flag for flag in ("gang", "within", "priority") if flag in flags)


def select_words(text: str) -> tuple[str, ...]:
    """Return SelectTypeParameters in the manual's spelling."""
    return parse_select_parameters([word for word in text.split(",") if word])


def is_unit(word: str) -> bool:
    """Whether a word of SelectTypeParameters says what is handed out beside memory."""
    return word.lower().removesuffix("_memory") in _UNITS


def select_parser(draft: Draft, setting: Setting) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of SelectTypeParameters that leaves out what does nothing, and notes what 22.05.8 refuses."""

    def parse(text: str) -> tuple[str, ...]:
        words = select_words(",".join(word for word in text.split(",") if word.lower() != _FULL_SOCKET))
        newer = [word for word in words if word.lower() in NEWER_SELECT_WORDS]
        if newer and not draft.since("23.02"):
            draft.refuse(
                setting, f"Slurm {draft.release} does not know {', '.join(newer)} and does not start with it"
            )
        units = [word for word in words if is_unit(word) or word.lower() == "cr_memory"]
        if len(units) > 1:
            draft.refuser(setting)(f"{' and '.join(units)} exclude each other; {units[0]} counts here")
            return tuple(word for word in words if word not in units[1:])
        return words

    return parse


def parse_limit(text: str) -> int | None:
    """Return a count. None: UNLIMITED."""
    return None if text.lower() in _ENDLESS else parse_count(text)


def limit_parser(refuse: Report) -> Callable[[str], int | None]:
    """Return `parse_limit` for parameters of which slurmctld takes no negative number."""

    def parse(text: str) -> int | None:
        if text == "-1":
            refuse("got '-1'; taken as UNLIMITED")
        return parse_limit(text)

    return parse


def _parse_over_time(text: str) -> float:
    """Return the seconds of an OverTimeLimit, which is given in minutes; UNLIMITED is infinite."""
    minutes = parse_limit(text)
    return math.inf if minutes is None else minutes * 60.0


def _sharing_parser(report: Report) -> Callable[[str], str]:
    def parse(text: str) -> str:
        mode, count = parse_oversubscribe(text, report)
        return f"{mode}:{count}" if mode in ("YES", "FORCE") else mode

    return parse


def _ignore(_: str) -> None:
    """Drop a report about a setting that is not there."""


def _memory_parser(refuse: Report) -> Callable[[str], int | None]:
    def parse(text: str) -> int | None:
        if text == "-1":
            refuse("got '-1'; taken as UNLIMITED")
        return None if text.lower() in _ENDLESS else megabytes(text, refuse) or None

    return parse


def _parse_tier(text: str) -> int:
    return parse_count(text, MAX_TIER)


def _parse_state(text: str) -> tuple[bool, bool]:
    word = text.upper()
    if word not in _STATES:
        close = nearest(word, _STATES)
        raise ValueError(f"got {shown(text)}; allowed: {', '.join(_STATES)}{close}")
    return _STATES[word]


def _parse_exclusive(text: str) -> str:
    word = text.upper()
    if word not in _EXCLUSIVE:
        raise ValueError(f"got {shown(text)}; allowed: {', '.join(_EXCLUSIVE)}")
    return word


def _name(text: str) -> str | None:
    return text or None


def _seconds(value: int | None) -> float | None:
    return None if value is None else float(value)
