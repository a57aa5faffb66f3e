"""Put what accounting says of QOS and users into a configuration.

The configuration wins: a QOS that it describes itself stays as it is, so that a changed one can be compared.
One that it only names is described by accounting, and QOS that it lacks are added.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.config import Config, QosTable
from makeway.errors import ConfigError, Problem
from makeway.foreign import Knob
from makeway.model import NOTHING
from makeway.readers.api import Loaded
from makeway_slurm.accounts.tree import ATTRIBUTE, build
from makeway_slurm.readers.association_rows import Rows
from makeway_slurm.readers.priority import NAME as PRIORITY
from makeway_slurm.readers.qos_knobs import qos_knobs
from makeway_slurm.reservations.tables import ATTRIBUTE as RESERVATIONS

RESERVING = "reservations/slurm"
FALLBACK = "normal"
"""QOS of jobs whose association has no default and allows several."""
_SHOWN = 12


# ------------------------------------------------------------------------------- what is known
@attrs.frozen(kw_only=True)
class Association:
    """What a user may do in one account, inherited values filled in."""

    cluster: str = ""
    """Empty: the file does not say."""
    account: str
    user: str
    partition: str = ""
    """Empty: all that have no association of their own."""
    default_qos: str = ""
    """Empty: none is set."""
    allowed: tuple[str, ...] = ()
    where: str = attrs.field(default="", eq=False)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what Slurm tells associations apart by."""
        return (self.cluster, self.user, self.account, self.partition)

    @property
    def qos(self) -> str | None:
        """Return the QOS of a job that names none. None: Slurm would not take such a job."""
        if self.default_qos:
            return self.default_qos
        if len(self.allowed) == 1:
            return self.allowed[0]
        return FALLBACK if FALLBACK in self.allowed else None


@attrs.frozen(kw_only=True)
class Accounting:
    """All that the files of accounting say."""

    source: str = "accounting"
    """The files, for messages."""
    qos: tuple[QosTable, ...] = ()
    associations: tuple[Association, ...] = ()
    default_accounts: Mapping[str, str] = NOTHING
    """By user, where it is known."""
    rows: Rows = attrs.field(factory=Rows)
    """Shares, limits and usage of accounts and users."""
    reservations: tuple[Mapping[str, str], ...] = ()
    """Tables of ``cluster.attributes.reservations``."""
    warnings: tuple[str, ...] = ()
    places: Mapping[str, str] = NOTHING
    """``qos[3].preempt``, counted in `qos`, -> ``file:line Preempt``."""

    def merged(self, config: Config) -> Loaded:
        """Return `config` with it, see `merged`."""
        return merged(config, self)

    def knobs(self, config: Config, files: Sequence[Path]) -> Sequence[Knob]:
        """Return what may be changed of QOS, see `makeway_slurm.readers.qos_knobs`."""
        return [*qos_knobs(config, files)]


NO_ACCOUNTING = Accounting()


# ------------------------------------------------------------------------------- default QOS
def default_qos(accounting: Accounting, cluster: str) -> tuple[dict[str, str], list[str]]:
    """Return the QOS of jobs that name none, as ``[workload.default_qos]`` has it, and warnings.

    A key that says the same as a shorter one is left out.

    :param cluster: whose associations count if the files hold those of several.
    :raises ConfigError: none of several clusters is this one.
    """
    found: dict[str, str] = {}
    unsure: list[str] = []
    of_user: dict[str, list[Association]] = {}
    for each in _of_cluster(accounting, cluster):
        of_user.setdefault(each.user, []).append(each)
    for user, associations in of_user.items():
        general = [each for each in associations if not each.partition]
        account = accounting.default_accounts.get(user)
        home = _home(general, account)
        if home is not None and home.qos is not None:
            found[user] = home.qos
        if home is None and account is None and general:
            unsure.append(user)
        for each in sorted(associations, key=lambda one: bool(one.partition)):
            _add(found, each)
    if not unsure:
        return found, []
    text = (
        f"default account not known of {_few(unsure)}: their jobs that name no account get no QOS; "
        "`sacctmgr -P show user withassoc` says it"
    )
    return found, [text]


def _of_cluster(accounting: Accounting, cluster: str) -> list[Association]:
    """Return the associations of one cluster; a single one in the files is taken whatever its name."""
    clusters = list(dict.fromkeys(each.cluster for each in accounting.associations))
    if len(clusters) > 1:
        if cluster not in clusters:
            text = f"associations of {_few(clusters)}, none of {cluster!r}; write one: where cluster=NAME"
            raise ConfigError(accounting.source, [Problem("", text)])
        return [each for each in accounting.associations if each.cluster == cluster]
    return list(accounting.associations)


