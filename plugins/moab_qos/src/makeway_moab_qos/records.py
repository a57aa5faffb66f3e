"""Read SRCFG, NODECFG, RMCFG, ADMINCFG and SYSCFG (moab 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from makeway_moab_qos.draft import Draft
from makeway_moab_qos.grammar import Attribute, Entry, combined, flags_of, names_of
from makeway_moab_qos.hosts import entries
from makeway_moab_qos.periods import DAYS
from makeway_moab_qos.settings import path

_KINDS = {"USERLIST": "user", "GROUPLIST": "group", "ACCOUNTLIST": "account", "CLASSLIST": "klass"}
_KINDS |= {"QOSLIST": "qos", "JOBATTRLIST": "jobattr"}
_PERIODS = ("DAY", "WEEK", "INFINITY")
_OWNERS = ("USER", "GROUP", "ACCT", "CLASS", "QOS")
_LONG_OWNER = {"ACCOUNT": "ACCT"}


def _srcfg(draft: Draft, entry: Entry) -> None:
    listed = draft.settings.setdefault("standing", [])
    table = next((each for each in listed if each["name"] == entry.index), None)
    if table is None:
        table = {"name": entry.index or "DEFAULT"}
        listed.append(table)
    draft.places[path(f"standing[{listed.index(table)}]")] = entry.place
    for attribute in draft.attributes_of(entry):
        if attribute.name == "HOSTLIST":
            table["hosts"] = ",".join(entries(attribute.value))
        elif attribute.name == "OWNER":
            _owner(draft, entry, attribute.value, table)
        elif attribute.name == "FLAGS":
            table["flags"] = combined(attribute, table.get("flags", ()), flags_of(attribute.value))
        elif attribute.name in _KINDS:
            access = table.setdefault("access", {})
            access[_KINDS[attribute.name]] = names_of(attribute.value.rstrip("&^-+"))
        elif attribute.name in ("PERIOD", "STARTTIME", "ENDTIME", "DAYS"):
            _when(draft, entry, attribute, table)
        else:
            draft.odd_attribute(entry, attribute)


def _when(draft: Draft, entry: Entry, attribute: Attribute, table: dict[str, Any]) -> None:
    """PERIOD, STARTTIME, ENDTIME and DAYS."""
    name, value = attribute.name, attribute.value
    if name == "PERIOD":
        if value.upper() not in _PERIODS:
            draft.warn(entry.place, f"PERIOD={value}: allowed: {', '.join(_PERIODS)}; DAY counts")
            return
        table["period"] = value.upper()
    elif name == "DAYS":
        listed = tuple(word.upper()[:3] for word in names_of(value.replace("[", "").replace("]", "")))
        if "ALL" in listed:
            table.pop("days", None)
        elif any(word not in DAYS for word in listed):
            draft.warn(entry.place, f"DAYS={value}: allowed: {', '.join(DAYS)} or ALL; every day counts")
        else:
            table["days"] = listed
    else:
        seconds = draft.value(entry, "time", value, name)
        if seconds is not None:
            table["starts" if name == "STARTTIME" else "ends"] = seconds


def _owner(draft: Draft, entry: Entry, text: str, table: dict[str, Any]) -> None:
    kind, _, name = text.partition(":")
    if not draft.maui:
        kind = _LONG_OWNER.get(kind.upper(), kind.upper())
    if kind not in _OWNERS or not name:
        options = ", ".join(_OWNERS)
        draft.warn(entry.place, f"OWNER={text}: allowed: KIND:name, KIND one of {options}; nobody owns it")
        return
    table["owner"] = f"{kind}:{name}"


def _nodecfg(draft: Draft, entry: Entry) -> None:
    table = draft.nodes.setdefault(entry.index or "DEFAULT", {})
    for attribute in draft.attributes_of(entry):
        if attribute.name in ("PROCS", "MEMORY"):
            value = draft.value(entry, "integer", attribute.value, attribute.name)
            if value is not None:
                table["cpus" if attribute.name == "PROCS" else "memory_mb"] = value
        elif attribute.name == "FEATURES":
            table["features"] = combined(attribute, table.get("features", ()), names_of(attribute.value))
        else:
            draft.odd_attribute(entry, attribute)


def _rmcfg(draft: Draft, entry: Entry) -> None:
    listed = draft.settings.setdefault("rm", [])
    name = entry.index or "base"
    table = next((each for each in listed if each["name"] == name), None)
    if table is None:
        table = {"name": name}
        listed.append(table)
    draft.places[path(f"rm[{listed.index(table)}]")] = entry.place
    words = {"TYPE": "type", "SUSPENDSIG": "suspend_sig", "CHECKPOINTSIG": "checkpoint_sig"}
    words["JOBSUSPENDURL"] = "suspend_url"
    for attribute in draft.attributes_of(entry):
        if attribute.name in words:
            value = attribute.value.partition("@")[0] if attribute.name == "TYPE" else attribute.value
            table[words[attribute.name]] = value
        elif attribute.name == "CHECKPOINTTIMEOUT":
            value = draft.value(entry, "time", attribute.value, attribute.name)
            if value is not None:
                table["checkpoint_timeout"] = value
        elif attribute.name == "DEFAULTCLASS":
            draft.default_class = attribute.value
        else:
            draft.odd_attribute(entry, attribute)


def _admincfg(draft: Draft, entry: Entry) -> None:
    for attribute in draft.attributes_of(entry):
        if attribute.name == "USERS" and entry.index in ("1", "2", "3"):
            draft.set(entry, names_of(attribute.value), f"admin{entry.index}")
        else:
            draft.odd_attribute(entry, attribute)


def _syscfg(draft: Draft, entry: Entry) -> None:
    table = draft.settings.setdefault("system", {})
    for attribute in draft.attributes_of(entry):
        if attribute.name in ("QDEF", "QLIST"):
            draft.qos_list(attribute, table)
            draft.places[path("system", attribute.name.lower())] = entry.place
        else:
            draft.odd_attribute(entry, attribute)


READERS: Mapping[str, Callable[[Draft, Entry], None]] = {
    "SRCFG": _srcfg,
    "NODECFG": _nodecfg,
    "RMCFG": _rmcfg,
    "ADMINCFG": _admincfg,
    "SYSCFG": _syscfg,
}
