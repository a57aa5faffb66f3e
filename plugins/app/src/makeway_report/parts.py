"""Hand out the scripts and the style of the page, to this package and to live pages that draw the same."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

PICTURE = (
    *("static/words.js", "static/data.js", "static/theme.js", "static/state.js"),
    *("static/density.js", "static/gantt.js", "static/moving.js"),
)
"""Scripts that draw jobs over nodes. They want elements called gantt, stage, tip, caption, legend and some more."""
STYLE = "static/page.css"


def joined(names: Sequence[str]) -> str:
    """Return files of this package as one text, in order."""
    parts = []
    for name in names:
        text = resources.files("makeway_report").joinpath(name).read_text(encoding="utf-8").strip()
        if "</script" in text or "</style" in text:
            raise AssertionError(f"{name} would end its own element")
        parts.append(text)
    return "\n".join(parts)
