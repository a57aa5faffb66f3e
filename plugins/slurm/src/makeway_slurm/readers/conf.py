"""Turn a site's slurm.conf into a makeway configuration.

What Slurm refuses is refused with file and line, all of it at once; what Slurm takes differently
from how it is written, and what has no place in a makeway configuration, becomes a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from makeway.config import (
    Config,
    NodeTable,
    PartitionTable,
    QosTable,
    WorkloadTable,
    validate,
)
from makeway.errors import ConfigError, Problem
from makeway.foreign import Knob, Source
from makeway.model import NOTHING
from makeway.readers.api import Loaded
from makeway_slurm.check import Finding, combinations, place_of
from makeway_slurm.readers import gres_conf, knobs, names, releases, resources, site, topologies, topology
from makeway_slurm.readers.accounting import NO_ACCOUNTING, Accounting
from makeway_slurm.readers.conf_parts import Record, Setting, SlurmConf, shown
from makeway_slurm.readers.draft import Draft, left_out
from makeway_slurm.readers.grammar import parse_conf, read_conf
from makeway_slurm.readers.nodes import read_nodes
from makeway_slurm.readers.partitions import read_partitions
from makeway_slurm.readers.policy import read_cluster, read_policy
from makeway_slurm.readers.scheduler import kills_over_memory, read_scheduler
from makeway_slurm.readers.topologies import Topology
from makeway_slurm_rules import rules

Entry = Setting | Record

_ASK = "`sacctmgr -P show qos > qos.txt`, then --accounting qos.txt"

_INCLUDE = re.compile(r"include[ \t]+[^=\s]", re.IGNORECASE)
_PARAMETER = re.compile(r"[A-Za-z]\w*[ \t]*=")
_TELLTALE = re.compile(
    r"^[ \t]*(ClusterName|ControlMachine|NodeName|PartitionName|SlurmctldHost|SelectType)[ \t]*=",
    re.IGNORECASE | re.MULTILINE,
)


@attrs.frozen(kw_only=True)
class SlurmConfReader:
    """Reads slurm.conf; a `makeway.foreign.ForeignReader`."""

    name: str = "slurm.conf"
    names_all_nodes: bool = True
    release: str | None = None
    """Release of Slurm that the file is for, as ``22.05``. None: unknown, taken as the newest."""
    qos: tuple[QosTable, ...] = ()
    """QOS, which the file does not hold."""
    places: Mapping[str, str] = NOTHING
    """Path in the config, as ``qos[3].preempt``, -> where accounting says so."""
    has_tree: bool = False
    """Whether accounting says which accounts and users there are."""

    def asked(self, release: str | None, accounts: Accounting | None) -> SlurmConfReader:
        """Return the reader for a release, beside accounting."""
        told = accounts if isinstance(accounts, Accounting) else NO_ACCOUNTING
        has_tree = bool(told.rows.found)
        return attrs.evolve(self, release=release, qos=told.qos, places=told.places, has_tree=has_tree)

    def claims(self, name: str, head: str) -> bool:
        """Say by file name and first lines whether the file is of this kind."""
        if name.endswith(".toml"):
            return False
        named = name.startswith("slurm") and name.endswith(".conf")
        return named or _TELLTALE.search(head) is not None or _is_includes(head)

    def translate(self, source: Source) -> Loaded:
        """Read it and all that it includes, which may lie anywhere.

        :raises ConfigError: with all problems, each with file and line.
        """
        path = getattr(source, "path", None)
        return self._read(parse_conf(source.text, source.name), None) if path is None else self.read(path)

    def knobs(self, source: Source) -> Sequence[Knob]:
        """Return what a search may change in it and in what it includes.

        :raises ConfigError: it cannot be read.
        """
        path = getattr(source, "path", None)
        return () if path is None else knobs.knobs(path)

    def read(self, path: Path) -> Loaded:
        """Read it and all that it includes; `makeway.config.dump_toml` writes the result as TOML.

        :raises ConfigError: with all problems, each with file and line.
        """
        return self._read(read_conf(path), path)

    def _read(self, conf: SlurmConf, path: Path | None) -> Loaded:
        found: tuple[Topology, ...] = ()
        beside: Sequence[Entry] = ()
        if path is not None:
            yaml = path.with_name(topologies.FILE)
            found = topologies.read_topologies(yaml) if yaml.is_file() and self._reads_yaml() else ()
            beside = topology.read_beside(path) if topology.wants_file(conf) and not found else ()
        return config_from_entries(
            [*conf.entries, *beside],
            (),
            conf.source,
            self.release,
            qos=self.qos,
            places=self.places,
            has_tree=self.has_tree,
            several=found,
            path=path,
        )

    def _reads_yaml(self) -> bool:
        """Whether the release reads topology.yaml and resources.yaml."""
        return self.release is None or rules.version(self.release) >= rules.version(topologies.SINCE)


def _is_includes(head: str) -> bool:
    """Whether a text does no more than include others, and sets parameters beside that."""
    lines = [line for line in map(str.strip, head.splitlines()) if line and not line.startswith("#")]
    includes = [line for line in lines if _INCLUDE.match(line)]
    return bool(includes) and all(_INCLUDE.match(line) or _PARAMETER.match(line) for line in lines)


def config_from_entries(
    entries: Sequence[Entry],
    nodes: Sequence[NodeTable] = (),
    source: str = "slurm.conf",
    release: str | None = None,
    *,
    qos: Sequence[QosTable] = (),
    licenses: Mapping[str, int] | None = None,
    places: Mapping[str, str] = NOTHING,
    has_tree: bool = False,
    several: tuple[Topology, ...] = (),
    path: Path | None = None,
) -> Loaded:
    """Translate what the grammar read, together with what is described elsewhere.

    :param entries: `SlurmConf.entries`, of a whole file or of a part.
    :param nodes: nodes that the entries do not describe; they come before those that they do.
    :param qos: QOS, which slurm.conf never describes.
    :param licenses: licences beside those of the entries. None: none.
    :param places: path in the config -> where `qos` are described.
    :param has_tree: whether accounts and users are described elsewhere.
    :param several: topologies of a topology.yaml.
    :param path: the file, whose neighbours are looked into; None: it has none.
    :raises ConfigError: with all problems, each with file and line.
    """
    _check_release(release, source)
    conf = SlurmConf(source=source, entries=tuple(entries))
    draft = Draft(conf, release, places=dict(places), topologies=several)
    matters = tuple(site.sentences(draft, has_tree=has_tree, has_qos=bool(qos)))
    config = _build(draft, nodes, qos, licenses or {})
    _check_keys(draft)
    if path is not None:
        _look_beside(draft, path)
    _warn_of_duplicates(draft)
    _check_config(draft, config, source)
    if draft.problems:
        raise ConfigError(source, draft.in_file_order())
    return Loaded(
        config=config,
        warnings=tuple(dict.fromkeys(draft.warnings)),
        refused=tuple(dict.fromkeys(draft.refused)),
        matters=matters,
        unmodelled=left_out(draft.unmodelled),
        idle=left_out(draft.harmless),
        places=dict(draft.places),
    )


def _check_release(release: str | None, source: str) -> None:
    if release is None:
        return
    try:
        rules.stated(release)
    except ValueError as error:
        raise ConfigError(source, [Problem("release", str(error))]) from None


# -------------------------------------------------------------------------------------- building
def _build(
    draft: Draft, given: Sequence[NodeTable], qos: Sequence[QosTable], licenses: Mapping[str, int]
) -> Config:
    nodes = read_nodes(draft, given)
    if not nodes.tables and not draft.problems:
        draft.problems.append(Problem("", "no nodes; add a NodeName line"))
    policy = read_policy(draft)
    partitions = _as_described(read_partitions(draft, nodes, policy.select_parameters), qos)
    if not partitions and not draft.problems:
        draft.problems.append(Problem("", "no partitions; add a PartitionName line"))
    cluster = read_cluster(draft)
    return Config(
        cluster=attrs.evolve(cluster, licenses={**licenses, **cluster.licenses}),
        node=nodes.tables,
        stay_on=nodes.stay_on,
        partition=partitions,
        qos=(*qos, *_missing_qos(draft, partitions, qos)),
        policy=policy,
        scheduler=read_scheduler(draft),
        workload=WorkloadTable(over_memory_kill=kills_over_memory(draft)),
    )


def _as_described(
    partitions: Sequence[PartitionTable], known: Sequence[QosTable]
) -> tuple[PartitionTable, ...]:
    """Spell the QOS of partitions as accounting does; Slurm looks them up in any case."""
    names = {table.name for table in known}
    spelled = {name.lower(): name for name in names}
    return tuple(
        table
        if table.qos is None or table.qos in names
        else attrs.evolve(table, qos=spelled.get(table.qos.lower(), table.qos))
        for table in partitions
    )


def _missing_qos(
    draft: Draft, partitions: Sequence[PartitionTable], known: Sequence[QosTable]
) -> list[QosTable]:
    """Return an empty stand-in for each QOS that a partition names and nothing describes."""
    by_qos = draft.get("PreemptType")
    if by_qos is not None and by_qos.value.lower() == "preempt/qos" and not known:
        draft.warn(by_qos, "slurm.conf does not hold QOS; take them from accounting: " + _ASK)
    described = {table.name for table in known}
    wanted = dict.fromkeys(table.qos for table in partitions if table.qos is not None)
    missing = [name for name in wanted if name not in described]
    if missing:
        draft.warnings.append(
            f"QOS {', '.join(missing)}: named by partitions, described only in accounting; "
            f"each stands in the config without any rule ({_ASK})"
        )
    return [QosTable(name=name) for name in missing]


def _look_beside(draft: Draft, path: Path) -> None:
    """Name what files beside a slurm.conf say and makeway does not model."""
    gres_conf.read_gres_conf(path, draft)
    for file, since in ((topologies.FILE, topologies.SINCE), (resources.FILE, resources.SINCE)):
        beside = path.with_name(file)
        if not beside.is_file():
            continue
        if not draft.since(since):
            draft.warnings.append(f"{file}: Slurm {draft.release} does not read it (since {since})")
        elif file == resources.FILE:
            for resource in resources.read_resources(beside):
                draft.leave_out(f"{file} {resource.value}", resource)


# -------------------------------------------------------------------------------------- checking
_RECORD_KEYS = {
    "nodename": (names.NODE_MODELLED, names.NODE_RELEVANT, names.NODE_PLUMBING),
    "partitionname": (
        names.PARTITION_MODELLED,
        names.PARTITION_RELEVANT,
        names.PARTITION_PLUMBING,
    ),
    "nodeset": (names.NODESET_KEYS, frozenset[str](), frozenset[str]()),
    "downnodes": (frozenset(("DownNodes", "State")), frozenset[str](), frozenset(("Reason",))),
}
_OTHER_RECORDS = {
    "frontendname": names.FRONTEND_KEYS,
    "poweraction": names.POWER_KEYS,
    "switchname": names.SWITCH_KEYS,
    "blockname": names.SWITCH_KEYS,
}


def _check_keys(draft: Draft) -> None:
    """Complain about keys that Slurm has not, and note those that makeway does not model."""
    groups = (names.MODELLED, names.RELEVANT, names.PLUMBING)
    for entry in draft.conf.entries:
        if isinstance(entry, Setting):
            _check_key(draft, entry, groups, "")
        elif entry.kind in _OTHER_RECORDS:
            if entry.kind != "switchname" or not topology.in_force(draft):
                draft.leave_out(names.RECORDS[entry.kind], entry)
            _check_kind(draft, entry)
            _check_record(draft, entry, (_OTHER_RECORDS[entry.kind], frozenset(), frozenset()))
        else:
            _check_record(draft, entry, _RECORD_KEYS[entry.kind])


def _check_kind(draft: Draft, record: Record) -> None:
    """Say where the release does not know a kind of line yet, or no longer."""
    gone = releases.GONE_RECORDS.get(record.kind)
    since = releases.NEWER.get(record.kind, {}).get(record.kind)
    if gone is not None and draft.since(gone):
        draft.refuse(record, f"gone since Slurm {gone}, which does not start with it; left out here")
    elif since is not None and not draft.since(since):
        text = f"Slurm {draft.release} does not know it yet (since {since}) and does not start with it"
        draft.refuse(record, text)


Groups = tuple[frozenset[str], frozenset[str], frozenset[str]]
"""Keys that are modelled, that may matter, and that do not."""


def _check_record(draft: Draft, record: Record, groups: Groups) -> None:
    for setting in record.settings:
        if not setting.inherited:
            _check_key(draft, setting, groups, f"{names.RECORDS[record.kind]} ")


def _check_key(draft: Draft, setting: Setting, groups: Groups, prefix: str) -> None:
    modelled, relevant, plumbing = (names.by_lower(group) for group in groups)
    key = setting.canonical
    kind = prefix.strip().lower()
    since = releases.NEWER.get(kind, {}).get(key)
    if since is not None and not draft.since(since):
        text = f"Slurm {draft.release} does not know it yet (since {since}) and does not start with it"
        draft.refuse(setting, text)
    if key in modelled:
        return
    if not prefix and key in releases.RETIRED:
        _take_leave(draft, setting, releases.RETIRED[key])
        return
    if key in relevant or key in plumbing:
        spelled = relevant.get(key) or plumbing[key]
        draft.leave_out(f"{prefix}{spelled}", setting, relevant=key in relevant)
        return
    begins = {} if prefix else names.RECORDS
    guess = names.guess(setting.key, modelled | relevant | plumbing | begins)
    of = f"on a {prefix.strip()} line" if prefix else "in slurm.conf"
    draft.problems.append(setting.problem(f"no such parameter {of}{guess}"))


def _take_leave(draft: Draft, setting: Setting, retired: releases.Retired) -> None:
    """Drop a parameter that Slurm no longer has, and say so unless the file's release still had it."""
    if not retired.is_gone(draft.release):
        draft.leave_out(retired.name, setting, relevant=False)
    elif retired.defunct:
        draft.warn(setting, f"{retired.sentence}; slurmctld calls it defunct and ignores it")
    elif retired.refused(setting.value):
        draft.refuse(setting, f"{retired.sentence}; left out here")
    else:
        text = f"{retired.sentence}; Slurm {releases.MEASURED} ignores {shown(setting.value)}"
        if draft.release and not releases.is_measured(draft.release):
            text += f", and whether Slurm {draft.release} starts with it is not known"
        draft.warn(setting, text)


def _warn_of_duplicates(draft: Draft) -> None:
    draft.warnings.extend(str(duplicate.problem()) for duplicate in draft.conf.duplicates())


def _check_config(draft: Draft, config: Config, source: str) -> None:
    """Let the config check itself, then its combinations; blame the lines of the file."""
    try:
        validate(config, source)
    except ConfigError as error:
        if not draft.problems:  # else these are only consequences
            draft.problems.extend(
                Problem(place_of(problem.where, draft.places), problem.message) for problem in error.problems
            )
        return
    for finding in combinations(_on_one_node(config)):
        if finding.level == "error" and finding.section and finding.where not in draft.bad:
            draft.problems.append(_as_problem(draft, finding))


def _on_one_node(config: Config) -> Config:
    """Return the same rules on one node: no error depends on the nodes, and there may be many."""
    return attrs.evolve(
        config,
        node=(NodeTable(name="n"),),
        partition=tuple(attrs.evolve(table, nodes="ALL") for table in config.partition),
    )


def _as_problem(draft: Draft, finding: Finding) -> Problem:
    place = place_of(finding.where, draft.places)
    return Problem(place, finding.message)
