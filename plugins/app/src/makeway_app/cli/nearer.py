"""Say where a key changed from the command line changes nothing: it was so already, or a nearer value overrules it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from makeway import registry
from makeway.config import Config
from makeway.errors import PluginError
from makeway.model import PreemptBasis
from makeway_app.cli.changes import parts_of, split

_MEMORY = {
    f"cluster.{which}_mem_per_{unit}": (f"{which}_mem_per_cpu", f"{which}_mem_per_node")
    for which in ("def", "max")
    for unit in ("cpu", "node")
}
_WITH_A_MODE = {PreemptBasis.PARTITION: "partition", PreemptBasis.QOS: "qos"}
"""What decides in a policy which jobs may displace which -> tables whose own mode it takes before the cluster's."""


def without_effect(
    before: Config, after: Config, option: str, text: str, whole: Config | None = None
) -> Iterator[str]:
    """Yield a sentence for what was typed and changes nothing, or nothing in some partitions or QOS.

    :param before: the configuration without it.
    :param after: the configuration with it.
    :param text: ``KEY=VALUE``, several with ``;`` between.
    :param whole: the configuration with what was typed beside it, too; None: nothing was.
    """
    if before == after:
        yield f"{option} {text}: it changes nothing, for the configuration says the same"
        return
    for part in parts_of(text):
        yield from overruled(whole or after, option, split(part)[0].strip())


def overruled(config: Config, option: str, key: str) -> Iterator[str]:
    """Yield a sentence if tables with values of their own leave `key` without effect there."""
    kind, names = _nearer(config, key)
    tables: tuple[Any, ...] = getattr(config, kind, ())
    said = _value(config, key)
    own = []
    for table in tables:
        for name in names:
            value = getattr(table, name)
            if _counts(kind, name, value) and not (key.endswith(name) and value == said):
                own.append((table.name, name))
                break
    if not own:
        return
    named = ", ".join(name for name, _ in own[:5]) + (f" and {len(own) - 5} more" if len(own) > 5 else "")
    (first, name), one = own[0], len(own) == 1
    yield (
        f"{option} {key}: {kind} {named} {'has' if one else 'have'} {name} of {'its' if one else 'their'} own, "
        f"so that it changes nothing{'' if len(own) == len(tables) else ' there'}; try {kind}.{first}.{name}=..."
    )


def _nearer(config: Config, key: str) -> tuple[str, tuple[str, ...]]:
    """Return the tables that may overrule a key, and by which keys of their own."""
    if key in _MEMORY:
        return "partition", _MEMORY[key]
    if key == "policy.select_parameters":
        return "partition", ("select_parameters",)
    if key == "policy.preemption.exempt_time":
        return "qos", ("exempt_time",)
    if key == "policy.preempt_mode":
        return _WITH_A_MODE.get(_basis(config.policy.preempt), ""), ("preempt_mode",)
    return "", ()


def _basis(name: str) -> PreemptBasis:
    """Return what a policy says that it goes by."""
    try:
        hook = getattr(registry.load(name), "makeway_preempt_candidates", None)
    except PluginError:
        return PreemptBasis.OTHER
    found: PreemptBasis = getattr(hook, "makeway_basis", PreemptBasis.OTHER)
    return found


def _counts(kind: str, name: str, value: Any) -> bool:
    """Whether a table has a value of its own: 0 is an exempt time, but no memory, and OFF is no mode of a QOS."""
    if name == "exempt_time":
        return value is not None
    return bool(value) and not (kind == "qos" and tuple(value) == ("off",))


def _value(config: Any, key: str) -> Any:
    for name in key.split("."):
        config = getattr(config, name, None)
    return config
