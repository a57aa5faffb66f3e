"""The page in a real browser: what it shows, clicks, keys, links; nothing is fetched, and axe finds no fault."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from makeway_report.changes import compare
from makeway_report.record_file import read_record

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
FULL = (
    Path(os.environ.get("MAKEWAY_WORKLOADS", ROOT.parent / "shared" / "workloads"))
    / "KTH-SP2-1996-2.1-cln.swf.gz"
)
Page = Any
"""`conftest.Page`."""
NAMES = ('</script><script>alert("x")</script>', 'o\'hara "the" <b>', "\N{GRINNING FACE} emoji", "مستخدم")
"""Names that a page might take for something else."""
PageOf = Callable[[Mapping[str, Any]], Path]


@pytest.fixture(autouse=True)
def _as_it_was(page: Page) -> Iterator[None]:
    yield
    page.size(1400, 1000)
    page.scheme("light")


def rows(page: Page, table: str) -> list[list[str]]:
    """Return the texts of a table's body."""
    lines = "[...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
    script = f"return {lines}.map(row => [...row.children].map(cell => cell.innerText))"
    found: list[list[str]] = page.run(script, table)
    return found


# -------------------------------------------------------------------------------------- what it shows
def test_six_jobs(page: Page, seed: Path) -> None:
    """Twelve pieces (three jobs run, are suspended, run again; three run), three arrows, tiers in their order."""
    state = page.open(seed).state()
    assert (state["jobs"], state["drawn"], state["pieces"], state["arrows"]) == (6, "pieces", 12, 3)
    assert [name for name, _ in state["colours"]] == ["hipri", "active"]
    assert "12 pieces of jobs in view, each drawn" in page.text("caption")
    assert page.complaints() == []


def test_curves_say_how_many_cores_and_jobs(page: Page, seed: Path) -> None:
    """40 cores are in use and three jobs suspended while job 490 runs (27 s to 57 s); none waits."""
    page.open(seed, "from=30&to=50")
    charts = page.state()["charts"]
    assert {round(value) for value in charts["cores"]} == {40}
    assert {round(value) for value in charts["suspended"]} == {3}
    assert {round(value) for value in charts["waiting"]} == {0}


def test_many_pieces_are_a_density(page: Page, kit: Any, folder: Path) -> None:
    """4,000 jobs one after the other on one node; up close each is drawn."""
    jobs = {
        str(at): kit.job(
            submit=float(at), intervals=[kit.interval("RUNNING", at, at + 1, "n1", {"n1": "0-3"})]
        )
        for at in range(4000)
    }
    (folder / "many.json").write_text(json.dumps(kit.record(jobs)))
    kit.made("report", folder / "many.json", "-o", folder / "many.html")
    state = page.open(folder / "many.html").state()
    assert (state["drawn"], state["pieces"]) == ("density", 4000)
    assert "shown as density" in page.text("caption")
    state = page.press("+", "+")
    assert state["drawn"] == "pieces"
    assert 900 < state["pieces"] < 1100


def test_density_is_the_share_of_the_area(page: Page, seed: Path) -> None:
    """A pixel half covered by one colour and a quarter by another has their mean, and is three quarters opaque."""
    page.open(seed)
    # The script is one closed function; its source is taken apart and the class run alone.
    script = """
        const text = [...document.scripts].at(-1).textContent;
        const source = text.slice(text.indexOf("class Density"), text.indexOf("// Jobs over nodes."));
        const Density = new Function(`${source}; return Density;`)();
        const made = new Density([[1, 0, 0], [0, 0, 1]]);
        made.clear(2, 3);
        made.add(0.5, 1, 0, 2, 0, 1);
        made.add(0.75, 1, 1, 2, 1, 1);
        made.add(1, 3, 0, 1, 1, 0.5);
        return Array.from(made.image(1).data);
    """
    page.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    try:
        page.open(seed)
        data = page.run(script)
    finally:
        page.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})
    pixels = [data[at : at + 4] for at in range(0, len(data), 4)]
    assert pixels[0] == pytest.approx([255, 0, 0, 128], abs=1)
    assert pixels[1] == pixels[2] == pytest.approx([0, 0, 255, 128], abs=1)
    assert pixels[3] == pytest.approx([170, 0, 85, 191], abs=1)
    assert pixels[4][3] == pixels[5][3] == 0


