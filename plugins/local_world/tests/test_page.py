"""Open the live page in a real browser, and attack its port."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import re
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from makeway_app.loopback import MOST_PASSES
from makeway_local_world.commands.client import Daemon
from makeway_local_world.daemon.reading import MOST, answer

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


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\n",
        b"[]\n",
        b"5\n",
        b"{}\n",
        b'{"size": null}\n',
        b'{"size": 1e999}\n',
        b"[" * 60_000,
        b"\xff\n",
    ],
)
def test_whatever_says_what_a_job_has_printed_is_not_trusted(said: bytes) -> None:
    """It runs with the rights of its reader."""
    assert answer(said) == {"why": "it could not be read"}


def test_no_more_is_shown_than_the_end() -> None:
    found = answer(b'{"size": 3}\n' + b"\xff" * 2 * MOST)
    assert found == {"size": 3, "text": "\N{REPLACEMENT CHARACTER}" * MOST}


def _read(url: str, job: str, cookie: str) -> list[dict[str, Any]]:
    status, _, body = _asked(url, path=f"/v1/jobs/{job}/output", Cookie=cookie)
    assert status == 200, body
    return list(json.loads(body)["files"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")
def test_output_is_read_with_the_rights_of_its_reader(system: Site) -> None:
    """One's own is shown, whatever path it has; nothing that its reader may not read, and no pipe; others' never."""
    ann = pwd.getpwnam("daemon").pw_uid
    home = system.directory / "home"
    home.mkdir()
    os.chown(home, ann, -1)
    (home / "secret").write_text("root's")
    (home / "secret").chmod(0o600)
    cookie = _cookie(url := system.ask(ann, "post", "/v1/web", {})["url"])

    def printed(output: str, *command: str) -> list[dict[str, Any]]:
        body = {
            "command": command,
            "cwd": str(home),
            "output": output,
            "environment": {"PATH": "/usr/bin:/bin"},
        }
        job = str(system.ask(ann, "post", "/v1/jobs", body)["id"])
        system.until(lambda: system.ask(ann, "get", f"/v1/jobs/{job}").get("ended_at"))
        return _read(url, job, cookie)

    assert printed("log", "printf", "a\\nb")[0]["text"] == "a\nb"
    (home / "here").symlink_to(home / "secret")
    os.chown(home / "here", ann, -1, follow_symlinks=False)
    os.mkfifo(home / "pipe")
    os.chown(home / "pipe", ann, -1)
    swap = "ln -sfn secret %s; echo mine"
    assert printed("first", "sh", "-c", swap % "first") == [
        {"path": str(home / "first"), "why": "Permission denied"}
    ]
    assert printed("second", "sh", "-c", "ln -sfn pipe second")[0]["why"] == "it is no plain file"
    found = printed("long", "sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x")[0]
    assert (found["size"], found["text"]) == (100_000, "x" * (64 << 10))
    mine = system.submit("-o", str(home / "here"), "--hold", "--", "true")
    status, _, body = _asked(url, path=f"/v1/jobs/{mine}/output", Cookie=cookie)
    assert status == 409, "in private mode, others' paths are not told either"
    assert "belongs to root" in body


@pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")
def test_operators_are_told_where_output_of_others_is(crowded: Site) -> None:
    """The daemon opens it with nobody's rights but its owner's."""
    ann = pwd.getpwnam("daemon").pw_uid
    body = {"command": ["true"], "cwd": "/", "output": "/dev/null", "hold": True}
    job = str(crowded.ask(ann, "post", "/v1/jobs", body)["id"])
    cookie = _cookie(url := crowded.ask(0, "post", "/v1/web", {})["url"])
    (only,) = _read(url, job, cookie)
    assert only["path"] == "/dev/null"
    assert "the page opens files of your own jobs only" in only["why"]
    crowded.ask(ann, "post", "/v1/commands", {"verb": "cancel", "jobs": [job]})


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

    up.until(lambda: len(cells(low)) > 8, "the row of the job")
    assert cells(low)[2] == "<b>bold</b>"
    up.until(lambda: browser.execute_script("return document.getElementById('live').textContent") == "live")
    urgent = up.submit("-p", "urgent", "-n", "2", "--", "sleep", "600")
    up.until(
        lambda: len(cells(low)) > 8 and cells(low)[8] == f"here (suspended for {urgent})", "the victim's row"
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
    browser.refresh()  # what was suspended before is seen to have run, and then to be suspended
    up.until(lambda: browser.execute_script(drawn) == 3, "two pieces of the victim, one of the other")
    browser.execute_script(f"document.querySelector(\"tr[data-job='{low}']\").click()")
    said = "return document.getElementById('why').textContent"
    up.until(lambda: f"it makes way for job {urgent}" in browser.execute_script(said))
    buttons = "[...document.querySelectorAll(`tr[data-job='${arguments[0]}'] button`)]"
    click = f"{buttons}.find(e => e.textContent === 'suspend').click()"
    browser.execute_script(click, urgent)
    up.until(lambda: up.state_of(low) == "RUNNING", "what a button asked for")
    fill = "document.getElementById('submit').elements[arguments[0]].value = arguments[1]"
    given = {"command": "echo $HOME > seen", "cwd": str(up.directory), "partition": "urgent"}
    for name, value in given.items():
        browser.execute_script(fill, name, value)
    browser.execute_script("document.getElementById('submit').requestSubmit()")
    up.until((up.directory / "seen").exists, "what the form submitted")
    assert browser.execute_script("return document.getElementById('submitted').textContent").startswith(
        "submitted job"
    )
    array = up.submit("--hold", "-a", "0-3", "--", "true")
    folded = "[...document.querySelectorAll(`tr[data-job='${arguments[0]}_0'] td`)].map(e => e.textContent)"
    up.until(lambda: browser.execute_script(f"return {folded}", array)[:1] == [f"{array}_[0-3]"])
    press = "[...document.querySelectorAll(`tr[data-job='${arguments[0]}_0'] button`)]"
    browser.execute_script(f"{press}.find(e => e.textContent === 'release').click()", array)
    up.until(
        lambda: [each["held"] for each in up.jobs().values() if each["array"] == array] == [False] * 4,
        "a button reaches all tasks of the line",
    )
    severe = [
        each
        for each in browser.get_log("browser")
        if each["level"] == "SEVERE" and "favicon" not in each["message"]
    ]
    assert not severe


@pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")
def test_the_page_has_what_was_before_it_and_only_what_its_reader_may_do(crowded: Site, browser: Any) -> None:
    """A job that ended is listed and drawn; jobs of others, and what an operator has done, have no buttons."""
    ann = pwd.getpwnam("daemon").pw_uid
    home = crowded.directory / "ann"
    home.mkdir()
    os.chown(home, ann, -1)
    body = {
        "command": ["echo", "hello"],
        "cwd": str(home),
        "output": "log",
        "environment": {"PATH": "/usr/bin:/bin"},
    }
    over, mine = (
        str(crowded.ask(ann, "post", "/v1/jobs", each)["id"]) for each in (body, {**body, "hold": True})
    )
    theirs = crowded.submit("--hold", "--", "true")
    kept = str(crowded.ask(ann, "post", "/v1/jobs", {**body, "hold": True})["id"])
    crowded.ok("hold", kept)
    crowded.until(lambda: crowded.ask(ann, "get", f"/v1/jobs/{over}").get("ended_at"))
    browser.get(crowded.ask(ann, "post", "/v1/web", {"control": True})["url"])

    def shown(script: str, *values: str) -> Any:
        return browser.execute_script(f"return {script}", *values)

    cells = (
        "[...document.querySelectorAll(`#ended tr[data-job='${arguments[0]}'] td`)].map(e => e.textContent)"
    )
    row = crowded.until(lambda: shown(cells, over), "the row of what has ended")
    assert row[3:6] == ["daemon", "COMPLETED", "0:0"]
    assert re.fullmatch(r"([01][0-9]|2[0-3])(:[0-5][0-9]){2}", row[6]), "24 hours"
    drawn = "Number(document.getElementById('gantt').dataset.drawn)"
    crowded.until(lambda: shown(drawn) >= 1, "where it ran")
    told = "document.getElementById('events').textContent"
    crowded.until(lambda: f"job {over}: completed" in shown(told), "what happened before")
    buttons = "[...document.querySelectorAll(`#queue tr[data-job='${arguments[0]}'] button`)].map(e => e.textContent)"
    assert shown(buttons, mine) == ["release", "cancel"]
    assert shown(buttons, kept) == ["cancel"]
    assert shown(buttons, theirs) == []
    browser.execute_script(f"document.querySelector(\"#ended tr[data-job='{over}']\").click()")
    text = "document.getElementById('output').textContent"
    crowded.until(lambda: "hello" in shown(text), "what it printed")
    crowded.ok("cancel", mine, theirs, kept)


NVML = """
NVMLError = OSError
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index): return index
class Memory: total, used = 24 << 30, 12 << 20
def nvmlDeviceGetMemoryInfo(handle): return Memory
def nvmlDeviceGetUUID(handle): return f"GPU-{handle}"
def nvmlDeviceGetName(handle): return "Stand-in"
def nvmlDeviceGetComputeRunningProcesses(handle): return []
def nvmlDeviceGetGraphicsRunningProcesses(handle): return []
"""


def test_the_page_and_the_history_show_which_job_has_which_gpu(site: Site, browser: Any) -> None:
    """With what stands in for NVIDIA's library; of a job that has ended it is known as well."""
    (site.directory / "pynvml.py").write_text(NVML)
    site.environ["PYTHONPATH"] = str(site.directory)
    site.config.write_text(site.config.read_text().replace("cpus = 2", "cpus = 2, gres = { gpu = 2 }", 1))
    site.up()
    job = site.submit("--gpus", "2", "--", "sleep", "600")
    site.until(lambda: site.state_of(job) == "RUNNING")
    browser.get(_web(site))
    shown = "return [...document.querySelectorAll('#gpus li')].map(e => e.textContent)"
    owner = f"job {job} of {pwd.getpwuid(os.geteuid()).pw_name}"
    lines = [f"GPU {at} Stand-in0.0 of 24.0 GiB{owner}" for at in range(2)]
    site.until(lambda: browser.execute_script(shown) == lines, "both GPUs")
    site.ok("cancel", job)
    site.until(lambda: "free" in browser.execute_script(shown)[0], "a free GPU")
    assert site.ok("history").splitlines()[-1].endswith("2 (0,1)")
    assert "it had GPU 0 (GPU-0), GPU 1 (GPU-1)" in site.ok("why", job).replace(" and ", ", ")
