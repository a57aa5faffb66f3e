"""List the limits that hold for a kind of job, the hidden ones left out (slurm-priority-and-limits 6.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from makeway.model import Qos
from makeway_slurm.accounts.limits import Limits
from makeway_slurm.accounts.tree import Tree
from makeway_slurm.limits.association_limits import of_association
from makeway_slurm.limits.counts import Places
from makeway_slurm.limits.kinds import Rule
from makeway_slurm.limits.qos_limits import of_qos, threshold


class Rules(NamedTuple):
    """The limits of a kind of job."""

    before: tuple[Rule, ...]
    """Checked before nodes are chosen (stage A)."""
    after: tuple[Rule, ...]
    """Checked with the counts of the job (stage B)."""
    door: tuple[Rule, ...]
    """Checked at its submission."""


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
            rules = [*of_qos(name, limits), *threshold(self._qos[name])]
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
            for kind_name, stage, rule in of_association(node, own=at == 0, factor=factor):
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