@pytest.mark.slow
def test_tables_add_up(page: Page, kth: Path) -> None:
    """89 preemptions of high over low, 3,065 core-hours lost: what the table of the replay says."""
    page.open(kth)
    assert rows(page, "matrix") == [["low", "89", "89"]]
    assert rows(page, "ratetable")[0][:2] == ["high", "89"]
    assert rows(page, "ratetable")[0][3] == "3,065"
    assert rows(page, "lostbypartition") == [["low", "63", "3,065", "100.0%"]]
    assert rows(page, "victims")[0][:4] == ["job 17", "14", "low", "11"]
    assert "1 of 1 victim group" in page.text("matrixnote")
    page.run(
        "const s = document.getElementById('matrixof'); s.value = 'cost'; s.dispatchEvent(new Event('change'))"
    )
    assert rows(page, "matrix") == [["low", "3,065", "3,065"]]


def test_figures_are_rows_and_runs_are_columns(page: Page, kth: Path) -> None:
    """Differences have a sign, and what can be judged the interval that the replay tells in the terminal."""
    page.open(kth)
    shown = {cells[0]: cells[1:] for cells in rows(page, "figures")}
    minus = "\N{MINUS SIGN}"
    assert shown["mean wait"][0] == "1:09:09"
    assert shown["mean wait"][1].startswith(f"0:56:41\n{minus}0:12:28\n{minus}0:37:07 to +0:04:17, noise")
    assert shown["max wait"][1].endswith(f"{minus}3:32:29")
    way = "return document.querySelectorAll('#figures .between.{}').length"
    assert [page.run(way.format(each)) for each in ("noise", "less", "more")] == [2, 1, 0]
    assert page.text("runslist").startswith("A\nrequeue preempt/partition_prio with requeue")


@pytest.mark.parametrize("width", [400, 1360])
def test_the_figures_fit_the_window(page: Page, kth: Path, width: int) -> None:
    """Of a phone as well: preemptions and hours lost are in view."""
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    try:
        page.open(kth)
        table = page.run("return document.getElementById('figures').getBoundingClientRect().toJSON()")
        assert table["right"] <= width
        assert page.run("return document.documentElement.scrollWidth") <= width
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_whose_wait_changed_most(page: Page, kth: Path, folder: Path) -> None:
    """Ten jobs as `makeway compare` has them; a click opens the job in the run that is in view."""
    page.open(kth)
    first, second = (read_record(folder / f"{name}.json") for name in ("requeue", "suspend"))
    found = compare(first, second)
    shown = rows(page, "changes")
    assert [each[:2] for each in shown] == [[f"job {each.job}", each.user] for each in found.most]
    for cells, each in zip(shown, found.most, strict=True):
        assert cells[4].endswith("longer" if each.after > each.before else "shorter")
        assert cells[4][0] == ("+" if each.after > each.before else "\N{MINUS SIGN}")
        assert cells[6:] == [each.first, each.second]
    assert f"wait longer: {found.longer:,}, shorter: {found.shorter:,}" in page.text("changes")
    page.press("2")
    page.run("document.querySelector('#changes .link').focus()")
    state = page.press("\ue007")
    assert (state["run"], state["job"]) == ("suspend", found.most[0].job)
    assert f"Job {found.most[0].job}" in page.text("job")
    assert page.complaints() == []


