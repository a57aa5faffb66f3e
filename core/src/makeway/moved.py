"""Import modules that moved to another distribution by their old names, for two minor releases.

`makeway` puts the finder first on the import path: a package that moved would else be searched for its modules
under the old name, and hold each of them twice.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED: Mapping[str, str] = {
    "makeway.builtin.gang_timeslice": "makeway_slurm.gang_timeslice",
    "makeway.check": "makeway_slurm.check",
    "makeway.memory": "makeway_slurm.memory",
    "makeway.play": "makeway_slurm.recordings.play",
    "makeway.probing": "makeway_testing.probing",
    "makeway.pytest_plugin": "makeway_testing.pytest_plugin",
    "makeway.readers.recording": "makeway_slurm.recordings.recording",
    "makeway.readers.sacct": "makeway_slurm.readers.sacct",
    "makeway.readers.sacctmgr": "makeway_slurm.readers.sacctmgr",
    "makeway.readers.sacctmgr_dump": "makeway_slurm.readers.sacctmgr_dump",
    "makeway.readers.sacctmgr_names": "makeway_slurm.readers.sacctmgr_names",
    "makeway.readers.sbatch_args": "makeway_slurm.readers.sbatch_args",
    "makeway.readers.scenario": "makeway_slurm.recordings.scenario",
    "makeway.readers.slurm_conf": "makeway_slurm.readers.conf",
    "makeway.readers.slurm_draft": "makeway_slurm.readers.draft",
    "makeway.readers.slurm_grammar": "makeway_slurm.readers.grammar",
    "makeway.readers.slurm_names": "makeway_slurm.readers.names",
    "makeway.readers.slurm_nodes": "makeway_slurm.readers.nodes",
    "makeway.readers.slurm_partitions": "makeway_slurm.readers.partitions",
    "makeway.readers.slurm_policy": "makeway_slurm.readers.policy",
    "makeway.readers.slurm_scheduler": "makeway_slurm.readers.scheduler",
    "makeway.readers.slurm_values": "makeway_slurm.readers.values",
    "makeway.testing": "makeway_testing",
    "makeway.testing.invariants": "makeway.invariants",
    "makeway.verify": "makeway_slurm.recordings.verify",
}
"""Old name of a module or package -> the name that it has now; modules of a package moved with it."""


def new_name(old: str) -> str | None:
    """Return the present name of a module; None: it did not move."""
    head, tail = old, ""
    while head:
        if head in MOVED:
            return MOVED[head] + tail
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return None


class MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find modules by the names that they had; a meta path finder and loader."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is found that moved; None: it did not."""
        new = new_name(name) if name.startswith("makeway.") else None
        if new is None:
            return None
        try:
            there = importlib.util.find_spec(new)
        except ModuleNotFoundError as error:
            if error.name is None or not new.startswith(error.name):
                raise
            there = None
        if there is None:
            package = new.partition(".")[0]
            if importlib.util.find_spec(package) is not None:
                return None
            distribution = package.replace("_", "-")
            text = f"{name} is now {new}, which {distribution} brings: pip install {distribution}"
            raise ModuleNotFoundError(text, name=name)
        return ModuleSpec(name, self, is_package=there.submodule_search_locations is not None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module under its present name, with a warning."""
        new = new_name(spec.name)
        assert new is not None
        module = importlib.import_module(new)
        spec.loader_state = module.__spec__
        text = f"{spec.name} is now {new}; the old name goes in makeway 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is, save that the import made it believe in its old name."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Put the finder first on the import path, once."""
    if not any(isinstance(each, MovedModules) for each in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
