"""Hand over Kueue's files, as the plugin ``reader/kueue``."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from makeway.foreign import Dialect, ForeignConfig, Knob, Source
from makeway.hookspecs import hookimpl
from makeway_kueue_cohort.reader.jobs import KueueJobs


@attrs.frozen
class ManifestReader:
    """Reads manifests of Kueue. See `makeway.foreign.ForeignReader`."""

    name: str = "Kueue manifests"
    names_all_nodes: bool = True

    def claims(self, name: str, head: str) -> bool:
        """Recognise YAML that speaks of Kueue."""
        return name.endswith((".yaml", ".yml")) and ("kueue.x-k8s.io" in head or "kind: List" in head)

    def translate(self, source: Source) -> ForeignConfig:
        """Read all documents of a file."""
        from makeway_kueue_cohort.reader import files  # other files are not for it

        return files.translate(source)

    def knobs(self, source: Source) -> Sequence[Knob]:
        """Return what a search may change: who makes way in each ClusterQueue."""
        from makeway_kueue_cohort.reader import tuning

        return tuning.knobs(source)


@hookimpl
def makeway_dialect() -> Dialect:
    """Read manifests and jobs."""
    return Dialect(configs=[ManifestReader()], workloads=[KueueJobs()])
