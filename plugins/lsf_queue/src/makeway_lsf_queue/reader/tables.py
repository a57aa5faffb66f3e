"""Read each file into plain tables of LSF's own keywords (lsf 9.1, 9.2 no. 6 to 8)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import attrs

from makeway.errors import nearest
from makeway_lsf_queue.controls import job_controls, terminate_when
from makeway_lsf_queue.reader import keywords
from makeway_lsf_queue.reader.grammar import (
    Messages,
    Section,
    is_horizontal,
    logical_lines,
    pairs,
    rows,
    sections,
)
from makeway_lsf_queue.values import WrongValueError
from makeway_lsf_queue.windows import Clock


@attrs.define
class Draft:
    """The files as tables, before they become a configuration."""

    queues: dict[str, dict[str, str]] = attrs.field(factory=dict)
    params: dict[str, str] = attrs.field(factory=dict)
    hosts: dict[str, dict[str, str]] = attrs.field(factory=dict)
    users: dict[str, dict[str, str]] = attrs.field(factory=dict)
    user_groups: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    host_groups: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    limits: list[dict[str, str]] = attrs.field(factory=list)
    applications: dict[str, dict[str, str]] = attrs.field(factory=dict)
    lsf_conf: dict[str, str] = attrs.field(factory=dict)
    places: dict[tuple[str, str, str], str] = attrs.field(factory=dict)
    """(kind, name, key) -> file:line; the key is empty for the table itself."""
    idle: dict[str, None] = attrs.field(factory=dict)
    """Keywords that LSF knows but that have no effect here."""


SECTIONS = ("QUEUE", "PARAMETERS", "HOST", "HOSTGROUP", "USER", "USERGROUP", "LIMIT", "APPLICATION")
"""Sections with an effect; others are skipped (9.2 no. 5)."""


def parsed(text: str, messages: Messages, clock: Clock | None = None) -> list[Section]:
    """Return the sections of a file, and name those whose name seems misspelt."""
    found = list(sections(logical_lines(text, messages, clock), messages))
    for section in found:
        if section.name not in SECTIONS:
            close = _looks_like(section.name, SECTIONS)
            if close:
                messages.say(section.line, f"section {section.name} is skipped; did you mean {close!r}?")
    return found


def _table(
    section: Section,
    known: Iterable[str],
    idle: Iterable[str],
    draft: Draft,
    messages: Messages,
    kind: str,
    also_idle: Iterable[str] = (),
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the pairs of a horizontal section, and their lines; unknown keys are ignored with a message.

    :param idle: all other keywords; empty: there are more than are listed.
    :param also_idle: some of them then.
    """
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    effective, without, some = set(known), set(idle), set(also_idle)
    for pair in pairs(section, messages):
        if pair.key in effective:
            found[pair.key] = pair.value
            lines[pair.key] = pair.line
        elif kind not in keywords.BELONGS.get(pair.key, (kind,)):
            files = " or ".join(keywords.BELONGS[pair.key])
            messages.say(pair.line, f"{pair.key} belongs in {files}, not in {kind}; the line is ignored")
        elif (
            pair.key in without or pair.key in some or (not without and not _looks_like(pair.key, effective))
        ):
            draft.idle[f"{kind}:{pair.key}"] = None
        else:
            close = nearest(pair.key, effective)
            messages.say(pair.line, f"{pair.key}: unknown keyword; the line is ignored{close}")
    return found, lines


def _looks_like(key: str, known: Iterable[str]) -> str:
    """Return the keyword that `key` is a misspelling of, by all appearance; empty: none.

    Most keywords of the files are not listed here; one that is merely not modelled has no such neighbour.
    """
    close = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.85)
    return close[0] if close else ""


# ------------------------------------------------------------------------------------- lsb.queues
def read_queues(found: Iterable[Section], draft: Draft, messages: Messages) -> None:
    """Take over the Queue sections."""
    for section in found:
        if section.name != "QUEUE":
            continue
        if not is_horizontal(section):
            messages.say(section.line, "Queue: the first line has no '='; the section is ignored")
            continue
        table, lines = _table(section, keywords.QUEUE, keywords.QUEUE_IDLE, draft, messages, "lsb.queues")
        name = table.pop("QUEUE_NAME", "")
        problem = _unusable(name, table, draft)
        if problem:
            messages.say(section.line, problem)
            continue
        draft.queues[name] = table
        draft.places["queue", name, ""] = f"{messages.file}:{section.line}"
        draft.places |= {("queue", name, key): f"{messages.file}:{line}" for key, line in lines.items()}


def _unusable(name: str, table: Mapping[str, str], draft: Draft) -> str:
    """Return why a whole queue is dropped (9.2 no. 8); empty: it is not."""
    if not name:
        return "a queue without QUEUE_NAME is dropped"
    if name == "default":
        return "the queue name 'default' is reserved; the queue is dropped"
    if name in draft.queues:
        return f"queue {name} is there already; the first one counts, this one is ignored"
    for key, read in (("JOB_CONTROLS", job_controls), ("TERMINATE_WHEN", terminate_when)):
        if key in table:
            try:
                read(table[key])
            except WrongValueError as error:
                return f"{key}: {error}; queue {name} is dropped"
    if "none" in table.get("HOSTS", "").split():
        return f"HOSTS contains none; queue {name} is dropped"
    return ""


