"""Make the page that compares the runs of a sweep; one file, nothing is fetched."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

import attrs
import jinja2

from makeway_app.report import clock
from makeway_report.page import security_policy
from makeway_sweep.plan import Axis
from makeway_sweep.summary import COLUMNS, Row, effects, shown

WIDTH, HEIGHT, LEFT, BOTTOM = 760, 380, 86, 50
_MINUTES = (1 / 6, 1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
_SECONDS = tuple(60.0 * each for each in _MINUTES)
_NUMBERS = tuple(first * 10.0**power for power in range(-3, 12) for first in (1, 2, 5))


@attrs.frozen
class Scale:
    """Puts values on an axis of the picture."""

    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.first + share * (self.last - self.first), 1)

    def ticks(self, steps: Sequence[float]) -> list[float]:
        """Return about five values at a distance that is one of `steps`, or a multiple of the last."""
        wanted = (self.high - self.low) / 5
        step = next((each for each in steps if each >= wanted), math.ceil(wanted / steps[-1]) * steps[-1])
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [step * at for at in range(first, last + 1)]


def page(axes: Sequence[Axis], rows: Sequence[Row], title: str, missing: Sequence[str]) -> str:
    """Return the page.

    :param missing: runs that failed or are left out, a line each.
    """
    style, script = _text("sweep.css"), _text("sweep.js")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("makeway_sweep"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"value": shown}
    told: list[dict[str, Any]] = [
        {"key": axis.key, "values": _bars(found)} for axis, found in effects(axes, rows)
    ]
    return environment.get_template("sweep.html.jinja").render(
        title=title,
        axes=axes,
        rows=rows,
        columns=COLUMNS,
        effects=told,
        missing=missing,
        picture=_picture(axes, rows),
        script=script,
        style=style,
        policy=security_policy(script, style),
    )


def _bars(found: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the values of a key with each mean as text and as a share of the largest."""
    most = {each.key: max((effect.means[each.key] for effect in found), default=0.0) for each in COLUMNS}
    return [
        {
            "value": effect.value,
            "runs": effect.runs,
            "cells": [
                {
                    "text": each.show(effect.means[each.key]),
                    "share": round(60 * effect.means[each.key] / most[each.key]) if most[each.key] else 0,
                }
                for each in COLUMNS
            ],
        }
        for effect in found
    ]


def _picture(axes: Sequence[Axis], rows: Sequence[Row]) -> dict[str, Any]:
    """Return where the points, the front and the ticks are."""
    waits = [row.metrics["mean_wait"] for row in rows] or [0.0]
    lost = [row.metrics["core_seconds_lost"] / 3600 for row in rows] or [0.0]
    across = _scale(waits, LEFT, WIDTH - 16)
    up = _scale(lost, HEIGHT - BOTTOM, 14)
    points: list[dict[str, Any]] = [
        {
            "row": row,
            "x": across(row.metrics["mean_wait"]),
            "y": up(row.metrics["core_seconds_lost"] / 3600),
            "places": [axis.values.index(value) for axis, value in zip(axes, row.values, strict=True)],
            "told": ", ".join(
                f"{axis.key}={shown(value)}" for axis, value in zip(axes, row.values, strict=True)
            ),
            "wait": clock(row.metrics["mean_wait"]),
            "hours": f"{row.metrics['core_seconds_lost'] / 3600:,.1f}",
        }
        for row in rows
    ]
    hidden: Counter[tuple[float, float]] = Counter()
    for point in reversed(
        points
    ):  # of runs with the same figures the first is the largest, so that a ring of it shows
        place = point["x"], point["y"]
        point["over"] = 3 * hidden[place]
        hidden[place] += 1
    front = sorted((point["x"], point["y"]) for point in points if point["row"].front)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "base": HEIGHT - BOTTOM,
        "points": points,
        "front": " ".join(f"{x},{y}" for x, y in _stairs(front)),
        "across": [(across(tick), clock(tick)) for tick in across.ticks(_SECONDS)],
        "up": [(up(tick), number(tick)) for tick in up.ticks(_NUMBERS)],
        "own": any(row.own for row in rows),
    }


def _stairs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a line that goes right before it goes down: nothing gets closer to the corner than this."""
    line: list[tuple[float, float]] = []
    for x, y in points:
        if line and line[-1] != (x, y):
            line.append((x, line[-1][1]))
        line.append((x, y))
    return line


def _scale(values: Sequence[float], first: float, last: float) -> Scale:
    """Return a scale from zero, so that a distance on it is a share of the whole."""
    return Scale(0.0, max(values) * 1.06 or 1.0, first, last)


def number(value: float) -> str:
    """Return a number as people write it: 25,000, and 0.05."""
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def _text(name: str) -> str:
    read: Callable[..., str] = resources.files("makeway_sweep").joinpath("static", name).read_text
    return read(encoding="utf-8").strip()
