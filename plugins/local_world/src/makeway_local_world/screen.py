"""The screen of ``makeway monitor``: cores, GPUs, queue, and the story and the output of one job.

It asks the daemon as every command does, and opens output with the rights of the user who looks. Nothing that others
wrote is read as markup, and what would move the cursor is escaped.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.css.query import NoMatches
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Label, Static, TabbedContent, TabPane

from makeway.errors import MakewayError
from makeway.escapes import printable, printable_lines
from makeway_local_world.commands.client import job_route
from makeway_local_world.commands.history import table as past_table
from makeway_local_world.commands.output import end_of
from makeway_local_world.commands.queue import RIGHT, cells

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")
"""Colours of jobs that have cores, in turns of their ids."""
BEFORE = 500
"""Steps before the present one that are told when the screen opens."""
LINES = 500
"""Lines of output that are shown."""
DAY = 86400.0
AGAIN = 2.0
"""Seconds until a daemon that went away is looked for again."""


class Server(Protocol):
    """A daemon, as the screen sees it."""

    def get(self, route: str, **query: Any) -> dict[str, Any]:
        """Ask for something."""

    def post(self, route: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Have something done."""

    def events(self, after: int | None = None, *, follow: bool = True) -> Iterator[dict[str, Any]]:
        """Yield what happens."""


class Question(ModalScreen[bool]):
    """Asks yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape", "answer(False)", "no"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Show the question."""
        with Vertical(id="question"):
            yield Label(Text(self._text))
            yield Label(Text("y  yes      n  no"), classes="muted")

    def action_answer(self, yes: bool) -> None:
        """Close it."""
        self.dismiss(yes)


