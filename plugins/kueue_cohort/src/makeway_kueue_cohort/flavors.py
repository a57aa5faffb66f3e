"""Choose a flavor for every resource that a workload asks for (kueue 1.3, 7.3)."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from makeway_kueue_cohort import decide
from makeway_kueue_cohort.books import Books, Node
from makeway_kueue_cohort.classic import ByQueue
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.reasons import Victim
from makeway_kueue_cohort.site import Fungibility, Group, Pair, Sharing, Within


class Mode(enum.IntEnum):
    """How well a flavor does, the better the higher."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    """It would have to preempt, and there is nothing to preempt."""
    PREEMPT = 2
    """Workloads of the own queue have to leave."""
    RECLAIM = 3
    """Only workloads of other queues have to leave."""
    FIT = 4


class Grade(NamedTuple):
    """How a flavor does: its mode, and how far up quota has to be borrowed (0: not at all)."""

    mode: Mode
    height: int = 0


@attrs.frozen
class PodSet:
    """Pods of one kind: so many, each asking for so much (1.1)."""

    name: str
    count: int
    each: Mapping[str, int]
    """Resource -> thousandths."""
    minimum: int | None = None
    """Fewest pods that will do; None: all of them (9.2)."""
    closed: Mapping[str, str] = attrs.field(factory=dict)
    """Flavors whose taints it does not tolerate, each with the taint."""

    def asked(self, pods: bool) -> dict[str, int]:
        """Return what all of them ask for; with `pods` also how many they are."""
        found = {resource: amount * self.count for resource, amount in self.each.items()}
        return found | {"pods": self.count * 1000} if pods else found


@attrs.frozen
class Assignment:
    """Flavors for a workload, and how well they do."""

    uses: Mapping[Pair, int]
    grade: Grade
    short: tuple[Pair, ...] = ()
    """Pairs that others have to give back."""
    chosen: Mapping[tuple[str, str], str] = attrs.field(factory=dict)
    """Pod set and resource -> flavor."""
    missing: str = ""
    """Why no flavor does; empty: some do."""
    victims: tuple[Victim, ...] | None = None
    """Who has to leave, where the search for the one pair that it uses has said so; None: it has yet to be made."""


def height_that_fits(queue: Node, pair: Pair, asked: int) -> int:
    """Return the height of the lowest subtree whose quota covers `asked` beside what is used; else of the root."""
    node = queue
    while node.borrows(pair, asked) and node.parent is not None:
        asked -= node.free_here(pair)
        node = node.parent
    return node.height


def may_preempt(queue: Node, pair: Pair, asked: int, *, fair: bool) -> bool:
    """Whether victims are sought at all for a request that does not fit (7.3).

    It fits the nominal quota of its queue, or that of a subtree below the root; else the queue may preempt while it
    borrows.
    """
    assert queue.queue is not None
    policy = queue.queue.preemption
    if asked <= queue.nominal(pair) or policy.borrow or (fair and policy.reclaim is not Within.NEVER):
        return True
    node = queue
    while node.parent is not None:
        if not node.borrows(pair, asked):
            return True
        asked -= node.free_here(pair)
        node = node.parent
    return False


def too_much(queue: Node, pair: Pair, asked: int) -> str:
    """Say why no job makes way for a request."""
    flavor, resource = pair
    return (
        f"{resource} of flavor {flavor}: {asked / 1000:g} wanted, {max(0, queue.available(pair)) / 1000:g} left; "
        f"{queue.name} has {queue.nominal(pair) / 1000:g} of its own, and may not preempt while it borrows"
    )


def assign(
    head: Workload,
    pod_sets: Sequence[PodSet],
    admitted: ByQueue,
    books: Books,
    keep: Assignment | None = None,
) -> Assignment:
    """Choose flavors for all pod sets of `head`, one after the other.

    :param head: the workload; what it uses is not looked at.
    :param keep: flavors chosen before, which are not changed.
    """
    return _Assigner(head, admitted, books, keep).over(pod_sets)


def _graded(
    asking: Workload, pair: Pair, amount: int, admitted: ByQueue, books: Books
) -> tuple[Grade, tuple[Victim, ...] | None]:
    """Say how a single pair does, and which jobs have to leave; None: none has to.

    :param asking: the workload; what it uses is not looked at.
    """
    height = height_that_fits(asking.queue, pair, amount)
    if amount <= max(0, asking.queue.available(pair)):
        return Grade(Mode.FIT, height), None
    if not may_preempt(asking.queue, pair, amount, fair=books.site.sharing is Sharing.FAIR):
        return Grade(Mode.NO_FIT, height), ()
    victims = decide.victims(attrs.evolve(asking, uses={pair: amount}), (pair,), admitted, books)
    if not victims:
        return Grade(Mode.NO_CANDIDATES, height), ()
    for each in victims:
        books.take(each.workload.queue, each.workload.uses)
    height = height_that_fits(asking.queue, pair, amount)
    for each in victims:
        books.add(each.workload.queue, each.workload.uses)
    own = any(each.workload.queue is asking.queue for each in victims)
    return Grade(Mode.PREEMPT if own else Mode.RECLAIM, height), victims


class _Assigner:
    def __init__(self, head: Workload, admitted: ByQueue, books: Books, keep: Assignment | None) -> None:
        assert head.queue.queue is not None
        self.head = head
        self.queue = head.queue
        self.states = head.queue.queue
        self.admitted = admitted
        self.books = books
        self.keep = keep
        self.uses: dict[Pair, int] = {}
        self.short: list[Pair] = []
        self.chosen: dict[tuple[str, str], str] = {}
        self._searched: dict[tuple[Pair, int], tuple[Victim, ...]] = {}
        self._too_much = ""
        """Why no job makes way in the first flavor that could hold it."""

    def over(self, pod_sets: Sequence[PodSet]) -> Assignment:
        """Assign all of them; the worst pod set says how well it goes."""
        worst = Grade(Mode.FIT)
        covered = {resource for group in self.states.groups for resource in group.resources}
        for pod_set in pod_sets:
            asked = pod_set.asked("pods" in covered)
            unknown = sorted(name for name, amount in asked.items() if amount and name not in covered)
            if unknown:
                return self._result(Grade(Mode.NO_FIT), f"{unknown[0]} has no quota in {self.queue.name}")
            for group in self.states.groups:
                wanted = {name: asked[name] for name in group.resources if name in asked}
                if not wanted:
                    continue
                grade = self._group(pod_set.name, group, wanted, pod_set.closed)
                if grade.mode is Mode.NO_FIT:
                    what = ", ".join(sorted(wanted))
                    short = f"no flavor of {self.queue.name} has enough {what}"
                    return self._result(grade, self._too_much or short)
                worst = Grade(min(worst.mode, grade.mode), max(worst.height, grade.height))
        return self._result(worst)

    def _result(self, grade: Grade, missing: str = "") -> Assignment:
        short = tuple(dict.fromkeys(self.short))
        alone = len(self.uses) == 1 and len(short) == 1
        victims = self._searched.get((short[0], self.uses[short[0]])) if alone else None
        return Assignment(self.uses, grade, short, self.chosen, missing, victims)

    def _group(
        self, pod_set: str, group: Group, wanted: Mapping[str, int], closed: Mapping[str, str]
    ) -> Grade:
        """Take the best flavor for the resources of one group."""
        best = grade = Grade(Mode.NO_FIT)
        which, short = "", list[Pair]()
        for flavor in self._flavors(pod_set, group, wanted, closed):
            grades = {
                (flavor, resource): self._grade((flavor, resource), amount)
                for resource, amount in wanted.items()
            }
            grade = Grade(min(g.mode for g in grades.values()), max(g.height for g in grades.values()))
            if preferred(grade, best, self.states.fungibility):
                best, which = grade, flavor
                short = [pair for pair, each in grades.items() if each.mode is not Mode.FIT]
            if stops(grade, self.states.fungibility):
                break
        if which:
            self.short += short
            for resource, amount in wanted.items():
                pair = (which, resource)
                self.uses[pair] = self.uses.get(pair, 0) + amount
                self.chosen[pod_set, resource] = which
        return best if which else grade

    def _flavors(
        self, pod_set: str, group: Group, wanted: Mapping[str, int], closed: Mapping[str, str]
    ) -> Sequence[str]:
        kept = self.keep.chosen.get((pod_set, next(iter(wanted)))) if self.keep is not None else None
        flavors = group.flavors if kept is None else (kept,)
        if not closed:
            return flavors
        for flavor in flavors:
            if flavor in closed and not self._too_much:
                self._too_much = f"flavor {flavor}: the taint {closed[flavor]} is not tolerated"
        return [flavor for flavor in flavors if flavor not in closed]

    def _grade(self, pair: Pair, amount: int) -> Grade:
        """Say how a single pair does."""
        if pair not in self.states.quotas:
            return Grade(Mode.NO_FIT)
        amount += self.uses.get(pair, 0)
        if amount > self.queue.potential(pair):
            return Grade(Mode.NO_FIT)
        grade, victims = _graded(self.head, pair, amount, self.admitted, self.books)
        if grade.mode is Mode.NO_FIT:
            self._too_much = self._too_much or too_much(self.queue, pair, amount)
        elif victims is not None:
            self._searched[pair, amount] = victims
        return grade


def preferred(one: Grade, other: Grade, fungibility: Fungibility) -> bool:
    """Whether one flavor is better than the best so far; of equal ones the earlier stays."""
    if one.mode <= Mode.NO_CANDIDATES or other.mode <= Mode.NO_CANDIDATES:
        return (one.mode, -one.height) > (other.mode, -other.height)
    if fungibility.preempt_first:
        return (-one.height, one.mode) > (-other.height, other.mode)
    return (one.mode, -one.height) > (other.mode, -other.height)


def stops(grade: Grade, fungibility: Fungibility) -> bool:
    """Whether no further flavor is tried (7.3)."""
    free = not grade.height or fungibility.borrow_stops
    if grade.mode is Mode.FIT:
        return free
    return grade.mode >= Mode.PREEMPT and fungibility.preempt_stops and free
