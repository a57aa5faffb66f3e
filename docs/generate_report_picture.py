"""Make docs/_static/report.png: the page of 1,500 jobs under two policies, as a browser shows it.

Run ``python docs/generate_report_picture.py``; it needs chromium, chromedriver and selenium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from click.testing import CliRunner
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

from makeway_app.cli import cli

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "_static" / "report.png"
WIDTH, HEIGHT = 1400, 1200


def make_page(page: Path) -> None:
    """Replay the example under both of its policies."""
    kth = ROOT / "examples" / "kth"
    records = []
    for label, config in (("requeue", "cluster.toml"), ("suspend", "suspend.toml")):
        records.append(page.with_name(f"{label}.json"))
        run("replay", kth / config, kth / "kth-sp2-1500.swf.gz", "--json", records[-1])
    run("report", *records, "--title", "Three weeks under two policies", "-o", page)


def run(*given: object) -> None:
    """Run makeway; it has to succeed."""
    done = CliRunner().invoke(cli, [str(each) for each in given])
    if done.exit_code:
        raise SystemExit(done.output)


def take_picture(page: Path) -> None:
    """Open the page at a job that displaces three others, and save what the window shows."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get(f"{page.as_uri()}#from=0&to=110000&job=71")
        WebDriverWait(driver, 60).until(
            lambda opened: opened.execute_script("return document.documentElement.dataset.ready") == "true"
        )
        driver.execute_script("document.activeElement.blur()")
        driver.save_screenshot(str(PICTURE))
    finally:
        driver.quit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make_page(Path(folder) / "page.html")
        take_picture(Path(folder) / "page.html")