def test_waits_compared_by_hand(page: Page, kit: Any, folder: Path) -> None:
    """Job a waits 10 s more, b 90 s less, c as long; the names are data. One run has no such section."""

    def waits(seconds: float, user: str, outcome: str) -> dict[str, Any]:
        pending = {"state": "PENDING", "start": 0.0, "end": seconds, "restart": 0}
        decided = {"at": 0.0, "outcome": outcome, "partition": "low", "reason": user}
        return dict(kit.job(user=user, intervals=[pending], decisions=[decided]))

    for name, outcome, seconds in (("one", "waits", (5, 100, 1)), ("two", "starts", (15, 10, 1))):
        jobs = {job: waits(each, NAMES[0], outcome) for job, each in zip("abc", seconds, strict=True)}
        (folder / f"{name}.json").write_text(json.dumps(kit.record(jobs)))
    made = folder / "by-hand.html"
    kit.made(
        "report", folder / "one.json", folder / "two.json", "--label", "x", "--label", NAMES[0], "-o", made
    )
    page.open(made)
    minus = "\N{MINUS SIGN}"
    assert rows(page, "changes") == [
        [
            f"job {job}",
            NAMES[0],
            *told,
            "day 0 00:00:00",
            f"0 s: waits: {NAMES[0]}",
            f"0 s: starts: {NAMES[0]}",
        ]
        for job, *told in (
            ("b", "0:01:40", "10 s", f"{minus}0:01:30, shorter"),
            ("a", "5 s", "15 s", "+10 s, longer"),
        )
    ]
    assert "Jobs that wait longer: 1, shorter: 1, the same: 1" in page.text("changes")
    kit.made("report", folder / "one.json", "-o", folder / "alone.html")
    page.open(folder / "alone.html")
    assert page.run("return document.getElementById('changes')") is None
    assert page.complaints() == []


# ----------------------------------------------------------------------------------------- by hand
def test_a_click_shows_the_job_and_why(page: Page, seed: Path) -> None:
    """Job 490 displaced 485, 486 and 487; the panel says so, with the reasons recorded, and links to them."""
    page.open(seed, "from=0&to=100")
    page.box("gantt")
    place = page.run("return makeway.whereIs('490')")
    assert page.click(place["x"], place["y"] - 8)["job"] == "490"
    text = page.text("job")
    for wanted in (
        "Job 490",
        "What it displaced",
        "job 485",
        "job 486",
        "job 487",
        "preempt/partition_prio",
        "asked for",
    ):
        assert wanted in text
    page.run("[...document.querySelectorAll('#job .link')].find(l => l.innerText == 'job 486').click()")
    assert page.state()["job"] == "486"
    assert "What displaced it" in page.text("job")
    assert "job 490" in page.text("job")


def test_a_click_beside_all_jobs_closes_the_panel(page: Page, seed: Path) -> None:
    """Node 15 is empty after 306 s."""
    page.open(seed, "from=300&to=331&job=490")
    box = page.box("gantt")
    assert page.state()["job"] == "490"
    assert page.click(box["x"] + box["width"] - 10, box["y"] + 12 + 3.5 * 34)["job"] is None
    assert "Which job?" in page.text("job")


def test_the_picture_is_dragged(page: Page, seed: Path) -> None:
    """To the left: later. The span stays."""
    page.open(seed, "from=0&to=100")
    box = page.box("gantt")
    state = page.drag(box["x"] + 500, box["y"] + 80, box["x"] + 300, box["y"] + 80)
    assert state["from"] == pytest.approx(100 * 200 / (box["width"] - 66), rel=0.05)
    assert state["to"] - state["from"] == pytest.approx(100)


def test_the_window_of_the_strip_is_dragged_and_resized(page: Page, seed: Path) -> None:
    """By its middle and by its edge; a drag outside chooses another."""
    page.open(seed, "from=100&to=200")
    box = page.box("strip")
    width = box["width"] - 66

    def x(at: float) -> float:
        return float(box["x"] + 64 + at / 331 * width)

    y = box["y"] + 24
    state = page.drag(x(150), y, x(170), y)
    assert (state["from"], state["to"]) == (pytest.approx(120, abs=2), pytest.approx(220, abs=2))
    state = page.drag(x(state["to"]), y, x(300), y)
    assert (state["from"], state["to"]) == (pytest.approx(120, abs=2), pytest.approx(300, abs=3))
    state = page.drag(x(20), y, x(60), y)
    assert (state["from"], state["to"]) == (pytest.approx(20, abs=2), pytest.approx(60, abs=2))


