"""List the limits that hold for jobs of one seat, each beside what it is held against."""

from __future__ import annotations

from makeway_slurm.accounts.usage import Entry, UsageBook
from makeway_slurm.limits.alone import ALONE
from makeway_slurm.limits.asked import Listed
from makeway_slurm.limits.counts import CountBook, Key, Seat
from makeway_slurm.limits.kinds import Kind, Rule
from makeway_slurm.limits.rulebook import RuleBook

_USED_UP = frozenset((Kind.USED_MINUTES, Kind.USED_WALL))
_IF_ANY = frozenset((Kind.TRES, Kind.USED_MINUTES, Kind.RUN_MINUTES))


class Listing:
    """The limits of one run, by seat."""

    def __init__(self, rules: RuleBook, counts: CountBook, usage: UsageBook) -> None:
        self._rules = rules
        self._counts = counts
        self._usage = usage
        self._lists: dict[Seat, tuple[Listed, ...]] = {}

    def of(self, seat: Seat, user: str) -> tuple[Listed, ...]:
        """Return the limits that hold for jobs of one seat."""
        found = self._lists.get(seat)
        if found is None:
            places = seat.places
            rules = self._rules.of(places)
            found = self._lists[seat] = tuple(
                self._listed(rule, rule.count_key(user, places.account))
                for rule in (*rules.before, *rules.after)
            )
        return found

    def _listed(self, rule: Rule, key: Key) -> Listed:
        kind, entry = rule.kind, self.entry_of(rule)
        alone, if_any, uses_up = kind in ALONE, kind in _IF_ANY, kind in _USED_UP
        return Listed(
            rule, key, alone, if_any, uses_up, self._counts.of(key), entry, kind, rule.name, rule.most
        )

    def entry_of(self, rule: Rule) -> Entry | None:
        """Return the usage that a limit is held against; None: nothing has been used."""
        if rule.key == "assoc":
            return self._usage.associations.get(int(rule.whose))
        return self._usage.qos.get(str(rule.whose))
