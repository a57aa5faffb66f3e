"""Find out whether an installed plugin keeps to the contract, without any workload or configuration.

``makeway plugins --check NAME`` looks at it in the order in which it may fail: found once, for this version
of the contract, importable, hooks and arguments spelled right, settings with defaults; then it has it answer
in small scenes of a few jobs on four nodes, each call within a time limit.

=======  ======================================================================
module   what it owns
=======  ======================================================================
stand    plainest selector and policy, that stand in for what a plugin is not
scenes   the scenes, and which roles a plugin plays in them
listing  readers that dialects list
probes   circumstances that no decision may depend on, files, growth
trial    the order of the looks, and what they found
showing  what ``makeway plugins --check`` prints of it
=======  ======================================================================
"""

from __future__ import annotations

from makeway_testing.probing.showing import check_plugins_named
from makeway_testing.probing.trial import Trial, try_out

__all__ = ["Trial", "check_plugins_named", "try_out"]