class Monitor(App[None]):
    """The screen."""

    TITLE = "makeway"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012  # as its base class has it
    CSS = """
    #machine { height: auto; max-height: 40%; padding: 0 1; border-bottom: solid $primary; }
    #trouble { display: none; height: auto; padding: 0 1; background: $error; color: $text; }
    #body { height: 1fr; }
    .-wide #body { layout: horizontal; }
    #queue { height: 1fr; min-height: 6; }
    .-wide #queue { width: 3fr; height: 100%; }
    #about { height: 1fr; border-top: solid $primary; }
    .-wide #about { width: 2fr; height: 100%; border-top: none; border-left: solid $primary; }
    #about ContentSwitcher { height: 1fr; }
    #about TabPane { height: 100%; padding: 0; }
    #about VerticalScroll { height: 100%; padding: 0 1; }
    .muted { color: $text-muted; }
    Question { align: center middle; }
    #question { width: auto; height: auto; padding: 1 3; border: thick $primary; background: $surface; }
    #question Label { width: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "cancel", "cancel"),
        Binding("h", "hold", "hold"),
        Binding("t", "top", "top"),
        Binding("m", "mine", "mine"),
        Binding("w", "show('why')", "why"),
        Binding("o", "show('output')", "output"),
        Binding("e", "show('happens')", "events"),
        Binding("p", "show('past')", "past"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, server: Server, every: float = 2.0) -> None:
        """Make it.

        :param server: the daemon.
        :param every: seconds after which it is asked again while nothing happens.
        """
        super().__init__()
        self._server = server
        self._every = every
        self._about: dict[str, Any] = {}
        self._found: dict[str, Any] = {"at": time.time(), "jobs": []}
        self._mine = False
        self._chosen = ""
        self._read_at = 0.0
        """When the chosen line was read last, on the monotonic clock: to say why takes the daemon a while."""
        self._happened: deque[str] = deque(maxlen=BEFORE)
        self._columns: tuple[str, ...] = ()
        self._lines: list[str] = []

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Static(id="machine")
        yield Static(id="trouble")
        with Vertical(id="body"):
            yield DataTable(id="queue", cursor_type="row", zebra_stripes=True)
            with TabbedContent(id="about", initial="why"):
                for name, title in (
                    ("why", "Why"),
                    ("output", "Output"),
                    ("happens", "Who made way"),
                    ("past", "Ended"),
                ):
                    with TabPane(title, id=name), VerticalScroll(id=f"{name}-scroll"):
                        yield Static(id=f"{name}-text")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        self._own = asyncio.get_running_loop()
        self.query_one("#queue", DataTable).focus()
        self.look()
        threading.Thread(target=self.listen, daemon=True).start()
        self.set_interval(self._every, self.look)

    # ------------------------------------------------------------------------------------ asking
    @work(thread=True, exclusive=True, group="look", exit_on_error=False)
    def look(self) -> None:
        """Ask for all that is shown, but for the chosen job."""
        try:
            about = self._server.get("/v1/daemon")
            found = self._server.get("/v1/jobs")
        except (MakewayError, OSError) as error:
            self._tell(self._troubled, str(error))
            return
        self._tell(self._take, about, found)

    @work(thread=True, exclusive=True, group="job", exit_on_error=False)
    def read_job(self, line: str) -> None:
        """Ask for what there is to say about the job of a line, or about the first of its tasks."""
        job_id = jobs_of(line)[0]
        try:
            told = self._server.get(job_route(job_id, "why"))["told"]
        except (MakewayError, OSError) as error:
            told = [str(error)]
        self._tell(self._write, line, "why", "\n".join(map(printable, told)))
        try:
            text = self._output(job_id)
        except (MakewayError, OSError) as error:
            text = str(error)
        self._tell(self._write, line, "output", printable_lines(text))

    def _output(self, job_id: str) -> str:
        """Return the end of what a job has printed."""
        about = self._server.get(job_route(job_id, "logs"))
        try:
            return end_of(about["output"], LINES) or f"{about['output']} is empty"
        except FileNotFoundError:
            return "It has not started yet." if about["state"] == "PENDING" else f"{about['output']} is gone"

    @work(thread=True, exclusive=True, group="past", exit_on_error=False)
    def read_past(self) -> None:
        """Ask for the jobs that ended in the last day."""
        try:
            found = self._server.get("/v1/history", since=time.time() - DAY, limit=200)
            text = "\n".join(past_table(found["jobs"][::-1])) if found["jobs"] else ""
        except (MakewayError, OSError) as error:
            text = str(error)
        self._tell(self._put, "past", text or "No job ended in the last day.")

    def listen(self) -> None:
        """Hear what happens, until the screen is closed; the body of a thread that nothing waits for."""
        after = None
        while self.is_running:
            try:
                if after is None:
                    after = max(0, int(self._server.get("/v1/daemon")["sequence"]) - BEFORE)
                for event in self._server.events(after):
                    after = event["id"]
                    self._tell(self._heard, event)
            except (MakewayError, OSError, ValueError):
                pass  # looked at again by `look`, which says so
            time.sleep(AGAIN)

    @work(thread=True, group="change", exit_on_error=False)
    def change(self, verb: str, line: str) -> None:
        """Have something done to the jobs of a line, and say what was refused."""
        try:
            refused = self._server.post("/v1/commands", {"verb": verb, "jobs": jobs_of(line)})["refused"]
        except (MakewayError, OSError) as error:
            refused = {line: str(error)}
        for text in sorted(set(refused.values())):
            self._tell(self._refused, verb, line, text)
        self._tell(self.look)

    def _tell(self, what: Callable[..., Any], *values: Any) -> None:
        """Have the screen's own thread do something, unless it is over."""
        with contextlib.suppress(RuntimeError):  # its loop is closed
            self._own.call_soon_threadsafe(self.call_later, self._if_shown, what, *values)

    def _if_shown(self, what: Callable[..., Any], *values: Any) -> None:
        """Do something on the screen; where a part of it is gone already, the program is about to end."""
        with contextlib.suppress(NoMatches):
            what(*values)

    # ------------------------------------------------------------------------------------ showing
    def _take(self, about: dict[str, Any], found: dict[str, Any]) -> None:
        self._about, self._found = about, found
        drain = about["drained"]
        trouble = about["trouble"]
        if drain is not None:
            trouble = trouble or f"drained by {drain['by']}" + (
                f": {drain['reason']}" if drain["reason"] else ""
            )
        self._troubled(f"nothing is started now: {trouble}" if trouble else "")
        self.query_one("#machine", Static).update(machine(about, found, self.size.width - 2))
        self._draw()

    def _troubled(self, text: str) -> None:
        bar = self.query_one("#trouble", Static)
        bar.display = bool(text)
        bar.update(Text(printable(text)))

    def _draw(self) -> None:
        """Draw the queue anew, and keep the chosen line."""
        jobs = self._found["jobs"]
        if self._mine:
            jobs = [job for job in jobs if job["user"] == self._about["reader"]["name"]]
        headings, rows = cells({**self._found, "jobs": jobs})
        table: DataTable[Text] = self.query_one("#queue", DataTable)
        under = self._under()  # not what is shown of a job: the cursor may have moved since
        keys = self._lines = [row[0] for row in rows]
        at = keys.index(under) if under in keys else min(table.cursor_row, len(keys) - 1)
        if headings != self._columns:
            table.clear(columns=True)
            for heading in headings:
                table.add_column(Text(heading, justify="right" if heading in RIGHT else "left"), key=heading)
            self._columns = headings
        scrolled = table.scroll_y
        table.clear()
        for key, row in zip(keys, rows, strict=True):
            table.add_row(
                *(
                    Text(printable(cell), style=_style(row), justify="right" if heading in RIGHT else "left")
                    for heading, cell in zip(headings, row, strict=True)
                ),
                key=key,
            )
        if rows:
            table.move_cursor(row=max(0, at), scroll=False)
            table.scroll_to(y=scrolled, animate=False)
            self._choose(keys[max(0, at)])
        else:
            self._choose("")

    def _under(self) -> str:
        """Return the line under the cursor; empty: none."""
        table = self.query_one("#queue", DataTable)
        return self._lines[table.cursor_row] if table.cursor_row < len(self._lines) else ""

    def _choose(self, line: str) -> None:
        now = time.monotonic()
        if line and line == self._chosen and now < self._read_at + self._every:
            return
        self._chosen, self._read_at = line, now
        if line:
            self.read_job(line)
        else:
            for name in ("why", "output"):
                self._put(name, "No jobs.")

    def _write(self, line: str, name: str, text: str) -> None:
        if line == self._chosen:
            self._put(name, text)

    def _put(self, name: str, text: str) -> None:
        scroll = self.query_one(f"#{name}-scroll", VerticalScroll)
        at_end = scroll.scroll_y >= scroll.max_scroll_y - 1
        self.query_one(f"#{name}-text", Static).update(Text(text))
        if name == "output" and at_end:
            scroll.scroll_end(animate=False)

    def _heard(self, event: dict[str, Any]) -> None:
        if event["event"] == "step":
            wall = event["data"]["wall"]
            for line in event["data"]["lines"]:
                text = sentence(line, wall)
                if text:
                    self._happened.appendleft(text)
            self._put("happens", "\n".join(self._happened))
        self.look()

    def _refused(self, verb: str, line: str, text: str) -> None:
        self.notify(f"{verb} {line}: {printable(text)}", severity="error", markup=False)

    # -------------------------------------------------------------------------------------- keys
    def on_data_table_row_highlighted(self) -> None:
        """Show the job of the line that was chosen."""
        # Where its cursor is now: messages of rows that are gone may come later.
        line = self._under()
        if line and line != self._chosen:
            self._choose(line)

    def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        """Read what a page shows once it is shown."""
        if event.pane.id == "past":
            self.read_past()

    def action_show(self, name: str) -> None:
        """Show one of the pages."""
        self.query_one("#about", TabbedContent).active = name

    def action_mine(self) -> None:
        """Show one's own jobs, or all."""
        self._mine = not self._mine
        self._draw()

    def action_cancel(self) -> None:
        """End the chosen job, after a question."""
        line = self._under()

        def answered(yes: bool | None) -> None:
            if yes:
                self.change("cancel", line)

        if line:
            self.push_screen(Question(f"End job {line}?"), answered)

    def action_hold(self) -> None:
        """Keep the chosen job from starting, or let it start again."""
        line = self._under()
        if line:
            held = any(job["held"] for job in self._found["jobs"] if line in (job["id"], job["array"]))
            self.change("release" if held else "hold", line)

    def action_top(self) -> None:
        """Put the chosen job first."""
        line = self._under()
        if line:
            self.change("top", line)


