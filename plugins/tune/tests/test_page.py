"""The page: one file without scripts, whose marks lead to what they stand for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from click.testing import Result


def test_the_page(tune: Callable[..., Result], conf: Path, log: Path) -> None:
    """Each candidate has a mark that links to its part; the change is there, and names are data."""
    log.write_text(log.read_text().replace("|ann|", "|<b>ann|"))
    target = conf.parent / "tune.html"
    given = ("--only", "batch PreemptMode", "--trials", 4, "--minimise", "lost-hours", "--report", target)
    result = tune(conf, log, *given)
    assert result.exit_code == 0, result.output
    text = target.read_text()
    assert "<script" not in text
    assert "default-src 'none'" in text
    assert "<b>ann" not in text
    assert "&lt;b&gt;ann" in text
    assert "MaxTime=INFINITE PreemptMode=OFF  # everybody" in text
    marks = set(re.findall(r'<a href="#(\w+)" class="', text))
    assert {"A", "B"} <= marks
    assert marks == set(re.findall(r'<section class="one" id="(\w+)"', text))
    assert "recommended" in re.search(r'id="verdict">([^<]*)', text)[1]  # type: ignore[index]
