"""Ask what Kueue's own test tables ask, and compare the answers, for ``makeway verify``.

A case holds books and a question: who has to leave, in which order candidates or queues come, how large a share is,
whether a policy allows it, or what a whole pass comes to. The code that answers is the one that decides in a replay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway.bounds import json_of
from makeway.errors import ConfigError, Problem
from makeway.foreign import Dialect, Judgement, Source
from makeway.hookspecs import hookimpl
from makeway_kueue_cohort import case, decide, fair, order, passes
from makeway_kueue_cohort.case import Data
from makeway_kueue_cohort.flavors import PodSet
from makeway_kueue_cohort.passes import Head
from makeway_kueue_cohort.site import Within

_INFINITE = 2**63 - 1
_NOTHING = "nothing"
Answers = Mapping[str, str]
"""What is asked about -> the answer."""
_KNOWN_GATES = frozenset(
    (
        "AdmissionFairSharing",
        "FairSharingPreemptWithinNominal",
        "PartialAdmission",
        "PriorityBoost",
        "PrioritySortingWithinCohort",
        "RecomputeAssignmentUponPreemptionTargetsOverlap",
    )
)
_TOPOLOGY_GATES = frozenset(("TASRecomputeAssignmentWithinSchedulingCycle", "TopologyAwareScheduling"))
_NEEDED = {
    "decision": ("incoming", "admitted", "queues"),
    "cycle": ("pending", "admitted", "queues"),
    "order": ("preemptor_queue", "admitted"),
    "queues": ("preemptor_queue", "candidate_queues", "admitted", "queues"),
    "share": ("queue", "used", "queues"),
    "policy": ("preemptor", "candidate", "policy"),
}
"""Kind -> the keys without which there is no question."""


@attrs.frozen
class KueueRecordings:
    """See `makeway.foreign.RecordingReader`."""

    name: str = "Kueue's test tables"

    def claims(self, name: str, head: str) -> bool:
        """Recognise JSON that names the repository of the tests."""
        return name.endswith(".json") and '"kubernetes-sigs/kueue"' in head and '"kind"' in head

    def recorded(self, source: Source) -> Case:
        """Read one.

        :raises ConfigError: it is no case of a known kind.
        """
        data = json_of(source.text, source.name)
        problems = list(_problems(data))
        if problems:
            raise ConfigError(source.name, problems)
        return Case(data)


def _problems(data: Any) -> Iterator[Problem]:
    if not isinstance(data, dict):
        yield Problem("", "the outermost value is no table")
        return
    kind = data.get("kind")
    if kind not in _NEEDED:
        yield Problem("kind", f"got {kind!r}; allowed: {', '.join(_NEEDED)}")
        return
    for key in ("name", "expected", *_NEEDED[kind]):
        if key not in data:
            yield Problem(key, "missing")


@attrs.frozen
class Case:
    """One case. See `makeway.foreign.RecordedAnswer`."""

    data: Data

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.data["name"])

    @property
    def release(self) -> str:
        """Where it comes from."""
        return f"Kueue {str(self.data.get('source', {}).get('commit', ''))[:8]}".strip()

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """What the case is about beside quota."""
        found = []
        gates = self.data.get("gates", {})
        if self.data.get("nodes") and gates.get("TopologyAwareScheduling", True):
            found.append("topology")
        found += [f"gate {gate}" for gate in gates if gate not in _KNOWN_GATES | _TOPOLOGY_GATES]
        return tuple(found)

    def answered(self) -> Judgement:
        """Answer the question, and compare."""
        asked, told = _KINDS[self.data["kind"]]
        answers, expected = asked(self.data), told(self.data)
        keys = list(dict.fromkeys([*expected, *answers]))
        return Judgement(
            differences=tuple(
                (key, None, expected.get(key, _NOTHING), answers.get(key, _NOTHING))
                for key in keys
                if expected.get(key) != answers.get(key)
            )
        )


# ------------------------------------------------------------------------------------- decisions
def _decided(data: Data) -> Answers:
    books = case.books_of(data)
    admitted = case.admitted(data, books)
    needs = data["incoming"]["needs"]
    preemptor = case.workload(data["incoming"], books, uses=needs)
    short = [(each["flavor"], each["resource"]) for each in needs if each["short"]]
    found = decide.victims(preemptor, short, admitted, books)
    return {
        each.workload.name: "already leaving" if each.workload.evicted else each.reason.value
        for each in found
    }


def _decision(data: Data) -> Answers:
    expected = data["expected"]
    leaving = dict.fromkeys(expected.get("already_leaving", ()), "already leaving")
    return {**_reasons(expected["victims"]), **leaving}


def _reasons(victims: Sequence[Data]) -> dict[str, str]:
    return {each["name"]: each["reason"] for each in victims}


# ------------------------------------------------------------------------------------- passes
def _passed(data: Data) -> Answers:
    books = case.books_of(data)
    admitted = case.admitted(data, books)
    outcome = passes.play([_head(each, books) for each in data["pending"]], admitted, books)
    found = {each.workload.name: each.reason.value for each in outcome.victims}
    return {**found, **{name: _flavored(uses) for name, uses in outcome.admitted.items()}}


def _head(data: Data, books: Any) -> Head:
    pod_sets = [
        PodSet(
            each["name"],
            each["count"],
            {resource: case.amount(number) for resource, number in each["each"].items()},
            each.get("minimum"),
        )
        for each in data["pod_sets"]
    ]
    return Head(case.workload(data, books), pod_sets)


def _pass(data: Data) -> Answers:
    expected = data["expected"]
    admitted = {each["name"]: _flavored(case.amounts(each["uses"])) for each in expected["admitted"]}
    return {**_reasons(expected["victims"]), **admitted}


def _flavored(uses: Mapping[tuple[str, str], int]) -> str:
    parts = [
        f"{resource} {amount / 1000:g} of {flavor}" for (flavor, resource), amount in sorted(uses.items())
    ]
    return "admitted: " + ", ".join(parts)


# ------------------------------------------------------------------------------------- orders
def _numbered(names: Sequence[str]) -> Answers:
    return {f"number {at + 1}": name for at, name in enumerate(names)}


def _order(data: Data) -> Answers:
    return _numbered(data["expected"]["order"])


def _sorted_candidates(data: Data) -> Answers:
    names = dict.fromkeys([data["preemptor_queue"], *(each["queue"] for each in data["admitted"])])
    queues = [{"name": name, "quotas": []} for name in names]
    books = case.books_of({**data, "queues": queues})
    admitted = case.admitted(data, books)
    key = order.ordering(books.queues[data["preemptor_queue"]], by_local_queue=books.site.by_local_queue)
    workloads = [each for several in admitted.values() for each in several]
    return _numbered([each.name for each in sorted(workloads, key=key)])


def _queues_in_turn(data: Data) -> Answers:
    books = case.books_of({**data, "sharing": "fair"})
    admitted = case.admitted(data, books)
    queue = books.queues[data["preemptor_queue"]]
    rank = order.ordering(queue)
    candidates = {name: sorted(admitted.get(name, ()), key=rank) for name in data["candidate_queues"]}
    turns = fair.Ordering(queue, candidates, rank)
    found = []
    for at, each in enumerate(turns):
        found.append(each.name)
        if "drop" in str(data["actions"][at : at + 1]):
            turns.drop(each)
        else:
            turns.pop(each)
    return _numbered(found)


# ------------------------------------------------------------------------------------- shares, policies
def _shares(data: Data) -> Answers:
    books = case.books_of(data)
    queue = books.queues[data["queue"]]
    for uses in (data["used"], data.get("asked", ())):
        books.add(queue, case.amounts(uses))
    found = {}
    for each in data["expected"]["shares"]:
        nodes = books.queues if each["kind"] == "queue" else books.cohorts
        node = nodes[each["name"]]
        _, resource, borrowing = node.dominant()
        infinite, _, share = node.share()
        found[each["name"]] = _share(_INFINITE if infinite else math.ceil(share), resource, borrowing)
    return found


def _share(share: int, resource: str, borrowing: bool) -> str:
    shown = "infinite" if share == _INFINITE else str(share)
    return f"{shown} of {resource or 'nothing'}, {'borrows' if borrowing else 'within its own'}"


def _told_shares(data: Data) -> Answers:
    return {
        each["name"]: _share(each["share"], each["resource"], each["borrowing"])
        for each in data["expected"]["shares"]
    }


def _allowed(data: Data) -> Answers:
    books = case.books_of({"queues": [{"name": "queue", "quotas": []}]})
    pair = [case.workload({**data[who], "queue": "queue"}, books) for who in ("preemptor", "candidate")]
    return {"allowed": str(order.allows(Within(data["policy"]), *pair))}


def _told_allowed(data: Data) -> Answers:
    return {"allowed": str(data["expected"]["allowed"])}


_KINDS: Mapping[str, tuple[Callable[[Data], Answers], Callable[[Data], Answers]]] = {
    "decision": (_decided, _decision),
    "cycle": (_passed, _pass),
    "order": (_sorted_candidates, _order),
    "queues": (_queues_in_turn, _order),
    "share": (_shares, _told_shares),
    "policy": (_allowed, _told_allowed),
}
"""Kind -> what answers, and what was recorded."""


@hookimpl
def makeway_dialect() -> Dialect:
    """Hand over cases of Kueue's own tests, as the plugin ``recordings/kueue``."""
    return Dialect(recordings=[KueueRecordings()])
