"""Change one token of the policies or the engine and see whether a test notices.

    python tests/mutation/run.py --sample 200 --seed 7 --session mutants.sqlite

Cosmic Ray lists the places and makes each change, in a copy of the committed tree; the session file keeps what
was run, so that the same command goes on after an interruption. Exit status 1: fewer than --reach percent died.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
from cosmic_ray.commands import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult
from covering import MODULES, NOTED, Covering

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PAIRS = (
    "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_Gt Gt_Lt Is_IsNot IsNot_Is In_NotIn NotIn_In".split()
)
OPERATORS = [
    *(f"core/ReplaceComparisonOperator_{pair}" for pair in PAIRS),
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/AddNot",
    "core/ReplaceUnaryOperator_Delete_Not",
]
"""A comparison, `and` or `or`, a `not`: what people get wrong. Changes that raise TypeError are left out."""
LEFT_OUT = ("test_contract*.py", "test_fuzz*.py", "test_properties.py")
"""Tests that draw their cases: slow, and no mutant should need them."""


@attrs.frozen(kw_only=True)
class Target:
    """One part of the code and the tests that answer for it."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self, tree: Path) -> list[Path]:
        """List the modules in `tree`, relative to it, in order of their names."""
        found = {path for pattern in self.modules for path in tree.glob(pattern)}
        return sorted(path.relative_to(tree) for path in found)


def targets() -> list[Target]:
    """Read targets.toml."""
    table = tomllib.loads((HERE / "targets.toml").read_text())
    return [
        Target(name=name, modules=tuple(each["modules"]), tests=tuple(each["tests"]))
        for name, each in table.items()
    ]


def equivalents(tree: Path) -> set[tuple[str, str, str]]:
    """Return module, line and operator of mutants that change nothing.

    :raises SystemExit: if an entry's line is no longer in its module.
    """
    known = set()
    for entry in tomllib.loads((HERE / "equivalent.toml").read_text())["mutant"]:
        lines = [line.strip() for line in (tree / entry["module"]).read_text().splitlines()]
        if entry["line"] not in lines:
            sys.exit(f"equivalent.toml: {entry['module']} has no line {entry['line']!r} any more")
        known.add((entry["module"], entry["line"], entry["operator"]))
    return known


def copy_tree(to: Path) -> None:
    """Put the committed files into `to`: mutants never touch the working tree."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(to)], input=archive, check=True)


def environment(tree: Path) -> dict[str, str]:
    """Return an environment in which the copy's packages come before the installed ones."""
    sources = sorted(str(path) for path in tree.glob("**/src") if path.is_dir())
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sources), "PYTHONDONTWRITEBYTECODE": "1"}


def draw(items: Iterable[WorkItem], count: int, seed: int) -> list[WorkItem]:
    """Draw places first and then one change for each, so that a place with many changes weighs no more."""
    places: dict[tuple[str, tuple[int, int]], list[WorkItem]] = {}
    for item in items:
        spec = item.mutations[0]
        places.setdefault((str(spec.module_path), spec.start_pos), []).append(item)
    chance = random.Random(seed)
    chosen = chance.sample(sorted(places), min(count, len(places)))
    return [chance.choice(sorted(places[place], key=_by_operator)) for place in chosen]


def _by_operator(item: WorkItem) -> tuple[str, int]:
    return item.mutations[0].operator_name, item.mutations[0].occurrence


def pytest_command(*arguments: str) -> list[str]:
    """Return how pytest is called."""
    quick = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    return [
        sys.executable,
        "-m",
        "pytest",
        *quick,
        *(f"--ignore-glob=*/{each}" for each in LEFT_OUT),
        *arguments,
    ]


