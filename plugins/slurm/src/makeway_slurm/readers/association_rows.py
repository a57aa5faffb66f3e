"""Collect accounts and users with their shares, limits and usage, from whatever prints them, in any order.

The tables of ``sacctmgr -P show assoc tree``, ``show account withassoc`` and ``show user withassoc``, a dump,
``sshare -a -l -P -m`` and ``scontrol -o show assoc_mgr`` each tell a part; what one leaves out another may say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import attrs

from makeway_slurm.accounts.limits import OLD_WORDS, WORDS

Key = tuple[str, str, str, str]
"""Cluster, account, user, partition."""

SPELLED: Mapping[str, str] = {
    "share": "Share",
    "fairshare": "Share",
    "rawshares": "Share",
    "priority": "Priority",
    "parentname": "ParentName",
    "rawusage": "RawUsage",
    "grptresraw": "GrpTRESRaw",
    "grpwallraw": "GrpWallRaw",
}
"""Words beside limits that are kept, in small letters, and as the configuration has them."""
KEPT = frozenset((*SPELLED, *WORDS, *OLD_WORDS))
"""Words of an association that become configuration."""
_THRESHOLDS = ("usagethres", "usagethreshold", "minpriothres", "minpriothresh", "minpriothreshold")
"""Columns are cut off in some releases."""
OF_QOS = frozenset(("usagefactor", "limitfactor", *_THRESHOLDS, *WORDS))
"""Words of a QOS that become attributes."""
ROOT = "root"
_RECORD = re.compile(r"(?<![\w/])(\w++(?:/\w++)*+)=(.*?)(?=\s\w++(?:/\w++)*+=|$)")
_COUNTED = re.compile(r"(?<![\w/])([\w/]++)=[^(,=]*+\(([0-9.]++)\)")


def is_kept(word: str, value: str) -> bool:
    """Whether a word of an association says anything that is kept."""
    return word in KEPT and value not in ("", "-1")


@attrs.define
class Rows:
    """What is known of each association, in the order in which it was first named."""

    found: dict[Key, dict[str, str]] = attrs.field(factory=dict)
    known_parents: bool = False
    """Whether any file says which account stands below which."""
    usage: bool = False
    """Whether any file says what was used."""
    _path: list[str] = attrs.field(factory=list)
    """Accounts above the last line of a table that is indented."""

    def begin(self) -> None:
        """A new file begins."""
        self._path = []

    def add(
        self,
        cluster: str,
        account: str,
        user: str,
        partition: str,
        words: Mapping[str, str],
        depth: int = 0,
    ) -> None:
        """Take in what one line says.

        :param words: in small letters, without blanks.
        :param depth: by how many blanks the account is indented.
        """
        key = (cluster, account.lower(), user, partition)
        row = self.found.setdefault(key, {})
        for word, value in words.items():
            if is_kept(word, value):
                row[SPELLED.get(word, word)] = value
                self.usage = self.usage or word == "rawusage"
        if user:
            return
        if words.get("parentname"):
            self.known_parents = True
        elif depth:
            self.known_parents = True
            del self._path[depth:]
            row.setdefault("ParentName", self._path[-1] if self._path else ROOT)
        else:
            self._path = []
        if len(self._path) <= depth:
            self._path += [account.lower()] * (depth + 1 - len(self._path))
        self._path[depth] = account.lower()

    def tables(self, cluster: str, default_accounts: Mapping[str, str]) -> list[dict[str, str]]:
        """Return what ``cluster.attributes.associations`` holds, accounts first; only what some file lists as such.

        :param cluster: whose associations count; a file that names no cluster counts too.
        """
        mine = [(key, row) for key, row in self._joined(cluster) if key[1]]
        accounts = {key[1] for key, _ in mine if not key[2]}
        tables = [_table(key, row) for key, row in mine if not key[2]]
        missing = dict.fromkeys(key[1] for key, _ in mine if key[1] not in accounts)
        tables += [{"Account": name} for name in missing if name != ROOT]
        for key, row in mine:
            if key[2]:
                table = _table(key, row)
                if default_accounts.get(key[2], "").lower() == key[1]:
                    table["default"] = "yes"
                tables.append(table)
        return tables

    def _joined(self, cluster: str) -> Iterator[tuple[Key, dict[str, str]]]:
        """Yield the associations of one cluster; what a file without clusters says is joined to them."""
        names = {key[0] for key in self.found if key[0]}
        chosen = cluster if cluster in names or len(names) != 1 else next(iter(names))
        joined: dict[Key, dict[str, str]] = {}
        for key, row in self.found.items():
            if key[0] in ("", chosen):
                joined.setdefault(("", *key[1:]), {}).update(row)
        yield from joined.items()


def _table(key: Key, row: Mapping[str, str]) -> dict[str, str]:
    found = {"Account": key[1], **({"User": key[2]} if key[2] else {})}
    if key[3]:
        found["Partition"] = key[3]
    return {**found, **row}


# --------------------------------------------------------------------------- scontrol show assoc_mgr
def is_assoc_mgr(line: str) -> bool:
    """Say by its first line whether a text is one of ``scontrol -o show assoc_mgr``."""
    if line.startswith("ClusterName="):
        return " Account=" in line
    return line.startswith(("Current Association Manager state", "Association Records"))


def read_assoc_mgr(lines: Iterable[str], rows: Rows) -> dict[str, dict[str, str]]:
    """Take in the usage of associations; return that of QOS, by name."""
    qos: dict[str, dict[str, str]] = {}
    for line in lines:
        fields: dict[str, str] = dict(_RECORD.findall(line.strip()))
        words = _usage_of(fields)
        if "Account" in fields and "ClusterName" in fields:
            user = fields.get("UserName", "").partition("(")[0]
            parent = fields.get("ParentAccount", "").partition("(")[0]
            if parent and not user:
                words["parentname"] = parent
            rows.add(fields["ClusterName"], fields["Account"], user, fields.get("Partition", ""), words)
        elif "QOS" in fields:
            told = {"RawUsage": words.get("rawusage", ""), "GrpWallRaw": words.get("grpwallraw", "")}
            qos[fields["QOS"].partition("(")[0]] = {name: value for name, value in told.items() if value}
    return qos


def _usage_of(fields: Mapping[str, str]) -> dict[str, str]:
    """Return what one record says was used: seconds, minutes of wall time, TRES-minutes."""
    words: dict[str, str] = {}
    used = fields.get("UsageRaw/Norm/Efctv", fields.get("UsageRaw", "")).partition("/")[0]
    if used:
        words["rawusage"] = used
    wall = re.search(r"\(([0-9.]+)\)", fields.get("GrpWall", ""))
    if wall is not None:
        words["grpwallraw"] = wall[1]
    counted = _COUNTED.findall(fields.get("GrpTRESMins", ""))
    if counted:
        words["grptresraw"] = ",".join(f"{name}={int(float(count))}" for name, count in counted)
    return words
