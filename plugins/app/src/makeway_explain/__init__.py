"""Tell one job's life, and why: ``makeway explain``.

=======  ===================================================================
module   what it owns
=======  ===================================================================
command  the command line
story    what happened to the job, out of what its attempts came to
=======  ===================================================================
"""
