"""Records to make pages of, and a browser to open them in."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

ROOT = Path(__file__).parents[4]
Make = Callable[..., Path]
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def made(*given: object) -> None:
    """Run makeway; it has to succeed."""
    done = CliRunner().invoke(cli, [str(each) for each in given])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """What builds records by hand, and runs makeway."""
    return SimpleNamespace(interval=interval, job=job, made=made, record=record)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where records and pages lie."""
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="session")
def seed(folder: Path) -> Path:
    """Return the page of the six jobs of Slurm's page on preemption."""
    made("replay", ROOT / "examples/seed/cluster.toml", "--report", folder / "seed.html")
    return folder / "seed.html"


@pytest.fixture(scope="session")
def kth(folder: Path) -> Path:
    """Return the page of 1,500 jobs under two policies."""
    kth, suspend = ROOT / "examples/kth/cluster.toml", ROOT / "examples/kth/suspend.toml"
    jobs = ROOT / "examples/kth/kth-sp2-1500.swf.gz"
    for config, name in ((kth, "requeue"), (suspend, "suspend")):
        made("replay", config, jobs, "--json", folder / f"{name}.json")
    made("report", folder / "requeue.json", folder / "suspend.json", "-o", folder / "kth.html")
    return folder / "kth.html"


def interval(
    state: str, start: float, end: float, nodes: str, cpus: Mapping[str, str], restart: int = 0
) -> dict[str, Any]:
    """Return an interval as records have it."""
    return {
        "state": state,
        "start": start,
        "end": end,
        "restart": restart,
        "nodes": nodes,
        "cpus": dict(cpus),
    }


def job(
    user: str = "ada", submit: float = 0.0, intervals: Sequence[Mapping[str, Any]] = (), **more: Any
) -> dict[str, Any]:
    """Return a job as records have it."""
    return {
        "name": "",
        "partition": "low",
        "user": user,
        "submit": submit,
        "final_state": "COMPLETED",
        "reason": "",
        "restarts": 0,
        "core_seconds_lost": 0.0,
        "intervals": list(intervals),
        "requested": {"nodes": 1, "cpus": 4, "time_limit": None},
        "displaces_as": "low",
        "waits": [],
        "decisions": [],
        **more,
    }


def record(
    jobs: Mapping[str, Any], preemptions: Sequence[Any] = (), nodes: str = "n[1-4]", cpus: int = 4
) -> dict[str, Any]:
    """Return a record of these jobs."""
    metrics = dict.fromkeys(
        "mean_wait median_wait max_wait mean_bounded_slowdown utilisation makespan core_seconds_lost".split(),
        0.0,
    )
    counts = dict.fromkeys("preemptions jobs_preempted rows_unusable jobs_unfinished".split(), 0)
    policy: dict[str, Any] = {
        "select": "select/linear",
        "preempt": "preempt/none",
        "preempt_mode": [],
        "gang": None,
        "protect": [],
    }
    return {
        "record": {
            "version": 1,
            "makeway": "0",
            "label": "made up",
            "workload": "made up",
            "epoch": None,
            "policy": {**policy, "displaces_by": "partition", "scheduler": "easy"},
        },
        "cluster": {
            "name": "c",
            "cores": 4 * cpus,
            "nodes": [{"names": nodes, "count": 4, "cpus": cpus, "memory_mb": 1}],
            "partitions": [{"name": "low", "priority_tier": 1, "nodes": nodes}],
            "qos": [],
        },
        "jobs": dict(jobs),
        "preemptions": list(preemptions),
        "metrics": {"jobs": len(jobs), **metrics, **counts},
    }


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[[Mapping[str, Any]], Path]:
    """Make the page of a made-up record."""

    def make(found: Mapping[str, Any]) -> Path:
        (tmp_path / "made.json").write_text(json.dumps(found))
        made("report", tmp_path / "made.json", "-o", tmp_path / "made.html")
        return tmp_path / "made.html"

    return make


# ------------------------------------------------------------------------------------ the browser
class Page:
    """A page that is open in a browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, fragment: str = "") -> Page:
        """Open a file and wait until it is drawn."""
        self.driver.get("about:blank")
        self.driver.get_log("performance")
        self.driver.get_log("browser")
        self.driver.get(path.as_uri() + (f"#{fragment}" if fragment else ""))
        self.until("document.documentElement.dataset.ready !== undefined")
        assert self.run("return document.documentElement.dataset.ready") == "true", self.complaints()
        return self

    def run(self, script: str, *given: object) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(script, *given)

    def until(self, condition: str, seconds: float = 300) -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + seconds
        while not self.run(f"return {condition}"):
            assert time.monotonic() < end, f"not within {seconds} s: {condition}; {self.complaints()}"
            time.sleep(0.03)

    def state(self) -> dict[str, Any]:
        """Return what is shown, once it has been drawn."""
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        found: dict[str, Any] = self.run("return makeway.state()")
        return found

    def press(self, *keys: str) -> dict[str, Any]:
        """Press keys where the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)
        return self.state()

    def click(self, x: float, y: float) -> dict[str, Any]:
        """Click at a place of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, x, y)
        return self.state()

    def drag(self, x: float, y: float, to_x: float, to_y: float) -> dict[str, Any]:
        """Drag from one place of the window to another."""
        self._mouse("mousePressed", x, y)
        for step in range(1, 5):
            self._mouse("mouseMoved", x + (to_x - x) * step / 4, y + (to_y - y) * step / 4)
        self._mouse("mouseReleased", to_x, to_y)
        return self.state()

    def _mouse(self, kind: str, x: float, y: float) -> None:
        down = kind != "mouseReleased"
        event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1, "buttons": int(down)}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    def text(self, id_: str) -> str:
        """Return the text of an element."""
        found: str = self.run("return document.getElementById(arguments[0]).innerText", id_)
        return found

    def box(self, id_: str) -> dict[str, float]:
        """Return where an element is, scrolled into view."""
        self.run("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", id_)
        found: dict[str, float] = self.run("return makeway.box(arguments[0])", id_)
        return found

    def size(self, width: int, height: int) -> None:
        """Let the window be so large; the option of the command line counts the frame."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, name: str) -> None:
        """Prefer light or dark."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def complaints(self) -> list[str]:
        """Return what the browser's console says."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses asked for since the page was opened, the page's own left out."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        own = self.driver.current_url.partition("#")[0]
        return [address for address in found if address.partition("#")[0] not in (own, "about:blank")]


@pytest.fixture(scope="session")
def page() -> Iterator[Page]:
    """A window 1400 by 1000; skipped, and said so, where there is no browser."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if BROWSER is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(300)
    opened = Page(driver)
    opened.size(1400, 1000)
    try:
        yield opened
    finally:
        driver.quit()
