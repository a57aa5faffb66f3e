"""Read what each kind of object says (kueue 1, 2, 6.1, 7.1, 7.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway.errors import Problem, nearest
from makeway.foreign import LeftOut
from makeway_kueue_cohort.reader.documents import Table, documents
from makeway_kueue_cohort.reader.quantity import quantity
from makeway_kueue_cohort.taints import tolerated

_SPELLED = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
"""Words of v1beta1 -> those of v1beta2."""
_WITHIN = ("Never", "LowerPriority", "LowerOrNewerEqualPriority")
_RECLAIM = ("Never", "LowerPriority", "Any")
_BORROW = ("Never", "LowerPriority")
_NEXT = ("MayStopSearch", "TryNextFlavor")
_PREFERENCE = ("BorrowingOverPreemption", "PreemptionOverBorrowing")
_STRATEGIES = ("StrictFIFO", "BestEffortFIFO")
_SHARING = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
_GATES = {
    "FairSharingPreemptWithinNominal": "preempt_within_nominal",
    "PrioritySortingWithinCohort": "priority_sorting",
}
"""Feature gate -> the setting that it is."""
_MATTER = frozenset(
    ("AdmissionCheck", "Topology", "MultiKueueConfig", "MultiKueueCluster", "ProvisioningRequestConfig")
)
"""Kinds that decide at a site, and are not modelled."""


@attrs.define
class Site:
    """What was read so far."""

    source: str
    queues: list[dict[str, Any]] = attrs.field(factory=list)
    cohorts: list[dict[str, Any]] = attrs.field(factory=list)
    flavors: dict[str, list[str]] = attrs.field(factory=dict)
    """Flavor -> the labels of its nodes."""
    taints: dict[str, list[str]] = attrs.field(factory=dict)
    """Flavor -> the taints that it does not tolerate itself."""
    local_queues: list[tuple[str, str, str]] = attrs.field(factory=list)
    """Namespace, name, ClusterQueue."""
    classes: dict[str, int] = attrs.field(factory=dict)
    """Priority class -> its value."""
    sharing: dict[str, Any] = attrs.field(factory=dict)
    problems: list[Problem] = attrs.field(factory=list)
    warnings: list[str] = attrs.field(factory=list)
    unmodelled: dict[str, list[str]] = attrs.field(factory=dict)
    """What is not modelled -> where."""
    idle: dict[str, list[str]] = attrs.field(factory=dict)
    lines: dict[str, int] = attrs.field(factory=dict)
    """Path within the settings -> line."""

    def place(self, line: int) -> str:
        """Return a place for messages."""
        return f"{self.source}:{line}"

    def wrong(self, line: int, message: str) -> None:
        """Take note of a problem."""
        self.problems.append(Problem(self.place(line), message))

    def left_out(self, name: str, line: int) -> None:
        """Take note of something that is not modelled."""
        self.unmodelled.setdefault(name, []).append(self.place(line))

    def listed(self, found: Mapping[str, list[str]]) -> tuple[LeftOut, ...]:
        """Return it as `makeway.foreign` wants it."""
        return tuple(LeftOut(name=name, places=tuple(places)) for name, places in found.items())


def read(site: Site, table: Table) -> None:
    """Read one object."""
    kind, group = str(table.get("kind", "")), str(table.get("apiVersion", "")).partition("/")[0]
    readers = {
        "ClusterQueue": _cluster_queue,
        "Cohort": _cohort,
        "ResourceFlavor": _flavor,
        "LocalQueue": _local_queue,
        "WorkloadPriorityClass": _priority_class,
    }
    if kind == "ConfigMap":
        _config_map(site, table)
    elif group == "config.kueue.x-k8s.io":
        _configuration(site, table)
    elif kind == "PriorityClass" and group == "scheduling.k8s.io":
        _priority_class(site, table)
    elif group == "kueue.x-k8s.io" and kind in readers:
        readers[kind](site, table)
    elif group == "kueue.x-k8s.io" and kind in _MATTER:
        site.left_out(kind, table.line)
    else:
        site.idle.setdefault(kind or "a document without a kind", []).append(site.place(table.line))


# ------------------------------------------------------------------------------------- pieces
def _table(site: Site, within: Table, key: str) -> Table:
    """Return a table under `key`; an empty one if it is missing."""
    found = within.get(key)
    if isinstance(found, Table):
        return found
    if found is not None:
        site.wrong(within.line_of(key), f"{key}: got {found!r}; allowed: a table")
    return Table(within.line_of(key))


def _tables(site: Site, within: Table, key: str) -> list[Table]:
    found = within.get(key)
    if found is None:
        return []
    if isinstance(found, list) and all(isinstance(each, Table) for each in found):
        return found
    site.wrong(within.line_of(key), f"{key}: got {found!r:.60}; allowed: a list of tables")
    return []


def _name(site: Site, table: Table) -> str:
    found = _table(site, table, "metadata").get("name")
    if isinstance(found, str) and found:
        return found
    site.wrong(table.line, f"{table.get('kind')}: metadata.name is missing")
    return ""


def _text(site: Site, within: Table, key: str) -> str | None:
    found = within.get(key)
    if found is None or isinstance(found, str):
        return found or None
    site.wrong(within.line_of(key), f"{key}: got {found!r}; allowed: a name")
    return None


def _word(site: Site, within: Table, key: str, allowed: Sequence[str]) -> str | None:
    found = within.get(key)
    if found is None:
        return None
    word = _SPELLED.get(str(found), str(found))
    if word not in allowed:
        close = nearest(word, allowed)
        site.wrong(within.line_of(key), f"{key}: got {found!r}; allowed: {', '.join(allowed)}{close}")
        return None
    return word


def _amount(site: Site, within: Table, key: str) -> float | None:
    if within.get(key) is None:
        return None
    try:
        return quantity(within[key])
    except ValueError as error:
        site.wrong(within.line_of(key), f"{key}: {error}")
        return None


def _number(site: Site, within: Table, key: str) -> int | None:
    found = within.get(key)
    if found is None:
        return None
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    site.wrong(within.line_of(key), f"{key}: got {found!r}; allowed: a whole number")
    return None


def _unknown(site: Site, kind: str, within: Table, known: Sequence[str]) -> None:
    for key, value in within.items():
        if key not in known and value not in (None, [], {}, ""):
            site.left_out(f"{kind} {key}", within.line_of(key))


def _set(into: dict[str, Any], **values: Any) -> None:
    into.update({key: value for key, value in values.items() if value is not None})


# ------------------------------------------------------------------------------------- kinds
def _cluster_queue(site: Site, table: Table) -> None:
    spec = _table(site, table, "spec")
    made: dict[str, Any] = {"name": _name(site, table)}
    preemption = _table(site, spec, "preemption")
    borrow = _table(site, preemption, "borrowWithinCohort")
    fungibility = _table(site, spec, "flavorFungibility")
    _set(
        made,
        cohort=_text(site, spec, "cohortName") or _text(site, spec, "cohort"),
        quotas=_quotas(site, spec),
        within_queue=_word(site, preemption, "withinClusterQueue", _WITHIN),
        reclaim=_word(site, preemption, "reclaimWithinCohort", _RECLAIM),
        borrow=_word(site, borrow, "policy", _BORROW),
        max_priority=_number(site, borrow, "maxPriorityThreshold"),
        strategy=_word(site, spec, "queueingStrategy", _STRATEGIES),
        when_can_borrow=_word(site, fungibility, "whenCanBorrow", _NEXT),
        when_can_preempt=_word(site, fungibility, "whenCanPreempt", _NEXT),
        preference=_word(site, fungibility, "preference", _PREFERENCE),
        weight=_amount(site, _table(site, spec, "fairSharing"), "weight"),
    )
    _stopped(site, "ClusterQueue", spec)
    known = (
        *("cohort", "cohortName", "resourceGroups", "preemption", "flavorFungibility", "queueingStrategy"),
        *("fairSharing", "namespaceSelector", "stopPolicy"),
    )
    _unknown(site, "ClusterQueue", spec, known)
    _unknown(
        site,
        "ClusterQueue preemption",
        preemption,
        ("withinClusterQueue", "reclaimWithinCohort", "borrowWithinCohort"),
    )
    site.lines[f"queue[{len(site.queues)}]"] = table.line
    site.queues.append(made)


def _stopped(site: Site, kind: str, spec: Table) -> None:
    policy = _word(site, spec, "stopPolicy", ("None", "Hold", "HoldAndDrain"))
    if policy not in (None, "None"):
        site.left_out(f"{kind} stopPolicy {policy}", spec.line_of("stopPolicy"))


def _quotas(site: Site, spec: Table) -> list[dict[str, Any]] | None:
    found = []
    for number, group in enumerate(_tables(site, spec, "resourceGroups")):
        covered = group.get("coveredResources")
        for flavor in _tables(site, group, "flavors"):
            name = _text(site, flavor, "name") or ""
            resources = _tables(site, flavor, "resources")
            listed = [_text(site, each, "name") for each in resources]
            if isinstance(covered, list) and sorted(map(str, covered)) != sorted(map(str, listed)):
                wanted = ", ".join(map(str, covered))
                site.wrong(
                    flavor.line, f"flavor {name}: its resources have to be the coveredResources: {wanted}"
                )
            for each, resource in zip(resources, listed, strict=True):
                quota: dict[str, Any] = {"flavor": name, "resource": resource or ""}
                _set(
                    quota,
                    nominal=_amount(site, each, "nominalQuota"),
                    borrowing_limit=_amount(site, each, "borrowingLimit"),
                    lending_limit=_amount(site, each, "lendingLimit"),
                    group=number or None,
                )
                found.append(quota)
    return found or None


def _cohort(site: Site, table: Table) -> None:
    spec = _table(site, table, "spec")
    made: dict[str, Any] = {"name": _name(site, table)}
    _set(
        made,
        parent=_text(site, spec, "parentName") or _text(site, spec, "parent"),
        quotas=_quotas(site, spec),
        weight=_amount(site, _table(site, spec, "fairSharing"), "weight"),
    )
    _unknown(site, "Cohort", spec, ("parent", "parentName", "resourceGroups", "fairSharing"))
    site.lines[f"cohort[{len(site.cohorts)}]"] = table.line
    site.cohorts.append(made)


def _flavor(site: Site, table: Table) -> None:
    spec = _table(site, table, "spec")
    labels = _table(site, spec, "nodeLabels")
    site.flavors[_name(site, table)] = [f"{key}={value}" for key, value in labels.items()]
    own = [_marked(each) for each in _listed(spec, "tolerations")]
    taints = [each for each in map(_marked, _listed(spec, "nodeTaints")) if not tolerated(each, own)]
    if taints:
        site.taints[_name(site, table)] = taints
    _unknown(site, "ResourceFlavor", spec, ("nodeLabels", "nodeTaints", "tolerations"))


def _listed(spec: Table, key: str) -> list[Mapping[str, Any]]:
    given = spec.get(key)
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []


def _marked(table: Mapping[str, Any]) -> str:
    """Return a taint or a toleration as ``key=value:Effect``."""
    key = str(table.get("key") or "*")
    exists = table.get("operator") == "Exists" or key == "*"
    value = "" if exists else f"={table.get('value') or ''}"
    effect = table.get("effect")
    return f"{key}{value}:{effect}" if effect else f"{key}{value}"


def _local_queue(site: Site, table: Table) -> None:
    spec = _table(site, table, "spec")
    namespace = str(_table(site, table, "metadata").get("namespace") or "default")
    target = _text(site, spec, "clusterQueue")
    if target is None:
        site.wrong(table.line, "LocalQueue: spec.clusterQueue is missing")
        return
    _stopped(site, "LocalQueue", spec)
    _unknown(site, "LocalQueue", spec, ("clusterQueue", "stopPolicy"))
    site.local_queues.append((namespace, _name(site, table), target))


def _priority_class(site: Site, table: Table) -> None:
    value = _number(site, table, "value")
    if value is None:
        site.wrong(table.line, f"{table.get('kind')}: value is missing")
        return
    site.classes[_name(site, table)] = value


# ------------------------------------------------------------------------------------- configuration
def _config_map(site: Site, table: Table) -> None:
    """Read the configuration of the manager, where a ConfigMap holds it."""
    for key, text in _table(site, table, "data").items():
        if isinstance(text, str) and "config.kueue.x-k8s.io" in text:
            line = _table(site, table, "data").line_of(key)
            for each in documents(text, site.source, line):
                read(site, each)


def _configuration(site: Site, table: Table) -> None:
    sharing = _table(site, table, "fairSharing")
    given = sharing.get("preemptionStrategies")
    # Without `enable` it is on as soon as the table is there, as in v1beta2.
    if sharing and sharing.get("enable", True) is True:
        site.sharing["sharing"] = "fair"
        if isinstance(given, list) and given:
            site.sharing["strategies"] = [str(each) for each in given]
            for each in given:
                if each not in _SHARING:
                    text = f"got {each!r}; allowed: {', '.join(_SHARING)}{nearest(str(each), _SHARING)}"
                    site.wrong(sharing.line_of("preemptionStrategies"), f"preemptionStrategies: {text}")
    gates = _table(site, table, "featureGates")
    for gate, value in gates.items():
        if gate in _GATES and isinstance(value, bool):
            site.sharing[_GATES[gate]] = value
        else:
            site.left_out(f"gate {gate}", gates.line_of(gate))
    for key in ("waitForPodsReady", "admissionFairSharing", "resources", "multiKueue"):
        if table.get(key):
            site.left_out(f"Configuration {key}", table.line_of(key))