def test_a_span_is_chosen_on_a_curve(page: Page, seed: Path) -> None:
    """By dragging over it."""
    page.open(seed)
    box = page.box("cores")
    page.drag(box["x"] + 300, box["y"] + 50, box["x"] + 500, box["y"] + 50)
    state = page.state()
    assert 50 < state["to"] - state["from"] < 100


# --------------------------------------------------------------------------------------- by keyboard
def test_keys_move_and_zoom(page: Page, kth: Path) -> None:
    """And the view moves indeed."""
    page.open(kth)
    end = page.state()["end"]
    state = page.press("+")
    assert state["to"] - state["from"] == pytest.approx(end / 2)
    before = state["from"]
    assert page.press("\ue014")["from"] == pytest.approx(before + end / 8)
    assert page.press("\ue012")["from"] == pytest.approx(before)
    assert page.press("-")["to"] == pytest.approx(end)
    assert page.press("[")["rows"] == 50
    assert page.press("]")["rows"] == 100
    page.press("+", "[")
    state = page.press("\ue011")
    assert (state["from"], state["to"], state["rows"]) == (0, pytest.approx(end), 100)


def test_from_preemption_to_preemption(page: Page, kth: Path) -> None:
    """The first one is at 14,758 s: job 71 displaces 18, 39 and 17; each is a preemption of its own."""
    page.open(kth)
    state = page.press("n")
    assert state["preemption"] == 0
    assert state["from"] < 14758 < state["to"]
    assert state["arrows"] >= 1
    assert "Preemption 1 of 89" in page.text("found")
    assert page.press("n")["preemption"] == 1
    assert page.press("p", "p")["preemption"] == 88
    assert page.press("\ue00c")["job"] is None


def test_a_job_and_a_user_are_searched(page: Page, kth: Path) -> None:
    """By id, by user, from one job to the next; what is not there is said."""
    page.open(kth)
    page.press("/")
    assert page.press("1181", "\ue007")["job"] == "1181"
    page.press("\ue00c")
    page.run("document.getElementById('search').value = ''")
    page.press("/")
    first = page.press("14", "\ue007")["job"]
    assert page.press("\ue007")["job"] != first
    page.run("document.getElementById('search').value = 'nobody'")
    page.press("\ue007")
    assert "No job and no user is called nobody" in page.text("found")


def test_help_is_a_dialog(page: Page, seed: Path) -> None:
    """Opened by ? and closed by Esc."""
    page.open(seed)
    page.press("?")
    assert page.run("return document.getElementById('help').open")
    assert "next, previous preemption" in page.text("help")
    page.press("\ue00c")
    assert not page.run("return document.getElementById('help').open")


def test_all_is_reached_by_tab(page: Page, seed: Path) -> None:
    """Every control takes the focus, and shows it."""
    page.open(seed)
    wanted = set(
        page.run(
            "return [...document.querySelectorAll('button, select, input, #stage')]"
            ".filter(control => control.offsetParent).map(control => control.id)"
        )
    )
    met = set()
    for _ in range(60):
        page.driver.switch_to.active_element.send_keys("\ue004")
        met.add(page.run("return document.activeElement.id"))
        if wanted <= met:
            break
    assert wanted <= met
    page.run("document.getElementById('stage').focus()")


# -------------------------------------------------------------------------------- nodes, runs, links
@pytest.mark.parametrize(
    ("text", "nodes"),
    [("n[001-010]", 10), ("n09*", 10), ("n001,n100", 2), ("00", 10), ("n[1-3,7]", 4), ("none", 0), ("((", 0)],
)
def test_nodes_are_filtered(page: Page, kth: Path, text: str, nodes: int) -> None:
    """As on a command line, or by any part of the name."""
    page.open(kth)
    page.run(
        "const f = document.getElementById('nodefilter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))",
        text,
    )
    assert page.state()["rows"] == nodes
    assert (
        page.run("return document.getElementById('nodefilter').getAttribute('aria-invalid')")
        == str(not nodes).lower()
    )