# --------------------------------------------------------------------------- the files beside it
def read_params(found: Iterable[Section], draft: Draft, messages: Messages) -> None:
    """Take over the Parameters section."""
    known = (*keywords.PARAMS, *keywords.PARAMS_OPENLAVA)
    for section in found:
        if section.name == "PARAMETERS" and is_horizontal(section):
            table, lines = _table(section, known, (), draft, messages, "lsb.params", keywords.PARAMS_IDLE)
            draft.params |= table
            for key, line in lines.items():
                draft.places["params", "", key] = f"{messages.file}:{line}"


def read_applications(found: Iterable[Section], draft: Draft, messages: Messages) -> None:
    """Take over the Application sections."""
    for section in found:
        if section.name != "APPLICATION" or not is_horizontal(section):
            continue
        table, lines = _table(section, keywords.APPLICATION, (), draft, messages, "lsb.applications")
        name = table.pop("NAME", "")
        if not name or name in draft.applications:
            messages.say(section.line, "an application without NAME, or there already, is ignored")
            continue
        draft.applications[name] = table
        draft.places |= {("app", name, key): f"{messages.file}:{line}" for key, line in lines.items()}


def read_hosts(found: Iterable[Section], draft: Draft, messages: Messages) -> None:
    """Take over the Host and HostGroup sections."""
    for section in found:
        if section.name == "HOST":
            _named_rows(section, "HOST_NAME", keywords.HOST, draft.hosts, "lsb.hosts", draft, messages)
        elif section.name == "HOSTGROUP":
            _groups(section, draft.host_groups, draft, messages)


def read_users(found: Iterable[Section], draft: Draft, messages: Messages) -> None:
    """Take over the User and UserGroup sections."""
    for section in found:
        if section.name == "USER":
            _named_rows(section, "USER_NAME", keywords.USER, draft.users, "lsb.users", draft, messages)
        elif section.name == "USERGROUP":
            _groups(section, draft.user_groups, draft, messages)


def _named_rows(
    section: Section,
    name_key: str,
    known: Iterable[str],
    into: dict[str, dict[str, str]],
    kind: str,
    draft: Draft,
    messages: Messages,
) -> None:
    effective = set(known)
    made = list(rows(section, messages))
    _columns(section, effective, kind, draft, messages, made)
    for line, row in made:
        name = row.pop(name_key, "")
        if not name:
            messages.say(line, f"a row without {name_key} is ignored")
            continue
        if name in into:
            messages.say(
                line, f"{name_key} {name} is there already; the first row counts, this one is ignored"
            )
            continue
        into.setdefault(name, {key: word for key, word in row.items() if key in effective})
        draft.places.setdefault((kind, name, ""), f"{messages.file}:{line}")


def _columns(
    section: Section,
    known: set[str],
    kind: str,
    draft: Draft,
    messages: Messages,
    made: Iterable[tuple[int, Mapping[str, str]]],
) -> None:
    """Name the columns of a table that are not known: misspelt, or without an effect here though a row sets them."""
    filled = {key for _, row in made for key in row}
    for key in (word.upper() for word in section.lines[0].text.split()):
        if key in known:
            continue
        close = _looks_like(key, known)
        if close:
            messages.say(
                section.lines[0].line, f"{key}: unknown column; it is ignored; did you mean {close!r}?"
            )
        elif key in filled:
            draft.idle[f"{kind}:{key}"] = None


def _groups(section: Section, into: dict[str, tuple[str, ...]], draft: Draft, messages: Messages) -> None:
    for line, row in rows(section, messages):
        if "GROUP_NAME" not in row or "GROUP_MEMBER" not in row:
            messages.say(line, "a group without GROUP_NAME or GROUP_MEMBER is ignored")
            continue
        name = row["GROUP_NAME"]
        if name in into:
            messages.say(line, f"group {name} is there already; the first one counts, this one is ignored")
            continue
        into[name] = tuple(row["GROUP_MEMBER"].split())
        draft.places[section.name, name, ""] = f"{messages.file}:{line}"


def read_limits(found: Iterable[Section], draft: Draft, messages: Messages) -> None:
    """Take over the Limit sections, in both forms."""
    effective = set(keywords.LIMIT)
    for section in found:
        if section.name != "LIMIT":
            continue
        if is_horizontal(section):
            table, lines = _table(section, keywords.LIMIT, (), draft, messages, "lsb.resources")
            made = [(section.line, table)]
            del lines
        else:
            made = list(rows(section, messages))
            _columns(section, effective, "lsb.resources", draft, messages, made)
        for line, each in made:
            kept = {key: word for key, word in each.items() if key in effective}
            if kept:
                draft.places["limit", str(len(draft.limits)), ""] = f"{messages.file}:{line}"
                draft.limits.append(kept)
