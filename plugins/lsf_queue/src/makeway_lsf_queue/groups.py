"""Resolve groups of users and hosts (lsb.users, lsb.hosts), nested and with ``all`` (lsf 9)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import attrs

from makeway.bitmap import NodeBits
from makeway.hostlist import expand_hostlist
from makeway.model import Cluster
from makeway_lsf_queue.site import Site


@attrs.frozen(eq=False)
class Groups:
    """Groups by name."""

    cluster: Cluster
    user_groups: Mapping[str, tuple[str, ...]]
    host_groups: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, site: Site) -> Groups:
        """Return the groups of a site."""
        return cls(site.cluster, site.settings.user_groups, site.settings.host_groups)

    def users(self, group: str) -> frozenset[str]:
        """Return the users of a group, those of groups inside it too."""
        return _members(group, self.user_groups, frozenset())

    def lists(self, text: str, name: str) -> bool:
        """Whether a list of users, groups and queues names `name`: directly, by ``all``, and not by ``~``."""
        named, left_out = self._listed(text)
        return name not in left_out and (named is None or name in named)

    def _listed(self, text: str) -> tuple[frozenset[str] | None, frozenset[str]]:
        """Return which names are listed (None: all), and which are taken out again."""
        named, left_out = set[str](), set[str]()
        words = text.replace("(", " ").replace(")", " ").split()
        for word in words:
            bare = word.lstrip("~")
            members = self.users(bare) if bare in self.user_groups else {bare}
            (left_out if word.startswith("~") else named).update(members)
        no_limit = "all" in named or not named
        return None if no_limit else frozenset(named), frozenset(left_out)

    def host_bits(self, text: str) -> NodeBits:
        """Return the hosts in a list of hosts and groups."""
        every = [node.name for node in self.cluster.nodes]
        found = 0
        for name in hosts_in(text, self.host_groups, every):
            node = self.cluster.node(name)
            found |= 1 << node.index if node is not None else 0
        return found


def hosts_in(text: str, groups: Mapping[str, tuple[str, ...]], every: Sequence[str]) -> list[str]:
    """Return the hosts in a list: names, ``name+preference``, groups, ``all``, ``~name`` to take one out."""
    listed: dict[str, None] = {}
    left_out: set[str] = set()
    words = text.replace("(", " ").replace(")", " ").split()
    for word in words:
        name = word.lstrip("~").partition("+")[0]
        if name in ("all", "others", "allremote"):
            names: Sequence[str] = every if name != "allremote" else ()
        elif name in groups:
            names = sorted(_members(name, groups, frozenset()))
            if "all" in names:
                names = every
        else:
            names = _expanded(name)
        if word.startswith("~"):
            left_out.update(names)
        else:
            listed.update(dict.fromkeys(names))
    if left_out and not listed:
        listed = dict.fromkeys(every)
    return [name for name in listed if name not in left_out]


def preferred(
    text: str, groups: Mapping[str, tuple[str, ...]], every: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """Return the hosts of a list by preference, the largest number after ``+`` first; empty: it states none.

    A word without a number has 0. Hosts that are named count by their name, all others by ``all`` or ``others``.
    """
    words = text.replace("(", " ").replace(")", " ").split()
    if not any("+" in word for word in words):
        return ()
    own = [word for word in words if not word.startswith("~")]
    own.sort(key=lambda word: word.partition("+")[0] in ("all", "others"))
    level: dict[str, int] = {}
    for word in own:
        number = word.partition("+")[2]
        for host in hosts_in(word, groups, every):
            level.setdefault(host, int(number) if number.isdecimal() else 0)
    kept = [host for host in hosts_in(text, groups, every) if host in level]
    numbers = sorted({level[host] for host in kept}, reverse=True)
    return tuple(tuple(host for host in kept if level[host] == number) for number in numbers)


def _members(group: str, groups: Mapping[str, tuple[str, ...]], seen: frozenset[str]) -> frozenset[str]:
    if group in seen:
        return frozenset()  # a group inside itself
    found: set[str] = set()
    for name in groups.get(group, ()):
        found |= _members(name, groups, seen | {group}) if name in groups else {name}
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def _expanded(name: str) -> tuple[str, ...]:
    try:
        return tuple(expand_hostlist(name))
    except ValueError:
        return (name,)