def test_a_link_restores_the_view(page: Page, kth: Path) -> None:
    """Run, span, job, nodes and colours are in the address."""
    page.open(kth)
    page.press("2", "+", "n")
    page.run(
        "const b = document.getElementById('by'); b.value = 'user'; b.dispatchEvent(new Event('change'))"
    )
    page.press("[")
    before = page.state()
    page.until("location.hash.includes('by=user')")
    link = page.run("return location.hash.slice(1)")
    after = page.open(kth, link).state()
    for key in ("run", "by", "job", "rows", "firstRow"):
        assert after[key] == before[key]
    assert after["from"] == pytest.approx(before["from"], abs=0.01)
    assert after["to"] == pytest.approx(before["to"], abs=0.01)
    assert before["run"] == "suspend"


def test_a_broken_link_shows_all(page: Page, seed: Path) -> None:
    """What cannot be meant is left out."""
    state = page.open(seed, "from=x&to=&job=99&by=shoe&run=none&rows=a+b").state()
    assert (state["from"], state["to"], state["job"], state["by"]) == (0, 331, None, "partition")


def test_lanes_lie_beside_one_another(page: Page, kit: Any, page_of: PageOf) -> None:
    """Two jobs have two of four CPUs each; the upper one is the one with the first CPUs."""
    jobs = {
        "a": kit.job(intervals=[kit.interval("RUNNING", 0, 100, "n1", {"n1": "0-1"})]),
        "b": kit.job(intervals=[kit.interval("RUNNING", 0, 100, "n1", {"n1": "2-3"})]),
    }
    page.open(page_of(kit.record(jobs)))
    page.box("gantt")
    first, other = (page.run("return makeway.whereIs(arguments[0])", each) for each in "ab")
    assert other["y"] - first["y"] == pytest.approx(17, abs=1)
    assert page.click(first["x"], first["y"])["job"] == "a"
    assert page.click(other["x"], other["y"])["job"] == "b"


def test_groups_are_what_the_policy_looks_at(page: Page, kit: Any, page_of: PageOf) -> None:
    """Cohorts, here; they may be chosen as colours and for the table."""
    run = kit.interval("RUNNING", 0, 10, "n1", {"n1": "0-3"})
    jobs = {
        "1": kit.job(displaces_as="red", intervals=[run]),
        "2": kit.job(displaces_as="blue", intervals=[run]),
    }
    entry = {"at": 5, "preemptor": "2", "victim": "1", "mode": "suspend", "by": "p", "why": "w"}
    found = kit.record(jobs, [entry])
    found["record"]["policy"]["displaces_by"] = "cohort"
    page.open(page_of(found))
    assert page.state()["by"] == "side"
    assert page.text("by").split()[0] == "cohort"
    assert rows(page, "matrix") == [["red", "1", "1"]]


# ------------------------------------------------------------------------------- names, none, errors
def test_names_are_data(page: Page, kit: Any, page_of: PageOf) -> None:
    """Whatever they look like: no dialog opens, they are shown as they are, and found."""
    jobs = {
        name: kit.job(
            user=name,
            account=name,
            name=name,
            intervals=[kit.interval("RUNNING", at, 10, f"n{at + 1}", {f"n{at + 1}": "0-3"})],
        )
        for at, name in enumerate(NAMES)
    }
    found = kit.record(jobs)
    found["record"]["workload"] = found["record"]["label"] = NAMES[0]
    page.open(page_of(found))
    assert page.state()["listed"] == len(NAMES)
    for name in NAMES:
        page.run("document.getElementById('search').value = arguments[0]", name)
        page.run("document.getElementById('searchform').requestSubmit()")
        assert page.state()["job"] == name
        assert name in page.text("job")
    assert page.run("return document.querySelectorAll('script').length") == 2
    assert page.complaints() == []


def test_no_jobs(page: Page, kit: Any, page_of: PageOf) -> None:
    """An empty page, and no complaint."""
    state = page.open(page_of(kit.record({}))).state()
    assert (state["jobs"], state["pieces"]) == (0, 0)
    assert "No job was displaced" in page.text("matrix")
    page.press("n", "+", "-")
    assert page.complaints() == []


