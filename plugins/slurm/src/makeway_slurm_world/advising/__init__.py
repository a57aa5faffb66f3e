"""Say what a policy would do with a cluster as it is now; nothing here changes anything.

============ ========================================================================
module       what it owns
============ ========================================================================
overlay      a site's own configuration, with what a file changes of it
advice       one pass of a policy over a state: what starts, what makes way, what waits
victims      one job: what it would displace, and what Slurm itself says (``Preempts:``)
diary        what Slurm did, and what the policy would have done, as time goes on
============ ========================================================================
"""