def _home(general: Sequence[Association], account: str | None) -> Association | None:
    """Return the association of jobs that name no account. None: not known, or there is none.

    :param account: the user's default one. None: not known.
    """
    if account is None and len({each.qos for each in general}) == 1:
        return general[0]
    return next((each for each in general if each.account == account), None)


def _add(found: dict[str, str], each: Association) -> None:
    """Enter an association unless a shorter key says the same."""
    if each.qos is None:
        return
    keys = [each.user, f"{each.user}/{each.account}"]
    if each.partition:
        keys.append(f"{keys[-1]}/{each.partition}")
    key = keys.pop()
    shorter = next((found[other] for other in reversed(keys) if other in found), None)
    if each.qos != shorter:
        found[key] = each.qos


# ------------------------------------------------------------------------------- merging
def merged(config: Config, accounting: Accounting) -> Loaded:
    """Return `config` with the QOS and the users' default QOS of accounting; it is not validated.

    :raises ConfigError: the associations are of other clusters.
    """
    own = {table.name: table for table in config.qos}
    theirs = {table.name: table for table in accounting.qos}
    bare = {name for name, table in own.items() if table == QosTable(name=name)}
    users, warnings = default_qos(accounting, config.cluster.name)
    kept = [name for name in own if name in theirs and name not in bare and own[name] != theirs[name]]
    if kept:
        text = "described by the configuration, which counts"
        warnings.append(f"QOS {_few(kept)}: {text}; {accounting.source} differs")
    known = own | {name: theirs[name] for name in theirs if name not in kept}
    missing = [name for name in dict.fromkeys(users.values()) if name not in known]
    if missing:
        warnings.append(
            f"QOS {_few(missing)}: some users' default, but not described; each stands in the config "
            "without any rule (`sacctmgr -P show qos` describes them)"
        )
    tables = (*known.values(), *(QosTable(name=name) for name in missing))
    workload = attrs.evolve(config.workload, default_qos={**users, **config.workload.default_qos})
    associations, told, without_usage = _associations(config, accounting)
    warnings += told
    reserved: dict[str, Any] = {}
    policy = config.policy
    if accounting.reservations:
        reserved[RESERVATIONS] = [dict(table) for table in accounting.reservations]
        if RESERVING not in policy.plugins:
            policy = attrs.evolve(policy, plugins=(*policy.plugins, RESERVING))
    at = {table.name: index for index, table in enumerate(tables) if table.name not in kept}
    return Loaded(
        config=attrs.evolve(
            config,
            qos=tables,
            workload=workload,
            policy=policy,
            cluster=attrs.evolve(
                config.cluster, attributes={**associations, **reserved, **config.cluster.attributes}
            ),
        ),
        warnings=(*accounting.warnings, *warnings),
        without_usage=without_usage,
        places=dict(_moved(accounting, at)),
    )


_FAIRSHARE = "weight_fairshare"


def _associations(
    config: Config, accounting: Accounting
) -> tuple[dict[str, Any], Sequence[str], tuple[str, ...]]:
    """Return the tree of accounts as an attribute of the cluster, what is missing for fair share, and of usage."""
    tables = accounting.rows.tables(config.cluster.name, accounting.default_accounts)
    settings = config.policy.settings.get(PRIORITY, {})
    if not tables or not any(len(table) > 2 or "User" in table for table in tables):
        return {}, (), ()
    build(tables)
    warnings: list[str] = []
    without_usage: tuple[str, ...] = ()
    if settings.get(_FAIRSHARE) and not accounting.rows.known_parents:
        warnings.append(
            f"{accounting.source}: no file says which account stands below which, so that all stand below root; "
            "`sacctmgr -P show assoc tree` does"
        )
    if settings.get(_FAIRSHARE) and not accounting.rows.usage:
        without_usage = (
            f"{accounting.source}: no file says what everybody had used when the replay begins (`sshare -a -l -P -m`, "
            "taken then): fair share of the first one to two half lives is wrong unless --warm-up works it out",
        )
    return {ATTRIBUTE: tables}, warnings, without_usage


def _moved(accounting: Accounting, at: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the places of QOS where these stand in the config now."""
    for path, place in accounting.places.items():
        number, bracket, rest = path.removeprefix("qos[").partition("]")
        name = accounting.qos[int(number)].name
        if name in at:
            yield f"qos[{at[name]}{bracket}{rest}", place


def _few(names: Iterable[str]) -> str:
    """Name a dozen at most."""
    listed = list(names)
    more = len(listed) - _SHOWN
    first = ", ".join(name or "a cluster without a name" for name in itertools.islice(listed, _SHOWN))
    return f"{first} and {more:,} more" if more > 0 else first
