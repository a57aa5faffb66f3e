"""Write docs/model.md: every value that a hook takes or returns, field by field, from the source of the contract.

Run ``python docs/generate_model.py`` after changing a value; a test keeps the page current.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from makeway import errors, foreign, hookspecs, left_out, model, priorities
from makeway.readers import api as readers

PAGE = Path(__file__).with_name("model.md")
MODULES = (model, errors, priorities, foreign, readers, left_out)
"""Where values come from; `makeway.config`, `makeway.worlds` and `makeway.record` have pages of their own."""
SHARED: dict[str, str] = {"Job": "JobDraft", "JobSpec": "SpecDraft", "Allocation": "AllocationDraft"}
"""Class -> the one whose fields it has."""
GROUPS: dict[str, tuple[str, ...]] = {
    "What a hook is given": (
        *(
            "Job",
            "JobSpec",
            "UserSignal",
            "Allocation",
            "Usage",
            "ClusterView",
            "Cluster",
            "Node",
            "Partition",
        ),
        *("Qos", "OverSubscribe", "ModeSetting", "Attempt", "Cover", "Book", "Roll", "Witness"),
    ),
    "What a hook returns": (
        *(
            "Candidates",
            "Protection",
            "Choice",
            "Placement",
            "Blocked",
            "Plan",
            "Signal",
            "Check",
            "Vocabulary",
            "Commands",
        ),
        *("Window", "NodeSets", "Overdue", "Grouping", "Finding", "Problem"),
    ),
    "What a plugin builds": (
        *("Selector", "AdoptingSelector", "Forecast", "QueueOrder", "Limits"),
        *("Gang", "QueuedGang", "TellingGang", "AdoptingGang", "GangOrder", "Stay"),
    ),
    "What a policy of priorities builds": (
        "Prioritizer",
        "WatchfulPrioritizer",
        "AdoptingPrioritizer",
    ),
    "What a reader of files builds": (
        *("Dialect", "Source", "ForeignReader", "Said", "ForeignConfig", "LeftOut", "Accounts", "Loaded"),
        *(
            "ForeignWorkloadReader",
            "ForeignWorkload",
            "WorkloadReader",
            "ReadOptions",
            "Workload",
            "Rejected",
        ),
        *("Translator", "Common", "Term", "Way", "StatusCommand", "Listing"),
        *("RecordingReader", "RecordedScenario", "RecordedAnswer", "RecordedVerdict", "ScenarioReader"),
        *("Played", "Judgement"),
    ),
    "Closed sets": (
        *(
            "PreemptMode",
            "PreemptBasis",
            "ModeFlag",
            "JobState",
            "SuspendedBy",
            "Sharing",
            "Exclusive",
            "GangVerb",
            "Occasion",
        ),
    ),
    "What makes answers quicker and changes none": (
        "ForecastingSelector",
        "ForesightedSelector",
        "ScreeningSelector",
        "Turns",
    ),
}


def classes() -> dict[str, type[Any]]:
    """Return the values of the page by name, in its order."""
    names = [name for group in GROUPS.values() for name in group]
    return {name: next(getattr(each, name) for each in MODULES if hasattr(each, name)) for name in names}


def fields(cls: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each public field of a class with its type and what is said of it."""
    body = _body(cls)
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            assert isinstance(target, ast.Name)
            if not target.id.startswith("_"):
                kind = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
                yield target.id, kind, _text_of(after)


