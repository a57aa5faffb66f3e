"""Look at a running Slurm cluster, say what another policy would do with it, and let it decide over some nodes.

============ ========================================================================
package      what it owns
============ ========================================================================
talking      Slurm's commands: which only ask, which change something, who may run them
reading      what these commands print, into makeway's model
advising     what a policy would do with what was read
driving      ``world/slurm``: starts and displaces on some nodes, with a way back
commands     what people type: ``makeway slurm look``, ``advise``, ``victims``, ``drive``, ``release``
============ ========================================================================
"""
