"""Resolve groups of users and hosts (lsb.users, lsb.hosts), nested and with ``all`` (spec lsf 9)."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import attrs

from makeway import bitmap
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

    def members(self, text: str) -> frozenset[str]:
        """Return the users in a list of users and groups; other names stand for themselves."""
        found: set[str] = set()
        for word in text.replace("(", " ").replace(")", " ").split():
            found |= self.users(word) if word in self.user_groups else {word}
        return frozenset(found)

    def host_bits(self, text: str) -> NodeBits:
        """Return the hosts in a list of hosts and groups; ``~name`` takes one out."""
        listed, left_out = 0, 0
        words = text.replace("(", " ").replace(")", " ").split()
        for word in words:
            name = word.lstrip("~").partition("+")[0]
            bits = self._bits(name)
            if word.startswith("~"):
                left_out |= bits
            else:
                listed |= bits
        if left_out and not listed:
            listed = bitmap.full(len(self.cluster.nodes))
        return listed & ~left_out

    def _bits(self, name: str) -> NodeBits:
        if name == "all":
            return bitmap.full(len(self.cluster.nodes))
        names = _members(name, self.host_groups, frozenset()) if name in self.host_groups else {name}
        found = 0
        for each in sorted(names):
            for host in _expanded(each):
                node = self.cluster.node(host)
                found |= 1 << node.index if node is not None else 0
        return found


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
