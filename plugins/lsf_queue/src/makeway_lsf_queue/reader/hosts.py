"""Leave out hosts that cannot be, each with file and line, before anything is made of them (lsf 9.2 no. 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from makeway.errors import nearest
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway_lsf_queue.groups import hosts_in
from makeway_lsf_queue.reader.tables import Draft

_WORDS = ("all", "others", "allremote", "none")
"""What stands for hosts in a list, without being the name of one."""


def drop_wrong_hosts(draft: Draft, said: list[str]) -> None:
    """Drop rows, members of groups, and hosts of queues that are no names, or the names of no host.

    A host that is not in lsb.hosts is one all the same if that has a row ``default``, or is not there at all.
    """
    for name in [name for name in draft.hosts if name != "default" and name not in draft.host_groups]:
        why = _why_no_name(name)
        if why:
            del draft.hosts[name]
            place = draft.places.get(("lsb.hosts", name, ""), "lsb.hosts")
            said.append(f"{place}: HOST_NAME: {why}; the row is ignored")
    listed = [name for name in draft.hosts if name != "default"]
    known = set(hosts_in(" ".join(listed), draft.host_groups, ())) if listed else set()
    checker = _Checker(draft.host_groups, known, closed=bool(draft.hosts) and "default" not in draft.hosts)
    for group, members in draft.host_groups.items():
        place = draft.places.get(("HOSTGROUP", group, ""), "lsb.hosts")
        draft.host_groups[group] = tuple(checker.kept(members, f"{place}: {group}", said))
    for name, table in list(draft.queues.items()):
        if "HOSTS" not in table:
            continue
        place = draft.places.get(("queue", name, "HOSTS"), "lsb.queues")
        words = table["HOSTS"].replace("(", " ").replace(")", " ").split()
        kept = checker.kept(words, f"{place}: HOSTS", said)
        if kept:
            table["HOSTS"] = " ".join(kept)
        else:
            del draft.queues[name]
            said.append(f"{place}: HOSTS: no host is left; queue {name} is dropped")


class _Checker:
    """Knows which hosts and groups there are."""

    def __init__(self, groups: Iterable[str], known: set[str], *, closed: bool) -> None:
        self._groups = set(groups)
        self._known = known
        self._closed = closed
        """Whether lsb.hosts lists every host that there is."""

    def kept(self, words: Sequence[str], where: str, said: list[str]) -> list[str]:
        """Return the words that name hosts or groups."""
        found, besides = [], []
        for word in words:
            name = word.lstrip("~").partition("+")[0]
            if name in _WORDS or name in self._groups:
                found.append(word)
                continue
            why = _why_no_name(name)
            strangers = [] if why else [host for host in expand_hostlist(name) if host not in self._known]
            if strangers and self._closed:
                close = nearest(strangers[0], sorted(self._known | self._groups))
                why = f"names the host {strangers[0]!r}, which does not exist{close}"
            if why:
                said.append(f"{where}: {why}; it is ignored")
                continue
            found.append(word)
            besides += [] if word.startswith("~") else strangers
        if besides and self._known:
            names = fold_hostlist(dict.fromkeys(besides))
            said.append(f"{where}: not in lsb.hosts: {names}; its row default is taken")
        return found


def _why_no_name(name: str) -> str:
    """Return why a word cannot be a host, or hosts; empty: it can."""
    try:
        fold_hostlist(expand_hostlist(name))
    except ValueError as error:
        return str(error).removeprefix(f"host list {name!r}: ")
    return ""


def places_of(nodes: Sequence[Mapping[str, object]], draft: Draft) -> dict[str, str]:
    """Return path of a node -> line of lsb.hosts, where that names it."""
    at: dict[str, str] = {}
    for row in draft.hosts:
        place = draft.places.get(("lsb.hosts", row, ""))
        if place is not None and row != "default":
            for host in hosts_in(row, draft.host_groups, ()):
                at.setdefault(host, place)
    return {
        f"node[{index}]": at[name] for index, node in enumerate(nodes) if (name := str(node["name"])) in at
    }
