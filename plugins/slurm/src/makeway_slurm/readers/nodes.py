"""Turn the NodeName, DownNodes and NodeSet lines of a slurm.conf into node tables.

Geometry is inferred as slurm.conf(5) says: what is missing of Boards, Sockets, CoresPerSocket and
ThreadsPerCore is 1, missing Sockets follow from CPUs, missing CPUs from the product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from makeway.config import NodeTable, StayOnTable
from makeway.errors import nearest
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway_slurm.readers.conf_parts import Record, Setting, shown
from makeway_slurm.readers.draft import Draft
from makeway_slurm.readers.power import read_power
from makeway_slurm.readers.values import megabytes, parse_count, parse_gres

_OUT_OF_SERVICE = ("DOWN", "DRAIN", "DRAINED", "FAIL", "FAILING", "FUTURE")
_IN_SERVICE = ("ALLOCATED", "CLOUD", "DYNAMIC", "EXTERNAL", "IDLE", "MIXED", "UNKNOWN", "UNDRAIN", "RESUME")


@attrs.frozen(kw_only=True)
class Nodes:
    """The nodes of a file, and the names that partitions may use for them."""

    tables: tuple[NodeTable, ...]
    names: frozenset[str]
    sets: dict[str, frozenset[str]]
    """NodeSet -> node names."""
    stay_on: tuple[StayOnTable, ...] = ()
    _resolved: dict[str, str] = attrs.field(factory=dict, init=False)

    def resolve(self, text: str) -> str:
        """Return a host list of nodes, or ALL, for the Nodes of a partition.

        :raises ValueError: it names what is neither node nor node set.
        """
        if text not in self._resolved:
            self._resolved[text] = self._resolve(text)
        return self._resolved[text]

    def _resolve(self, text: str) -> str:
        written = expand_hostlist(text)
        if any(name.upper() == "ALL" for name in written):
            return "ALL"
        found: dict[str, None] = {}
        for name in written:
            found.update(dict.fromkeys(self._members(name)))
        return text if self.names.issuperset(written) else fold_hostlist(found)

    def _members(self, name: str) -> Iterable[str]:
        if name in self.names:
            return (name,)
        if name in self.sets:
            return self.sets[name]
        close = nearest(name, self.sets) or nearest(name, self.names)
        raise ValueError(f"no node or node set named {name!r}{close}")


def read_nodes(draft: Draft, given: Sequence[NodeTable] = ()) -> Nodes:
    """Translate all node lines; `given` nodes come first, described elsewhere."""
    seen: dict[str, str] = {}
    for table in given:
        seen.update(dict.fromkeys(expand_hostlist(table.name), "the given nodes"))
    records = [each for each in draft.conf.records("NodeName") if _names_are_new(draft, each, seen)]
    down = _down_names(draft, seen)
    made: list[tuple[Record | None, NodeTable]] = [
        (None, part) for table in given for part in _split(table, down)
    ]
    made += [(record, part) for record in records for part in _split(_node(draft, record), down)]
    sets = _node_sets(draft, [table for _, table in made], seen)
    nodes = Nodes(tables=(), names=frozenset(seen), sets=sets)
    power = read_power(draft, nodes.resolve, seen)
    tables: list[NodeTable] = []
    for record, table in made:
        if record is None:
            tables.append(table)
            continue
        state = record.get("State")
        for part in power.split(table, cloud=state is not None and state.value.upper() == "CLOUD"):
            draft.places[f"node[{len(tables)}]"] = record.where
            tables.append(part)
    return attrs.evolve(nodes, tables=tuple(tables), stay_on=power.stay_on)


def _names_are_new(draft: Draft, record: Record, seen: dict[str, str]) -> bool:
    """Expand the names of one line; complain about wrong and about repeated ones."""
    try:
        names = expand_hostlist(record.name)
    except ValueError as error:
        draft.problems.append(record.problem(str(error)))
        return False
    double = next((name for name in names if name in seen), None)
    if double is not None:
        draft.problems.append(record.problem(f"node {double!r} is there already: {seen[double]}"))
        return False
    seen.update(dict.fromkeys(names, f"{record.file}:{record.line}"))
    return True


def _node(draft: Draft, record: Record) -> NodeTable:
    """Translate one NodeName line."""
    geometry = _geometry(draft, record)
    features = record.get("Features") or record.get("Feature")
    return NodeTable(
        name=record.name,
        cpus=geometry.cpus,
        sockets=geometry.sockets,
        cores_per_socket=geometry.cores,
        threads_per_core=geometry.threads,
        memory_mb=_megabytes(draft, record.get("RealMemory"), 1),
        mem_spec_limit_mb=_megabytes(draft, record.get("MemSpecLimit"), 0),
        weight=draft.read(record.get("Weight"), parse_count, 1),
        features=draft.read(features, _words, ()),
        gres=_gres(draft, record.get("Gres")),
        up=_in_service(draft, record.get("State")),
    )


def _gres(draft: Draft, setting: Setting | None) -> dict[str, int]:
    """Translate Gres; a name that GresTypes leaves out is reported: slurmctld passes it over."""
    found: dict[str, int] = draft.read(setting, parse_gres, {})
    types = draft.get("GresTypes")
    if setting is not None and types is not None:
        known = [each.strip() for each in types.value.lower().split(",")]
        for name in found:
            if ":" not in name and name.lower() not in known:
                text = (
                    f"{shown(name)} is not in GresTypes={types.value}, so that Slurm knows no such resource"
                )
                draft.warn(setting, f"{text}{nearest(name.lower(), known)}")
    return found


@attrs.frozen
class _Geometry:
    cpus: int
    sockets: int
    cores: int
    threads: int


def _geometry(draft: Draft, record: Record) -> _Geometry:
    """Infer CPUs, sockets, cores and threads of the nodes of one line."""
    cpus = _size(draft, record.get("CPUs") or record.get("Procs"))
    boards = _size(draft, record.get("Boards")) or 1
    per_board = _size(draft, record.get("SocketsPerBoard"))
    sockets = boards * per_board if per_board else _size(draft, record.get("Sockets"))
    cores = _size(draft, record.get("CoresPerSocket"))
    threads = _size(draft, record.get("ThreadsPerCore"))
    if cpus is None:
        built = _Geometry(0, sockets or boards, cores or 1, threads or 1)
        return attrs.evolve(built, cpus=built.sockets * built.cores * built.threads)
    if sockets is None:
        sockets = max(1, cpus // ((cores or 1) * (threads or 1)))
    elif cores is None and threads is None and cpus != sockets:
        draft.warn(record, f"CPUs={cpus} does not match Sockets={sockets}, which is set to {cpus}")
        sockets = cpus
    return _matching(draft, record, _Geometry(cpus, sockets, cores or 1, threads or 1))


def _matching(draft: Draft, record: Record, geometry: _Geometry) -> _Geometry:
    """Correct CPUs that are neither the sockets, the cores nor the threads of a node."""
    cores = geometry.sockets * geometry.cores
    product = cores * geometry.threads
    if geometry.cpus in (geometry.sockets, cores, product):
        return geometry
    draft.warn(
        record,
        f"CPUs={geometry.cpus} does not match {geometry.sockets} sockets x {geometry.cores} cores"
        f" x {geometry.threads} threads; CPUs is set to {product}",
    )
    return attrs.evolve(geometry, cpus=product)


def _size(draft: Draft, setting: Setting | None) -> int | None:
    if setting is not None and not setting.value.strip("0"):
        draft.warn(setting, f"got {shown(setting.value)}; Slurm takes 1")
    return draft.read(setting, _parse_size, None)


def _parse_size(text: str) -> int | None:
    """Return a number of parts of a machine, at least one; slurmctld makes 1 of 0."""
    return max(1, parse_count(text, 65535))


def _megabytes(draft: Draft, setting: Setting | None, default: int) -> int:
    if setting is None:
        return default
    return draft.read(setting, lambda text: megabytes(text, draft.refuser(setting)), default)


def _words(text: str) -> tuple[str, ...]:
    """Return the words between commas, each once, in order."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


