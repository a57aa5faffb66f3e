"""Read what sacctmgr writes: QOS, and which QOS users get by default.

Two kinds of text, told apart by their first line: tables (``sacctmgr -P show qos``, ``show assoc``,
``show user withassoc``), and the file of ``sacctmgr dump``. A dump holds clusters, accounts and users,
but no QOS: those come from the table. Headers are as Slurm 22.05 and its followers print them.

Section numbers are those of slurm-preemption.md. All problems are reported at once, with file and line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from makeway.config import Config, NodeTable, PartitionTable, QosTable, validate
from makeway.errors import ConfigError, Problem, place_of
from makeway.readers.lines import Line, read_head, read_lines, shown
from makeway_slurm.accounts.limits import parse_limits
from makeway_slurm.readers import reservations
from makeway_slurm.readers import sacctmgr_names as names
from makeway_slurm.readers.accounting import Accounting, Association
from makeway_slurm.readers.association_rows import KEPT, OF_QOS, Rows, is_assoc_mgr, read_assoc_mgr
from makeway_slurm.readers.conf_parts import Setting, SlurmConf
from makeway_slurm.readers.draft import Draft, in_one_line
from makeway_slurm.readers.partitions import mode_words
from makeway_slurm.readers.sacctmgr_dump import looks_so, read_dump
from makeway_slurm.readers.values import parse_count, parse_time

_KINDS = "`sacctmgr -P show qos`, `sacctmgr -P show assoc`, or a file of `sacctmgr dump`"
_SAYS_QOS = frozenset(map(names.canonical, (*names.QOS, *OF_QOS)))
_ALLOWED = f"of QOS: Name with {', '.join(names.QOS[1:])} or limits; of reservations: {reservations.NEEDED}"
_MOST_PRIORITY = 2**32 - 1
_MOST_COLUMNS = 1000
_MOST_PROBLEMS = 1000
_CLUSTERS_OWN = ("", "off", "cluster", "disabled")
"""Modes that mean the cluster's on a QOS (3.1)."""

_USAGE: tuple[str, ...] = ("rawusage", "grptresraw")
_DEPTH = "depth"
"""Stands beside the columns: by how many blanks the account is indented."""

Row = dict[str, Setting]
"""One line of a table by canonical column."""


def read_accounting(paths: Iterable[str | os.PathLike[str]]) -> Accounting:
    """Read files that sacctmgr wrote; together they describe all QOS that their QOS name.

    :raises ConfigError: with all problems, each with file and line.
    """
    files = [Path(path) for path in paths]
    found = _Found(Draft(SlurmConf(source=", ".join(map(str, files)))))
    for path in files:
        found.read(path)
    return found.result()


