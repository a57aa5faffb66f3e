"""Render the page: one file, nothing of which is fetched, nothing of which may be executed but our own scripts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jinja2

from makeway_app.cli.meter import moment
from makeway_app.cli.request import CONFIGURED
from makeway_app.report import short_name
from makeway_report import figures, interval
from makeway_report.changes import compare
from makeway_report.collect import Collected, collect
from makeway_report.parts import STYLE, joined
from makeway_report.record_file import RecordFile, read_record

LIBRARY = "vendor/uplot/uPlot.iife.min.js"
SCRIPTS = (
    *("static/data.js", "static/series.js", "static/words.js", "static/theme.js", "static/state.js"),
    *("static/density.js", "static/gantt.js", "static/moving.js", "static/strip.js", "static/charts.js"),
    *("static/tables.js", "static/changes.js", "static/panel.js", "static/keys.js", "static/main.js"),
)
STYLES = ("vendor/uplot/uPlot.min.css", STYLE, interval.STYLE)
_OUTAGES = 100
"""Stretches of nodes out of service that are listed."""
_ESCAPES = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def write(records: Sequence[tuple[Path, str]], to: Callable[[str], object], seed: int = 0) -> None:
    """Write the page of some records.

    :param records: each with what its run is called.
    :param to: takes the text, piece by piece.
    :param seed: of the days that are drawn to judge differences.
    :raises ConfigError: a record cannot be read.
    """
    opened = [(read_record(path), label) for path, label in records]
    write_opened(opened, to, seed=seed)


def write_opened(
    records: Sequence[tuple[RecordFile, str]],
    to: Callable[[str], object],
    title: str = "",
    seed: int = 0,
) -> None:
    """Write the page of records that are open, each with what its run is called."""
    runs = [collect(record, label) for record, label in records]
    first, called = records[0]
    judged = []
    for run, (record, label) in zip(runs[1:], records[1:], strict=True):
        found = compare(first, record, (called, label), seed=seed)
        run.about["changes"] = found.as_dict()
        judged.append(found.judged)
    metrics = [run.about["metrics"] for run in runs]
    script = f'{joined([LIBRARY])}\n(() => {{\n"use strict";\n{joined(SCRIPTS)}\n}})();'
    style = joined(STYLES)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("makeway_report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("page.html.jinja").stream(
        title=title or _title(runs),
        runs=[run.about for run in runs],
        blocks=[run.data for run in runs],
        about=_embedded([run.about for run in runs]),
        letters=[short_name(at) for at in range(len(runs))] if len(runs) > 1 else [""],
        figures=figures.rows(metrics, judged),
        judged=any(judged),
        outages=[_outages(record) for record, _ in records],
        script=script,
        style=style,
        policy=security_policy(script, style),
    )
    try:
        for piece in page:
            to(piece)
    except jinja2.UndefinedError as error:  # a record that lacks what the page shows
        raise LookupError(str(error)) from None


def _outages(record: RecordFile) -> list[dict[str, Any]]:
    """Return when which nodes were out of service, with the jobs that were lost there; the first ones."""
    epoch = record.heading["epoch"]
    failures = record.rest.get("node_failures", ())
    return [
        {
            "nodes": each["nodes"],
            "state": each["state"],
            "start": moment(each["start"], epoch),
            "end": moment(each["end"], epoch),
            "jobs": [
                one["job"] for one in failures if one["at"] == each["start"] and each["state"] == "down"
            ],
        }
        for each in record.rest.get("outages", ())[:_OUTAGES]
    ]


def _title(runs: Sequence[Collected]) -> str:
    """Return the names of the runs; those of one replay are called by its workload."""
    names = list(dict.fromkeys(run.about["label"] for run in runs))
    return str(runs[0].about["workload"]) if names[0] == CONFIGURED else ", ".join(names)


def labels(records: Sequence[tuple[Path, RecordFile]]) -> list[str]:
    """Return what runs are called: by their files' names, with the folder where those are alike."""
    stems = [path.name.partition(".")[0] or path.name for path, _ in records]
    if len(set(stems)) == len(stems):
        return stems
    return [f"{path.resolve().parent.name}/{stem}" for (path, _), stem in zip(records, stems, strict=True)]


def _embedded(value: Any) -> str:
    """Return JSON that is safe within a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def security_policy(script: str, style: str) -> str:
    """Return the content security policy: nothing but this script and this style."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
