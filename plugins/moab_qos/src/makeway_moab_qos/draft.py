"""Take in the lines of a moab.cfg or maui.cfg one by one (moab 9 and 10)."""

from __future__ import annotations

import difflib
import re
from typing import Any

import attrs

from makeway.errors import nearest
from makeway_moab_qos import times
from makeway_moab_qos.grammar import Attribute, Entry, attributes, combined, flags_of, names_of
from makeway_moab_qos.parameters import (
    CLOCK,
    CREDENTIAL_ATTRIBUTES,
    CREDENTIALS,
    FLAGS,
    MOAB_ONLY_ATTRIBUTES,
    OTHER_FLAGS,
    PLAIN,
    RECORDS,
    WEIGHTS,
    WITHOUT_EFFECT,
    WORDS,
    Parameter,
)
from makeway_moab_qos.settings import path

_RESERVED = re.compile(r"USERESERVED:([\w.\-]+)")
_LIMIT = re.compile(r"[EO]?M(AX|IN)[.A-Z]")
"""Attributes of a credential that limit its jobs, those of one credential within another included."""
SLIP = "PREEMPTIONPOLICY"
"""What some of the vendor's pages call PREEMPTPOLICY (section 9)."""
_ALIKE = 0.86
"""How much an unknown name has to resemble a known one for a guess."""