# --------------------------------------------------------------------------------- rules for all pages
def test_nothing_is_fetched(page: Page, kth: Path) -> None:
    """Not at the start, not later; the content security policy would not let it."""
    page.open(kth)
    page.press("n", "2", "+", "?", "\ue00c")
    assert page.requests() == []
    refused = page.driver.execute_async_script(
        "const done = arguments[0]; fetch('https://example.org/').then(() => done('fetched'), () => done('refused'))"
    )
    assert refused == "refused"
    assert any("Content Security Policy" in text for text in page.complaints())


def test_the_page_of_a_sweep(page: Page, kit: Any, folder: Path) -> None:
    """It opens from disk, names both values, fetches nothing, and axe finds no fault."""
    pytest.importorskip("makeway_sweep", reason="makeway-sweep is not installed")
    config, to = ROOT / "examples/seed/cluster.toml", folder / "sweep"
    kit.made("sweep", config, "--vary", "policy.preempt_mode=suspend,requeue", "-o", to, "--workers", "1")
    page.driver.get("about:blank")
    page.requests()
    page.complaints()
    page.driver.get((to / "index.html").as_uri())
    text = page.run("return document.body.innerText")
    assert "suspend" in text
    assert "requeue" in text
    page.run((HERE / "axe/axe.min.js").read_text(encoding="utf-8"))
    found = page.driver.execute_async_script("axe.run().then(arguments[0])")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]] == []
    assert page.requests() == []
    assert page.complaints() == []


def test_nodes_out_of_service_are_listed(page: Page, kit: Any, folder: Path) -> None:
    """N16 fails under job 489 and is back a second later."""
    seed = (ROOT / "examples/seed/cluster.toml").read_text()
    site = folder / "failing.toml"
    site.write_text(f'{seed}\n[[outage]]\nnodes = "n16"\nat = 20\nlasts = 1\n')
    kit.made("replay", site, "--report", folder / "failing.html")
    page.open(folder / "failing.html")
    page.run("document.querySelector('details').open = true")
    row = "document.querySelector('details tbody tr').innerText.split(/\\s*\\t\\s*/)"
    assert page.run(f"return {row}") == ["n16", "down", "second 20", "second 21", "489"]
    assert page.complaints() == []


@pytest.fixture(scope="session")
def tuned(kit: Any, folder: Path) -> Path:
    """Return the page of a search with an answer."""
    pytest.importorskip("makeway_tune", reason="makeway-tune is not installed")
    site = ROOT / "examples/tune"
    given = ("--minimise", "lost-hours", "--only", "youngest_first", "--trials", "2", "--workers", "1")
    kit.made("tune", site / "slurm.conf", site / "june.sacct", *given, "--report", folder / "tune.html")
    return folder / "tune.html"