@attrs.define(eq=False)
class _Found:
    """Collects over files; nothing that a line says raises, all is noted in the draft."""

    draft: Draft
    qos: dict[str, QosTable] = attrs.field(factory=dict)
    associations: dict[tuple[str, ...], Association] = attrs.field(factory=dict)
    default_accounts: dict[str, str] = attrs.field(factory=dict)
    rows: Rows = attrs.field(factory=Rows)
    qos_usage: dict[str, dict[str, str]] = attrs.field(factory=dict)
    reservations: list[reservations.Row] = attrs.field(factory=list)

    def read(self, path: Path) -> None:
        """Read one file.

        :raises ConfigError: it cannot be read at all.
        """
        read_head(path)  # empty and binary files are told there
        lines = (line for line in read_lines(path) if line[1].strip())
        comments: list[Line] = []
        first = next(lines, (1, ""))
        while first[1].lstrip().startswith("#"):
            comments.append(first)
            first = next(lines, (first[0], ""))
        self.rows.begin()
        if looks_so(first[1]) or (comments and not first[1]):
            for each in read_dump(_all(first, lines), path.name, self.draft, self.rows):
                self._add(each.association, each.default_account)
            return
        if is_assoc_mgr(first[1]):
            self.qos_usage |= read_assoc_mgr((line[1] for line in _all(first, lines)), self.rows)
            return
        if reservations.is_scontrol(first[1]):
            self.reservations += reservations.read_scontrol(line[1] for line in _all(first, lines))
            return
        self._read_table(first, lines, path.name)

    def _read_table(self, first: Line, lines: Iterator[Line], file: str) -> None:
        number, text = first
        columns = [cell.strip() for cell in text.split("|")]
        known = [names.canonical(column) for column in columns]
        if "rawusage" in known and "normshares" in known:
            return self._read_shares(columns, lines, file)
        if reservations.is_table(known):
            return self._read_reservations(known, lines, file, columns, number)
        users = "user" in known
        if not users and "name" not in known:
            return self._problem(f"{file}:{number}", _no_header(text))
        if len(columns) > _MOST_COLUMNS:
            return self._problem(f"{file}:{number}", f"more than {_MOST_COLUMNS} columns")
        if not users and _is_other(columns):
            text = f"got {shown(text)}, which is neither a table of QOS nor of reservations; {_ALLOWED}"
            return self._problem(f"{file}:{number}", text)
        if not self._check_columns(columns, users, f"{file}:{number}"):
            return None
        for row in self._rows(columns, lines, file):
            if users:
                self._read_user(row)
            else:
                self._read_qos(row)
        return None

    def _read_reservations(
        self, known: Sequence[str], lines: Iterator[Line], file: str, columns: Sequence[str], number: int
    ) -> None:
        lacking = reservations.missing(known)
        if lacking:
            ask = "`sacctmgr -P show reservation format=Name,NodeNames,Start,End,Flags` prints them"
            text = (
                f"a table of reservations without {', '.join(lacking)}: got {shown('|'.join(columns))}; {ask}"
            )
            return self._problem(f"{file}:{number}", text)
        self.reservations += reservations.read_table(known, (text.split("|") for _, text in lines))
        return None

    def _check_columns(self, columns: Sequence[str], users: bool, where: str) -> bool:
        """Complain about columns that are missing, doubled or mistyped."""
        modelled = names.USERS if users else names.QOS
        before = len(self.draft.problems)
        known = [names.canonical(column) for column in columns if column]
        for column in columns:
            meant = names.mistyped(column, modelled)
            if meant:
                self._problem(where, f"no column {shown(column)}; did you mean {meant!r}?")
            elif column and known.count(names.canonical(column)) > 1:
                self._problem(where, f"column {shown(column)} is there twice")
                break
        missing = [column for column in modelled if names.canonical(column) not in known]
        needed = [column for column in missing if users and column in names.USERS_NEEDED]
        if needed:
            hint = "`sacctmgr -P show assoc` and `sacctmgr -P show user withassoc` print all"
            self._problem(where, f"no column {', '.join(needed)}; {hint}")
        elif missing and not users:
            self.draft.warnings.append(f"{where}: no column {', '.join(missing)}; defaults count")
        return len(self.draft.problems) == before

    def _rows(self, columns: Sequence[str], lines: Iterator[Line], file: str) -> Iterator[Row]:
        """Yield the lines that have a value for each column."""
        keys = [names.canonical(column) for column in columns]
        for number, text in lines:
            cells = [cell.strip() for cell in text.split("|")]
            if len(cells) != len(columns):
                hint = "a '|' in a value? Leave that column out: format=Name,Priority,..."
                counts = f"{len(cells)} values below {len(columns)} columns"
                self._problem(f"{file}:{number}", f"{counts}; {hint}")
                continue
            pairs = zip(keys, columns, cells, strict=True)
            row = {
                key: Setting(key=column, value=cell, file=file, line=number)
                for key, column, cell in pairs
                if column
            }
            if "account" in row:
                indented = text.split("|")[keys.index("account")]
                depth = len(indented) - len(indented.lstrip(" "))
                row[_DEPTH] = Setting(key=_DEPTH, value=str(depth), file=file, line=number)
            yield row

    def _read_shares(self, columns: Sequence[str], lines: Iterator[Line], file: str) -> None:
        """Read ``sshare -a -l -P -m``: what all users have used."""
        twice: set[tuple[str, str]] = set()
        seen: set[tuple[str, str]] = set()
        partitions = "partition" in map(names.canonical, columns)
        for row in self._rows(columns, lines, file):
            account, user = row["account"].value, row["user"].value if "user" in row else ""
            if (account, user) in seen and user and not partitions:
                twice.add((account, user))
            seen.add((account, user))
            words: dict[str, str] = {key: row[key].value for key in _USAGE if key in row}
            partition = row["partition"].value if "partition" in row else ""
            self.rows.add("", account, user, partition, words)
        if twice:
            who = ", ".join(f"{user} in {account}" for account, user in sorted(twice)[:3])
            text = f"{file}: {who}: several lines that say no partition; `sshare -m` tells them apart"
            self.draft.warnings.append(text)

    def _note(self, row: Row) -> None:
        """Keep what a line says of shares, limits and usage."""

        def value(column: str) -> str:
            return row[column].value if column in row else ""

        words = {key: setting.value for key, setting in row.items() if key in KEPT}
        place = (value("cluster"), value("account"), value("user"), value("partition"))
        self.rows.add(*place, words, int(value(_DEPTH) or 0))

    # ---------------------------------------------------------------------------------- a line
    def _read_qos(self, row: Row) -> None:
        name = row["name"]
        if not name.value:
            return self._problem(f"{name.file}:{name.line}", "a QOS without a name")
        known = name.value in self.qos
        at = f"qos[{list(self.qos).index(name.value) if known else len(self.qos)}]"
        read, get = self.draft.read, row.get
        nothing: tuple[str, ...] = ()
        table = QosTable(
            name=name.value,
            priority=read(get("priority"), _parse_priority, 0, f"{at}.priority"),
            preempt=read(get("preempt"), _parse_names, nothing, f"{at}.preempt"),
            preempt_mode=read(get("preemptmode"), _parse_mode, None, f"{at}.preempt_mode"),
            grace_time=read(get("gracetime"), _parse_grace, 0.0, f"{at}.grace_time"),
            exempt_time=read(get("preemptexempttime"), _parse_exempt, None, f"{at}.exempt_time"),
            flags=read(get("flags"), _parse_names, nothing, f"{at}.flags"),
            attributes=self._attributes(row),
        )
        self._leave_out(row, (*names.QOS, *OF_QOS))
        if self.qos.setdefault(table.name, table) != table:
            self._problem(name.where, f"QOS {shown(table.name)} is there twice, and they differ")
        self.draft.places[at] = name.where
        return None

    def _attributes(self, row: Row) -> dict[str, str]:
        """Return limits and factors of a QOS, in sacctmgr's words."""
        found = {
            setting.key: setting.value
            for key, setting in row.items()
            if key in OF_QOS and setting.value not in ("", "-1", names.says_nothing(key))
        }
        name = row["name"]
        try:
            parse_limits(found)
        except ValueError as error:
            self._problem(name.where, str(error))
            return {}
        return found

    def _read_user(self, row: Row) -> None:
        def value(column: str) -> str:
            return row[column].value if column in row else ""

        if value("account"):
            self._note(row)
        if not value("user") or not value("account"):
            return  # the account itself; a user without any account
        at = row["user"]
        association = Association(
            cluster=value("cluster"),
            account=value("account"),
            user=value("user"),
            partition=value("partition"),
            default_qos=value("defaultqos"),
            allowed=_parse_names(value("qos")),
            where=at.where,
        )
        self._leave_out(row, (*names.USERS, *KEPT, _DEPTH))
        self._add(association, value("defaultaccount") or None)

    def _add(self, association: Association, default_account: str | None) -> None:
        known = self.associations.setdefault(association.key, association)
        if known.qos != association.qos:
            who = f"{shown(association.user)} in {shown(association.account)}"
            self._problem(association.where, f"{who} is at {known.where} too, and differs")
        if default_account is not None:
            self.default_accounts[association.user] = default_account

    def _leave_out(self, row: Row, modelled: Sequence[str]) -> None:
        known = {names.canonical(column) for column in modelled}
        for key, setting in row.items():
            if key not in known:
                names.leave_out(self.draft, setting)

    def _problem(self, where: str, message: str) -> None:
        self.draft.problems.append(Problem(where, message))

    # --------------------------------------------------------------------------------- the end
    def result(self) -> Accounting:
        """Return what was read.

        :raises ConfigError: with all problems.
        """
        draft = self.draft
        tables = tuple(
            attrs.evolve(table, attributes={**table.attributes, **self.qos_usage.get(table.name, {})})
            for table in self.qos.values()
        )
        if not draft.problems:
            draft.problems.extend(_wrong(tables, draft))
        if draft.problems:
            raise ConfigError(draft.conf.source, draft.problems[:_MOST_PROBLEMS])
        left_out = f"not modelled, may matter: {in_one_line(draft.unmodelled)}" if draft.unmodelled else ""
        idle = f"not modelled, no influence: {in_one_line(draft.harmless)}" if draft.harmless else ""
        return Accounting(
            source=draft.conf.source,
            qos=tables,
            associations=tuple(self.associations.values()),
            default_accounts=self.default_accounts,
            rows=self.rows,
            reservations=tuple(reservations.joined(self.reservations)),
            warnings=(*draft.warnings, *filter(None, ("; ".join(filter(None, (left_out, idle))),))),
            places=dict(draft.places),
        )


