"""Write the generated parts of docs/coming-from-slurm.md: what the reader knows and makeway does not model.

``python docs/generate_slurm.py``; a test keeps the page current.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from makeway_slurm.readers import names
from makeway_slurm.readers import values as slurm_values
from makeway_slurm.readers.releases import MEASURED, RETIRED

PAGE = Path(__file__).with_name("coming-from-slurm.md")
_MARKED = re.compile(r"(<!-- begin (\w+): generated -->\n)(.*?)(<!-- end \2 -->)", re.DOTALL)
_ROW = re.compile(r"^\| (`.*?) \|", re.MULTILINE)
PER_ROW = 6


def options() -> list[str]:
    """Return the options of SchedulerParameters that are known by name."""
    return sorted(slurm_values._SCHEDULER_FLAGS | slurm_values._SCHEDULER_NUMBERS)


def written(text: str) -> set[str]:
    """Return the names in the first columns of the tables of `text`."""
    return {name for row in _ROW.findall(text) for name in re.findall(r"`([^`]+)`", row)}


def _absent(listed: Iterable[str], heading: str, why: str = "") -> Iterator[str]:
    ordered = sorted(listed, key=str.lower)
    if not ordered:
        return
    yield f"| {heading} | here | where, and how |"
    yield "|---|---|---|"
    for at in range(0, len(ordered), PER_ROW):
        row = ", ".join(f"`{name}`" for name in ordered[at : at + PER_ROW])
        yield f"| {row} | absent | {why} |"


def _retired() -> Iterator[str]:
    yield "| parameter | gone since | what became of it |"
    yield "|---|---|---|"
    for each in sorted(RETIRED.values(), key=lambda each: each.name.lower()):
        became = each.instead or ("slurmctld ignores it, and calls it defunct" if each.defunct else "")
        yield f"| `{each.name}` | {each.gone or f'{MEASURED} or before'} | {became} |"


def parts(page: str) -> Mapping[str, str]:
    """Return each generated part of the page, by its mark."""
    by_hand = _MARKED.sub("", page)
    scheduler = by_hand.partition("### SchedulerParameters")[2].partition("\n### ")[0]
    tables = {
        "options": _absent(set(options()) - written(scheduler), "option", "named in a warning"),
        "relevant": _absent(names.RELEVANT, "parameter", "named in a warning"),
        "plumbing": _absent(names.PLUMBING, "parameter"),
        "partition": (
            *_absent(names.PARTITION_RELEVANT, "parameter", "named in a warning"),
            *(line for line in list(_absent(names.PARTITION_PLUMBING, "parameter"))[2:]),
        ),
        "node": (
            *_absent(names.NODE_RELEVANT, "parameter", "named in a warning"),
            *(line for line in list(_absent(names.NODE_PLUMBING, "parameter"))[2:]),
        ),
        "retired": _retired(),
        "others": _absent((names.FRONTEND_KEYS | names.POWER_KEYS | names.SWITCH_KEYS), "parameter"),
    }
    return {mark: "".join(f"{line}\n" for line in lines) for mark, lines in tables.items()}


def render(page: str) -> str:
    """Return the page with its generated parts as they should be."""
    made = parts(page)
    return _MARKED.sub(lambda found: f"{found[1]}{made[found[2]]}{found[4]}", page)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
