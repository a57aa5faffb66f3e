"""Work out what all users had used when a replay begins, from sacct or sreport of the time before (``--warm-up``).

The rows are played through the rules of slurm-priority-and-limits 2: each piece of a job is charged at the
recalculation that ends it, decayed by its own length, and decays from then on with the rest. Jobs that end within a
period are charged at their end. A sum of sreport is charged as a job that ran all the time of the report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from makeway.config import Config, build_cluster
from makeway.errors import ConfigError, Problem
from makeway.model import Cluster, Partition, Qos
from makeway.readers.lines import read_lines
from makeway.settings import structure
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.accounts.sreport import Sum, is_report, read_sums
from makeway_slurm.accounts.tree import ATTRIBUTE, ROOT, Tree, build
from makeway_slurm.accounts.tres import BILLING, CPU, billable, parse_counts
from makeway_slurm.accounts.usage import RAW, WALL
from makeway_slurm.readers.priority import NAME
from makeway_slurm.readers.sacct import read_rows
from makeway_slurm.readers.sacct_rows import unix_time

OPTION = "--warm-up"
_OF_SUMS = "sums of sreport say nothing of QOS, wall time and UsageFactor"
_LITTLE = 0.05
"""Share of the usage that may be missing without a word."""


class Charged(NamedTuple):
    """One earlier job, as it is charged."""

    start: float
    """Unix time."""
    end: float
    counts: Mapping[str, float]
    user: str
    account: str | None
    partition: str
    qos: str | None
    billed: float | None
    """Billing as the row has it; None: it is worked out."""
    is_sum: bool = False
    """Whether it stands for several jobs, so that it says nothing of wall time."""


def warmed(config: Config, files: Sequence[Path], at: float | None) -> tuple[Config, list[str]]:
    """Return `config` with what all users had used at an instant, and what is missing for that.

    :param files: what ``sacct -P`` or ``sreport -P cluster AccountUtilizationByUser`` printed of the time before.
    :param at: Unix time at which the replay begins. None: the workload does not say.
    :raises ConfigError: there is nothing to charge, or no user to be charged.
    """
    if at is None:
        raise ConfigError(OPTION, [Problem("", "the workload does not say at what time it begins")])
    tables = config.cluster.attributes.get(ATTRIBUTE)
    if not tables:
        ask = "`sacctmgr -P show assoc tree`, then --accounting"
        raise ConfigError(OPTION, [Problem("", f"nobody is known who could be charged; {ask}")])
    missing: Counter[str] = Counter()
    rows = [row for file in files for row in _rows(file, missing) if row.start < at]
    if not rows:
        names = ", ".join(map(str, files))
        raise ConfigError(OPTION, [Problem("", f"no job of {names} started before the replay begins")])
    if len({row.is_sum for row in rows}) > 1:
        text = "rows of sacct and sums of sreport: jobs would be charged twice; give one kind"
        raise ConfigError(OPTION, [Problem("", text)])
    cluster = build_cluster(config)
    tree = build(tables)
    settings = structure(dict(config.policy.settings.get(NAME, {})), Settings, OPTION)
    ledger = _Ledger(cluster, tree, settings, at)
    for row in rows:
        why = ledger.charge(row)
        if why:
            missing[why] += 1
    notes = [*_told(missing), *_span(rows, settings, at)]
    if any("RawUsage" in table for table in tables):
        notes.append(
            "what everybody had used is counted anew; what files of accounting say of it is not used"
        )
    return _with(config, ledger, tables), [f"{OPTION}: {text}" for text in notes]


# ------------------------------------------------------------------------------------- reading
def _rows(path: Path, missing: Counter[str]) -> Iterator[Charged]:
    """Yield the jobs of one file that ran, or the sums that it holds."""
    if is_report(path):
        for each in read_sums(path, OPTION):
            missing[_OF_SUMS] += 1
            yield _summed(each)
        return
    for fields in read_rows(path, read_lines(path)):
        start, end = unix_time(fields.get("start", "")), unix_time(fields.get("end", ""))
        if start is None:
            continue  # it never ran
        counts, text = _counts(fields)
        if text:
            missing[text] += 1
        if not counts:
            continue
        billed = counts.pop(BILLING, None)
        yield Charged(
            start=start,
            end=math.inf if end is None else end,
            counts=counts,
            user=fields.get("user", ""),
            account=fields.get("account") or None,
            partition=fields.get("partition", "").partition(",")[0],
            qos=fields.get("qos") or None,
            billed=billed,
        )


def _summed(given: Sum) -> Charged:
    counts = {name: used / given.seconds for name, used in given.used.items()}
    billed = counts.pop(BILLING, None)
    return Charged(
        start=given.start,
        end=given.start + given.seconds,
        counts=counts,
        user=given.user,
        account=given.account or None,
        partition="",
        qos=None,
        billed=billed,
        is_sum=True,
    )


def _counts(fields: Mapping[str, str]) -> tuple[dict[str, float], str]:
    """Return what a row held, and what is wrong with it."""
    text = fields.get("alloctres", "")
    if text:
        kept = [word for word in text.split(",") if not word.startswith(("energy", "fs/", "vmem", "pages"))]
        try:
            return {name: float(count) for name, count in parse_counts(",".join(kept)).items()}, ""
        except ValueError:
            pass
    cpus = fields.get("alloccpus") or fields.get("ncpus") or ""
    if cpus.isascii() and cpus.isdigit() and int(cpus):
        return {CPU: float(cpus)}, "no AllocTRES; only CPUs are charged"
    return {}, "neither AllocTRES nor NCPUS; not charged"


# ------------------------------------------------------------------------------------ charging
class _Ledger:
    """What all users have used at one instant."""

    def __init__(self, cluster: Cluster, tree: Tree, settings: Settings, at: float) -> None:
        self._at = at
        self._tree = tree
        self._settings = settings
        half_life = settings.decay_half_life
        self._per_second = 1.0 - 0.693 / half_life if half_life else 1.0
        self._period = settings.calc_period
        self._partitions: dict[str, Partition] = {each.name: each for each in cluster.partitions}
        self._default = next((each for each in cluster.partitions if each.default), cluster.partitions[0])
        self._qos: dict[str, Qos] = {each.name: each for each in cluster.qos}
        self.used: dict[int, dict[str, float]] = {}
        """By index of the association."""
        self.by_qos: dict[str, dict[str, float]] = {}

    def charge(self, row: Charged) -> str:
        """Charge a job; return why it cannot be, if it cannot."""
        node = self._tree.of(row.user, row.account, row.partition)
        if node is None:
            return "nobody that accounting knows; not charged"
        qos = self._qos.get(row.qos) if row.qos is not None else None
        factor = _factor(qos)
        partition = self._partitions.get(row.partition, self._default)
        raw = row.billed if row.billed is not None else billable(row.counts, partition, self._settings.flags)
        weighs = partition.attributes.get("TRESBillingWeights")
        if row.billed is not None and not weighs and CPU in row.counts:
            raw = billable(row.counts, partition, self._settings.flags)
        rates = {name: count * factor for name, count in row.counts.items()}
        rates |= {RAW: raw * factor, BILLING: raw * factor, WALL: 0.0 if row.is_sum else factor}
        decayed = self._weight(row)
        plain = max(0.0, min(row.end, self._at) - row.start)
        for each in node.chain:
            _add(self.used.setdefault(each.index, {}), rates, decayed)
        for name in dict.fromkeys(filter(None, (row.qos, partition.qos))):
            known = self._qos.get(name)
            keeps = known is not None and "NoDecay" in known.flags
            _add(self.by_qos.setdefault(name, {}), rates, plain if keeps else decayed)
        return ""

    def _weight(self, row: Charged) -> float:
        """Return the seconds of a job, each piece decayed as the recalculations did (2.2)."""
        d, period, at = self._per_second, self._period, self._at
        start, end = row.start, min(row.end, at)
        if end <= start:
            return 0.0
        # Recalculations lie at whole periods before the beginning of the replay.
        first = at - math.floor((at - start) / period) * period
        last = at - math.ceil((at - end) / period) * period
        if last < first:  # it ran within one period, and decays with it as a whole
            return float((end - start) * d ** (end - start) * d ** (at - last))
        total = (first - start) * d ** (first - start) * d ** (at - first)
        whole = round((last - first) / period)
        if whole:
            step = d**period
            grown = whole if step == 1.0 else (1.0 - step**whole) / (1.0 - step)
            total += period * step * d ** (at - last) * grown
        rest = end - last
        if rest > 0:
            total += rest * d**rest * d ** (at - last)
        return float(total)


def _factor(qos: Qos | None) -> float:
    value = qos.attributes.get("UsageFactor") if qos is not None else None
    return 1.0 if value in (None, "") else float(str(value))


def _add(used: dict[str, float], rates: Mapping[str, float], seconds: float) -> None:
    for name, rate in rates.items():
        used[name] = used.get(name, 0.0) + rate * seconds


# ------------------------------------------------------------------------------------- telling
def _told(missing: Counter[str]) -> Iterator[str]:
    for why, number in sorted(missing.items()):
        yield f"{number:,} row{'' if number == 1 else 's'}: {why}"


def _span(rows: Iterable[Charged], settings: Settings, at: float) -> Iterator[str]:
    """Say how much of what was used lies before the first row."""
    listed = list(rows)
    days = (at - min(row.start for row in listed)) / 86400.0
    if not settings.decay_half_life:
        yield f"usage does not decay, and is known for {days:,.1f} days; what was used before them is missing"
        return
    lives = days * 86400.0 / settings.decay_half_life
    left = 0.5**lives
    if left > _LITTLE:
        yield (
            f"the rows go {days:,.1f} days back, {lives:,.1f} half lives: up to {left:.0%} of the usage may be "
            "missing; five half lives leave 3%"
        )
    gap = (at - max(min(row.end, at) for row in listed)) / 86400.0
    if gap > 1.0:
        yield f"no row is of the last {gap:,.1f} days before the replay: what was used then is missing"


def _with(config: Config, ledger: _Ledger, tables: Iterable[Mapping[str, Any]]) -> Config:
    """Return the configuration with usage in the words of sacctmgr."""
    tree = build(tables)
    keys = {(node.account, node.user, node.partition): node.index for node in tree.nodes}
    made: list[dict[str, Any]] = []
    seen: set[int] = set()
    for table in tables:
        low = {key.replace(" ", "").lower(): str(value) for key, value in table.items()}
        index = keys[low["account"].strip().lower(), low.get("user", ""), low.get("partition", "")]
        seen.add(index)
        words = ("rawusage", "grpwallraw", "grptresraw")
        kept = {key: value for key, value in table.items() if key.replace(" ", "").lower() not in words}
        made.append({**kept, **_words(ledger.used.get(index, {}))})
    root = keys[ROOT, "", ""]
    if root not in seen:
        made.insert(0, {"Account": ROOT, **_words(ledger.used.get(root, {}))})
    qos = tuple(
        attrs.evolve(table, attributes={**table.attributes, **_words(ledger.by_qos.get(table.name, {}))})
        for table in config.qos
    )
    cluster = attrs.evolve(config.cluster, attributes={**config.cluster.attributes, ATTRIBUTE: made})
    return attrs.evolve(config, cluster=cluster, qos=qos)


def _words(used: Mapping[str, float]) -> dict[str, str]:
    """Return usage as sacctmgr has it: seconds, minutes of wall time, whole minutes of each TRES."""
    if not used:
        return {"RawUsage": "0"}
    counted = ",".join(
        f"{name}={int(value // 60)}"
        for name, value in sorted(used.items())
        if name not in (RAW, WALL) and value >= 60
    )
    found = {"RawUsage": repr(round(used[RAW], 6)), "GrpWallRaw": repr(round(used[WALL] / 60.0, 6))}
    return {**found, "GrpTRESRaw": counted} if counted else found
