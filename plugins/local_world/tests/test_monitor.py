"""Drive the screen by its keys, as textual's own pilot does, on a real daemon."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from makeway_local_world.commands.client import Daemon

pytest.importorskip("textual")

from textual.app import App
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from makeway_local_world.screen import Monitor, Question, jobs_of, machine

Site = Any
Seen = Pilot[None]


def _drive(site: Site, size: tuple[int, int], steps: Callable[[Seen], Awaitable[None]]) -> str:
    """Open the screen, go through steps, and return what was drawn, as SVG."""

    async def run() -> str:
        app = Monitor(Daemon(site.state / "socket"), 0.5)
        async with app.run_test(size=size) as pilot:
            await steps(pilot)
            return app.export_screenshot()

    return asyncio.run(run())


async def _until(pilot: Seen, true: Callable[[], Any]) -> None:
    async with asyncio.timeout(300):
        while not true():
            await pilot.pause(0.05)


def _text(app: App[None], name: str) -> str:
    return str(app.query_one(f"#{name}", Static).content)


def _words(drawn: str) -> str:
    return re.sub(r"<[^>]+>", " ", drawn).replace("&#160;", " ")


@pytest.mark.parametrize("size", [(80, 24), (150, 40)])
def test_it_shows_who_made_way_for_whom_and_what_a_job_printed(up: Site, size: tuple[int, int]) -> None:
    """In a narrow terminal and in a wide one; a name that looks like markup is shown as it is."""
    victim = up.submit("-n", "2", "-J", "[red]x[/red]", "--", "sh", "-c", "echo begun; sleep 600")
    up.until(lambda: up.state_of(victim) == "RUNNING")
    urgent = up.submit("-p", "urgent", "-n", "1", "--", "sleep", "600")
    array = up.submit("--array", "0-30", "-n", "2", "--", "true")
    up.until(lambda: up.state_of(victim) == "SUSPENDED")

    async def steps(pilot: Seen) -> None:
        app = pilot.app
        table = app.query_one("#queue", DataTable)
        await _until(pilot, lambda: table.row_count >= 3)
        await _until(pilot, lambda: f"makes way for job {urgent}" in _text(app, "why-text"))
        await _until(pilot, lambda: "begun" in _text(app, "output-text"))
        assert f"job {victim} makes way for {urgent}: suspend" in _text(app, "happens-text")
        assert f"suspended for {urgent}" in str(table.get_row(victim)[-1])
        assert "1 of 2 CPUs" in _text(app, "machine")
        await pilot.press("o")
        await _until(pilot, lambda: app.query_one("#output-text").region.height > 0)

    drawn = _words(_drive(up, size, steps))
    assert "[red]x[/red]" in drawn
    assert "begun" in drawn
    assert f"{array}_[" in drawn


def test_keys_hold_put_first_and_cancel(up: Site) -> None:
    """Cancel asks first; what is refused is said; `m` leaves one's own."""
    up.submit("-n", "2", "--", "sleep", "600")
    first, second = up.submit("-n", "2", "--", "true"), up.submit("-n", "2", "--", "true")

    async def steps(pilot: Seen) -> None:
        table = pilot.app.query_one("#queue", DataTable)
        await _until(pilot, lambda: table.row_count == 3)
        await pilot.press("down", "h")
        await _until(pilot, lambda: up.jobs()[first]["held"])
        await _until(pilot, lambda: "JobHeld" in str(table.get_row(first)[-1]))
        await pilot.press("h")
        await _until(pilot, lambda: not up.jobs()[first]["held"])
        await pilot.press("down", "t", "m")
        await _until(pilot, lambda: up.jobs()[second]["priority"] > up.jobs()[first]["priority"])
        await pilot.press("c")
        await _until(pilot, lambda: isinstance(pilot.app.screen, Question))
        await pilot.press("n")
        await pilot.press("c")
        await _until(pilot, lambda: isinstance(pilot.app.screen, Question))
        await pilot.press("y")
        await _until(pilot, lambda: second not in up.jobs())
        await _until(pilot, lambda: table.row_count == 2)
        await pilot.press("p")
        await _until(pilot, lambda: "CANCELLED" in _text(pilot.app, "past-text"))

    _drive(up, (100, 30), steps)


def test_a_line_of_an_array_stands_for_its_tasks() -> None:
    assert jobs_of("17") == ["17"]
    assert jobs_of("17_[0-2,7]") == ["17_0", "17_1", "17_2", "17_7"]


def test_gpus_are_shown_with_who_has_them_and_their_memory() -> None:
    gpus = [
        {"index": at, "uuid": f"GPU-{at}", "name": "A100", "memory_mb": 81920, "used_mb": used}
        for at, used in ((0, 40960), (1, 0))
    ]
    job = {"id": "7", "user": "ann", "state": "RUNNING", "cores": {"n": "0,2-3"}, "gpus": [{"uuid": "GPU-0"}]}
    about = {"cluster": "lab", "nodes": [["n", 4]], "gpus": gpus}
    lines = machine(about, {"jobs": [job]}, 80).plain.splitlines()
    assert "1 running, 0 waiting, 0 suspended" in lines[0]
    assert lines[1] == "n  3 of 4 CPUs  ■·■■"
    assert lines[3:] == [
        "GPU 0 A100  ■■■■■····· 40.0 of 80.0 GiB  job 7 of ann",
        "GPU 1 A100  ·········· 0.0 of 80.0 GiB  free",
    ]
