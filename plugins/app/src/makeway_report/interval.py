"""Draw between what a figure lies, or a change of one: a bar with a mark at what it is, over a line at zero.

All pages draw it by this and `static/interval.css`, which knows a change for the better, one for the worse, and noise.
"""

from __future__ import annotations

import html
from collections.abc import Callable

from makeway_app.report import signed

STYLE = "static/interval.css"
Show = Callable[[float], str]
"""Writes a figure for people."""
_WIDTH, _HEIGHT = 100, 12


def between(show: Show, low: float, high: float) -> str:
    """Return between what a change lies, and whether that is noise, for zero is within."""
    noise = "" if low > 0 or high < 0 else ", noise"
    return f"{signed(show, low)} to {signed(show, high)}{noise}"


def way(low: float, high: float) -> str:
    """Return the class of a change: less is better."""
    return "less" if high < 0 else "more" if low > 0 else "noise"


def change(show: Show, value: float, low: float, high: float, most: float = 0.0) -> str:
    """Return the markup of a change; less is better.

    :param most: the largest of its row, in either direction; drawn on one scale they can be compared.
    """
    ends = max(most, abs(low), abs(high), abs(value))
    return _drawn(between(show, low, high), way(low, high), _picture(value, low, high, -ends, ends))


def figure(show: Show, value: float, low: float, high: float, most: float = 0.0) -> str:
    """Return the markup of a figure, which is not below zero.

    :param most: the largest of its row.
    """
    picture = _picture(value, low, high, 0.0, max(most, high, value))
    return _drawn(f"{show(low)} to {show(high)}", "", picture)


def _drawn(text: str, kind: str, picture: str) -> str:
    return f'<span class="between {kind}">{picture}{html.escape(text)}</span>'


def _picture(value: float, low: float, high: float, first: float, last: float) -> str:
    """Return the picture of something on a scale from `first` to `last`."""
    span = last - first or 1.0

    def at(number: float) -> float:
        return round(2 + (number - first) / span * (_WIDTH - 4), 1)

    width = max(1.0, round(at(high) - at(low), 1))
    return (
        f'<svg class="interval" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<line class="zero" x1="{at(0.0)}" x2="{at(0.0)}" y1="0" y2="{_HEIGHT}"/>'
        f'<rect x="{at(low)}" width="{width}" y="4" height="4"/>'
        f'<line class="mark" x1="{at(value)}" x2="{at(value)}" y1="1" y2="{_HEIGHT - 1}"/></svg>'
    )
