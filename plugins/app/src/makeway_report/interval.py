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


def between(show: Show, low: float, high: float, *, differs: bool) -> str:
    """Return between what a change lies, and whether it is noise.

    :param differs: whether it is more than chance.
    """
    return f"{signed(show, low)} to {signed(show, high)}{_noise(differs)}"


def _noise(differs: bool) -> str:
    return "" if differs else ", noise"


def way(value: float, *, differs: bool) -> str:
    """Return the class of a change; less is better."""
    return "noise" if not differs else "less" if value < 0 else "more"


def change(show: Show, value: float, low: float, high: float, most: float = 0.0, *, differs: bool) -> str:
    """Return the markup of a change; less is better.

    :param most: the largest of its row, in either direction; drawn on one scale they can be compared.
    :param differs: whether it is more than chance.
    """
    ends = max(most, abs(low), abs(high), abs(value))
    picture = _picture(value, low, high, -ends, ends)
    texts = signed(show, low), signed(show, high)
    return _drawn(texts, _noise(differs), way(value, differs=differs), picture)


def figure(show: Show, value: float, low: float, high: float, most: float = 0.0) -> str:
    """Return the markup of a figure, which is not below zero.

    :param most: the largest of its row.
    """
    picture = _picture(value, low, high, 0.0, max(most, high, value))
    return _drawn((show(low), show(high)), "", "", picture)


def _drawn(ends: tuple[str, str], more: str, kind: str, picture: str) -> str:
    """Return the markup, with ends that no line breaks."""
    text = " to ".join(f"<span>{html.escape(each)}</span>" for each in ends)
    return f'<span class="between {kind}">{picture}{text}{more}</span>'


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
