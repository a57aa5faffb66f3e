"""Open the live page in a real browser, and attack its port."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from makeway_local_world.commands.client import Daemon
from makeway_local_world.daemon.web import MOST_PASSES

Site = Any
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def _asked(
    url: str, method: str = "GET", path: str | None = None, **headers: str
) -> tuple[int, dict[str, str], str]:
    """Return status, headers and body of one request to the page's port."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    try:
        target = path if path is not None else f"{parts.path}?{parts.query}"
        connection.request(
            method, target, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def _cookie(url: str) -> str:
    status, headers, _ = _asked(url)
    assert status == 303
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]
    return headers["Set-Cookie"].partition(";")[0]


def _web(site: Site, *options: str) -> str:
    return str(json.loads(site.ok("web", "--no-browser", "--json", *options))["url"])


def test_only_the_browser_with_the_token_gets_in_and_may_only_look(up: Site) -> None:
    """No cookie, a used token, a forged Host or Origin, and changes are all refused."""
    url = _web(up)
    assert urlsplit(url).hostname == "127.0.0.1"
    port = urlsplit(url).port
    cookie = _cookie(url)
    assert _asked(url)[0] == 401, "the token works once"
    assert _asked(url, path="/v1/jobs")[0] == 401
    assert _asked(url, path="/v1/jobs", Cookie="makeway=guess")[0] == 401
    status, headers, _ = _asked(url, path="/", Cookie=cookie)
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert _asked(url, path="/v1/jobs", Cookie=cookie)[0] == 200
    assert _asked(url, path="/v1/jobs", Cookie=cookie, Host="evil.example")[0] == 403
    assert _asked(url, path="/v1/jobs", Cookie=cookie, Origin="http://evil.example")[0] == 403
    assert _asked(url, path="/v1/jobs", Cookie=cookie, Sec_Fetch_Site="cross-site")[0] == 403
    assert _asked(url, "POST", "/v1/down", Cookie=cookie, Origin=f"http://127.0.0.1:{port}")[0] == 403
    assert _asked(url, "POST", "/v1/web", Cookie=cookie, Origin=f"http://127.0.0.1:{port}")[0] == 403
    assert up.run("queue").exit_code == 0


def test_with_control_changes_need_our_own_origin(up: Site) -> None:
    job = up.submit("--hold", "--", "true")
    url = _web(up, "--control")
    cookie, own = _cookie(url), f"http://127.0.0.1:{urlsplit(url).port}"
    path = "/v1/commands"
    assert _asked(url, "POST", path, Cookie=cookie)[0] == 403
    assert _asked(url, "POST", path, Cookie=cookie, Origin="http://localhost.evil.example")[0] == 403
    assert up.jobs()[job]["held"]
    assert _asked(url, "POST", path, Cookie=cookie, Origin=own)[0] == 200


def test_a_user_has_so_many_addresses_and_browsers(up: Site) -> None:
    """The oldest goes where another comes, so nobody fills the daemon's memory with them."""
    daemon = Daemon(up.state / "socket")
    urls = [str(daemon.post("/v1/web", {})["url"]) for _ in range(MOST_PASSES + 1)]
    assert _asked(urls[0])[0] == 401
    cookies = [_cookie(url) for url in urls[1:]]
    assert _asked(urls[0], path="/v1/jobs", Cookie=cookies[0])[0] == 200
    cookies.append(_cookie(str(daemon.post("/v1/web", {})["url"])))
    assert _asked(urls[0], path="/v1/jobs", Cookie=cookies[0])[0] == 401
    assert _asked(urls[0], path="/v1/jobs", Cookie=cookies[1])[0] == 200


@pytest.fixture
def browser() -> Iterator[Any]:
    """Return a browser without a window."""
    if not (BROWSER and DRIVER):
        pytest.skip("needs chromium and chromedriver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def test_the_page_shows_who_makes_way_as_it_happens(up: Site, browser: Any) -> None:
    """The victim's row, the picture, the events and why, without a reload; names are data, never markup."""
    low = up.submit("-n", "2", "-J", "<b>bold</b>", "--", "sleep", "600")
    up.until(lambda: up.state_of(low) == "RUNNING")
    browser.get(_web(up, "--control"))

    def cells(job: str) -> list[str]:
        script = "return [...document.querySelectorAll(`tr[data-job='${arguments[0]}'] td`)].map(e => e.textContent)"
        return list(browser.execute_script(script, job))

    up.until(lambda: len(cells(low)) > 7, "the row of the job")
    assert cells(low)[2] == "<b>bold</b>"
    up.until(lambda: browser.execute_script("return document.getElementById('live').textContent") == "live")
    urgent = up.submit("-p", "urgent", "-n", "2", "--", "sleep", "600")
    up.until(
        lambda: len(cells(low)) > 7 and cells(low)[7] == f"here (suspend for {urgent})", "the victim's row"
    )
    told = "return document.getElementById('events').textContent"
    up.until(lambda: f"job {low} makes way for {urgent}: suspend" in browser.execute_script(told))
    drawn = "return Number(document.getElementById('gantt').dataset.drawn)"
    up.until(lambda: browser.execute_script(drawn) >= 2)
    arrows = "return Number(document.getElementById('gantt').dataset.arrows)"
    up.until(lambda: browser.execute_script(arrows) == 1, "an arrow to the victim")
    browser.find_element("id", "zoomin").click()
    shown = "return document.getElementById('spanshown').textContent"
    up.until(lambda: browser.execute_script(shown).endswith("0:02:30"), "half of five minutes, up to now")
    browser.refresh()  # who was suspended before is seen to have run, and then to be suspended
    up.until(lambda: browser.execute_script(drawn) == 3, "two pieces of the victim, one of the other")
    browser.execute_script(f"document.querySelector(\"tr[data-job='{low}']\").click()")
    said = "return document.getElementById('why').textContent"
    up.until(lambda: f"it makes way for job {urgent}" in browser.execute_script(said))
    buttons = "[...document.querySelectorAll(`tr[data-job='${arguments[0]}'] button`)]"
    click = f"{buttons}.find(e => e.textContent === 'suspend').click()"
    browser.execute_script(click, urgent)
    up.until(lambda: up.state_of(low) == "RUNNING", "what a button asked for")
    severe = [
        each
        for each in browser.get_log("browser")
        if each["level"] == "SEVERE" and "favicon" not in each["message"]
    ]
    assert not severe
