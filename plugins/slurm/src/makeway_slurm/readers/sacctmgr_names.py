"""Tell the columns and keys of sacctmgr apart: those that matter here, those that may, and mistyped ones."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping

from makeway_slurm.readers.conf_parts import Setting
from makeway_slurm.readers.draft import Draft

QOS = tuple("Name Priority GraceTime Preempt PreemptMode PreemptExemptTime Flags".split())
"""Columns of QOS that become configuration."""
USERS = tuple("Cluster Account User Partition QOS DefaultQOS DefaultAccount".split())
"""Columns of associations that do; the keys of a dump are among them."""
USERS_NEEDED = ("Account", "QOS", "DefaultQOS")
"""Those without which they say nothing."""

_PRINTED = {"defqos": "defaultqos", "defacct": "defaultaccount"}
"""Headers are shorter than what one asks for."""
_HARMLESS = frozenset(
    """admin adminlevel comment coordinator coordinators coordaccounts defaultwckey defwckey descr
    description id lineage org organization parentid parentname rawusage usagefactor wckeys""".split()
)
_SAYS_NOTHING: Mapping[str, str] = {
    "admin": "None",
    "fairshare": "1",
    "share": "1",
    "usagefactor": "1.000000",
}
_CLOSE = 0.85


def canonical(name: str) -> str:
    """Return a column or key as it is compared: ``Def QOS`` is ``defaultqos``."""
    word = name.replace(" ", "").lower()
    return _PRINTED.get(word, word)


@functools.lru_cache(maxsize=1 << 12)
def mistyped(name: str, modelled: tuple[str, ...]) -> str:
    """Return the modelled name that `name` was meant to be; empty: it is another word.

    Newer releases print more, so a word that is merely unknown is no error.
    """
    known = {canonical(each): each for each in modelled}
    close = difflib.get_close_matches(canonical(name), known, n=1, cutoff=_CLOSE)
    return known[close[0]] if close and canonical(name) not in known else ""


def says_nothing(key: str) -> str:
    """Return the value of a column that says nothing; empty: there is none beside an empty one."""
    return _SAYS_NOTHING.get(key, "")


def leave_out(draft: Draft, setting: Setting) -> None:
    """Note a column or key that is not modelled, unless its value says nothing."""
    key = canonical(setting.key)
    if setting.value and setting.value != _SAYS_NOTHING.get(key):
        draft.leave_out(setting.key, setting, relevant=key not in _HARMLESS)
