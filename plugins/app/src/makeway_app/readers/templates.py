"""Recognise files that are templates: what has yet to be rendered is no configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ALWAYS = re.compile(r"\{\{(?:(?!\{\{).)*?\}\}|\{%.*?%\}|<%.*?%>|\{%|<%")
"""Jinja, Helm and ERB."""
_PLAIN = re.compile(r"=\s*(\$\{\w+\}|\$\([^()]*\)|\{\w+\})")
"""A value that a shell or ``str.format`` would fill in, in files whose values hold no such words."""
_OTHERS = {
    "volcano.sh/": "Volcano",
    "run.ai/": "KAI",
    "queue.sigs.k8s.io/": "the scheduler plugins' co-scheduling",
}
_YUNIKORN = re.compile(r"^partitions:\s*$", re.MULTILINE)


def template_in(text: str, *, plain: bool) -> str:
    """Say which line of a file makes it a template; empty: none does.

    :param plain: whether words of a shell are no values of such a file.
    """
    for number, line in _lines(text):
        found = _ALWAYS.search(line) or (_PLAIN.search(line) if plain else None)
        if found is not None:
            word = found[found.lastindex or 0]
            return f"line {number} has {word!r}: this is a template; render it first, and give makeway the result"
    return ""


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith(("#", "//")):
            yield number, line


def other_scheduler(head: str) -> str:
    """Return the scheduler whose queues a file describes that is not read; empty: it is none that is known."""
    for mark, title in _OTHERS.items():
        if re.search(rf"^apiVersion:\s*\S*{re.escape(mark)}", head, re.MULTILINE):
            return title
    return "YuniKorn" if _YUNIKORN.search(head) and "queues:" in head else ""
