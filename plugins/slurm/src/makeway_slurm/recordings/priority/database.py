"""Follow literal sacctmgr commands: what the database holds after them."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway.config import QosTable
from makeway.errors import unknown
from makeway_slurm.readers.values import parse_time

Row = dict[str, str]
_OF_QOS = {"priority", "preempt", "gracetime", "preemptmode", "preemptexempttime", "flags", "name"}
_PLACE = {"cluster", "account", "parent", "partition", "name", "user", "description", "organization"}


@attrs.define
class Database:
    """Accounts, users and QOS, in the order in which they were added."""

    qos: dict[str, Row] = attrs.field(factory=lambda: {"normal": {}})
    accounts: dict[str, Row] = attrs.field(factory=dict)
    users: list[Row] = attrs.field(factory=list)

    def run(self, command: str) -> None:
        """Carry out one command.

        :raises ValueError: it is not known here.
        """
        words = shlex.split(command)
        verb, thing = (words[0].lower(), words[1].lower()) if len(words) > 1 else ("", "")
        if verb == "add" and thing == "qos":
            for name in words[2].split(","):
                self.qos[name] = _options(words[3:])
        elif verb == "add" and thing == "account":
            for name in words[2].lower().split(","):
                self.accounts[name] = _options(words[3:])
        elif verb == "add" and thing == "user":
            options = _options(words[3:])
            accounts = options["account"].lower().split(",")
            for name, account in itertools.product(words[2].split(","), accounts):
                self.users.append({**options, "user": name, "account": account})
        elif verb == "modify" and thing in ("user", "account", "qos"):
            self._modify(thing, words[2:])
        else:
            known = ("add qos", "add account", "add user", "modify qos", "modify account", "modify user")
            raise ValueError(unknown("command", f"{verb} {thing}", known))

    def _modify(self, thing: str, words: Sequence[str]) -> None:
        """Change what stands after ``set`` of all that is named before it, as ``name=a,b`` or as ``a,b``."""
        at = [word.lower() for word in words].index("set")
        where, options = _options(words[:at]), _options(words[at + 1 :])
        bare = [word for word in words[:at] if "=" not in word and word.lower() != "where"]
        names = (where.get("name") or where.get(thing) or ",".join(bare)).split(",")
        if thing == "user":
            account = where.get("account", "").lower()
            rows = [
                row
                for row in self.users
                if row["user"] in names and (not account or row["account"] in account.split(","))
            ]
        else:
            table = self.qos if thing == "qos" else self.accounts
            rows = [table[name] for name in (names if thing == "qos" else map(str.lower, names))]
        for row in rows:
            for key, value in options.items():
                if key.endswith("+"):  # qos+=high
                    row[key[:-1]] = ",".join(filter(None, (row.get(key[:-1], "normal"), value)))
                else:
                    row[key] = value

    # ------------------------------------------------------------------------------ results
    def qos_tables(self) -> tuple[QosTable, ...]:
        """Return the QOS as a configuration has them."""
        return tuple(_qos(name, row) for name, row in self.qos.items())

    def associations(self) -> list[dict[str, Any]]:
        """Return the tables of ``cluster.attributes.associations``."""
        tables: list[dict[str, Any]] = [{"Account": "root"}, {"Account": "root", "User": "root"}]
        for name, row in self.accounts.items():
            tables.append({"Account": name, "ParentName": row.get("parent", "root"), **_plain(row)})
        for row in self.users:
            inherited = {
                key: value for key, value in self.accounts[row["account"]].items() if key.startswith("max")
            }
            plain = _plain({**inherited, **row})
            allowed = row.get("qos") or self.accounts[row["account"]].get("qos") or "normal"
            tables.append(
                {
                    "Account": row["account"],
                    "User": row["user"],
                    "Partition": row.get("partition", ""),
                    "QOS": allowed,
                    **plain,
                }
            )
        return tables

    def home(self, user: str) -> str | None:
        """Return the account of a user's jobs that name none: the first that he was added to."""
        return next(
            (row["account"] for row in self.users if row["user"] == user), "root" if user == "root" else None
        )

    def default_qos(self, user: str, account: str | None) -> str:
        """Return the QOS of jobs that name none."""
        row = next(
            (
                each
                for each in self.users
                if each["user"] == user and each["account"] == (account or "").lower()
            ),
            {},
        )
        return row.get("defaultqos", "normal")


def _options(words: Iterable[str]) -> Row:
    found: Row = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            found[name.lower()] = value
    return found


def _plain(row: Mapping[str, str]) -> dict[str, str]:
    """Return shares, priority and limits; what says where it stands is said elsewhere."""
    return {
        key: value for key, value in row.items() if key not in _PLACE and key not in ("qos", "defaultqos")
    }


def _qos(name: str, row: Mapping[str, str]) -> QosTable:
    exempt = parse_time(row["preemptexempttime"]) if "preemptexempttime" in row else None
    mode = row.get("preemptmode", "").lower()
    attributes = {
        ("UsageFactor" if key == "usagefactor" else key): value
        for key, value in row.items()
        if key not in _OF_QOS
    }
    return QosTable(
        name=name,
        priority=int(row.get("priority", "0")),
        preempt=tuple(filter(None, row.get("preempt", "").split(","))),
        preempt_mode=(mode,) if mode and mode != "cluster" else None,
        grace_time=float(row.get("gracetime", "0")),
        exempt_time=None if exempt is None else float(exempt),
        flags=tuple(filter(None, row.get("flags", "").split(","))),
        attributes=attributes,
    )
