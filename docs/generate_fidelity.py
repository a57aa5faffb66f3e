"""Write the generated part of docs/fidelity-rules.md: the score against recordings, deviations, rules, scenarios.

Run ``python docs/generate_fidelity.py`` after changing anything that a replay depends on; it plays all recordings.
A test keeps the page current. Text outside the markers is written by hand.
"""

from __future__ import annotations

import ast
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.config import parse_mode
from makeway.model import ModeFlag
from makeway_slurm.recordings.play import play
from makeway_slurm.recordings.recording import RecordedInterval, read_recording
from makeway_slurm.recordings.scenario import Scenario, build_scenario, read_scenario_file
from makeway_slurm.recordings.verify import verify_one
from makeway_slurm_rules.rules import NEWEST_RELEASE, RULES, in_force
from makeway_verify.verdicts import Outcome, Verdict, score

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "fidelity-rules.md"
TESTS = ROOT / "tests"
FOLDERS = [
    (folder, results.name.removeprefix("results-"))
    for folder in ("oracle", "recordings")
    for results in sorted((TESTS / folder).glob("results-*"))
]

NUMBERED: Mapping[str, int] = {"S": 60, "G": 29, "L": 20, "C": 33, "Q": 11}
"""How many scenarios have a number with each letter."""
TITLES = {
    "S": "preemption",
    "G": "gang scheduling",
    "L": "select/linear",
    "C": "select/cons_tres",
    "Q": "schedulers",
}
OF_ORACLE: Mapping[str, tuple[str, ...]] = {
    "S02": ("pp_equal_tiers",),
    "S07": ("seed_reorder_2_4_8_default",),
    "S15": ("minex_boundary",),
    "S19": ("prio_partition", "prio_qos"),
    "S23": ("grace_exit_natural",),
    "S29": ("seed_preempt_suspend_gang_linear",),
    "S30": ("seed_preempt_placement",),
    "S31": ("susp_memory_blocks_cores",),
    "S33": ("seed_preempt_low_med_hi_linear", "seed_preempt_low_med_hi_cons_tres"),
    "S34": ("seed_preempt_qos_same_partition",),
    "S35": ("qos_suspend_two_partitions",),
    "S45": ("exempt_suspend_shared",),
    "S46": ("feature_alternatives",),
    "S57": ("pp_chain_suspend",),
    "G01": ("seed_gang_two_full_jobs",),
    "G03": ("seed_gang_fill_9_10_11",),
    "G04": ("seed_gang_local_backfill",),
    "G19": ("seed_gang_cr_cpu_memory",),
    "G20": ("seed_gang_cr_core_memory",),
    "C02": ("one_node_first_fit",),
    "C06": ("seed_gang_cr_core_memory",),
}
"""Recordings of the oracle that play a numbered scenario; their files do not name it."""
NOT_COMPARED: Mapping[str, str] = {
    "L19": "about the memory that sinfo shows",
    "S54": "about the answer of sbatch --test-only",
}
"""Scenarios whose recordings are played, but whose point is none of what a comparison looks at."""
TEST_FOLDERS = (
    "core/tests",
    "plugins/app/tests/app",
    "plugins/app/tests/engine",
    "plugins/slurm/tests",
    "tests",
    "plugins/preempt_partition_prio/tests",
    "plugins/preempt_qos/tests",
    "plugins/select_cons_tres/tests",
    "plugins/select_linear/tests",
)
"""Where tests speak of Slurm's scenarios; other schedulers have numbers of their own."""
NO_REPLAY = frozenset(("test_check.py", "test_fidelity.py"))
"""Tests that name scenarios but expect nothing of a run."""

_NUMBER = re.compile(r"\b([SGLCQ])(\d\d)\b(?: to \1(\d\d)\b)?")
_TAG = re.compile(r"[sglcq]\d\d")


# ------------------------------------------------------------------------------------- playing
@attrs.frozen
class Played:
    """One recording, and how the replay compares."""

    folder: str
    release: str
    scenario: Scenario
    verdict: Verdict
    placements: int
    """How many first placements of an incarnation the recording knows the CPUs of."""
    same_cpus: int
    """How many of them the replay put on the same CPUs."""

    @property
    def key(self) -> tuple[str, str]:
        """Scenario and release, by which deviations are listed."""
        return self.scenario.name, self.release


