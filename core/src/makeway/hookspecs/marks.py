"""Mark hooks, those that implement them, and what is said of an implementation beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pluggy

from makeway.model import PreemptBasis

hookspec = pluggy.HookspecMarker("makeway")
hookimpl = pluggy.HookimplMarker("makeway")
F = TypeVar("F", bound=Callable[..., Any])

CONTRACT_VERSION = "0.1"
"""Version of this contract; a plugin's requirement on ``makeway`` names the range it is written for."""


def of_selector(function: F) -> F:
    """Mark an implementation of `makeway_search` as the search of a selector, made for that selector's attempts.

    Goes below ``@hookimpl``. It is given the attempts that the selector began, as they are; limits judge its choice,
    and take no part in the search. Where another selector is in use it returns None, so that the next plugin
    is asked. A search in the plugin that built the selector counts as marked.
    """
    function.makeway_of_selector = True  # type: ignore[attr-defined]
    return function


def based_on(basis: PreemptBasis) -> Callable[[F], F]:
    """Mark an implementation of `makeway_preempt_candidates` with what decides which jobs may displace which.

    Goes below ``@hookimpl``. Selectors that model a scheduler ask for it (``view.preempt_basis``). Without a mark the
    basis is ``PreemptBasis.OTHER``. With ``PreemptBasis.NOTHING`` preemption is off.
    """

    if not isinstance(basis, PreemptBasis):
        raise TypeError(f"based_on({basis!r:.80}); allowed: a PreemptBasis")

    def mark(function: F) -> F:
        function.makeway_basis = basis  # type: ignore[attr-defined]
        return function

    return mark
