"""Write docs/hooks.md from the docstrings of the hookspecs.

Run ``python docs/generate_hooks.py`` after changing a hook; a test keeps the page current.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from makeway import hookspecs

PAGE = Path(__file__).with_name("hooks.md")
KINDS = {True: "decision (first answer wins)", False: "all are asked"}


def hooks() -> dict[str, object]:
    """Return the hooks in the order of the file, which is the order in which a job meets them."""
    return {name: value for name, value in vars(hookspecs).items() if name.startswith("makeway_")}


def render() -> str:
    """Return the page."""
    parts = [
        "# Hooks",
        "",
        "<!-- Written by docs/generate_hooks.py from makeway/hookspecs.py; do not edit. -->",
        "",
        _prose(inspect.getdoc(hookspecs) or ""),
        "",
        "| hook | kind | in one sentence |",
        "|---|---|---|",
    ]
    listed = hooks()
    for name, spec in listed.items():
        first = (inspect.getdoc(spec) or "").splitlines()[0].replace("``", "`")
        parts.append(f"| [`{name}`](#{name}) | {_kind(name, spec)} | {first} |")
    for name, spec in listed.items():
        signature = str(inspect.signature(spec)).replace("'", "")  # type: ignore[arg-type]  # a function
        parts += ["", f"## {name}", "", "```python", f"def {name}{signature}", "```", ""]
        parts.append(_prose(inspect.getdoc(spec) or ""))
    return "\n".join(parts).rstrip() + "\n"


def _kind(name: str, spec: object) -> str:
    options = getattr(spec, "makeway_spec", {})
    if name.startswith("makeway_on_"):
        return "observer"
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
