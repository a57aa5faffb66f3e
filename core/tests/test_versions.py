"""Versions that distributions ask for."""

from __future__ import annotations

import pytest

from makeway.registry.versions import fits, wanted_by


def test_a_tenth_minor_release_is_above_the_second() -> None:
    """Parts are numbers, and zeros at the end say nothing."""
    assert fits("0.10", ">0.2")
    assert not fits("0.1.0", ">0.1")
    assert fits("0.1", "==0.1.0")


def test_clauses_that_cannot_be_read() -> None:
    """They are an error of their author."""
    with pytest.raises(ValueError, match="soon"):
        fits("0.1", "soon")


@pytest.mark.parametrize(
    ("requires", "wanted"),
    [
        ((), ""),
        (("attrs>=23", "makeway-core<0.2,>=0.1"), ">=0.1,<0.2"),
        (("makeway-core>=0.1", "makeway<0.3"), ">=0.1,<0.3"),
        (("Makeway_Core >= 0.1, < 0.2",), ">=0.1,<0.2"),
        (("makeway (>=0.1)",), ">=0.1"),
        (("makeway",), ""),
        (("makeway-slurm>=0.1", "makeway.slurm>=3"), ""),
        (('makeway>=0.4; extra == "all"', 'makeway-core>=0.1; python_version >= "3"'), ">=0.1"),
        (("makeway>>1",), ""),
        (("makeway[all]>=0.2",), ">=0.2"),
    ],
)
def test_what_a_distribution_asks_for(requires: tuple[str, ...], wanted: str) -> None:
    """Of the core or the command; extras, other platforms and other packages do not count."""
    assert wanted_by(requires) == wanted
