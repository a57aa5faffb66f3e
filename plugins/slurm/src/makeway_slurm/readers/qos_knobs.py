"""Say which settings of QOS a search may change, and write them into what ``sacctmgr -P show qos`` printed.

They are in Slurm's database, so that a person types a command; the text stands for them in a replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from makeway.config import Config
from makeway.foreign import Knob, knob
from makeway.readers.lines import read_text
from makeway_slurm.readers.knobs import levels
from makeway_slurm.readers.sacctmgr_names import canonical
from makeway_slurm.readers.values import parse_time

_MODES = ("cluster", "requeue", "cancel")
_UNSET = {"PreemptMode": "cluster", "GraceTime": "00:00:00", "PreemptExemptTime": "", "MinPrioThreshold": ""}
_VALUES = {
    "PreemptMode": _MODES,
    "GraceTime": ("00:00:00", "00:01:00", "00:05:00", "00:15:00"),
    "PreemptExemptTime": ("", "00:10:00", "00:30:00", "01:00:00", "04:00:00"),
}


def qos_knobs(config: Config, files: Sequence[Path]) -> Iterator[Knob]:
    """Yield what may be changed of the QOS whose jobs make way for those of others.

    :param config: as it stands; other policies than preempt/qos do not ask QOS how their jobs make way.
    """
    if config.policy.preempt.removeprefix("preempt/") != "qos":
        return
    below = {name for table in config.qos for name in table.preempt}
    values_of = {**_VALUES, "MinPrioThreshold": ("", *levels(_weights(config)))}
    gang = "gang" in (word.lower() for word in config.policy.preempt_mode)
    for file in files:
        lines = read_text(file).split("\n")
        head = _head(lines)
        columns = [] if head is None else [canonical(each) for each in lines[head].split("|")]
        if "name" not in columns or "user" in columns:
            continue
        for at in range((head or 0) + 1, len(lines)):
            cells = [each.strip() for each in lines[at].split("|")]
            if len(cells) != len(columns) or (name := cells[columns.index("name")]) not in below:
                continue
            for key, values in values_of.items():
                # It is printed only if asked for.
                if canonical(key) in columns or key == "MinPrioThreshold":
                    now = cells[columns.index(canonical(key))] if canonical(key) in columns else ""
                    listed = (*values, "suspend") if key == "PreemptMode" and gang else values
                    yield knob(
                        f"QOS={name} {key}",
                        str(file.absolute()),
                        now,
                        listed,
                        _with_cell,
                        default=_UNSET[key],
                        typed=_command,
                        qos=name,
                        key=key,
                    )


def _weights(config: Config) -> list[int]:
    """Return the weights by which priorities come about; none: they count down."""
    settings = config.policy.settings.get("priority/multifactor", {})
    return [
        int(each) for key, each in settings.items() if key.startswith("weight_") and isinstance(each, int)
    ]


def _head(lines: Sequence[str]) -> int | None:
    """Return the place of the header: the first line that is no comment."""
    return next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)


def _with_cell(text: str, value: str, qos: str, key: str) -> str:
    lines = text.split("\n")
    head = _head(lines)
    assert head is not None
    columns = [canonical(each) for each in lines[head].split("|")]
    if canonical(key) not in columns:
        columns.append(canonical(key))
        lines = [
            _wider(line, key if at == head else "") if at >= head else line for at, line in enumerate(lines)
        ]
    for at in range(head + 1, len(lines)):
        cells = lines[at].split("|")
        if len(cells) == len(columns) and cells[columns.index("name")].strip() == qos:
            cells[columns.index(canonical(key))] = value
            lines[at] = "|".join(cells)
    return "\n".join(lines)


def _wider(line: str, cell: str) -> str:
    return f"{line}|{cell}" if line else line


def _command(value: str, qos: str, key: str) -> str:
    if key == "GraceTime":  # printed as a time, and given in seconds (slurm-preemption 6.4)
        value = str(parse_time(value))
    return f"sacctmgr modify qos {qos} set {key}={value or '-1'}"
