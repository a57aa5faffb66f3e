"""Build the tree of associations that fair share and limits go by (slurm-priority-and-limits 3.1, 6.1).

An association is a user in an account (in one partition, perhaps), or an account. They come as tables in the words
of sacctmgr, in ``cluster.attributes.associations``: Account, User, Partition, ParentName, Share, Priority, limits, and
what each has used (RawUsage, GrpWallRaw, GrpTRESRaw).

Slurm lists every user. ``User = "*"`` stands for those that are not listed, each with an association of its own: the
tree has `GUESTS` of them from the beginning, so that neither ranks nor books change, and gives them away by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway.errors import ConfigError, Problem, unknown
from makeway.model import Cluster, Job
from makeway_slurm.accounts.limits import Limits, inherited, parse_limits
from makeway_slurm.accounts.tres import parse_counts

ROOT = "root"
PARENT = "parent"
_PARENT_NUMBER = "2147483647"
"""How ``sacctmgr dump`` writes fairshare=parent."""
ATTRIBUTE = "associations"
"""Key of ``[cluster.attributes]`` that holds the tables."""
ANYBODY = "*"
"""The user of a table that stands for all who are not listed."""
GUESTS = 256
"""Associations that there are for these; who comes when all are given away has none."""
WHERE = f"cluster.attributes.{ATTRIBUTE}"


@attrs.define(eq=False)
class Association:
    """One node of the tree."""

    index: int
    """Place in the order in which the database lists them; ties of fair share go by it."""
    account: str
    """In small letters, as Slurm keeps it."""
    user: str = ""
    """Empty: it is an account."""
    partition: str = ""
    """Empty: all that have no association of their own."""
    parent: Association | None = None
    """The account above; None: it is root."""
    shares: int = 1
    by_parent: bool = False
    """Whether its share is ``parent``."""
    priority: int | None = None
    """None: the account's."""
    limits: Limits = attrs.field(factory=Limits)
    qos: tuple[str, ...] = ()
    """QOS that its jobs may have; empty: not said."""
    default: bool = False
    """Whether it is the user's default account."""
    spare: bool = False
    """Whether it waits for a user who is not listed."""
    guest: bool = False
    """Whether it was given to one."""
    start: Mapping[str, float] = attrs.field(factory=dict)
    """What it had used when the run begins: ``raw`` and TRES in seconds, ``wall`` in seconds."""
    children: list[Association] = attrs.field(factory=list)
    chain: tuple[Association, ...] = ()
    """Itself and all above, up to root."""
    fs_parent: Association | None = None
    """Whose children it competes with; None: it is root."""
    fs_children: list[Association] = attrs.field(factory=list)
    level_shares: int = 0
    """Sum of the shares that it competes with."""
    norm_shares: float = 0.0
    """Its share of the level (S of section 3)."""

    @property
    def name(self) -> str:
        """Return how messages call it."""
        return f"{self.user} in {self.account}" if self.user else self.account


class Tree:
    """All associations of a cluster."""

    def __init__(self, root: Association, nodes: Sequence[Association]) -> None:
        self.root = root
        self.nodes = tuple(nodes)
        """All of them, by index."""
        self.users = tuple(node for node in nodes if node.user)
        self._found: dict[tuple[str, str, str], Association] = {
            (node.user, node.account, node.partition): node for node in nodes
        }
        self._home: dict[str, Association] = {}
        for node in self.users:
            if not node.partition and (node.default or node.user not in self._home):
                self._home[node.user] = node
        self._spare = {
            account: [node for node in reversed(self.users) if node.spare and node.account == account]
            for account in dict.fromkeys(node.account for node in self.users if node.spare)
        }
        self.accounts = frozenset(node.account for node in nodes)
        """All accounts, in lower case."""
        self.most_priority = max((priority_of(node) for node in nodes), default=0)

    def of(self, user: str, account: str | None, partition: str) -> Association | None:
        """Return the association that a job is charged to; None: there is none."""
        if account is None:
            home = self._home.get(user)
            if home is None:
                return self.guest(user, next(iter(self._spare), ""))
            account = home.account
        low = account.lower()
        return (
            self._found.get((user, low, partition))
            or self._found.get((user, low, ""))
            or self.guest(user, low)
        )

    def guest(self, user: str, account: str) -> Association | None:
        """Give an association to a user who is not listed; None: there is none for such users, or none left."""
        left = self._spare.get(account)
        if not left or not user:
            return None
        node = left.pop()
        node.user, node.spare, node.guest = user, False, True
        self._found[user, account, ""] = node
        self._home.setdefault(user, node)
        return node

    def of_job(self, job: Job) -> Association | None:
        """Return the association of a job in the partition where it runs or is tried."""
        return self.of(job.user, job.account, job.partition.name)


def priority_of(node: Association) -> int:
    """Return the Priority of an association, the account's where it has none of its own."""
    return next((each.priority for each in node.chain if each.priority is not None), 0)


def tree_of(cluster: Cluster) -> Tree | None:
    """Return the tree of a cluster; None: it has no associations.

    :raises ConfigError: with all that is wrong with the tables.
    """
    tables = cluster.attributes.get(ATTRIBUTE)
    return build(tables) if tables else None