def play_all() -> list[Played]:
    """Replay every recording, in order of folder, release and name."""
    return [
        _play_one(folder, release, result)
        for folder, release in FOLDERS
        for result in sorted((TESTS / folder / f"results-{release}").glob("*.json"))
        if _scenario_of(folder, result.stem).exists()
    ]


def _scenario_of(folder: str, name: str) -> Path:
    return TESTS / folder / "scenarios" / f"{name}.toml"


def _play_one(folder: str, release: str, result: Path) -> Played:
    path = _scenario_of(folder, result.stem)
    records: list[Mapping[str, Any]] = []

    def watched(scenario: Scenario) -> Mapping[str, Any]:
        records.append(play(scenario))
        return records[-1]

    verdict = verify_one(path, result, watched)
    placements = list(_cpus(result, records[0])) if records else []
    scenario = build_scenario(read_scenario_file(path), read_recording(result))
    return Played(folder, release, scenario, verdict, len(placements), sum(placements))


def _cpus(result: Path, record: Mapping[str, Any]) -> Iterator[bool]:
    """Say for each incarnation of a job whether it began on the recorded CPUs, where they are recorded."""
    replayed = {job["name"]: job for job in record["jobs"].values()}
    for name, job in read_recording(result).jobs.items():
        mine = _first_runs((i.get("restart", 0), i) for i in _running(replayed.get(name)))
        recorded: dict[int, RecordedInterval] = _first_runs(
            (each.restart, each) for each in job.intervals if each.state == "RUNNING" and each.cpu_ids
        )
        for restart, interval in recorded.items():
            if restart in mine:
                held = {node: _numbers(text) for node, text in mine[restart]["cpus"].items()}
                yield held == {node: sorted(ids) for node, ids in interval.cpu_ids.items()}