BROKEN = """
const words = [], texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode;
  if (text.parentElement.closest('pre, svg')) continue;
  for (const word of text.data.matchAll(/[^\\s-]+-?/g)) {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map(each => each.top)).size > 1) words.push(word[0]);
  }
}
return words;
"""
"""Words that go on in another line."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_of_a_search(page: Page, tuned: Path, scheme: str, width: int) -> None:
    """Nothing scrolls sideways, no word is broken, a mark is reached by keys, and axe finds no fault."""
    page.scheme(scheme)
    page.size(width, 1000)
    page.driver.get("about:blank")
    page.requests()
    page.complaints()
    page.driver.get(tuned.as_uri())
    assert page.run("return document.documentElement.scrollWidth") <= width
    cells = "[...document.querySelectorAll('td')]"
    assert page.run(f"return {cells}.every(cell => cell.getBoundingClientRect().right <= {width})")
    assert page.run(BROKEN) == []
    paper = page.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(13, 17, 23)" if scheme == "dark" else "rgb(255, 255, 255)")
    page.run("document.querySelector('svg a[href=\"#B\"]').focus()")
    page.driver.switch_to.active_element.send_keys("\ue007")
    assert page.run("return document.querySelector('section:target').id") == "B"
    page.run((HERE / "axe/axe.min.js").read_text(encoding="utf-8"))
    found = page.driver.execute_async_script("axe.run().then(arguments[0])")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]] == []
    assert page.requests() == []
    assert page.complaints() == []


def test_the_studio(page: Page) -> None:
    """By keys alone: another setting, its replay beside the site's, and a job explained; axe finds no fault."""
    pytest.importorskip("makeway_tune", reason="makeway-tune is not installed")
    site = ROOT / "examples/tune"
    command = [sys.executable, "-m", "makeway", "studio", str(site / "slurm.conf"), str(site / "june.sacct")]
    with subprocess.Popen(
        [*command, "--no-browser", "--limit", "100"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            page.driver.get(server.stdout.readline().strip())
            _use_the_studio(page)
        finally:
            server.terminate()


def _use_the_studio(page: Page) -> None:
    page.until("document.getElementById('run-A')?.dataset.state === 'done'")
    page.complaints()
    page.run("document.querySelector('select[name=\"PreemptParameters=youngest_first\"]').focus()")
    page.driver.switch_to.active_element.send_keys("\ue015")  # down: yes
    page.run("document.querySelector('#form button').focus()")
    page.driver.switch_to.active_element.send_keys("\ue007")
    page.until("document.getElementById('run-B')?.dataset.state === 'done'")
    assert "PreemptParameters=youngest_first: not set -> yes" in page.text("run-B")
    heads = "[...document.querySelectorAll('#figures th')].map(each => each.innerText)"
    assert page.run(f"return {heads}") == ["of", "figure", "A", "B"]
    assert page.run("return document.querySelectorAll('#figures .between').length") > 0
    page.run("document.querySelector('#jobs button').focus()")
    page.driver.switch_to.active_element.send_keys("\ue007")
    told = "document.getElementById('told').innerText.includes('why it waited')"
    page.until(f"!document.getElementById('story').hidden && {told}")
    page.until("document.activeElement.id === 'story'")
    for scheme, width in (("light", 1400), ("dark", 400)):
        page.scheme(scheme)
        page.size(width, 1000)
        assert page.run("return document.documentElement.scrollWidth") <= width
        assert page.run(BROKEN) == []
        page.run((HERE / "axe/axe.min.js").read_text(encoding="utf-8"))
        found = page.driver.execute_async_script("axe.run().then(arguments[0])")
        assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]] == []
    assert page.complaints() == []
    page.driver.get(page.run("return document.querySelector('#run-B a').href"))
    page.until("document.documentElement.dataset.ready === 'true'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [600, 1400])
def test_axe_finds_no_fault(page: Page, kth: Path, scheme: str, width: int) -> None:
    """With a job open, in both schemes, narrow and wide."""
    page.scheme(scheme)
    page.size(width, 1000)
    page.open(kth)
    page.press("n")
    page.run((HERE / "axe/axe.min.js").read_text(encoding="utf-8"))
    found = page.driver.execute_async_script("axe.run().then(arguments[0])")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]] == []
    assert found["passes"]


def test_narrow_pages_do_not_scroll_sideways(page: Page, kth: Path) -> None:
    """Tables that are too wide scroll by themselves."""
    page.size(600, 1000)
    page.open(kth)
    assert page.run("return document.documentElement.scrollWidth") <= 600


def test_colours_are_switched(page: Page, seed: Path) -> None:
    """From what the system prefers to light to dark."""
    page.open(seed)
    colours = []
    for _ in range(3):
        colours.append(
            (page.state()["theme"], page.run("return getComputedStyle(document.body).backgroundColor"))
        )
        page.run("document.getElementById('theme').click()")
    assert [name for name, _ in colours] == ["auto", "light", "dark"]
    assert colours[1][1] == "rgb(255, 255, 255)" != colours[2][1]


# -------------------------------------------------------------------------------------------- limits
@pytest.mark.slow
@pytest.mark.skipif(not FULL.is_file(), reason=f"no trace at {FULL}; see MAKEWAY_WORKLOADS")
def test_a_year_of_kth(page: Page, kit: Any, folder: Path) -> None:
    """28,475 jobs on 100 nodes: at most 1.5 MB; zooming is lighter than opening."""
    kit.made(
        "replay",
        ROOT / "examples/kth/cluster.toml",
        FULL,
        "--allow-unusable",
        "--report",
        folder / "year.html",
    )
    assert (folder / "year.html").stat().st_size < 1_500_000
    page.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    assert page.open(folder / "year.html").state()["jobs"] == 28_475
    opening = _scripted(page)
    assert _usual_zoom(page) < opening


