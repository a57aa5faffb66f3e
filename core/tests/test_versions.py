"""Versions that distributions ask for: the plain ones are compared by hand, and as ``packaging`` does."""

from __future__ import annotations

import itertools

import pytest

from makeway.registry.versions import clauses_of, fits, fits_by_packaging, wanted_by

VERSIONS = ("0.1", "0.1.0", "0.1.1", "0.2", "0.10", "1", "1.0.0", "0.2.0.dev1", "1.0rc1")
CLAUSES = (
    "<0.2,>=0.1",
    ">=0.1",
    "==0.1",
    "!=0.1.0",
    "<=0.10",
    ">0.1",
    "<1",
    "~=0.1",
    "==0.1.*",
    ">=0.1,!=0.2,<1",
)


@pytest.mark.parametrize(("version", "clauses"), list(itertools.product(VERSIONS, CLAUSES)))
def test_versions_fit_as_packaging_says(version: str, clauses: str) -> None:
    """Whatever is not plain goes there."""
    assert fits(version, clauses) is fits_by_packaging(version, clauses)


def test_a_tenth_minor_release_is_above_the_second() -> None:
    """Parts are numbers, and zeros at the end say nothing."""
    assert fits("0.10", ">0.2")
    assert not fits("0.1.0", ">0.1")
    assert fits("0.1", "==0.1.0")


def test_clauses_that_cannot_be_read() -> None:
    """They are an error of whoever wrote them."""
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


@pytest.mark.parametrize("text", ["makeway-core<0.2,>=0.1", "makeway>=0.1", "makeway", "makeway-core==0.1.0"])
def test_plain_requirements_are_read_as_packaging_does(text: str) -> None:
    """In whatever order it lists them."""
    assert sorted(wanted_by((text,)).split(",")) == sorted(clauses_of(text) or [""])
