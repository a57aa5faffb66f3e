"""Keep what associations and QOS have used, as Slurm's decay thread does (slurm-priority-and-limits 2).

Usage grows in two places only: at a recalculation, and when a job ends. All jobs that have run through a whole period
are charged alike, so a recalculation adds to two sums for everybody, and costs no more with more jobs: each entry
keeps the rate at which it is charged, and is brought up to date when that rate changes, or when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway.model import Cluster, ClusterView, Job, Qos, Seconds
from makeway_slurm.accounts.limits import parse_limits
from makeway_slurm.accounts.periods import recalculations, stretch
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.accounts.tree import Association, Tree, tree_of
from makeway_slurm.accounts.tres import BILLING, CPU, MEM, NODE, billable, held

RAW, WALL = "raw", "wall"
_NOT_OWED = (RAW, WALL)
_TINY = 1e-6
_SMALL = 1e-100
"""Below this the common scale is brought back to 1."""


class Entry:
    """What one association or QOS has used, and what its running jobs may still use."""

    __slots__ = ("_book", "_left", "_mark", "_owed", "_rate", "_run_mark", "_used", "decays")

    def __init__(self, book: UsageBook, start: Mapping[str, float], *, decays: bool = True) -> None:
        self._book = book
        self.decays = decays
        self._used: dict[str, float] = dict(start)
        self._rate: dict[str, float] = {}
        """What running jobs that are charged whole periods add for each second, UsageFactor applied."""
        self._owed: dict[str, float] = {}
        """TRES-seconds that running jobs may still use, as of the last change of the rate."""
        self._left: dict[str, float] = {}
        self._mark = self._run_mark = 0.0

    def _settle(self) -> None:
        """Add what the common sums have grown by since the rate last changed."""
        book = self._book
        common = book.decayed_sum if self.decays else book.plain_sum
        grown, run = common - self._mark, book.plain_sum - self._run_mark
        if grown or run:
            used, owed = self._used, self._owed
            for name, rate in self._rate.items():
                used[name] = used.get(name, 0.0) + rate * grown
                if name in owed:
                    owed[name] -= rate * run
        self._mark, self._run_mark = common, book.plain_sum

    def add(self, rates: Mapping[str, float], weight: float) -> None:
        """Charge a job a piece of time; `weight` is its length, decayed."""
        scale = self._book.scale if self.decays else 1.0
        used = self._used
        for name, rate in rates.items():
            used[name] = used.get(name, 0.0) + rate * weight / scale

    def mature(self, charge: Charge, seconds: float) -> None:
        """Charge a job whole periods from now on; so many seconds of it have been charged."""
        self._settle()
        known, owed = self._rate, self._owed
        for name, rate in charge.owing:
            owed[name] -= rate * seconds
        for name, rate in charge.rates.items():
            known[name] = known.get(name, 0.0) + rate

    def leave(self, charge: Charge, weight: float, rest: float, *, young: bool) -> None:
        """Charge a job its last piece, and no more.

        :param weight: length of the piece, decayed if the entry decays.
        :param rest: what it might still have used, in seconds.
        :param young: whether it was not charged whole periods yet.
        """
        if weight:
            self.add(charge.rates, weight)
        self._settle()
        owed = self._owed
        for name, rate in charge.owing:
            owed[name] -= rate * rest
        if not young:
            known = self._rate
            for name, rate in charge.rates.items():
                known[name] -= rate

    def owe(self, charge: Charge, seconds: float) -> None:
        """Let running jobs be allowed to use so much more, or less."""
        self._settle()
        owed = self._owed
        for name, rate in charge.owing:
            owed[name] = owed.get(name, 0.0) + rate * seconds

    def used(self, name: str = RAW) -> float:
        """Return what was used up to the last recalculation, and by jobs that have ended since; seconds."""
        common = self._book.decayed_sum if self.decays else self._book.plain_sum
        rate = self._rate.get(name)
        found = self._used.get(name, 0.0)
        if rate:
            found += rate * (common - self._mark)
        return found * self._book.scale if self.decays else found

    @property
    def rate(self) -> float:
        """What is added for each second of a whole period."""
        return self._rate.get(RAW, 0.0)

    def may_use(self, name: str) -> float:
        """Return the TRES-seconds that running jobs may still use."""
        return max(
            0.0,
            self._owed.get(name, 0.0) - self._rate.get(name, 0.0) * (self._book.plain_sum - self._run_mark),
        )

    def reset(self) -> None:
        """Forget all usage."""
        self._settle()
        self._used.clear()

    def rescale(self, factor: float) -> None:
        """Take over a change of the common scale."""
        self._settle()
        if self.decays:
            self._used = {name: value * factor for name, value in self._used.items()}
        self._mark = 0.0 if self.decays else self._mark

    def hand_over(self) -> dict[str, Any]:
        """Return what was used, for `take_over`."""
        self._settle()
        scale = self._book.scale if self.decays else 1.0
        return {name: value * scale for name, value in sorted(self._used.items()) if value}

    def take_over(self, used: Mapping[str, float]) -> None:
        """Go on with what was used."""
        self._settle()
        scale = self._book.scale if self.decays else 1.0
        self._used = {name: value / scale for name, value in used.items()}


@attrs.define(eq=False)
class Charge:
    """What one active job is charged for."""

    job: Job
    entries: tuple[Entry, ...]
    rates: Mapping[str, float]
    """For each second: ``raw`` (billing), ``wall``, and each TRES; UsageFactor applied."""
    held: Mapping[str, int]
    """What it holds, by TRES."""
    start: int
    """Second of its start."""
    limit: float | None
    """Seconds that it may run; None: any."""
    owing: Sequence[tuple[str, float]] = attrs.field(init=False)
    """Those of its rates that count for what it may still use."""

    @owing.default
    def _owing(self) -> Sequence[tuple[str, float]]:
        return [(name, rate) for name, rate in self.rates.items() if name not in _NOT_OWED]


class UsageBook:
    """The usage of one run. See `makeway.model.Book`."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._settings = settings = view.settings(Settings)
        self.tree: Tree | None = tree_of(view.cluster)
        self.scale = 1.0
        """What decaying usage is worth: it is kept divided by this."""
        self.decayed_sum = self.plain_sum = 0.0
        half_life = settings.decay_half_life
        self.per_second = 1.0 - 0.693 / half_life if half_life else 1.0
        """What is left of usage after a second (2.2): not the exact power of one half."""
        self.associations: dict[int, Entry] = {}
        if self.tree is not None:
            self.associations = {node.index: Entry(self, node.start) for node in self.tree.nodes}
        self.qos: dict[str, Entry] = {
            qos.name: Entry(self, start_of(qos), decays="NoDecay" not in qos.flags)
            for qos in view.cluster.qos
        }
        self._per_user = _names_limiting(view, "max_tres_run_mins_pu")
        self._per_account = _names_limiting(view, "max_tres_run_mins_pa")
        self.shared: dict[tuple[Hashable, ...], Entry] = {}
        """What users and accounts may use in QOS that limit the run minutes of each, by the key of the count."""
        self._charges: dict[str, Charge] = {}
        self._young: dict[str, Charge] = {}
        """Jobs that have started since the last recalculation."""
        self._epoch: float | None = None
        """Unix time of instant 0, by the first job that says so."""
        self._runs = False
        """Whether usage is counted: without ``priority/multifactor`` it is not."""
        self.last: int = self._second(self._grid(view.now))
        """Second of the last recalculation."""
        self.next_at: Seconds = self._grid(view.now) + settings.calc_period
        """When the next recalculation of usage is due."""
        self.reader: object = None
        """What ranks by usage; None: nothing does."""
        self.ticks = 0
        """How many recalculations there were."""
        self.moves = 0
        """How often somebody began or ceased to be charged, or usage was given from outside."""
        self._frozen: Callable[[], object] | None = None
        self._before: list[Callable[[], None]] = []
        self._after: list[Callable[[int], None]] = []
        self._at_last: list[Callable[[], None]] = []
        self._charged: dict[tuple[Hashable, ...], tuple[Entry, ...]] = {}
        """By what `charged` looks at in a job."""

    @property
    def counts(self) -> bool:
        """Whether usage is counted, so that it may go down again."""
        return self._runs

    def used_by_all(self) -> list[float]:
        """Return what each association has used, by index: `Entry.used` of all at once; theirs always decays."""
        scale, common = self.scale, self.decayed_sum
        return [
            (entry._used.get(RAW, 0.0) + entry._rate.get(RAW, 0.0) * (common - entry._mark)) * scale
            for entry in self.associations.values()
        ]

    def rates(self) -> list[float] | None:
        """Return by how much each association grows in a second of a whole period, by index; None: that will change.

        It is known as long as nobody has started since the last recalculation, and nothing is ever reset.
        """
        settings = self._settings
        if self._young or not self._charges or settings.usage_reset_period != "NONE":
            return None
        return [entry.rate for entry in self.associations.values()]

    def recalculations(self, grown: float) -> int:
        """Return how many recalculations surely let usage grow by less than `grown` seconds, of today's worth."""
        return recalculations(grown, self._settings.calc_period, self.per_second)

    def count(self, reader: object) -> None:
        """Count usage from now on, and recalculate it by the clock, for `reader`."""
        self._runs = True
        self.reader = reader

    def saw(self, job: Job) -> None:
        """Learn from a job that was submitted what time it is."""
        if self._epoch is None and job.spec.wall_submit is not None:
            self._epoch = job.spec.wall_submit - job.spec.submit_at

    # --------------------------------------------------------------------------------- time
    def _grid(self, now: Seconds) -> Seconds:
        phase, period = self._settings.calc_phase, self._settings.calc_period
        return phase + math.floor((now - phase + _TINY) / period) * period

    @staticmethod
    def _second(at: Seconds) -> int:
        return math.floor(at + _TINY)

    def watch(self, before: Callable[[], None] | None, after: Callable[[int], None]) -> None:
        """Call `before` and `after` at each recalculation; `after` is given its second."""
        if before is not None:
            self._before.append(before)
        self._after.append(after)

    def watch_last(self, after: Callable[[], None]) -> None:
        """Call `after` when recalculations have been made: once for all that were due."""
        self._at_last.append(after)

    def ask_before(self, frozen: Callable[[], object]) -> None:
        """Call `frozen` before anything changes that was counted at the last recalculation."""
        self._frozen = frozen

    def advance(self, now: Seconds) -> None:
        """Make the recalculations that are due."""
        if not self._runs:
            return
        if self.next_at > now + _TINY:
            return
        period = self._settings.calc_period
        while self.next_at <= now + _TINY:
            if not self._charges:  # nobody is charged: one step does for all
                self.next_at = self._grid(now)
            at = self.next_at
            self.next_at = self._grid(at + _TINY) + period
            self._recalculate(self._second(at))
        for told in self._at_last:
            told()

    def _recalculate(self, now: int) -> None:
        for call in self._before:
            call()
        passed = now - self.last
        if passed > 0:
            if self._settings.usage_reset_period != "NONE" and self._resets(self.last, now):
                for entry in self._entries():
                    entry.reset()
            left = self.per_second**passed
            self.scale *= left
            self.decayed_sum += passed * left / self.scale
            self.plain_sum += passed
            if self._young:
                self._mature(now)
            if self.scale < _SMALL:
                self._rescale()
        self.last = now
        self.ticks += 1
        for told in self._after:
            told(now)

    def _mature(self, now: int) -> None:
        """Charge those whole periods from now on who have started since the last recalculation."""
        for charge in self._young.values():
            seconds = self._piece(charge, now)
            for entry in charge.entries:
                entry.mature(charge, seconds)
        self._young.clear()

    def _resets(self, before: int, now: int) -> bool:
        """Whether a boundary of PriorityUsageResetPeriod lies between two seconds of the replay (2.2 no. 6)."""
        period = self._settings.usage_reset_period
        if period in ("NONE", "NOW"):
            return False
        epoch = self._settings.epoch if self._settings.epoch is not None else self._epoch
        if epoch is None:
            return False
        return stretch(period, before + epoch) != stretch(period, now + epoch)

    def _rescale(self) -> None:
        factor, self.scale = self.scale, 1.0
        for entry in self._entries():
            entry.rescale(factor)
        self.decayed_sum = 0.0
        for entry in self._entries():
            entry.rescale(1.0)

    def _entries(self) -> Iterable[Entry]:
        yield from self.associations.values()
        yield from self.qos.values()
        yield from self.shared.values()

    # --------------------------------------------------------------------------------- jobs
    def started(self, job: Job, view: ClusterView) -> None:
        """Charge a job from its start on."""
        self.advance(view.now)
        began = job.started_at if job.started_at is not None else view.now
        factor = usage_factor(job.qos)
        counts = held(job, view.cluster)
        rates = {name: count * factor for name, count in counts.items()}
        rates[RAW] = billable(counts, job.partition, self._settings.flags) * factor
        rates[BILLING] = rates[RAW]
        rates[WALL] = factor
        charge = Charge(
            job=job,
            entries=self.charged(job),
            rates=rates,
            held=counts,
            start=self._second(began),
            limit=job.time_limit,
        )
        self._charges[job.id] = self._young[job.id] = charge
        self.moves += 1
        rest = self._rest(charge)
        for entry in charge.entries:
            entry.owe(charge, rest)

    def left(self, job: Job, view: ClusterView) -> None:
        """Charge a job its last piece, at once (2.2)."""
        self.advance(view.now)
        charge = self._charges.pop(job.id, None)
        if charge is None:
            return
        self.moves += 1
        if self._frozen is not None:
            self._frozen()
        young = self._young.pop(job.id, None) is not None
        rest = self._rest(charge)
        seconds = self._uncharged(charge, self._second(view.now)) if self._runs else 0
        decayed, plain = seconds * self.per_second**seconds, float(seconds)
        for entry in charge.entries:
            entry.leave(charge, decayed if entry.decays else plain, rest, young=young)

    def _rest(self, charge: Charge) -> float:
        """Return the seconds that a job may still run, by what was charged at recalculations.

        They are negative for a job that outlived its limit, or has none, so that nothing of it is left at its end.
        """
        return (charge.limit or 0.0) - max(0, self.last - charge.start)

    def _piece(self, charge: Charge, now: int) -> int:
        """Charge a job for the time since its start or the last recalculation, whichever is later; return it."""
        seconds = self._uncharged(charge, now)
        weight = seconds * self.per_second**seconds
        if seconds:
            for entry in charge.entries:
                entry.add(charge.rates, weight if entry.decays else float(seconds))
        return seconds

    def _uncharged(self, charge: Charge, now: int) -> int:
        return max(0, now - max(charge.start, self.last))

    def held_by(self, job: Job, cluster: Cluster) -> Mapping[str, int]:
        """Return what an active job holds, by TRES."""
        charge = self._charges.get(job.id)
        return charge.held if charge is not None and charge.job is job else held(job, cluster)

    def charged(self, job: Job) -> tuple[Entry, ...]:
        """Return the entries that a job is charged to: its association and all above, its QOS, its partition's QOS."""
        qos = job.qos
        key = (job.user, job.account, job.partition.index, qos.name if qos is not None else None)
        known = self._charged.get(key)
        if known is None:
            known = self._charged[key] = self._entries_of(job)
        return known

    def _entries_of(self, job: Job) -> tuple[Entry, ...]:
        found: list[Entry] = []
        node = self.association_of(job)
        if node is not None:
            found += [self.associations[each.index] for each in node.chain]
        names = dict.fromkeys(
            name
            for name in (job.qos.name if job.qos is not None else None, job.partition.qos)
            if name is not None
        )
        found += [self.qos[name] for name in names if name in self.qos]
        account = node.account if node is not None else (job.account or "").lower()
        for name in names:
            if name in self._per_user:
                found.append(self._of("pu", name, job.user))
            if name in self._per_account:
                found.append(self._of("pa", name, account))
        return tuple(found)

    def _of(self, *key: str) -> Entry:
        found = self.shared.get(key)
        if found is None:
            found = self.shared[key] = Entry(self, {})
        return found

    def factor_of(self, job: Job) -> float | None:
        """Return the fair-share factor of a job's user as of the last recalculation; None: nobody works it out."""
        factor = getattr(self.reader, "factor_of", None)
        found: float | None = None if factor is None else factor(self.association_of(job))
        return found

    def association_of(self, job: Job) -> Association | None:
        """Return the association of a job; None: it has none."""
        return self.tree.of_job(job) if self.tree is not None else None

    # ----------------------------------------------------------------------------- adoption
    def hand_over(self) -> dict[str, Any]:
        """Return what everybody has used, in values that JSON has."""
        return {
            "last": self.last,
            "next_at": self.next_at,
            "ticks": self.ticks,
            "associations": {str(key): entry.hand_over() for key, entry in self.associations.items()},
            "qos": {name: entry.hand_over() for name, entry in self.qos.items()},
        }

    def take_over(self, memory: Mapping[str, Any]) -> None:
        """Go on with what another book handed over; active jobs are charged already."""
        self.moves += 1
        rests = [(charge, self._rest(charge)) for charge in self._charges.values()]
        self.last, self.next_at, self.ticks = memory["last"], memory["next_at"], memory["ticks"]
        for charge, rest in rests:
            for entry in charge.entries:
                entry.owe(charge, self._rest(charge) - rest)
        for key, used in memory["associations"].items():
            if int(key) in self.associations:
                self.associations[int(key)].take_over(used)
        for name, used in memory["qos"].items():
            if name in self.qos:
                self.qos[name].take_over(used)


def _names_limiting(view: ClusterView, limit: str) -> frozenset[str]:
    return frozenset(qos.name for qos in view.cluster.qos if getattr(parse_limits(qos.attributes), limit))


def usage_factor(qos: Qos | None) -> float:
    """Return the UsageFactor of a job's QOS; 1 without."""
    value = qos.attributes.get("UsageFactor") if qos is not None else None
    return 1.0 if value in (None, "") else float(str(value))


def start_of(qos: Qos) -> dict[str, float]:
    """Return what a QOS had used when the run begins."""
    found: dict[str, float] = {}
    if qos.attributes.get("RawUsage") not in (None, ""):
        found[RAW] = float(str(qos.attributes["RawUsage"]))
    if qos.attributes.get("GrpWallRaw") not in (None, ""):
        found[WALL] = float(str(qos.attributes["GrpWallRaw"])) * 60.0
    return found


__all__ = ["CPU", "MEM", "NODE", "RAW", "WALL", "Entry", "UsageBook", "usage_factor"]