def methods(cls: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each public method and property with its signature and first sentence."""
    for node in _body(cls):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            returned = ast.unparse(node.returns) if node.returns is not None else ""
            is_property = any(
                isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list
            )
            arguments = re.sub(r"^self(, )?", "", ast.unparse(node.args))
            name = node.name if is_property else f"{node.name}({arguments})"
            yield name, returned, ast.get_docstring(node) or ""


def _body(cls: type[Any]) -> list[ast.stmt]:
    tree = ast.parse(inspect.getsource(cls))
    found = tree.body[0]
    assert isinstance(found, ast.ClassDef)
    return found.body


def _text_of(node: ast.stmt | None) -> str:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return inspect.cleandoc(node.value.value)
    return ""


def unit(name: str, kind: str) -> str:
    """Return the unit of a field; empty: it has none."""
    if "Seconds" in kind:
        return "s"
    if "NodeBits" in kind:
        return "bitmap of nodes"
    if "CoreBits" in kind:
        return "bitmap of cores"
    return "MB" if re.search(r"(^|_)mem(ory)?(_|$)", name) and "int" in kind else ""


def seen_by(name: str) -> dict[str, list[str]]:
    """Return which hooks are given a value, which return it, and which values it is a part of."""
    word = re.compile(rf"\b{name}\b")
    given, returned = [], []
    for hook, spec in vars(hookspecs).items():
        if hook.startswith("makeway_"):
            signature = inspect.signature(spec)
            if any(word.search(str(each.annotation)) for each in signature.parameters.values()):
                given.append(f"[`{hook}`](hooks.md#{hook})")
            if word.search(str(signature.return_annotation)):
                returned.append(f"[`{hook}`](hooks.md#{hook})")
    part = [
        f"[`{other}`](#{other.lower()})"
        for other in classes()
        if other != name and any(word.search(f"{kind} {label}") for label, kind, _ in _members(other))
    ]
    return {"Given to": given, "Returned by": returned, "Part of": part}


@functools.cache
def _members(name: str) -> list[tuple[str, str, str]]:
    cls = classes()[name]
    own = getattr(model, SHARED[name]) if name in SHARED else cls
    return [*(() if issubclass(cls, enum.Enum) else fields(own)), *methods(cls)]


def render() -> str:
    """Return the page."""
    parts = [
        "# The data model",
        "",
        "<!-- Written by docs/generate_model.py from makeway/model/; do not edit. -->",
        "",
        "Every value that a [hook](hooks.md) takes or returns, and every value of which it is made, field by field.",
        "[Configurations](config.md), [worlds](worlds.md) and [records](record.md) have pages of their own.",
        "Import them from `makeway.model`, unless another module is named.",
        "Instants are seconds since the start of the replay, memory is in MB.",
        "Sets of nodes and cores are whole numbers used as bitmaps: bit 3 stands for the node of index 3.",
        "`a & b`, `a | b` and `a & ~b` work on them; `a.bit_count()` says how many are in one.",
        "`makeway.bitmap` makes and reads them: `of([0, 3])`, `full(8)`, `indices(nodes)`, `lowest(nodes)` and others.",
        "All values are frozen. The engine changes jobs; a plugin that tries gets an error.",
        "A field that may be None says what None means.",
    ]
    for group, names in GROUPS.items():
        parts += ["", f"## {group}"]
        for name in names:
            parts += _section(name, classes()[name])
    return "\n".join(parts) + "\n"


def _section(name: str, cls: type[Any]) -> Iterator[str]:
    yield from ("", f"### {name}", "", _prose(inspect.getdoc(cls) or ""), "")
    if not hasattr(model, name):
        yield from (f"From `{cls.__module__}`.", "")
    seen = [f"{what}: {', '.join(listed)}." for what, listed in seen_by(name).items() if listed]
    if seen:
        yield from ("\n".join(seen), "")
    if issubclass(cls, enum.Enum):
        yield from ("| member | value | meaning |", "|---|---|---|")
        said = {label: text for label, _, text in fields(cls)}
        for member in cls:
            yield f"| `{member.name}` | `{member.value}` | {_cell(said[member.name])} |"
    elif attrs.has(cls):
        yield from ("| field | type | unit | default | meaning |", "|---|---|---|---|---|")
        defaults = {each.name: each for each in attrs.fields(cls)}
        for label, kind, text in fields(getattr(model, SHARED[name]) if name in SHARED else cls):
            cells = (
                f"`{label}`",
                f"`{_escaped(kind)}`",
                unit(label, kind),
                _default(defaults[label]),
                _cell(text),
            )
            yield f"| {' | '.join(cells)} |"
    listed = list(methods(cls))
    if listed:
        yield from ("", "| method or property | returns | what |", "|---|---|---|")
        for label, returned, text in listed:
            yield f"| `{_escaped(label)}` | `{_escaped(returned)}` | {_cell(text)} |"
    if cls in (model.Limits, model.QueueOrder):
        yield from ("", "| attribute | type | what |", "|---|---|---|")
        for label, kind, text in fields(cls):
            yield f"| `{label}` | `{_escaped(kind)}` | {_cell(text)} |"


def _default(field: Any) -> str:
    if field.default is attrs.NOTHING:
        return "required"
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]  # it is a class at run time
        return "empty"
    value = field.default
    if inspect.isfunction(value):
        return f"`{value.__name__.lstrip('_')}`"
    if isinstance(value, enum.Enum):
        return f"`{value.name}`"
    return (
        "empty" if value in ("", (), frozenset()) or value is model.NOTHING else f"`{_escaped(str(value))}`"
    )


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _cell(text: str) -> str:
    """Write a docstring into one cell of a table."""
    text = re.sub(r"\n\s*:(?:param )?(\w+):", r" *\1*:", text)
    return _escaped(" ".join(_prose(text).split()))


def _prose(text: str) -> str:
    """Turn the reStructuredText of a docstring into Markdown."""
    return text.replace("``", "`").replace("makeway.model.", "")


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