def note_covering(target: Target, tree: Path, folder: Path) -> Covering:
    """Run the target's tests once, unchanged, and keep which lines each of them runs; what is kept is not run again.

    :raises SystemExit: if a test fails although nothing is changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    noted = []
    for path in target.tests:
        kept = (folder / re.sub(r"\W+", "_", path)).resolve()
        noted.append(kept)
        if kept.with_suffix(".json").exists():
            continue
        extra = {
            NOTED: str(kept),
            MODULES: ":".join(sorted({each for one in targets() for each in one.modules})),
            "PYTHONPATH": f"{HERE}:{environment(tree)['PYTHONPATH']}",
        }
        done = subprocess.run(
            pytest_command("-p", "covering", path),
            cwd=tree,
            env=environment(tree) | extra,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{path} fails without any change:\n{done.stdout[-4000:]}")
    return Covering(noted)


def run_tests(tests: Sequence[str], tree: Path, limit: float) -> tuple[bool, str]:
    """Run `tests` until one fails; say whether one did, and the end of what pytest printed."""
    if not tests:
        return False, "no test runs this line"
    listed = tree / "chosen-tests.txt"
    done = None
    for chosen in (tests, sorted({test.partition("::")[0] for test in tests})):
        listed.write_text("\n".join(chosen))
        try:
            done = subprocess.run(
                pytest_command(f"@{listed.name}"),
                cwd=tree,
                env=environment(tree),
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True, f"more than {limit:g} s"
        if done.returncode in (0, 1, 2):
            break  # anything else: a test is not there, or nothing can be imported any more, which its file tells
    assert done is not None
    return done.returncode != 0, done.stdout[-2000:]


def play(item: WorkItem, covering: Covering, tree: Path, limit: float) -> WorkResult:
    """Make the change, run the tests that run its line, take it back.

    :param limit: seconds beyond ten times what these tests took unchanged.
    """
    spec = item.mutations[0]
    operator = get_operator(spec.operator_name)(**spec.operator_args)
    tests = covering.tests_of(spec.module_path, spec.start_pos[0], tree)
    limit += 10 * sum(covering.seconds[test] for test in tests)
    with use_mutation(tree / spec.module_path, operator, spec.occurrence) as (before, after):
        if after is None:
            return WorkResult(worker_outcome=WorkerOutcome.NO_TEST)
        killed, said = run_tests(tests, tree, limit)
    outcome = TestOutcome.KILLED if killed else TestOutcome.SURVIVED
    diff = _change(before, after)
    return WorkResult(worker_outcome=WorkerOutcome.NORMAL, output=said, test_outcome=outcome, diff=diff)


def _change(before: str, after: str) -> str:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((f"{old.strip()}  ->  {new.strip()}" for old, new in pairs if old != new), "")


def open_session(path: Path, wanted: Sequence[Target], tree: Path, count: int, seed: int) -> WorkDB:
    """Open the session file; a new one gets its sample of places.

    :raises SystemExit: it was begun on another commit, whose lines are elsewhere.
    """
    commit = path.with_suffix(".commit")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    if path.exists():
        if commit.read_text() != head:
            sys.exit(
                f"{path} was begun on commit {commit.read_text().strip()}: check that out, or name another file"
            )
        return WorkDB(str(path), WorkDB.Mode.open)
    commit.write_text(head)
    session = WorkDB(str(path), WorkDB.Mode.create)
    files = [file for target in wanted for file in target.files(tree)]
    with _inside(tree):
        init(files, session, {})
    wanted_kinds = frozenset(OPERATORS)
    items = [item for item in session.work_items if item.mutations[0].operator_name in wanted_kinds]
    chosen = draw(items, count, seed)
    session.clear()
    session.add_work_items(chosen)
    return session


class _inside:  # noqa: N801  # reads as a word: with _inside(tree)
    """Work in a directory for a while."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        self.back = Path.cwd()
        os.chdir(self.path)

    def __exit__(self, *_: object) -> None:
        os.chdir(self.back)


def target_of(spec: MutationSpec, wanted: Sequence[Target], tree: Path) -> Target:
    """Return the target that has the module."""
    return next(target for target in wanted if spec.module_path in target.files(tree))


def known_equivalent(spec: MutationSpec, tree: Path, known: set[tuple[str, str, str]]) -> bool:
    """Say whether equivalent.toml lists this change."""
    line = (tree / spec.module_path).read_text().splitlines()[spec.start_pos[0] - 1].strip()
    return (str(spec.module_path), line, spec.operator_name) in known


def survivors(session: WorkDB, tree: Path, known: set[tuple[str, str, str]]) -> Iterator[str]:
    """Name each change that no test noticed, as module:line and the change."""
    for item, result in session.completed_work_items:
        spec = item.mutations[0]
        if result.test_outcome is TestOutcome.SURVIVED and not known_equivalent(spec, tree, known):
            yield f"{spec.module_path}:{spec.start_pos[0]}: {result.diff}  [{spec.operator_name}]"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=200, help="how many places are changed, one at a time")
    parser.add_argument("--seed", type=int, default=1, help="which places")
    parser.add_argument("--session", type=Path, default=Path("mutants.sqlite"), help="keeps what was run")
    parser.add_argument("--only", action="append", choices=[target.name for target in targets()])
    parser.add_argument(
        "--limit", type=float, default=120.0, help="most seconds beyond ten times the tests' own"
    )
    parser.add_argument("--reach", type=float, default=90.0, help="percent that has to die")
    return parser.parse_args()


def main() -> int:
    """Run what the session has left, list survivors, say the score."""
    options: Any = arguments()
    wanted = [target for target in targets() if not options.only or target.name in options.only]
    scratch = Path(tempfile.mkdtemp(prefix="mutants-"))
    try:
        copy_tree(scratch)
        known = equivalents(scratch)
        session = open_session(options.session, wanted, scratch, options.sample, options.seed)
        covering: dict[str, Covering] = {}
        pending = sorted(session.pending_work_items, key=lambda item: item.job_id)
        for at, item in enumerate(pending, 1):
            spec = item.mutations[0]
            target = target_of(spec, wanted, scratch)
            if target.name not in covering:
                covering[target.name] = note_covering(
                    target, scratch, options.session.with_suffix(".covering")
                )
            result = play(item, covering[target.name], scratch, options.limit)
            session.set_result(item.job_id, result)
            word = result.test_outcome.value if result.test_outcome else "no change"
            print(
                f"{at}/{len(pending)} {word}: {spec.module_path}:{spec.start_pos[0]}: {result.diff}",
                flush=True,
            )
        return report(session, scratch, known, options.reach)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def report(session: WorkDB, tree: Path, known: set[tuple[str, str, str]], reach: float) -> int:
    """Print survivors and the share that died; 0 if that is enough."""
    left = list(survivors(session, tree, known))
    counted = sum(
        1
        for item, result in session.completed_work_items
        if result.test_outcome is not None and not known_equivalent(item.mutations[0], tree, known)
    )
    for line in left:
        print("survived:", re.sub(r"\s+", " ", line))
    share = 100.0 * (counted - len(left)) / counted if counted else 100.0
    print(f"{counted - len(left)} of {counted} killed, {share:.1f}%; wanted: {reach:g}%")
    return 0 if share >= reach else 1


if __name__ == "__main__":
    sys.exit(main())
