"""Advice every week: only what changed is told."""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Tune = Callable[..., Result]
GIVEN = (
    "--only",
    "batch PreemptMode",
    "--trials",
    4,
    "--minimise",
    "lost-hours",
    "--keep",
    "wait[urgent].max<=15min",
)


def _week(log: Path, name: str, days: int) -> Path:
    """Return the same log so many days later; jobs have other numbers."""
    rows = log.read_text().splitlines()
    moved = [rows[0]]
    for row in rows[1:]:
        for day in (3, 2):
            row = row.replace(f"2025-06-0{day}T", f"2025-06-{day + days:02}T")
        moved.append(f"{days}{row}")
    path = log.with_name(name)
    path.write_text("\n".join([*rows, *moved[1:]]) + "\n")
    return path


def test_only_what_changed_is_told(tune: Tune, conf: Path, log: Path) -> None:
    """First the advice; then nothing, though the log goes on; then that it is in force, and keeps its promise."""
    last, news = conf.with_name("last.json"), conf.with_name("news")
    since = ("--since", last, "--mail", news)
    first = tune(conf, log, *GIVEN, *since)
    assert first.exit_code == 0, first.output
    mail = email.message_from_string(news.read_text(), policy=email.policy.default)
    assert "=3D" not in news.read_text()  # the difference can be taken from the file
    assert str(mail["Subject"]).startswith("makeway tune, slurm.conf: recommended: B, for lost-hours")
    assert "PreemptMode=OFF  # everybody" in mail.get_content()

    again = tune(conf, _week(log, "second.sacct", 7), *GIVEN, *since)
    assert again.exit_code == 0, again.output
    assert "48 jobs over" in again.output
    assert "nothing has changed since the last advice" in again.output
    assert news.read_text() == ""

    text = conf.read_text()
    conf.write_text(
        text.replace("MaxTime=INFINITE  # everybody", "MaxTime=INFINITE PreemptMode=OFF  # everybody")
    )
    done = tune(conf, _week(log, "third.sacct", 14), *GIVEN, *since)
    assert done.exit_code == 0, done.output
    content = email.message_from_string(news.read_text(), policy=email.policy.default).get_content()
    assert content.strip() == "what was recommended is in force: PartitionName=batch PreemptMode -> OFF"

    conf.write_text(text)
    back = tune(conf, _week(log, "fourth.sacct", 21), *GIVEN, *since)
    assert back.exit_code == 0, back.output
    # 40 minutes on 4 CPUs, 12 times a day: 32 core-hours, and passes are a minute apart; none were told to be lost.
    assert re.search(r"lost-hours was 3[23]\.\d; 0\.0 to 0\.0 was told", back.output)
    assert "recommended: B" in back.output


def test_what_cannot_be_compared_is_told(tune: Tune, conf: Path, log: Path) -> None:
    """A file of something else, no new job, and a mail without a last run."""
    last = conf.with_name("last.json")
    last.write_text("{}")
    assert "not what `makeway tune --since` leaves there" in tune(conf, log, "--since", last).output
    assert "name its file with --since" in tune(conf, log, "--mail", conf.with_name("news")).output
    last.unlink()
    assert tune(conf, log, *GIVEN, "--since", last).exit_code == 0
    result = tune(conf, log, *GIVEN, "--since", last)
    assert result.exit_code == 2
    assert "no job was submitted since the last advice" in result.output
