"""Look into the gres.conf beside a slurm.conf: how many GRES a node has is said there again, and on which cores.

Numbers of GRES are those of the NodeName lines, in Slurm too: what a node finds beyond them is not used.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from makeway.errors import nearest
from makeway_slurm.readers import names
from makeway_slurm.readers.conf_parts import Record, Setting, shown
from makeway_slurm.readers.draft import Draft
from makeway_slurm.readers.grammar import read_conf

FILE = "gres.conf"
_KEYS = names.by_lower(
    frozenset(
        """AutoDetect Cores Count CPUs File Files Flags Ignore Links MultipleFiles Name NodeName
        Type""".split()
    )
)
_BINDS = frozenset(("cores", "cpus"))
_DETECTED = ("full", "nrt", "nvidia", "nvml", "off", "oneapi", "rsmi")
"""Values of AutoDetect; full is that of 26.05."""


def read_gres_conf(path: Path, draft: Draft) -> None:
    """Say what is wrong or not modelled in the gres.conf beside a slurm.conf; nothing where there is none.

    :raises ConfigError: it cannot be read.
    """
    beside = path.with_name(FILE)
    if not beside.is_file():
        return
    types = draft.get("GresTypes")
    known = [each.strip().lower() for each in types.value.split(",")] if types is not None else []
    detects = None
    for line in _lines(read_conf(beside).entries):
        for setting in line:
            key = setting.canonical
            if key not in _KEYS:
                guess = names.guess(setting.key, _KEYS)
                draft.problems.append(setting.problem(f"no such parameter in {FILE}{guess}"))
            elif key in _BINDS:
                draft.leave_out(f"{FILE} {_KEYS[key]}", setting)
            elif key == "name" and setting.value.lower() not in known:
                text = f"{shown(setting.value)} is not in GresTypes, so that Slurm knows no such resource"
                draft.warn(setting, text + nearest(setting.value.lower(), known))
            elif key == "autodetect" and _is_detected(draft, setting):
                detects = setting
    if detects is not None and not any(_has_gpus(record) for record in draft.conf.records("NodeName")):
        draft.warn(
            detects,
            "GPUs are counted on the nodes; no NodeName line says how many there are, so here they have none: "
            "add Gres=gpu:NUMBER, which Slurm wants as well",
        )


def _is_detected(draft: Draft, setting: Setting) -> bool:
    value = setting.value.lower()
    if value not in _DETECTED:
        allowed = f"allowed: {', '.join(_DETECTED)}{nearest(value, _DETECTED)}"
        draft.problems.append(setting.problem(f"got {shown(setting.value)}; {allowed}"))
    elif value == "full" and not draft.since("26.05"):
        draft.refuse(setting, f"Slurm {draft.release} does not know full (since 26.05)")
    return value in _DETECTED and value != "off"


def _has_gpus(record: Record) -> bool:
    gres = record.get("Gres")
    return gres is not None and any(each.lower().startswith("gpu") for each in gres.value.split(","))


def _lines(entries: tuple[Setting | Record, ...]) -> Iterator[list[Setting]]:
    """Yield the settings of each line; the name of a record is one of them."""
    for _, group in itertools.groupby(entries, lambda each: (each.file, each.line)):
        found: list[Setting] = []
        for each in group:
            found += each.settings if isinstance(each, Record) else [each]
        yield found
