"""Jobs that readers make in two steps."""

from __future__ import annotations

import pickle

import attrs
import pytest

from makeway.model import JobSpec, SpecDraft, submitted


def test_a_draft_becomes_the_job() -> None:
    """It is the same object, equals one that was made at once, and nothing sets its fields any more."""
    draft = SpecDraft(id="7", tasks=2)
    draft.user = "ann"
    spec = submitted(draft)
    assert spec is draft
    assert spec == JobSpec(id="7", tasks=2, user="ann")
    assert repr(spec) == repr(JobSpec(id="7", tasks=2, user="ann"))
    assert spec.cpus == 2
    assert pickle.loads(pickle.dumps(spec)) == spec
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        spec.user = "bob"  # type: ignore[misc]


def test_both_have_the_same_fields() -> None:
    """With the same defaults, by keyword alone."""
    assert [(each.name, each.default, each.kw_only) for each in attrs.fields(SpecDraft)] == [
        (each.name, each.default, each.kw_only) for each in attrs.fields(JobSpec)
    ]
    with pytest.raises(TypeError, match="positional"):
        JobSpec("7")  # type: ignore[call-arg]
