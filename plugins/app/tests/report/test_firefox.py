"""The page in Firefox: it is drawn, moves and answers as in Chromium; no driver is needed for its own protocol."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
PATIENCE = 120.0
"""Seconds for the browser to start, and for an answer, on a busy machine."""


class Firefox:
    """A tab, driven by WebDriver BiDi."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._number = 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.ask("session.new", {"capabilities": {}})
        self.ask("session.subscribe", {"events": ["log.entryAdded", "network.beforeRequestSent"]})
        self.tab = self.ask("browsingContext.getTree", {})["contexts"][0]["context"]

    def ask(self, method: str, parameters: dict[str, Any]) -> Any:
        """Send a command and return its result; what happens meanwhile is noted."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            found = json.loads(self._socket.recv())
            if found.get("id") == self._number:
                assert found["type"] == "success", found
                return found["result"]
            if found.get("method") == "log.entryAdded" and found["params"]["level"] in ("warn", "error"):
                self.errors.append(str(found["params"]["text"]))
            if found.get("method") == "network.beforeRequestSent":
                self.requests.append(found["params"]["request"]["url"])

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file and wait until it is drawn."""
        self.ask("browsingContext.navigate", {"context": self.tab, "url": "about:blank", "wait": "complete"})
        address = path.as_uri() + (f"#{fragment}" if fragment else "")
        self.ask("browsingContext.navigate", {"context": self.tab, "url": address, "wait": "complete"})
        ready = self.until("document.documentElement.dataset.ready ?? ''")
        assert ready == "true", self.errors

    def value(self, expression: str) -> Any:
        """Return what an expression is in the page, by way of JSON."""
        target = {"context": self.tab}
        given = {
            "expression": f"Promise.resolve({expression}).then(found => JSON.stringify(found))",
            "target": target,
            "awaitPromise": True,
        }
        found = self.ask("script.evaluate", given)
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def until(self, expression: str) -> Any:
        """Wait until an expression is true in the page, and return it."""
        end = time.monotonic() + PATIENCE
        while not (found := self.value(expression)):
            assert time.monotonic() < end, f"not within {PATIENCE} s: {expression}; {self.errors}"
            time.sleep(0.05)
        return found

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keys", "actions": actions}
        self.ask("input.performActions", {"context": self.tab, "actions": [source]})

    def state(self) -> dict[str, Any]:
        """Return what is shown, once it has been drawn."""
        self.value(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))"
        )
        found: dict[str, Any] = self.value("makeway.state()")
        return found


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """A tab of a headless Firefox; skipped, and said so, where there is none."""
    websocket = pytest.importorskip(
        "websocket", reason="websocket-client, which selenium brings, is not installed"
    )
    if FIREFOX is None:
        pytest.skip("firefox-esr is not installed")
    home = tmp_path_factory.mktemp("firefox")
    said = home / "said"
    command = [FIREFOX, "--headless", "--no-remote", "--profile", str(home), "--remote-debugging-port", "0"]
    with said.open("wb") as log:
        process = subprocess.Popen(
            [*command, "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={
                **os.environ,
                "HOME": str(home),
                "MOZ_HEADLESS_WIDTH": "1400",
                "MOZ_HEADLESS_HEIGHT": "1000",
            },
        )
    try:
        end = time.monotonic() + PATIENCE
        while (found := re.search(r"WebDriver BiDi listening on (ws://\S+)", said.read_text())) is None:
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.1)
        address = f"{found[1]}/session"
        socket = websocket.create_connection(address, timeout=PATIENCE, suppress_origin=True)
        try:
            yield Firefox(socket)
        finally:
            socket.close()
    finally:
        process.kill()
        process.wait(timeout=PATIENCE)


def test_six_jobs(firefox: Firefox, seed: Path) -> None:
    """Twelve pieces and three arrows, as in the other browser; nothing is fetched, nothing complained of."""
    firefox.open(seed)
    state = firefox.state()
    assert (state["jobs"], state["drawn"], state["pieces"], state["arrows"]) == (6, "pieces", 12, 3)
    assert [address for address in firefox.requests if not address.startswith(("file:", "about:"))] == []
    assert firefox.errors == []


@pytest.mark.slow
def test_keys_move_the_view_and_the_link_restores_it(firefox: Firefox, kth: Path) -> None:
    """Plus shows a part; the address then shows the same part again."""
    firefox.open(kth)
    whole = firefox.state()
    firefox.press("+", "+")
    part = firefox.state()
    assert part["pieces"] < whole["pieces"]
    fragment = str(firefox.until("location.hash")).removeprefix("#")
    firefox.open(kth)
    assert firefox.state()["pieces"] == whole["pieces"]
    firefox.open(kth, fragment)
    assert firefox.state()["pieces"] == part["pieces"]
    assert firefox.errors == []


@pytest.mark.slow
def test_the_canvas_is_painted(firefox: Firefox, seed: Path) -> None:
    """More than one colour on the chart."""
    firefox.open(seed)
    colours = firefox.value(
        "(() => { const c = document.querySelector('canvas');"
        " const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();"
        " for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 4).join()); return seen.size; })()"
    )
    assert colours > 3
