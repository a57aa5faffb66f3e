"""Look at a running cluster: ask for everything once, and turn it into a configuration and a state."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from makeway.config import Config
from makeway.foreign import LeftOut
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.model import Seconds
from makeway.state import State
from makeway_slurm.readers.accounting import NO_ACCOUNTING, Accounting
from makeway_slurm.readers.conf import config_from_entries
from makeway_slurm.readers.grammar import parse_conf
from makeway_slurm.readers.sacctmgr import read_accounting
from makeway_slurm_world.reading import conf
from makeway_slurm_world.reading.jobs import LiveJob, Zone, live_jobs, standing
from makeway_slurm_world.reading.records import UnreadableError, job_lines, job_record, known, pairs
from makeway_slurm_world.talking.runner import Asker, Away, SlurmError
from makeway_slurm_world.talking.words import ASSOCIATIONS, QOS, Question, show, show_jobs

SOURCE = "slurmctld"
"""Who is said to have told."""
_SKEW = 5.0
"""Seconds by which two clocks may differ before that is said."""
_RELEASE = re.compile(r"([0-9]{2}\.[0-9]{2})")
_SHOWN = 5


@attrs.frozen(kw_only=True)
class Texts:
    """What Slurm's commands printed; everything that is known of a cluster comes out of these."""

    wall: float
    """Unix time at which they were asked for."""
    config: str
    partitions: str
    nodes: str
    jobs: str
    reservations: str = ""
    licences: str = ""
    qos: str = ""
    associations: str = ""
    unread: tuple[str, ...] = ()
    """What could not be had, a sentence each."""


@attrs.frozen(kw_only=True)
class Look:
    """A cluster as it is now."""

    config: Config
    state: State
    """Instant 0 is the instant of the look."""
    jobs: tuple[LiveJob, ...]
    """All that have not ended, by number."""
    settings: Mapping[str, str]
    """What the controller says of its configuration."""
    release: str | None
    """As ``22.05``; None: it does not say."""
    node_states: Mapping[str, str]
    """Node -> its state in Slurm's words."""
    unread: tuple[str, ...] = ()
    """What could not be read, a sentence each."""
    warnings: tuple[str, ...] = ()
    matters: tuple[str, ...] = ()
    """What decides at this site and is not modelled, a sentence each."""
    unmodelled: tuple[LeftOut, ...] = ()


# ------------------------------------------------------------------------------------ asking
def gather(asker: Asker, wall: float) -> Texts:
    """Ask a running controller for everything.

    :param wall: the time, as Unix time.
    :raises SlurmError: the configuration, the partitions, the nodes or the jobs cannot be had.
    """
    unread: list[str] = []

    def try_to(question: Question) -> str:
        try:
            return asker.ask(question).out
        except Away:
            raise
        except SlurmError as error:
            unread.append(str(error))
            return ""

    config = asker.ask(show("config")).out
    accounted = "slurmdbd" in conf.settings(config).get("AccountingStorageType", "")
    return Texts(
        wall=wall,
        config=config,
        partitions=asker.ask(show("part")).out,
        nodes=asker.ask(show("node")).out,
        reservations=try_to(show("res")),
        licences=try_to(show("lic")),
        qos=try_to(QOS) if accounted else "",
        associations=try_to(ASSOCIATIONS) if accounted else "",
        jobs=asker.ask(show_jobs()).out,
        unread=tuple(unread),
    )


# ----------------------------------------------------------------------------------- reading
def look(texts: Texts, ours: str = "") -> Look:
    """Turn what was printed into makeway's model.

    :param ours: a reservation that does not count.
    :raises ConfigError: the configuration cannot be used, with all problems.
    """
    found = conf.settings(texts.config)
    version = _RELEASE.match(found.get("SLURM_VERSION", ""))
    release = version[1] if version else None
    accounts = _accounts(texts)
    text = conf.conf_parts(found, texts.partitions, texts.nodes)
    imported = config_from_entries(
        parse_conf(text, SOURCE).entries,
        (),
        SOURCE,
        release,
        qos=accounts.qos,
        licenses=_licences(texts.licences),
        places=accounts.places,
        has_tree=bool(accounts.rows.found),
    )
    merged = accounts.merged(imported.config)
    config = merged.config
    now = _clock(texts, found)
    zone = Zone(wall=now)
    unread = list(texts.unread)
    jobs = tuple(_jobs(texts.jobs, zone, unread))
    states = {name: each.get("State", "") for name, each in conf.nodes(texts.nodes).items()}
    notes = [*imported.warnings, *merged.warnings, *_of_clock(texts, now), *_of_jobs(jobs)]
    reserved = reserved_nodes(texts.reservations, ours)
    notes += [
        f"reservation {name} holds {fold_hostlist(nodes)}: no job is placed there" for name, nodes in reserved
    ]
    return Look(
        config=config,
        state=state_of(config, found, jobs, states, [name for _, nodes in reserved for name in nodes], now),
        jobs=jobs,
        settings=found,
        release=release,
        node_states=states,
        unread=tuple(unread),
        warnings=tuple(dict.fromkeys(notes)),
        matters=imported.matters,
        unmodelled=imported.unmodelled,
    )


