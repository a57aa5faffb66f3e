"""Draw figures for papers with matplotlib: jobs over nodes, waits, utilisation, which jobs displaced which.

A figure is one column (3.5 in) or two columns (7.2 in) wide; text in SVG and PDF stays text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from makeway.errors import ConfigError, Problem, nearest
from makeway_report.pieces import LOST, STATES, pieces_of
from makeway_report.places import WHOLE, Places
from makeway_report.record_file import RecordFile
from makeway_report.rest import Rest

WIDTHS = {1: 3.5, 2: 7.2}
"""Inches, by columns."""
FORMATS = ("svg", "png", "pdf")
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#999999")
_RUNNING = STATES.index("RUNNING")
_STYLES: Mapping[int, Mapping[str, Any]] = {
    STATES.index("SUSPENDED"): {"facecolor": "#dddddd", "zorder": 1, "label": "suspended"},
    STATES.index("COMPLETING"): {"facecolor": "#777777", "label": "completing"},
    LOST: {"facecolor": "none", "edgecolor": "#d55e00", "hatch": "//////", "label": "work lost"},
}
"""How pieces look that are not simply running; a suspended job lies under the one that displaced it."""
_MOST_PIECES = 3000
"""More pieces than these are drawn as an image, which shows their density."""
_HOUR = 3600.0

Runs = Sequence[tuple[RecordFile, str]]


def check_figure(name: str) -> tuple[str, str]:
    """Return kind and format of a figure by the name of its file.

    :raises ConfigError: either is not known, or matplotlib is not installed.
    """
    path = Path(name)
    kind, kind_of_file = path.stem, path.suffix.removeprefix(".")
    if kind not in FIGURES:
        known = ", ".join(FIGURES)
        text = f"got {kind!r}; allowed: {known}, with the ending {', '.join(FORMATS)}{nearest(kind, FIGURES)}"
        raise ConfigError(f"--figure {name}", [Problem("", text)])
    if kind_of_file not in FORMATS:
        text = f"got the ending {kind_of_file!r}; allowed: {', '.join(FORMATS)}"
        raise ConfigError(f"--figure {name}", [Problem("", text)])
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        text = "needs matplotlib: pip install 'makeway[figures]'"
        raise ConfigError("--figure", [Problem("", text)]) from None
    return kind, kind_of_file


def draw(name: str, runs: Runs, columns: int) -> None:
    """Write one figure; the same record makes the same file.

    :raises ConfigError: it cannot be written, or the name says no figure.
    """
    kind, ending = check_figure(name)
    import matplotlib
    from matplotlib.figure import Figure

    settings = {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "makeway", "pdf.fonttype": 42}
    part = Path(name).with_name(f".{Path(name).name}.part")
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(WIDTHS[columns], WIDTHS[columns] * 0.62), layout="constrained")
        FIGURES[kind](figure, runs)
        undated: Mapping[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
        try:
            figure.savefig(part, format=ending, dpi=300, metadata=undated[ending])
            part.replace(name)
        except OSError as error:
            raise ConfigError(
                f"--figure {name}", [Problem("", f"cannot be written: {error.strerror}")]
            ) from None
        finally:
            part.unlink(missing_ok=True)


# ------------------------------------------------------------------------------------- figures
def _gantt(figure: Any, runs: Runs) -> None:
    from matplotlib.collections import PolyCollection

    axes = figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (record, label) in zip(axes, runs, strict=True):
        places = Places(record.cluster)
        tiers = sorted(record.cluster["partitions"], key=lambda each: -each["priority_tier"])
        colours = {each["name"]: _COLOURS[min(at, 5)] for at, each in enumerate(tiers)}
        boxes: dict[tuple[int, str], list[Any]] = {}
        for _, job in record.jobs():
            for piece in pieces_of(0, job, places)[0]:
                key = (piece.state, job["partition"] if piece.state == _RUNNING else "")
                ranges = places.places[piece.place].ranges
                boxes.setdefault(key, []).extend(_corners(ranges, piece.start / _HOUR, piece.end / _HOUR))
        dense = sum(map(len, boxes.values())) > _MOST_PIECES
        for (state, partition), found in sorted(boxes.items()):
            style = _STYLES.get(state) or {
                "facecolor": colours.get(partition, _COLOURS[5]),
                "label": partition,
            }
            ax.add_collection(PolyCollection(found, linewidth=0, rasterized=dense, **{"zorder": 2, **style}))
        ax.autoscale_view()
        ax.set_ylim(len(places.names), 0)
        ax.set_ylabel("node")
        ax.set_title(label if len(runs) > 1 else "", fontsize=8)
    axes[-1].set_xlabel("hours")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)


def _corners(ranges: Any, low: float, high: float) -> list[Any]:
    found = []
    for first, count, top, height in ranges:
        upper, lower = first + top / WHOLE, first + count - 1 + (top + height) / WHOLE
        found.append([(low, upper), (high, upper), (high, lower), (low, lower)])
    return found


def _waits(figure: Any, runs: Runs) -> None:
    ax = figure.subplots()
    for at, (record, label) in enumerate(runs):
        waits: dict[str, list[float]] = {}
        for _, job in record.jobs():
            first = next((each["start"] for each in job["intervals"] if each["state"] == "RUNNING"), None)
            if first is not None:
                waits.setdefault(job["partition"], []).append(max(1.0, first - job["submit"]))
        for number, (name, found) in enumerate(sorted(waits.items())):
            shown = f"{label}: {name}" if len(runs) > 1 else name
            line = ("-", "--", ":", "-.")[at % 4]
            ax.ecdf(found, label=shown, color=_COLOURS[number % 6], linestyle=line)
    ax.set_xscale("log")
    ax.set_xlabel("wait in seconds (1: at once)")
    ax.set_ylabel("share of jobs")
    ax.legend(frameon=False)


def _utilisation(figure: Any, runs: Runs) -> None:
    upper, lower = figure.subplots(2, 1, sharex=True)
    for at, (record, label) in enumerate(runs):
        places = Places(record.cluster)
        jobs = [job for _, job in record.jobs()]
        end = max((each["end"] for job in jobs for each in job["intervals"]), default=1.0)
        sums = Rest(end)
        for job in jobs:
            sums.add(job, places)
        found = sums.as_json()
        hours = [step * found["step"] / _HOUR for step in range(len(found["cores"]))]
        for ax, name in ((upper, "cores"), (lower, "waiting")):
            ax.plot(hours, found[name], label=label, color=_COLOURS[at % 6], linewidth=0.7)
    upper.set_ylabel("cores in use")
    lower.set_ylabel("jobs waiting")
    lower.set_xlabel("hours")
    if len(runs) > 1:
        upper.legend(frameon=False)


def _matrix(figure: Any, runs: Runs) -> None:
    axes = figure.subplots(1, len(runs), squeeze=False)[0]
    for ax, (record, label) in zip(axes, runs, strict=True):
        side = {job_id: job["displaces_as"] for job_id, job in record.jobs()}
        counts: dict[tuple[str, str], int] = {}
        for each in record.preemptions():
            pair = (side.get(each["preemptor"], "(no job)"), side[each["victim"]])
            counts[pair] = counts.get(pair, 0) + 1
        rows, heads = (sorted({pair[at] for pair in counts}) for at in (0, 1))
        values = [[counts.get((row, head), 0) for head in heads] for row in rows] or [[0]]
        image = ax.imshow(values, cmap="Oranges", vmin=0)
        ax.set_xticks(range(len(heads)), heads, rotation=45, ha="right")
        ax.set_yticks(range(len(rows)), rows)
        ax.set_xlabel("victim")
        ax.set_ylabel("preemptor")
        ax.set_title(label if len(runs) > 1 else "", fontsize=8)
        for y, line in enumerate(values):
            for x, value in enumerate(line):
                ax.text(x, y, f"{value:,}", ha="center", va="center", color=_readable(image.to_rgba(value)))


def _readable(background: Sequence[float]) -> str:
    """Return black or white, whichever has more contrast on a colour (WCAG's relative luminance)."""
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in background[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"


FIGURES: Mapping[str, Callable[[Any, Runs], None]] = {
    "gantt": _gantt,
    "waits": _waits,
    "utilisation": _utilisation,
    "matrix": _matrix,
}