# -------------------------------------------------------------------------------- out of service
def _in_service(draft: Draft, state: Setting | None) -> bool:
    """Say whether a State lets jobs start."""
    up = draft.read(state, _parse_state, True)
    if state is not None and not up:
        draft.warn(state, f"{state.value.upper()}: these nodes are out of service (up = false)")
    return up


def _parse_state(text: str) -> bool:
    word = text.upper()
    if word in _OUT_OF_SERVICE:
        return False
    if word in _IN_SERVICE:
        return True
    allowed = (*_OUT_OF_SERVICE, *_IN_SERVICE)
    raise ValueError(f"got {shown(text)}; allowed: {', '.join(allowed)}{nearest(word, allowed)}")


def _down_names(draft: Draft, seen: dict[str, str]) -> set[str]:
    """Return the nodes that DownNodes lines take out of service."""
    down: set[str] = set()
    for record in draft.conf.records("DownNodes"):
        if not draft.read(record.get("State"), _parse_state, False):
            down |= _known_names(draft, record, seen)
            draft.warn(record, "these nodes are out of service (up = false)")
    return down


def _known_names(draft: Draft, record: Record, seen: dict[str, str]) -> set[str]:
    try:
        names = set(expand_hostlist(record.name))
    except ValueError as error:
        draft.problems.append(record.problem(str(error)))
        return set()
    for name in sorted(names - seen.keys())[:1]:
        draft.warn(record, f"no node named {name!r}, which Slurm logs and passes over{nearest(name, seen)}")
    return names & seen.keys()


def _split(table: NodeTable, down: set[str]) -> list[NodeTable]:
    """Return the table, or one for the nodes in service and one for those that are not."""
    names = expand_hostlist(table.name)
    lost = [name for name in names if name in down]
    kept = [name for name in names if name not in down]
    if not lost:
        return [table]
    without = attrs.evolve(table, name=fold_hostlist(lost), up=False)
    return [attrs.evolve(table, name=fold_hostlist(kept)), without] if kept else [without]


# ------------------------------------------------------------------------------------- node sets
def _node_sets(draft: Draft, tables: Sequence[NodeTable], seen: dict[str, str]) -> dict[str, frozenset[str]]:
    """Translate the NodeSet lines: named nodes and nodes with a feature, both together."""
    sets: dict[str, frozenset[str]] = {}
    for record in draft.conf.records("NodeSet"):
        if record.name in seen or record.name in sets:
            draft.problems.append(record.problem(f"the name {record.name!r} is taken already"))
        nothing: list[str] = []
        listed = draft.read(record.get("Nodes"), expand_hostlist, nothing)
        members = set(seen) if any(n.upper() == "ALL" for n in listed) else set(listed)
        for name in sorted(members - seen.keys())[:1]:
            draft.problems.append(record.problem(f"no node named {name!r}{nearest(name, seen)}"))
        feature = record.get("Feature")
        if feature is not None:
            members |= _with_feature(tables, feature.value)
        sets[record.name] = frozenset(members & seen.keys())
    return sets


def _with_feature(tables: Sequence[NodeTable], feature: str) -> set[str]:
    having = (table for table in tables if feature in table.features)
    return {name for table in having for name in expand_hostlist(table.name)}