def _running(job: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    return [i for i in job["intervals"] if i["state"] == "RUNNING" and i.get("cpus")] if job else []


def _first_runs(pairs: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for restart, interval in pairs:
        found.setdefault(restart, interval)
    return found


def _numbers(text: str) -> list[int]:
    """Read ``0-2,5``."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


# --------------------------------------------------------------------------------- (a) the score
_COLUMNS = ("agree", "on purpose", "other nodes", "differ", "not played")


def score_table(runs: Sequence[Played], purposes: Iterable[tuple[str, str]]) -> list[str]:
    """Return the score by folder, release and kind, and a line on distances and CPUs for each folder."""
    listed = set(purposes)
    rows = [
        [*kind, *_counts(list(some), listed)]
        for kind, some in itertools.groupby(sorted(runs, key=_kind), key=_kind)
    ]
    rows.append(["all", "", "", "", "", *_counts(runs, listed)])
    head = ["folder", "Slurm", "select", "preempt", "gang", "played", *_COLUMNS]
    lines = _table(head, rows)
    lines.append("")
    for folder, release in FOLDERS:
        some = [run for run in runs if (run.folder, run.release) == (folder, release)]
        told = score([run.verdict for run in some])
        cpus, same = sum(run.placements for run in some), sum(run.same_cpus for run in some)
        lines.append(
            f"- `tests/{folder}`, {release}: {told}; {same} of {cpus} placements are on the recorded CPUs."
        )
    return lines


def _kind(run: Played) -> tuple[str, str, str, str, str]:
    policy = run.scenario.config.policy
    gang = ModeFlag.GANG in parse_mode(policy.preempt_mode).flags
    select, preempt = (name.partition("/")[2] for name in (policy.select, policy.preempt))
    return f"`tests/{run.folder}`", run.release, select, preempt, "yes" if gang else "no"


def _counts(runs: Sequence[Played], purposes: set[tuple[str, str]]) -> list[str]:
    counts = Counter(_class(run, purposes) for run in runs)
    played = len(runs) - counts["not played"]
    return [str(played), *(str(counts[name] or "") for name in _COLUMNS)]


def _class(run: Played, purposes: set[tuple[str, str]]) -> str:
    outcome = run.verdict.outcome
    if outcome is Outcome.SKIPPED:
        return "not played"
    if outcome is Outcome.AGREES:
        return "agree"
    if run.key in purposes:
        return "on purpose"
    return "other nodes" if outcome is Outcome.OTHER_NODES else "differ"


# ---------------------------------------------------------------------------- (b) the deviations
def deviations() -> list[dict[str, Any]]:
    """Return the entries of deviations.toml."""
    text = (TESTS / "oracle" / "deviations.toml").read_text(encoding="utf-8")
    listed: list[dict[str, Any]] = tomllib.loads(text)["deviation"]
    return listed


def deviation_table(entries: Sequence[Mapping[str, Any]], runs: Sequence[Played]) -> list[str]:
    """Return what differs on purpose, and the recordings that are not played."""
    found = {run.key: run for run in runs}
    rows = []
    for entry in entries:
        run = found[entry["scenario"], entry["release"]]
        rule = entry.get("rule")
        rows.append(
            [
                f"`{entry['scenario']}`",
                entry["release"],
                run.verdict.outcome.value,
                f"`{rule} = true`" if rule else "",
                entry["reason"],
            ]
        )
    lines = _table(["scenario", "Slurm", "outcome", "Slurm's behaviour by", "reason"], rows)
    for run in runs:
        if run.verdict.outcome is Outcome.SKIPPED:
            lines += ["", f"Not played: `{run.scenario.name}` on {run.release} ({run.verdict.why})."]
    return lines


# --------------------------------------------------------------------------------- (c) the rules
def rule_table() -> list[str]:
    """Return the rules that depend on the release, with the modules that ask for them."""
    askers = _askers()
    default = in_force(None, {})
    newest = in_force(NEWEST_RELEASE, {})
    rows = []
    for name, rule in RULES.items():
        here = "on" if default[name] else "off"
        if default[name] is not newest[name]:
            here += f" ({NEWEST_RELEASE}: {'on' if newest[name] else 'off'})"
        rows.append(
            [
                f"`{name}`",
                rule.text,
                rule.since or "",
                rule.until or "",
                here,
                rule.section,
                ", ".join(askers.get(name, ())) or "**none: not modelled**",
            ]
        )
    return _table(["rule", "text", "since", "until", "default", "section", "asked for in"], rows)


def _askers() -> dict[str, list[str]]:
    """Return rule -> the modules that ask whether it is in force."""
    found: dict[str, list[str]] = {}
    sources = [ROOT / "core" / "src", *sorted((ROOT / "plugins").glob("*/src"))]
    for path in sorted(path for source in sources for path in source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for name in sorted(set(re.findall(r"\brule\(\s*\"(\w+)\"", text))):
            if "testing" not in path.parts:
                found.setdefault(name, []).append(f"`{_module(path)}`")
    return found


def _module(path: Path) -> str:
    """Return a module's name without what all of them have in common."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts = parts[parts.index("src") + 1 :]
    if parts[0] == "makeway":
        parts = parts[1:]
    parts[0] = parts[0].removeprefix("makeway_")
    return ".".join(part for part in parts if part != "__init__")


# ----------------------------------------------------------------------------- (d) the scenarios
@attrs.define
class Shown:
    """Where a numbered scenario is executed."""

    recordings: list[str] = attrs.field(factory=list)
    tests: list[str] = attrs.field(factory=list)


def numbers() -> list[str]:
    """Return the numbers of all scenarios."""
    return [f"{letter}{at:02}" for letter, count in NUMBERED.items() for at in range(1, count + 1)]


def coverage(runs: Sequence[Played]) -> dict[str, Shown]:
    """Return each numbered scenario with the recordings played and the tests that execute it."""
    found = {number: Shown() for number in numbers()}
    for number, name in _recorded(runs):
        if name not in found[number].recordings:
            found[number].recordings.append(name)
    for folder in TEST_FOLDERS:
        for path in sorted((ROOT / folder).glob("test_*.py")):
            for number, name in _tested(path):
                if name not in found[number].tests:
                    found[number].tests.append(name)
    return found


def _recorded(runs: Sequence[Played]) -> Iterator[tuple[str, str]]:
    listed = {row[0]: row[1] for row in _readme_rows()}
    for run in runs:
        if run.verdict.outcome is Outcome.SKIPPED:
            continue
        name = run.scenario.name
        named = {tag.upper() for tag in run.scenario.tags if _TAG.fullmatch(tag)}
        if run.folder == "recordings":
            named |= set(_numbers_in(listed.get(name, "")))
        else:
            named |= {number for number, names in OF_ORACLE.items() if name in names}
        for number in sorted(named - set(NOT_COMPARED)):
            yield number, name


def _readme_rows() -> Iterator[tuple[str, str]]:
    """Yield scenario and numbers from the table in tests/recordings/README.md."""
    for line in (TESTS / "recordings" / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 4:
            yield cells[0], cells[1]


def _tested(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the numbers that a test names in its docstring or in the ids of its cases."""
    if path.name in NO_REPLAY:
        return
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
            continue
        texts = [ast.get_docstring(node) or ""]
        for decorator in node.decorator_list:
            texts += [
                str(keyword.value.value)
                for call in ast.walk(decorator)
                if isinstance(call, ast.Call)
                for keyword in call.keywords
                if keyword.arg == "id" and isinstance(keyword.value, ast.Constant)
            ]
        for number in _numbers_in(" ".join(texts)):
            yield number, f"{path.stem}.{node.name}"


def _numbers_in(text: str) -> list[str]:
    """Return the numbers of scenarios in a text; ``G23 to G25`` are three."""
    found = []
    for letter, first, last in _NUMBER.findall(text):
        for at in range(int(first), int(last or first) + 1):
            if at <= NUMBERED[letter]:
                found.append(f"{letter}{at:02}")
    return found


def scenario_table(found: Mapping[str, Shown]) -> list[str]:
    """Return how many numbered scenarios are executed, each with where, and those that are not."""
    rows = []
    for letter, count in NUMBERED.items():
        some = [shown for number, shown in found.items() if number[0] == letter]
        executed = sum(1 for shown in some if shown.recordings or shown.tests)
        by_recording = sum(1 for shown in some if shown.recordings)
        by_test = sum(1 for shown in some if shown.tests)
        rows.append([f"{letter} ({TITLES[letter]})", *map(str, (count, executed, by_recording, by_test))])
    totals = [sum(int(row[at]) for row in rows) for at in range(1, 5)]
    rows.append(["all", *map(str, totals)])
    lines = _table(["scenarios", "numbered", "executed", "by a recording", "by a test"], rows)
    missing = [number for number, shown in found.items() if not shown.recordings and not shown.tests]
    told = [f"{number} ({NOT_COMPARED[number]})" if number in NOT_COMPARED else number for number in missing]
    lines += ["", f"Not executed: {', '.join(told) or 'none'}.", ""]
    rows = [
        [
            number,
            ", ".join(f"`{name}`" for name in shown.recordings),
            ", ".join(f"`{name}`" for name in shown.tests),
        ]
        for number, shown in found.items()
        if shown.recordings or shown.tests
    ]
    return lines + _table(["scenario", "recordings", "tests"], rows)


# ------------------------------------------------------------------------------------- the page
def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(head), "|" + "---|" * len(head), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def parts(runs: Sequence[Played]) -> dict[str, list[str]]:
    """Return the lines of each generated part, by the name in its markers."""
    listed = deviations()
    purposes = [(entry["scenario"], entry["release"]) for entry in listed]
    return {
        "score": score_table(runs, purposes),
        "deviations": deviation_table(listed, runs),
        "rules": rule_table(),
        "scenarios": scenario_table(coverage(runs)),
    }


def render(page: str, runs: Sequence[Played]) -> str:
    """Return `page` with all generated parts made anew.

    :raises ValueError: a part has no markers.
    """
    for name, lines in parts(runs).items():
        begin, end = f"<!-- begin {name}: generated -->", f"<!-- end {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page lacks the markers {begin} and {end}")
        before, _, rest = page.partition(begin)
        after = rest.partition(end)[2]
        page = before + "\n".join([begin, "", *lines, "", end]) + after
    return page


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8"), play_all()), encoding="utf-8")


if __name__ == "__main__":
    main()
