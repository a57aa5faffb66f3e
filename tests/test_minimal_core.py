"""The core knows no scheduler: what it says of Slurm is prose that compares, in docstrings and comments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "core/src/makeway"
WORDS = re.compile(r"slurm|sacct|scontrol|squeue|sbatch", re.IGNORECASE)
TABLES = frozenset(("catalogue.toml",))
"""Data of the core that may say where to find things."""
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name not in TABLES)


def in_code(text: str) -> Iterator[str]:
    """Yield the identifiers and strings of a module with a word of Slurm in them, each after its line."""
    tree = ast.parse(text)
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if id(node) in prose:
            continue
        for _, value in ast.iter_fields(node):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str) and WORDS.search(each):
                    yield f"{getattr(node, 'lineno', '?')}: {each}"


def test_the_search_finds() -> None:
    """Names, attributes, arguments, imports and strings, those of f-strings too; not prose."""
    text = '''"""As Slurm does."""
import makeway_slurm
def squeue(sbatch_args):
    """As sacct does."""
    return sbatch_args.scontrol, "slurm.conf", f"as {1} Slurm does"  # as Slurm does
'''
    found = {line.partition(": ")[2] for line in in_code(text)}
    assert found == {"makeway_slurm", "squeue", "sbatch_args", "scontrol", "slurm.conf", " Slurm does"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_word_of_slurm(path: Path) -> None:
    """What decides or prints is the plugins'; only tables of names that moved, and of who brings what, name them."""
    assert list(in_code(path.read_text(encoding="utf-8"))) == []


def test_only_two_tables_name_it() -> None:
    """Data of the core may say where to find things."""
    others = [path for path in SOURCE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    named = {
        str(path.relative_to(SOURCE)) for path in others if WORDS.search(path.read_text(encoding="utf-8"))
    }
    assert named <= TABLES
