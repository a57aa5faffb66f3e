"""Specify the hooks before a run: settings, files, words, checks, worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from makeway.errors import Finding
from makeway.hookspecs.marks import hookspec
from makeway.model import Cluster

if TYPE_CHECKING:
    from makeway.config import Config
    from makeway.foreign import Dialect
    from makeway.worlds.api import WorldFactory


@hookspec
def makeway_settings() -> type[Any] | None:
    """Name the class that holds the plugin's settings.

    Called once per plugin when a config is read. The class is an attrs class; its fields are the keys of
    ``[policy.settings."<plugin name>"]``, structured strictly: an unknown key or a value of another type
    is an error that names path, value and what is allowed.

    :returns: an attrs class whose fields all have defaults; None: the plugin has no settings.
    :raises: whatever is raised ends the run as PluginError.

    All plugins are asked, each for itself.

    One key, with a default::

        @attrs.frozen
        class Settings:
            patience: float = 60.0

        @hookimpl
        def makeway_settings():
            return Settings

    .. versionadded:: 0.1
    """


@hookspec
def makeway_dialect() -> Dialect | None:
    """Hand over what the plugin knows of a scheduler's files and words: a `makeway.foreign.Dialect`.

    Called on the installed plugins named ``reader/...`` when a file is opened that is not makeway's own: a
    configuration that is not TOML, a workload that no built-in reader claims, files of ``--accounting``. For
    recordings it is called on those named ``recordings/...``.
    It is the only hook for which plugins are imported that no config names, so let a reader import little. Of
    plugins that a config names, the words count.

    :returns: the dialect; it may be the same for several plugins of a distribution. None: the same as none.
    :raises: whatever is raised is reported as PluginError.

    All answers are joined.

    One word; readers go beside it (``configs=[...]``)::

        @hookimpl
        def makeway_dialect():
            return Dialect(vocabulary=Vocabulary(nouns={"partition": "queue"}))

    .. versionadded:: 0.1
    """


@hookspec
def makeway_world() -> WorldFactory | None:
    """Build the world that jobs run in.

    Called on the one plugin that ``[world] name`` or ``--world`` names, such as ``world/local``. Unlike policies,
    worlds may do I/O and read clocks; they decide nothing. Settings come from ``[world.settings]``, structured by
    the class that the plugin's `makeway_settings` names.

    :returns: called as ``factory(cluster, settings, state)``; returns a `makeway.worlds.api.World`. None: the plugin
        has no world.
    :raises: whatever is raised is reported as PluginError.

    Only the plugin that is named is asked.

    No world::

        @hookimpl
        def makeway_world():
            return None

    .. versionadded:: 0.1
    """


@hookspec
def makeway_check(
    config: Config, cluster: Cluster, settings: Mapping[type[Any], Any]
) -> Sequence[Finding] | None:
    """Find what is wrong or odd about a configuration, beyond what single values show.

    Called by ``makeway check`` on the plugins that the config names, once the config is valid. The checks of a
    vendor (`makeway.vendors`) come first, and only if it leads: where a plugin of another scheduler names candidates,
    they are left out.

    :param config: the whole configuration, as written.
    :param cluster: what it describes.
    :param settings: the plugins' settings, by class.
    :returns: findings, each with the path in the config that it is about. None: the same as none.
    :raises: whatever is raised is reported as PolicyError.

    All answers are joined, plugins in the order of the config.

    A partition that no user can use::

        @hookimpl
        def makeway_check(cluster):
            return [Finding(level="warning", where=f"partition[{p.index}]", message="it has no nodes")
                    for p in cluster.partitions if not p.nodes]

    .. versionadded:: 0.1
    """
