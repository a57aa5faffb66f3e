"""Keep what associations and QOS have used, as Slurm's decay thread does (slurm-priority-and-limits 2).

Usage grows in two places only: at a recalculation, and when a job ends. All jobs that have run through a whole period
are charged alike, so a recalculation adds to two sums for all, and costs no more with more jobs: each entry
keeps the rate at which it is charged, and is brought up to date when that rate changes, or when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from makeway.model import Cluster, ClusterView, Job, Qos, Seconds
from makeway_slurm.accounts import drift
from makeway_slurm.accounts.entry import FIRST, RAW, WALL, Charge, Entry, Shape, Sums
from makeway_slurm.accounts.limits import parse_limits
from makeway_slurm.accounts.periods import stretch
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.accounts.tree import Association, Tree, tree_of
from makeway_slurm.accounts.tres import BILLING, CPU, MEM, NODE, Holder, billable, held

_TINY = 1e-6
_SMALL = 1e-100
"""Below this the common scale is brought back to 1."""
_NOTHING = 1e-250
"""What is worth less than this is forgotten: floats go down to 1e-308."""
_ROUND = 1024.0
"""Sums of multiples of its reciprocal are exact in whatever order."""
_MANY = 10_000
_NOTHING_KNOWN = None, None


class UsageBook(Sums):
    """The usage of one run. See `makeway.model.Book`."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._settings = settings = view.settings(Settings)
        self.tree: Tree | None = tree_of(view.cluster)
        self.scale = 1.0
        """What decaying usage is worth: it is kept divided by this."""
        self.decayed_sum = self.plain_sum = 0.0
        half_life = settings.decay_half_life
        self.resets = settings.usage_reset_period != "NONE"
        """Whether usage is reset now and then."""
        self.per_second = 1.0 - 0.693 / half_life if half_life else 1.0
        """What is left of usage after a second (2.2): not the exact power of one half."""
        self.columns: dict[str, int] = {}
        """Where each name stands in the lists of an entry; names whose amounts are always the same share a place."""
        self.width = 0
        self.young: Collection[Charge] = ()
        """Jobs that have started since the last recalculation."""
        self.ticks = 0
        """How many recalculations there were."""
        factored = [qos for qos in view.cluster.qos if usage_factor(qos) != 1.0]
        self._ends_plain = bool(factored) and view.rule("end_ignores_usage_factor")
        self._starts_short = view.rule("backfill_starts_for_a_minute") and any(
            "NoReserve" in qos.flags for qos in factored
        )
        self.drifts = self._ends_plain or self._starts_short
        """Whether run minutes may drift (`drift`)."""
        self._drifted: dict[Entry, None] = {}
        """Entries whose run minutes have drifted, until they are reset."""
        self._lay_columns(view.cluster)
        self.associations: dict[int, Entry] = {}
        self.qos: dict[str, Entry] = {}
        self.shared: dict[tuple[Hashable, ...], Entry] = {}
        """What users and accounts may use in QOS that limit the run minutes of each, by the key of the count."""
        if self.tree is not None:
            self.associations = {
                node.index: Entry(self, node.start, index=node.index) for node in self.tree.nodes
            }
        self.qos = {
            qos.name: Entry(self, start_of(qos), decays="NoDecay" not in qos.flags)
            for qos in view.cluster.qos
        }
        self._per_user = _names_limiting(view, "max_tres_run_mins_pu")
        self._per_account = _names_limiting(view, "max_tres_run_mins_pa")
        self._charges: dict[str, Charge] = {}
        self._young: dict[str, Charge] = {}
        self.young = self._young.values()
        self._shapes: dict[Hashable, Shape] = {}
        self._known: dict[Hashable, tuple[tuple[Entry, ...], Shape]] = {}
        """Who is charged for jobs, and with how much, by all that is looked at in them."""
        self._holder = Holder(view.cluster)
        self._steps = False
        """Whether what jobs may still use is kept step by step: some amounts are no round numbers."""
        self._whole = True
        """Whether all amounts so far are whole numbers, whose sums are exact in whatever order."""
        self._unowed: dict[str, Charge] = {}
        self._overdue: list[Charge] = []
        """Jobs whose time is still to be entered in what running jobs may use, or to be taken out of it."""
        self._freezes = False
        """Whether what was used at the last recalculation is asked for later on."""
        period, phase = settings.calc_period, settings.calc_phase
        self._even = float(period).is_integer() and float(phase).is_integer()
        """Whether all recalculations are at whole seconds."""
        self._epoch: float | None = None
        """Unix time of instant 0, by the first job that says so."""
        self._runs = False
        """Whether usage is counted: without ``priority/multifactor`` it is not."""
        self.last: int = self._second(self._grid(view.now))
        """Second of the last recalculation."""
        self._last_but_one: int = self.last
        self.next_at: Seconds = self._grid(view.now) + settings.calc_period
        """When the next recalculation of usage is due."""
        self.reader: object = None
        """What ranks by usage; None: nothing does."""
        self._before: list[Callable[[], None]] = []
        self._after: list[Callable[[int], None]] = []
        self._at_last: list[Callable[[], None]] = []
        self._nodes: dict[tuple[str, str | None, int], Association | None] = {}
        """By user, account and partition of a job."""
        self._charged: dict[tuple[Hashable, ...], tuple[Entry, ...]] = {}
        """By what `charged` looks at in a job."""

    @property
    def counts(self) -> bool:
        """Whether usage is counted, so that it may go down again."""
        return self._runs

    def _lay_columns(self, cluster: Cluster) -> None:
        """Find out which amounts are always the same: billing is what is charged, and CPUs are where nothing weighs."""
        starts = [node.start for node in self.tree.nodes] if self.tree is not None else []
        starts += [start_of(qos) for qos in cluster.qos]
        begun = list(dict.fromkeys(name for start in starts for name in start))
        if begun:
            names: Sequence[tuple[str, ...]] = ((RAW,), (BILLING,), (CPU,))
        elif any(each.attributes.get("TRESBillingWeights") for each in cluster.partitions):
            names = ((RAW, BILLING), (CPU,))
        else:
            names = ((RAW, BILLING, CPU),)
        self._raw = 0
        for at, alike in enumerate((*names, (WALL,), (NODE,))):
            self.columns.update(dict.fromkeys(alike, at))
        self.width = len(names) + 2
        for name in begun:
            if name not in self.columns:
                self.columns[name] = self.width
                self.width += 1

    def column(self, name: str) -> int:
        """Return the place of a name in the lists of each entry."""
        found = self.columns.get(name)
        if found is None:
            found = self.columns[name] = self.width
            self._widen([None])
        return found

    def _widen(self, like: Sequence[int | None]) -> None:
        """Add columns that begin like others, or with nothing."""
        self.width += len(like)
        for entry in self._entries():
            for listed in (entry.sums, entry.rate, entry.due, *([entry.owed] if entry.owed else [])):
                listed += [0.0 if at is None else listed[at] for at in like]

    def _part_columns(self) -> None:
        """Give each name a place of its own."""
        taken: set[int] = set()
        like: list[int | None] = []
        for name, at in self.columns.items():
            if at in taken:
                self.columns[name] = self.width + len(like)
                like.append(at)
            taken.add(at)
        self._widen(like)
        for shape in (*self._shapes.values(), *(charge.shape for charge in self._charges.values())):
            shape.vector = self._vector(shape.rates)
            shape.spread(self.width)

    def _vector(self, rates: Mapping[str, float]) -> Sequence[tuple[int, float]]:
        return [*{self.column(name): rate for name, rate in rates.items() if rate}.items()]

    def used_at_last(self) -> list[float]:
        """Return what each association had used at the last recalculation, by index; theirs always decays."""
        scale, common, ticks = self.scale, self.decayed_sum, self.ticks
        raw = self.columns[RAW]
        return [
            entry.frozen
            if entry.frozen_at == ticks
            else (entry.sums[raw] + entry.rate[raw] * (common - entry.mark)) * scale
            for entry in self.associations.values()
        ]

    def used_by(self, index: int) -> float:
        """Return the same of one association."""
        entry, raw = self.associations[index], self._raw
        if entry.frozen_at == self.ticks:
            return entry.frozen
        return (entry.sums[raw] + entry.rate[raw] * (self.decayed_sum - entry.mark)) * self.scale

    def just_charged(self) -> list[tuple[Job, float, tuple[Entry, ...]]]:
        """Return who was charged at this recalculation, how much, and to which entries."""
        found = []
        for charge in self._charges.values():
            seconds = max(0, self.last - max(charge.start, self._last_but_one))
            amount = charge.rate_in(self._raw) * seconds * self.per_second**seconds
            found.append((charge.job, amount, charge.entries))
        return found

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

    def freeze_before(self) -> None:
        """Keep from now on what was used at the last recalculation when a job ends, for `used_at_last`."""
        self._freezes = True

    def advance(self, now: Seconds) -> None:
        """Make the recalculations that are due."""
        if not self._runs or self.next_at > now + _TINY:
            return
        if self._even and not (self._before or self._after or self.resets):
            self._advance_evenly(now)
        else:
            while self.next_at <= now + _TINY:
                if not self._charges:  # no job is charged: one step does for all
                    self.next_at = self._grid(now)
                at = self.next_at
                self.next_at = self._grid(at + _TINY) + self._settings.calc_period
                self._recalculate(self._second(at))
        for entry in self._drifted:
            entry.floor_drift()
        for told in self._at_last:
            told()

    def _advance_evenly(self, now: Seconds) -> None:
        """Make the recalculations that are due, where all are at whole seconds and nothing looks at each."""
        period, until = self._settings.calc_period, now + _TINY
        while self.next_at <= until:
            if not self._charges:
                self.next_at = self._grid(now)
            at = self.next_at
            if self._young or at - self.last != period:
                self.next_at = at + period
                self._recalculate(int(at))
                continue
            count, left = math.floor((until - at) / period) + 1, self.per_second ** int(period)
            if at + (count - 1) * period > until:
                count -= 1
            if self.scale * left**count < _SMALL:
                self.next_at = at + period
                self._recalculate(int(at))
                continue
            scale, decayed_sum, weight = self.scale, self.decayed_sum, int(period) * left
            for _ in range(count):
                scale *= left
                decayed_sum += weight / scale
            self.scale, self.decayed_sum = scale, decayed_sum
            self.plain_sum += count * int(period)
            self.next_at = at + count * period
            self.last = int(self.next_at - period)
            self.ticks += count

    def _recalculate(self, now: int) -> None:
        for call in self._before:
            call()
        passed = now - self.last
        if passed > 0:
            if self.resets and self._resets(self.last, now):
                for entry in self._entries():
                    entry.reset()
            left = self.per_second**passed
            worth = self.scale * left
            if worth >= _NOTHING:
                self.scale = worth
                self.decayed_sum += passed * left / worth
            else:
                self._rescale(worth)
                worth = 1.0
            self.plain_sum += passed
            if self._young:
                self._mature(now)
            if worth < _SMALL:
                self._rescale(worth)
        self._last_but_one, self.last = self.last, now
        self.ticks += 1
        for told in self._after:
            told(now)

    def _mature(self, now: int) -> None:
        """Charge those whole periods from now on that have started since the last recalculation."""
        last = self.last
        for charge in self._young.values():
            start = charge.start
            seconds = now - (start if start > last else last)
            if seconds < 0:
                seconds = 0
            if self._steps:
                for entry in charge.entries:
                    entry.settle_owed()
                    for at, rate in charge.shape.vector:
                        entry.owed[at] -= rate * seconds
            self._add_piece(charge, seconds, 1, freezes=False)
        if not self._steps:
            self._unowed.update(self._young)
            if not self._whole:
                self.bring_up_owed()
        self._young.clear()

    def _add_piece(self, charge: Charge, seconds: int, grows: int, *, freezes: bool) -> None:
        """Add what a job is charged for some seconds to all that is charged by rates up to now; change the rates then.

        :param grows: whether rates grow by what the job is charged for, shrink, or neither: 1, -1, 0.
        :param freezes: whether to keep what was used at the last recalculation.
        """
        shape = charge.shape
        costs = shape.dense if len(shape.dense) == self.width else shape.spread(self.width)
        weight, scale, width = seconds * self.per_second**seconds, self.scale, self.width
        decayed_sum, ticks = self.decayed_sum, self.ticks
        # The columns that every book has are added one by one: a loop over them takes more than twice as long.
        cost, cost_1, cost_2 = costs[0], costs[1], costs[2]
        decayed, decayed_1, decayed_2 = (
            cost * weight / scale,
            cost_1 * weight / scale,
            cost_2 * weight / scale,
        )
        for entry in charge.entries:
            sums, rates = entry.sums, entry.rate
            rate, rate_1, rate_2 = rates[0], rates[1], rates[2]
            if entry.decays:
                common, piece, piece_1, piece_2 = decayed_sum, decayed, decayed_1, decayed_2
            else:
                common = self.plain_sum
                piece, piece_1, piece_2 = cost * seconds, cost_1 * seconds, cost_2 * seconds
            grown = common - entry.mark
            entry.mark = common
            used = sums[0]
            if freezes and entry.frozen_at != ticks and entry.index >= 0:
                entry.frozen = (used + rate * grown) * scale
                entry.frozen_at = ticks
            sums[0] = used + piece + rate * grown
            sums[1] = sums[1] + piece_1 + rate_1 * grown
            sums[2] = sums[2] + piece_2 + rate_2 * grown
            if grows > 0:
                rates[0] = rate + cost
                rates[1] = rate_1 + cost_1
                rates[2] = rate_2 + cost_2
            elif grows:
                rates[0] = rate - cost
                rates[1] = rate_1 - cost_1
                rates[2] = rate_2 - cost_2
            if width > FIRST:
                for at in range(FIRST, width):
                    cost_at = costs[at]
                    piece = cost_at * weight / scale if entry.decays else cost_at * seconds
                    sums[at] = sums[at] + piece + rates[at] * grown
                    rates[at] += cost_at * grows

    def bring_up_owed(self) -> None:
        """Enter what running jobs may still use: of most jobs nothing asks for it before they have ended."""
        for charges, sign in ((self._unowed.values(), 1.0), (self._overdue, -1.0)):
            for charge in charges:
                end = (charge.limit or 0.0) + charge.start
                for entry in charge.entries:
                    due = entry.due
                    for at, rate in charge.shape.vector:
                        due[at] += sign * (rate * end)
        self._unowed.clear()
        self._overdue.clear()

    def _resets(self, before: int, now: int) -> bool:
        """Whether a boundary of PriorityUsageResetPeriod lies between two seconds of the replay (2.2 no. 6)."""
        period = self._settings.usage_reset_period
        if period in ("NONE", "NOW"):
            return False
        epoch = self._settings.epoch if self._settings.epoch is not None else self._epoch
        if epoch is None:
            return False
        return stretch(period, before + epoch) != stretch(period, now + epoch)

    def _rescale(self, factor: float) -> None:
        """Let what was used have the value that it is worth, and begin with a scale of 1."""
        self.scale = 1.0
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
        now = view.now
        if self._runs and self.next_at <= now + _TINY:
            self.advance(now)
        began, limit, qos = job.started_at, job.time_limit, job.qos
        alike = self._holder.key(job)
        entries = shape = None
        if alike is not None:
            key = alike, job.user, job.account, None if qos is None else qos.name
            entries, shape = self._known.get(key, _NOTHING_KNOWN)
        if entries is None or shape is None:
            entries, shape = self.charged(job), self._shape(job)
            if alike is not None:
                if len(self._known) > _MANY:
                    self._known.clear()
                self._known[key] = entries, shape
        charge = Charge(job, entries, shape, math.floor((now if began is None else began) + _TINY), limit)
        if self._whole and not (shape.whole and (limit is None or not limit % 1)):
            self.bring_up_owed()
            self._whole = False
        if not (self._whole or self._steps or limit is None or (limit * _ROUND).is_integer()):
            self._go_by_steps()
        self._charges[job.id] = self._young[job.id] = charge
        decayed_sum, plain_sum = self.decayed_sum, self.plain_sum
        for entry in entries:
            if entry.mark != (decayed_sum if entry.decays else plain_sum):
                entry.settle()
        if self._steps:
            self._owe(charge, self.rest(charge))
        if self._starts_short and job.limit_at_start is not None and limit is not None:
            self._drifted.update(dict.fromkeys(entries))
            drift.lengthened(charge, self.columns, limit - job.limit_at_start)

    def left(self, job: Job, view: ClusterView) -> None:
        """Charge a job its last piece, at once (2.2)."""
        now = view.now
        if self._runs and self.next_at <= now + _TINY:
            self.advance(now)
        charge = self._charges.pop(job.id, None)
        if charge is None:
            return
        plain = self._ends_plain and not self._runs and charge.shape.factor != 1.0
        if plain or (self._drifted and not self._drifted.keys().isdisjoint(charge.entries)):
            self._drifted.update(dict.fromkeys(charge.entries))
            with drift.of(charge, self.columns, self.rest(charge), plain=plain):
                self._take_off(charge, now)
        else:
            self._take_off(charge, now)

    def _take_off(self, charge: Charge, now: Seconds) -> None:
        """Charge a job its last piece; it is no longer active."""
        young = self._young.pop(charge.job.id, None) is not None
        if young and not self._runs and not self._steps:
            return  # nothing is charged
        start, last = charge.start, self.last
        seconds = math.floor(now + _TINY) - (start if start > last else last)
        if seconds < 0 or not self._runs:
            seconds = 0
        freezes = self._freezes
        if self._steps:
            rest, vector = self.rest(charge), charge.shape.vector
            for entry in charge.entries:
                entry.settle_owed()
                for at, rate in vector:
                    entry.owed[at] -= rate * rest
        self._add_piece(charge, seconds, 0 if young else -1, freezes=freezes)
        if self._steps:
            return
        if not young and self._unowed.pop(charge.job.id, None) is None:
            self._overdue.append(charge)
            if not self._whole:
                self.bring_up_owed()

    def _owe(self, charge: Charge, seconds: float) -> None:
        """Let running jobs be allowed to use so much more, or less, where that is kept step by step."""
        for entry in charge.entries:
            entry.settle()
            entry.settle_owed()
            for at, rate in charge.shape.vector:
                entry.owed[at] += rate * seconds

    def _go_by_steps(self) -> None:
        """Keep what jobs may still use step by step from now on: sums of such amounts depend on their order."""
        self.bring_up_owed()
        self._steps = True
        for entry in self._entries():
            entry.owed = [entry.owing(at) for at in range(self.width)]
            entry.run_mark = self.plain_sum

    def _shape(self, job: Job) -> Shape:
        """Return what a job is charged for each second."""
        qos = job.qos
        key = self._holder.key(job)
        if key is not None:
            known = self._shapes.get((key, qos.name if qos is not None else None))
            if known is not None:
                return known
        counts = held(job, self._view.cluster)
        factor = usage_factor(qos)
        rates = {name: count * factor for name, count in counts.items()}
        rates[RAW] = rates[BILLING] = billable(counts, job.partition, self._settings.flags) * factor
        rates[WALL] = factor
        found = Shape(counts, rates, factor)
        found.vector = self._vector(rates)
        if not self._steps and not all((rate * _ROUND).is_integer() for rate in rates.values()):
            self._go_by_steps()
        if key is not None:
            if len(self._shapes) > _MANY:
                self._shapes.clear()
            self._shapes[key, qos.name if qos is not None else None] = found
        return found

    def held_by(self, job: Job, cluster: Cluster) -> Mapping[str, int]:
        """Return what an active job holds, by TRES."""
        charge = self._charges.get(job.id)
        return charge.shape.held if charge is not None and charge.job is job else held(job, cluster)

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
            if self._steps:
                found.owed, found.run_mark = [0.0] * self.width, self.plain_sum
        return found

    def factor_of(self, job: Job) -> float | None:
        """Return the fair-share factor of a job's user as of the last recalculation; None: nothing works it out."""
        factor = getattr(self.reader, "factor_of", None)
        found: float | None = None if factor is None else factor(self.association_of(job))
        return found

    def association_of(self, job: Job) -> Association | None:
        """Return the association of a job; None: it has none."""
        if self.tree is None:
            return None
        key = job.user, job.account, job.partition.index
        if key not in self._nodes:
            self._nodes[key] = self.tree.of_job(job)
        return self._nodes[key]

    # ----------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return what all have used, in values that JSON has."""
        return {
            "last": self.last,
            "next_at": self.next_at,
            "ticks": self.ticks,
            "associations": {str(key): entry.save() for key, entry in self.associations.items()},
            "guests": {str(key): [node.user, node.account] for key, node in self._guests()},
            "qos": {name: entry.save() for name, entry in self.qos.items()},
        }

    def _guests(self) -> list[tuple[int, Association]]:
        """Return the associations that were given to users who are not listed: others may get them another time."""
        return [(node.index, node) for node in self.tree.nodes if node.guest] if self.tree is not None else []

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on with what another book handed over; active jobs are charged already."""
        self.bring_up_owed()
        self._part_columns()
        rests = [(charge, self.rest(charge)) for charge in self._charges.values()]
        self.last, self.next_at, self.ticks = memory["last"], memory["next_at"], memory["ticks"]
        self._even = (
            self._even and (self.next_at - self._settings.calc_phase) % self._settings.calc_period == 0
        )
        for charge, rest in rests if self._steps else ():
            self._owe(charge, self.rest(charge) - rest)
        guests = memory.get("guests", {})
        for key, used in memory["associations"].items():
            index = int(key)
            if key in guests and self.tree is not None:
                user, account = guests[key]
                node = self.tree.of(user, account, "")
                index = -1 if node is None else node.index
            if index in self.associations:
                self.associations[index].restore(used)
        for name, used in memory["qos"].items():
            if name in self.qos:
                self.qos[name].restore(used)


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