@pytest.mark.parametrize(
    "jobs", [21_477, pytest.param(214_776, marks=pytest.mark.nightly)], ids=["a tenth", "all"]
)
def test_two_hundred_thousand_jobs(page: Page, kit: Any, folder: Path, jobs: int) -> None:
    """On 816 nodes: a page of at most 19 bytes a job beside what all pages hold; zooming is lighter than opening."""
    _write_large(kit, folder / "large.json", jobs)
    kit.made("report", folder / "large.json", "-o", folder / "large.html")
    assert (folder / "large.html").stat().st_size < 150_000 + 19 * jobs
    page.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    state = page.open(folder / "large.html").state()
    assert (state["listed"], state["drawn"]) == (jobs, "density")
    opening = _scripted(page)
    assert _usual_zoom(page) < opening


@pytest.mark.nightly
def test_a_million_jobs_open_coarser(page: Page, kit: Any, folder: Path) -> None:
    """The sums hold all of them; the page says how many are not drawn."""
    _write_large(kit, folder / "million.json", 1_000_000)
    kit.made("report", folder / "million.json", "-o", folder / "million.html")
    (folder / "million.json").unlink()
    state = page.open(folder / "million.html").state()
    assert (state["jobs"], state["listed"]) == (1_000_000, 250_000)
    assert "750,000 small jobs are not drawn one by one" in page.text("coarse")
    mean = sum(state["charts"]["cores"]) / len(state["charts"]["cores"])
    assert mean == pytest.approx(_LARGE_CORES, rel=0.02)


_LARGE_CORES = 64 * 9.0 * 0.7
"""Cores in use on average: 64 rows of jobs, on 1 to 17 nodes, which run for 70 s in 100."""


def _write_large(kit: Any, path: Path, jobs: int) -> None:
    """Write a record of `jobs` jobs on 816 nodes, without a replay."""
    found = kit.record({}, nodes="n[001-816]", cpus=1)
    found["cluster"]["cores"] = 816
    with path.open("w") as stream:
        heading = {key: json.dumps(found[key], separators=(",", ":")) for key in ("record", "cluster")}
        stream.write(f'{{\n"record":{heading["record"]},\n"cluster":{heading["cluster"]},\n"jobs":{{')
        for at in range(jobs):
            row, turn = at % 64, at // 64
            wide = 1 + (at * 7919) % 17
            begin, run = turn * 100.0 + (at * 31) % 29, 61.0 + (at * 104_729) % 19
            first = 1 + (row * 12) % (816 - wide)
            nodes = f"n[{first:03}-{first + wide - 1:03}]" if wide > 1 else f"n{first:03}"
            cpus = {f"n{first + node:03}": "0" for node in range(wide)}
            each = kit.job(f"u{at % 60}", begin, [kit.interval("RUNNING", begin, begin + run, nodes, cpus)])
            each["requested"] |= {"nodes": wide, "cpus": wide}
            stream.write((",\n" if at else "\n") + f'"{at}":{json.dumps(each, separators=(",", ":"))}')
        stream.write(
            f'\n}},\n"preemptions":[],\n"metrics":{json.dumps(found["metrics"] | {"jobs": jobs})}\n}}\n'
        )


def _scripted(page: Page) -> float:
    """Return the seconds of the processor that scripts had since the page was opened."""
    listed = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(float(each["value"]) for each in listed if each["name"] == "ScriptDuration")


def _usual_zoom(page: Page) -> float:
    """Zoom in nine times; return the median scripting, in seconds, and check that the view moved."""
    took = []
    span = float("inf")
    for _ in range(9):
        before = _scripted(page)
        state = page.press("+")
        took.append(_scripted(page) - before)
        assert state["to"] - state["from"] < span
        span = state["to"] - state["from"]
    return statistics.median(took)
