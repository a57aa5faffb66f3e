"""Write docs/hooks.md from the docstrings of the hookspecs.

Run ``python docs/generate_hooks.py`` after changing a hook; a test keeps the page current.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from makeway import hookspecs
from makeway.hookspecs import speed

PAGE = Path(__file__).with_name("hooks.md")
KINDS = {True: "decision (first answer wins)", False: "all are asked"}


GROUPS: dict[str, tuple[str, ...]] = {
    "What the product is for": (
        "makeway_selector",
        "makeway_preempt_candidates",
        "makeway_preempt_action",
        "makeway_gang",
    ),
    "What most policies need beside": (
        "makeway_settings",
        "makeway_preempt_mode",
        "makeway_protect",
        "makeway_search",
        "makeway_queue",
        "makeway_priority",
        "makeway_limits",
        "makeway_explain",
    ),
    "What some need": (
        "makeway_displaces_by",
        "makeway_commands",
    ),
    "Files and worlds": (
        "makeway_dialect",
        "makeway_check",
        "makeway_world",
    ),
}
"""By need: the four that the product exists for, then the others."""
MARKS = ("based_on", "of_selector")
QUICKER = ("alike_by", "by_request")
"""Marks that change no answer; documented last, as most plugins do without."""


def hooks() -> dict[str, object]:
    """Return the hooks in the order of the page, those that go away last."""
    specs = {name: value for name, value in vars(hookspecs).items() if name.startswith("makeway_")}
    listed = [name for group in GROUPS.values() for name in group]
    return {name: specs[name] for name in [*listed, *sorted(specs.keys() - set(listed))]}


def render() -> str:
    """Return the page."""
    parts = [
        "# Hooks",
        "",
        "<!-- Written by docs/generate_hooks.py from makeway/hookspecs/; do not edit. -->",
        "",
        _prose(inspect.getdoc(hookspecs) or ""),
    ]
    specs = hooks()
    for group, names in GROUPS.items():
        parts += ["", f"**{group}**", "", "| hook | kind | in one sentence |", "|---|---|---|"]
        parts += [
            f"| [`{name}`](#{name}) | {_kind(name, specs[name])} | {_sentence(specs[name])} |"
            for name in names
        ]
    parts += ["", "**Marks of an implementation**", "", "| mark | in one sentence |", "|---|---|"]
    parts += [
        f"| [`{name}`](#{name}) | {_sentence(getattr(hookspecs, name))} |" for name in (*MARKS, *QUICKER)
    ]
    for group in GROUPS.values():
        for name in group:
            parts += _section(name, specs[name])
    for name in MARKS:
        parts += _section(name, getattr(hookspecs, name))
    parts += ["", "## What makes answers quicker and changes none", ""]
    parts.append(_prose(inspect.getdoc(speed) or "").partition("\n\n")[2])
    for name in QUICKER:
        parts += _section(name, getattr(hookspecs, name), "###")
    return "\n".join(parts).rstrip() + "\n"


def _section(name: str, spec: object, level: str = "##") -> Iterator[str]:
    signature = str(inspect.signature(spec)).replace("'", "")  # type: ignore[arg-type]  # a function
    yield from ("", f"{level} {name}", "", "```python", f"def {name}{signature}", "```", "")
    yield _prose(inspect.getdoc(spec) or "")


def _sentence(spec: object) -> str:
    return (inspect.getdoc(spec) or "").splitlines()[0].replace("``", "`")


def _kind(name: str, spec: object) -> str:
    options = getattr(spec, "makeway_spec", {})
    if name == "makeway_protect":
        return "veto (all are asked)"
    return KINDS[bool(options.get("firstresult"))]


def _prose(text: str) -> str:
    """Turn the reStructuredText of a docstring into Markdown."""
    out: list[str] = []
    in_code = False
    for line in text.splitlines():
        if in_code and line and not line.startswith("    "):
            out.append("```")
            in_code = False
        match = re.match(r":(param )?(\w+)?( \w+)?: ?(.*)", line)
        if match and line.startswith(":"):
            out.append("- **" + line[1:].replace("param ", "", 1).replace(":", "**:", 1))
            continue
        if line.endswith("::"):
            out += [line[:-1], "", "```python"]
            in_code = True
            continue
        if line.startswith(".. versionadded::"):
            out += ["", f"*Since {line.split('::')[1].strip()}.*"]
            continue
        out.append(line[4:] if in_code and line else line.replace("``", "`"))
    if in_code:
        out.append("```")
    return re.sub(r"```python\n\n", "```python\n", re.sub(r"\n\n+```\n", "\n```\n", "\n".join(out)))


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
