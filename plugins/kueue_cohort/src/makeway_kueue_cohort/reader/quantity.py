"""Read amounts as Kubernetes writes them: ``500m``, ``4``, ``1.5``, ``64Gi``, ``1e3``."""

from __future__ import annotations

import re
from fractions import Fraction

_FORM = re.compile(r"\+?(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d{1,2})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?")
_FACTORS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000 ** (at + 1)) for at, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Fraction(1024 ** (at + 1)) for at, suffix in enumerate("KMGTPE")},
}


def quantity(value: object) -> float:
    """Return an amount in cores, bytes or pieces.

    :raises ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"got {value!r}; allowed: an amount such as 4, 500m or 64Gi")
    match = _FORM.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"got {value!r}; allowed: an amount such as 4, 500m or 64Gi")
    number, exponent, suffix = match.groups()
    amount = Fraction(number) * _FACTORS[suffix or ""] * Fraction(f"1{exponent or ''}")
    return float(amount)
