"""Read the file of ``sacctmgr dump``: a tree of accounts and users, each with what differs from above.

A line is ``User - 'ada':DefaultAccount='physics':QOS='+high'``; those after ``Parent - 'physics'`` stand
below that account. QOS are named there, never described.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import attrs

from makeway.errors import Problem, nearest
from makeway.readers.lines import Line, shown
from makeway_slurm.readers import sacctmgr_names as names
from makeway_slurm.readers.accounting import Association
from makeway_slurm.readers.association_rows import Rows, is_kept
from makeway_slurm.readers.conf_parts import Setting
from makeway_slurm.readers.draft import Draft

TITLES = ("Cluster", "Parent", "Account", "User")
ROOT = "root"

_TITLE = re.compile(r"\s*([A-Za-z]+)\s*-\s*(?=\S)")
_VALUE = r"""(?:'(?P<one>[^']*)'|"(?P<two>[^"]*)"|(?P<bare>[^:'"#\s]*))\s*(?::|(?:\#.*)?$)"""
_ENTITY = re.compile(_VALUE)
_OPTION = re.compile(r"\s*(?P<key>\w+)\s*=\s*" + _VALUE)
_END = re.compile(r"\s*(?:#.*)?$")
_SUBJECT = {"Cluster": (), "Parent": (), "Account": (), "User": ("Partition", "DefaultAccount")}


def looks_so(line: str) -> bool:
    """Say by the first line that is no comment whether a text is a dump."""
    return _TITLE.match(line) is not None


@attrs.frozen(kw_only=True)
class Dumped:
    """A user's association, and the default account that stands with it."""

    association: Association
    default_account: str | None = None


def read_dump(lines: Iterable[Line], file: str, draft: Draft, rows: Rows) -> Iterator[Dumped]:
    """Yield the users' associations; what is wrong becomes problems of `draft`, shares and limits go to `rows`."""
    reader = _Reader(file, draft, rows)
    for number, line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            yield from reader.read(number, line)


@attrs.frozen
class _Account:
    """What users of an account inherit."""

    default_qos: str = ""
    allowed: tuple[str, ...] = ()


@attrs.define
class _Reader:
    """Goes down the lines, remembering the accounts."""

    file: str
    draft: Draft
    rows: Rows
    cluster: str = ""
    parent: str = ROOT
    accounts: dict[str, _Account] = attrs.field(factory=lambda: {ROOT: _Account()})

    def read(self, number: int, line: str) -> Iterator[Dumped]:
        """Read one line."""
        title = _TITLE.match(line)
        word = title[1].capitalize() if title else ""
        if title is None or word not in TITLES:
            got = line.split(maxsplit=1)[0]
            close = nearest(got.capitalize(), TITLES)
            if "sacctmgr" in line.split():
                text = "a command of sacctmgr; run it, and save what 'sacctmgr -P show qos' prints"
                self._problem(number, "", text)
                return
            text = f"got {shown(got)}; expected TITLE - 'NAME', with one of {', '.join(TITLES)}{close}"
            self._problem(number, "", text)
            return
        name, options = self._options(number, word, line, title.end())
        if not name:
            return
        if word == "Cluster":
            self.cluster, self.parent = name, ROOT
            self.accounts = {ROOT: self._below(options, _Account())}
        elif word == "Parent":
            if name not in self.accounts:
                close = nearest(name, self.accounts)
                self._problem(number, word, f"no account {shown(name)} in the lines above{close}")
            self.parent = name
        elif word == "Account":
            self.accounts[name] = self._below(options, self._above())
            self._keep(name, "", options)
        else:
            yield self._user(number, name, options)

    def _user(self, number: int, name: str, options: dict[str, str]) -> Dumped:
        self._keep(self.parent, name, options)
        its = self._below(options, self._above())
        association = Association(
            cluster=self.cluster,
            account=self.parent,
            user=name,
            partition=options.get("partition", ""),
            default_qos=its.default_qos,
            allowed=its.allowed,
            where=f"{self.file}:{number} User",
        )
        return Dumped(association=association, default_account=options.get("defaultaccount"))

    def _keep(self, account: str, user: str, options: dict[str, str]) -> None:
        """Keep shares and limits; of an account also where it stands."""
        words = dict(options) if user else {**options, "parentname": self.parent}
        self.rows.add(self.cluster, account, user, options.get("partition", ""), words)

    def _above(self) -> _Account:
        return self.accounts.get(self.parent, _Account())

    def _below(self, options: dict[str, str], above: _Account) -> _Account:
        """Return what holds below `above` where `options` are set."""
        words = [word.strip() for word in options.get("qos", "").split(",") if word.strip()]
        return _Account(options.get("defaultqos") or above.default_qos, _allowed(words, above.allowed))

    def _options(self, number: int, title: str, line: str, at: int) -> tuple[str, dict[str, str]]:
        """Return the name of the entity, and its options by canonical key."""
        found: dict[str, str] = {}
        entity = _ENTITY.match(line, at)
        name = _text(entity) if entity else ""
        if not entity or not name:
            allowed = "a name in quotes, then ':' or nothing"
            self._problem(number, title, f"got {shown(line[at:])}; expected {allowed}")
            return "", {}
        at = entity.end()
        modelled = ("QOS", "DefaultQOS", *_SUBJECT[title])
        keys = {names.canonical(each) for each in modelled}
        while not _END.match(line, at):
            option = _OPTION.match(line, at)
            if option is None:
                got = shown(line[at:].strip())
                self._problem(number, title, f"got {got}; expected Key='value', then ':' or nothing")
                return "", {}
            setting = Setting(key=option["key"], value=_text(option), file=self.file, line=number)
            key = names.canonical(setting.key)
            meant = names.mistyped(setting.key, modelled)
            if meant:
                self.draft.problems.append(setting.problem(f"no such key; did you mean {meant!r}?"))
            elif key in keys or is_kept(key, setting.value):
                found[key] = setting.value
            elif key != "defaultaccount":
                names.leave_out(self.draft, setting)
            at = option.end()
        return name, found

    def _problem(self, number: int, title: str, message: str) -> None:
        self.draft.problems.append(Problem(f"{self.file}:{number} {title}".rstrip(), message))


def _text(match: re.Match[str]) -> str:
    one, two, bare = match["one"], match["two"], match["bare"]
    return one if one is not None else two if two is not None else bare


def _allowed(words: list[str], above: tuple[str, ...]) -> tuple[str, ...]:
    """Return the QOS of a list; one of ``+name`` and ``-name`` changes what holds above."""
    if not words:
        return above
    if not any(word[0] in "+-" for word in words):
        return tuple(dict.fromkeys(words))
    found = dict.fromkeys(above)
    for word in words:
        if word[0] == "-":
            found.pop(word[1:], None)
        else:
            found[word.removeprefix("+")] = None
    return tuple(found)
