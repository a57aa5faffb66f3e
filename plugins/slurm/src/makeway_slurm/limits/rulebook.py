"""List the limits that hold for a kind of job, the hidden ones left out (slurm-priority-and-limits 6.1, 6.2)."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from makeway.model import Qos
from makeway_slurm.accounts.limits import Limits, Tres
from makeway_slurm.accounts.tree import Association, Tree
from makeway_slurm.limits.counts import Key, Places


class Kind(enum.Enum):
    """What a limit is about."""

    JOBS = "jobs"
    """Running jobs."""
    USED_WALL = "used wall"
    """Minutes of wall time used up."""
    WALL = "wall"
    """Minutes of one job."""
    USED_MINUTES = "used minutes"
    """TRES-minutes used up."""
    TRES = "tres"
    """What running jobs hold together."""
    RUN_MINUTES = "run minutes"
    """TRES-minutes that running jobs may still use."""
    JOB_MINUTES = "job minutes"
    """TRES-minutes of one job."""
    JOB_TRES = "job tres"
    NODE_TRES = "node tres"
    LEAST_TRES = "least tres"
    LEAST_FACTOR = "least factor"
    """The fair-share factor of its user."""
    PRESENT = "present"
    """Jobs that were submitted and have not ended."""


class Rule(NamedTuple):
    """One limit that holds for a job."""

    kind: Kind
    key: str
    """Whose count: assoc, qos, pu, pa; empty: the job alone."""
    whose: int | str
    """Index of the association, or name of the QOS."""
    name: str
    """The TRES; empty: none."""
    most: int
    reason: str
    least: float = 0.0
    """The least fair-share factor, of `Kind.LEAST_FACTOR`."""

    @property
    def qos_of_all(self) -> str:
        """The name of the QOS whose jobs it counts together; empty: it counts other jobs, or one alone."""
        return self.whose if self.key == "qos" and isinstance(self.whose, str) else ""

    def count_key(self, user: str, account: str) -> Key:
        """Return the key of the count that it is about."""
        if self.key == "pu":
            return ("pu", self.whose, user)
        if self.key == "pa":
            return ("pa", self.whose, account)
        return (self.key, self.whose)


class Rules(NamedTuple):
    """The limits of a kind of job."""

    before: tuple[Rule, ...]
    """Checked before nodes are chosen (stage A)."""
    after: tuple[Rule, ...]
    """Checked with the counts of the job (stage B)."""
    door: tuple[Rule, ...]
    """Checked at its submission."""

    @property
    def any(self) -> bool:
        """Whether anything is limited."""
        return bool(self.before or self.after or self.door)


_WORD = {"cpu": "Cpu", "mem": "Mem", "node": "Node", "billing": "Billing"}
_LONG = {"cpu": "CPU", "mem": "Mem", "node": "Node", "billing": "Billing"}


def _word(name: str, words: Mapping[str, str] = _WORD) -> str:
    if name.startswith("license/"):
        return "License"
    return words.get(name, "GRES")


def _grp(name: str) -> str:
    word = _word(name)
    return f"Grp{word}" if word in ("GRES", "Billing", "License") else f"Grp{word}Limit"


def _grp_minutes(name: str) -> str:
    return "GrpCPUMinutesLimit" if name == "cpu" else f"Grp{_word(name, _LONG)}Minutes"


def _grp_run_minutes(name: str) -> str:
    return "GrpCPURunMinutesLimit" if name == "cpu" else f"Grp{_word(name, _LONG)}RunMinutes"


def _max(name: str, what: str) -> str:
    """Return the end of a reason: ``MaxCpuPerJobLimit``, ``MaxMemoryPerJob``."""
    if name == "cpu":
        return f"MaxCpu{what}" + ("" if what in ("PerNode", "PerAccount") else "Limit")
    word = "Memory" if name == "mem" else _word(name)
    limit = "Limit" if name == "node" and what in ("PerJob", "PerUser") else ""
    return f"Max{word}{what}{limit}"


class RuleBook:
    """The limits of one cluster, by association and QOS."""

    def __init__(self, tree: Tree | None, qos: Mapping[str, Qos], limits: Mapping[str, Limits]) -> None:
        self._tree = tree
        self._qos = qos
        self._limits = limits
        self._found: dict[tuple[int, tuple[str, ...]], Rules] = {}

    def of(self, places: Places) -> Rules:
        """Return the limits that hold for jobs that count there."""
        key = (places.chain[0] if places.chain else -1, places.qos)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._made(places)
        return found

    def _made(self, places: Places) -> Rules:
        before: list[Rule] = []
        after: list[Rule] = []
        door: list[Rule] = []
        hidden: set[str] = set()
        for name in places.qos:
            limits = self._limits.get(name)
            if limits is None:
                continue
            rules = [*_of_qos(name, limits), *_threshold(self._qos[name])]
            for kind_name, stage, rule in rules:
                if kind_name not in hidden:
                    (before, after, door)[stage].append(rule)
            hidden |= {kind_name for kind_name, _, _ in rules}
        if hidden & {"MaxJobsPU", "MaxJobsPA"}:
            hidden.add("MaxJobs")
        if hidden & {"MaxSubmitPU", "MaxSubmitPA"}:
            hidden.add("MaxSubmit")
        factor = self._factor(places.qos)
        chain = [self._tree.nodes[index] for index in places.chain] if self._tree is not None else []
        for at, node in enumerate(chain):
            for kind_name, stage, rule in _of_association(node, own=at == 0, factor=factor):
                if kind_name not in hidden:
                    (before, after, door)[stage].append(rule)
        return Rules(tuple(before), tuple(after), tuple(door))

    def _factor(self, names: Sequence[str]) -> float:
        """Return the LimitFactor of the first QOS that has one (6.1 no. 7)."""
        for name in names:
            value = self._qos[name].attributes.get("LimitFactor") if name in self._qos else None
            if value is None and name in self._qos:
                value = self._qos[name].attributes.get("limitfactor")
            if value not in (None, ""):
                return float(str(value))
        return 1.0


_USAGE_THRESHOLD = ("usagethreshold", "usagethres")


def _threshold(qos: Qos) -> _Listed:
    """Yield the fair share that a job needs, where the QOS enforces its UsageThreshold (6.3 no. 4)."""
    value = next((each for key, each in qos.attributes.items() if key.lower() in _USAGE_THRESHOLD), None)
    if "EnforceUsageThreshold" in qos.flags and value not in (None, ""):
        least = float(str(value))
        yield "UsageThreshold", 0, Rule(Kind.LEAST_FACTOR, "", qos.name, "", 0, "QOSUsageThreshold", least)


_Listed = Iterator[tuple[str, int, Rule]]
"""What hides it, its stage, and the limit."""


def _of_qos(qos: str, limits: Limits) -> _Listed:
    def one(hides: str, stage: int, kind: Kind, key: str, most: int | None, reason: str) -> _Listed:
        if most is not None:
            yield hides, stage, Rule(kind, key, qos, "", most, reason)

    def each(hides: str, kind: Kind, key: str, counts: Tres, reason: str, end: str = "") -> _Listed:
        for name, most in counts.items():
            told = {"grp": _grp, "mins": _grp_minutes, "run": _grp_run_minutes}.get(reason)
            text = f"QOS{told(name)}" if told is not None else reason.format(_max(name, end))
            yield f"{hides}[{name}]", 1, Rule(kind, key, qos, name, most, text)

    yield from one("GrpJobs", 0, Kind.JOBS, "qos", limits.grp_jobs, "QOSGrpJobsLimit")
    yield from one("GrpWall", 0, Kind.USED_WALL, "qos", limits.grp_wall, "QOSGrpWallLimit")
    yield from one("MaxJobsPA", 0, Kind.JOBS, "pa", limits.max_jobs_pa, "MaxJobsPerAccount")
    yield from one("MaxJobsPU", 0, Kind.JOBS, "pu", limits.max_jobs_pu, "QOSMaxJobsPerUserLimit")
    yield from one("MaxWall", 0, Kind.WALL, "", limits.max_wall, "QOSMaxWallDurationPerJobLimit")
    yield from each("GrpTRESMins", Kind.USED_MINUTES, "qos", limits.grp_tres_mins, "mins")
    yield from each("GrpTRES", Kind.TRES, "qos", limits.grp_tres, "grp")
    yield from each("GrpTRESRunMins", Kind.RUN_MINUTES, "qos", limits.grp_tres_run_mins, "run")
    for key, counts, text in (
        ("pa", limits.max_tres_run_mins_pa, "MaxTRESRunMinsPA"),
        ("pu", limits.max_tres_run_mins_pu, "MaxTRESRunMinsPU"),
    ):
        what = "PerAccount" if key == "pa" else "PerUser"
        for name, most in counts.items():
            reason = f"Max{_word(name, _LONG)}RunMins{what}"
            yield f"{text}[{name}]", 1, Rule(Kind.RUN_MINUTES, key, qos, name, most, reason)
    yield from each("MaxTRESMins", Kind.JOB_MINUTES, "", limits.max_tres_mins, "QOS{}", "MinutesPerJob")
    yield from each("MaxTRES", Kind.JOB_TRES, "", limits.max_tres, "QOS{}", "PerJob")
    yield from each("MaxTRESPerNode", Kind.NODE_TRES, "", limits.max_tres_per_node, "QOS{}", "PerNode")
    for name, least in limits.min_tres.items():
        text = {"cpu": "QOSMinCpuNotSatisfied", "mem": "QOSMinMemory"}.get(name, f"QOSMin{_word(name)}")
        yield f"MinTRES[{name}]", 1, Rule(Kind.LEAST_TRES, "", qos, name, least, text)
    yield from each("MaxTRESPA", Kind.TRES, "pa", limits.max_tres_pa, "{}", "PerAccount")
    yield from each("MaxTRESPU", Kind.TRES, "pu", limits.max_tres_pu, "QOS{}", "PerUser")
    yield from one("GrpSubmit", 2, Kind.PRESENT, "qos", limits.grp_submit, "QOSGrpSubmitJobsLimit")
    yield from one("MaxSubmitPA", 2, Kind.PRESENT, "pa", limits.max_submit_pa, "MaxSubmitJobsPerAccount")
    yield from one("MaxSubmitPU", 2, Kind.PRESENT, "pu", limits.max_submit_pu, "QOSMaxSubmitJobPerUserLimit")


def _of_association(node: Association, *, own: bool, factor: float) -> _Listed:
    """Yield the limits of an association: Grp limits of each level, Max limits of the user's own."""
    limits, whose = node.limits, node.index

    def one(hides: str, stage: int, kind: Kind, key: str, most: int | None, reason: str) -> _Listed:
        if most is not None:
            yield hides, stage, Rule(kind, key, whose, "", most, reason)

    def scaled(most: int) -> int:
        return math.floor(most * factor) if factor != 1.0 else most

    yield from one("GrpJobs", 0, Kind.JOBS, "assoc", limits.grp_jobs, "AssocGrpJobsLimit")
    yield from one("GrpWall", 0, Kind.USED_WALL, "assoc", limits.grp_wall, "AssocGrpWallLimit")
    if own:
        yield from one("MaxJobs", 0, Kind.JOBS, "assoc", limits.max_jobs, "AssocMaxJobsLimit")
        yield from one("MaxWall", 0, Kind.WALL, "", limits.max_wall, "AssocMaxWallDurationPerJobLimit")
    for name, most in limits.grp_tres_mins.items():
        rule = Rule(Kind.USED_MINUTES, "assoc", whose, name, most, f"Assoc{_grp_minutes(name)}")
        yield f"GrpTRESMins[{name}]", 1, rule
    for name, most in limits.grp_tres.items():
        yield f"GrpTRES[{name}]", 1, Rule(Kind.TRES, "assoc", whose, name, scaled(most), f"Assoc{_grp(name)}")
    for name, most in limits.grp_tres_run_mins.items():
        rule = Rule(Kind.RUN_MINUTES, "assoc", whose, name, most, f"Assoc{_grp_run_minutes(name)}")
        yield f"GrpTRESRunMins[{name}]", 1, rule
    if own:
        for name, most in limits.max_tres_mins.items():
            text = f"Assoc{_max(name, 'MinutesPerJob')}"
            yield f"MaxTRESMins[{name}]", 1, Rule(Kind.JOB_MINUTES, "", whose, name, most, text)
        for name, most in limits.max_tres.items():
            text = f"Assoc{_max(name, 'PerJob')}"
            yield f"MaxTRES[{name}]", 1, Rule(Kind.JOB_TRES, "", whose, name, scaled(most), text)
        for name, most in limits.max_tres_per_node.items():
            text = f"Assoc{_max(name, 'PerNode')}"
            yield f"MaxTRESPerNode[{name}]", 1, Rule(Kind.NODE_TRES, "", whose, name, most, text)
        yield from one("MaxSubmit", 2, Kind.PRESENT, "assoc", limits.max_submit, "AssocMaxSubmitJobLimit")
    yield from one("GrpSubmit", 2, Kind.PRESENT, "assoc", limits.grp_submit, "AssocGrpSubmitJobsLimit")


__all__ = ["Kind", "Rule", "RuleBook", "Rules"]
