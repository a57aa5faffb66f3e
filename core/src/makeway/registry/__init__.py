"""Find, import, ask and check plugins; the only user of pluggy's manager.

Only plugins that the config names are imported. Every answer is checked at the border, and every
exception is turned into an error that names distribution, plugin, hook and job.

=========  ==========================================================================
module     what it owns
=========  ==========================================================================
finding    what is installed, for which version of the contract, and importing it
fitting    whether a plugin fits the contract: names of hooks, arguments, markers
naming     which plugins a config names, and as which scheduler each decides
asking     calls of hooks, and which plugin to blame for what comes of them
policies   one typed method per hook that checks the answer
border     what the parts of answers may be
quicker    what spares asking: ranks of the queue, kinds of preemptors, answers by request
people     rules about commands that people give
worlds     the one world that a config names
translating a configuration in the words of the policy that it names
=========  ==========================================================================
"""

from __future__ import annotations

from makeway.catalogue import bringer, missing, reader_of
from makeway.entry_points import one_look
from makeway.registry.asking import guarded
from makeway.registry.finding import (
    Installed,
    how_to_get,
    installed,
    load,
    offers,
    pip_name,
    tool,
)
from makeway.registry.fitting import Described, described, offered
from makeway.registry.naming import KINDS, gang_of, missing_to_play, names_in, scheduler_of, vendor_of
from makeway.registry.policies import Policies
from makeway.registry.translating import translated, unheard, ways
from makeway.registry.worlds import build_world, full_name, world_settings

__all__ = [
    "KINDS",
    "Described",
    "Installed",
    "Policies",
    "bringer",
    "build_world",
    "described",
    "full_name",
    "gang_of",
    "guarded",
    "how_to_get",
    "installed",
    "load",
    "missing",
    "missing_to_play",
    "names_in",
    "offered",
    "offers",
    "one_look",
    "pip_name",
    "reader_of",
    "scheduler_of",
    "tool",
    "translated",
    "unheard",
    "vendor_of",
    "ways",
    "world_settings",
]
