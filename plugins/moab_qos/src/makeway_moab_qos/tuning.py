"""Say which settings of a moab.cfg or maui.cfg a search may change, and write them into its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from makeway.foreign import Knob, Source, knob
from makeway_moab_qos.grammar import Entry, attributes, parse
from makeway_moab_qos.parameters import METHODS, PLAIN

_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "PREEMPTPOLICY": ("REQUEUE", "SUSPEND", "CHECKPOINT", "CANCEL"),
    "JOBPREEMPTMINACTIVETIME": ("00:10:00", "00:30:00", "01:00:00"),
    "JOBPREEMPTMAXACTIVETIME": ("01:00:00", "04:00:00", "12:00:00"),
    "JOBPREEMPTCOMPLETIONTIME": ("00:15:00", "01:00:00"),
    "QUEUETIMEWEIGHT": ("0", "1", "10"),
    "XFACTORWEIGHT": ("0", "10", "100"),
}
"""Parameter -> values worth a try."""
_RANKED = ("QOSCFG", "CLASSCFG", "ACCOUNTCFG", "GROUPCFG", "USERCFG")
_PRIORITY = ("1", "100", "1000", "10000")


def knobs(source: Source, *, maui: bool) -> Sequence[Knob]:
    """Return what may be changed in a file; what it includes stays as it is.

    :raises ConfigError: it cannot be read.
    """
    entries = [each for each in parse(source, maui=maui).entries if each.place.startswith(f"{source.name}:")]
    return [*_plain(entries, source.name, maui=maui), *_priorities(entries, source.name, maui=maui)]


def _plain(entries: Sequence[Entry], file: str, *, maui: bool) -> Iterator[Knob]:
    for param, values in _PARAMETERS.items():
        known = PLAIN.get(param)
        if maui and known is not None and not known.maui:
            continue
        now = next((each.value for each in reversed(entries) if each.param == param and not each.index), "")
        optional = now.upper() not in METHODS
        yield knob(param, file, now, values, with_parameter, unset=optional, param=param)


def _priorities(entries: Sequence[Entry], file: str, *, maui: bool) -> Iterator[Knob]:
    """Yield the priority of each QoS, class and so on, where the file gives one."""
    for entry in entries:
        if entry.param not in _RANKED or not entry.index:
            continue
        found, _ = attributes(entry, maui=maui)
        now = next((each.value for each in found if each.name == "PRIORITY"), "")
        if now:
            about = f"{entry.param}[{entry.index}] PRIORITY"
            param, index = entry.param, entry.index
            yield knob(about, file, now, _PRIORITY, with_priority, param=param, index=index)


def with_parameter(text: str, value: str, param: str) -> str:
    """Return a file with a parameter in it; an empty value takes it out."""
    pattern = re.compile(
        rf"^(\s*{param}(?:\s*=\s*|\s+))([^#\n]*?)([ \t]*(?:#.*)?)$", re.IGNORECASE | re.MULTILINE
    )
    found = list(pattern.finditer(text))
    if found:
        last = found[-1]
        if not value:
            return text[: last.start()] + text[last.end() :].removeprefix("\n")
        return f"{text[: last.start()]}{last[1].lstrip(chr(10))}{value}{last[3]}{text[last.end() :]}"
    if not value:
        return text
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{param} {value}\n"


def with_priority(text: str, value: str, param: str, index: str) -> str:
    """Return a file with another priority of a QoS, class and so on."""
    pattern = re.compile(
        rf"^([ \t]*{param}[ \t]*\[[ \t]*{re.escape(index)}[ \t]*\][^#\n]*?(?<![\w.\-])PRIORITY[ \t]*=[ \t]*)[^\s#]+",
        re.IGNORECASE | re.MULTILINE,
    )
    return pattern.sub(lambda match: f"{match[1]}{value}", text, count=1)
