"""Let another configuration take over while jobs run: a new engine adopts what the old one had, and only then goes on.

If anything does not fit, the old engine goes on as if nothing had been asked, and the reason is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeway.config import Config, build_cluster, validate
from makeway.errors import ConfigError, Problem
from makeway.model import Cluster
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Action
from makeway_engine.engine import Engine


def reload(
    old: Engine, config: Config, plugins: Mapping[str, Any] | None = None, source: str = "reload"
) -> tuple[Engine, list[Action]]:
    """Return an engine that goes on under `config` where `old` stands; to be called between steps.

    The record goes on: the new engine has the old one's recorder. Nodes are what they were; all else may change.

    :param plugins: policies by name that need no installation.
    :param source: name of the new configuration, for messages.
    :returns: the engine, and what its arbiter orders when it sees the jobs: to be performed like any actions.
    :raises ConfigError: jobs, nodes or suspended victims do not fit the new configuration; `old` is as it was.
    :raises PluginError, PolicyError: a plugin cannot be loaded, or fails; `old` is as it was.
    """
    validate(config, source)
    cluster = build_cluster(config)
    _check_nodes(old.recorder.cluster, cluster, source)
    state = old.save()
    # A rehearsal with a record of its own: whatever is wrong comes out before anything of the old run is touched.
    _made(config, Recorder(cluster), plugins, old).adopt(state, source)
    recorder = old.recorder
    recorder.cluster, recorder.shapes.nodes = cluster, cluster.nodes
    engine = _made(config, recorder, plugins, old)
    return engine, engine.adopt(state, source)


def _made(config: Config, recorder: Recorder, plugins: Mapping[str, Any] | None, old: Engine) -> Engine:
    return Engine(config, recorder, Policies(config, plugins), trusted=old.deeds is None)


def _check_nodes(old: Cluster, new: Cluster, source: str) -> None:
    """Refuse other nodes: what jobs hold is told by their places."""
    before, after = [node.name for node in old.nodes], [node.name for node in new.nodes]
    if before == after:
        return
    gone = [name for name in before if name not in set(after)]
    come = [name for name in after if name not in set(before)]
    told = [f"{word} {', '.join(names[:3])}" for word, names in (("gone", gone), ("new", come)) if names]
    text = f"other nodes ({'; '.join(told)}) while jobs run; allowed: the same nodes, or a restart with the new file"
    raise ConfigError(source, [Problem("node", text)])