@attrs.define
class Draft:
    """What has been read so far."""

    maui: bool
    settings: dict[str, Any] = attrs.field(factory=dict)
    nodes: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    clockwork: dict[str, float] = attrs.field(factory=dict)
    overrun: float = 0.0
    default_class: str = ""
    """RMCFG DEFAULTCLASS: the class of jobs that name none; empty: not set."""
    warnings: list[str] = attrs.field(factory=list)
    places: dict[str, str] = attrs.field(factory=dict)
    written: dict[str, None] = attrs.field(factory=dict)
    unknown: dict[str, str] = attrs.field(factory=dict)
    """What is not read -> what to say about it."""
    idle: dict[str, list[str]] = attrs.field(factory=dict)
    """What has no influence -> its places."""

    def warn(self, place: str, text: str) -> None:
        """Take note of something that people should know."""
        self.warnings.append(f"{place}: {text}")

    # ---------------------------------------------------------------------------- entries
    def take(self, entry: Entry) -> None:
        """Read one entry."""
        param = entry.param
        weight = weight_of(param)
        if param in PLAIN:
            self._plain(entry, PLAIN[param])
        elif weight is not None:
            self._weight(entry, *weight)
        elif param in CREDENTIALS:
            self._credential(entry, CREDENTIALS[param])
        elif param in CLOCK:
            self._clock(entry)
        elif param in WITHOUT_EFFECT:
            self.idle.setdefault(param, []).append(entry.place)
            return
        else:
            self._unknown(entry)
            return
        self.written[param] = None

    def _unknown(self, entry: Entry) -> None:
        self.unknown[entry.spelled] = ""
        known = [*PLAIN, *WEIGHTS, *CREDENTIALS, *CLOCK, *RECORDS]
        if entry.param == SLIP:
            self.warn(entry.place, f"{SLIP} is no parameter and is ignored; PREEMPTPOLICY is meant")
        elif self.maui and entry.param.upper() in known:
            self.warn(entry.place, f"{entry.spelled} is ignored: Maui compares the case of names")
        elif guess := difflib.get_close_matches(entry.param, known, 1, _ALIKE):
            self.unknown[entry.spelled] = f" ({entry.place}; did you mean {guess[0]}?)"

    def _plain(self, entry: Entry, parameter: Parameter) -> None:
        if self.maui and not parameter.maui:
            self.unknown[entry.spelled] = ""
            return
        if parameter.kind == "names":
            self.set(entry, names_of(entry.value), parameter.key)
        elif parameter.kind == "indexed names":
            table = self.settings.setdefault(parameter.key, {})
            table[entry.index or "0"] = names_of(entry.value)
            self.places[path(parameter.key)] = entry.place
        elif parameter.kind == "indexed":
            count = self.value(entry, "integer", entry.value)
            if count is not None and count < 0:
                text = f"got {entry.value.strip()!r}; allowed: a whole number, 0 or more"
                self.warn(entry.place, f"{entry.spelled}: {text}; the default counts")
            elif count is not None:
                self.settings.setdefault(parameter.key, {})[entry.index or "0"] = count
                self.places[path(parameter.key)] = entry.place
        elif parameter.kind == "word":
            self._word(entry, parameter)
        else:
            value = self.value(entry, parameter.kind, entry.value)
            if value is not None:
                self.set(entry, value, parameter.key)

    def _word(self, entry: Entry, parameter: Parameter) -> None:
        word = entry.value.split()[0] if entry.value.split() else ""
        allowed = WORDS.get(entry.param)
        if allowed is not None and word not in allowed:
            close = f"; did you mean {word.upper()!r}?" if word.upper() in allowed else nearest(word, allowed)
            text = f"{entry.param} {word!r} is not known; allowed: {', '.join(allowed)}{close}"
            if self.maui and entry.param == "PREEMPTPOLICY":
                self.warn(entry.place, f"{text}; in Maui every automatic preemption then fails")
            else:
                self.warn(entry.place, f"{text}; the default counts")
                return
        self.set(entry, word, parameter.key)

    def _weight(self, entry: Entry, key: str, cap: bool) -> None:
        value = self.value(entry, "number", entry.value)
        if value is None:
            return
        table = self.settings.setdefault("weights", {})
        if cap:
            table.setdefault("caps", {})[key] = value
        else:
            table[key] = value
        self.places[path("weights", *(("caps",) if cap else ()), key)] = entry.place

    def _clock(self, entry: Entry) -> None:
        value = self.value(entry, "time", entry.value)
        if value is None:
            return
        if entry.param == "RMPOLLINTERVAL":
            self.clockwork["sched_interval"] = value
            self.places["scheduler.clockwork"] = entry.place
        elif entry.param == "JOBMAXOVERRUN":
            self.overrun = value
            self.places["scheduler.over_time_limit"] = entry.place
        else:
            self.settings.setdefault("weights", {})["xf_min_limit"] = value

    def set(self, entry: Entry, value: Any, *keys: str) -> None:
        """Put a value into the settings, and remember the line."""
        table = self.settings
        for key in keys[:-1]:
            table = table.setdefault(key, {})
        table[keys[-1]] = value
        self.places[path(*keys)] = entry.place

    def value(self, entry: Entry, kind: str, text: str, attribute: str = "") -> Any:
        """Read a value; None: it cannot be read, and there is a warning.

        :param attribute: the attribute that it is of, for the warning.
        """
        index = f"[{entry.index}]" if entry.index else ""
        whose = f"{entry.param}{index} {attribute}" if attribute else f"{entry.param}{index}"
        try:
            if kind == "time":
                found = times.seconds(text, maui=self.maui)
                if times.is_two_fields(text) and not self.maui:
                    first, second = text.split(":")
                    said = f"{text} read as {first} minutes {second} s; Maui would read {first} hours"
                    self.warn(entry.place, f"{whose}: {said}")
                return found
            if kind == "boolean":
                return times.boolean(text, maui=self.maui)
            return times.integer(text) if kind == "integer" else times.number(text)
        except ValueError as error:
            self.warn(entry.place, f"{whose}: {error}; the default counts")
            return None

    # ------------------------------------------------------------------------ credentials
    def _credential(self, entry: Entry, kind: str) -> None:
        name = entry.index or "DEFAULT"
        if not entry.index:
            self.warn(entry.place, f"{entry.spelled} has no index; it is read as {entry.spelled}[DEFAULT]")
        table = self.settings.setdefault(kind, {}).setdefault(name, {})
        self.places.setdefault(path(kind, name), entry.place)
        for attribute in self.attributes_of(entry):
            known = CREDENTIAL_ATTRIBUTES.get(attribute.name)
            alien = known is not None and self.maui and attribute.name in MOAB_ONLY_ATTRIBUTES
            if known is None or alien:
                self.odd_attribute(entry, attribute)
                continue
            if attribute.name == "QFLAGS" and kind != "qos":
                self.warn(entry.place, "QFLAGS belongs to QOSCFG; JOBFLAGS is meant here, and nothing is set")
                continue
            form, key = known
            self.places[path(kind, name, key)] = entry.place
            if form == "list":
                self.qos_list(attribute, table)
            elif form == "flags":
                self._flags(entry, attribute, key, table)
            else:
                self._plain_attribute(entry, attribute, form, key, table)

    def _plain_attribute(
        self, entry: Entry, attribute: Attribute, form: str, key: str, table: dict[str, Any]
    ) -> None:
        if form == "names":
            table[key] = combined(attribute, table.get(key, ()), names_of(attribute.value))
        elif form == "limit":
            parts = names_of(attribute.value)
            numbers = [self.value(entry, "integer", part, attribute.name) for part in parts]
            if None not in numbers:
                table[key] = tuple(numbers[:2])
        elif form == "target":
            mark = attribute.value[-1:]
            value = self.value(entry, "number", attribute.value.rstrip("+-^%"), attribute.name)
            if value is not None:
                table[key] = value
                table["fs_mode"] = {"+": "floor", "-": "ceiling", "^": "ceiling"}.get(mark, "target")
        else:
            value = self.value(entry, form, attribute.value, attribute.name)
            if value is not None:
                table[key] = value

    def qos_list(self, attribute: Attribute, table: dict[str, Any]) -> None:
        """QDEF and QLIST; a mark on either governs the whole list, the later one counts (moab 3.3)."""
        text = attribute.value
        mode = "and" if text.endswith("&") else "only" if text.endswith("^") else "or"
        names = names_of(text.rstrip("&^@"))
        if attribute.name == "QDEF":
            table["qdef"] = names[0] if names else None
            if mode != "or" or "mode" not in table:
                table["mode"] = mode
        else:
            table["qlist"] = combined(attribute, table.get("qlist", ()), names)
            table["mode"] = mode

    def _flags(self, entry: Entry, attribute: Attribute, key: str, table: dict[str, Any]) -> None:
        """JOBFLAGS accumulates, QFLAGS replaces; Maui finds flags by substring (Q15)."""
        text, reserved = _without_reservations(attribute.value)
        if self.maui:
            given = (*(flag for flag in FLAGS if flag in text), *reserved)
        else:
            given = flags_of(text)
            for flag in given:
                word = flag.partition("[")[0]
                if word not in (*FLAGS, *OTHER_FLAGS) and not word.startswith("IGN"):
                    close = (
                        f"; did you mean {word.upper()!r}?" if word.upper() in FLAGS else nearest(word, FLAGS)
                    )
                    self.warn(entry.place, f"{attribute.name}: no flag {word!r}{close}")
            given = (*given, *reserved)
        if attribute.op != "=":
            table[key] = combined(attribute, table.get(key, ()), given)
        elif key == "flags":
            table[key] = given
        else:
            table[key] = tuple(dict.fromkeys((*table.get(key, ()), *given)))

    def attributes_of(self, entry: Entry) -> list[Attribute]:
        """Return the attributes of an entry; complain about the rest."""
        found, stray = attributes(entry, maui=self.maui)
        if stray:
            self.warn(entry.place, f"{entry.param}: cannot read {' '.join(stray)[:60]!r}; it is skipped")
        return found

    def odd_attribute(self, entry: Entry, attribute: Attribute) -> None:
        """Take note of an attribute that is not read."""
        if entry.param in CREDENTIALS and _LIMIT.match(attribute.name.upper()):
            whose = f"{entry.param}[{entry.index}] {attribute.name}"
            self.warn(
                entry.place, f"{whose}: such a limit is not modelled; jobs start that it would keep waiting"
            )
            return
        self.unknown[f"{entry.param} {attribute.name}"] = self._guess(entry, attribute)

    def _guess(self, entry: Entry, attribute: Attribute) -> str:
        """Return what may have been meant by an attribute of a credential."""
        if entry.param not in CREDENTIALS:
            return ""
        if attribute.name == "FLAGS":
            return f" ({entry.place}; did you mean {'QFLAGS' if entry.param == 'QOSCFG' else 'JOBFLAGS'}?)"
        guess = difflib.get_close_matches(attribute.name, CREDENTIAL_ATTRIBUTES, 1, _ALIKE)
        return f" ({entry.place}; did you mean {guess[0]}?)" if guess else ""


def _without_reservations(text: str) -> tuple[str, tuple[str, ...]]:
    """Take ``USERESERVED:name`` out of a list of flags, whose own separator may be the colon as well."""
    found = [match for match in _RESERVED.finditer(text) if match.group(1) not in FLAGS]
    for match in found:
        text = text.replace(match.group(0), "")
    return text, tuple(match.group(0) for match in found)


def weight_of(param: str) -> tuple[str, bool] | None:
    """Return the key of a weight, and whether `param` is its cap; None: it is no weight."""
    if param in WEIGHTS:
        return WEIGHTS[param], False
    if param.endswith("CAP") and f"{param[:-3]}WEIGHT" in WEIGHTS:
        return WEIGHTS[f"{param[:-3]}WEIGHT"], True
    return None
