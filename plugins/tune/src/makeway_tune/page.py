"""Make the page of a tune run: a picture of the front to click, a table, and what each candidate does; one file.

It runs no script and fetches nothing: a mark in the picture is a link to what it stands for.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator
from typing import Any

import jinja2

from makeway_report import interval
from makeway_report.parts import joined
from makeway_sweep.page import Scale
from makeway_tune.answer import Answer, Candidate
from makeway_tune.goals import WAIT, Measure
from makeway_tune.log import Group
from makeway_tune.sure import Told
from makeway_tune.tell import NOUNS, changed, measures_of_group, moved, shown, verdict

_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 110, 690, 34, 290
_SIGNS = re.compile(r"[=:_/\[\]]")
_SECONDS = tuple(60.0 * each for each in (1 / 60, 1 / 6, 1, 2, 5, 10, 30, 60, 120, 360, 720, 1440))
_NUMBERS = tuple(first * 10.0**power for power in range(-3, 12) for first in (1, 2, 5))


def page(found: Answer, title: str, heading: str) -> str:
    """Return the page.

    :param heading: what was done, in a sentence.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("makeway_tune"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template("tune.html").render(
        title=title,
        heading=heading,
        weeks=found.weeks,
        style=joined([interval.STYLE]),
        verdict=verdict(found),
        picture=_picture(found),
        goals=[str(each) for each in found.goals.minimise],
        cards=[_card(found, each) for each in found.candidates],
    )


def _breakable(text: str) -> str:
    """Return markup of text that may go on in the next line behind a sign, so that no word has to be broken."""
    return _SIGNS.sub(r"\g<0><wbr>", html.escape(text))


def _picture(found: Answer) -> dict[str, Any]:
    wanted = found.goals.minimise
    down = wanted[0]
    across = wanted[1] if len(wanted) > 1 else Measure(what=WAIT, stat="p95")
    if across == down:
        across = Measure(what="lost-hours")
    places = {"x": across, "y": down}
    scales = {}
    for axis, measure in places.items():
        most = max(_plain(each.figures[measure]) for each in found.candidates) or 1.0
        ends = (_LEFT, _RIGHT) if axis == "x" else (_BOTTOM, _TOP)
        scales[axis] = Scale(0.0, most * 1.08, *ends)
    marks = {
        axis: [
            (scales[axis](at), measure.show(at))
            for at in scales[axis].ticks(_SECONDS if measure.what == WAIT else _NUMBERS)
        ]
        for axis, measure in places.items()
    }
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _RIGHT,
        "top": _TOP,
        "bottom": _BOTTOM,
        "x": str(across),
        "y": str(down),
        "xs": marks["x"],
        "ys": marks["y"],
        "dots": [
            {
                "name": each.name,
                "said": changed(each),
                "kind": "broken" if each.beyond else "" if each.chosen else "today",
                "x": scales["x"](_plain(each.figures[across])),
                "y": scales["y"](_plain(each.figures[down])),
            }
            for each in found.candidates
        ],
    }


def _plain(told: Told) -> float:
    return 0.0 if math.isnan(told.value) else told.value


def _card(found: Answer, each: Candidate) -> dict[str, Any]:
    today = found.candidates[0]
    tables = []
    if each.chosen:
        wanted = [(str(measure), measure) for measure in _wanted(found)]
        tables.append(("what was wanted", [_row(name, measure, today, each) for name, measure in wanted]))
        for kind, groups in found.groups.items():
            rows = [
                _row(name, measure, today, each)
                for group in groups
                for name, measure in _named(group)
                if any(one.figures[measure].value for one in (today, each))
            ]
            tables.append((f"by {NOUNS[kind]}", rows))
    return {
        "name": each.name,
        "said": changed(each),
        "diff": each.diff,
        "recommended": each.name == found.recommended,
        "goals": [_goal(found, measure, each.figures[measure]) for measure in found.goals.minimise],
        "tables": tables,
        "won": each.won,
        "hurt": each.hurt,
    }


def _wanted(found: Answer) -> list[Measure]:
    return list(dict.fromkeys((*found.goals.minimise, *(each.measure for each in found.goals.limits))))


def _named(group: Group) -> Iterator[tuple[str, Measure]]:
    for words, measure in measures_of_group(group):
        yield f"{group.name}: {words}", measure


def _goal(found: Answer, measure: Measure, told: Told) -> tuple[str, str]:
    """Return a figure with its interval, on one scale for all candidates."""
    if math.isnan(told.value) or math.isnan(told.high):
        return shown(measure, told), ""
    highest = [each.figures[measure].high for each in found.candidates]
    most = max(each for each in highest if not math.isnan(each))
    return measure.show(told.value), interval.figure(measure.show, told.value, told.low, told.high, most)


def _row(name: str, measure: Measure, today: Candidate, each: Candidate) -> dict[str, str]:
    change = each.changes[measure]
    before, after = (one.figures[measure].value for one in (today, each))
    known = not math.isnan(change.high) and any((change.low, change.value, change.high))
    return {
        "name": name,
        "before": "-" if math.isnan(before) else measure.show(before),
        "after": "-" if math.isnan(after) else measure.show(after),
        "change": moved(measure, change, alone=True),
        "between": _between(measure, change) if known else "",
    }


def _between(measure: Measure, change: Told) -> str:
    return interval.change(measure.show, change.value, change.low, change.high, differs=change.differs)
