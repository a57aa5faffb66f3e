"""Look at a running Slurm cluster, and say what another policy would do with it.

============ ========================================================================
package      what it owns
============ ========================================================================
talking      Slurm's commands: which only ask, which change something, who may run them
reading      what these commands print, into makeway's model
advising     what a policy would do with what was read
commands     what people type: ``makeway slurm look``, ``advise``, ``whom``
============ ========================================================================
"""