# ------------------------------------------------------------------------------------------ texts
def jobs_of(cell: str) -> list[str]:
    """Return the jobs that a line of the queue stands for: ``17_0`` and ``17_1`` for ``17_[0-1]``."""
    array, tasks, text = cell.partition("_[")
    return [f"{array}_{task}" for task in _numbers(text.rstrip("]"))] if tasks else [cell]


def _style(row: tuple[str, ...]) -> str:
    return {"R": "bold", "S": "yellow"}.get(row[4], "")


def sentence(line: Mapping[str, Any], wall: float) -> str:
    """Return what a line of the record says of jobs that make way, and of who uses nodes; empty: nothing."""
    at = time.strftime("%H:%M:%S", time.localtime(wall))
    if line["kind"] == "preempt":
        return printable(
            f"{at} job {line['job']} makes way for {line['preemptor'] or 'a person'}: {line['mode']}"
        )
    if line["kind"] == "use":
        now = f"is in use {line['why']}" if line["state"] == "used" else "is quiet"
        return printable(f"{at} {line['nodes']} {now} (partition {line['partition']})")
    if line["kind"] == "state":
        return printable(f"{at} job {line['job']}: {line['state'].lower()}")
    return ""


def _numbers(text: str) -> Iterator[int]:
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


def machine(about: Mapping[str, Any], found: Mapping[str, Any], width: int) -> Text:
    """Return cores and GPUs with the jobs that have them, as lines of at most `width`."""
    running = [job for job in found["jobs"] if job["state"] in ("RUNNING", "COMPLETING")]
    colours = {job["id"]: COLOURS[at % len(COLOURS)] for at, job in enumerate(running)}
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(printable(f"{about['cluster'] or 'this machine'}"), style="bold")
    waits = sum(job["state"] == "PENDING" for job in found["jobs"])
    aside = sum(job["state"] == "SUSPENDED" for job in found["jobs"])
    text.append(f"   {len(running)} running, {waits} waiting, {aside} suspended", style="dim")
    for name, cpus in about["nodes"]:
        owners = {core: job["id"] for job in running for core in _numbers(job.get("cores", {}).get(name, ""))}
        text.append(f"\n{printable(name)}  {len(owners)} of {cpus} CPUs  ")
        room = max(8, width - len(text.plain.rpartition("\n")[2]))
        for core in range(min(cpus, room)):
            owner = owners.get(core)
            text.append("■" if owner else "·", style=colours[owner] if owner else "dim")
    if running:
        text.append("\n")
        for job in running[:20]:
            text.append("■ ", style=colours[job["id"]])
            text.append(printable(f"{job['id']} {job['user']}  "))
    users = {gpu["uuid"]: job for job in found["jobs"] for gpu in job.get("gpus", ())}
    for gpu in about["gpus"]:
        text.append(f"\nGPU {gpu['index']} {printable(gpu['name'])}  ")
        full = round(10 * gpu["used_mb"] / gpu["memory_mb"]) if gpu["memory_mb"] else 0
        text.append("■" * full + "·" * (10 - full))
        text.append(f" {gpu['used_mb'] / 1024:.1f} of {gpu['memory_mb'] / 1024:.1f} GiB  ")
        job = users.get(gpu["uuid"])
        text.append(
            printable(f"job {job['id']} of {job['user']}") if job else "free", style="" if job else "dim"
        )
    return text