def _all(first: Line, rest: Iterator[Line]) -> Iterator[Line]:
    yield first
    yield from rest


def _is_other(columns: Sequence[str]) -> bool:
    """Whether the columns of a table with names say nothing of QOS, not even with a typing error."""
    others = [each for each in columns if each and names.canonical(each) not in ("name", "flags")]
    return bool(others) and not any(
        names.canonical(each) in _SAYS_QOS or names.mistyped(each, names.QOS) for each in others
    )


def _no_header(text: str) -> str:
    """Say what is wrong with a first line that begins no table."""
    words = [names.canonical(word) for word in text.split()]
    if text.lstrip()[:1] in "{[":
        return f"JSON is not read; expected {_KINDS}"
    if "|" not in text and ("name" in words or "user" in words):
        return "columns without '|' between them, cut to their width; use sacctmgr -P"
    if "|" in text:
        return f"no column Name or User in {shown(text)}; if there is no header, leave out -n"
    return f"got {shown(text.strip())}; expected {_KINDS}"


def _wrong(tables: tuple[QosTable, ...], draft: Draft) -> Iterator[Problem]:
    """Yield what cannot be seen in one line: Preempt lists that run in a loop or name an unknown QOS (6.4)."""
    rest = Config(node=(NodeTable(name="n"),), partition=(PartitionTable(name="p"),))
    try:
        validate(attrs.evolve(rest, qos=tables), draft.conf.source)
    except ConfigError as error:
        for problem in error.problems:
            yield Problem(place_of(problem.where, draft.places), problem.message)


# ------------------------------------------------------------------------------- values
def _parse_names(text: str) -> tuple[str, ...]:
    words = (word.strip() for word in text.split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def _parse_priority(text: str) -> int:
    return parse_count(text, _MOST_PRIORITY) if text else 0


def _parse_mode(text: str) -> tuple[str, ...] | None:
    """Return a QOS's PreemptMode. None: the cluster's, for which OFF stands too (3.1)."""
    if text.lower() in _CLUSTERS_OWN:
        return None
    return tuple(word for word in mode_words(text) if word != "off") or None


def _parse_grace(text: str) -> float:
    """Return a GraceTime: it is printed as a time, and given in seconds (6.4)."""
    if text.isascii() and text.isdigit():
        return float(parse_count(text))
    seconds = parse_time(text) if text else 0
    if seconds is None:
        raise ValueError(f"got {shown(text)}; expected a time, or seconds")
    return float(seconds)


def _parse_exempt(text: str) -> float | None:
    """Return a PreemptExemptTime. None: not set, as -1 and INFINITE mean; 0 counts as set (1.6)."""
    seconds = parse_time(text) if text else None
    return None if seconds is None else float(seconds)