def build(tables: Iterable[Mapping[str, Any]]) -> Tree:
    """Build the tree of tables in sacctmgr's words.

    :raises ConfigError: with all that is wrong.
    """
    problems: list[Problem] = []
    rows = [({_key(key): value for key, value in table.items()}, at) for at, table in enumerate(tables)]
    found: list[Association] = []
    parents: dict[int, str] = {}
    for row, at in rows:
        node = _node(row, at, problems)
        if node is not None:
            several = _guests(node) if node.user == ANYBODY else [node]
            parents.update(
                (id(each), str(row.get("parentname") or row.get("parent") or "").lower()) for each in several
            )
            found += several
    accounts: dict[str, Association] = {}
    for node in found:
        if not node.user and accounts.setdefault(node.account, node) is not node:
            problems.append(Problem(WHERE, f"account {node.account!r} is there twice"))
    root = accounts.get(ROOT)
    if root is None:
        root = Association(index=-1, account=ROOT)
        accounts[ROOT] = root
        found.insert(0, root)
    if not any(node.user == ROOT and node.account == ROOT for node in found):
        # Slurm makes it; it counts in the denominator of the first level (3.1 no. 4).
        found.insert(1, Association(index=-1, account=ROOT, user=ROOT))
    for node in found:
        if node is root:
            continue
        above = node.account if node.user else parents.get(id(node)) or ROOT
        node.parent = accounts.get(above)
        if node.parent is None:
            problems.append(Problem(WHERE, f"{node.name}: {unknown('account', above, accounts)}"))
    seen: set[tuple[str, str, str]] = set()
    for node in found:
        key = (node.user, node.account, node.partition)
        if node.user and key in seen:
            problems.append(Problem(WHERE, f"{node.name} is there twice"))
        seen.add(key)
    if not problems:
        problems += _loops(found)
    if problems:
        raise ConfigError("config", problems)
    for at, node in enumerate(found):
        node.index = at
        if node.parent is not None:
            node.parent.children.append(node)
    _link(root, found)
    return Tree(root, found)


def _guests(template: Association) -> list[Association]:
    """Return the associations of users who are not listed."""
    return [attrs.evolve(template, user=f"{ANYBODY}{at}", spare=True) for at in range(GUESTS)]


def _key(word: str) -> str:
    return word.replace(" ", "").lower()


def _node(row: Mapping[str, Any], at: int, problems: list[Problem]) -> Association | None:
    where = f"{WHERE}[{at}]"
    account = str(row.get("account", "")).strip().lower()
    if not account:
        problems.append(Problem(f"{where}.Account", "missing"))
        return None
    try:
        limits = parse_limits(row)
        shares, by_parent = _shares(str(row.get("share", row.get("fairshare", "1"))))
        start = _start(row)
        priority = str(row.get("priority", "")).strip()
        return Association(
            index=at,
            account=account,
            user=str(row.get("user", "")),
            partition=str(row.get("partition", "")),
            shares=shares,
            by_parent=by_parent,
            priority=int(priority) if priority else None,
            limits=limits,
            qos=tuple(filter(None, (word.strip() for word in str(row.get("qos", "")).split(",")))),
            default=str(row.get("default", "")).lower() in ("yes", "true", "1"),
            start=start,
        )
    except ValueError as error:
        problems.append(Problem(where, str(error)))
        return None


def _shares(text: str) -> tuple[int, bool]:
    word = text.strip().lower() or "1"
    if word in (PARENT, _PARENT_NUMBER):
        return 0, True
    if not word.isdigit():
        raise ValueError(f"Share: got {text!r:.40}; expected a number of shares, or parent")
    return int(word), False


def _start(row: Mapping[str, Any]) -> dict[str, float]:
    """Return what an association had used: seconds, of RawUsage, GrpWallRaw (minutes), GrpTRESRaw (minutes)."""
    found: dict[str, float] = {}
    if row.get("rawusage") not in (None, ""):
        found["raw"] = float(row["rawusage"])
    if row.get("grpwallraw") not in (None, ""):
        found["wall"] = float(row["grpwallraw"]) * 60.0
    for name, count in parse_counts(str(row.get("grptresraw", ""))).items():
        found[name] = count * 60.0
    return found


def _loops(nodes: Sequence[Association]) -> list[Problem]:
    found = []
    for node in nodes:
        steps, above = 0, node.parent
        while above is not None and steps <= len(nodes):
            steps, above = steps + 1, above.parent
        if above is not None:
            found.append(Problem(WHERE, f"{node.name} stands below itself"))
            break
    return found


def _link(root: Association, nodes: Sequence[Association]) -> None:
    """Find chains, and which associations compete for which shares (3.1)."""
    for node in _down(root):
        node.chain = (node, *(node.parent.chain if node.parent is not None else ()))
        above = node.parent
        while above is not None and above.by_parent and above.parent is not None:
            above = above.parent
        node.fs_parent = above
    for node in _down(root):
        if node.parent is not None:
            node.limits = inherited(node.limits, node.parent.limits)
            node.qos = node.qos or node.parent.qos
    for node in nodes:
        if node.fs_parent is not None and not (node.by_parent and not node.user):
            node.fs_parent.fs_children.append(node)
    for account in nodes:
        total = sum(child.shares for child in account.fs_children if not child.by_parent)
        for child in account.fs_children:
            child.level_shares = total
    for node in _down(root):
        if node.parent is None:
            continue
        if node.by_parent:
            node.norm_shares = node.parent.norm_shares
            node.level_shares = node.parent.level_shares
        else:
            node.norm_shares = node.shares / node.level_shares if node.level_shares else 0.0


def _down(root: Association) -> Iterable[Association]:
    """Yield root and all below it, those above first."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)
