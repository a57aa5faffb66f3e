"""Say where a key changed from the command line is overruled by a nearer one: a partition's own value, or a QOS'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from makeway.config import Config
from makeway_app.cli.changes import is_file, split

_NEARER = {
    "policy.preempt_mode": ("partition", "preempt_mode"),
    "policy.preemption.exempt_time": ("qos", "exempt_time"),
    "policy.select_parameters": ("partition", "select_parameters"),
    **{f"cluster.{name}": ("partition", name) for name in ("def_mem_per_cpu", "def_mem_per_node")},
    **{f"cluster.{name}": ("partition", name) for name in ("max_mem_per_cpu", "max_mem_per_node")},
}
"""Key of the cluster -> tables with a key of their own that wins, and its name."""


def overruled(config: Config, option: str, text: str) -> Iterator[str]:
    """Yield a sentence for each key that tables with values of their own leave without effect there.

    :param text: ``KEY=VALUE``, several with ``;`` between; a file changes more than one key and is passed over.
    """
    if is_file(text):
        return
    for part in text.split(";"):
        key = split(part)[0].strip()
        if key not in _NEARER:
            continue
        kind, name = _NEARER[key]
        tables: Sequence[object] = getattr(config, kind)
        own = [str(getattr(each, "name", "")) for each in tables if getattr(each, name)]
        if own:
            named = ", ".join(own[:5]) + (f" and {len(own) - 5} more" if len(own) > 5 else "")
            all_of_them = "it changes nothing" if len(own) == len(tables) else "it changes nothing there"
            yield (
                f"{option} {key}: {kind} {named} {'has' if len(own) == 1 else 'have'} {name} of "
                f"{'its' if len(own) == 1 else 'their'} own, so that {all_of_them}; try {kind}.{own[0]}.{name}=..."
            )


__all__ = ["overruled"]
