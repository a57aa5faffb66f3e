"""Put a configuration into the words of the policy that it names, where it speaks those of another scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from makeway.config import Config, build_cluster
from makeway.errors import PluginError
from makeway.foreign import HOW, Common, Dialect, Term, Translator, Way
from makeway.model import JobSpec
from makeway.registry.finding import load
from makeway.registry.fitting import dialects

_BY_QOS = "preempt/qos"
_BY_TIER = "preempt/partition_prio"
_NONE = "preempt/none"


def translated(config: Config, was: str = "") -> tuple[Config, tuple[Term, ...]]:
    """Return `config` in the words of its policy, and what became of what; itself if it speaks them already.

    :param was: the policy for which it was written, where another was chosen since.
    """
    mine = config.policy.preempt
    own = _translator(mine)
    if mine == _NONE or (own is not None and mine in config.policy.settings):
        return config, ()
    terms: list[Term] = []
    for name in config.policy.settings:
        other = _translator(name) if name != mine else None
        if other is not None:
            config, more = other.out_of(config)
            terms += more
    if own is not None:
        tiers = {partition.priority_tier for partition in config.partition}
        lists = any(qos.preempt for qos in config.qos)
        by_qos = lists and (was == _BY_QOS or len(tiers) < 2)
        config, more = own.into(Common(config=config, cluster=build_cluster(config), by_qos=by_qos))
        terms += more
    return config, tuple(terms)


def ways(config: Config) -> tuple[Way, ...]:
    """Return which jobs make way for which others under a configuration in the words of its policy, and how."""
    own = _translator(config.policy.preempt)
    if own is not None:
        return tuple(own.ways(config, build_cluster(config)))
    common = Common(config=config, cluster=build_cluster(config), by_qos=config.policy.preempt == _BY_QOS)
    if config.policy.preempt == _BY_QOS:
        return tuple(_by_qos(common))
    return tuple(_by_tier(common)) if config.policy.preempt == _BY_TIER else ()


def _by_tier(common: Common) -> Iterator[Way]:
    for table in common.config.partition:
        higher = [each.name for each in common.config.partition if each.priority_tier > table.priority_tier]
        if higher:
            yield Way(f"partition {table.name}", HOW[common.mode(table)], ", ".join(higher), "higher tiers")


def _by_qos(common: Common) -> Iterator[Way]:
    for qos in common.config.qos:
        others = [each.name for each in common.config.qos if qos.name in each.preempt]
        if others:
            yield Way(f"QOS {qos.name}", HOW[common.mode(qos)], ", ".join(others), "their Preempt lists")


def unheard(config: Config) -> Callable[[JobSpec], Sequence[str]] | None:
    """Return what says which words of a job have no effect under a configuration; None: nothing does."""
    known = [each.unheard for each in _offered(config.policy.preempt) if each.unheard is not None]
    return known[0](build_cluster(config), config.policy.settings) if known else None


def _translator(name: str) -> Translator | None:
    return next((each.translator for each in _offered(name) if each.translator is not None), None)


def _offered(name: str) -> Sequence[Dialect]:
    try:
        return dialects(name, load(name))
    except PluginError:
        return ()
