"""Names of a site are data: tables print them as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli


@pytest.mark.parametrize("name", ["p:smile:", "p[bold]", "[red]p[/red]"])
def test_names_are_neither_emoji_nor_colours(tmp_path: Path, name: str) -> None:
    """Tables stay as wide as the names in them."""
    config = tmp_path / "c.toml"
    config.write_text(
        f'[[node]]\nname = "n1"\n[[partition]]\nname = "{name}"\ndefault = true\n'
        "[[job]]\nid = 1\nsubmit = 0\nrun_time = 10\n"
    )
    done = CliRunner().invoke(cli, ["replay", str(config)])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].startswith(f"{name}  ")
