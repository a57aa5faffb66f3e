"""FAIRSHARE: shares as the file has them, and the dynamic priority, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from makeway_lsf_queue.fairshare import Account, Fairness
from makeway_lsf_queue.groups import Groups
from makeway_lsf_queue.shares import Shares, assigned
from makeway_lsf_queue.values import WrongValueError

SHARES = Shares(assigned=assigned("USER_SHARES[[ann, 10] [staff, 6] [guests@, 2] [default, 1]]"))
GROUPS = {"staff": ("bob", "cid"), "guests": ("dan", "eve")}


def fairness() -> tuple[Fairness, Any]:
    """Return a book with no user in it, and the queue that it is of."""
    made = object.__new__(Fairness)
    made.groups = Groups(cast(Any, None), GROUPS, {})
    made.accounts = {}
    return made, SimpleNamespace(name="q", shares=SHARES)


def job(ran: float) -> Any:
    """Return a job that has run that many seconds."""
    return SimpleNamespace(ran_until=lambda now: ran)


@pytest.mark.parametrize(
    ("user", "account", "shares"),
    [("ann", "ann", 10), ("bob", "staff", 6), ("cid", "staff", 6), ("eve", "eve", 2), ("zoe", "zoe", 1)],
)
def test_whose_shares_a_user_has(user: str, account: str, shares: float) -> None:
    """One's own; those of the group together; with ``@`` each as many as the group; else the default."""
    made, queue = fairness()
    assert made.share_of(queue, user) == (account, shares)


def test_the_dynamic_priority() -> None:
    """Ann's two jobs have run 1 h on 4 slots and 30 min on 1; ended ones used 2 h, five hours ago (worth a tenth)."""
    made, queue = fairness()
    assert made.priority(queue, "ann", 18000.0) == pytest.approx(10 / 3)
    made.accounts["q", "ann"] = Account({"1": (job(3600), 4), "2": (job(1800), 1)}, 2.0, 0.0)
    cpu = 0.2 + 4 * 0.80137 + 0.44670  # 5/ln 10 * (1 - 0.1^(1/5)), and of (0.5/5)
    assert made.priority(queue, "ann", 18000.0) == pytest.approx(
        10 / (0.7 * cpu + 0.7 * 1.5 + 3 * 6), rel=1e-4
    )
    queue.shares = attrs.evolve(SHARES, by_slot=True)
    assert made.priority(queue, "ann", 18000.0) == pytest.approx(
        10 / (0.7 * cpu + 0.7 * 4.5 + 3 * 6), rel=1e-4
    )
    queue.shares = attrs.evolve(SHARES, cpu_factor=0.0, run_factor=0.0, job_factor=0.0)
    assert made.priority(queue, "ann", 18000.0) == 10  # static: IBM, Static priority fairshare


@pytest.mark.parametrize(
    "text", ["USER_SHARES", "USER_SHARES[ann, 1]", "USER_SHARES[[ann 1]]", "USER_SHARES[[ann, 1] x]", "Y"]
)
def test_what_are_no_shares(text: str) -> None:
    """It is said, with what is allowed."""
    with pytest.raises(WrongValueError, match="USER_SHARES"):
        assigned(text)