def _clock(texts: Texts, found: Mapping[str, str]) -> float:
    """Return the controller's time, which is to the second; ours where it agrees."""
    match = re.match(r"Configuration data as of (\S+)", texts.config)
    theirs = Zone(wall=0.0).instant(match[1]) if match else None
    if theirs is None or abs(theirs - texts.wall) <= _SKEW:
        return texts.wall
    return theirs


def _of_clock(texts: Texts, now: float) -> Iterator[str]:
    if now != texts.wall:
        skew = now - texts.wall
        yield f"the controller's clock is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}; its time counts"


def _accounts(texts: Texts) -> Accounting:
    """Read what sacctmgr printed, through the reader of its files."""
    given = {"qos.txt": texts.qos, "associations.txt": texts.associations}
    with tempfile.TemporaryDirectory(prefix="makeway-") as folder:
        paths = []
        for name, text in given.items():
            if len(text.splitlines()) > 1:
                path = Path(folder, name)
                path.write_text(text, encoding="utf-8")
                paths.append(path)
        return read_accounting(paths) if paths else NO_ACCOUNTING


def _licences(text: str) -> dict[str, int]:
    found = {}
    for line in text.splitlines():
        fields = pairs(line)
        name, total = fields.get("LicenseName"), fields.get("Total", "")
        if name and total.isdigit():
            found[name] = int(total)
    return found


def _jobs(text: str, zone: Zone, unread: list[str]) -> Iterator[LiveJob]:
    """Yield the jobs that have not ended, by number; say which cannot be read."""
    found: dict[str, LiveJob] = {}
    doubtful: set[str] = set()
    for line in job_lines(text):
        try:
            record = job_record(line)
            jobs = live_jobs(record, zone, 0.0)
        except (UnreadableError, ValueError) as error:
            unread.append(f"a job is left out: {error}")
            continue
        for job in jobs:
            if job.id in found:
                doubtful.add(job.id)
            found[job.id] = job
    for job_id in sorted(doubtful):
        unread.append(f"a job is left out: {job_id} is there twice")
    yield from sorted(
        (job for job in found.values() if job.id not in doubtful),
        key=lambda job: (job.number, job.spec.array_task),
    )


def _of_jobs(jobs: Sequence[LiveJob]) -> Iterator[str]:
    """Yield what of the jobs is not modelled, each with some of them."""
    by_note: dict[str, list[str]] = {}
    for job in jobs:
        for note in job.notes:
            by_note.setdefault(note, []).append(job.id)
    for note, ids in by_note.items():
        more = ", ..." if len(ids) > _SHOWN else ""
        yield f"job{'s' if len(ids) > 1 else ''} {', '.join(ids[:_SHOWN])}{more}: {note}; left waiting"


def reserved_nodes(text: str, ours: str) -> list[tuple[str, list[str]]]:
    """Return each reservation that holds nodes now, with its nodes.

    :param ours: one that does not count.
    """
    found = []
    for line in text.splitlines():
        fields = pairs(line)
        name, nodes = fields.get("ReservationName"), known(fields.get("Nodes"))
        if name and name != ours and nodes and fields.get("State") == "ACTIVE":
            found.append((name, expand_hostlist(nodes)))
    return found


def state_of(
    config: Config,
    found: Mapping[str, str],
    jobs: Sequence[LiveJob],
    node_states: Mapping[str, str],
    reserved: Sequence[str],
    wall: float,
    at: Seconds = 0.0,
) -> State:
    """Return jobs and nodes as a state that an engine takes over."""
    parameters = found.get("SelectTypeParameters", "").upper()
    cores = "linear" not in found.get("SelectType", "")
    memory = "MEMORY" in parameters
    threads = {
        name: table.threads_per_core or 1 for table in config.node for name in expand_hostlist(table.name)
    }
    per_core = threads if "CORE" in parameters or "SOCKET" in parameters or cores else {}
    out = [name for name, state in node_states.items() if conf.out_of_service(state)]
    return State(
        at=at,
        cluster=config.cluster.name,
        wall=wall,
        down_nodes=fold_hostlist(dict.fromkeys([*out, *reserved])),
        jobs=tuple(
            standing(job, cores=cores, memory=memory, threads=lambda name: per_core.get(name, 1))
            for job in jobs
        ),
    )
