"""How often the installed distributions are looked at."""

from __future__ import annotations

import gc
from importlib import metadata
from typing import Any

import attrs
import pytest

from makeway import collector, vendors
from makeway.entry_points import one_look, points
from makeway.errors import PluginError
from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway.registry import finding
from makeway.registry.fitting import dialects


@pytest.mark.looks_anew
def test_one_look_for_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """None where nothing asks, one inside, however nested; outside, one for each question."""
    looks: list[dict[str, Any]] = []
    real = metadata.entry_points

    def counted(**asked: Any) -> Any:
        looks.append(asked)
        return real(**asked)

    monkeypatch.setattr(metadata, "entry_points", counted)
    with one_look():
        assert not looks
        first = set(points("makeway"))
        with one_look():
            points("makeway.vendors")
        points("makeway", name="nobody")
        assert looks == [{}]
    assert set(points("makeway")) == first
    points("makeway", name="nobody")
    assert looks == [{}, {"group": "makeway"}, {"group": "makeway"}]


def test_a_pause_of_the_collector_ends() -> None:
    """Within another one, only with that."""
    assert gc.isenabled()
    with collector.paused():
        with collector.paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_plugin_that_lacks_only_its_kind_is_the_nearest() -> None:
    """An entry point ``nearly_done`` where the configuration names ``preempt/nearly_done``."""
    installed = ["nearly_done", "preempt/none", "preempt/qos"]
    assert finding._nearest("preempt/nearly_done", installed) == "; did you mean 'nearly_done'?"
    assert finding._nearest("preempt/qso", installed) == "; did you mean 'preempt/qos'?"


@attrs.define
class Unhashable:
    """A plugin that compares by its values."""

    @hookimpl
    def makeway_dialect(self) -> Dialect:
        """Read nothing."""
        return Dialect()


def test_a_plugin_that_cannot_be_hashed_is_asked() -> None:
    """Another one of the same values is another plugin."""
    one, other = Unhashable(), Unhashable()
    (first,), (again,), (second,) = (dialects("x/y", each) for each in (one, one, other))
    assert first is again
    assert first is not second


def test_distributions_share_what_they_say_of_a_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one leaves out, the other says; what both say has to be the same."""
    one = vendors.Vendor(name="acme", title="Acme", rules={"odd": "jobs start on odd days"})
    other = vendors.Vendor(name="acme", title="Acme", formats=("acct",))
    parts = [metadata.EntryPoint("acme", f"a{at}:VENDOR", vendors.GROUP) for at in range(2)]
    monkeypatch.setattr(vendors, "points", lambda group: parts)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda point: (one, other)[parts.index(point)])
    (joined,) = vendors.vendors.__wrapped__()
    assert joined == attrs.evolve(one, formats=("acct",))
    other = attrs.evolve(other, title="Acme 2")
    with pytest.raises(PluginError, match="vendor 'acme': two distributions state its title; allowed: one"):
        vendors.vendors.__wrapped__()
